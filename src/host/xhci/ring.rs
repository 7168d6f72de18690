//! A ring that the driver fills and the controller empties: one segment of TRBs.
//!
//! Used for the command ring and for every transfer ring. The driver's place and cycle state live
//! here, never in memory that the controller can write. A block is handed over by its last word,
//! whose bit 0 is the producer's cycle state (`xHCI 1.2 §4.9.2`); whoever hands over a group writes
//! its first block's word last, after [`release`](crate::dma::release).
//!
//! A group of blocks is never torn by a link: where it does not fit before the end, the link is
//! written early, right where the group would have begun. So a transfer is one fragment, and the
//! rule on the length of fragments (`xHCI 1.2 §4.11.7.1`) has nothing to bite on. (No-op blocks
//! would do too, but QEMU sends them to the device as empty packets.) The blocks that are left out
//! get this lap's cycle bit all the same, so that they are not taken for new ones in the next lap.

use super::trb::{BYTES, Flags, LENGTH_MASK, Trb, kind};
use crate::dma::{
    Allocation, Block, BusAddress, Class, Owner, Pool, PoolError, Row, Rules, Segment, release,
};

/// The most blocks of a segment, which must not cross 64 KiB (`xHCI 1.2 table 6-1`).
pub(super) const MAX_BLOCKS: usize = 0x1_0000 / BYTES;

/// Byte offset of a block's last word.
const LAST_WORD: usize = 12;

/// One segment, and the producer's place in it.
#[derive(Debug)]
pub(super) struct ProducerRing {
    memory: Allocation,
    row: Row<BYTES>,
    /// Blocks of the segment. The last is never anything but a link.
    size: u32,
    enqueue: u32,
    /// 0 or 1.
    cycle: u32,
}

impl ProducerRing {
    /// A ring of `blocks` blocks, at most [`MAX_BLOCKS`], with `spare` unused bytes behind it.
    pub(super) fn allocate(
        pool: &mut Pool<'_>,
        owner: Owner,
        blocks: u32,
        spare: usize,
    ) -> Result<Self, PoolError> {
        let bytes = blocks as usize * BYTES + spare;
        // 64 bytes suit the command ring too (`xHCI 1.2 table 6-1`).
        let rules = Rules::aligned(64).within(0x1_0000);
        let memory = pool.allocate(owner, Class::Ring, bytes, rules)?;
        Ok(Self::in_memory(memory, blocks))
    }

    /// A ring of `blocks` blocks in memory that is exactly so long and lies as it must.
    pub(super) fn in_memory(memory: Allocation, blocks: u32) -> Self {
        Self {
            row: memory.row(blocks),
            memory,
            size: blocks,
            enqueue: 0,
            cycle: 1,
        }
    }

    /// Ends the ring and gives its memory up, to be freed.
    pub(super) fn into_memory(self) -> Allocation {
        self.memory
    }

    /// The devices' address of the first block.
    pub(super) fn bus(&self) -> BusAddress {
        self.memory.bus()
    }

    /// Length of the memory, in bytes.
    pub(super) fn length(&self) -> usize {
        self.memory.length()
    }

    /// Where the next block will be written.
    #[inline]
    pub(super) fn enqueue(&self) -> u32 {
        self.enqueue
    }

    /// Which block an address names, if it is one of this ring's.
    #[inline]
    pub(super) fn index_of(&self, pointer: u64) -> Option<u32> {
        let offset = pointer.wrapping_sub(self.memory.bus().get());
        let inside = offset < u64::from(self.size) * BYTES as u64;
        (inside && offset.is_multiple_of(BYTES as u64)).then_some((offset / BYTES as u64) as u32)
    }

    /// Takes `count` blocks in a row, behind an early link where they do not fit before the end. The caller
    /// has so little in flight that the ring is never full: see [`ring_blocks`](super::encode::ring_blocks).
    #[inline]
    pub(super) fn take(&mut self, count: u32) -> u32 {
        if self.enqueue + count >= self.size {
            self.wrap();
        }
        let first = self.enqueue;
        self.enqueue += count;
        first
    }

    /// Takes one block, where there is room for it without a link.
    #[inline(always)]
    pub(super) fn take_next(&mut self) -> Option<u32> {
        let first = self.enqueue;
        let next = first + 1;
        if next >= self.size {
            return None;
        }
        self.enqueue = next;
        Some(first)
    }

