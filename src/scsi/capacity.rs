//! How large a disk is: READ CAPACITY data, checked (SBC-3 §5.15, §5.16).
//!
//! The disk driver calls it when a medium has become ready. What a [`Capacity`] says can be
//! computed with: its block length is a power of two from 512 to 65,536, and it has at least two
//! blocks. A device that says anything else gets a typed refusal, not a block device.

use crate::bytes::{u8_at, u16_be_at, u32_be_at, u64_be_at};

/// Length of a logical block: a power of two from 512 to 65,536 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockLength {
    exponent: u8,
}

impl BlockLength {
    /// The usual one.
    pub const BYTES_512: Self = Self { exponent: 9 };

    /// Checks a block length. `None` for what is not a power of two, below 512, or above 65,536.
    #[must_use]
    pub const fn new(bytes: u32) -> Option<Self> {
        match bytes {
            512..=65_536 if bytes.is_power_of_two() => Some(Self {
                exponent: bytes.trailing_zeros() as u8,
            }),
            _ => None,
        }
    }

    /// In bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        1 << self.exponent
    }

    /// How many blocks so many bytes are; 0 if they are no whole blocks.
    #[inline]
    #[must_use]
    pub const fn count(self, bytes: usize) -> u64 {
        let rest = bytes & (self.bytes() as usize - 1);
        if rest == 0 {
            bytes as u64 >> self.exponent
        } else {
            0
        }
    }

    /// As a power of two: 9 to 16.
    #[must_use]
    pub const fn exponent(self) -> u8 {
        self.exponent
    }
}

/// The size of a disk, and what READ CAPACITY (16) adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    blocks: u64,
    block_length: BlockLength,
    physical_exponent: u8,
    lowest_aligned: u16,
    provisioned: bool,
    unmapped_reads_zero: bool,
}

/// What READ CAPACITY (10) said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity10 {
    /// All of it.
    Known(Capacity),
    /// The disk has more blocks than 32 bits can say: ask with READ CAPACITY (16).
    AskSixteen,
}

/// Why there is no capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacityFault {
    /// Fewer bytes came than hold a capacity. Ask again.
    TooShort {
        /// Bytes that came.
        have: usize,
        /// Bytes that are needed.
        need: usize,
    },
    /// The last block is block 0: no medium. Card readers answer so while they are empty, and a
    /// disk of one block would be of no use.
    NoMedium,
    /// A block length that is not a power of two from 512 to 65,536: the device is not usable as
    /// a disk, or has not got its medium ready yet.
    BlockLength(
        /// The length that the device gave, in bytes.
        u32,
    ),
    /// A last block whose number is the largest that there is. The device lies.
    LastBlock(
        /// The number that the device gave.
        u64,
    ),
}

impl Capacity {
    /// Checks a last block number and a block length.
    ///
    /// # Errors
    /// [`CapacityFault::NoMedium`], [`CapacityFault::LastBlock`], [`CapacityFault::BlockLength`].
    pub fn new(last_block: u64, block_length: u32) -> Result<Self, CapacityFault> {
        if last_block == 0 {
            return Err(CapacityFault::NoMedium);
        }
        Ok(Self {
            blocks: last_block
                .checked_add(1)
                .ok_or(CapacityFault::LastBlock(last_block))?,
            block_length: BlockLength::new(block_length)
                .ok_or(CapacityFault::BlockLength(block_length))?,
            physical_exponent: 0,
            lowest_aligned: 0,
            provisioned: false,
            unmapped_reads_zero: false,
        })
    }

    /// Reads READ CAPACITY (10) data: 8 bytes.
    ///
    /// # Errors
    /// [`CapacityFault`], any of its variants.
    pub fn parse_10(bytes: &[u8]) -> Result<Capacity10, CapacityFault> {
        let (Some(last_block), Some(block_length)) = (u32_be_at(bytes, 0), u32_be_at(bytes, 4))
        else {
            return Err(CapacityFault::TooShort {
                have: bytes.len(),
                need: 8,
            });
        };
        if last_block == u32::MAX {
            return Ok(Capacity10::AskSixteen);
        }
        Self::new(u64::from(last_block), block_length).map(Capacity10::Known)
    }

