//! A PC that runs the drivers against models: caches are coherent with the models' memory, and
//! what must be seen is seen by the models' own memory, not here.

/// Ordering between DMA memory and registers.
pub mod barrier {
    use core::sync::atomic::{Ordering, fence};

    /// Earlier writes to DMA memory come before later register writes.
    #[inline(always)]
    pub fn release() {
        fence(Ordering::Release);
    }

    /// Later reads of DMA memory come after earlier ones.
    #[inline(always)]
    pub fn acquire() {
        fence(Ordering::Acquire);
    }
}

/// Data cache maintenance: nothing to do, the PC's DMA is coherent.
pub mod cache {
    use core::ptr::NonNull;

    /// Bytes of a data cache line.
    #[must_use]
    pub fn line_size() -> usize {
        64
    }

    /// Writes dirty lines of `length` bytes at `start` back to memory.
    pub fn clean(_start: NonNull<u8>, _length: usize) {}

    /// Drops the lines of `length` bytes at `start`.
    ///
    /// # Safety
    ///
    /// On other CPUs this throws away what was written to the lines and not cleaned: the caller
    /// owns every byte of the lines that the range touches.
    pub unsafe fn invalidate(_start: NonNull<u8>, _length: usize) {}

    /// Writes dirty lines back, then drops them.
    pub fn clean_and_invalidate(_start: NonNull<u8>, _length: usize) {}
}

/// Device accesses of exactly one width.
pub mod mmio {
    macro_rules! access {
        ($read:ident, $write:ident, $width:ty) => {
            /// Reads one register.
            ///
            /// # Safety
            ///
            /// `address` must be aligned and mapped as device memory.
            #[inline(always)]
            pub unsafe fn $read(address: *const $width) -> $width {
                // SAFETY: the caller's promise.
                unsafe { address.read_volatile() }
            }

            /// Writes one register.
            ///
            /// # Safety
            ///
            /// `address` must be aligned and mapped as device memory.
            #[inline(always)]
            pub unsafe fn $write(address: *mut $width, value: $width) {
                // SAFETY: the caller's promise.
                unsafe { address.write_volatile(value) }
            }
        };
    }

    access!(read8, write8, u8);
    access!(read16, write16, u16);
    access!(read32, write32, u32);
}

/// A hint inside a short busy-wait.
#[inline(always)]
pub fn spin_hint() {
    core::hint::spin_loop();
}

/// Nothing can interrupt a model: a hint only.
pub fn wait_for_interrupt() {
    core::hint::spin_loop();
}
