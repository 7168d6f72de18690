//! Memory for unit tests of the controllers: a coherent region that a test reads and writes by bus
//! address, as a device would, a pool of such memory, and a watch on callers' buffers.

use core::cell::RefCell;
use core::ptr::NonNull;

use super::pool::RawCoherent;
use super::{BusAddress, CoherentRegion, Dma, Pool, PoolRecord, Segment};

/// A page of it.
#[repr(align(4096))]
struct Page(#[expect(dead_code, reason = "reached by address only")] [u8; 4096]);

/// Memory that lives until the test program ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TestMemory {
    cpu: NonNull<u8>,
    bus: u64,
    length: usize,
}

impl TestMemory {
    /// `length` zeroed bytes, a multiple of 4096, that devices find at `bus`.
    pub(crate) fn new(bus: u64, length: usize) -> Self {
        Self::filled(bus, length, 0)
    }

    fn filled(bus: u64, length: usize, byte: u8) -> Self {
        let pages: Vec<Page> = (0..length / 4096).map(|_| Page([byte; 4096])).collect();
        let cpu = NonNull::from(Vec::leak(pages)).cast();
        Self { cpu, bus, length }
    }

    /// The memory for a pool.
    pub(crate) fn region(&self) -> CoherentRegion {
        // SAFETY: leaked, so valid for ever, and reached by volatile accesses only. The PC that
        // tests run on has no device that reaches it.
        unsafe { CoherentRegion::new(self.cpu, BusAddress::new(self.bus), self.length) }
    }

    fn at(&self, bus: u32) -> NonNull<u32> {
        let offset = (u64::from(bus) - self.bus) as usize;
        assert!(offset + 4 <= self.length && offset.is_multiple_of(4));
        // SAFETY: inside the memory.
        unsafe { self.cpu.add(offset) }.cast()
    }

    /// Reads a word as a device does.
    pub(crate) fn read32(&self, bus: u32) -> u32 {
        // SAFETY: inside the memory and aligned, as `at` has checked.
        u32::from_le(unsafe { self.at(bus).read_volatile() })
    }

    /// Writes a word as a device does.
    pub(crate) fn write32(&self, bus: u32, value: u32) {
        // SAFETY: inside the memory and aligned, as `at` has checked.
        unsafe { self.at(bus).write_volatile(value.to_le()) }
    }
}

/// A piece for a controller to reach, with no memory behind it.
pub(crate) fn segment(bus: u64, length: usize) -> Segment {
    Segment::from(RawCoherent {
        cpu: NonNull::dangling(),
        bus: BusAddress::new(bus),
        length,
    })
}

/// Where the region starts for devices: above 4 GiB, and one page before a 64 KiB boundary.
pub(crate) const BUS: u64 = 0x7_0000_f000;

/// Runs `test` with a pool of `pages` pages that starts at [`BUS`], filled with rubbish.
pub(crate) fn with_pool<R>(pages: usize, test: impl FnOnce(&mut Pool<'_>) -> R) -> R {
    with_pool_at(BUS, pages, test)
}

/// The same, at another bus address.
pub(crate) fn with_pool_at<R>(bus: u64, pages: usize, test: impl FnOnce(&mut Pool<'_>) -> R) -> R {
    let memory = TestMemory::filled(bus, pages * 4096, 0xa5);
    let mut records = vec![PoolRecord::EMPTY; 64];
    test(&mut Pool::new(memory.region(), &mut records))
}

/// A coherent platform's view of callers' buffers: which of them a device may reach now.
#[derive(Debug, Default)]
pub(crate) struct Lent {
    buffers: RefCell<Vec<usize>>,
}

impl Lent {
    /// How many buffers a device may reach.
    pub(crate) fn count(&self) -> usize {
        self.buffers.borrow().len()
    }
}

// SAFETY: no device reads the addresses; there is no cache to maintain.
unsafe impl Dma for Lent {
    fn coherent(&self) -> bool {
        true
    }
    fn cache_line(&self) -> usize {
        64
    }
    fn bus_address(&self, start: NonNull<u8>, _length: usize) -> Option<BusAddress> {
        self.buffers.borrow_mut().push(start.addr().get());
        Some(BusAddress::new(start.addr().get() as u64))
    }
    fn clean(&self, _start: NonNull<u8>, _length: usize) {}
    unsafe fn invalidate(&self, _start: NonNull<u8>, _length: usize) {}
    fn returned(&self, start: NonNull<u8>, _length: usize) {
        let mut buffers = self.buffers.borrow_mut();
        let is_it = |buffer: &usize| *buffer == start.addr().get();
        let place = buffers.iter().position(is_it);
        buffers.swap_remove(place.expect("a buffer is returned that was not lent"));
    }
}
