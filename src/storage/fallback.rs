//! When a device that speaks UAS is used over Bulk-Only instead.
//!
//! Asked by the stack, which keeps one [`Fallback`] for each device that is plugged in, and one for each
//! controller, which outlives its devices: `Policy::uas_fallback` says which of the two resets are
//! noted in. A bridge that hangs under UAS works over Bulk-Only more often than not, and a slow disk is
//! better than none. A value without I/O.

use core::fmt;

use crate::host::HostError;
use crate::policy::Policy;
use crate::time::{Duration, Instant};
use crate::usb::UsbError;

/// Why UAS was left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FellBack {
    /// The device was reset so often within such a time, or its ladder had no other rung left.
    Resets(u8, Duration),
    /// Commands that did not end were aborted, or their unit was reset, so often within such a time.
    Aborts(u8, Duration),
    /// UAS could not be opened: the device or the controller refused, or something was short.
    NotOpened(UsbError),
}

/// What is remembered of a device, or of all devices on a controller. The caller of the stack provides
/// a slice of them, one for each controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fallback {
    /// The first of the resets that count.
    since: Instant,
    resets: u8,
    /// The first of the aborts that count.
    aborting_since: Instant,
    aborts: u8,
    fell: Option<FellBack>,
}

impl Fallback {
    /// Nothing is known: UAS may be used.
    pub const NONE: Self = Self {
        since: Instant::from_micros(0),
        resets: 0,
        aborting_since: Instant::from_micros(0),
        aborts: 0,
        fell: None,
    };

    /// Why UAS is not to be used any more, if so.
    #[must_use]
    pub fn reason(&self) -> Option<FellBack> {
        self.fell
    }

    /// The device is reset, and spoke UAS: the next that is too often within the window makes it fall
    /// back.
    pub fn count_reset(&mut self, policy: &Policy, now: Instant) {
        if self.resets == 0 || now - self.since >= policy.uas_window {
            self.since = now;
            self.resets = 0;
        }
        self.resets = self.resets.saturating_add(1);
        if self.resets >= policy.uas_resets {
            self.fall(FellBack::Resets(self.resets, policy.uas_window));
        }
    }

    /// The device was brought back in step by a function of UAS's own: the next that is too often within its
    /// window makes it fall back. `true` if this one was.
    pub fn count_abort(&mut self, policy: &Policy, now: Instant) -> bool {
        if self.aborts == 0 || now - self.aborting_since >= policy.uas_abort_window {
            self.aborting_since = now;
            self.aborts = 0;
        }
        self.aborts = self.aborts.saturating_add(1);
        let is_habit = policy.uas_aborts != 0 && self.aborts >= policy.uas_aborts;
        if is_habit {
            self.fall(FellBack::Aborts(self.aborts, policy.uas_abort_window));
        }
        is_habit
    }

    /// Recovery has no rung left but a last reset, behind which UAS is left.
    pub fn end_of_ladder(&mut self, policy: &Policy, now: Instant) {
        self.count_reset(policy, now);
        self.fall(FellBack::Resets(self.resets, policy.uas_window));
    }

    /// UAS could not be opened.
    pub fn not_opened(&mut self, error: UsbError) {
        self.fall(FellBack::NotOpened(error));
    }

    fn fall(&mut self, reason: FellBack) {
        self.fell.get_or_insert(reason);
    }
}

impl fmt::Display for FellBack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resets(resets, within) => write_count(formatter, *resets, "reset", *within),
            Self::Aborts(aborts, within) => write_count(formatter, *aborts, "abort", *within),
            Self::NotOpened(error) => write!(formatter, "uas not opened: {}", Unopened(*error)),
        }
    }
}

/// Why a device was not opened, in words that say what to do where something can be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unopened(pub UsbError);

impl fmt::Display for Unopened {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            UsbError::Controller(HostError::Unsupported) => formatter
                .write_str("it needs streams, and the device or the controller has too few"),
            error => error.fmt(formatter),
        }
    }
}

/// How often something has happened, within which time.
fn write_count(
    formatter: &mut fmt::Formatter<'_>,
    count: u8,
    what: &str,
    within: Duration,
) -> fmt::Result {
    let plural = if count == 1 { "" } else { "s" };
    write!(formatter, "fell back: {count} {what}{plural}")?;
    match within {
        Duration::MAX => Ok(()),
        within => write!(formatter, " in {} s", within.as_millis() / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy::DEFAULT;

    fn at(seconds: u64) -> Instant {
        Instant::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn two_resets_within_a_minute_are_too_many() {
        let mut fallback = Fallback::NONE;
        fallback.count_reset(&POLICY, at(100));
        assert_eq!(fallback.reason(), None);
        fallback.count_reset(&POLICY, at(159));
        let reason = fallback.reason().unwrap();
        assert_eq!(reason.to_string(), "fell back: 2 resets in 60 s");
    }

    #[test]
    fn resets_far_apart_do_not_add_up() {
        let mut fallback = Fallback::NONE;
        for minute in 0..10 {
            fallback.count_reset(&POLICY, at(60 * minute));
        }
        assert_eq!(fallback.reason(), None);
    }

    #[test]
    fn five_aborts_within_ten_minutes_are_too_many_and_far_apart_they_are_not() {
        let mut fallback = Fallback::NONE;
        for count in 1..=5 {
            let is_habit = fallback.count_abort(&POLICY, at(100 * count));
            assert_eq!(is_habit, count == 5);
        }
        let reason = fallback.reason().unwrap();
        assert_eq!(reason.to_string(), "fell back: 5 aborts in 600 s");

        let mut fallback = Fallback::NONE;
        for count in 0..20 {
            assert!(!fallback.count_abort(&POLICY, at(200 * count)));
        }
        let never = Policy {
            uas_aborts: 0,
            ..POLICY
        };
        for count in 0..300 {
            assert!(!fallback.count_abort(&never, at(count)));
        }
        assert_eq!(fallback.reason(), None);
    }

    #[test]
    fn where_the_window_has_no_end_all_resets_count() {
        let policy = Policy {
            uas_window: Duration::MAX,
            ..POLICY
        };
        let mut fallback = Fallback::NONE;
        for hour in [1, 100] {
            fallback.count_reset(&policy, at(3600 * hour));
        }
        let reason = fallback.reason().unwrap();
        assert_eq!(reason.to_string(), "fell back: 2 resets");
    }

    #[test]
    fn the_first_reason_stays() {
        let mut fallback = Fallback::NONE;
        fallback.not_opened(UsbError::Stall);
        fallback.end_of_ladder(&POLICY, at(1));
        let reason = fallback.reason().unwrap();
        assert_eq!(reason.to_string(), "uas not opened: the device refuses it");
    }

    #[test]
    fn the_usual_reasons_say_what_to_do() {
        use crate::usb::Table;
        let told = |error, words: &str| {
            let reason = FellBack::NotOpened(error).to_string();
            assert!(reason.contains(words), "{reason}");
        };
        told(
            UsbError::Controller(HostError::Unsupported),
            "needs streams",
        );
        told(UsbError::Controller(HostError::PoolExhausted), "larger");
        told(
            UsbError::TableFull(Table::Commands),
            "table of Commands is full",
        );
        told(UsbError::Timeout, "plug it in again");
    }
}
