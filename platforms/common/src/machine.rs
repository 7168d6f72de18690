//! [`Machine`]: the stack's [`Platform`] on a board of ours.
//!
//! Made by the board's `main` of what it has found; the stack keeps it. Memory is mapped one to
//! one, and devices see the addresses that the processor sees.

use core::fmt;
use core::ptr::NonNull;

use heapless::Vec;
use rootport::dma::{BusAddress, Dma};
use rootport::mmio::MmioWindow;
use rootport::platform::ControllerId;
use rootport::time::Instant;
use rootport::{Platform, arch};

use crate::brakes::CutDma;
use crate::cpu::timer;
use crate::demo::options::Coherency;
use crate::println;
use crate::region::Region;
use crate::wake;

/// Policy: pieces of RAM that are remembered; buffers elsewhere are refused, not corrupted.
const RAM_PIECES: usize = 8;

/// A board, as the stack sees it: at most `N` controllers, each cut off through a `C`.
#[derive(Debug)]
pub struct Machine<C, const N: usize> {
    coherency: Coherency,
    ram: Vec<Region, RAM_PIECES>,
    controllers: Vec<C, N>,
}

impl<C: CutDma, const N: usize> Machine<C, N> {
    /// A machine with RAM in these pieces. `controllers` are in the order in which the host gets
    /// them.
    #[must_use]
    pub fn new(
        coherency: Coherency,
        ram: impl Iterator<Item = Region>,
        controllers: Vec<C, N>,
    ) -> Self {
        Self {
            coherency,
            ram: ram.take(RAM_PIECES).collect(),
            controllers,
        }
    }

    fn controller(&self, controller: ControllerId) -> Option<&C> {
        self.controllers.get(usize::from(controller.0))
    }
}

// SAFETY: memory is mapped one to one and contiguous, and devices of these boards use the same
// addresses, so that the bus address of RAM is its address. Maintenance is by address to the point
// of coherency. `Coherency::Hardware` is the board's word for it.
unsafe impl<C: CutDma, const N: usize> Dma for Machine<C, N> {
    fn coherent(&self) -> bool {
        self.coherency == Coherency::Hardware
    }

    fn cache_line(&self) -> usize {
        arch::cache::line_size()
    }

    fn bus_address(&self, start: NonNull<u8>, length: usize) -> Option<BusAddress> {
        let range = Region::new(start.addr().get(), length);
        let inside = self.ram.iter().any(|piece| piece.contains(range));
        inside.then(|| BusAddress::new(range.start as u64))
    }

    fn clean(&self, start: NonNull<u8>, length: usize) {
        arch::cache::clean(start, length);
    }

    unsafe fn invalidate(&self, start: NonNull<u8>, length: usize) {
        // SAFETY: the caller owns the lines, as promised.
        unsafe { arch::cache::invalidate(start, length) }
    }
}

impl<C: CutDma, const N: usize> Platform for Machine<C, N> {
    type Bus = MmioWindow;

    fn now(&self) -> Instant {
        Instant::from_micros(timer::microseconds())
    }

    fn wait(&self, until: Instant) {
        wake::wait(until.as_micros());
    }

    fn cut_dma(&self, controller: ControllerId) -> bool {
        self.controller(controller).is_some_and(C::cut_dma)
    }

    fn can_cut_dma(&self, controller: ControllerId) -> bool {
        self.controller(controller).is_some()
    }

    fn log(&self, line: fmt::Arguments<'_>) {
        println!("{line}");
    }
}
