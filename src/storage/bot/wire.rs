//! The two wrappers of Bulk-Only Transport (BOT 1.0 §5).
//!
//! The machine makes a [`Cbw`] for each command and checks what comes back with [`Csw::parse`]. A
//! [`Csw`] is *valid* and *meaningful* in the sense of BOT 1.0 §6.3: right length, signature and
//! tag, a status that exists, and a residue that the command's length covers. Whatever is not, is
//! a [`CswFault`] that says which check failed. No state is kept here.

use crate::bytes::{u8_at, u32_le_at};
use crate::scsi::cdb::{Cdb, DataPhase};

/// Logical unit of a Bulk-Only device: 0 to 15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lun(u8);

impl Lun {
    /// The first unit, which every device has.
    pub const ZERO: Self = Self(0);

    /// `None` above 15.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if number <= 15 {
            Some(Self(number))
        } else {
            None
        }
    }

    /// 0 to 15.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The highest unit, from the bytes that GET MAX LUN brought (BOT 1.0 §3.2).
    ///
    /// Policy: no answer, a stall (pass no bytes), and a number above 15 all mean unit 0 alone.
    /// That is what such devices have.
    #[must_use]
    pub const fn highest(answer: &[u8]) -> Self {
        match answer {
            [number @ 0..=15, ..] => Self(*number),
            _ => Self::ZERO,
        }
    }

    /// Every unit from the first up to this one.
    pub fn up_to(self) -> impl Iterator<Item = Self> {
        (0..=self.0).map(Self)
    }
}

/// Command block wrapper: what opens a command (BOT 1.0 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "Command Block Wrapper")]
pub struct Cbw {
    /// The name of the command, to be found again in the status.
    #[doc(alias = "dCBWTag")]
    pub tag: u32,
    /// What is to be moved.
    #[doc(alias = "dCBWDataTransferLength")]
    pub data: DataPhase,
    /// Which unit it is for.
    #[doc(alias = "bCBWLUN")]
    pub lun: Lun,
    /// The command itself.
    #[doc(alias = "CBWCB")]
    pub cdb: Cdb,
}

impl Cbw {
    /// Bytes of the wrapper.
    pub const LENGTH: usize = 31;

    /// Bytes of memory that it is written to, as words.
    pub const ROOM: usize = 32;

    /// `USBC`, read little-endian.
    const SIGNATURE: u32 = 0x4342_5355;

    /// The wrapper as little-endian words, with an unused byte at the end.
    #[inline(always)]
    #[must_use]
    pub const fn to_words(&self) -> [u32; Self::ROOM / 4] {
        let flags = match self.data {
            DataPhase::In(_) => 0x80,
            DataPhase::Out(_) | DataPhase::None => 0x00,
        };
        // The block begins with the last byte of the fourth word.
        let block = self.cdb.to_number();
        let head = flags | (self.lun.0 as u32) << 8 | (self.cdb.length() as u32) << 16;
        [
            Self::SIGNATURE,
            self.tag,
            self.data.length(),
            head | (block as u32) << 24,
            (block >> 8) as u32,
            (block >> 40) as u32,
            (block >> 72) as u32,
            (block >> 104) as u32,
        ]
    }

    /// The wrapper as it goes over the wire.
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

/// How a command ended (BOT 1.0 §5.2, table 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "bCSWStatus")]
pub enum CswStatus {
    /// Well.
    Passed,
    /// Badly: ask for sense data.
    Failed,
    /// Host and device are out of step: reset recovery.
    PhaseError,
}

/// Command status wrapper: what ends a command (BOT 1.0 §5.2), valid and meaningful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "Command Status Wrapper")]
pub struct Csw {
    /// How the command ended.
    pub status: CswStatus,
    /// Bytes of the announced length that the device did not process: never more than that
    /// length. 0 with [`CswStatus::PhaseError`], where the device's number means nothing.
    #[doc(alias = "dCSWDataResidue")]
    pub residue: u32,
}

/// Why a status wrapper cannot be believed. The remedy is reset recovery (BOT 1.0 §5.3.3), unless
/// a quirk of the device says that it always is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CswFault {
    /// Not 13 bytes. None at all may be a stray zero-length packet: read once more.
    WrongLength {
        /// Bytes that came.
        found: u32,
    },
    /// Not a status wrapper.
    WrongSignature {
        /// What stands in its place.
        found: u32,
    },
    /// The status of another command. A device that is known for it gets its wrapper parsed once
    /// more with the tag that was found.
    WrongTag {
        /// The tag that came.
        found: u32,
    },
    /// A status that does not exist.
    ReservedStatus {
        /// The status byte.
        found: u8,
    },
    /// More left over than there was. A device whose residue is ignored gets its wrapper parsed
    /// once more with `u32::MAX` as requested length.
    ResidueTooLarge {
        /// The residue that came.
        found: u32,
    },
}

