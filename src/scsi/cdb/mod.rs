//! Commands: the bytes that a disk gets, and the data that goes with them.
//!
//! A file for each command family; a new command is a new function there. Each makes a
//! [`Command`], which holds the command descriptor block and the data phase, so that a transport
//! cannot announce another length than the disk was told. The disk driver calls them; nothing is
//! sent here. Read SPC-4 §4.3 for the shape of the blocks.

mod ata_pass_through;
mod capacity;
mod inquiry;
mod mode_sense;
mod read_write;
mod report_luns;
mod request_sense;
mod start_stop;
mod synchronize_cache;
mod test_unit_ready;
mod unmap;
mod write_same;

pub use ata_pass_through::{AtaForm, ata_pass_through};
pub use capacity::{read_capacity_10, read_capacity_16};
pub use inquiry::{inquiry, vital_product_data};
pub use mode_sense::{ModePage, mode_sense_6, mode_sense_10};
pub use read_write::{Extent, UnitAccess, read, write};
pub use report_luns::report_luns;
pub use request_sense::request_sense;
pub use start_stop::{PowerChange, start_stop_unit};
pub use synchronize_cache::synchronize_cache;
pub use test_unit_ready::test_unit_ready;
pub use unmap::{UNMAP_LIST, unmap, unmap_list};
pub use write_same::{SameBlock, write_same};

/// A command descriptor block: 6, 10, 12 or 16 bytes.
///
/// A transport takes it in words.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "command descriptor block")]
pub struct Cdb {
    /// The bytes in order, as two little-endian numbers: a block is made and copied for every
    /// command. Zero behind `length`.
    words: [u64; 2],
    /// 6, 10, 12 or 16.
    length: u8,
}

impl Cdb {
    /// Bytes of the longest block that is used.
    pub const MAX_LENGTH: usize = 16;

    /// A block of 6, 10, 12 or 16 bytes, for a command that has no constructor here. `None` for
    /// other lengths.
    #[must_use]
    pub const fn from_slice(bytes: &[u8]) -> Option<Self> {
        match bytes.len() {
            6 => match bytes.first_chunk() {
                Some(bytes) => Some(Self::six(*bytes)),
                None => None,
            },
            10 => match bytes.first_chunk() {
                Some(bytes) => Some(Self::ten(*bytes)),
                None => None,
            },
            12 => match bytes.first_chunk() {
                Some(bytes) => Some(Self::twelve(*bytes)),
                None => None,
            },
            16 => match bytes.first_chunk() {
                Some(bytes) => Some(Self::sixteen(*bytes)),
                None => None,
            },
            _ => None,
        }
    }

    const fn six(bytes: [u8; 6]) -> Self {
        let [a, b, c, d, e, f] = bytes;
        Self::padded([a, b, c, d, e, f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 6)
    }

    const fn ten(bytes: [u8; 10]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j] = bytes;
        Self::padded([a, b, c, d, e, f, g, h, i, j, 0, 0, 0, 0, 0, 0], 10)
    }

    /// A block of 10 bytes as two little-endian numbers, the first eight and the last two.
    const fn ten_in_words(first: u64, last: u16) -> Self {
        Self {
            words: [first, last as u64],
            length: 10,
        }
    }

    /// A block of 16 bytes as two little-endian numbers.
    const fn sixteen_in_words(first: u64, last: u64) -> Self {
        Self {
            words: [first, last],
            length: 16,
        }
    }

    const fn twelve(bytes: [u8; 12]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
        Self::padded([a, b, c, d, e, f, g, h, i, j, k, l, 0, 0, 0, 0], 12)
    }

    const fn sixteen(bytes: [u8; 16]) -> Self {
        Self::padded(bytes, 16)
    }

    const fn padded(bytes: [u8; Self::MAX_LENGTH], length: u8) -> Self {
        let number = u128::from_le_bytes(bytes);
        Self {
            words: [number as u64, (number >> 64) as u64],
            length,
        }
    }

    /// The block's bytes.
    #[must_use]
    pub const fn to_bytes(&self) -> CdbBytes {
        CdbBytes {
            bytes: self.to_number().to_le_bytes(),
            length: self.length,
        }
    }

    /// The block with zeros up to 16 bytes, as transports carry it, as a little-endian number.
    #[inline]
    #[must_use]
    pub const fn to_number(&self) -> u128 {
        let [first, last] = self.words;
        (last as u128) << 64 | first as u128
    }

    /// Bytes of the block: 6, 10, 12 or 16.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Which command it is.
    #[must_use]
    pub const fn operation_code(&self) -> u8 {
        let [first, _] = self.words;
        first as u8
    }
}

/// The bytes of a command block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CdbBytes {
    bytes: [u8; Cdb::MAX_LENGTH],
    length: u8,
}

impl core::ops::Deref for CdbBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let bytes = self.bytes.get(..usize::from(self.length));
        bytes.unwrap_or(&self.bytes)
    }
}

impl<const N: usize> PartialEq<[u8; N]> for CdbBytes {
    fn eq(&self, bytes: &[u8; N]) -> bool {
        **self == *bytes
    }
}

impl core::fmt::Debug for Cdb {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "Cdb({:02x?})", &*self.to_bytes())
    }
}

/// Blocks that a command is about without moving them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRange {
    /// Number of the first block.
    pub lba: u64,
    /// How many blocks.
    pub blocks: u32,
}

/// The data that goes with a command, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataPhase {
    /// No data.
    None,
    /// At most so many bytes from the device.
    In(u32),
    /// So many bytes to the device.
    Out(u32),
}

impl DataPhase {
    /// Bytes, whichever way they go.
    #[must_use]
    pub const fn length(self) -> u32 {
        match self {
            Self::None => 0,
            Self::In(bytes) | Self::Out(bytes) => bytes,
        }
    }
}

/// A command block with its data phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    /// What the disk is told.
    pub cdb: Cdb,
    /// What is moved.
    pub data: DataPhase,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_keeps_its_length_and_is_padded_with_zeros() {
        for length in [6, 10, 12, 16] {
            let bytes = &[0xa5; 16][..length];
            let cdb = Cdb::from_slice(bytes).unwrap();
            assert_eq!(&*cdb.to_bytes(), bytes);
            assert_eq!(usize::from(cdb.length()), length);
            let padded = cdb.to_number().to_le_bytes();
            assert!(padded[length..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn blocks_of_other_lengths_do_not_exist() {
        for length in [0, 1, 5, 7, 11, 13, 15, 17] {
            assert_eq!(Cdb::from_slice(&[0; 17][..length]), None, "{length}");
        }
    }
}
