//! Page 00: which pages the device has (SPC-4, Supported VPD Pages).

use super::{PageCode, VpdFault, body};

/// A view of the list of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupportedPages<'a> {
    codes: &'a [u8],
}

impl<'a> SupportedPages<'a> {
    /// Reads the page.
    ///
    /// # Errors
    /// [`VpdFault::NotAList`] when the list does not begin with page 00. It must be in rising
    /// order; of that, only the first place is checked (Policy: enough to find out a device that
    /// sends its standard INQUIRY data, which have an additional length there).
    pub fn parse(bytes: &'a [u8]) -> Result<Self, VpdFault> {
        let codes = body(bytes, PageCode::SUPPORTED_PAGES)?;
        match codes.first() {
            Some(0x00) => Ok(Self { codes }),
            _ => Err(VpdFault::NotAList),
        }
    }

    /// The pages that the device has.
    pub fn pages(&self) -> impl Iterator<Item = PageCode> + use<'a> {
        self.codes.iter().map(|code| PageCode(*code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_listed_are_there() {
        let pages = SupportedPages::parse(&[0, 0, 0, 3, 0x00, 0x80, 0xb0, 0xb2]).unwrap();
        let pages: Vec<_> = pages.pages().collect();
        let listed = [
            PageCode::SUPPORTED_PAGES,
            PageCode::UNIT_SERIAL_NUMBER,
            PageCode::BLOCK_LIMITS,
        ];
        assert_eq!(pages, listed);
    }

    #[test]
    fn standard_inquiry_data_are_not_taken_for_a_list() {
        let inquiry = b"\x00\x00\x06\x02\x1f\x00\x00\x00Vendor  Product         1.00";
        assert_eq!(SupportedPages::parse(inquiry), Err(VpdFault::NotAList));
        assert_eq!(
            SupportedPages::parse(&[0, 0, 0, 0]),
            Err(VpdFault::NotAList)
        );
    }
}
