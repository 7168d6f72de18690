//! The information units of UAS (UAS §6.2): what goes out as bytes, and what comes in as checked values.
//!
//! The transport sends a [`CommandUnit`] for each command and a [`TaskUnit`] to end one early, and
//! reads the status pipe with [`StatusUnit::parse`]. A unit that came is believed only as far as its
//! bytes reach: a wrong identifier, a tag of zero and a unit that is cut off are a [`UnitFault`].
//! Whether the tag is one in flight is the machine's to know. No state is kept here.

use core::num::NonZeroU16;

use crate::bytes::{u8_at, u16_be_at};
use crate::scsi::cdb::Cdb;
use crate::scsi::sense::Sense;

/// The name of a command or a task management function in flight. At SuperSpeed it is the stream
/// too, on which its status and data travel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Tag(NonZeroU16);

impl Tag {
    /// `None` for 0, which names nothing.
    #[must_use]
    pub const fn new(number: u16) -> Option<Self> {
        match NonZeroU16::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// From 1.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0.get()
    }
}

/// How a device may order a command among those that it has (SAM-5 §8.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[doc(alias = "TASK ATTRIBUTE")]
pub enum Attribute {
    /// As it likes.
    #[default]
    Simple,
    /// Before all others.
    HeadOfQueue,
    /// After all that came before it, and before all that come after.
    Ordered,
    /// To end an auto contingent allegiance.
    Aca,
}

impl Attribute {
    const fn code(self) -> u8 {
        match self {
            Self::Simple => 0,
            Self::HeadOfQueue => 1,
            Self::Ordered => 2,
            Self::Aca => 4,
        }
    }
}

/// COMMAND: what opens a command (UAS §6.2.2). Commands of at most 16 bytes: there are no others here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[doc(alias = "COMMAND IU")]
pub struct CommandUnit {
    /// Its name.
    pub tag: Tag,
    /// Which unit it is for, by the peripheral addressing of SAM-5 §4.7.
    pub lun: u8,
    /// Its place among others.
    pub attribute: Attribute,
    /// Its priority among those of the same attribute, 1 (highest) to 15; 0: as the device likes. Only the
    /// four bits that it has go out.
    #[doc(alias = "COMMAND PRIORITY")]
    pub priority: u8,
    /// The command itself.
    pub cdb: Cdb,
}

impl CommandUnit {
    /// Bytes of the unit.
    pub const LENGTH: usize = 32;

    const IDENTIFIER: u8 = 0x01;

    /// The unit as it goes over the wire, in little-endian words: what its sender writes.
    #[inline]
    #[must_use]
    pub const fn to_words(&self) -> [u32; Self::LENGTH / 4] {
        let tag = self.tag.number().swap_bytes() as u32;
        let block = self.cdb.to_number();
        [
            Self::IDENTIFIER as u32 | tag << 16,
            (self.attribute.code() | (self.priority & 0x0f) << 3) as u32,
            (self.lun as u32) << 8,
            0,
            block as u32,
            (block >> 32) as u32,
            (block >> 64) as u32,
            (block >> 96) as u32,
        ]
    }

    /// The same in bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let words = self.to_words().map(u32::to_le_bytes);
        let mut bytes = [0; Self::LENGTH];
        for (byte, from) in bytes.iter_mut().zip(words.as_flattened()) {
            *byte = *from;
        }
        bytes
    }
}

/// What a device is told to do about commands that it has (UAS §6.2.3, SAM-5 §7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[doc(alias = "TASK MANAGEMENT FUNCTION")]
pub enum TaskFunction {
    /// Give one command up.
    AbortTask(Tag),
    /// Give all commands of a unit up, and set it back.
    LogicalUnitReset,
}

impl TaskFunction {
    const fn code(self) -> u8 {
        match self {
            Self::AbortTask(_) => 0x01,
            Self::LogicalUnitReset => 0x08,
        }
    }

    const fn target(self) -> u16 {
        match self {
            Self::AbortTask(tag) => tag.number(),
            Self::LogicalUnitReset => 0,
        }
    }
}

/// TASK MANAGEMENT: ends commands early (UAS §6.2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[doc(alias = "TASK MANAGEMENT IU")]
pub struct TaskUnit {
    /// Its own name, not that of a command in flight.
    pub tag: Tag,
    /// What is to be done.
    pub function: TaskFunction,
    /// Which unit it is for.
    pub lun: u8,
}

