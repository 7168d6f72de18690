//! What to do about a failed command.
//!
//! The one place where key, code and qualifier are weighed. A row that is missing here is a device
//! that is treated wrongly: add it to [`Sense::verdict`] and to the table of the tests.

use super::{Sense, SenseKey, Subject};

/// What now, after a command that ended with CHECK CONDITION.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The command was done: take its data.
    Success,
    /// It was not done, through no fault of the disk: issue it again.
    Retry,
    /// The device failed it and did not say why: issue it again once, then count it as
    /// [`Verdict::HardwareError`].
    Unexplained,
    /// The unit will be ready: ask again every 100 to 500 ms within the readiness budget.
    BecomingReady,
    /// The unit waits to be started: send START STOP UNIT, then ask for readiness.
    NeedsStart,
    /// No medium: the unit is there, but empty. Ask two times more, then stop.
    NoMedium,
    /// The unit is not ready and does not say that it will be: ask within the readiness budget,
    /// then report.
    NotReady,
    /// The device does not know the command or something in it: the feature is absent, the device
    /// is well.
    Unsupported,
    /// No such logical unit: skip it.
    NoSuchUnit,
    /// A block number beyond the end: the capacity was a lie, or the first read after insertion
    /// fails as some devices' does.
    OutOfRange,
    /// There may be another medium: what was known of the old one does not hold. Read the capacity
    /// again.
    MediaChanged,
    /// The capacity has changed, the medium has not: read it again, then issue the command again.
    CapacityChanged,
    /// The device was reset: what its cache held may be lost. Issue the command again under the
    /// rules for writes.
    ResetHappened,
    /// An earlier command, that had ended well, failed after all: data may be lost. Then issue
    /// this command again.
    EarlierCommandFailed,
    /// Writing is not allowed: the disk is read-only.
    WriteProtected,
    /// The medium is bad at that place: a few retries, then report the block.
    MediumError,
    /// The device is bad: a few retries, since bridges say this for anything, then report.
    HardwareError,
    /// None of these, and issuing the command again will not help: report.
    Failed,
}

impl Sense {
    /// What now.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        match self.subject {
            Subject::ThisCommand | Subject::Unheard => self.verdict_on_this_command(),
            Subject::EarlierCommand => self.verdict_on_earlier_command(),
        }
    }

    /// By SPC-4's table of additional sense codes, as far as disks use it.
    const fn verdict_on_this_command(&self) -> Verdict {
        match (self.key, self.asc, self.ascq) {
            (SenseKey::RecoveredError | SenseKey::Completed, _, _) => Verdict::Success,
            (SenseKey::NotReady | SenseKey::UnitAttention, 0x3a, _) => Verdict::NoMedium,
            (SenseKey::NotReady, 0x04, qualifier) => not_ready(qualifier),
            (SenseKey::NotReady, _, _) => Verdict::NotReady,
            (SenseKey::UnitAttention, 0x28, _) => Verdict::MediaChanged,
            (SenseKey::UnitAttention, 0x29, _) => Verdict::ResetHappened,
            (SenseKey::UnitAttention, 0x2a, 0x09) => Verdict::CapacityChanged,
            (SenseKey::UnitAttention | SenseKey::AbortedCommand, _, _) => Verdict::Retry,
            (SenseKey::IllegalRequest, 0x21, _) => Verdict::OutOfRange,
            (SenseKey::IllegalRequest, 0x25, _) => Verdict::NoSuchUnit,
            // 27/07 is a thin disk that has run out of space: not read-only, but full.
            (SenseKey::DataProtect | SenseKey::IllegalRequest, 0x27, 0x07) => Verdict::Failed,
            (SenseKey::DataProtect | SenseKey::IllegalRequest, 0x27, _) => Verdict::WriteProtected,
            (SenseKey::IllegalRequest, _, _) => Verdict::Unsupported,
            (SenseKey::MediumError, _, _) => Verdict::MediumError,
            (SenseKey::HardwareError, _, _) => Verdict::HardwareError,
            (SenseKey::NoSense, 0, 0) => Verdict::Unexplained,
            (SenseKey::NoSense, _, _) => Verdict::HardwareError,
            _ => Verdict::Failed,
        }
    }

    /// The command that just ended was not done (SPC-4 §4.5, deferred errors).
    const fn verdict_on_earlier_command(&self) -> Verdict {
        match self.key {
            SenseKey::NoSense | SenseKey::RecoveredError | SenseKey::Completed => Verdict::Retry,
            _ => Verdict::EarlierCommandFailed,
        }
    }
}

