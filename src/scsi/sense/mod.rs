//! Sense data: why a command failed, and what to do now.
//!
//! The transports call [`Sense::parse`] on what a device gave with a failed command; the disk
//! driver and the retry rules act on [`Sense::verdict`] and keep the [`Sense`] itself for their
//! errors, so that key and codes reach the user. Read SPC-4 §4.5 for the two formats.

mod ata;
mod verdict;

use core::fmt;

use crate::bytes::{array_at, u8_at, u32_be_at, u64_be_at};

pub use ata::AtaRegisters;
pub use verdict::Verdict;

/// What kind of failure it is (SPC-4, sense key descriptions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SenseKey {
    /// 0: nothing to say.
    NoSense,
    /// 1: the command was done, with an effort.
    RecoveredError,
    /// 2: the unit cannot be used now.
    NotReady,
    /// 3: the medium is bad at that place.
    MediumError,
    /// 4: the device is bad; some bridges use it for anything.
    HardwareError,
    /// 5: the command, or something in it, is not known or not allowed.
    IllegalRequest,
    /// 6: something has changed since the last command; this one was not done.
    UnitAttention,
    /// 7: reading or writing is not allowed there.
    DataProtect,
    /// 8: nothing was written there.
    BlankCheck,
    /// 9: the vendor's own.
    VendorSpecific,
    /// A: a copy command ended early.
    CopyAborted,
    /// B: the device gave the command up.
    AbortedCommand,
    /// C: no longer used.
    Reserved,
    /// D: data are left that did not fit.
    VolumeOverflow,
    /// E: data do not match.
    Miscompare,
    /// F: the command was done.
    Completed,
}

impl SenseKey {
    /// The key's number, 0 to 15.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// From the four bits of both formats; the others are dropped.
    const fn from_bits(bits: u8) -> Self {
        match bits & 0x0f {
            0x0 => Self::NoSense,
            0x1 => Self::RecoveredError,
            0x2 => Self::NotReady,
            0x3 => Self::MediumError,
            0x4 => Self::HardwareError,
            0x5 => Self::IllegalRequest,
            0x6 => Self::UnitAttention,
            0x7 => Self::DataProtect,
            0x8 => Self::BlankCheck,
            0x9 => Self::VendorSpecific,
            0xa => Self::CopyAborted,
            0xb => Self::AbortedCommand,
            0xc => Self::Reserved,
            0xd => Self::VolumeOverflow,
            0xe => Self::Miscompare,
            _ => Self::Completed,
        }
    }
}

/// Which command the sense data are about (SPC-4 §4.5, current and deferred errors).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The one that just failed.
    ThisCommand,
    /// One that had ended well before, for instance a write that the cache had taken. The one
    /// that just failed was not done at all.
    EarlierCommand,
    /// The one that just failed, whose sense data did not come: what they would have said is not said again.
    Unheard,
}

/// Sense data, as far as they matter to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sense {
    /// Kind of failure.
    pub key: SenseKey,
    /// Additional sense code.
    #[doc(alias = "ADDITIONAL SENSE CODE")]
    pub asc: u8,
    /// Additional sense code qualifier.
    #[doc(alias = "ADDITIONAL SENSE CODE QUALIFIER")]
    pub ascq: u8,
    /// Which command it is about.
    pub subject: Subject,
    /// A number, the lower half first, or [`NO_INFORMATION`]: sense data travel with every end of a
    /// command, in as few registers as can be.
    information: [u32; 2],
}

/// No device has so many blocks: it says nothing about one.
const NO_INFORMATION: [u32; 2] = [u32::MAX; 2];

/// What sense data say about a block.
fn about(block: Option<u64>) -> [u32; 2] {
    let number = block.unwrap_or(u64::MAX);
    [number as u32, (number >> 32) as u32]
}

impl Sense {
    /// Bytes to ask for until a device has proved that it stands more.
    pub const FIXED_LENGTH: u8 = 18;

