//! Vital product data: pages of INQUIRY that say more about a disk (SPC-4 §7.8, SBC-3 §6.5).
//!
//! The disk driver asks for [`SupportedPages`] where that is safe, then only for what is listed.
//! Each page is a view or a small copy of what came; a device that answers a page with its
//! standard INQUIRY data, as some do, is found out by [`VpdFault`].

mod block_limits;
mod characteristics;
mod designators;
mod provisioning;
mod serial;
mod supported;

pub use block_limits::BlockLimits;
pub use characteristics::{BlockCharacteristics, Rotation};
pub use designators::{Authority, Designators, WorldWideName};
pub use provisioning::{Provisioning, ProvisioningType};
pub use serial::SerialNumber;
pub use supported::SupportedPages;

use crate::bytes::{u8_at, u16_be_at};

/// Which page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageCode(pub u8);

impl PageCode {
    /// Which pages there are.
    pub const SUPPORTED_PAGES: Self = Self(0x00);
    /// The serial number.
    pub const UNIT_SERIAL_NUMBER: Self = Self(0x80);
    /// World-wide names.
    pub const DEVICE_IDENTIFICATION: Self = Self(0x83);
    /// How much one command may move or discard.
    pub const BLOCK_LIMITS: Self = Self(0xb0);
    /// How the medium moves.
    pub const BLOCK_CHARACTERISTICS: Self = Self(0xb1);
    /// What may be discarded, and how.
    pub const LOGICAL_BLOCK_PROVISIONING: Self = Self(0xb2);
}

/// Why a page cannot be used. Go on as if the device did not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VpdFault {
    /// Fewer bytes came than the page must have.
    TooShort {
        /// Bytes that came.
        have: usize,
    },
    /// Another page came than was asked for.
    WrongPage {
        /// The one that came.
        found: PageCode,
    },
    /// The list of pages does not begin with page 00, as it must: most likely standard INQUIRY
    /// data came instead. Ask for no page at all.
    NotAList,
}

/// The bytes behind the header of 4, within both the announced length and what came.
fn body(bytes: &[u8], page: PageCode) -> Result<&[u8], VpdFault> {
    let too_short = VpdFault::TooShort { have: bytes.len() };
    let found = PageCode(u8_at(bytes, 1).ok_or(too_short)?);
    if found != page {
        return Err(VpdFault::WrongPage { found });
    }
    let announced = usize::from(u16_be_at(bytes, 2).ok_or(too_short)?);
    let behind = bytes.get(4..).ok_or(too_short)?;
    Ok(behind.get(..announced).unwrap_or(behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_what_was_announced_and_came() {
        let page = PageCode::BLOCK_LIMITS;
        assert_eq!(body(&[0, 0xb0, 0, 2, 7, 8, 9], page), Ok(&[7, 8][..]));
        assert_eq!(body(&[0, 0xb0, 0, 60, 7, 8, 9], page), Ok(&[7, 8, 9][..]));
        assert_eq!(body(&[0, 0xb0, 0, 0], page), Ok(&[][..]));
    }

    #[test]
    fn another_page_or_half_a_header_is_a_fault() {
        let page = PageCode::BLOCK_LIMITS;
        assert_eq!(
            body(&[0, 0x80, 2, 2, 0x1f], page),
            Err(VpdFault::WrongPage {
                found: PageCode(0x80)
            })
        );
        assert_eq!(
            body(&[0, 0xb0, 0], page),
            Err(VpdFault::TooShort { have: 3 })
        );
        assert_eq!(body(&[], page), Err(VpdFault::TooShort { have: 0 }));
    }
}