/// LOGICAL UNIT NOT READY, by its qualifier.
const fn not_ready(qualifier: u8) -> Verdict {
    match qualifier {
        0x02 => Verdict::NeedsStart,
        // Cause not said; becoming ready; operation, self-test, transition, allocation, start or
        // configuration under way.
        0x00 | 0x01 | 0x07 | 0x09 | 0x0a | 0x14 | 0x1a | 0x1d => Verdict::BecomingReady,
        _ => Verdict::NotReady,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(response: u8, key: u8, asc: u8, ascq: u8) -> Verdict {
        let bytes = [
            response, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, asc, ascq, 0, 0, 0, 0,
        ];
        Sense::parse(&bytes).verdict()
    }

    #[test]
    fn every_row_of_the_table_has_its_verdict() {
        let table = [
            (0x0, 0x00, 0x00, Verdict::Unexplained),
            (0x0, 0x5d, 0x00, Verdict::HardwareError),
            (0x1, 0x17, 0x01, Verdict::Success),
            (0x2, 0x04, 0x00, Verdict::BecomingReady),
            (0x2, 0x04, 0x01, Verdict::BecomingReady),
            (0x2, 0x04, 0x02, Verdict::NeedsStart),
            (0x2, 0x04, 0x03, Verdict::NotReady),
            (0x2, 0x04, 0x07, Verdict::BecomingReady),
            (0x2, 0x30, 0x00, Verdict::NotReady),
            (0x2, 0x3a, 0x00, Verdict::NoMedium),
            (0x2, 0x3a, 0x02, Verdict::NoMedium),
            (0x3, 0x0c, 0x00, Verdict::MediumError),
            (0x3, 0x11, 0x00, Verdict::MediumError),
            (0x3, 0x14, 0x00, Verdict::MediumError),
            (0x4, 0x44, 0x81, Verdict::HardwareError),
            (0x5, 0x20, 0x00, Verdict::Unsupported),
            (0x5, 0x21, 0x00, Verdict::OutOfRange),
            (0x5, 0x24, 0x00, Verdict::Unsupported),
            (0x5, 0x25, 0x00, Verdict::NoSuchUnit),
            (0x6, 0x28, 0x00, Verdict::MediaChanged),
            (0x6, 0x29, 0x00, Verdict::ResetHappened),
            (0x6, 0x29, 0x04, Verdict::ResetHappened),
            (0x6, 0x2a, 0x01, Verdict::Retry),
            (0x6, 0x2a, 0x09, Verdict::CapacityChanged),
            (0x6, 0x3a, 0x00, Verdict::NoMedium),
            (0x6, 0x3f, 0x0e, Verdict::Retry),
            (0x7, 0x27, 0x00, Verdict::WriteProtected),
            (0x7, 0x27, 0x07, Verdict::Failed),
            (0x7, 0x74, 0x71, Verdict::Failed),
            (0x8, 0x00, 0x00, Verdict::Failed),
            (0xb, 0x00, 0x00, Verdict::Retry),
            (0xe, 0x1d, 0x00, Verdict::Failed),
            (0xf, 0x00, 0x00, Verdict::Success),
        ];
        for (key, asc, ascq, verdict) in table {
            let found = fixed(0x70, key, asc, ascq);
            assert_eq!(found, verdict, "{key:x}/{asc:02x}/{ascq:02x}");
        }
    }

    #[test]
    fn a_deferred_error_is_never_taken_for_one_of_this_command() {
        assert_eq!(fixed(0x71, 0x3, 0x0c, 0x00), Verdict::EarlierCommandFailed);
        assert_eq!(fixed(0x71, 0x4, 0x00, 0x00), Verdict::EarlierCommandFailed);
        assert_eq!(fixed(0x71, 0x1, 0x0c, 0x00), Verdict::Retry);
    }
}
