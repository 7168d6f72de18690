//! The demo's memory: fixed, aligned, taken once.

use static_cell::ConstStaticCell;

/// Bytes of the largest transfer of the throughput table.
const TRANSFER: usize = 1 << 20;
/// Bytes of the window through which a file system reads ahead.
const WINDOW: usize = 64 << 10;
/// Bytes of the buffer for partition tables: a block of the largest size there is.
const BLOCK: usize = 64 << 10;

/// Memory that devices read and write directly.
#[derive(Debug)]
pub struct Buffers<'b> {
    /// File contents, and the throughput table's transfers: 1 MiB for the whole table.
    pub transfer: &'b mut [u8],
    /// The file system's window.
    pub window: &'b mut [u8],
    /// Partition tables: a block.
    pub block: &'b mut [u8],
}

/// Whole pages, so that no cache line is shared.
#[repr(C, align(4096))]
struct Pages<const N: usize>([u8; N]);

static TRANSFERS: ConstStaticCell<Pages<TRANSFER>> = ConstStaticCell::new(Pages([0; TRANSFER]));
static WINDOWS: ConstStaticCell<Pages<WINDOW>> = ConstStaticCell::new(Pages([0; WINDOW]));
static BLOCKS: ConstStaticCell<Pages<BLOCK>> = ConstStaticCell::new(Pages([0; BLOCK]));

impl Buffers<'static> {
    /// The buffers, for the one who asks first.
    pub fn take() -> Option<Self> {
        Some(Self {
            transfer: &mut TRANSFERS.try_take()?.0,
            window: &mut WINDOWS.try_take()?.0,
            block: &mut BLOCKS.try_take()?.0,
        })
    }
}