    /// Reads READ CAPACITY (16) data: 32 bytes, of which 12 must have come.
    ///
    /// # Errors
    /// [`CapacityFault`], any of its variants.
    pub fn parse_16(bytes: &[u8]) -> Result<Self, CapacityFault> {
        let (Some(last_block), Some(block_length)) = (u64_be_at(bytes, 0), u32_be_at(bytes, 8))
        else {
            return Err(CapacityFault::TooShort {
                have: bytes.len(),
                need: 12,
            });
        };
        let alignment = u16_be_at(bytes, 14).unwrap_or_default();
        Ok(Self {
            physical_exponent: u8_at(bytes, 13).unwrap_or_default() & 0x0f,
            lowest_aligned: alignment & 0x3fff,
            provisioned: alignment & 0x8000 != 0,
            unmapped_reads_zero: alignment & 0x4000 != 0,
            ..Self::new(last_block, block_length)?
        })
    }

    /// The same without the last block, for a disk that counts one too many. A disk of two blocks
    /// keeps them.
    #[must_use]
    pub const fn without_last(self) -> Self {
        let blocks = if self.blocks > 2 { self.blocks - 1 } else { 2 };
        Self { blocks, ..self }
    }

    /// What READ CAPACITY (16) said, if it is of the same disk as this answer to (10), which may have
    /// been cut to 32 bits.
    #[must_use]
    pub const fn widened(self, sixteen: Self) -> Option<Self> {
        let same_length = self.block_length.exponent == sixteen.block_length.exponent;
        let same_end = self.blocks as u32 == sixteen.blocks as u32;
        if same_length && same_end && sixteen.blocks >= self.blocks {
            Some(sixteen)
        } else {
            None
        }
    }

    /// Number of logical blocks, at least 2.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Length of a logical block.
    #[must_use]
    pub const fn block_length(&self) -> BlockLength {
        self.block_length
    }

    /// Logical blocks in a physical one, as a power of two: 0 to 15. 0 where the disk has not
    /// said.
    #[must_use]
    pub const fn physical_exponent(&self) -> u8 {
        self.physical_exponent
    }

    /// First logical block that starts a physical one.
    #[must_use]
    pub const fn lowest_aligned(&self) -> u16 {
        self.lowest_aligned
    }

    /// Whether the disk manages which blocks are in use: UNMAP may be worth a question.
    #[doc(alias = "LBPME")]
    #[must_use]
    pub const fn is_provisioned(&self) -> bool {
        self.provisioned
    }

    /// Whether blocks that are not in use read as zeros.
    #[doc(alias = "LBPRZ")]
    #[must_use]
    pub const fn unmapped_reads_zero(&self) -> bool {
        self.unmapped_reads_zero
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ten(last_block: u32, block_length: u32) -> Result<Capacity10, CapacityFault> {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&last_block.to_be_bytes());
        bytes[4..].copy_from_slice(&block_length.to_be_bytes());
        Capacity::parse_10(&bytes)
    }

    #[test]
    fn the_number_of_blocks_is_one_more_than_the_last() {
        let Ok(Capacity10::Known(capacity)) = ten(0x003f_ffff, 512) else {
            panic!("not known");
        };
        assert_eq!(capacity.blocks(), 0x0040_0000);
        assert_eq!(capacity.block_length(), BlockLength::BYTES_512);
        assert_eq!(capacity.physical_exponent(), 0);
    }

    #[test]
    fn case_18_bit_31_of_the_last_block_is_a_bit_like_any_other() {
        let Ok(Capacity10::Known(capacity)) = ten(0xee77_52af, 512) else {
            panic!("not known");
        };
        assert_eq!(capacity.blocks(), 0xee77_52b0);
    }

