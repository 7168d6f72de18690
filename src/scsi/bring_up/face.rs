//! What goes into a bring-up and what comes out of it.

use core::fmt;

use super::super::capacity::{Capacity, CapacityFault};
use super::super::cdb::Command;
use super::super::details::Details;
use super::super::inquiry::Inquiry;
use super::super::sense::{Sense, SenseKey};
use super::super::transport::{Outcome, TransportError};
use super::super::unit::transport_failed;
use super::super::vpd::BlockLimits;
use crate::time::Instant;

/// What a unit is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Who it says it is.
    pub inquiry: Inquiry,
    /// Its size.
    pub capacity: Capacity,
    /// Whether it refuses writes.
    pub write_protected: bool,
    /// What else it says, if it could be asked.
    pub details: Details,
}

impl Found {
    /// Takes over what the same unit said of itself before its device was opened again, and was not asked this time: how
    /// much a command may move, and what may be discarded.
    pub(crate) fn recall(&mut self, before: &Self) {
        let (was, is) = (&before.details, &mut self.details);
        if is.limits == BlockLimits::default() {
            is.limits = was.limits;
        }
        is.provisioning = is.provisioning.or(was.provisioning);
    }
}

/// How a unit is asked for its mode parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ModeForm {
    /// In the short form: some sticks die of the long one.
    #[default]
    Six,
    /// In the long form: floppy and optical drives know it alone.
    Ten,
}

/// Why a unit is no disk that can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BringUpError {
    /// The transport failed, also when tried again.
    Transport(TransportError),
    /// It answered nothing to INQUIRY.
    NoInquiryData,
    /// It did not get ready within the budget; what it said last.
    NotReady(Sense),
    /// It failed a command that it must know; what it said. 4/44/81 and its like on a disk that
    /// was just plugged in often mean too little power.
    Failed(Sense),
    /// Its capacity makes no sense.
    Capacity(CapacityFault),
}

impl fmt::Display for BringUpError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport(error) => write!(formatter, "{}", transport_failed(*error)),
            Self::NoInquiryData => formatter.write_str("the disk does not say what it is"),
            Self::NotReady(sense) => {
                write!(formatter, "the disk did not get ready in time ({sense})")
            }
            Self::Failed(sense) => {
                write!(formatter, "the disk failed a necessary command ({sense})")?;
                match (sense.key, sense.asc) {
                    (SenseKey::HardwareError, INTERNAL_FAILURE) => formatter
                        .write_str(": often it gets too little power: see to its own supply"),
                    _ => Ok(()),
                }
            }
            Self::Capacity(CapacityFault::NoMedium) => {
                formatter.write_str("the disk has no medium")
            }
            Self::Capacity(fault) => {
                write!(formatter, "the disk's size makes no sense ({fault:?})")
            }
        }
    }
}

impl core::error::Error for BringUpError {}

/// INTERNAL TARGET FAILURE (SPC-4 annex D).
const INTERNAL_FAILURE: u8 = 0x44;

/// How freely a unit may be asked what it can be used without.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Manner {
    /// As little as every host asks: many a Bulk-Only device dies of a question.
    #[default]
    Cautious,
    /// For its units (REPORT LUNS), its write cache (mode page 08) and forced unit access too.
    Free,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Bring-up begins.
    Begin,
    /// The command ended; the data that came.
    Ended(Outcome, &'a [u8]),
    /// The time that was waited for has come.
    Time,
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Carry out this command, with its data in the transport's memory.
    Issue(Command),
    /// Come back at the time.
    Wait(Instant),
    /// The unit is a disk.
    Ready(Found),
    /// The unit is there, but empty.
    Empty(Inquiry),
    /// There is no unit, or it is no disk.
    Skip,
    /// The unit cannot be used.
    Fail(BringUpError),
}
