//! The generic timer: the clock in microseconds, and a deadline that interrupts.
//!
//! The virtual timer and counter are used: no firmware traps them, and their offset is 0 where we
//! came from EL2. Read first: DDI 0487 §D11.

use core::sync::atomic::{AtomicU64, Ordering};

use aarch64_cpu::asm::barrier;
use aarch64_cpu::registers::{
    CNTFRQ_EL0, CNTV_CTL_EL0, CNTV_TVAL_EL0, CNTVCT_EL0, Readable, Writeable,
};

use crate::gic::InterruptId;

/// The virtual timer's private interrupt (Base System Architecture §3.8.1: INTID 27).
pub const INTERRUPT: InterruptId = InterruptId::private(11);

const SECOND: u64 = 1_000_000;

/// Microseconds in a tick, in units of 2^-63; 0 until it was worked out. Asking for the time costs no
/// division so.
static TICK: AtomicU64 = AtomicU64::new(0);
const TICK_UNITS: u32 = 63;

/// Microseconds since the counter started: not since we did.
#[must_use]
#[inline]
pub fn microseconds() -> u64 {
    // The counter must not be read before what came before it (DDI 0487 §D11.2.2).
    barrier::isb(barrier::SY);
    let ticks = CNTVCT_EL0.get();
    // It fits: a tick is a microsecond at most.
    ((u128::from(ticks) * u128::from(tick())) >> TICK_UNITS) as u64
}

#[inline]
fn tick() -> u64 {
    match TICK.load(Ordering::Relaxed) {
        0 => measure_tick(),
        tick => tick,
    }
}

#[cold]
fn measure_tick() -> u64 {
    let tick = (u128::from(SECOND) << TICK_UNITS) / u128::from(frequency());
    TICK.store(tick as u64, Ordering::Relaxed);
    tick as u64
}

/// The longest time that the timer can be set for, in ticks.
const MOST_TICKS: u64 = i32::MAX as u64;

/// When the timer will interrupt, in microseconds; `u64::MAX` if it is off.
static ARMED: AtomicU64 = AtomicU64::new(u64::MAX);

/// Has the timer interrupt at `deadline` at the latest. One that is to interrupt earlier is left as it is:
/// nearly every wait has a deadline of seconds, and nearly none lasts so long.
#[inline]
pub fn arm(deadline: u64) {
    if ARMED.load(Ordering::Relaxed) > deadline {
        set(deadline);
    }
}

#[cold]
#[inline(never)]
fn set(deadline: u64) {
    let left = deadline.saturating_sub(microseconds());
    // Rounded up, so that the time has passed when the interrupt comes.
    let ticks = left.saturating_mul(frequency()) / SECOND + 1;
    CNTV_TVAL_EL0.set(ticks.min(MOST_TICKS));
    CNTV_CTL_EL0.write(CNTV_CTL_EL0::ENABLE::SET);
    barrier::isb(barrier::SY);
    ARMED.store(deadline, Ordering::Relaxed);
}

/// Takes the timer's interrupt back.
pub fn disarm() {
    CNTV_CTL_EL0.write(CNTV_CTL_EL0::ENABLE::CLEAR);
    barrier::isb(barrier::SY);
    ARMED.store(u64::MAX, Ordering::Relaxed);
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
