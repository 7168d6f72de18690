//! Mode parameters: whether a disk may be written, and whether it has a write cache
//! (SPC-4, mode parameter list; SBC-3 §6.4).
//!
//! The disk driver reads them once for each medium. Tolerant on purpose: devices get these answers
//! wrong in every way, and a disk of which nothing is known is taken as writable, with a write-back
//! cache.

use super::cdb::ModePage;
use crate::bytes::{array_at, u8_at, u16_be_at};

/// A view of the mode parameters that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeParameters<'a> {
    device_specific: u8,
    /// Behind header and block descriptors, within both the announced length and what came.
    pages: &'a [u8],
}

/// The two bits of the caching page that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// Writes may end before they are on the medium.
    #[doc(alias = "WCE")]
    pub write_back: bool,
    /// Reads always come from the medium.
    #[doc(alias = "RCD")]
    pub read_cache_disabled: bool,
}

impl<'a> ModeParameters<'a> {
    /// Reads MODE SENSE (6) data. `None` when not even the header of 4 bytes came: nothing is
    /// known.
    #[must_use]
    pub fn parse_6(bytes: &'a [u8]) -> Option<Self> {
        let [length, _medium, device_specific, block_descriptors] = array_at(bytes, 0)?;
        let header = Header {
            length: 4,
            announced: 1 + usize::from(length),
            block_descriptors: usize::from(block_descriptors),
        };
        Some(header.parameters(bytes, device_specific))
    }

    /// Reads MODE SENSE (10) data. `None` when not even the header of 8 bytes came: nothing is
    /// known.
    #[must_use]
    pub fn parse_10(bytes: &'a [u8]) -> Option<Self> {
        let header = Header {
            length: 8,
            announced: 2 + usize::from(u16_be_at(bytes, 0)?),
            block_descriptors: usize::from(u16_be_at(bytes, 6)?),
        };
        Some(header.parameters(bytes, u8_at(bytes, 3)?))
    }

    /// Whether the medium refuses to be written.
    #[doc(alias = "WP")]
    #[must_use]
    pub const fn is_write_protected(&self) -> bool {
        self.device_specific & 0x80 != 0
    }

    /// Whether the disk says that it takes forced unit access.
    #[doc(alias = "DPOFUA")]
    #[must_use]
    pub const fn takes_forced_unit_access(&self) -> bool {
        self.device_specific & 0x10 != 0
    }

    /// The caching page, if it is among those that came (SBC-3 §6.4.5).
    #[must_use]
    pub fn caching(&self) -> Option<Caching> {
        let page = Pages { rest: self.pages }
            .find(|page| page.first().map(|code| code & 0x3f) == Some(ModePage::Caching.code()))?;
        let flags = u8_at(page, 2)?;
        Some(Caching {
            write_back: flags & 0x04 != 0,
            read_cache_disabled: flags & 0x01 != 0,
        })
    }
}

/// What both headers say about where the pages are, in bytes.
struct Header {
    length: usize,
    announced: usize,
    block_descriptors: usize,
}

impl Header {
    fn parameters<'a>(&self, bytes: &'a [u8], device_specific: u8) -> ModeParameters<'a> {
        let there = bytes.get(..self.announced).unwrap_or(bytes);
        let pages = there.get(self.length + self.block_descriptors..);
        ModeParameters {
            device_specific,
            pages: pages.unwrap_or_default(),
        }
    }
}

/// Walks mode pages: code, length, so many bytes; with a subpage, code, subpage, 16 bits of
/// length. A page that is cut off is the last.
struct Pages<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Pages<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let [code, length] = array_at(self.rest, 0)?;
        let length = if code & 0x40 == 0 {
            2 + usize::from(length)
        } else {
            4 + usize::from(u16_be_at(self.rest, 2)?)
        };
        let (page, rest) = self
            .rest
            .split_at_checked(length)
            .unwrap_or((self.rest, &[]));
        self.rest = rest;
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_protection_is_in_both_headers() {
        assert!(
            ModeParameters::parse_6(&[3, 0, 0x80, 0])
                .unwrap()
                .is_write_protected()
        );
        assert!(
            !ModeParameters::parse_6(&[3, 0, 0x10, 0])
                .unwrap()
                .is_write_protected()
        );
        let ten = ModeParameters::parse_10(&[0, 6, 0, 0x90, 0, 0, 0, 0]).unwrap();
        assert!(ten.is_write_protected() && ten.takes_forced_unit_access());
    }

    #[test]
    fn a_header_that_did_not_come_whole_says_nothing() {
        assert_eq!(ModeParameters::parse_6(&[3, 0, 0x80]), None);
        assert_eq!(ModeParameters::parse_10(&[0, 6, 0, 0x80, 0, 0, 0]), None);
    }

    #[test]
    fn the_caching_page_is_found_behind_block_descriptors_and_other_pages() {
        let bytes = [
            23, 0, 0, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0x01, 2, 0, 0, 0x88, 6, 0x04, 0, 0, 0, 0, 0,
        ];
        let caching = ModeParameters::parse_6(&bytes).unwrap().caching().unwrap();
        assert!(caching.write_back && !caching.read_cache_disabled);
    }

    #[test]
    fn a_caching_page_with_a_subpage_is_passed_over_by_its_long_length() {
        let bytes = [15, 0, 0, 0, 0x41, 1, 0, 4, 8, 1, 8, 1, 0x08, 2, 0x01, 0];
        let caching = ModeParameters::parse_6(&bytes).unwrap().caching().unwrap();
        assert!(!caching.write_back && caching.read_cache_disabled);
    }

    #[test]
    fn what_lies_behind_the_announced_length_is_no_page() {
        let bytes = [3, 0, 0, 0, 0x08, 1, 0x04];
        assert_eq!(ModeParameters::parse_6(&bytes).unwrap().caching(), None);
    }

    #[test]
    fn case_9_an_answer_of_16_bytes_to_192_is_read_as_far_as_it_goes() {
        let bytes = [0xbf, 0, 0x80, 0, 0x08, 18, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let parameters = ModeParameters::parse_6(&bytes).unwrap();
        assert!(parameters.is_write_protected());
        assert!(parameters.caching().unwrap().write_back);
    }
}
