//! IDENTIFY DEVICE: who the disk is, and what it knows (ACS-3 §7.12.7).

use super::sector::{Sector, SectorFault};
use crate::scsi::vpd::Rotation;
use crate::text::Text;

/// What the disk behind a bridge says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtaIdentity {
    /// Its model; a bridge may give another to INQUIRY.
    pub model: Text<40>,
    /// Its serial number.
    pub serial: Text<20>,
    /// The revision of its firmware.
    pub firmware: Text<8>,
    /// How its medium moves.
    pub rotation: Rotation,
    /// It knows SMART.
    pub has_smart: bool,
    /// SMART is switched on.
    pub smart_is_on: bool,
    /// It can test itself.
    pub has_self_test: bool,
}

impl AtaIdentity {
    /// Reads the sector. Its checksum counts where word 255 has the signature that says there is one.
    ///
    /// # Errors
    /// [`SectorFault`].
    pub fn parse(bytes: &[u8]) -> Result<Self, SectorFault> {
        let sector = Sector::new(bytes)?;
        let has_checksum = sector.word(255) & 0xff == 0xa5;
        let sector = if has_checksum {
            sector.checked()?
        } else {
            sector
        };
        if sector.word(0) & 0x8000 != 0 {
            return Err(SectorFault::NotAta);
        }
        Ok(Self {
            serial: text(&sector, 10),
            firmware: text(&sector, 23),
            model: text(&sector, 27),
            rotation: Rotation::from_rate(sector.word(217)),
            has_smart: supported(&sector, 82, 83) & 0x0001 != 0,
            // Words 85 to 87 mean something if 87 says so.
            smart_is_on: supported(&sector, 85, 87) & 0x0001 != 0,
            has_self_test: supported(&sector, 84, 84) & 0x0002 != 0,
        })
    }
}

/// A word of feature flags, if the word with the marks says that it is valid: bit 14 set, 15 clear.
fn supported(sector: &Sector<'_>, word: usize, marks: usize) -> u16 {
    if sector.word(marks) & 0xc000 == 0x4000 {
        sector.word(word)
    } else {
        0
    }
}

/// ASCII from word `first` on, two characters a word, the first in the upper byte.
fn text<const LENGTH: usize>(sector: &Sector<'_>, first: usize) -> Text<LENGTH> {
    let mut characters = [b' '; LENGTH];
    for (word, pair) in (first..).zip(characters.chunks_exact_mut(2)) {
        pair.copy_from_slice(&sector.word(word).to_be_bytes());
    }
    Text::from_bytes(&characters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: &mut [u8; 512], word: usize, value: u16) {
        bytes[2 * word..2 * word + 2].copy_from_slice(&value.to_le_bytes());
    }

    fn put_text(bytes: &mut [u8; 512], word: usize, text: &str) {
        for (place, pair) in text.as_bytes().chunks(2).enumerate() {
            put(bytes, word + place, u16::from_be_bytes([pair[0], pair[1]]));
        }
    }

    fn sector() -> [u8; 512] {
        let mut bytes = [0; 512];
        put_text(&mut bytes, 10, "  S12345");
        put_text(&mut bytes, 23, "FW10");
        put_text(&mut bytes, 27, "Disk with name  ");
        put(&mut bytes, 82, 0x0001);
        put(&mut bytes, 83, 0x4000);
        put(&mut bytes, 84, 0x4002);
        put(&mut bytes, 85, 0x0001);
        put(&mut bytes, 87, 0x4000);
        put(&mut bytes, 217, 5400);
        bytes
    }

    #[test]
    fn names_are_turned_round_and_trimmed() {
        let identity = AtaIdentity::parse(&sector()).unwrap();
        assert_eq!(identity.model.as_str(), "Disk with name");
        assert_eq!(identity.serial.as_str(), "S12345");
        assert_eq!(identity.firmware.as_str(), "FW10");
        assert_eq!(identity.rotation, Rotation::PerMinute(5400));
        assert!(identity.has_smart && identity.smart_is_on && identity.has_self_test);
    }

    #[test]
    fn features_count_only_where_their_words_are_valid() {
        let mut bytes = sector();
        put(&mut bytes, 83, 0xffff);
        put(&mut bytes, 87, 0x0000);
        let identity = AtaIdentity::parse(&bytes).unwrap();
        assert!(!identity.has_smart && !identity.smart_is_on && identity.has_self_test);
    }

    #[test]
    fn the_checksum_counts_where_there_is_one() {
        let mut bytes = sector();
        put(&mut bytes, 255, 0x00a5);
        assert_eq!(AtaIdentity::parse(&bytes), Err(SectorFault::Checksum));
        let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        bytes[511] = 0_u8.wrapping_sub(sum);
        assert!(AtaIdentity::parse(&bytes).is_ok());
    }

    #[test]
    fn a_packet_device_is_no_ata_disk() {
        let mut bytes = sector();
        put(&mut bytes, 0, 0x8580);
        assert_eq!(AtaIdentity::parse(&bytes), Err(SectorFault::NotAta));
    }
}
