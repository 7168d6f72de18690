//! A sector of 512 bytes that an ATA disk answers with, and its checksum.

use crate::block::ata::ATA_SECTOR;
use crate::bytes::{u8_at, u16_le_at};

/// Why a sector cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectorFault {
    /// Fewer than 512 bytes came.
    TooShort {
        /// Bytes that came.
        have: usize,
    },
    /// Its bytes do not add up to 0: it was damaged on its way, or is not what was asked for.
    Checksum,
    /// It says that it is not of an ATA disk.
    NotAta,
}

/// A whole sector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sector<'a>(&'a [u8; ATA_SECTOR]);

impl<'a> Sector<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, SectorFault> {
        let whole = bytes.first_chunk::<ATA_SECTOR>();
        whole
            .map(Self)
            .ok_or(SectorFault::TooShort { have: bytes.len() })
    }

    /// The same, if its 512 bytes add up to 0 modulo 256.
    pub(super) fn checked(self) -> Result<Self, SectorFault> {
        let sum = self
            .0
            .iter()
            .fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        if sum == 0 {
            Ok(self)
        } else {
            Err(SectorFault::Checksum)
        }
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// A byte; 0 behind the end.
    pub(super) fn byte(&self, at: usize) -> u8 {
        u8_at(self.0, at).unwrap_or_default()
    }

    /// A word of 16 bits, by its number as the standard counts; 0 behind the end.
    pub(super) fn word(&self, number: usize) -> u16 {
        u16_le_at(self.0, 2 * number).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_is_whole_and_adds_up() {
        assert_eq!(
            Sector::new(&[0; 511]).unwrap_err(),
            SectorFault::TooShort { have: 511 }
        );
        let mut bytes = [0; 512];
        bytes[7] = 1;
        let sector = Sector::new(&bytes).unwrap();
        assert_eq!(sector.checked().unwrap_err(), SectorFault::Checksum);
        bytes[511] = 255;
        assert!(Sector::new(&bytes).unwrap().checked().is_ok());
    }

    #[test]
    fn words_are_little_endian_and_end_with_the_sector() {
        let mut bytes = [0; 512];
        bytes[510..].copy_from_slice(&[0xa5, 0x5a]);
        let sector = Sector::new(&bytes).unwrap();
        assert_eq!((sector.word(255), sector.word(256)), (0x5aa5, 0));
    }
}
