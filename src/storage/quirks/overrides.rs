//! The run-time string: `VID:PID:letters[,VID:PID:letters...]`, as in Linux's `usb-storage.quirks`.
//!
//! Ids are hexadecimal, with or without `0x`; letters count in either case; the first entry for a
//! device counts. What an entry says *replaces* what the tables say, as far as letters reach: an
//! entry without letters clears it. Any length will do. A bad entry is left out alone and told of
//! with its position; an unknown letter is left out alone, as Linux does, and told of too.

use core::fmt;

use super::Quirks;

/// A run-time string.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overrides<'a> {
    text: &'a str,
}

/// An entry of the string.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Override {
    /// `idVendor`.
    pub vendor: u16,
    /// `idProduct`.
    pub product: u16,
    /// What its letters stand for.
    pub quirks: Quirks,
    /// Bytes of the string before it.
    pub position: usize,
    /// Its first letter that stands for nothing, by its place in the string.
    unknown: Option<usize>,
}

/// What is wrong with an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// No colon behind the vendor, or behind the product. The entry is left out.
    NoColon,
    /// An id that is not hexadecimal, or has more than 16 bits. The entry is left out.
    Id,
    /// A letter that stands for nothing. The letter is left out.
    UnknownLetter,
}

/// What is wrong with a string, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Bytes of the string before it.
    pub position: usize,
    /// What.
    pub flaw: Flaw,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.flaw {
            Flaw::NoColon => "an entry is VID:PID:letters, with two colons; it is left out",
            Flaw::Id => "an id has at most four hexadecimal digits; the entry is left out",
            Flaw::UnknownLetter => "no policy has this letter; it is left out",
        };
        write!(
            formatter,
            "quirk string, position {}: {what}",
            self.position
        )
    }
}

impl<'a> Overrides<'a> {
    /// No overrides.
    pub const NONE: Self = Self { text: "" };

    /// The string, without `usb-storage.quirks=`. It is read anew at each look-up.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { text }
    }

    /// The first entry for a device.
    #[must_use]
    pub fn find(&self, vendor: u16, product: u16) -> Option<Override> {
        let mut good = self.entries().filter_map(Result::ok);
        good.find(|entry| (entry.vendor, entry.product) == (vendor, product))
    }

    /// Every entry in order, or what is wrong with it.
    pub fn entries(&self) -> impl Iterator<Item = Result<Override, Problem>> + use<'a> {
        let mut position = 0;
        let pieces = self.text.as_bytes().split(|byte| *byte == b',');
        pieces.filter_map(move |piece| {
            let at = position;
            position += piece.len() + 1;
            let blanks = piece.len() - piece.trim_ascii_start().len();
            let entry = piece.trim_ascii();
            (!entry.is_empty()).then(|| parse(entry, at + blanks))
        })
    }

    /// Everything that is wrong with the string, in order.
    pub fn problems(&self) -> impl Iterator<Item = Problem> + use<'a> {
        self.entries().filter_map(|entry| match entry {
            Err(problem) => Some(problem),
            Ok(entry) => entry.unknown.map(|position| Problem {
                position,
                flaw: Flaw::UnknownLetter,
            }),
        })
    }
}

fn parse(entry: &[u8], position: usize) -> Result<Override, Problem> {
    let no_colon = Problem {
        position,
        flaw: Flaw::NoColon,
    };
    let mut parts = entry.splitn(3, |byte| *byte == b':');
    let (Some(vendor), Some(product), Some(letters)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(no_colon);
    };
    let product_at = position + vendor.len() + 1;
    let letters_at = product_at + product.len() + 1;
    let mut quirks = Quirks::empty();
    let mut unknown = None;
    for (place, letter) in letters.iter().enumerate() {
        match Quirks::from_letter(*letter) {
            Some(quirk) => quirks |= quirk,
            None => unknown = unknown.or(Some(letters_at + place)),
        }
    }
    Ok(Override {
        vendor: id(vendor, position)?,
        product: id(product, product_at)?,
        quirks,
        position,
        unknown,
    })
}

fn id(text: &[u8], position: usize) -> Result<u16, Problem> {
    let bare = match text {
        [b'0', b'x' | b'X', bare @ ..] => bare,
        _ => text,
    };
    let problem = Problem {
        position,
        flaw: Flaw::Id,
    };
    let mut id = if bare.is_empty() { Err(problem) } else { Ok(0) };
    for byte in bare {
        let digit = char::from(*byte).to_digit(16);
        id = match (id, digit) {
            (Ok(id @ 0..=0xfff), Some(digit)) => Ok(id << 4 | digit as u16),
            _ => Err(problem),
        };
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<(usize, Flaw)> {
        let all = Overrides::new(text).problems();
        all.map(|problem| (problem.position, problem.flaw))
            .collect()
    }

    #[test]
    fn ids_may_have_a_prefix_and_letters_either_case() {
        let overrides = Overrides::new("152d:0578:u,0x2537:0X1066:UT");
        let first = overrides.find(0x152d, 0x0578).unwrap();
        assert_eq!((first.quirks, first.position), (Quirks::IGNORE_UAS, 0));
        let second = overrides.find(0x2537, 0x1066).unwrap();
        assert_eq!(second.quirks, Quirks::IGNORE_UAS | Quirks::NO_ATA_1X);
        assert_eq!(second.position, 12);
        assert_eq!(overrides.find(0x2537, 0x1068), None);
    }

    #[test]
    fn the_first_entry_for_a_device_counts_and_one_without_letters_is_one() {
        let overrides = Overrides::new("1:2:,1:2:u,001:0002:m");
        assert_eq!(overrides.find(1, 2).unwrap().quirks, Quirks::empty());
    }

    #[test]
    fn a_bad_entry_is_told_of_with_its_position_and_left_out_alone() {
        let text = "152d:0578,17g4c:55aa:u,174c:55aa:u,12345:1:u,+1:2:u,:1:u,152d:1561:u";
        let wrong = [
            (0, Flaw::NoColon),
            (10, Flaw::Id),
            (35, Flaw::Id),
            (45, Flaw::Id),
            (52, Flaw::Id),
        ];
        assert_eq!(problems(text), wrong);
        let overrides = Overrides::new(text);
        assert!(overrides.find(0x174c, 0x55aa).is_some());
        assert!(overrides.find(0x152d, 0x1561).is_some());
        assert_eq!(overrides.find(0x152d, 0x0578), None);
        assert_eq!(problems("1:22222:u"), [(2, Flaw::Id)]);
    }

    #[test]
    fn an_unknown_letter_is_told_of_and_the_others_count() {
        assert_eq!(problems("1:2:uzq"), [(5, Flaw::UnknownLetter)]);
        assert_eq!(
            Overrides::new("1:2:uz").find(1, 2).unwrap().quirks,
            Quirks::IGNORE_UAS
        );
    }

    #[test]
    fn blanks_and_empty_pieces_are_passed_over() {
        let overrides = Overrides::new(" ,, 1:2:u ,\n3:4:s,");
        assert_eq!(overrides.problems().count(), 0);
        assert_eq!(overrides.find(1, 2).unwrap().position, 4);
        assert!(overrides.find(3, 4).is_some());
        assert_eq!(Overrides::NONE.entries().count(), 0);
    }

    #[test]
    fn more_than_127_characters_are_read_to_the_end() {
        let mut text = "174c:55aa:u,".repeat(40);
        text.push_str("0634:5605:u");
        assert!(text.len() > 255);
        assert!(Overrides::new(&text).find(0x0634, 0x5605).is_some());
    }
}