impl Csw {
    /// Bytes of the wrapper. Read it into one whole packet, so that a longer one is seen and does
    /// not babble.
    pub const LENGTH: usize = 13;

    /// Bytes of memory that it is read from, as words.
    pub const ROOM: usize = 16;

    /// `USBS`, read little-endian.
    const SIGNATURE: u32 = 0x5342_5355;

    /// Checks the little-endian words that the status phase brought, exactly
    /// [`Csw::LENGTH`] bytes of them, against the command (BOT 1.0 §6.3.1, §6.3.2).
    ///
    /// # Errors
    /// The first check that fails, in the order of the fields.
    #[inline]
    pub fn check(
        words: [u32; Self::ROOM / 4],
        expected_tag: u32,
        requested: u32,
    ) -> Result<Self, CswFault> {
        let [signature, tag, residue, last] = words;
        let fields = Fields {
            signature,
            tag,
            residue,
            status: last as u8,
        };
        fields.check(expected_tag, requested)
    }

    /// Whether these words, of exactly [`Csw::LENGTH`] bytes, say that a command has passed and left nothing
    /// over: what [`Csw::check`] would find, without a word about what is wrong otherwise.
    #[inline]
    #[must_use]
    pub fn is_plain(words: [u32; Self::ROOM / 4], expected_tag: u32) -> bool {
        let [signature, tag, residue, last] = words;
        signature == Self::SIGNATURE && tag == expected_tag && residue == 0 && last as u8 == 0
    }

    /// Checks the bytes that the status phase brought, all of them, against the command:
    /// its tag, and the length that its wrapper announced (BOT 1.0 §6.3.1, §6.3.2).
    ///
    /// # Errors
    /// The first check that fails, in the order of the fields.
    pub fn parse(bytes: &[u8], expected_tag: u32, requested: u32) -> Result<Self, CswFault> {
        let found = Self::fields(bytes).ok_or(CswFault::WrongLength {
            found: bytes.len() as u32,
        })?;
        found.check(expected_tag, requested)
    }

    /// Whether bytes that came as data are the command's status wrapper instead: some devices leave
    /// the data phase out without a stall. Length, signature and tag decide.
    #[must_use]
    pub fn is_wrapper(bytes: &[u8], expected_tag: u32) -> bool {
        Self::fields(bytes)
            .is_some_and(|found| found.signature == Self::SIGNATURE && found.tag == expected_tag)
    }

    const PHASE_ERROR: Self = Self {
        status: CswStatus::PhaseError,
        residue: 0,
    };

    /// `None` unless there are 13 bytes.
    fn fields(bytes: &[u8]) -> Option<Fields> {
        if bytes.len() != Self::LENGTH {
            return None;
        }
        Some(Fields {
            signature: u32_le_at(bytes, 0)?,
            tag: u32_le_at(bytes, 4)?,
            residue: u32_le_at(bytes, 8)?,
            status: u8_at(bytes, 12)?,
        })
    }
}

/// A status wrapper's fields, unchecked.
struct Fields {
    signature: u32,
    tag: u32,
    residue: u32,
    status: u8,
}

