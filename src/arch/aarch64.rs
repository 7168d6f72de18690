//! ARMv8-A in AArch64.
//!
//! Barriers and cache maintenance as in the Arm Architecture Reference Manual, B2.3 (ordering) and
//! D7.5 (caches); `aarch64-cpu` gives the barrier and the register wrappers.

/// Ordering between DMA memory and registers.
pub mod barrier {
    use aarch64_cpu::asm::barrier;

    /// Earlier writes to DMA memory (Normal) come before later register writes (Device). The
    /// outer shareable domain is the one that DMA masters are in; a `DMB` orders the two kinds.
    #[inline(always)]
    pub fn release() {
        barrier::dmb(barrier::OSHST);
    }

    /// Later reads of DMA memory come after earlier ones.
    #[inline(always)]
    pub fn acquire() {
        barrier::dmb(barrier::OSHLD);
    }
}

/// Called after every store to coherent memory; only models on a PC want to know.
#[inline(always)]
pub fn stored(_address: core::ptr::NonNull<u8>, _length: usize) {}

/// Data cache maintenance by address to the point of coherency.
pub mod cache {
    use core::arch::asm;
    use core::ptr::NonNull;

    use aarch64_cpu::asm::barrier;

    /// Bytes of the smallest data cache line.
    #[inline]
    #[must_use]
    pub fn line_size() -> usize {
        1 << line_exponent()
    }

    /// The same, as a power of two (`CTR_EL0.DminLine` is log2 of its 4-byte words).
    #[inline]
    fn line_exponent() -> u32 {
        let ctr: u64;
        // SAFETY: reading the cache type register has no side effect. `aarch64-cpu` has no name
        // for it.
        unsafe { asm!("mrs {0}, ctr_el0", out(reg) ctr, options(nomem, nostack, preserves_flags)) }
        (ctr >> 16 & 0xf) as u32 + 2
    }

    /// Lines of one turn of a maintenance loop. Policy: what the loop itself costs is little beside
    /// them then.
    const UNROLLED: usize = 32;

    /// Defines a function that makes `$operation` with every line of a range, then waits for
    /// completion. It stays a function: the assembler repeats instructions that the compiler does
    /// not count, and branches around them must reach.
    macro_rules! each_line {
        ($name:ident, $operation:literal) => {
            /// # Safety
            ///
            /// If the operation drops lines, what was written to them and not cleaned is lost: the
            /// caller owns every byte of the lines that the range touches.
            #[inline(never)]
            unsafe fn $name(start: NonNull<u8>, length: usize) {
                if length == 0 {
                    return;
                }
                let exponent = line_exponent();
                let line = 1_usize << exponent;
                let start = start.addr().get();
                let mut address = start & line.wrapping_neg();
                // From the start of the first line to the end of the last: no buffer ends so near the end of
                // memory that this wraps.
                let lines = (start - address).wrapping_add(length + line - 1) >> exponent;
                for _ in 0..lines / UNROLLED {
                    // SAFETY: lines of the range, which the caller answers for.
                    unsafe {
                        asm!(
                            ".rept {count}",
                            concat!($operation, ", {address}"),
                            "add {address}, {address}, {line}",
                            ".endr",
                            count = const UNROLLED,
                            address = inout(reg) address,
                            line = in(reg) line,
                            options(nostack, preserves_flags),
                        );
                    }
                }
                for _ in 0..lines % UNROLLED {
                    // SAFETY: as above.
                    unsafe {
                        asm!(
                            concat!($operation, ", {address}"),
                            address = in(reg) address,
                            options(nostack, preserves_flags),
                        );
                    }
                    address += line;
                }
                barrier::dsb(barrier::SY);
            }
        };
    }

    each_line!(clean_lines, "dc cvac");
    each_line!(drop_lines, "dc ivac");
    each_line!(clean_and_drop_lines, "dc civac");

    /// Writes dirty lines of `length` bytes at `start` back to memory.
    pub fn clean(start: NonNull<u8>, length: usize) {
        // SAFETY: `DC CVAC` changes no memory contents that the CPU can tell apart.
        unsafe { clean_lines(start, length) }
    }

    /// Drops the lines of `length` bytes at `start`.
    ///
    /// # Safety
    ///
    /// This throws away what was written to the lines and not cleaned: the caller owns every byte
    /// of the lines that the range touches, and no reference to them is live.
    pub unsafe fn invalidate(start: NonNull<u8>, length: usize) {
        // SAFETY: the caller owns the lines.
        unsafe { drop_lines(start, length) }
    }

    /// Writes dirty lines back, then drops them.
    pub fn clean_and_invalidate(start: NonNull<u8>, length: usize) {
        // SAFETY: `DC CIVAC` loses nothing: it cleans first.
        unsafe { clean_and_drop_lines(start, length) }
    }
}

/// Device accesses of exactly one width, in assembly: a volatile access in Rust may be narrowed,
/// and one with write-back addressing cannot be emulated by a hypervisor.
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
                let value: $width;
                // SAFETY: one load from an address that the caller answers for.
                unsafe {
                    asm!($load, value = lateout(reg) value, address = in(reg) address,
                         options(nostack, preserves_flags));
                }
                value
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
                    asm!($store, value = in(reg) value, address = in(reg) address,
                         options(nostack, preserves_flags));
                }
            }
        };
    }

    access!(
        read8,
        "ldrb {value:w}, [{address}]",
        write8,
        "strb {value:w}, [{address}]",
        u8
    );
    access!(
        read16,
        "ldrh {value:w}, [{address}]",
        write16,
        "strh {value:w}, [{address}]",
        u16
    );
    access!(
        read32,
        "ldr {value:w}, [{address}]",
        write32,
        "str {value:w}, [{address}]",
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
    aarch64_cpu::asm::barrier::dsb(aarch64_cpu::asm::barrier::SY);
    aarch64_cpu::asm::wfi();
}
