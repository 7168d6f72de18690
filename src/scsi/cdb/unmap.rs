//! UNMAP (SBC-3 §5.28, operation code 42) and its parameter list.

use super::{BlockRange, Cdb, Command, DataPhase};

/// Bytes of an UNMAP parameter list with one range.
pub const UNMAP_LIST: usize = 24;

/// Says that the blocks of one range hold nothing any more. 10 bytes, and as many bytes out as
/// [`unmap_list`] has.
///
/// The list could name more ranges; devices that take just one are many.
#[must_use]
pub const fn unmap() -> Command {
    let length = UNMAP_LIST as u8;
    Command {
        // The anchor bit stays clear: the blocks are given back.
        cdb: Cdb::ten([0x42, 0, 0, 0, 0, 0, 0, 0, length, 0]),
        data: DataPhase::Out(UNMAP_LIST as u32),
    }
}

/// The parameter list for one range: a header of 8 bytes, a descriptor of 16.
#[must_use]
pub const fn unmap_list(range: BlockRange) -> [u8; UNMAP_LIST] {
    let [a, b, c, d, e, f, g, h] = range.lba.to_be_bytes();
    let [k, l, m, n] = range.blocks.to_be_bytes();
    // Bytes behind this field, then bytes of descriptors.
    let (behind, descriptors) = (UNMAP_LIST as u8 - 2, UNMAP_LIST as u8 - 8);
    [
        0,
        behind,
        0,
        descriptors,
        0,
        0,
        0,
        0,
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        k,
        l,
        m,
        n,
        0,
        0,
        0,
        0,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_one_range_behind_its_lengths() {
        let range = BlockRange {
            lba: 0x0102_0304_0506_0708,
            blocks: 0x090a_0b0c,
        };
        let list = unmap_list(range);
        assert_eq!(list[..8], [0, 22, 0, 16, 0, 0, 0, 0]);
        assert_eq!(list[8..20], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(list[20..], [0; 4]);
        let command = unmap();
        assert_eq!(command.cdb.to_bytes(), [0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0]);
        assert_eq!(command.data, DataPhase::Out(24));
    }
}
