//! Short texts that devices give: vendor, product, serial number.
//!
//! Parsers make [`Text`] once; after that it is printable ASCII, whatever the device wrote, and
//! safe for consoles and comparisons. It is a copy, so that the transfer buffer can be used again.

use core::fmt;

/// Up to `N` bytes of printable ASCII without blanks at either end.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<const N: usize> {
    /// Printable ASCII up to `length`, zero behind.
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    /// No text.
    pub const EMPTY: Self = Self {
        bytes: [0; N],
        length: 0,
    };

    /// The text in `bytes` up to the first NUL, trimmed, at most `N` bytes of it. What is not
    /// printable ASCII becomes `?`.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut text = Self::EMPTY;
        let end = bytes.iter().position(|byte| *byte == 0);
        let trimmed = bytes
            .get(..end.unwrap_or(bytes.len()))
            .unwrap_or_default()
            .trim_ascii();
        for (slot, byte) in text.bytes.iter_mut().zip(trimmed) {
            *slot = match byte {
                b' '..=b'~' => *byte,
                _ => b'?',
            };
            text.length += 1;
        }
        text.trim_end();
        text
    }

    /// The same from characters.
    #[must_use]
    pub fn from_chars(characters: impl Iterator<Item = char>) -> Self {
        let mut bytes = [0; N];
        let mut length = 0;
        let visible = characters.skip_while(|character| character.is_ascii_whitespace());
        for (slot, character) in bytes.iter_mut().zip(visible) {
            *slot = u8::try_from(character).unwrap_or(b'?');
            length += 1;
        }
        Self::from_bytes(bytes.get(..length).unwrap_or_default())
    }

    /// Cutting to `N` bytes may have left a blank at the end.
    fn trim_end(&mut self) {
        self.length = self.as_str().trim_ascii_end().len();
        for slot in self.bytes.iter_mut().skip(self.length) {
            *slot = 0;
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        // Printable ASCII is UTF-8: the default is never taken.
        core::str::from_utf8(bytes).unwrap_or_default()
    }

    /// Whether the device gave no text.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_at_both_ends_and_everything_behind_a_nul_are_dropped() {
        assert_eq!(Text::<8>::from_bytes(b"  WD  ").as_str(), "WD");
        assert_eq!(Text::<8>::from_bytes(b"WD\0junk").as_str(), "WD");
        assert!(Text::<8>::from_bytes(b"    ").is_empty());
    }

    #[test]
    fn what_is_not_printable_becomes_a_question_mark() {
        assert_eq!(Text::<8>::from_bytes(b"A\x1b[\xff").as_str(), "A?[?");
    }

    #[test]
    fn characters_are_taken_as_bytes_are() {
        assert_eq!(Text::<4>::from_chars("  ABCDE".chars()).as_str(), "ABCD");
        assert_eq!(
            Text::<8>::from_chars("\u{20ac}5 \u{e9}".chars()).as_str(),
            "?5 ?"
        );
        assert!(Text::<8>::from_chars("".chars()).is_empty());
    }

    #[test]
    fn long_texts_are_cut_and_equal_texts_are_equal() {
        assert_eq!(Text::<4>::from_bytes(b"ABC DEF").as_str(), "ABC");
        assert_eq!(Text::<4>::from_bytes(b"ABC "), Text::from_bytes(b" ABC"));
        assert_eq!(Text::<4>::from_bytes(b"ABC D"), Text::from_bytes(b"ABC"));
    }
}
