//! Interrupts of this core: masked, unmasked, waited for.

use aarch64_cpu::asm::{self, barrier};
use aarch64_cpu::registers::{DAIF, ReadWriteable};

use super::timer;

/// Lets interrupts in.
pub fn unmask() {
    DAIF.modify(DAIF::I::Unmasked);
}

/// Keeps interrupts out, of the very next instruction already: what PSTATE says is in order with the
/// instructions, without a barrier.
pub fn mask() {
    DAIF.modify(DAIF::I::Masked);
}

/// Sleeps until an interrupt has been taken or `deadline` (of [`timer::microseconds`]) has passed;
/// not at all where `ready` says so. Called with interrupts unmasked.
///
/// No interrupt can slip in between the question and the sleep: they are masked there, and a
/// pending masked interrupt ends WFI (DDI 0487 §D1.6.2). So does the timer's, at once, where the
/// deadline has passed already.
#[inline(never)]
pub fn sleep_unless(ready: impl FnOnce() -> bool, deadline: u64) {
    mask();
    if !ready() {
        timer::arm(deadline);
        barrier::dsb(barrier::SY);
        asm::wfi();
    }
    unmask();
    // The pending interrupt is taken here.
    barrier::isb(barrier::SY);
}
