//! Memory as CPU and devices see it, which is not the same.
//!
//! The driver works on ordinary memory of the PC: that is the CPU's copy. Devices work on a copy of
//! their own, and only what a real machine would do brings the two together:
//!
//! - a coherent (uncached) [`Region`]: a device's write is seen at once; a CPU's store waits in a
//!   write buffer until the driver passes a `release`, or until chance lets a part of it out early;
//! - a cached [`Block`]: `clean` moves dirty lines to the devices, `invalidate` takes theirs. Chance
//!   evicts dirty lines and fetches clean ones at any moment, as a CPU does.
//!
//! The machine calls it for controllers (DMA) and for the driver (through the adapter). What no
//! driver may do fails the run at once: DMA outside of what was mapped, or into what was returned;
//! DMA over dirty or shared lines; a buffer given back without its second pass.
//!
//! Bus addresses are unlike CPU addresses and are never given out twice, except for memory that
//! stays for the whole run.

mod block;
mod region;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;
use std::ptr::NonNull;

pub use block::Block;
pub use region::Region;

use crate::broken::{broken, require};
use crate::random::Random;

/// Everything below is a 4 KiB page.
const PAGE: u64 = 4096;

/// How the memory of a machine is laid out.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Bytes of a cache line, a power of two from 16 to 128.
    pub line: usize,
    /// Whether hardware keeps caches and DMA coherent: cached memory has one copy then.
    pub coherent: bool,
    /// Where bus addresses begin.
    pub base: u64,
}

/// Bytes that DMA has moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// Read by devices.
    pub read: u64,
    /// Written by devices.
    pub written: u64,
}

/// All memory of a machine.
#[derive(Debug)]
pub struct Memory {
    layout: Layout,
    random: Random,
    next_bus: u64,
    regions: Vec<Region>,
    blocks: Vec<Block>,
    returned: VecDeque<Range<u64>>,
    moved: Moved,
}

/// What a bus address leads to.
enum Target {
    Region(usize, usize),
    Block(usize, usize),
}

impl Memory {
    /// No memory yet.
    #[must_use]
    pub fn new(layout: Layout, random: Random) -> Self {
        let line = layout.line;
        assert!(
            line.is_power_of_two() && (16..=128).contains(&line),
            "a cache line has 16 to 128 bytes"
        );
        Self {
            layout,
            random,
            next_bus: layout.base.next_multiple_of(PAGE),
            regions: Vec::new(),
            blocks: Vec::new(),
            returned: VecDeque::new(),
            moved: Moved::default(),
        }
    }

    /// The layout it was made with.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// How many bytes DMA has moved so far.
    #[must_use]
    pub fn moved(&self) -> Moved {
        self.moved
    }

    /// Makes a coherent region of `length` bytes, zeroed, at a multiple of 4096 on both sides:
    /// the CPU's and the devices' address of it.
    pub fn add_region(&mut self, length: usize) -> (NonNull<u8>, u64) {
        let bus = self.take_bus(0, length);
        let region = Region::new(bus, length);
        let cpu = region.cpu();
        self.regions.push(region);
        (cpu, bus)
    }

    /// Makes a cached block of `length` bytes whose first byte is `offset` bytes behind a page: it
    /// stays for the whole run, at the same bus address. Devices reach it only while it is mapped.
    pub fn add_block(&mut self, length: usize, offset: usize, base: Option<u64>) -> NonNull<u8> {
        let bus = match base {
            Some(base) => base + offset as u64,
            None => self.take_bus(offset, length),
        };
        let block = Block::owned(bus, length, offset, self.layout.line);
        let cpu = block.cpu();
        self.blocks.push(block);
        cpu
    }

