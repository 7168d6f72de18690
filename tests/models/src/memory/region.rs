//! [`Region`]: uncached memory with a write buffer between CPU and devices.
//!
//! Its own lines are the truth for devices (`device`); the PC's memory is what the CPU sees. The
//! two differ only where a store of the CPU has not been released yet.

use std::alloc::{self, Layout};
use std::ops::Range;
use std::ptr::NonNull;

use crate::random::Random;

/// A stretch of coherent memory. The PC's memory behind it is never freed: the driver's handles on
/// it have no lifetime.
#[derive(Debug)]
pub struct Region {
    cpu: NonNull<u8>,
    bus: u64,
    device: Vec<u8>,
    /// Stores that no release has covered yet, as byte ranges, oldest first.
    waiting: Vec<Range<usize>>,
}

// SAFETY: the region is memory that it owns; nothing in it is tied to a thread.
unsafe impl Send for Region {}

impl Region {
    pub(super) fn new(bus: u64, length: usize) -> Self {
        let layout = Self::memory(length);
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc::alloc_zeroed(layout) };
        let Some(cpu) = NonNull::new(start) else {
            alloc::handle_alloc_error(layout)
        };
        Self {
            cpu,
            bus,
            device: vec![0; length],
            waiting: Vec::new(),
        }
    }

    fn memory(length: usize) -> Layout {
        Layout::from_size_align(length.max(1), 4096).expect("a region of sane size")
    }

    /// The CPU's address of the first byte.
    #[must_use]
    pub fn cpu(&self) -> NonNull<u8> {
        self.cpu
    }

    pub(super) fn holds(&self, cpu: usize, length: usize) -> bool {
        let start = self.cpu.addr().get();
        cpu >= start && cpu + length <= start + self.device.len()
    }

    pub(super) fn bus_of(&self, cpu: usize) -> u64 {
        self.bus + (cpu - self.cpu.addr().get()) as u64
    }

    pub(super) fn reaches(&self, bus: u64, length: usize) -> bool {
        let end = bus.checked_add(length as u64);
        bus >= self.bus && end.is_some_and(|end| end <= self.bus + self.device.len() as u64)
    }

    pub(super) fn offset_of(&self, bus: u64) -> usize {
        (bus - self.bus) as usize
    }

    pub(super) fn has_unreleased_stores(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn stored(&mut self, cpu: usize, length: usize) {
        let offset = cpu - self.cpu.addr().get();
        match self.waiting.last_mut() {
            Some(last) if last.end == offset => last.end += length,
            _ => self.waiting.push(offset..offset + length),
        }
    }

    pub(super) fn release(&mut self) {
        for range in std::mem::take(&mut self.waiting) {
            self.let_out(range);
        }
    }

    /// Lets a word of the waiting stores out early, any of them: a write buffer may.
    pub(super) fn let_some_out(&mut self, random: &mut Random) {
        if self.waiting.is_empty() {
            return;
        }
        let range = &self.waiting[random.below(self.waiting.len() as u64) as usize];
        let word = (range.start + random.below(range.len() as u64) as usize) & !3;
        self.let_out(word.max(range.start)..(word + 4).min(range.end));
    }

    fn let_out(&mut self, range: Range<usize>) {
        let start = range.start;
        let bytes = &mut self.device[range];
        copy_from_cpu(self.cpu, start, bytes);
    }

    pub(super) fn store(&self, bus: u64, word: u32) -> usize {
        // SAFETY: the caller made sure that the word is inside the region.
        let at = unsafe { self.cpu.add(self.offset_of(bus)) }.cast::<[u8; 4]>();
        // SAFETY: as above; bytes have no alignment.
        unsafe { at.write_volatile(word.to_le_bytes()) };
        at.addr().get()
    }

    pub(super) fn peek(&self, bus: u64, out: &mut [u8]) {
        copy_from_cpu(self.cpu, self.offset_of(bus), out);
    }

    pub(super) fn device_read(&self, offset: usize, out: &mut [u8]) {
        out.copy_from_slice(&self.device[offset..offset + out.len()]);
    }

    pub(super) fn device_write(&mut self, offset: usize, bytes: &[u8]) {
        self.device[offset..offset + bytes.len()].copy_from_slice(bytes);
        // SAFETY: inside the region, which the model owns; the driver uses volatile accesses through
        // raw pointers only, and the slice is elsewhere.
        unsafe {
            self.cpu
                .add(offset)
                .as_ptr()
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }
}

fn copy_from_cpu(cpu: NonNull<u8>, offset: usize, out: &mut [u8]) {
    // SAFETY: callers stay inside the region, and the slice is elsewhere.
    unsafe {
        cpu.add(offset)
            .as_ptr()
            .copy_to_nonoverlapping(out.as_mut_ptr(), out.len());
    }
}
