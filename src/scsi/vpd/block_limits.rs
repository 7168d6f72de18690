//! Page B0: how much one command may move or discard (SBC-3, Block Limits VPD page).

use core::num::{NonZeroU16, NonZeroU32, NonZeroU64};

use super::{PageCode, VpdFault, body};
use crate::bytes::{u16_be_at, u32_be_at, u64_be_at};

/// The limits that the disk gives, in blocks. `None` is "not said": no limit known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockLimits {
    /// Most blocks that one command may move.
    pub maximum_transfer: Option<NonZeroU32>,
    /// Most blocks that one command moves without going slower.
    pub optimal_transfer: Option<NonZeroU32>,
    /// Transfers that are a multiple of so many blocks go best.
    pub transfer_granularity: Option<NonZeroU16>,
    /// Most blocks that one UNMAP may discard.
    pub maximum_unmap: Option<NonZeroU32>,
    /// Most ranges that one UNMAP may list.
    pub maximum_unmap_ranges: Option<NonZeroU32>,
    /// Only ranges that are a multiple of so many blocks are discarded.
    pub unmap_granularity: Option<NonZeroU32>,
    /// First block at which a granule starts.
    pub unmap_alignment: Option<u32>,
    /// Most blocks that one WRITE SAME may write.
    pub maximum_write_same: Option<NonZeroU64>,
}

impl BlockLimits {
    /// Bytes to ask for.
    pub const LENGTH: u16 = 64;

    /// Reads the page; older disks send only its first fields.
    ///
    /// # Errors
    /// [`VpdFault`].
    pub fn parse(bytes: &[u8]) -> Result<Self, VpdFault> {
        // The standard counts from the page's first byte; the body starts at 4.
        let body = body(bytes, PageCode::BLOCK_LIMITS)?;
        let u32_at = |offset| u32_be_at(body, offset).and_then(NonZeroU32::new);
        Ok(Self {
            transfer_granularity: u16_be_at(body, 2).and_then(NonZeroU16::new),
            maximum_transfer: u32_at(4),
            optimal_transfer: u32_at(8),
            maximum_unmap: u32_at(16),
            maximum_unmap_ranges: u32_at(20),
            unmap_granularity: u32_at(24),
            unmap_alignment: u32_be_at(body, 28).and_then(alignment),
            maximum_write_same: u64_be_at(body, 32).and_then(NonZeroU64::new),
        })
    }
}

/// Bit 31 says that the other 31 bits mean something.
const fn alignment(raw: u32) -> Option<u32> {
    if raw & 0x8000_0000 == 0 {
        None
    } else {
        Some(raw & 0x7fff_ffff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_read_from_its_place() {
        let mut page = [0; 64];
        page[1] = 0xb0;
        page[3] = 60;
        page[6..8].copy_from_slice(&8_u16.to_be_bytes());
        page[8..12].copy_from_slice(&2048_u32.to_be_bytes());
        page[12..16].copy_from_slice(&1024_u32.to_be_bytes());
        page[20..24].copy_from_slice(&0x0040_0000_u32.to_be_bytes());
        page[24..28].copy_from_slice(&1_u32.to_be_bytes());
        page[28..32].copy_from_slice(&16_u32.to_be_bytes());
        page[32..36].copy_from_slice(&0x8000_0007_u32.to_be_bytes());
        page[36..44].copy_from_slice(&0x1_0000_0000_u64.to_be_bytes());
        assert_eq!(
            BlockLimits::parse(&page),
            Ok(BlockLimits {
                maximum_transfer: NonZeroU32::new(2048),
                optimal_transfer: NonZeroU32::new(1024),
                transfer_granularity: NonZeroU16::new(8),
                maximum_unmap: NonZeroU32::new(0x0040_0000),
                maximum_unmap_ranges: NonZeroU32::new(1),
                unmap_granularity: NonZeroU32::new(16),
                unmap_alignment: Some(7),
                maximum_write_same: NonZeroU64::new(0x1_0000_0000),
            })
        );
    }

    #[test]
    fn zero_means_not_said_and_so_does_a_field_that_did_not_come() {
        let page = [0, 0xb0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
        let limits = BlockLimits::parse(&page).unwrap();
        assert_eq!(limits.maximum_transfer, None);
        assert_eq!(limits.optimal_transfer, NonZeroU32::new(1024));
        assert_eq!(limits.maximum_unmap, None);
        assert_eq!(limits.unmap_alignment, None);
    }
}
