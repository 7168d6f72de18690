//! A PC that runs the drivers against models: caches are coherent with the models' memory, and
//! what must be seen is seen by the models' own memory, not here. A model that wants to know in
//! which order the CPU's stores become visible installs an [`observer`].

/// Ordering between DMA memory and registers.
pub mod barrier {
    use core::sync::atomic::{Ordering, fence};

    /// Earlier writes to DMA memory come before later register writes.
    #[inline(always)]
    pub fn release() {
        fence(Ordering::Release);
        super::observer::tell(super::observer::Observation::Released);
    }

    /// Later reads of DMA memory come after earlier ones.
    #[inline(always)]
    pub fn acquire() {
        fence(Ordering::Acquire);
    }
}

/// A model's view of the CPU's stores to coherent memory. On a PC no store is ever seen late or out
/// of order by a model in the same thread; whoever observes can pretend that it is.
pub mod observer {
    use core::mem;
    use core::ptr;
    use core::sync::atomic::{AtomicPtr, Ordering};

    /// What the CPU did.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Observation {
        /// It wrote `length` bytes of coherent memory at the CPU address `address`.
        Stored {
            /// CPU address.
            address: usize,
            /// In bytes.
            length: usize,
        },
        /// It passed a `barrier::release`.
        Released,
    }

    static OBSERVER: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

    /// From now on `observer` is told, on the thread that makes the store. One observer serves the
    /// whole process.
    pub fn install(observer: fn(Observation)) {
        OBSERVER.store(observer as *mut (), Ordering::Release);
    }

    #[inline]
    pub(super) fn tell(observation: Observation) {
        let observer = OBSERVER.load(Ordering::Acquire);
        if !observer.is_null() {
            // SAFETY: only `install` writes the pointer, and it was made of such a function.
            let observer: fn(Observation) = unsafe { mem::transmute(observer) };
            observer(observation);
        }
    }
}

/// Called after every store to coherent memory: tells the [`observer`].
#[inline(always)]
pub fn stored(address: core::ptr::NonNull<u8>, length: usize) {
    observer::tell(observer::Observation::Stored {
        address: address.addr().get(),
        length,
    });
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
