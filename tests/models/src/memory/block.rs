//! [`Block`]: cached memory, with one copy for the CPU and one for the devices.
//!
//! The CPU's copy is the PC's memory, where the driver's slices live. `device` is what DMA sees.
//! `agreed` is what a line held when the cache last agreed with memory: a line that differs from it
//! is dirty. A clean line keeps its old content after DMA until it is invalidated, or until chance
//! fetches it anew.

use std::alloc::{self, Layout};
use std::ops::Range;
use std::ptr::NonNull;

use crate::broken::require;
use crate::random::Random;

/// A stretch of cached memory that the driver has mapped, or that a test has made.
#[derive(Debug)]
pub struct Block {
    cpu: NonNull<u8>,
    bus: u64,
    line: usize,
    device: Vec<u8>,
    agreed: Vec<u8>,
    /// A line that is dirty whatever it holds.
    dirty: Vec<bool>,
    /// A line that a device wrote since the CPU last dropped it.
    written: Vec<bool>,
    mapped: Vec<Range<usize>>,
    /// Pages that the block owns, and their layout.
    owned: Option<(NonNull<u8>, Layout)>,
}

// SAFETY: a block reaches memory only while the driver has lent it, as a device would.
unsafe impl Send for Block {}

impl Block {
    /// Memory of somebody else, taken as it is: all dirty, and devices would see garbage.
    pub(super) fn borrowed(cpu: NonNull<u8>, bus: u64, length: usize, line: usize) -> Self {
        let first = cpu.addr().get() / line;
        let lines = (cpu.addr().get() + length).div_ceil(line).max(first + 1) - first;
        Self {
            cpu,
            bus,
            line,
            device: vec![0xd5; length],
            agreed: vec![0xd5; length],
            dirty: vec![true; lines],
            written: vec![false; lines],
            mapped: Vec::new(),
            owned: None,
        }
    }

    /// New memory, zeroed, its first byte `offset` bytes behind a page.
    pub(super) fn owned(bus: u64, length: usize, offset: usize, line: usize) -> Self {
        let size = (offset + length).next_multiple_of(4096).max(4096);
        let layout = Layout::from_size_align(size, 4096).expect("a block of sane size");
        // SAFETY: the layout is not empty.
        let pages = unsafe { alloc::alloc_zeroed(layout) };
        let Some(pages) = NonNull::new(pages) else {
            alloc::handle_alloc_error(layout)
        };
        // SAFETY: `offset` is inside the allocation.
        let cpu = unsafe { pages.add(offset) };
        let mut block = Self::borrowed(cpu, bus, length, line);
        block.owned = Some((pages, layout));
        block
    }

    pub(super) fn cpu(&self) -> NonNull<u8> {
        self.cpu
    }

    /// Whether the block outlives its mappings.
    pub(super) fn stays(&self) -> bool {
        self.owned.is_some()
    }

    pub(super) fn is_used(&self) -> bool {
        !self.mapped.is_empty()
    }

    pub(super) fn holds(&self, cpu: usize, length: usize) -> bool {
        let start = self.cpu.addr().get();
        cpu >= start && cpu + length <= start + self.device.len()
    }

    fn local(&self, cpu: usize, length: usize) -> Range<usize> {
        let offset = cpu - self.cpu.addr().get();
        offset..offset + length
    }

    pub(super) fn bus_range(&self, cpu: usize, length: usize) -> Range<u64> {
        let local = self.local(cpu, length);
        self.bus + local.start as u64..self.bus + local.end as u64
    }

    pub(super) fn map(&mut self, cpu: usize, length: usize) -> u64 {
        let local = self.local(cpu, length);
        let bus = self.bus + local.start as u64;
        self.mapped.push(local);
        bus
    }

    pub(super) fn unmap(&mut self, cpu: usize, length: usize, coherent: bool) {
        let local = self.local(cpu, length);
        let Some(index) = self.mapped.iter().position(|range| *range == local) else {
            return;
        };
        self.mapped.swap_remove(index);
        for line in self.lines(&local) {
            require!(
                coherent || !self.written[line],
                "Dma::returned",
                "a device wrote the buffer, and it went back without being invalidated after that: \
                 byte {} is stale for the CPU",
                self.bytes_of(line).start
            );
        }
    }

    pub(super) fn reaches(&self, bus: u64, length: usize) -> bool {
        let Some(offset) = bus.checked_sub(self.bus) else {
            return false;
        };
        let Some(end) = offset.checked_add(length as u64) else {
            return false;
        };
        let inside = |range: &Range<usize>| range.start as u64 <= offset && end <= range.end as u64;
        self.mapped.iter().any(inside)
    }

    pub(super) fn offset_of(&self, bus: u64) -> usize {
        (bus - self.bus) as usize
    }

