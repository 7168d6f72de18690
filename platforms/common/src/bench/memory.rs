//! The memory that loads transfer from and to.

use heapless::Vec;
use rootport::dma::{Class, DmaBuffer, PoolUsage};
use static_cell::ConstStaticCell;

use super::workload::{MOST_BUFFERS, MOST_BYTES};

/// Bytes of a request at depth.
const SHORT_BYTES: usize = 4 << 10;

/// Buffers for the requests of the queue face.
pub type Owned = Vec<DmaBuffer, MOST_BUFFERS>;

/// Whole pages, so that no cache line is shared.
#[repr(C, align(4096))]
struct Pages<const N: usize>([u8; N]);

static BORROWED: ConstStaticCell<Pages<MOST_BYTES>> = ConstStaticCell::new(Pages([0; MOST_BYTES]));
static LONG: ConstStaticCell<Pages<MOST_BYTES>> = ConstStaticCell::new(Pages([0; MOST_BYTES]));
static SHORT: ConstStaticCell<Pages<{ MOST_BUFFERS * SHORT_BYTES }>> =
    ConstStaticCell::new(Pages([0; MOST_BUFFERS * SHORT_BYTES]));

/// Memory for one load at a time.
#[derive(Debug)]
pub struct Memory {
    borrowed: &'static mut [u8],
    long: Owned,
    short: Owned,
}

impl Memory {
    /// The memory, for the one who asks first.
    pub fn take() -> Option<Self> {
        Some(Self {
            borrowed: &mut BORROWED.try_take()?.0,
            long: pieces(&mut LONG.try_take()?.0, MOST_BYTES),
            short: pieces(&mut SHORT.try_take()?.0, SHORT_BYTES),
        })
    }

    /// `size` bytes, or what there is.
    pub fn borrow(&mut self, size: usize) -> &mut [u8] {
        let size = size.min(self.borrowed.len());
        self.borrowed.get_mut(..size).unwrap_or_default()
    }

    /// `count` buffers of `size` bytes, as far as there are some of that size.
    pub fn own(&mut self, size: usize, count: usize) -> Owned {
        let store = if size == MOST_BYTES {
            &mut self.long
        } else {
            &mut self.short
        };
        let mut taken = Owned::new();
        while taken.len() < count
            && let Some(buffer) = store.pop()
        {
            // As large as the store.
            let _ = taken.push(buffer);
        }
        taken
    }

    /// Takes buffers back for the next load.
    pub fn take_back(&mut self, buffers: Owned) {
        for buffer in buffers {
            let store = if buffer.length() == MOST_BYTES {
                &mut self.long
            } else {
                &mut self.short
            };
            // It came from there.
            let _ = store.push(buffer);
        }
    }
}

fn pieces(memory: &'static mut [u8], size: usize) -> Owned {
    let pieces = memory.chunks_exact_mut(size);
    pieces.map(DmaBuffer::from_static).collect()
}

/// Bytes of the pool that are in use as this.
#[must_use]
pub fn of_class(usage: &PoolUsage, class: Class) -> usize {
    let all = Class::ALL.iter().zip(usage.by_class);
    let own = all.filter(|(other, _)| **other == class);
    own.map(|(_, bytes)| bytes).sum()
}
