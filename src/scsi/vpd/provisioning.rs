//! Page B2: what may be discarded, and how (SBC-3, Logical Block Provisioning VPD page).

use super::{PageCode, VpdFault, body};
use crate::bytes::u8_at;

/// How the disk provides its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProvisioningType {
    /// All blocks have their place, or it is not said.
    Full,
    /// There is a place for every block, taken when it is written: most SSDs.
    Resource,
    /// There may be fewer places than blocks.
    Thin,
}

/// What the disk says about discarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provisioning {
    /// It knows UNMAP.
    #[doc(alias = "LBPU")]
    pub unmap: bool,
    /// WRITE SAME (16) can discard.
    #[doc(alias = "LBPWS")]
    pub write_same_16: bool,
    /// WRITE SAME (10) can discard.
    #[doc(alias = "LBPWS10")]
    pub write_same_10: bool,
    /// Discarded blocks read as zeros.
    #[doc(alias = "LBPRZ")]
    pub reads_zero: bool,
    /// How it provides its blocks.
    pub kind: ProvisioningType,
}

impl Provisioning {
    /// Bytes to ask for.
    pub const LENGTH: u16 = 64;

    /// Reads the page.
    ///
    /// # Errors
    /// [`VpdFault::TooShort`] when the flags did not come, and the other [`VpdFault`]s.
    pub fn parse(bytes: &[u8]) -> Result<Self, VpdFault> {
        let body = body(bytes, PageCode::LOGICAL_BLOCK_PROVISIONING)?;
        let flags = u8_at(body, 1).ok_or(VpdFault::TooShort { have: bytes.len() })?;
        Ok(Self {
            unmap: flags & 0x80 != 0,
            write_same_16: flags & 0x40 != 0,
            write_same_10: flags & 0x20 != 0,
            // Three bits: xx1 zeros, 010 a pattern of the vendor's, 000 anything.
            reads_zero: flags & 0x04 != 0,
            kind: match u8_at(body, 2).unwrap_or_default() & 0x07 {
                1 => ProvisioningType::Resource,
                2 => ProvisioningType::Thin,
                _ => ProvisioningType::Full,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ways_to_discard_are_read() {
        let provisioning = Provisioning::parse(&[0, 0xb2, 0, 4, 0, 0xc4, 0x02, 0]).unwrap();
        assert_eq!(
            provisioning,
            Provisioning {
                unmap: true,
                write_same_16: true,
                write_same_10: false,
                reads_zero: true,
                kind: ProvisioningType::Thin,
            }
        );
    }

    #[test]
    fn a_page_without_flags_is_too_short() {
        assert_eq!(
            Provisioning::parse(&[0, 0xb2, 0, 4, 0]),
            Err(VpdFault::TooShort { have: 5 })
        );
    }
}
