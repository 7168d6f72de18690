//! Page B1: how the medium moves (SBC-3, Block Device Characteristics VPD page).

use super::{PageCode, VpdFault, body};
use crate::bytes::{u8_at, u16_be_at};

/// Whether the medium rotates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rotation {
    /// Not said, or nonsense.
    #[default]
    Unknown,
    /// Solid state.
    None,
    /// So many times a minute.
    PerMinute(u16),
}

impl Rotation {
    /// From the rate that SCSI (page B1) and ATA (word 217 of IDENTIFY DEVICE) both have.
    #[must_use]
    pub(crate) const fn from_rate(rate: u16) -> Self {
        match rate {
            0x0001 => Self::None,
            0x0401..=0xfffe => Self::PerMinute(rate),
            _ => Self::Unknown,
        }
    }
}

/// What the disk says about its mechanics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCharacteristics {
    /// Whether the medium rotates.
    pub rotation: Rotation,
    /// Nominal form factor: 1 to 5 for 5.25, 3.5, 2.5, 1.8 inches and less than 1.8; 0 not said.
    pub form_factor: u8,
}

impl BlockCharacteristics {
    /// Bytes to ask for.
    pub const LENGTH: u16 = 64;

    /// Reads the page as far as it came.
    ///
    /// # Errors
    /// [`VpdFault`].
    pub fn parse(bytes: &[u8]) -> Result<Self, VpdFault> {
        let body = body(bytes, PageCode::BLOCK_CHARACTERISTICS)?;
        Ok(Self {
            rotation: Rotation::from_rate(u16_be_at(body, 0).unwrap_or_default()),
            form_factor: u8_at(body, 3).unwrap_or_default() & 0x0f,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solid_state_and_rates_are_told_apart() {
        for (rate, rotation) in [
            (0x0000, Rotation::Unknown),
            (0x0001, Rotation::None),
            (0x0400, Rotation::Unknown),
            (5400, Rotation::PerMinute(5400)),
            (0xffff, Rotation::Unknown),
        ] {
            let [high, low] = u16::to_be_bytes(rate);
            let page = [0, 0xb1, 0, 60, high, low, 0, 0x13];
            let characteristics = BlockCharacteristics::parse(&page).unwrap();
            assert_eq!(characteristics.rotation, rotation);
            assert_eq!(characteristics.form_factor, 3);
        }
    }

    #[test]
    fn a_page_without_a_body_says_nothing() {
        assert_eq!(
            BlockCharacteristics::parse(&[0, 0xb1, 0, 60]),
            Ok(BlockCharacteristics::default())
        );
    }
}
