//! The event ring: what the controller fills and the driver empties.
//!
//! Called by [`poll`](super::controller). [`EventRing::is_ready`] is the whole cost of a poll that
//! finds nothing: one load of the next block's cycle bit. Its segments lie one behind the other in one
//! piece of the pool, so that the driver walks them as one; the segment table tells the controller
//! where each begins. Read `xHCI 1.2 §4.9.4`.

use super::capability::Parameters;
use super::quirks::Quirks;
use super::regs::{Blocks, ERSTSZ, interrupter, write_address};
use super::trb::{BYTES, Flags, Trb};
use crate::dma::{Allocation, Class, Owner, Pool, PoolError, Rules, Walk, acquire};
use crate::mmio::Bus;

/// Blocks of a segment where the controller allows as many segments as are needed. Policy: 4 KiB.
const SEGMENT_BLOCKS: usize = 256;
/// The least and the most blocks of a segment (`xHCI 1.2 §6.5`).
const SEGMENT_LIMITS: (usize, usize) = (16, 4096);
/// Event handler busy: written as one to clear it, with each new dequeue pointer (`§5.5.2.3.3`).
const HANDLER_BUSY: u64 = 1 << 3;

/// The part of the ring that may hold events which were taken without a word to the controller, where
/// no interrupt depends on it: a quarter. Policy: two writes are spared for most events.
const PATIENCE: u32 = 4;

/// Blocks for `events` events that wait at the same time: what was taken and not told of is in the
/// way of new ones.
pub(super) const fn room(events: usize) -> usize {
    events * PATIENCE as usize / (PATIENCE - 1) as usize
}

/// Byte offset of a block's last word.
const LAST_WORD: usize = 12;

/// How many segments of how many blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    segments: usize,
    blocks: usize,
}

impl Shape {
    /// The shape that holds `events` events, as far as the controller allows.
    pub(super) fn for_events(events: usize, parameters: &Parameters) -> Self {
        // All in one 64 KiB: no segment can cross a boundary then.
        let events = events.clamp(SEGMENT_LIMITS.0, SEGMENT_LIMITS.1);
        let wanted = events.div_ceil(SEGMENT_BLOCKS);
        let segments = wanted.min(parameters.event_segments);
        Self {
            segments,
            blocks: events
                .div_ceil(segments)
                .next_multiple_of(SEGMENT_LIMITS.0)
                .min(SEGMENT_LIMITS.1 / segments),
        }
    }

    /// Bytes of the ring and of the segment table.
    pub(super) fn bytes(self) -> [usize; 2] {
        [self.segments * self.blocks * BYTES, self.segments * BYTES]
    }
}

/// The event ring of interrupter 0, and the consumer's place in it.
#[derive(Debug)]
pub(super) struct EventRing {
    memory: Allocation,
    table: Allocation,
    shape: Shape,
    /// The blocks of all segments, and which is next: the controller writes its last word last.
    walk: Walk<BYTES>,
    /// Cycle bit that a new block has: 0 or 1.
    cycle: u32,
    /// Blocks taken since the controller was told.
    taken: u32,
    /// The controller may be told by the low half of the pointer alone.
    low_half_counts: bool,
}

impl EventRing {
    pub(super) fn allocate(
        pool: &mut Pool<'_>,
        owner: Owner,
        shape: Shape,
        quirks: Quirks,
    ) -> Result<Self, PoolError> {
        let [bytes, table_bytes] = shape.bytes();
        let rules = Rules::aligned(64).within(0x1_0000);
        let memory = pool.allocate(owner, Class::EventRing, bytes, rules)?;
        let blocks = (bytes / BYTES) as u32;
        let ring = Self {
            walk: Walk::along(memory.row(blocks)),
            memory,
            table: pool.allocate(owner, Class::EventRing, table_bytes, Rules::aligned(64))?,
            shape,
            cycle: 1,
            taken: 0,
            low_half_counts: quirks.contains(Quirks::ERDP_BY_LOW_HALF),
        };
        for segment in 0..shape.segments {
            let start = ring
                .memory
                .bus()
                .offset((segment * shape.blocks * BYTES) as u64);
            ring.table.write64(segment * BYTES, start.get());
            ring.table.write64(segment * BYTES + 8, shape.blocks as u64);
        }
        Ok(ring)
    }

    /// Tells the controller where the ring is. The table's address comes last: it is what makes
    /// the controller read the table (`xHCI 1.2 §4.9.4`).
    pub(super) fn install<B: Bus>(&self, blocks: &Blocks<B>) {
        let runtime = &blocks.runtime;
        runtime.write(
            interrupter::ERSTSZ,
            ERSTSZ::SEGMENTS.val(self.shape.segments as u32),
        );
        write_address(runtime, interrupter::ERDP, self.pointer() | HANDLER_BUSY);
        write_address(runtime, interrupter::ERSTBA, self.table.bus().get());
    }

    /// Whether an event waits. One load.
    #[inline(always)]
    pub(super) fn is_ready(&self) -> bool {
        self.is_new(self.walk.block().read32::<LAST_WORD>())
    }

    #[inline(always)]
    fn is_new(&self, control: u32) -> bool {
        (control ^ self.cycle) & Flags::CYCLE.bits() == 0
    }

    /// The next event, which stays in the ring.
    #[inline]
    pub(super) fn peek(&self) -> Option<Trb> {
        let block = self.walk.block();
        let control = block.read32::<LAST_WORD>();
        if !self.is_new(control) {
            return None;
        }
        // The rest of the block, and the data that the event speaks of, were written before its
        // last word: they must not be read earlier than that.
        acquire();
        let [low, high, status] = block.read();
        Some(Trb {
            parameter: u64::from(high) << 32 | u64::from(low),
            status,
            control,
        })
    }

    /// Leaves the event that was peeked at behind.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        self.taken += 1;
        if self.walk.advance() {
            self.cycle ^= Flags::CYCLE.bits();
        }
    }

    /// Whether so many events were taken that the controller should know before the batch ends.
    #[inline]
    pub(super) fn is_overdue(&self) -> bool {
        self.taken * 2 >= self.walk.count()
    }

    /// Whether so many events were taken that a controller which nobody waits for should know.
    #[inline]
    pub(super) fn is_worth_telling(&self) -> bool {
        self.taken * PATIENCE >= self.walk.count()
    }

    /// Tells the controller how far the ring was emptied, if it was. Two writes, but one where the low half
    /// counts alone: the ring lies in one 64 KiB, so that its high half never changes.
    #[inline]
    pub(super) fn acknowledge<B: Bus>(&mut self, blocks: &Blocks<B>) {
        if self.taken == 0 {
            return;
        }
        self.taken = 0;
        let pointer = self.pointer() | HANDLER_BUSY;
        if self.low_half_counts {
            blocks.runtime.write_low_half(interrupter::ERDP, pointer);
        } else {
            blocks.runtime.write64(interrupter::ERDP, pointer);
        }
    }

    /// Which block is the next.
    pub(super) fn position(&self) -> u32 {
        self.walk.index()
    }

    /// The next block's address, with the low bits of its segment's number (`§5.5.2.3.3`).
    #[inline]
    fn pointer(&self) -> u64 {
        let next = self.walk.index();
        let segment = if self.shape.segments == 1 {
            0
        } else {
            (next / self.shape.blocks as u32) & 7
        };
        self.memory.bus().get() + u64::from(next) * BYTES as u64 + u64::from(segment)
    }
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
