//! What a device's policies change in its wrappers, and what is learnt of them in use.
//!
//! The transport asks on its rare paths only: a status that does not fit, a residue, a command that
//! failed. Two things are learnt, as Linux does: that residues lie, and how much sense data a device
//! has.

use super::wire::{Cbw, Csw, CswFault};
use crate::scsi::cdb::DataPhase;
use crate::scsi::inquiry::Inquiry;
use crate::scsi::sense::Sense;
use crate::storage::quirks::Quirks;
use crate::time::Duration;
use crate::usb::speed::Speed;

/// Between the wrapper and its data, for devices that want it. Linux waits 125 to 150 µs.
pub(super) const PAUSE: Duration = Duration::from_micros(150);

/// Bytes of sense data that are asked of a device that has more than 18. Policy: as Linux.
pub(super) const LONG_SENSE: u8 = 96;

/// Bytes of READ CAPACITY (10) data.
const CAPACITY_LENGTH: u32 = 8;

/// The operation codes that flush.
const FLUSHES: [u8; 2] = [0x35, 0x91];

/// A status wrapper as little-endian words.
type Words = [u32; Csw::ROOM / 4];

/// The habits of one device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    quirks: Quirks,
    speed: Speed,
}

impl Habits {
    /// None that is odd.
    pub(super) const PLAIN: Self = Self {
        quirks: Quirks::empty(),
        speed: Speed::Full,
    };

    pub(super) fn new(quirks: Quirks, speed: Speed) -> Self {
        Self { quirks, speed }
    }

    /// Policies, with what was learnt.
    pub(super) fn quirks(&self) -> Quirks {
        self.quirks
    }

    /// Bytes of a command wrapper.
    #[inline]
    pub(super) fn wrapper_length(&self) -> usize {
        Cbw::LENGTH + usize::from(self.quirks.contains(Quirks::BULK32))
    }

    /// Whether there is a pause between the wrapper and its data.
    #[inline]
    pub(super) fn pauses(&self) -> bool {
        self.quirks.contains(Quirks::GO_SLOW) && self.speed == Speed::High
    }

    /// Whether the status must not be asked for before the data have been moved.
    pub(super) fn wants_status_last(&self) -> bool {
        self.quirks.contains(Quirks::STATUS_LAST)
    }

    /// Checks a status, and once more where a policy forgives what is wrong with it.
    #[inline]
    pub(super) fn check(&self, words: Words, tag: u32, requested: u32) -> Result<Csw, CswFault> {
        match Csw::check(words, tag, requested) {
            Ok(csw) => Ok(csw),
            Err(fault) => self.forgive(fault, words, tag, requested),
        }
    }

    #[cold]
    fn forgive(
        &self,
        fault: CswFault,
        words: Words,
        tag: u32,
        requested: u32,
    ) -> Result<Csw, CswFault> {
        match fault {
            CswFault::WrongTag { found } if self.quirks.contains(Quirks::BULK_IGNORE_TAG) => {
                self.check(words, found, requested)
            }
            CswFault::ResidueTooLarge { .. } if self.ignores_residue() => {
                Csw::check(words, tag, u32::MAX)
            }
            fault => Err(fault),
        }
    }

    /// Whether residues are not believed.
    pub(super) fn ignores_residue(&self) -> bool {
        self.quirks.contains(Quirks::IGNORE_RESIDUE)
    }

    /// A command ended well, with all of its data and a residue all the same. Of two commands, whose
    /// answers have a fixed length, that proves that residues lie.
    pub(super) fn learn_residue(&mut self, operation: u8, data: DataPhase) {
        let is_standard = match (operation, data) {
            (0x12, DataPhase::In(length)) => length == Inquiry::LENGTH as u32,
            (0x25, DataPhase::In(length)) => length == CAPACITY_LENGTH,
            _ => false,
        };
        if is_standard {
            self.quirks |= Quirks::IGNORE_RESIDUE;
        }
    }

    /// Bytes of sense data to ask for.
    pub(super) fn sense_length(&self) -> u8 {
        let is_long = self.quirks.contains(Quirks::SANE_SENSE);
        if is_long && !self.quirks.contains(Quirks::BAD_SENSE) {
            LONG_SENSE
        } else {
            Sense::FIXED_LENGTH
        }
    }

    /// Sense data came: an additional length beyond 10 says that there is more than 18 bytes.
    pub(super) fn learn_sense(&mut self, bytes: &[u8]) {
        if bytes.get(7).is_some_and(|additional| *additional > 10) {
            self.quirks |= Quirks::SANE_SENSE;
        }
    }

    /// The device has shown otherwise that it has more sense data.
    pub(super) fn learn_long_sense(&mut self) {
        self.quirks |= Quirks::SANE_SENSE;
    }

