//! WRITE SAME (16) (SBC-3 §5.42, operation code 93).

use super::{BlockRange, Cdb, Command, DataPhase};
use crate::scsi::capacity::BlockLength;

/// What is done to the blocks of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SameBlock {
    /// The block is written to each.
    Written,
    /// They are given back where the disk can, and written where it cannot; the block is of zeros.
    #[doc(alias = "UNMAP")]
    GivenBack,
}

/// Writes one block to every block of a range, or gives them back. 16 bytes, one block of data out.
///
/// A range of 0 blocks would mean all the rest of the disk: `None`.
#[must_use]
pub const fn write_same(
    range: BlockRange,
    block_length: BlockLength,
    what: SameBlock,
) -> Option<Command> {
    let flags = match what {
        SameBlock::Written => 0,
        SameBlock::GivenBack => 0x08,
    };
    if range.blocks == 0 {
        return None;
    }
    let [a, b, c, d, e, f, g, h] = range.lba.to_be_bytes();
    let [k, l, m, n] = range.blocks.to_be_bytes();
    // The bits to anchor blocks, and to go without data, stay clear.
    Some(Command {
        cdb: Cdb::sixteen([0x93, flags, a, b, c, d, e, f, g, h, k, l, m, n, 0, 0]),
        data: DataPhase::Out(block_length.bytes()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_written_from_one_block() {
        let range = BlockRange {
            lba: 0x0102_0304_0506_0708,
            blocks: 0x0001_0002,
        };
        let same = |what| write_same(range, BlockLength::BYTES_512, what).unwrap();
        let command = same(SameBlock::Written);
        assert_eq!(
            command.cdb.to_bytes(),
            [0x93, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 2, 0, 0]
        );
        assert_eq!(command.data, DataPhase::Out(512));
        let given_back = same(SameBlock::GivenBack);
        assert_eq!(given_back.cdb.to_bytes()[..3], [0x93, 0x08, 1]);
        assert_eq!(given_back.data, DataPhase::Out(512));
    }

    #[test]
    fn a_range_without_blocks_is_not_taken_for_the_whole_disk() {
        let nothing = BlockRange { lba: 7, blocks: 0 };
        let written = write_same(nothing, BlockLength::BYTES_512, SameBlock::Written);
        assert_eq!(written, None);
    }
}
