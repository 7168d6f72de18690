//! What a disk says of itself beyond what it takes to use it: its vital product data, page by page,
//! and what bring-up has read in its mode parameters.
//!
//! A part of bring-up. The list of pages is asked for first, then only what is listed and means
//! something here. A page that is refused or makes no sense is left out; a list that is no list ends
//! the questions.

use super::cdb::{Command, vital_product_data};
use super::vpd::{
    BlockCharacteristics, BlockLimits, Designators, PageCode, Provisioning, SerialNumber,
    SupportedPages, WorldWideName,
};
use crate::block::WriteCache;

/// Bytes asked of pages without a fixed length. Policy: what one byte of length can say, even.
const ALLOCATION: u16 = 252;

/// What the pages said; nothing where they were not asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Details {
    /// The serial number of the unit.
    pub serial: Option<SerialNumber>,
    /// A name that no other disk in the world has.
    pub name: Option<WorldWideName>,
    /// How much one command may move.
    pub limits: BlockLimits,
    /// How the medium moves.
    pub characteristics: BlockCharacteristics,
    /// What may be discarded, and how.
    pub provisioning: Option<Provisioning>,
    /// Whether writes end in a cache, as the caching page says.
    pub cache: WriteCache,
    /// Whether a write may be told to end on the medium.
    #[doc(alias = "DPOFUA")]
    pub takes_forced_writes: bool,
}

/// The pages in the order of the questions.
const PAGES: [PageCode; 6] = [
    PageCode::SUPPORTED_PAGES,
    PageCode::UNIT_SERIAL_NUMBER,
    PageCode::DEVICE_IDENTIFICATION,
    PageCode::BLOCK_LIMITS,
    PageCode::BLOCK_CHARACTERISTICS,
    PageCode::LOGICAL_BLOCK_PROVISIONING,
];

/// The questions, and the answers so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pages {
    /// Place of the page that is asked.
    place: usize,
    /// Bit n: the page at place n is listed.
    listed: u8,
    details: Details,
}

impl Pages {
    /// What was learnt.
    pub(super) fn details(&self) -> Details {
        self.details
    }

    /// The present question. `None` when there are no more.
    pub(super) fn command(&self) -> Option<Command> {
        let page = *PAGES.get(self.place)?;
        let allocation = match page {
            PageCode::BLOCK_LIMITS => BlockLimits::LENGTH,
            PageCode::BLOCK_CHARACTERISTICS => BlockCharacteristics::LENGTH,
            PageCode::LOGICAL_BLOCK_PROVISIONING => Provisioning::LENGTH,
            _ => ALLOCATION,
        };
        Some(vital_product_data(page, allocation))
    }

    /// Takes the answer to the present question, and goes on to the next.
    pub(super) fn answered(&mut self, bytes: &[u8]) {
        let details = &mut self.details;
        match PAGES.get(self.place) {
            Some(&PageCode::SUPPORTED_PAGES) => self.listed = list(bytes),
            Some(&PageCode::UNIT_SERIAL_NUMBER) => {
                let serial = SerialNumber::parse(bytes).ok();
                details.serial = serial.filter(|serial| !serial.is_empty());
            }
            Some(&PageCode::DEVICE_IDENTIFICATION) => {
                details.name = Designators::parse(bytes).ok().and_then(|page| page.name());
            }
            Some(&PageCode::BLOCK_LIMITS) => {
                details.limits = BlockLimits::parse(bytes).unwrap_or_default();
            }
            Some(&PageCode::BLOCK_CHARACTERISTICS) => {
                details.characteristics = BlockCharacteristics::parse(bytes).unwrap_or_default();
            }
            Some(_) => details.provisioning = Provisioning::parse(bytes).ok(),
            None => {}
        }
        self.pass();
    }

    /// Goes on to the next question without an answer.
    pub(super) fn pass(&mut self) {
        let is_listed = |place: &usize| self.listed & 1 << *place != 0;
        let rest = self.place + 1..PAGES.len();
        self.place = rest.into_iter().find(is_listed).unwrap_or(PAGES.len());
    }
}

/// Which of the pages are listed.
fn list(bytes: &[u8]) -> u8 {
    let Ok(supported) = SupportedPages::parse(bytes) else {
        return 0;
    };
    let mut listed = 0;
    for found in supported.pages() {
        if let Some(place) = PAGES.iter().position(|page| *page == found) {
            listed |= 1 << place;
        }
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every question by its page, and lists the pages that were asked.
    fn ask(answer: impl Fn(u8) -> Option<Vec<u8>>) -> (Vec<u8>, Details) {
        let mut pages = Pages::default();
        let mut asked = Vec::new();
        while let Some(command) = pages.command() {
            let page = command.cdb.to_bytes()[2];
            asked.push(page);
            match answer(page) {
                Some(bytes) => pages.answered(&bytes),
                None => pages.pass(),
            }
        }
        (asked, pages.details())
    }

    fn page(code: u8, body: &[u8]) -> Option<Vec<u8>> {
        Some([&[0, code, 0, body.len() as u8], body].concat())
    }

    #[test]
    fn only_what_is_listed_is_asked() {
        let (asked, details) = ask(|code| match code {
            0x00 => page(0x00, &[0x00, 0x80, 0xb0, 0xc0]),
            0x80 => page(0x80, b"  S123"),
            _ => page(code, &[0, 0, 0, 8, 0, 0, 1, 0]),
        });
        assert_eq!(asked, [0x00, 0x80, 0xb0]);
        assert_eq!(details.serial.unwrap().as_str(), "S123");
        assert_eq!(details.limits.maximum_transfer.unwrap().get(), 256);
        assert_eq!(details.name, None);
    }

    #[test]
    fn inquiry_data_in_place_of_a_list_and_a_refusal_end_the_questions() {
        let inquiry = b"\x00\x00\x06\x02\x1f\x00\x00\x00Vendor  Product         1.00";
        let (asked, details) = ask(|_| Some(inquiry.to_vec()));
        assert_eq!((asked, details), (vec![0x00], Details::default()));
        assert_eq!(ask(|_| None).0, [0x00]);
    }

    #[test]
    fn a_page_that_is_refused_or_another_costs_no_other() {
        let (asked, details) = ask(|code| match code {
            0x00 => page(0x00, &[0x00, 0x80, 0x83, 0xb1, 0xb2]),
            0x80 => None,
            0x83 => page(0x80, b"S123"),
            0xb1 => page(0xb1, &[0, 1]),
            _ => page(0xb2, &[0, 0x80, 1, 0]),
        });
        assert_eq!(asked, [0x00, 0x80, 0x83, 0xb1, 0xb2]);
        assert_eq!((details.serial, details.name), (None, None));
        assert!(details.provisioning.unwrap().unmap);
    }
}