    #[test]
    fn case_18_a_last_block_of_all_ones_sends_to_sixteen_bytes() {
        assert_eq!(ten(u32::MAX, 512), Ok(Capacity10::AskSixteen));
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&0x1_5d50_a3af_u64.to_be_bytes());
        bytes[8..12].copy_from_slice(&512_u32.to_be_bytes());
        bytes[13] = 0xf3;
        bytes[14..16].copy_from_slice(&0xc007_u16.to_be_bytes());
        let capacity = Capacity::parse_16(&bytes).unwrap();
        assert_eq!(capacity.blocks(), 0x1_5d50_a3b0);
        assert_eq!(capacity.physical_exponent(), 3);
        assert_eq!(capacity.lowest_aligned(), 7);
        assert!(capacity.is_provisioned() && capacity.unmapped_reads_zero());
    }

    #[test]
    fn case_18_a_capacity_that_was_cut_to_32_bits_is_widened_and_another_is_not() {
        let disk = |blocks: u64, length| Capacity::new(blocks - 1, length).unwrap();
        let cut = disk(0x5d50_a3b0, 512);
        let whole = disk(0x1_5d50_a3b0, 512);
        assert_eq!(cut.widened(whole), Some(whole));
        assert_eq!(cut.widened(cut), Some(cut));
        assert_eq!(whole.widened(cut), None);
        assert_eq!(cut.widened(disk(0x1_5d50_a3b1, 512)), None);
        assert_eq!(cut.widened(disk(0x1_5d50_a3b0, 4096)), None);
    }

    #[test]
    fn a_block_too_many_is_taken_off_but_never_the_last_two() {
        let disk = |blocks: u64| Capacity::new(blocks - 1, 512).unwrap();
        assert_eq!(disk(1001).without_last(), disk(1000));
        assert_eq!(disk(2).without_last(), disk(2));
    }

    #[test]
    fn case_19_block_lengths_other_than_512_are_kept() {
        for length in [1024, 2048, 4096, 65_536] {
            let Ok(Capacity10::Known(capacity)) = ten(99, length) else {
                panic!("{length}");
            };
            assert_eq!(capacity.block_length().bytes(), length);
        }
    }

    #[test]
    fn case_20_senseless_block_lengths_are_refused_with_their_value() {
        for length in [
            0,
            1,
            256,
            511,
            513,
            520,
            0x0001_0001,
            0x0002_0000,
            263_520_264,
            u32::MAX,
        ] {
            assert_eq!(ten(99, length), Err(CapacityFault::BlockLength(length)));
        }
        assert!(ten(99, 0x0001_0000).is_ok());
    }

    #[test]
    fn case_20_a_last_block_of_zero_is_no_medium_whatever_the_length() {
        for length in [0, 512, 263_520_264] {
            assert_eq!(ten(0, length), Err(CapacityFault::NoMedium));
        }
        assert_eq!(Capacity::parse_16(&[0; 32]), Err(CapacityFault::NoMedium));
    }

    #[test]
    fn a_last_block_of_64_ones_is_refused() {
        assert_eq!(
            Capacity::parse_16(&[0xff; 32]),
            Err(CapacityFault::LastBlock(u64::MAX))
        );
    }

    #[test]
    fn short_answers_are_refused_or_read_as_far_as_they_go() {
        assert_eq!(
            Capacity::parse_10(&[0; 7]),
            Err(CapacityFault::TooShort { have: 7, need: 8 })
        );
        let twelve = [0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 2, 0];
        let capacity = Capacity::parse_16(&twelve).unwrap();
        assert_eq!(capacity.blocks(), 10);
        assert!(!capacity.is_provisioned());
        assert_eq!(
            Capacity::parse_16(twelve.get(..11).unwrap()),
            Err(CapacityFault::TooShort { have: 11, need: 12 })
        );
    }
}