    /// The driver takes the bus address of `length` bytes at `cpu`: devices may reach them until
    /// [`Memory::unmap`]. Memory that the model has not seen before is taken as it is, all its
    /// lines dirty.
    pub fn map(&mut self, cpu: NonNull<u8>, length: usize) -> u64 {
        let start = cpu.addr().get();
        if let Some(region) = self
            .regions
            .iter()
            .find(|region| region.holds(start, length))
        {
            return region.bus_of(start);
        }
        if let Some(block) = self.block_of(start, length) {
            return block.map(start, length);
        }
        let page_offset = start % PAGE as usize;
        let bus = self.take_bus(page_offset, length);
        let mut block = Block::borrowed(cpu, bus, length, self.layout.line);
        block.map(start, length);
        self.blocks.push(block);
        bus
    }

    /// The driver lets no device reach the memory any more.
    pub fn unmap(&mut self, cpu: NonNull<u8>, length: usize) {
        let start = cpu.addr().get();
        let coherent = self.layout.coherent;
        let Some(index) = self
            .blocks
            .iter()
            .position(|block| block.holds(start, length))
        else {
            return;
        };
        let block = &mut self.blocks[index];
        block.unmap(start, length, coherent);
        self.returned.push_back(block.bus_range(start, length));
        if self.returned.len() > 4096 {
            self.returned.pop_front();
        }
        if !block.is_used() && !block.stays() {
            self.blocks.swap_remove(index);
        }
    }

    /// The driver writes the dirty lines of a range back.
    pub fn clean(&mut self, cpu: NonNull<u8>, length: usize) {
        if !self.layout.coherent
            && let Some(block) = self.block_of(cpu.addr().get(), length)
        {
            block.clean(cpu.addr().get(), length);
        }
    }

    /// The driver drops the lines of a range.
    pub fn invalidate(&mut self, cpu: NonNull<u8>, length: usize) {
        let start = cpu.addr().get();
        if self.layout.coherent || length == 0 {
            return;
        }
        match self.block_of(start, length) {
            Some(block) => block.invalidate(start, length),
            None => broken!(
                "Dma::invalidate",
                "{length} bytes at {start:#x} were never mapped"
            ),
        }
    }

    /// The CPU stored to memory at `cpu`: its bus address, if that is coherent memory of ours.
    pub fn stored(&mut self, cpu: usize, length: usize) -> Option<u64> {
        let holds = |region: &&mut Region| region.holds(cpu, length);
        let region = self.regions.iter_mut().find(holds)?;
        region.stored(cpu, length);
        Some(region.bus_of(cpu))
    }

    /// Stores a word as the CPU would, for drivers that are part of a test: its CPU address.
    pub(crate) fn store(&mut self, bus: u64, word: u32) -> usize {
        let region = self.regions.iter().find(|region| region.reaches(bus, 4));
        match region {
            Some(region) => region.store(bus, word),
            None => panic!("{bus:#x} is no coherent memory"),
        }
    }

    /// The CPU passed a release: what it stored is visible.
    pub fn released(&mut self) {
        for region in &mut self.regions {
            region.release();
        }
    }

    /// Whether stores wait for a release.
    #[must_use]
    pub fn has_unreleased_stores(&self) -> bool {
        self.regions.iter().any(Region::has_unreleased_stores)
    }

    /// What the CPU has in `out.len()` bytes of coherent memory at `bus`, released or not. Used to
    /// watch how the driver builds its structures.
    pub fn peek(&self, bus: u64, out: &mut [u8]) -> bool {
        let region = self
            .regions
            .iter()
            .find(|region| region.reaches(bus, out.len()));
        region.is_some_and(|region| {
            region.peek(bus, out);
            true
        })
    }

    /// What devices see of four words of coherent memory at `bus`; not counted as DMA.
    #[must_use]
    pub fn visible_words(&self, bus: u64) -> [u32; 4] {
        let mut words = [0; 4];
        let Some(region) = self.regions.iter().find(|region| region.reaches(bus, 16)) else {
            return words;
        };
        for (index, word) in words.iter_mut().enumerate() {
            let mut bytes = [0; 4];
            region.device_read(region.offset_of(bus) + 4 * index, &mut bytes);
            *word = u32::from_le_bytes(bytes);
        }
        words
    }

