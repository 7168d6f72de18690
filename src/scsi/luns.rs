//! REPORT LUNS data: which units a device has (SPC-4 §6.33; SAM-5 §4.7 for the form of a number).

use crate::bytes::{array_at, u32_be_at};

/// Units of a device, by their numbers from 0 to 15. Policy: no enclosure has more, and Bulk-Only
/// cannot name more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Luns(u16);

impl Luns {
    /// The highest number plus one.
    pub const LIMIT: u8 = 16;

    /// No unit.
    pub const NONE: Self = Self(0);

    /// These, and the unit with this number.
    #[must_use]
    pub const fn with(self, number: u8) -> Self {
        if number < Self::LIMIT {
            Self(self.0 | 1 << number)
        } else {
            self
        }
    }

    /// Reads the list as far as it came. Units with other numbers, or of levels below the first, are
    /// left out. `None` when not even the header of 8 bytes came, or no unit that can be named.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let announced = u32_be_at(bytes, 0)? as usize;
        let behind = bytes.get(8..)?;
        let list = behind.get(..announced).unwrap_or(behind);
        let numbers = list.chunks_exact(8).filter_map(number);
        let all = numbers.fold(0, |all, number| all | 1 << number);
        (all != 0).then_some(Self(all))
    }

    /// Whether the device has the unit with this number.
    #[must_use]
    pub const fn contains(self, number: u8) -> bool {
        number < Self::LIMIT && self.0 & 1 << number != 0
    }

    /// The numbers in rising order.
    pub fn numbers(self) -> impl Iterator<Item = u8> {
        (0..Self::LIMIT).filter(move |number| self.contains(*number))
    }
}

/// The number that 8 bytes stand for, in peripheral or flat form with a single level.
fn number(entry: &[u8]) -> Option<u32> {
    let (number, below) = match array_at::<8>(entry, 0)? {
        [0x00, low, below @ ..] => (u16::from(low), below),
        [high @ 0x40..=0x7f, low, below @ ..] => (u16::from_be_bytes([high & 0x3f, low]), below),
        _ => return None,
    };
    (below == [0; 6] && number < u16::from(Luns::LIMIT)).then_some(u32::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[[u8; 8]]) -> Vec<u8> {
        let mut bytes = ((entries.len() * 8) as u32).to_be_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(entries.iter().flatten());
        bytes
    }

    fn numbers(bytes: &[u8]) -> Vec<u8> {
        Luns::parse(bytes).map_or(Vec::new(), |luns| luns.numbers().collect())
    }

    #[test]
    fn peripheral_and_flat_numbers_are_read() {
        let bytes = list(&[
            [0, 3, 0, 0, 0, 0, 0, 0],
            [0x40, 1, 0, 0, 0, 0, 0, 0],
            [0; 8],
        ]);
        assert_eq!(numbers(&bytes), [0, 1, 3]);
    }

    #[test]
    fn well_known_units_deep_ones_and_large_numbers_are_left_out() {
        let bytes = list(&[
            [0xc1, 1, 0, 0, 0, 0, 0, 0],
            [0, 2, 0, 1, 0, 0, 0, 0],
            [0, 16, 0, 0, 0, 0, 0, 0],
            [0x41, 0, 0, 0, 0, 0, 0, 0],
            [1, 4, 0, 0, 0, 0, 0, 0],
            [0, 15, 0, 0, 0, 0, 0, 0],
        ]);
        assert_eq!(numbers(&bytes), [15]);
    }

    #[test]
    fn what_was_announced_and_did_not_come_is_not_there() {
        let bytes = list(&[[0; 8], [0, 1, 0, 0, 0, 0, 0, 0]]);
        assert_eq!(numbers(&bytes[..20]), [0]);
        assert_eq!(Luns::parse(&bytes[..15]), None);
        assert_eq!(Luns::parse(&[0, 0, 0, 8]), None);
        let mut short = bytes;
        short[3] = 8;
        assert_eq!(numbers(&short), [0]);
    }
}
