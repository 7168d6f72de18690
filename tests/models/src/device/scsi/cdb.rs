//! Which bits of a command must be zero, and what its fields say (SPC-4 §6, SBC-3 §5).
//!
//! The mask of an operation code has a one where the bit is reserved or obsolete in the editions
//! named in the module head of `scsi`. A strict device answers 5/24/00 to such a bit.

/// The reserved bits of a command, one byte per CDB byte; `None` for an unknown operation code. The
/// length of the mask is the length of the command.
pub(super) const fn reserved_bits(opcode: u8) -> Option<&'static [u8]> {
    Some(match opcode {
        // TEST UNIT READY
        0x00 => &[0, 0xff, 0xff, 0xff, 0xff, 0xff],
        // REQUEST SENSE: DESC; allocation length
        0x03 => &[0, 0xfe, 0xff, 0xff, 0, 0xff],
        // INQUIRY: EVPD; page; allocation length
        0x12 => &[0, 0xfe, 0, 0, 0, 0xff],
        // MODE SENSE(6): DBD; page control and code; subpage; allocation length
        0x1a => &[0, 0xf7, 0, 0, 0, 0xff],
        // START STOP UNIT: IMMED; modifier; power condition, NO_FLUSH, LOEJ, START
        0x1b => &[0, 0xfe, 0xff, 0xf0, 0x08, 0xff],
        // PREVENT ALLOW MEDIUM REMOVAL: PREVENT
        0x1e => &[0, 0xff, 0xff, 0xff, 0xfc, 0xff],
        // READ CAPACITY(10)
        0x25 => &[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        // READ(10), WRITE(10): DPO, FUA; LBA; blocks
        0x28 | 0x2a => &[0, 0xe7, 0, 0, 0, 0, 0xff, 0, 0, 0xff],
        // VERIFY(10): DPO; LBA; blocks
        0x2f => &[0, 0xef, 0, 0, 0, 0, 0xff, 0, 0, 0xff],
        // SYNCHRONIZE CACHE(10): IMMED; LBA; blocks
        0x35 => &[0, 0xfd, 0, 0, 0, 0, 0xff, 0, 0, 0xff],
        // UNMAP: ANCHOR; parameter list length
        0x42 => &[0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0xff],
        // MODE SENSE(10): DBD, LLBAA; page control and code; subpage; allocation length
        0x5a => &[0, 0xe7, 0, 0, 0xff, 0xff, 0xff, 0, 0, 0xff],
        // ATA PASS-THROUGH(16): protocol, EXTEND; CK_COND, T_DIR, BYT_BLOK, T_LENGTH; registers
        0x85 => &[0, 0xe0, 0xd0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff],
        // READ(16), WRITE(16)
        0x88 | 0x8a => &[0, 0xe7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
        // VERIFY(16)
        0x8f => &[0, 0xef, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
        // SYNCHRONIZE CACHE(16)
        0x91 => &[0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
        // WRITE SAME(16): ANCHOR, UNMAP; LBA; blocks
        0x93 => &[0, 0xe7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
        // SERVICE ACTION IN(16): service action; allocation length
        0x9e => &[
            0, 0xe0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff,
        ],
        // REPORT LUNS: select report; allocation length
        0xa0 => &[0, 0xff, 0, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff],
        // ATA PASS-THROUGH(12)
        0xa1 => &[0, 0xe1, 0xd0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
        _ => return None,
    })
}

/// The first byte of `cdb` with a reserved bit set.
pub(super) fn first_reserved(cdb: &[u8], mask: &[u8]) -> Option<usize> {
    cdb.iter()
        .zip(mask)
        .position(|(byte, mask)| byte & mask != 0)
}

/// Address and number of blocks of a command on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// The first block.
    pub lba: u64,
    /// How many.
    pub blocks: u32,
}

impl Extent {
    /// The extent of a 10- or 16-byte command that has one, `None` for every other.
    #[must_use]
    pub fn of(cdb: &[u8]) -> Option<Self> {
        match *cdb {
            [0x28 | 0x2a | 0x2f | 0x35, _, a, b, c, d, _, n0, n1, ..] => Some(Self {
                lba: u64::from(u32::from_be_bytes([a, b, c, d])),
                blocks: u32::from(u16::from_be_bytes([n0, n1])),
            }),
            [
                0x88 | 0x8a | 0x8f | 0x91 | 0x93,
                _,
                a,
                b,
                c,
                d,
                e,
                f,
                g,
                h,
                n0,
                n1,
                n2,
                n3,
                ..,
            ] => Some(Self {
                lba: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
                blocks: u32::from_be_bytes([n0, n1, n2, n3]),
            }),
            _ => None,
        }
    }

    /// The block after the last one.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.lba.saturating_add(self.blocks as u64)
    }
}

/// The most bytes that the host wants, of a command that answers with parameter data.
pub(super) fn allocation(cdb: &[u8]) -> usize {
    match *cdb {
        [0x03 | 0x1a, _, _, _, length, ..] => usize::from(length),
        [0x12, _, _, high, low, ..] => usize::from(u16::from_be_bytes([high, low])),
        [0x5a, _, _, _, _, _, _, high, low, ..] => usize::from(u16::from_be_bytes([high, low])),
        [0x9e, _, _, _, _, _, _, _, _, _, a, b, c, d, ..]
        | [0xa0, _, _, _, _, _, a, b, c, d, ..] => u32::from_be_bytes([a, b, c, d]) as usize,
        [0x25, ..] => 8,
        _ => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_of_both_lengths_are_big_endian() {
        let ten = [0x28, 0, 1, 2, 3, 4, 0, 0x01, 0x02, 0];
        assert_eq!(
            Extent::of(&ten),
            Some(Extent {
                lba: 0x0102_0304,
                blocks: 0x0102
            })
        );
        let sixteen = [0x8a, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 0, 0];
        let extent = Extent {
            lba: 0x0102_0304_0506_0708,
            blocks: 0x0001_0203,
        };
        assert_eq!(Extent::of(&sixteen), Some(extent));
        assert_eq!(Extent::of(&[0x12, 0, 0, 0, 36, 0]), None);
    }

    #[test]
    fn a_mask_is_as_long_as_its_command() {
        for (group, length) in [
            (0x00..0x20, 6),
            (0x20..0x60, 10),
            (0x80..0xa0, 16),
            (0xa0..0xc0, 12),
        ] {
            for mask in group.filter_map(reserved_bits) {
                assert_eq!(mask.len(), length);
            }
        }
    }
}
