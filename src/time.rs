//! Time, in microseconds. The stack owns no clock: a [`Platform`](crate::platform::Platform) tells
//! the time, and it is passed in. On hardware it is a counter, in the models a virtual clock.

use core::ops::{Add, Sub};

/// A point in time: microseconds since a moment that the platform chooses, never going back.
// On 32-bit processors it asks for no more than a word's alignment: else whatever has one in some of its
// states gets a state of 64 bits, which takes two comparisons each time.
#[cfg_attr(target_pointer_width = "32", repr(Rust, packed(4)))]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Instant(u64);

/// A length of time in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Duration(u64);

impl Instant {
    /// Later than any time that a clock shows.
    pub const NEVER: Self = Self(u64::MAX);

    /// `microseconds` after the platform's zero.
    #[must_use]
    pub const fn from_micros(microseconds: u64) -> Self {
        Self(microseconds)
    }

    /// Microseconds since the platform's zero.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Time since `earlier`; zero if `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// Longer than anything lasts.
    pub const MAX: Self = Self(u64::MAX);

    /// Half of it.
    #[must_use]
    pub const fn half(self) -> Self {
        Self(self.0 / 2)
    }

    /// `microseconds` µs.
    #[must_use]
    pub const fn from_micros(microseconds: u64) -> Self {
        Self(microseconds)
    }

    /// `milliseconds` ms.
    #[must_use]
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds.saturating_mul(1_000))
    }

    /// `seconds` s.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// The length in microseconds.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The length in whole milliseconds, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates at [`Instant::NEVER`].
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.0))
    }
}

impl Add for Duration {
    type Output = Self;

    /// Saturates.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// Zero if `other` is later.
    fn sub(self, other: Self) -> Duration {
        self.since(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_stays_never() {
        assert_eq!(Instant::NEVER + Duration::from_secs(1), Instant::NEVER);
    }

    #[test]
    fn time_does_not_run_backwards() {
        let early = Instant::from_micros(5);
        assert_eq!(early - Instant::from_micros(9), Duration::ZERO);
        assert_eq!((early + Duration::from_millis(2)).as_micros(), 2_005);
    }
}
