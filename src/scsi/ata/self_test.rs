//! A disk's tests of itself (ACS-3 §7.48.5, §7.48.9).

/// Which test, always in the background: the disk goes on serving reads and writes, slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SelfTestKind {
    /// A few minutes.
    Short,
    /// The whole medium: hours.
    Extended,
    /// None: the test under way is ended.
    Abort,
}

impl SelfTestKind {
    /// The subcommand. Captive tests, which hold the disk up, are not here on purpose.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Short => 0x01,
            Self::Extended => 0x02,
            Self::Abort => 0x7f,
        }
    }
}

/// How the newest test of a disk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SelfTest {
    /// It is under way, with so many percent still to do, in tens.
    Running {
        /// Percent, 0 to 90 (some disks say up to 150).
        remaining: u8,
    },
    /// None is under way.
    Ended(SelfTestOutcome),
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SelfTestOutcome {
    /// Well, or there never was one.
    Passed,
    /// The host ended it.
    Aborted,
    /// A reset ended it.
    Interrupted,
    /// An error that it could not go on from.
    Fatal,
    /// It found a fault that it does not name.
    FailedUnknown,
    /// It found an electrical fault.
    FailedElectrical,
    /// It found a fault of servo or seek.
    FailedServo,
    /// It found blocks that cannot be read.
    FailedRead,
    /// It thinks that the disk was damaged in handling.
    FailedHandling,
    /// A code that the standard reserves.
    Reserved(u8),
}

impl SelfTest {
    /// The execution status byte of SMART data.
    #[must_use]
    pub const fn from_status(byte: u8) -> Self {
        let remaining = (byte & 0x0f) * 10;
        Self::Ended(match byte >> 4 {
            0x0 => SelfTestOutcome::Passed,
            0x1 => SelfTestOutcome::Aborted,
            0x2 => SelfTestOutcome::Interrupted,
            0x3 => SelfTestOutcome::Fatal,
            0x4 => SelfTestOutcome::FailedUnknown,
            0x5 => SelfTestOutcome::FailedElectrical,
            0x6 => SelfTestOutcome::FailedServo,
            0x7 => SelfTestOutcome::FailedRead,
            0x8 => SelfTestOutcome::FailedHandling,
            0xf => return Self::Running { remaining },
            reserved => SelfTestOutcome::Reserved(reserved),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_under_way_says_how_much_is_left() {
        assert_eq!(
            SelfTest::from_status(0xf9),
            SelfTest::Running { remaining: 90 }
        );
        assert_eq!(
            SelfTest::from_status(0xff),
            SelfTest::Running { remaining: 150 }
        );
    }

    #[test]
    fn ends_are_told_apart_whatever_is_left() {
        for (byte, outcome) in [
            (0x00, SelfTestOutcome::Passed),
            (0x19, SelfTestOutcome::Aborted),
            (0x25, SelfTestOutcome::Interrupted),
            (0x73, SelfTestOutcome::FailedRead),
            (0x9a, SelfTestOutcome::Reserved(9)),
        ] {
            assert_eq!(SelfTest::from_status(byte), SelfTest::Ended(outcome));
        }
    }
}