    /// Links back to the start from here, and starts the next lap.
    #[cold]
    fn wrap(&mut self) {
        let here = self.enqueue;
        for skipped in here + 1..self.size {
            self.memory.write32(word(skipped, 12), self.cycle);
        }
        let link = Trb::link(self.memory.bus());
        self.write(here, &link);
        release();
        self.hand_over(here, link.control);
        self.enqueue = 0;
        self.cycle ^= Flags::CYCLE.bits();
    }

    /// Writes all of block `index` but its last word: it is not handed over yet.
    #[inline]
    pub(super) fn write(&self, index: u32, trb: &Trb) {
        if let Some(block) = self.block(index) {
            let parameter = trb.parameter;
            block.write([parameter as u32, (parameter >> 32) as u32, trb.status]);
        }
    }

    /// Writes block `index` and hands it over.
    #[inline(always)]
    pub(super) fn put(&self, index: u32, data: Segment, control: u32) {
        if let Some(block) = self.write_data(index, data) {
            // The controller may be reading the ring already: it must not see the block as its own
            // before it can see everything else.
            release();
            block.write32::<LAST_WORD>(control | self.cycle);
        }
    }

    /// Writes block `index` as the controller's only when it is handed over.
    #[inline]
    pub(super) fn hold(&self, index: u32, data: Segment, control: u32) {
        if let Some(block) = self.write_data(index, data) {
            block.write32::<LAST_WORD>(control | self.cycle ^ Flags::CYCLE.bits());
        }
    }

    /// Writes all of a normal block but its last word. None of its data is behind it.
    #[inline(always)]
    fn write_data(&self, index: u32, data: Segment) -> Option<Block<'_, BYTES>> {
        let block = self.block(index)?;
        let address = data.bus().get();
        block.write([address as u32, (address >> 32) as u32, data.length()]);
        Some(block)
    }

    /// Hands block `index` over by its last word.
    #[inline]
    pub(super) fn hand_over(&self, index: u32, control: u32) {
        if let Some(block) = self.block(index) {
            block.write32::<LAST_WORD>(control | self.cycle);
        }
    }

    #[inline(always)]
    fn block(&self, index: u32) -> Option<Block<'_, BYTES>> {
        self.row.get(index)
    }

    /// Transfer length of block `index`, as it was written.
    pub(super) fn block_length(&self, index: u32) -> u32 {
        self.memory.read32(word(index, 8)) & LENGTH_MASK
    }

    /// All of block `index`.
    #[cfg(test)]
    pub(super) fn read(&self, index: u32) -> Trb {
        Trb {
            parameter: self.memory.read64(word(index, 0)),
            status: self.memory.read32(word(index, 8)),
            control: self.memory.read32(word(index, 12)),
        }
    }

    /// Where a controller that is told to start here must begin: the address of the next block,
    /// with the cycle state in bit 0. Never a link, which some controllers do not start at (VL805).
    pub(super) fn start_pointer(&mut self) -> u64 {
        if self.enqueue == self.size - 1 {
            self.wrap();
        }
        let control = word(self.enqueue, 12);
        if Trb::kind_of(self.memory.read32(control)) == kind::LINK {
            // An earlier lap's.
            self.memory
                .write32(control, self.cycle ^ Flags::CYCLE.bits());
            release();
        }
        self.bus_of(self.enqueue).get() | u64::from(self.cycle)
    }

    /// Moves on to a block at a multiple of 64 bytes, for the command ring's register. What is left
    /// out is filled with `filler`: a controller that goes on where it was gets there too.
    pub(super) fn align(&mut self, filler: &Trb) {
        while !self.enqueue.is_multiple_of(4) {
            self.write(self.enqueue, filler);
            self.hand_over(self.enqueue, filler.control);
            self.enqueue += 1;
            if self.enqueue == self.size - 1 {
                self.wrap();
            }
        }
    }

    /// The devices' address of block `index`.
    pub(super) fn bus_of(&self, index: u32) -> BusAddress {
        self.memory.bus().offset(word(index, 0) as u64)
    }
}

/// Byte offset of `byte` in block `index`.
#[inline]
fn word(index: u32, byte: usize) -> usize {
    index as usize * BYTES + byte
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
