//! Register access: the [`Bus`] that a controller's registers sit behind, and typed handles on it.
//!
//! Called by the controller drivers under `host`. On hardware the bus is a
//! [`MmioWindow`], one plain load or store an access; the models implement [`Bus`] themselves and
//! see each access with its width. Field layouts come from `tock_registers`
//! (`register_bitfields!`); the handles ([`ReadOnly`] and its neighbours) are ours, because they must
//! say which registers can be read, written, or cleared by writing ones.
//!
//! Invariant: no access leaves the window. A read outside it gives all ones, as a bus without a
//! target does; a write is dropped.

mod register;
mod window;

pub use register::{ChangeBits, ReadOnly, ReadWrite, Registers, WriteOneToClear, WriteOnly};
pub use window::MmioWindow;

/// One controller's register window.
///
/// Each method makes exactly one access of its own width at a byte `offset` from the start of the
/// window. Values are in the CPU's byte order: the registers of USB host controllers are little
/// endian, and so is every CPU that this library runs on.
///
/// A clone reaches the same registers; it is what the interrupt half of a controller keeps.
pub trait Bus: Clone {
    /// Length of the window in bytes.
    fn length(&self) -> usize;
    /// Reads 8 bits at `offset`; all ones outside the window.
    fn read8(&self, offset: usize) -> u8;
    /// Reads 16 bits at `offset`; all ones outside the window.
    fn read16(&self, offset: usize) -> u16;
    /// Reads 32 bits at `offset`; all ones outside the window.
    fn read32(&self, offset: usize) -> u32;
    /// Writes 8 bits at `offset`; dropped outside the window.
    fn write8(&self, offset: usize, value: u8);
    /// Writes 16 bits at `offset`; dropped outside the window.
    fn write16(&self, offset: usize, value: u16);
    /// Writes 32 bits at `offset`; dropped outside the window.
    fn write32(&self, offset: usize, value: u32);

    /// Reads a 64-bit register as two 32-bit accesses, low half first (`xHCI 1.2 §5.1`).
    fn read64(&self, offset: usize) -> u64 {
        let low = self.read32(offset);
        let high = self.read32(offset.wrapping_add(4));
        u64::from(high) << 32 | u64::from(low)
    }

    /// Writes a 64-bit register as two 32-bit accesses, low half first (`xHCI 1.2 §5.1`): some
    /// controllers ignore 64-bit accesses, some take the value with the high half, and some buses
    /// (that of a Raspberry Pi 4) lose half of an access.
    fn write64(&self, offset: usize, value: u64) {
        self.write32(offset, value as u32);
        self.write32(offset.wrapping_add(4), (value >> 32) as u32);
    }
}
