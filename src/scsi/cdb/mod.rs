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
pub use write_same::write_same;

/// A command descriptor block: 6, 10, 12 or 16 bytes.
///
/// Aligned, so that a transport can take it in words.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(align(8))]
#[doc(alias = "command descriptor block")]
pub struct Cdb {
    /// Zero behind `length`.
    bytes: [u8; Self::MAX_LENGTH],
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
        Self {
            bytes: [a, b, c, d, e, f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            length: 6,
        }
    }

    const fn ten(bytes: [u8; 10]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j] = bytes;
        Self {
            bytes: [a, b, c, d, e, f, g, h, i, j, 0, 0, 0, 0, 0, 0],
            length: 10,
        }
    }

    /// A block of 10 bytes as a little-endian number.
    const fn ten_in_words(bytes: u128) -> Self {
        Self {
            bytes: bytes.to_le_bytes(),
            length: 10,
        }
    }

    const fn twelve(bytes: [u8; 12]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
        Self {
            bytes: [a, b, c, d, e, f, g, h, i, j, k, l, 0, 0, 0, 0],
            length: 12,
        }
    }

    const fn sixteen(bytes: [u8; 16]) -> Self {
        Self { bytes, length: 16 }
    }

    /// The block.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.length))
            .unwrap_or(&self.bytes)
    }

    /// The block with zeros up to 16 bytes, as transports carry it.
    #[must_use]
    pub const fn padded(&self) -> &[u8; Self::MAX_LENGTH] {
        &self.bytes
    }

    /// Bytes of the block: 6, 10, 12 or 16.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Which command it is.
    #[must_use]
    pub const fn operation_code(&self) -> u8 {
        let [code, ..] = self.bytes;
        code
    }
}

impl core::fmt::Debug for Cdb {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "Cdb({:02x?})", self.as_slice())
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
            assert_eq!(cdb.as_slice(), bytes);
            assert_eq!(usize::from(cdb.length()), length);
            assert!(cdb.padded()[length..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn blocks_of_other_lengths_do_not_exist() {
        for length in [0, 1, 5, 7, 11, 13, 15, 17] {
            assert_eq!(Cdb::from_slice(&[0; 17][..length]), None, "{length}");
        }
    }
}
