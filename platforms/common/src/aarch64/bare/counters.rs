//! Instructions and ticks, for measurements.
//!
//! Read first: DDI 0487 §D13 (the performance monitors). QEMU counts the event only under
//! `-icount`, and leaves the time out in which the core sleeps.

use core::arch::asm;

use aarch64_cpu::asm::barrier;
use aarch64_cpu::registers::{CNTVCT_EL0, Readable};

/// Event INST_RETIRED (DDI 0487 table D13-3).
const INSTRUCTIONS_RETIRED: u64 = 0x08;

/// Has event counter 0 count the instructions of this core.
pub fn start_counting() {
    let event = INSTRUCTIONS_RETIRED;
    // SAFETY: a counter that nothing else uses; `aarch64-cpu` has no names for its registers.
    unsafe {
        asm!(
            "msr pmevtyper0_el0, {event}",
            "msr pmcntenset_el0, {one}",
            "msr pmcr_el0, {one}",
            "isb",
            event = in(reg) event,
            one = in(reg) 1_u64,
            options(nomem, nostack, preserves_flags),
        );
    }
}

/// Instructions so far. Wraps at 32 bits.
#[must_use]
pub fn instructions() -> u32 {
    let count: u64;
    barrier::isb(barrier::SY);
    // SAFETY: reading the counter changes nothing.
    unsafe {
        asm!("mrs {0}, pmevcntr0_el0", out(reg) count, options(nomem, nostack, preserves_flags));
    }
    count as u32
}

/// Ticks of the generic timer so far.
#[must_use]
pub fn ticks() -> u64 {
    barrier::isb(barrier::SY);
    CNTVCT_EL0.get()
}