    /// Sense data did not come. `true` if more than usual was asked for, which is never done again.
    pub(super) fn unlearn_sense(&mut self) -> bool {
        let was_long = self.sense_length() == LONG_SENSE;
        if was_long {
            self.quirks |= Quirks::BAD_SENSE;
        }
        was_long
    }

    /// Whether REQUEST SENSE follows a command that ended well.
    #[inline]
    pub(super) fn asks_sense_after(&self, operation: u8) -> bool {
        self.quirks.contains(Quirks::SENSE_AFTER_SYNC) && FLUSHES.contains(&operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Queueing;
    use crate::scsi::cdb::{
        Command, inquiry, read_capacity_10, synchronize_cache, test_unit_ready,
    };

    fn with(quirks: Quirks) -> Habits {
        Habits::new(quirks, Speed::High)
    }

    fn status(tag: u32, residue: u32) -> Words {
        [u32::from_le_bytes(*b"USBS"), tag, residue, 0]
    }

    #[test]
    fn a_wrong_tag_and_a_residue_beyond_the_data_are_forgiven_only_by_their_policies() {
        let tag = status(9, 0);
        assert!(with(Quirks::BULK_IGNORE_TAG).check(tag, 1, 8).is_ok());
        assert!(with(Quirks::IGNORE_RESIDUE).check(tag, 1, 8).is_err());
        let residue = status(1, 9);
        assert!(with(Quirks::IGNORE_RESIDUE).check(residue, 1, 8).is_ok());
        assert!(with(Quirks::BULK_IGNORE_TAG).check(residue, 1, 8).is_err());
        let both = with(Quirks::BULK_IGNORE_TAG | Quirks::IGNORE_RESIDUE);
        assert!(both.check(status(9, 9), 1, 8).is_ok());
        let mut foreign = status(1, 0);
        foreign[0] += 1;
        assert!(with(Quirks::all()).check(foreign, 1, 8).is_err());
    }

    #[test]
    fn a_false_residue_is_learnt_from_answers_of_fixed_length_alone() {
        for (command, learnt) in [
            (inquiry(), true),
            (read_capacity_10(), true),
            (test_unit_ready(), false),
        ] {
            let mut habits = Habits::PLAIN;
            habits.learn_residue(command.cdb.operation_code(), command.data);
            assert_eq!(habits.ignores_residue(), learnt);
        }
    }

    #[test]
    fn long_sense_data_are_learnt_and_unlearnt_for_good() {
        let mut habits = Habits::PLAIN;
        let mut bytes = [0; 18];
        bytes[7] = 10;
        habits.learn_sense(&bytes);
        assert_eq!(habits.sense_length(), 18);
        bytes[7] = 24;
        habits.learn_sense(&bytes);
        assert_eq!(habits.sense_length(), 96);
        assert!(habits.unlearn_sense());
        assert_eq!(habits.sense_length(), 18);
        habits.learn_sense(&bytes);
        assert_eq!(habits.sense_length(), 18);
        assert_eq!(
            with(Quirks::SANE_SENSE | Quirks::BAD_SENSE).sense_length(),
            18
        );
    }

    #[test]
    fn a_failure_of_the_usual_question_says_nothing_about_the_long_one() {
        let mut habits = Habits::PLAIN;
        assert!(!habits.unlearn_sense());
        habits.learn_sense(&[0, 0, 0, 0, 0, 0, 0, 24]);
        assert_eq!(habits.sense_length(), 96);
    }

    #[test]
    fn only_where_it_is_known_does_the_status_wait_for_the_data() {
        assert!(with(Quirks::STATUS_LAST).wants_status_last());
        assert!(!Habits::PLAIN.wants_status_last());
        for queueing in [
            Queueing::AfterCommand,
            Queueing::AfterData,
            Queueing::Eager,
            Queueing::StatusLast,
        ] {
            let last = queueing.with_status_last();
            assert!(matches!(last, Queueing::AfterData | Queueing::StatusLast));
            assert_eq!(last.with_status_last(), last);
        }
    }

    #[test]
    fn the_pause_is_for_high_speed_and_sense_follows_flushes() {
        assert!(with(Quirks::GO_SLOW).pauses());
        assert!(!Habits::new(Quirks::GO_SLOW, Speed::Full).pauses());
        let kindle = with(Quirks::SENSE_AFTER_SYNC);
        let asks = |habits: Habits, command: Command| {
            habits.asks_sense_after(command.cdb.operation_code())
        };
        assert!(asks(kindle, synchronize_cache(100)));
        assert!(asks(kindle, synchronize_cache(1 << 40)));
        assert!(!asks(kindle, test_unit_ready()));
        assert!(!asks(Habits::PLAIN, synchronize_cache(100)));
        assert_eq!(with(Quirks::BULK32).wrapper_length(), 32);
    }
}
