//! [`MmioWindow`]: the [`Bus`] of real hardware.
//!
//! Built by a platform from its memory map. Every access is checked against the window's length
//! and made with exactly the width that was asked for: the accesses are written in assembly where
//! the compiler could otherwise narrow or merge them.

use core::ptr::NonNull;

use super::Bus;
use crate::arch;

/// A window of device registers in the address space of the CPU.
#[derive(Clone, Copy, Debug)]
pub struct MmioWindow {
    base: NonNull<u8>,
    length: usize,
}

impl MmioWindow {
    /// A window of `length` bytes at the CPU address `base`, as far as they are whole groups of eight: so one
    /// comparison tells whether an access of any width lies inside.
    ///
    /// # Safety
    ///
    /// For as long as this value or a copy of it is used, `base..base + length` must be mapped as
    /// device memory, hold only device registers, and not be reached by any Rust reference. `base`
    /// must be 8-byte aligned.
    #[must_use]
    pub const unsafe fn new(base: NonNull<u8>, length: usize) -> Self {
        Self {
            base,
            length: length & !7,
        }
    }

    /// The CPU address of an access of `T` at `offset`, if all of it lies inside the window.
    #[inline]
    fn address<T>(&self, offset: usize) -> Option<*mut T> {
        const { assert!(size_of::<T>().is_power_of_two() && size_of::<T>() <= 8) }
        // An aligned access that begins inside ends there too: the length is a multiple of eight.
        let fits = offset < self.length;
        let aligned = offset.is_multiple_of(size_of::<T>());
        // `wrapping_add`: the window is not a Rust allocation.
        (fits && aligned).then(|| self.base.as_ptr().wrapping_add(offset).cast())
    }
}

// SAFETY: a window is an address and a length; device registers may be accessed from any context,
// and nothing in it is tied to the thread that made it.
unsafe impl Send for MmioWindow {}
// SAFETY: `&MmioWindow` allows just the same accesses as a copy of it, which is `Send`.
unsafe impl Sync for MmioWindow {}

macro_rules! accessors {
    ($read:ident, $write:ident, $width:ty) => {
        #[inline]
        fn $read(&self, offset: usize) -> $width {
            match self.address::<$width>(offset) {
                // SAFETY: the address lies inside the window and is aligned (`address` checked
                // both), and the constructor's contract makes it a mapped device register.
                Some(address) => unsafe { arch::mmio::$read(address) },
                None => <$width>::MAX,
            }
        }

        #[inline]
        fn $write(&self, offset: usize, value: $width) {
            if let Some(address) = self.address::<$width>(offset) {
                // SAFETY: as for the read above.
                unsafe { arch::mmio::$write(address, value) }
            }
        }
    };
}

impl Bus for MmioWindow {
    #[inline]
    fn length(&self) -> usize {
        self.length
    }

    accessors!(read8, write8, u8);
    accessors!(read16, write16, u16);
    accessors!(read32, write32, u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(8))]
    struct Backing([u8; 16]);

    fn window(backing: &mut Backing) -> MmioWindow {
        let base = NonNull::from(&mut backing.0).cast();
        // SAFETY: the array outlives the window in each test and is not touched beside it.
        unsafe { MmioWindow::new(base, 16) }
    }

    #[test]
    fn an_access_inside_the_window_reaches_memory() {
        let mut backing = Backing([0; 16]);
        let window = window(&mut backing);
        window.write32(12, 0x1234_5678);
        assert_eq!(window.read32(12), 0x1234_5678);
        assert_eq!(window.read8(15), 0x12);
        assert_eq!(window.read16(12), 0x5678);
    }

    #[test]
    fn an_access_outside_the_window_reads_ones_and_writes_nothing() {
        let mut backing = Backing([0; 16]);
        let window = window(&mut backing);
        window.write32(16, 1);
        window.write32(usize::MAX - 3, 1);
        assert_eq!(window.read32(16), u32::MAX);
        assert_eq!(window.read32(14), u32::MAX, "unaligned and half outside");
        assert_eq!(window.read8(usize::MAX), u8::MAX);
        assert_eq!(backing.0, [0; 16]);
    }
}