    /// Nothing said.
    pub const NONE: Self = Self {
        key: SenseKey::NoSense,
        asc: 0,
        ascq: 0,
        subject: Subject::ThisCommand,
        information: NO_INFORMATION,
    };

    /// Something was said, and did not come.
    pub const UNHEARD: Self = Self {
        subject: Subject::Unheard,
        ..Self::NONE
    };

    /// Aborted command, without more: for statuses that come without sense data, and mean that the
    /// command was not carried out and may be issued again.
    pub const ABORTED: Self = Self {
        key: SenseKey::AbortedCommand,
        ..Self::NONE
    };

    /// 5/25/00: there is no such logical unit.
    pub const NO_SUCH_UNIT: Self = Self {
        key: SenseKey::IllegalRequest,
        asc: 0x25,
        ..Self::NONE
    };

    /// For a medium error, the block that could not be read or written, if the device says.
    #[doc(alias = "INFORMATION")]
    #[must_use]
    pub fn information(&self) -> Option<u64> {
        let [low, high] = self.information;
        (self.information != NO_INFORMATION).then_some(u64::from(high) << 32 | u64::from(low))
    }

    /// Reads either format, as far as it came. What is neither says nothing: [`Sense::NONE`].
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let response = u8_at(bytes, 0).unwrap_or_default() & 0x7f;
        let subject = match response {
            0x71 | 0x73 => Subject::EarlierCommand,
            _ => Subject::ThisCommand,
        };
        match response {
            0x70 | 0x71 => fixed(bytes, subject),
            0x72 | 0x73 => descriptor(bytes, subject),
            _ => Self::NONE,
        }
    }
}

/// Fixed format (SPC-4 §4.5.3). The additional length in byte 7 cuts the codes off only where it
/// says something: Policy, since devices that leave it zero still fill the codes in.
fn fixed(bytes: &[u8], subject: Subject) -> Sense {
    let additional = u8_at(bytes, 7).unwrap_or_default();
    let within = match additional {
        0 => bytes,
        length => bytes.get(..8 + usize::from(length)).unwrap_or(bytes),
    };
    let is_valid = u8_at(bytes, 0).unwrap_or_default() & 0x80 != 0;
    let key = SenseKey::from_bits(u8_at(bytes, 2).unwrap_or_default());
    let asc = u8_at(within, 12).unwrap_or_default();
    let ascq = u8_at(within, 13).unwrap_or_default();
    let information = if ata::is_about_registers(key, asc, ascq) {
        ata::packed_of_fixed(bytes)
    } else {
        u32_be_at(bytes, 3).filter(|_| is_valid).map(u64::from)
    };
    Sense {
        key,
        asc,
        ascq,
        subject,
        information: about(information),
    }
}

/// Descriptor format (SPC-4 §4.5.2).
fn descriptor(bytes: &[u8], subject: Subject) -> Sense {
    let additional = usize::from(u8_at(bytes, 7).unwrap_or_default());
    let behind = bytes.get(8..).unwrap_or_default();
    let mut descriptors = Descriptors {
        rest: behind.get(..additional).unwrap_or(behind),
    };
    let key = SenseKey::from_bits(u8_at(bytes, 1).unwrap_or_default());
    let asc = u8_at(bytes, 2).unwrap_or_default();
    let ascq = u8_at(bytes, 3).unwrap_or_default();
    let information = if ata::is_about_registers(key, asc, ascq) {
        descriptors.find_map(ata::packed_of_descriptor)
    } else {
        descriptors.find_map(information)
    };
    Sense {
        key,
        asc,
        ascq,
        subject,
        information: about(information),
    }
}

/// The information sense data descriptor: type 0, 12 bytes in all, validity in byte 2 bit 7.
fn information(descriptor: &[u8]) -> Option<u64> {
    let [0x00, 0x0a, flags] = array_at(descriptor, 0)? else {
        return None;
    };
    u64_be_at(descriptor, 4).filter(|_| flags & 0x80 != 0)
}

