//! String descriptors: UTF-16LE text, or the list of languages (USB 2.0 §9.6.7).

use core::fmt;

use super::{DescriptorFault, DescriptorKind};
use crate::bytes::u8_at;
use crate::text::Text;

/// A view of a string descriptor's code units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringDescriptor<'a> {
    units: &'a [[u8; 2]],
}

impl<'a> StringDescriptor<'a> {
    /// Reads the descriptor: as many whole code units as `bLength` announces *and* came.
    ///
    /// # Errors
    /// [`DescriptorFault::TooShort`] below 2 bytes, [`DescriptorFault::WrongKind`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DescriptorFault> {
        DescriptorFault::checked(bytes, DescriptorKind::STRING, 2, Self::read)
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        let text = bytes.get(2..)?;
        let announced_text = usize::from(u8_at(bytes, 0)?).saturating_sub(2);
        let there = text.get(..announced_text).unwrap_or(text);
        let (units, _odd_byte) = there.as_chunks::<2>();
        Some(Self { units })
    }

    fn units(self) -> impl Iterator<Item = u16> + use<'a> {
        self.units.iter().map(|unit| u16::from_le_bytes(*unit))
    }

    /// The text in printable ASCII, as much of it as `N` bytes hold.
    #[must_use]
    pub fn text<const N: usize>(self) -> Text<N> {
        Text::from_utf16(self.units)
    }

    /// The text, up to the first NUL: some firmware pads with them. Surrogates without a partner
    /// become U+FFFD.
    pub fn chars(self) -> impl Iterator<Item = char> + use<'a> {
        char::decode_utf16(self.units().take_while(|unit| *unit != 0))
            .map(|decoded| decoded.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Of string zero: the languages that the device has strings in. 0x0409 is English.
    #[doc(alias = "wLANGID")]
    pub fn languages(self) -> impl Iterator<Item = u16> + use<'a> {
        self.units()
    }
}

impl fmt::Display for StringDescriptor<'_> {
    /// The text, with control characters shown as U+FFFD: it goes to consoles.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;

        for character in self.chars() {
            let shown = if character.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                character
            };
            formatter.write_char(shown)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_read_as(bytes: &[u8], text: &str) -> bool {
        StringDescriptor::parse(bytes)
            .unwrap()
            .chars()
            .eq(text.chars())
    }

    #[test]
    fn text_is_decoded_and_ends_at_padding() {
        assert!(is_read_as(&[8, 3, b'U', 0, 0xe9, 0, 0, 0], "U\u{e9}"));
        assert!(is_read_as(&[6, 3, 0x3d, 0xd8, 0x00, 0xde], "\u{1f600}"));
    }

    #[test]
    fn half_pairs_and_half_units_do_no_harm() {
        assert!(is_read_as(&[7, 3, 0x00, 0xd8, b'A', 0, b'B'], "\u{fffd}A"));
    }

    #[test]
    fn a_length_that_lies_is_clamped_to_what_came() {
        assert!(is_read_as(&[255, 3, b'A', 0], "A"));
        assert!(is_read_as(&[0, 3, b'A', 0], ""));
    }

    #[test]
    fn languages_are_listed() {
        let descriptor = StringDescriptor::parse(&[6, 3, 0x09, 0x04, 0x07, 0x04]).unwrap();
        assert!(descriptor.languages().eq([0x0409, 0x0407]));
    }
}
