//! [`Disk`]: a block device as the demo's parts use it.
//!
//! It holds the geometry, so that nobody asks for it twice, and it is the one place that decides
//! whether this run may write: a write that is not allowed ends here.

use rootport::block::{BlockDevice, BlockError, FlushSupport, Geometry, Lba};

/// Whether a run may change what is on the disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing is written, whatever the disk would take.
    ReadOnly,
    /// What the mode asks for is written, if the disk takes it.
    ReadWrite,
}

/// How a flush ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// What was written is on the medium.
    Done,
    /// The disk has no command for it; it writes through, or it lies.
    NoCommand,
}

/// A disk of whole blocks. Lengths are multiples of the block size.
pub struct Disk<'b> {
    device: &'b mut dyn BlockDevice,
    geometry: Geometry,
    access: Access,
}

impl<'b> Disk<'b> {
    /// The disk behind `device`.
    ///
    /// # Errors
    ///
    /// It is not there, or not ready.
    pub fn new(device: &'b mut dyn BlockDevice, access: Access) -> Result<Self, BlockError> {
        let geometry = device.geometry()?;
        Ok(Self {
            device,
            geometry,
            access,
        })
    }

    /// Bytes of a block: a power of two, 512 or more.
    #[must_use]
    pub fn block_size(&self) -> usize {
        self.geometry.block_bytes as usize
    }

    /// Blocks of the disk.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.geometry.blocks
    }

    /// Whether it takes writes, and may be written to in this run.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.geometry.writable && self.access == Access::ReadWrite
    }

    /// Reads whole blocks from `first`.
    ///
    /// # Errors
    ///
    /// The disk's own. The contents of `blocks` are then undefined.
    pub fn read(&mut self, first: u64, blocks: &mut [u8]) -> Result<(), BlockError> {
        self.device.read(Lba(first), blocks)
    }

    /// Writes whole blocks from `first`.
    ///
    /// # Errors
    ///
    /// [`BlockError::WriteProtected`] where this run may not write; else the disk's own, and some
    /// of the blocks may have been written.
    pub fn write(&mut self, first: u64, blocks: &[u8]) -> Result<(), BlockError> {
        if !self.is_writable() {
            return Err(BlockError::WriteProtected);
        }
        self.device.write(Lba(first), blocks)
    }

    /// Has the disk put on the medium what was written.
    ///
    /// # Errors
    ///
    /// The disk's own: what was written may be lost.
    pub fn flush(&mut self) -> Result<Flushed, BlockError> {
        self.device.flush()?;
        // Whether the disk knows the command shows when it is used first.
        Ok(match self.device.geometry()?.flush {
            FlushSupport::Command => Flushed::Done,
            FlushSupport::NoFlushCommand => Flushed::NoCommand,
        })
    }
}
