//! Page 80: the serial number (SPC-4, Unit Serial Number VPD page).

use super::{PageCode, VpdFault, body};
use crate::text::Text;

/// The serial number, up to 32 characters of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SerialNumber(Text<32>);

impl SerialNumber {
    /// Reads the page. It may hold an empty number.
    ///
    /// # Errors
    /// [`VpdFault`].
    pub fn parse(bytes: &[u8]) -> Result<Self, VpdFault> {
        body(bytes, PageCode::UNIT_SERIAL_NUMBER).map(|text| Self(Text::from_bytes(text)))
    }

    /// The number; empty where the device has none.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether the page has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_trimmed() {
        let serial = SerialNumber::parse(b"\x00\x80\x00\x0a  WD-12345  junk").unwrap();
        assert_eq!(serial.as_str(), "WD-12345");
    }
}
