//! ARMv7-A (Cortex-A7): 32-bit, with caches that matter.
//!
//! Cache maintenance by address to the point of coherency through CP15 c7 (Arm ARM v7-A/R,
//! B4.2.1); the line size comes from `CTR.DminLine`. `aarch32-cpu` gives registers and the full
//! barriers. Its cache operations are not used: they tell the compiler that they touch no memory, so
//! that a store to a buffer could move behind the cleaning of it; nor has it a `DMB ST`.

/// Ordering between DMA memory and registers.
pub mod barrier {
    use core::arch::asm;

    /// Earlier writes to DMA memory come before later register writes.
    #[inline(always)]
    pub fn release() {
        // SAFETY: a barrier changes no register and no memory contents.
        unsafe { asm!("dmb st", options(nostack, preserves_flags)) }
    }

    /// Later reads of DMA memory come after earlier ones. ARMv7 has no load-only `DMB`.
    #[inline(always)]
    pub fn acquire() {
        aarch32_cpu::asm::dmb();
    }
}

/// Called after every store to coherent memory; only models on a PC want to know.
#[inline(always)]
pub fn stored(_address: core::ptr::NonNull<u8>, _length: usize) {}

/// Data cache maintenance by address to the point of coherency.
pub mod cache {
    use core::arch::asm;
    use core::ptr::NonNull;

    use aarch32_cpu::asm::dsb;
    use aarch32_cpu::register::Ctr;

    /// Bytes of the smallest data cache line (`CTR.DminLine` is log2 of its words).
    #[must_use]
    pub fn line_size() -> usize {
        4 << (Ctr::read().0 >> 16 & 0xf)
    }

    /// Calls `operation` with the address of every line that the range touches, then waits for
    /// completion.
    #[inline(always)]
    fn each_line(start: NonNull<u8>, length: usize, operation: impl Fn(usize)) {
        if length == 0 {
            return;
        }
        let line = line_size();
        let first = start.addr().get() & !(line - 1);
        let end = start.addr().get().saturating_add(length);
        let mut address = first;
        while address < end {
            operation(address);
            address = match address.checked_add(line) {
                Some(next) => next,
                None => break,
            };
        }
        dsb();
    }

    /// Writes dirty lines of `length` bytes at `start` back to memory.
    pub fn clean(start: NonNull<u8>, length: usize) {
        each_line(start, length, |address| {
            // SAFETY: `DCCMVAC` changes no memory contents that the CPU can tell apart.
            unsafe {
                asm!("mcr p15, 0, {0}, c7, c10, 1", in(reg) address, options(nostack, preserves_flags));
            }
        });
    }

    /// Drops the lines of `length` bytes at `start`.
    ///
    /// # Safety
    ///
    /// This throws away what was written to the lines and not cleaned: the caller owns every byte
    /// of the lines that the range touches, and no reference to them is live.
    pub unsafe fn invalidate(start: NonNull<u8>, length: usize) {
        each_line(start, length, |address| {
            // SAFETY: `DCIMVAC`; the caller owns the whole line.
            unsafe {
                asm!("mcr p15, 0, {0}, c7, c6, 1", in(reg) address, options(nostack, preserves_flags));
            }
        });
    }

    /// Writes dirty lines back, then drops them.
    pub fn clean_and_invalidate(start: NonNull<u8>, length: usize) {
        each_line(start, length, |address| {
            // SAFETY: `DCCIMVAC` loses nothing: it cleans first.
            unsafe {
                asm!("mcr p15, 0, {0}, c7, c14, 1", in(reg) address, options(nostack, preserves_flags));
            }
        });
    }
}

/// Device accesses of exactly one width, in assembly: a volatile access in Rust may be narrowed.
pub mod mmio {
    use core::arch::asm;

    macro_rules! access {
        ($read:ident, $load:literal, $write:ident, $store:literal, $width:ty) => {
            /// Reads one register.
            ///
            /// # Safety
            ///
            /// `address` must be aligned and mapped as device memory.
            #[inline(always)]
            pub unsafe fn $read(address: *const $width) -> $width {
                let value: u32;
                // SAFETY: one load from an address that the caller answers for.
                unsafe {
                    asm!($load, value = lateout(reg) value, address = in(reg) address,
                         options(nostack, preserves_flags));
                }
                value as $width
            }

            /// Writes one register.
            ///
            /// # Safety
            ///
            /// `address` must be aligned and mapped as device memory.
            #[inline(always)]
            pub unsafe fn $write(address: *mut $width, value: $width) {
                // SAFETY: one store to an address that the caller answers for.
                unsafe {
                    asm!($store, value = in(reg) u32::from(value), address = in(reg) address,
                         options(nostack, preserves_flags));
                }
            }
        };
    }

    access!(
        read8,
        "ldrb {value}, [{address}]",
        write8,
        "strb {value}, [{address}]",
        u8
    );
    access!(
        read16,
        "ldrh {value}, [{address}]",
        write16,
        "strh {value}, [{address}]",
        u16
    );
    access!(
        read32,
        "ldr {value}, [{address}]",
        write32,
        "str {value}, [{address}]",
        u32
    );
}

/// A hint inside a short busy-wait.
#[inline(always)]
pub fn spin_hint() {
    core::hint::spin_loop();
}

/// Sleeps until an interrupt is pending, also one that is masked.
pub fn wait_for_interrupt() {
    aarch32_cpu::asm::dsb();
    aarch32_cpu::asm::wfi();
}
