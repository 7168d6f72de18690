//! What callers use: a disk as a row of blocks.
//!
//! [`BlockDevice`] is the blocking face, for boot loaders; [`queue`] has the requests of the queue
//! face. `durability` keeps what a flush promises, and [`ata`] has the ATA commands that may be handed
//! through. Nothing here knows about USB or SCSI: the stack implements it, and file systems sit on it.

pub mod ata;
pub(crate) mod durability;
mod error;
pub(crate) mod line;
pub mod queue;

pub use error::{BlockError, SenseCode};

/// Number of a block of a disk, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Lba(pub u64);

/// Whether a flush reaches the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlushSupport {
    /// The disk has a flush command, or none was sent yet.
    Command,
    /// The disk refused its flush command as unknown, or stalls it each time: nothing says when a write is on
    /// the medium, and no command is sent for a flush.
    NoFlushCommand,
}

/// Where a write is when it has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WriteCache {
    /// Nobody knows: count on a cache.
    #[default]
    Unknown,
    /// In a cache, perhaps: a flush or a write with [`Stored::OnMedium`] gets it to the medium.
    WriteBack,
    /// On the medium, as the disk says.
    WriteThrough,
}

/// When a write ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stored {
    /// When the disk has the data, be it in a cache.
    #[default]
    InCache,
    /// When the data are on the medium.
    #[doc(alias = "FUA")]
    OnMedium,
}

/// How a write is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriteOptions {
    /// When it ends.
    pub stored: Stored,
}

/// Size and nature of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Number of logical blocks, at least 2.
    pub blocks: u64,
    /// Length of a logical block in bytes: a power of two, 512 to 65536.
    pub block_bytes: u32,
    /// Logical blocks in a physical one, as a power of two.
    pub physical_exponent: u8,
    /// Whether the disk takes writes.
    pub writable: bool,
    /// Whether the medium can be taken out.
    pub removable: bool,
    /// Whether a flush reaches the medium.
    pub flush: FlushSupport,
    /// Whether writes end in a cache. Known only of disks that may be asked: over UAS.
    pub cache: WriteCache,
    /// The most blocks of one command, at least 1. Longer requests are cut.
    pub transfer_blocks: u32,
}

impl Geometry {
    /// Size in bytes; `u64::MAX` if it has more.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.blocks.saturating_mul(self.block_bytes as u64)
    }

    /// How many blocks `length` bytes from `lba` on are.
    ///
    /// # Errors
    ///
    /// [`BlockError::BufferLength`] unless `length` is a multiple of the block length above 0;
    /// [`BlockError::OutOfRange`] if they do not lie on the disk.
    #[inline]
    pub fn extent(&self, lba: Lba, length: usize) -> Result<u64, BlockError> {
        let block_bytes = self.block_bytes as usize;
        // The block length is a power of two.
        if length == 0 || length & (block_bytes.wrapping_sub(1)) != 0 {
            return Err(BlockError::BufferLength {
                length,
                block_bytes: self.block_bytes,
            });
        }
        let blocks = (length >> self.block_bytes.trailing_zeros()) as u64;
        match lba.0.checked_add(blocks) {
            Some(end) if end <= self.blocks => Ok(blocks),
            _ => Err(BlockError::OutOfRange { lba, blocks }),
        }
    }

    /// Whether `blocks` blocks from `lba` on lie on the disk.
    ///
    /// # Errors
    ///
    /// [`BlockError::OutOfRange`] if they do not, or are none.
    pub fn range(&self, lba: Lba, blocks: u64) -> Result<(), BlockError> {
        match lba.0.checked_add(blocks) {
            Some(end) if end <= self.blocks && blocks != 0 => Ok(()),
            _ => Err(BlockError::OutOfRange { lba, blocks }),
        }
    }
}

/// A disk, blocking: each call returns when it is done or has failed, within the policy's
/// deadlines.
///
/// Buffers are a multiple of [`Geometry::block_bytes`] long; any alignment works, and one that is
/// aligned to the CPU's cache line is never copied.
pub trait BlockDevice {
    /// Size and nature of the disk.
    ///
    /// # Errors
    ///
    /// [`BlockError::Disconnected`], [`BlockError::NotReady`], [`BlockError::NoMedium`].
    fn geometry(&self) -> Result<Geometry, BlockError>;

    /// Fills `buffer` with the blocks from `lba` on.
    ///
    /// # Errors
    ///
    /// [`BlockError`]; what is in the buffer then is not the disk's.
    fn read(&mut self, lba: Lba, buffer: &mut [u8]) -> Result<(), BlockError>;

    /// Writes `buffer` to the blocks from `lba` on. The disk may still hold it in a cache:
    /// [`BlockDevice::flush`] puts it on the medium.
    ///
    /// # Errors
    ///
    /// [`BlockError`]; the blocks hold old data, new data, or some of each.
    fn write(&mut self, lba: Lba, buffer: &[u8]) -> Result<(), BlockError>;

    /// Puts everything that was written on the medium, as far as the disk has a command for it:
    /// see [`Geometry::flush`].
    ///
    /// # Errors
    ///
    /// [`BlockError`]; what was written since the last good flush may be lost.
    fn flush(&mut self) -> Result<(), BlockError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Geometry = Geometry {
        blocks: 100,
        block_bytes: 4096,
        physical_exponent: 0,
        writable: true,
        removable: false,
        flush: FlushSupport::Command,
        cache: WriteCache::Unknown,
        transfer_blocks: 30,
    };

    #[test]
    fn a_buffer_that_is_no_whole_number_of_blocks_is_refused() {
        for length in [0, 512, 4095, 4097] {
            let refused = BlockError::BufferLength {
                length,
                block_bytes: 4096,
            };
            assert_eq!(DISK.extent(Lba(0), length), Err(refused));
        }
    }

    #[test]
    fn an_extent_ends_on_the_disk() {
        assert_eq!(DISK.extent(Lba(98), 8192), Ok(2));
        let beyond = BlockError::OutOfRange {
            lba: Lba(99),
            blocks: 2,
        };
        assert_eq!(DISK.extent(Lba(99), 8192), Err(beyond));
        assert!(DISK.extent(Lba(u64::MAX), 4096).is_err());
    }

    #[test]
    fn a_range_has_blocks_and_ends_on_the_disk() {
        assert_eq!(DISK.range(Lba(98), 2), Ok(()));
        for (lba, blocks) in [(99, 2), (5, 0), (u64::MAX, 1), (1, u64::MAX)] {
            let lba = Lba(lba);
            let refused = BlockError::OutOfRange { lba, blocks };
            assert_eq!(DISK.range(lba, blocks), Err(refused));
        }
    }
}
