//! The generic timer: the clock in microseconds, and a deadline that interrupts.
//!
//! The physical timer and counter are used: the offset of the virtual ones is unknown where a boot
//! loader starts us in the secure world (DDI 0406C §B8.1.4). Read first: DDI 0406C §B8.1.

use core::sync::atomic::{AtomicU64, Ordering};

use aarch32_cpu::asm::isb;
use aarch32_cpu::register::{CntPct, Cntfrq, CntpCtl, CntpCval};

use crate::gic::InterruptId;

/// The physical timer's private interrupts (GIC of Cortex-A7): in the secure and in the non-secure
/// world. Which of the two comes depends on where the boot loader has left us.
pub const INTERRUPTS: [InterruptId; 2] = [InterruptId::private(13), InterruptId::private(14)];

const SECOND: u64 = 1_000_000;

/// Ticks of a microsecond where they come from a crystal of 24 MHz, as on every board here so far:
/// a constant, because these cores have no instruction that divides 64 bits.
const CRYSTAL: u32 = 24;
const CRYSTAL_FREQUENCY: u32 = CRYSTAL * SECOND as u32;

/// Microseconds since the counter started: not since we did.
#[must_use]
pub fn microseconds() -> u64 {
    // The counter must not be read before what came before it (DDI 0406C §B8.1.2).
    isb();
    let ticks = CntPct::read().0;
    match Cntfrq::read().0 {
        CRYSTAL_FREQUENCY => ticks / u64::from(CRYSTAL),
        _ => without_crystal(ticks),
    }
}

/// The same where the ticks come from something else.
#[cold]
#[inline(never)]
fn without_crystal(ticks: u64) -> u64 {
    let frequency = frequency();
    ticks / frequency * SECOND + ticks % frequency * SECOND / frequency
}

/// When the timer will interrupt, in microseconds; `u64::MAX` if it is off.
static ARMED: AtomicU64 = AtomicU64::new(u64::MAX);

/// Has the timer interrupt at `deadline` (of [`microseconds`]) at the latest, at once if that has passed.
/// One that is to interrupt earlier is left as it is: nearly every wait has a deadline of seconds, and
/// nearly none lasts so long.
pub fn arm(deadline: u64) {
    if ARMED.load(Ordering::Relaxed) > deadline {
        set(deadline);
    }
}

#[cold]
#[inline(never)]
fn set(deadline: u64) {
    let ticks = match frequency() {
        frequency if frequency == u64::from(CRYSTAL_FREQUENCY) => {
            deadline.saturating_mul(CRYSTAL.into())
        }
        frequency => {
            // Rounded up, so that the deadline has passed when the interrupt comes.
            let part = (deadline % SECOND * frequency).div_ceil(SECOND);
            let whole = (deadline / SECOND).saturating_mul(frequency);
            whole.saturating_add(part)
        }
    };
    CntpCval::write(CntpCval(ticks));
    CntpCtl::write(CntpCtl::new_with_raw_value(0).with_enable(true));
    isb();
    ARMED.store(deadline, Ordering::Relaxed);
}

/// Takes the timer's interrupt back.
pub fn disarm() {
    CntpCtl::write(CntpCtl::new_with_raw_value(0));
    isb();
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
    u64::from(Cntfrq::read().0).max(SECOND)
}
