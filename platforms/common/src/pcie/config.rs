//! Configuration space: where it is and how it is read.

use core::fmt;

use crate::region::Region;

/// Bytes of a function's configuration space (PCIe 3.0 §7.2.2).
const FUNCTION_BYTES: usize = 4096;
/// Devices on a bus, and functions of a device (PCI 3.0 §6.2.2).
const DEVICES: u8 = 32;
const FUNCTIONS: u8 = 8;

/// Bytes of configuration space of one bus: what an [`Ecam`] of the root bus needs mapped.
pub const BUS_BYTES: usize = DEVICES as usize * FUNCTIONS as usize * FUNCTION_BYTES;

/// A function on the root bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// 0 to 31.
    pub device: u8,
    /// 0 to 7.
    pub function: u8,
}

impl Address {
    /// Every address on the bus, function by function.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..DEVICES)
            .flat_map(|device| (0..FUNCTIONS).map(move |function| Self { device, function }))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "00:{:02x}.{}", self.device, self.function)
    }
}

/// Access to configuration space, by words. `register` is a byte offset below 4096, a multiple
/// of 4.
pub trait ConfigSpace {
    /// Reads a word; all ones where there is no function.
    fn read(&self, address: Address, register: u16) -> u32;
    /// Writes a word.
    fn write(&self, address: Address, register: u16, value: u32);
}

/// Configuration space in memory (PCIe 3.0 §7.2.2), of the root bus.
#[derive(Clone, Copy, Debug)]
pub struct Ecam {
    base: usize,
}

impl Ecam {
    /// The root bus's part of `region`; `None` where that is too small for a bus.
    ///
    /// # Safety
    ///
    /// `region` must be a host bridge's configuration space, its first [`BUS_BYTES`] mapped one to
    /// one as configuration memory (nGnRnE) for as long as this value or a copy lives.
    #[must_use]
    pub unsafe fn new(region: Region) -> Option<Self> {
        (region.length >= BUS_BYTES).then_some(Self { base: region.start })
    }

    fn word(self, address: Address, register: u16) -> *mut u32 {
        let function = usize::from(address.device % DEVICES) * usize::from(FUNCTIONS)
            + usize::from(address.function % FUNCTIONS);
        let offset = usize::from(register) & (FUNCTION_BYTES - 1) & !3;
        (self.base + function * FUNCTION_BYTES + offset) as *mut u32
    }
}

impl ConfigSpace for Ecam {
    fn read(&self, address: Address, register: u16) -> u32 {
        // SAFETY: `new` was promised that the bus's space is mapped; `word` stays in it, aligned.
        unsafe { self.word(address, register).read_volatile() }
    }

    fn write(&self, address: Address, register: u16, value: u32) {
        // SAFETY: as in `read`.
        unsafe { self.word(address, register).write_volatile(value) }
    }
}
