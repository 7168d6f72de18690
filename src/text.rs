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
        text.length = keep(&mut text.bytes, bytes);
        text
    }

    /// The same from code units of UTF-16. A surrogate pair becomes one `?`.
    #[must_use]
    pub fn from_utf16(units: &[[u8; 2]]) -> Self {
        let mut text = Self::EMPTY;
        text.length = keep_utf16(&mut text.bytes, units);
        text
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = self.as_bytes();
        // Printable ASCII is UTF-8: the default is never taken.
        core::str::from_utf8(bytes).unwrap_or_default()
    }

    /// The text, in bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Whether the device gave no text.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// Fills `into`, which is zero, with a text, and answers how long it is. Of every length, so that
/// there is one of it in the program.
#[inline(never)]
fn keep(into: &mut [u8], text: &[u8]) -> usize {
    let mut length = 0;
    let mut end = 0;
    for byte in text.iter().take_while(|byte| **byte != 0) {
        let is_blank = byte.is_ascii_whitespace();
        if is_blank && length == 0 {
            continue;
        }
        let Some(slot) = into.get_mut(length) else {
            break;
        };
        *slot = match byte {
            b' '..=b'~' => *byte,
            _ => b'?',
        };
        length += 1;
        if !is_blank {
            end = length;
        }
    }
    into.iter_mut().skip(end).for_each(|slot| *slot = 0);
    end
}

/// The most code units that a string descriptor has.
const UNITS: usize = 126;

#[inline(never)]
fn keep_utf16(into: &mut [u8], units: &[[u8; 2]]) -> usize {
    let mut narrow = [0; UNITS];
    let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
    let is_second_half = |unit: &u16| (0xdc00..=0xdfff).contains(unit);
    let characters = units.filter(|unit| !is_second_half(unit));
    for (slot, unit) in narrow.iter_mut().zip(characters) {
        *slot = u8::try_from(unit).unwrap_or(b'?');
    }
    keep(into, &narrow)
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

    fn from_utf16(text: &str) -> Text<4> {
        let units: Vec<_> = text.encode_utf16().map(u16::to_le_bytes).collect();
        Text::from_utf16(&units)
    }

    #[test]
    fn code_units_are_taken_as_bytes_are() {
        assert_eq!(from_utf16("  ABCDE").as_str(), "ABCD");
        assert_eq!(from_utf16("\u{20ac}5 \u{e9}").as_str(), "?5 ?");
        assert_eq!(from_utf16("A\u{1f600}B").as_str(), "A?B");
        assert_eq!(from_utf16("AB\0C").as_str(), "AB");
        assert!(from_utf16("").is_empty());
    }

    #[test]
    fn long_texts_are_cut_and_equal_texts_are_equal() {
        assert_eq!(Text::<4>::from_bytes(b"ABC DEF").as_str(), "ABC");
        assert_eq!(Text::<4>::from_bytes(b"ABC "), Text::from_bytes(b" ABC"));
        assert_eq!(Text::<4>::from_bytes(b"ABC D"), Text::from_bytes(b"ABC"));
    }
}
