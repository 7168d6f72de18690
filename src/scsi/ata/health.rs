//! SMART READ DATA and SMART RETURN STATUS: how a disk is (ACS-3 §7.48.9, §7.48.11).
//!
//! The standard leaves the attributes to the makers; the few that are read here mean the same to
//! nearly all of them. An attribute that a disk does not have is `None`, never 0.

use super::sector::{Sector, SectorFault};
use super::self_test::SelfTest;
use crate::bytes::{array_at, u8_at};
use crate::scsi::sense::AtaRegisters;

/// What a disk thinks of its own future.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prognosis {
    /// No attribute has passed its limit.
    Good,
    /// One has: copy what matters to another disk.
    Failing,
    /// It was not told: many bridges leave the registers out that would say it.
    Unknown,
}

impl Prognosis {
    /// From the output registers of SMART RETURN STATUS, if they came.
    #[must_use]
    pub const fn of(registers: Option<AtaRegisters>) -> Self {
        match registers {
            Some(AtaRegisters {
                lba: [_, 0x4f, 0xc2],
                ..
            }) => Self::Good,
            Some(AtaRegisters {
                lba: [_, 0xf4, 0x2c],
                ..
            }) => Self::Failing,
            _ => Self::Unknown,
        }
    }
}

/// How a disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Health {
    /// What it thinks of its future.
    pub prognosis: Prognosis,
    /// Degrees Celsius (attribute 194, else 190).
    pub temperature: Option<i8>,
    /// Sectors that were replaced by spare ones (attribute 5); 65535 for more.
    pub reallocated_sectors: Option<u16>,
    /// Sectors that could not be read and wait for a write (attribute 197).
    pub pending_sectors: Option<u32>,
    /// Hours under power (attribute 9).
    pub power_on_hours: Option<u32>,
    /// How its newest test of itself stands.
    pub self_test: SelfTest,
    /// Minutes that a short and an extended test take, as the disk thinks; 0 for one that it does not
    /// have.
    pub self_test_minutes: (u16, u16),
}

/// Attributes lie from here on, so many of so many bytes.
const ATTRIBUTES: (usize, usize, usize) = (2, 30, 12);

impl Health {
    /// Reads a sector of SMART READ DATA. The prognosis is [`Prognosis::Unknown`]: another command
    /// brings it.
    ///
    /// # Errors
    /// [`SectorFault`]: the checksum always counts.
    pub fn parse(bytes: &[u8]) -> Result<Self, SectorFault> {
        let sector = Sector::new(bytes)?.checked()?;
        let raw = |id| raw_value(&sector, id);
        Ok(Self {
            prognosis: Prognosis::Unknown,
            temperature: raw(194).or_else(|| raw(190)).map(|[low, ..]| low as i8),
            reallocated_sectors: raw(5).map(|[a, b, ..]| u16::from_le_bytes([a, b])),
            pending_sectors: raw(197).map(|[a, b, c, d, _, _]| u32::from_le_bytes([a, b, c, d])),
            // Above three bytes some makers count something else.
            power_on_hours: raw(9).map(|[a, b, c, ..]| u32::from_le_bytes([a, b, c, 0])),
            self_test: SelfTest::from_status(sector.byte(363)),
            self_test_minutes: minutes(&sector),
        })
    }
}

/// The raw value of an attribute, lowest byte first: the first of that id.
fn raw_value(sector: &Sector<'_>, id: u8) -> Option<[u8; 6]> {
    let (first, count, length) = ATTRIBUTES;
    let table = sector.bytes().get(first..first + count * length)?;
    let mut attributes = table.chunks_exact(length);
    let attribute = attributes.find(|attribute| u8_at(attribute, 0) == Some(id))?;
    array_at(attribute, 5)
}

/// The polling times. FF for an extended test stands for a word elsewhere.
fn minutes(sector: &Sector<'_>) -> (u16, u16) {
    let extended = match sector.byte(373) {
        0xff => u16::from_le_bytes([sector.byte(375), sector.byte(376)]),
        minutes => u16::from(minutes),
    };
    (u16::from(sector.byte(372)), extended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scsi::ata::SelfTestOutcome;

    /// SMART data with these attributes, by id and raw value.
    fn sector(attributes: &[(u8, u64)]) -> [u8; 512] {
        let mut bytes = [0; 512];
        for (place, (id, raw)) in attributes.iter().enumerate() {
            let at = 2 + place * 12;
            bytes[at] = *id;
            bytes[at + 5..at + 11].copy_from_slice(&raw.to_le_bytes()[..6]);
        }
        bytes[363] = 0x70;
        bytes[372] = 2;
        bytes[373] = 0xff;
        bytes[375..377].copy_from_slice(&700_u16.to_le_bytes());
        let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        bytes[511] = 0_u8.wrapping_sub(sum);
        bytes
    }

    #[test]
    fn named_values_are_read_from_their_attributes() {
        let bytes = sector(&[
            (5, 12),
            (9, 0xab00_3039),
            (194, 0x0030_0012_0021),
            (197, 0x0001_0002),
        ]);
        let health = Health::parse(&bytes).unwrap();
        assert_eq!(health.reallocated_sectors, Some(12));
        assert_eq!(health.power_on_hours, Some(12345));
        assert_eq!(health.temperature, Some(33));
        assert_eq!(health.pending_sectors, Some(0x0001_0002));
        let failed = SelfTest::Ended(SelfTestOutcome::FailedRead);
        assert_eq!(health.self_test, failed);
        assert_eq!(health.self_test_minutes, (2, 700));
        assert_eq!(health.prognosis, Prognosis::Unknown);
    }

    #[test]
    fn what_a_disk_does_not_have_is_not_zero() {
        let health = Health::parse(&sector(&[(190, 0xfb)])).unwrap();
        assert_eq!(health.temperature, Some(-5), "the other temperature");
        assert_eq!(health.reallocated_sectors, None);
        assert_eq!(health.pending_sectors, None);
        assert_eq!(health.power_on_hours, None);
    }

    #[test]
    fn data_that_do_not_add_up_are_refused() {
        let mut bytes = sector(&[(5, 1)]);
        bytes[7] ^= 0x40;
        assert_eq!(Health::parse(&bytes), Err(SectorFault::Checksum));
        assert_eq!(
            Health::parse(&bytes[..511]),
            Err(SectorFault::TooShort { have: 511 })
        );
    }

    #[test]
    fn the_prognosis_is_a_signature_and_its_absence_says_nothing() {
        let registers = |mid, high| AtaRegisters {
            error: 0,
            count: 0,
            lba: [0, mid, high],
            device: 0,
            status: 0x50,
        };
        assert_eq!(Prognosis::of(Some(registers(0x4f, 0xc2))), Prognosis::Good);
        let failing = Prognosis::of(Some(registers(0xf4, 0x2c)));
        assert_eq!(failing, Prognosis::Failing);
        assert_eq!(Prognosis::of(Some(registers(0, 0))), Prognosis::Unknown);
        assert_eq!(Prognosis::of(None), Prognosis::Unknown);
    }
}