    /// Whether all of `length` bytes at `bus` may be reached.
    #[must_use]
    pub fn is_mapped(&self, bus: u64, length: usize) -> bool {
        self.regions
            .iter()
            .any(|region| region.reaches(bus, length))
            || self.blocks.iter().any(|block| block.reaches(bus, length))
    }

    /// A device reads by DMA.
    pub fn read(&mut self, bus: u64, out: &mut [u8]) {
        if out.is_empty() {
            return;
        }
        self.disturb();
        self.moved.read += out.len() as u64;
        match self.locate(bus, out.len(), "reads") {
            Target::Region(index, offset) => self.regions[index].device_read(offset, out),
            Target::Block(index, offset) => {
                self.blocks[index].device_read(offset, out, self.layout.coherent);
            }
        }
    }

    /// A device writes by DMA.
    pub fn write(&mut self, bus: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.disturb();
        self.moved.written += bytes.len() as u64;
        match self.locate(bus, bytes.len(), "writes") {
            Target::Region(index, offset) => self.regions[index].device_write(offset, bytes),
            Target::Block(index, offset) => {
                self.blocks[index].device_write(offset, bytes, self.layout.coherent);
            }
        }
    }

    /// A device reads `N` little-endian words.
    pub fn read_words<const N: usize>(&mut self, bus: u64) -> [u32; N] {
        let mut words = [0; N];
        for (index, word) in words.iter_mut().enumerate() {
            let mut bytes = [0; 4];
            self.read(bus + 4 * index as u64, &mut bytes);
            *word = u32::from_le_bytes(bytes);
        }
        words
    }

    /// A device writes little-endian words.
    pub fn write_words(&mut self, bus: u64, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write(bus, &bytes);
    }

    /// A device reads a little-endian 64-bit value.
    pub fn read64(&mut self, bus: u64) -> u64 {
        let [low, high] = self.read_words(bus);
        u64::from(high) << 32 | u64::from(low)
    }

    /// Chance: something that a CPU may do at any moment. Called at each DMA and register access.
    pub fn disturb(&mut self) {
        if self.random.once_in(8) && !self.regions.is_empty() {
            let index = self.random.below(self.regions.len() as u64) as usize;
            self.regions[index].let_some_out(&mut self.random);
        }
        if !self.layout.coherent && self.random.once_in(8) && !self.blocks.is_empty() {
            let index = self.random.below(self.blocks.len() as u64) as usize;
            self.blocks[index].disturb(&mut self.random);
        }
    }

    fn block_of(&mut self, cpu: usize, length: usize) -> Option<&mut Block> {
        self.blocks
            .iter_mut()
            .find(|block| block.holds(cpu, length))
    }

    /// Addresses for `length` bytes, the first `offset` bytes behind a page.
    fn take_bus(&mut self, offset: usize, length: usize) -> u64 {
        let bus = self.next_bus + offset as u64;
        // A gap, so that what runs over one piece never reaches another.
        let gap = PAGE * (1 + self.random.below(15));
        self.next_bus = (bus + length as u64).next_multiple_of(PAGE) + gap;
        bus
    }

    fn locate(&self, bus: u64, length: usize, does: &str) -> Target {
        for (index, region) in self.regions.iter().enumerate() {
            if region.reaches(bus, length) {
                return Target::Region(index, region.offset_of(bus));
            }
        }
        for (index, block) in self.blocks.iter().enumerate() {
            if block.reaches(bus, length) {
                return Target::Block(index, block.offset_of(bus));
            }
        }
        let end = bus.wrapping_add(length as u64);
        let late = |range: &Range<u64>| range.start < end && bus < range.end;
        require!(
            !self.returned.iter().any(late),
            "late DMA",
            "a device {does} {length} bytes at {bus:#x}, in a buffer that was returned"
        );
        broken!(
            "stray DMA",
            "a device {does} {length} bytes at {bus:#x}, which are not all mapped"
        )
    }
}
