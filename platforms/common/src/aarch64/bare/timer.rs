//! The generic timer: the clock in microseconds, and a deadline that interrupts.
//!
//! The virtual timer and counter are used: no firmware traps them, and their offset is 0 where we
//! came from EL2. Read first: DDI 0487 §D11.

use aarch64_cpu::asm::barrier;
use aarch64_cpu::registers::{
    CNTFRQ_EL0, CNTV_CTL_EL0, CNTV_CVAL_EL0, CNTVCT_EL0, Readable, Writeable,
};

use crate::gic::InterruptId;

/// The virtual timer's private interrupt (Base System Architecture §3.8.1: INTID 27).
pub const INTERRUPT: InterruptId = InterruptId::private(11);

const SECOND: u64 = 1_000_000;

/// Microseconds since the counter started: not since we did.
#[must_use]
pub fn microseconds() -> u64 {
    // The counter must not be read before what came before it (DDI 0487 §D11.2.2).
    barrier::isb(barrier::SY);
    let (ticks, frequency) = (CNTVCT_EL0.get(), frequency());
    ticks / frequency * SECOND + ticks % frequency * SECOND / frequency
}

/// Has the timer interrupt at `deadline` (of [`microseconds`]), at once if that has passed.
pub fn arm(deadline: u64) {
    let frequency = frequency();
    // Rounded up, so that the deadline has passed when the interrupt comes.
    let part = (deadline % SECOND * frequency).div_ceil(SECOND);
    CNTV_CVAL_EL0.set(
        (deadline / SECOND)
            .saturating_mul(frequency)
            .saturating_add(part),
    );
    CNTV_CTL_EL0.write(CNTV_CTL_EL0::ENABLE::SET);
    barrier::isb(barrier::SY);
}

/// Takes the timer's interrupt back.
pub fn disarm() {
    CNTV_CTL_EL0.write(CNTV_CTL_EL0::ENABLE::CLEAR);
    barrier::isb(barrier::SY);
}

/// Waits for `duration` microseconds without sleeping.
pub fn spin(duration: u64) {
    let deadline = microseconds().saturating_add(duration);
    while microseconds() < deadline {
        core::hint::spin_loop();
    }
}

/// Ticks per second, as firmware has written it; never 0.
fn frequency() -> u64 {
    // Policy: firmware that leaves it 0 breaks the architecture; 1 MHz makes wrong times, where a
    // division by zero would make none.
    CNTFRQ_EL0.get().max(SECOND)
}
