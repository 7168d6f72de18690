//! Interrupts of this core: masked, unmasked, waited for.

use aarch32_cpu::asm::{dsb, isb, wfi};
use aarch32_cpu::interrupt;

use super::timer;

/// Lets interrupts in.
pub fn unmask() {
    isb();
    // SAFETY: the image has one critical section, in `sleep_unless`, and it ends before this.
    unsafe { interrupt::enable() };
}

/// Keeps interrupts out.
pub fn mask() {
    interrupt::disable();
    isb();
}

/// Sleeps until an interrupt has been taken or `deadline` (of [`timer::microseconds`]) has passed;
/// not at all where `ready` says so. Called with interrupts unmasked.
///
/// No interrupt can slip in between the question and the sleep: they are masked there, and a
/// pending masked interrupt ends WFI (DDI 0406C §B1.8.14). So does the timer's, at once, where the
/// deadline has passed already.
pub fn sleep_unless(ready: impl FnOnce() -> bool, deadline: u64) {
    mask();
    if !ready() {
        timer::arm(deadline);
        dsb();
        wfi();
    }
    unmask();
    // The pending interrupt is taken here.
    isb();
}