impl Fields {
    #[inline]
    fn check(self, expected_tag: u32, requested: u32) -> Result<Csw, CswFault> {
        if self.signature != Csw::SIGNATURE {
            let found = self.signature;
            return Err(CswFault::WrongSignature { found });
        }
        if self.tag != expected_tag {
            return Err(CswFault::WrongTag { found: self.tag });
        }
        let status = match self.status {
            0 => CswStatus::Passed,
            1 => CswStatus::Failed,
            2 => return Ok(Csw::PHASE_ERROR),
            found => return Err(CswFault::ReservedStatus { found }),
        };
        if self.residue > requested {
            let found = self.residue;
            return Err(CswFault::ResidueTooLarge { found });
        }
        Ok(Csw {
            status,
            residue: self.residue,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scsi::cdb;

    const TAG: u32 = 0x0a0b_0c0d;

    fn wrapper(tag: u32, residue: u32, status: u8) -> [u8; 13] {
        let mut bytes = [0; 13];
        bytes[..4].copy_from_slice(b"USBS");
        bytes[4..8].copy_from_slice(&tag.to_le_bytes());
        bytes[8..12].copy_from_slice(&residue.to_le_bytes());
        bytes[12] = status;
        bytes
    }

    #[test]
    fn a_command_wrapper_has_the_bytes_of_table_5_1() {
        let inquiry = cdb::inquiry();
        let cbw = Cbw {
            tag: TAG,
            data: inquiry.data,
            lun: Lun::new(3).unwrap(),
            cdb: inquiry.cdb,
        };
        let expected = [
            0x55, 0x53, 0x42, 0x43, 0x0d, 0x0c, 0x0b, 0x0a, 36, 0, 0, 0, 0x80, 3, 6, 0x12, 0, 0, 0,
            36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(cbw.to_bytes(), expected);
    }

    #[test]
    fn the_direction_bit_is_set_for_data_in_only() {
        for (data, flags) in [
            (DataPhase::In(1), 0x80),
            (DataPhase::Out(1), 0),
            (DataPhase::None, 0),
        ] {
            let cbw = Cbw {
                tag: 1,
                data,
                lun: Lun::ZERO,
                cdb: cdb::test_unit_ready().cdb,
            };
            assert_eq!(cbw.to_bytes()[12], flags);
        }
    }

    #[test]
    fn a_status_that_is_valid_and_meaningful_is_believed() {
        let csw = Csw::parse(&wrapper(TAG, 512, 1), TAG, 512);
        assert_eq!(
            csw,
            Ok(Csw {
                status: CswStatus::Failed,
                residue: 512
            })
        );
        assert_eq!(
            Csw::parse(&wrapper(TAG, 0, 0), TAG, 0),
            Ok(Csw {
                status: CswStatus::Passed,
                residue: 0
            })
        );
    }

    #[test]
    fn a_phase_error_is_meaningful_whatever_its_residue() {
        assert_eq!(
            Csw::parse(&wrapper(TAG, u32::MAX, 2), TAG, 0),
            Ok(Csw {
                status: CswStatus::PhaseError,
                residue: 0
            })
        );
    }

    #[test]
    fn case_15_wrong_lengths_are_told() {
        let sixteen = [0x55; 16];
        for length in [0, 1, 12, 14, 16] {
            assert_eq!(
                Csw::parse(&sixteen[..length], TAG, 0),
                Err(CswFault::WrongLength {
                    found: length as u32
                })
            );
        }
    }

    #[test]
    fn case_15_wrong_signature_tag_status_and_residue_are_told_apart() {
        let mut unsigned = wrapper(TAG, 0, 0);
        unsigned[3] = b'C';
        let table = [
            (unsigned, CswFault::WrongSignature { found: 0x4342_5355 }),
            (
                wrapper(TAG ^ 1, 0, 0),
                CswFault::WrongTag { found: TAG ^ 1 },
            ),
            (wrapper(TAG, 0, 3), CswFault::ReservedStatus { found: 3 }),
            (
                wrapper(TAG, 0, 255),
                CswFault::ReservedStatus { found: 255 },
            ),
            (
                wrapper(TAG, 513, 0),
                CswFault::ResidueTooLarge { found: 513 },
            ),
            (
                wrapper(TAG, 513, 1),
                CswFault::ResidueTooLarge { found: 513 },
            ),
        ];
        for (bytes, fault) in table {
            assert_eq!(Csw::parse(&bytes, TAG, 512), Err(fault));
        }
    }

    #[test]
    fn case_11_a_status_wrapper_in_place_of_data_is_known_by_signature_and_tag() {
        let bytes = wrapper(TAG, 13, 1);
        assert!(Csw::is_wrapper(&bytes, TAG));
        assert!(!Csw::is_wrapper(&bytes, TAG + 1));
        assert!(!Csw::is_wrapper(&bytes[..12], TAG));
        assert!(!Csw::is_wrapper(&[0; 13], 0));
    }

    #[test]
    fn case_1_every_odd_answer_to_get_max_lun_means_one_unit() {
        for answer in [&[][..], &[0x10], &[0xff], &[0]] {
            assert_eq!(Lun::highest(answer), Lun::ZERO, "{answer:?}");
        }
        let fourth = Lun::highest(&[3]);
        assert!(fourth.up_to().map(Lun::number).eq(0..=3));
        assert_eq!(Lun::new(16), None);
    }
}
