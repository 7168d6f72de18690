//! [`CoherentRegion`]: the piece of memory that a platform gives to the pool.

use core::ptr::NonNull;

use super::BusAddress;

/// Memory that CPU and devices see alike without cache maintenance.
///
/// Made once by a platform; the [`Pool`](super::Pool) takes it over and gives it back when the host
/// is shut down.
#[derive(Debug)]
pub struct CoherentRegion {
    cpu: NonNull<u8>,
    bus: BusAddress,
    length: usize,
}

impl CoherentRegion {
    /// `length` bytes at the CPU address `cpu`, which devices reach at `bus`.
    ///
    /// # Safety
    ///
    /// For as long as the region or a pool made of it lives:
    /// - `cpu..cpu + length` is mapped readable and writable, and reached by no Rust reference;
    /// - it is uncached (cleaned and invalidated before that mapping came into use, without a live
    ///   cacheable alias), or hardware keeps it coherent with every controller of the host;
    /// - devices reach the same bytes at `bus`, contiguously.
    ///
    /// `cpu` and `bus` are multiples of 4096.
    #[must_use]
    pub const unsafe fn new(cpu: NonNull<u8>, bus: BusAddress, length: usize) -> Self {
        Self { cpu, bus, length }
    }

    /// The CPU's address of the first byte.
    #[must_use]
    pub const fn cpu(&self) -> NonNull<u8> {
        self.cpu
    }

    /// The devices' address of the first byte.
    #[must_use]
    pub const fn bus(&self) -> BusAddress {
        self.bus
    }

    /// Length in bytes.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }
}

// SAFETY: the region is memory with no tie to a thread; only its owner reaches it.
unsafe impl Send for CoherentRegion {}
