//! READ and WRITE, each with 10 and 16 bytes (SBC-3, operation codes 28, 88, 2A, 8A).

use super::{Cdb, Command, DataPhase};
use crate::scsi::capacity::BlockLength;

/// Blocks to move: consecutive, and no more than one command can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    lba: u64,
    blocks: u32,
    bytes: u32,
}

impl Extent {
    /// `blocks` blocks of `block_length` from block `lba` on. `None` where they would be 4 GiB
    /// or more, or end beyond the last number that a block can have.
    #[must_use]
    pub const fn new(lba: u64, blocks: u32, block_length: BlockLength) -> Option<Self> {
        match (
            lba.checked_add(blocks as u64),
            blocks.checked_mul(block_length.bytes()),
        ) {
            (Some(_end), Some(bytes)) => Some(Self { lba, blocks, bytes }),
            _ => None,
        }
    }

    /// Number of the first block.
    #[must_use]
    pub const fn lba(self) -> u64 {
        self.lba
    }

    /// How many blocks.
    #[must_use]
    pub const fn blocks(self) -> u32 {
        self.blocks
    }

    /// How many bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.bytes
    }

    /// First block and count for a 10-byte command, if the extent fits one: it ends at or below
    /// block 2^32 and has at most 65,535 blocks. Policy: 16 bytes only where 10 cannot say it,
    /// because old bridges know 10 alone.
    const fn for_ten(self) -> Option<(u32, u16)> {
        // No overflow: `new` has checked the sum.
        if self.lba + self.blocks as u64 <= 1 << 32
            && self.lba <= u32::MAX as u64
            && self.blocks <= u16::MAX as u32
        {
            Some((self.lba as u32, self.blocks as u16))
        } else {
            None
        }
    }
}

/// When a write counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnitAccess {
    /// When the disk has it, be it in its cache.
    #[default]
    Cached,
    /// When it is on the medium. Some bridges pass the bit to disks that then fail the command.
    #[doc(alias = "FUA")]
    Forced,
}

impl UnitAccess {
    /// The bit in byte 1 of a command block.
    const fn bit(self) -> u8 {
        match self {
            Self::Cached => 0,
            Self::Forced => 0x08,
        }
    }
}

/// Reads an extent: 10 or 16 bytes, as many bytes in as the extent has.
#[inline]
#[must_use]
pub const fn read(extent: Extent) -> Command {
    Command {
        cdb: block(0x28, 0x88, UnitAccess::Cached, extent),
        data: DataPhase::In(extent.bytes),
    }
}

/// Writes an extent: 10 or 16 bytes, as many bytes out as the extent has.
#[inline]
#[must_use]
pub const fn write(extent: Extent, access: UnitAccess) -> Command {
    Command {
        cdb: block(0x2a, 0x8a, access, extent),
        data: DataPhase::Out(extent.bytes),
    }
}

#[inline]
const fn block(ten: u8, sixteen: u8, access: UnitAccess, extent: Extent) -> Cdb {
    let flags = access.bit();
    if let Some((lba, blocks)) = extent.for_ten() {
        // In words, because it is made for every command: operation and flags, then the block's
        // number and the count, highest byte first, with a byte between.
        let head = ten as u64 | (flags as u64) << 8;
        let number = (lba.swap_bytes() as u64) << 16;
        let [high, low] = blocks.to_be_bytes();
        return Cdb::ten_in_words(head | number | (high as u64) << 56, low as u16);
    }
    let (first, last) = words_of_sixteen(sixteen, flags, extent);
    Cdb::sixteen_in_words(first, last)
}

/// A block of 16 bytes as two little-endian numbers.
#[cold]
#[inline(never)]
const fn words_of_sixteen(operation: u8, flags: u8, extent: Extent) -> (u64, u64) {
    let [a, b, c, d, e, f, g, h] = extent.lba.to_be_bytes();
    let [k, l, m, n] = extent.blocks.to_be_bytes();
    (
        u64::from_le_bytes([operation, flags, a, b, c, d, e, f]),
        u64::from_le_bytes([g, h, k, l, m, n, 0, 0]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTOR: BlockLength = BlockLength::BYTES_512;

    fn extent(lba: u64, blocks: u32) -> Extent {
        Extent::new(lba, blocks, SECTOR).unwrap()
    }

    #[test]
    fn ten_bytes_are_used_as_long_as_they_can_say_it() {
        let command = read(extent(0x0102_0304, 0x0506));
        assert_eq!(command.cdb.to_bytes(), [0x28, 0, 1, 2, 3, 4, 0, 5, 6, 0]);
        assert_eq!(command.data, DataPhase::In(0x0506 * 512));
        let last = write(extent(u64::from(u32::MAX), 1), UnitAccess::Cached);
        assert_eq!(last.cdb.operation_code(), 0x2a);
        assert_eq!(last.cdb.length(), 10);
    }

    #[test]
    fn sixteen_bytes_are_used_beyond_two_to_the_32_and_for_long_extents() {
        let command = read(extent(0x0102_0304_0506_0708, 0x090a));
        assert_eq!(
            command.cdb.to_bytes(),
            [0x88, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 9, 0x0a, 0, 0]
        );
        for extent in [
            extent(u64::from(u32::MAX), 2),
            extent(1 << 32, 0),
            extent(0, 65_536),
        ] {
            let command = write(extent, UnitAccess::Cached);
            assert_eq!(command.cdb.operation_code(), 0x8a, "{extent:?}");
        }
    }

    #[test]
    fn forced_unit_access_is_one_bit_of_both_forms() {
        for lba in [0, 1 << 40] {
            let command = write(extent(lba, 1), UnitAccess::Forced);
            assert_eq!(command.cdb.to_bytes().get(1), Some(&0x08));
        }
    }

    #[test]
    fn extents_that_one_command_cannot_name_do_not_exist() {
        let page = BlockLength::new(4096).unwrap();
        assert!(Extent::new(0, (1 << 20) - 1, page).is_some());
        assert_eq!(Extent::new(0, 1 << 20, page), None);
        assert_eq!(Extent::new(u64::MAX, 1, page), None);
    }
}