/// Walks sense data descriptors: type, additional length, so many bytes. A cut one ends the walk.
struct Descriptors<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Descriptors<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let length = 2 + usize::from(u8_at(self.rest, 1)?);
        let (descriptor, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(descriptor)
    }
}

impl fmt::Display for Sense {
    /// `key/ASC/ASCQ` in hexadecimal, as tables of sense codes have it: `3/11/00`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key as u8;
        write!(formatter, "{key:X}/{:02X}/{:02X}", self.asc, self.ascq)?;
        if let (Some(information), None) = (self.information(), self.ata_registers()) {
            write!(formatter, " at {information}")?;
        }
        match self.subject {
            Subject::ThisCommand => Ok(()),
            Subject::EarlierCommand => formatter.write_str(" (of an earlier command)"),
            Subject::Unheard => formatter.write_str(" (sense data did not come)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    const READ_ERROR: [u8; 18] = [
        0xf0, 0, 3, 0, 1, 2, 3, 10, 0, 0, 0, 0, 0x11, 0x04, 0, 0, 0, 0,
    ];

    #[test]
    fn the_fixed_format_is_read() {
        let sense = Sense::parse(&READ_ERROR);
        assert_eq!(sense.key, SenseKey::MediumError);
        assert_eq!((sense.asc, sense.ascq), (0x11, 0x04));
        assert_eq!(sense.information(), Some(0x0001_0203));
        assert_eq!(sense.subject, Subject::ThisCommand);
        assert_eq!(sense.to_string(), "3/11/04 at 66051");
    }

    #[test]
    fn information_counts_only_when_it_is_called_valid() {
        let mut bytes = READ_ERROR;
        bytes[0] = 0x70;
        assert_eq!(Sense::parse(&bytes).information(), None);
    }

    #[test]
    fn the_descriptor_format_is_read_with_64_bits_of_information() {
        let bytes = [
            0x72, 3, 0x11, 0x00, 0, 0, 0, 16, 0x02, 0x02, 0, 0, 0x00, 0x0a, 0x80, 0, 0, 0, 0, 1, 2,
            3, 4, 5,
        ];
        let sense = Sense::parse(&bytes);
        assert_eq!(sense.key, SenseKey::MediumError);
        assert_eq!(sense.information(), Some(0x01_0203_0405));
        for length in 0..bytes.len() {
            assert_eq!(Sense::parse(&bytes[..length]).information(), None);
        }
    }

    #[test]
    fn deferred_sense_is_about_an_earlier_command() {
        for response in [0x71, 0xf1, 0x73] {
            let sense = Sense::parse(&[response, 3, 3, 0, 0, 0, 0, 0]);
            assert_eq!(sense.subject, Subject::EarlierCommand);
            assert_eq!(sense.key, SenseKey::MediumError);
        }
    }

    #[test]
    fn fixed_sense_that_is_cut_off_keeps_what_came() {
        let three = Sense::parse(&READ_ERROR[..3]);
        assert_eq!((three.key, three.asc), (SenseKey::MediumError, 0));
        let thirteen = Sense::parse(&READ_ERROR[..13]);
        assert_eq!((thirteen.asc, thirteen.ascq), (0x11, 0));
    }

    #[test]
    fn an_additional_length_cuts_the_codes_off_unless_it_is_zero() {
        let mut bytes = READ_ERROR;
        bytes[7] = 5;
        assert_eq!(
            (Sense::parse(&bytes).asc, Sense::parse(&bytes).ascq),
            (0x11, 0)
        );
        bytes[7] = 0;
        assert_eq!(Sense::parse(&bytes).ascq, 0x04);
    }

    #[test]
    fn what_is_no_sense_data_says_nothing() {
        for bytes in [&[][..], &[0; 18], &[0x7f, 5, 5], b"USBSxxxxxxxxx"] {
            assert_eq!(Sense::parse(bytes), Sense::NONE);
        }
    }
}
