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

    /// Bytes of the smallest data cache line.
    #[must_use]
    pub fn line_size() -> usize {
        1 << line_exponent()
    }

    /// The same, as a power of two (`CTR.DminLine` is log2 of its 4-byte words).
    #[inline]
    fn line_exponent() -> u32 {
        (Ctr::read().0 >> 16 & 0xf) + 2
    }

    /// Lines of one turn of a maintenance loop. Policy: what the loop itself costs is little beside
    /// them then.
    const UNROLLED: usize = 8;

    /// Assembly for [`UNROLLED`] lines. Written out and not repeated by the assembler: the compiler
    /// counts instructions to know how far a branch must reach.
    macro_rules! unrolled {
        ($operation:expr) => {
            concat!(
                $operation, $operation, $operation, $operation, $operation, $operation, $operation,
                $operation
            )
        };
    }

    /// Defines a function that makes an operation (`MCR p15, 0, line, c7, ...`) with every line of a
    /// range, then waits for completion.
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
                let first = start.addr().get() >> exponent;
                let last = start.addr().get().saturating_add(length - 1) >> exponent;
                let lines = last - first + 1;
                let line = 1_usize << exponent;
                let mut address = first << exponent;
                for _ in 0..lines / UNROLLED {
                    // SAFETY: lines of the range, which the caller answers for.
                    unsafe {
                        asm!(
                            unrolled!(concat!(
                                "mcr p15, 0, {address}, c7, ",
                                $operation,
                                "\nadd {address}, {address}, {line}\n"
                            )),
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
                            concat!("mcr p15, 0, {address}, c7, ", $operation),
                            address = in(reg) address,
                            options(nostack, preserves_flags),
                        );
                    }
                    // Behind the last line of all the next would be none.
                    address = address.wrapping_add(line);
                }
                dsb();
            }
        };
    }

    // DCCMVAC, DCIMVAC and DCCIMVAC.
    each_line!(clean_lines, "c10, 1");
    each_line!(drop_lines, "c6, 1");
    each_line!(clean_and_drop_lines, "c14, 1");

    /// Writes dirty lines of `length` bytes at `start` back to memory.
    pub fn clean(start: NonNull<u8>, length: usize) {
        // SAFETY: `DCCMVAC` changes no memory contents that the CPU can tell apart.
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
        // SAFETY: `DCCIMVAC` loses nothing: it cleans first.
        unsafe { clean_and_drop_lines(start, length) }
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