impl TaskUnit {
    /// Bytes of the unit.
    pub const LENGTH: usize = 16;

    const IDENTIFIER: u8 = 0x05;

    /// The unit as it goes over the wire.
    #[must_use]
    #[rustfmt::skip]
    pub const fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let [t0, t1] = self.tag.number().to_be_bytes();
        let [m0, m1] = self.function.target().to_be_bytes();
        [
            Self::IDENTIFIER, 0, t0, t1,
            self.function.code(), 0, m0, m1,
            0, self.lun, 0, 0, 0, 0, 0, 0,
        ]
    }
}

/// How a command ended (SAM-5 §5.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[doc(alias = "STATUS")]
pub enum ScsiStatus {
    /// 00: well.
    Good,
    /// 02: badly; the sense data say why.
    CheckCondition,
    /// 08: the unit cannot take it now.
    Busy,
    /// 18: somebody else has the unit for himself.
    ReservationConflict,
    /// 28: the device has as many commands as it can hold.
    TaskSetFull,
    /// 40: given up by another initiator's doing.
    TaskAborted,
    /// Anything else, by its code.
    Other(u8),
}

impl ScsiStatus {
    const GOOD: u8 = 0x00;

    const fn from_code(code: u8) -> Self {
        match code {
            Self::GOOD => Self::Good,
            0x02 => Self::CheckCondition,
            0x08 => Self::Busy,
            0x18 => Self::ReservationConflict,
            0x28 => Self::TaskSetFull,
            0x40 => Self::TaskAborted,
            other => Self::Other(other),
        }
    }
}

/// What a RESPONSE says (UAS §6.2.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[doc(alias = "RESPONSE CODE")]
pub enum ResponseCode {
    /// 00: the task management function was carried out.
    Complete,
    /// 02: the unit that was sent makes no sense.
    InvalidUnit,
    /// 04: the device does not know the function.
    NotSupported,
    /// 05: the function was not carried out.
    Failed,
    /// 08: the task management function was carried out, and there was something to do.
    Succeeded,
    /// 09: there is no such logical unit.
    IncorrectLun,
    /// 0A: the tag was in use. The device has given up all commands with it.
    OverlappedTag,
    /// Anything else, by its code.
    Other(u8),
}

impl ResponseCode {
    const fn from_code(code: u8) -> Self {
        match code {
            0x00 => Self::Complete,
            0x02 => Self::InvalidUnit,
            0x04 => Self::NotSupported,
            0x05 => Self::Failed,
            0x08 => Self::Succeeded,
            0x09 => Self::IncorrectLun,
            0x0a => Self::OverlappedTag,
            other => Self::Other(other),
        }
    }

    /// Whether a task management function was carried out.
    #[must_use]
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Complete | Self::Succeeded)
    }
}

/// Why what came on the status pipe cannot be believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitFault {
    /// Fewer bytes than the unit has.
    TooShort {
        /// Bytes that came.
        found: u16,
    },
    /// No unit of the status pipe begins so.
    WrongIdentifier {
        /// The first byte.
        found: u8,
    },
    /// A status wrapper of Bulk-Only Transport: the bridge is not in the setting that it was told
    /// to take (0984:0301 does so). Use it over Bulk-Only.
    BulkOnlyStatus,
    /// A tag of 0.
    NoTag,
}

/// What a device says on the status pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatusUnit {
    /// SENSE: a command has ended (UAS §6.2.5).
    Sense {
        /// Which.
        tag: Tag,
        /// How.
        status: ScsiStatus,
        /// What the device says about it: [`Sense::NONE`] with [`ScsiStatus::Good`].
        sense: Sense,
    },
    /// RESPONSE: a task management function has ended, or a unit was refused (UAS §6.2.6).
    Response {
        /// Of the unit that was sent.
        tag: Tag,
        /// How.
        code: ResponseCode,
    },
    /// READ READY: the data of this command come next on the data-in pipe (UAS §6.2.7).
    ReadReady(Tag),
    /// WRITE READY: the device takes the data of this command next (UAS §6.2.8).
    WriteReady(Tag),
}

