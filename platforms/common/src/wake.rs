//! Between an interrupt handler and the wait of the blocking face: "something may have happened".
//!
//! Who calls it: a board's interrupt entry ([`notify`]; [`add_source`] once per controller
//! whose interrupts are taken), and `Machine` when the stack waits.
//! Invariant: a notification between two waits ends the second one at once; none is lost.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

static PENDING: AtomicBool = AtomicBool::new(false);
static SOURCES: AtomicUsize = AtomicUsize::new(0);
static DOZES: AtomicBool = AtomicBool::new(false);
static WAITS: AtomicU32 = AtomicU32::new(0);

/// A controller of this image interrupts from here on: `wait` may sleep.
pub fn add_source() {
    SOURCES.fetch_add(1, Ordering::Relaxed);
}

/// Policy: how long the core sleeps between two polls, in microseconds: some frames of a bus.
#[cfg(target_os = "none")]
const DOZE: u64 = 250;

/// Where no controller interrupts, the core sleeps between polls from here on.
pub fn doze_between_polls() {
    DOZES.store(true, Ordering::Relaxed);
}

/// Something happened that the stack should look at. For interrupt handlers.
pub fn notify() {
    PENDING.store(true, Ordering::Release);
}

/// Whether something happened that was not looked at yet.
#[cfg(any(test, target_os = "none"))]
fn is_pending() -> bool {
    PENDING.load(Ordering::Acquire)
}

/// The caller looks after this at all that came until now.
#[cfg(any(test, target_os = "none"))]
fn clear() {
    PENDING.store(false, Ordering::Relaxed);
}

/// Waits so far, asleep or not. Wraps.
#[must_use]
pub fn waits() -> u32 {
    WAITS.load(Ordering::Relaxed)
}

/// Waits for a notification, at the latest until `deadline` (microseconds of the board's clock).
/// Comes back at once where no controller interrupts: then the stack polls. It may doze between.
#[cfg(target_os = "none")]
#[inline]
pub fn wait(deadline: u64) {
    // Only the main context waits: a plain load and store will do.
    WAITS.store(
        WAITS.load(Ordering::Relaxed).wrapping_add(1),
        Ordering::Relaxed,
    );
    if SOURCES.load(Ordering::Relaxed) == 0 {
        wait_without_interrupts(deadline);
    } else {
        if !is_pending() {
            crate::cpu::interrupts::sleep_unless(is_pending, deadline);
        }
        clear();
    }
}

/// The same where no controller interrupts.
#[cfg(target_os = "none")]
fn wait_without_interrupts(deadline: u64) {
    if DOZES.load(Ordering::Relaxed) {
        doze(deadline);
    } else {
        core::hint::spin_loop();
    }
}

#[cfg(target_os = "none")]
#[inline(never)]
fn doze(deadline: u64) {
    let soon = crate::cpu::timer::microseconds() + DOZE;
    crate::cpu::interrupts::sleep_unless(|| false, soon.min(deadline));
}

#[cfg(test)]
mod tests {
    use super::{clear, is_pending, notify};

    #[test]
    fn a_notification_is_pending_until_it_is_cleared() {
        assert!(!is_pending());
        notify();
        notify();
        assert!(is_pending());
        clear();
        assert!(!is_pending());
    }
}