    /// Indices of the lines that a local byte range touches.
    fn lines(&self, local: &Range<usize>) -> Range<usize> {
        if local.is_empty() {
            return 0..0;
        }
        let start = self.cpu.addr().get();
        let first = start / self.line;
        (start + local.start) / self.line - first..(start + local.end - 1) / self.line - first + 1
    }

    /// The local bytes of a line, as far as they belong to the block.
    fn bytes_of(&self, line: usize) -> Range<usize> {
        let start = self.cpu.addr().get();
        let begin = (start / self.line + line) * self.line;
        let end = begin + self.line - start;
        begin.saturating_sub(start)..end.min(self.device.len())
    }

    fn cpu_bytes(&self, local: Range<usize>) -> Vec<u8> {
        let mut bytes = vec![0; local.len()];
        // SAFETY: inside the block, which the driver has lent or the model owns; the vector is new.
        unsafe {
            self.cpu
                .add(local.start)
                .as_ptr()
                .copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len());
        }
        bytes
    }

    /// Writes only what differs: memory that was lent for reading is never written.
    fn set_cpu_bytes(&self, start: usize, bytes: &[u8]) {
        if self.cpu_bytes(start..start + bytes.len()) == bytes {
            return;
        }
        // SAFETY: as above; what a device wrote into was lent for writing.
        unsafe {
            self.cpu
                .add(start)
                .as_ptr()
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    fn is_dirty(&self, line: usize) -> bool {
        let bytes = self.bytes_of(line);
        self.dirty[line] || self.cpu_bytes(bytes.clone()) != self.agreed[bytes]
    }

    fn write_back(&mut self, line: usize) {
        let bytes = self.bytes_of(line);
        let content = self.cpu_bytes(bytes.clone());
        self.device[bytes.clone()].copy_from_slice(&content);
        self.agreed[bytes].copy_from_slice(&content);
        self.dirty[line] = false;
    }

    fn fetch(&mut self, line: usize) {
        let bytes = self.bytes_of(line);
        let content = self.device[bytes.clone()].to_vec();
        self.set_cpu_bytes(bytes.start, &content);
        self.agreed[bytes].copy_from_slice(&content);
        self.dirty[line] = false;
    }

    pub(super) fn clean(&mut self, cpu: usize, length: usize) {
        for line in self.lines(&self.local(cpu, length)) {
            if self.is_dirty(line) {
                self.write_back(line);
            }
        }
    }

    pub(super) fn invalidate(&mut self, cpu: usize, length: usize) {
        require!(
            cpu.is_multiple_of(self.line) && (cpu + length).is_multiple_of(self.line),
            "Dma::invalidate",
            "{length} bytes at {cpu:#x} share a line of {} bytes with other data, which is lost",
            self.line
        );
        for line in self.lines(&self.local(cpu, length)) {
            self.fetch(line);
            self.written[line] = false;
        }
    }

    /// One random line is evicted if it is dirty, fetched anew if it is clean.
    pub(super) fn disturb(&mut self, random: &mut Random) {
        if !self.is_used() {
            return;
        }
        let line = random.below(self.dirty.len() as u64) as usize;
        if self.is_dirty(line) {
            self.write_back(line);
        } else {
            self.fetch(line);
        }
    }

    pub(super) fn device_read(&mut self, offset: usize, out: &mut [u8], coherent: bool) {
        let local = offset..offset + out.len();
        if coherent {
            out.copy_from_slice(&self.cpu_bytes(local));
            return;
        }
        for line in self.lines(&local) {
            require!(
                !self.is_dirty(line),
                "Dma::clean",
                "a device reads byte {} of a buffer whose line is dirty in the CPU's cache",
                self.bytes_of(line).start
            );
        }
        out.copy_from_slice(&self.device[local]);
    }

    pub(super) fn device_write(&mut self, offset: usize, bytes: &[u8], coherent: bool) {
        let local = offset..offset + bytes.len();
        if coherent {
            self.set_cpu_bytes(offset, bytes);
            return;
        }
        for line in self.lines(&local) {
            self.check_written_line(line);
            self.written[line] = true;
        }
        self.device[local].copy_from_slice(bytes);
    }

    fn check_written_line(&self, line: usize) {
        let bytes = self.bytes_of(line);
        let owns = |range: &Range<usize>| range.start <= bytes.start && bytes.end <= range.end;
        require!(
            bytes.len() == self.line && self.mapped.iter().any(owns),
            "shared cache line",
            "a device writes into the line of byte {}, which is not all in the mapped buffer",
            bytes.start
        );
        require!(
            !self.is_dirty(line),
            "Dma::clean",
            "a device writes byte {} of a buffer whose line is dirty in the CPU's cache: it would be \
             evicted over the data",
            bytes.start
        );
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some((pages, layout)) = self.owned {
            // SAFETY: allocated in `owned` with this layout; test buffers do not outlive the
            // machine.
            unsafe { alloc::dealloc(pages.as_ptr(), layout) };
        }
    }
}