impl StatusUnit {
    /// Bytes of the longest unit: SENSE, with as many sense data as SPC-4 §4.5.1 allows.
    pub const LONGEST: usize = Self::SENSE_HEAD + 252;

    /// Bytes of SENSE without sense data.
    pub const SENSE_HEAD: usize = 16;

    const SENSE: u8 = 0x03;
    const READ_READY: u8 = 0x06;
    const WRITE_READY: u8 = 0x07;
    const RESPONSE_LENGTH: usize = 8;
    const READY_LENGTH: usize = 4;

    /// `USBS`, the signature of a Bulk-Only status wrapper.
    const BULK_ONLY: &'static [u8] = b"USBS";

    /// What nearly everything that comes is: SENSE with GOOD, READ READY or WRITE READY. By the first eight
    /// bytes of memory as little-endian words, into which `length` bytes have come. `None` for all else,
    /// which [`Self::parse`] reads.
    #[inline]
    #[must_use]
    pub fn usual([first, second]: [u32; 2], length: usize) -> Option<Self> {
        let tag = Tag::new(((first >> 16) as u16).swap_bytes())?;
        match first as u8 {
            Self::READ_READY if length >= Self::READY_LENGTH => Some(Self::ReadReady(tag)),
            Self::WRITE_READY if length >= Self::READY_LENGTH => Some(Self::WriteReady(tag)),
            Self::SENSE if length >= Self::SENSE_HEAD => {
                let is_good = (second >> 16) as u8 == ScsiStatus::GOOD;
                is_good.then_some(Self::Sense {
                    tag,
                    status: ScsiStatus::Good,
                    sense: Sense::NONE,
                })
            }
            _ => None,
        }
    }

    /// Whether the first eight of at least [`Self::SENSE_HEAD`] bytes, as little-endian words, are a SENSE
    /// unit with GOOD for a tag.
    #[inline]
    #[must_use]
    pub fn is_good([first, second]: [u32; 2], tag: Tag) -> bool {
        let is_its = first >> 16 == u32::from(tag.number().swap_bytes());
        is_its && first as u8 == Self::SENSE && (second >> 16) as u8 == ScsiStatus::GOOD
    }

    /// Checks the bytes that came, all of them.
    ///
    /// # Errors
    ///
    /// The first check that fails.
    pub fn parse(bytes: &[u8]) -> Result<Self, UnitFault> {
        let cut = UnitFault::TooShort {
            found: bytes.len() as u16,
        };
        let identifier = u8_at(bytes, 0).ok_or(cut)?;
        if bytes.starts_with(Self::BULK_ONLY) {
            return Err(UnitFault::BulkOnlyStatus);
        }
        let length = match identifier {
            Self::SENSE => Self::SENSE_HEAD,
            0x04 => Self::RESPONSE_LENGTH,
            Self::READ_READY | Self::WRITE_READY => Self::READY_LENGTH,
            found => return Err(UnitFault::WrongIdentifier { found }),
        };
        let head = bytes.get(..length).ok_or(cut)?;
        let number = u16_be_at(head, 2).ok_or(cut)?;
        let tag = Tag::new(number).ok_or(UnitFault::NoTag)?;
        Ok(match identifier {
            Self::SENSE => {
                let status = ScsiStatus::from_code(u8_at(head, 6).ok_or(cut)?);
                Self::Sense {
                    tag,
                    status,
                    sense: sense_data(status, bytes),
                }
            }
            0x04 => Self::Response {
                tag,
                code: ResponseCode::from_code(u8_at(head, 7).ok_or(cut)?),
            },
            Self::READ_READY => Self::ReadReady(tag),
            _ => Self::WriteReady(tag),
        })
    }
}

/// The sense data of a SENSE unit. Policy: what its length claims beyond the bytes that came is left
/// out, since the codes are at the front.
#[inline]
fn sense_data(status: ScsiStatus, bytes: &[u8]) -> Sense {
    if status != ScsiStatus::CheckCondition {
        return Sense::NONE;
    }
    let announced = usize::from(u16_be_at(bytes, 14).unwrap_or_default());
    let came = bytes.get(StatusUnit::SENSE_HEAD..).unwrap_or_default();
    Sense::parse(came.get(..announced).unwrap_or(came))
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
