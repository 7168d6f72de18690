//! The demo's memory: fixed, aligned, taken once.

use core::slice;

use static_cell::ConstStaticCell;

use crate::region::{PAGE, Region};

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

    /// Bytes of RAM that [`Buffers::at`] takes.
    pub const LENGTH: usize = TRANSFER + WINDOW + BLOCK;

    /// Buffers in RAM of the caller's choice, from `start` on.
    ///
    /// # Safety
    ///
    /// [`Buffers::LENGTH`] bytes from there are RAM that is mapped as data, and nothing else ever
    /// uses them.
    #[must_use]
    pub unsafe fn at(start: usize) -> Self {
        // SAFETY: the caller gives the memory away, and the three parts do not overlap. Any bytes are
        // valid contents.
        let part = |offset, length| unsafe {
            slice::from_raw_parts_mut((start + offset) as *mut u8, length)
        };
        Self {
            transfer: part(0, TRANSFER),
            window: part(TRANSFER, WINDOW),
            block: part(TRANSFER + WINDOW, BLOCK),
        }
    }
}

/// The first page above 4 GiB from which on [`Buffers::LENGTH`] bytes lie in a piece of RAM.
pub fn high_place(mut ram: impl Iterator<Item = Region>) -> Option<usize> {
    // No such address where addresses have 32 bits.
    let limit = usize::try_from(1_u64 << 32).ok()?;
    let above = |piece: Region| {
        let start = piece.start.max(limit).next_multiple_of(PAGE);
        let region = Region::new(start, Buffers::LENGTH);
        piece.contains(region).then_some(start)
    };
    ram.find_map(above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn high_buffers_lie_above_4_gib_and_in_ram() {
        let place = |start, length| high_place([Region::new(start, length)].into_iter());
        assert_eq!(place(0x4000_0000, 0x2000_0000), None);
        assert_eq!(place(0x4000_0000, 6 << 30), Some(1 << 32));
        assert_eq!(place(0x1_4000_0800, 4 << 20), Some(0x1_4000_1000));
        assert_eq!(place(0x4000_0000, 3 << 30), None, "it ends there");
    }
}
