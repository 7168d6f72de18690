//! [`Disk`]: what the demo's parts need of a block device.
//!
//! Narrower than the stack's own trait, so that each part is tested on the host against memory.

use core::error::Error;

/// How a flush ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// What was written is on the medium.
    Done,
    /// The disk has no command for it; it writes through, or it lies.
    NoCommand,
}

/// A disk of whole blocks. Lengths are multiples of the block size.
pub trait Disk {
    /// What can go wrong; its words go to the console.
    type Error: Error + Copy + Send + Sync + 'static;

    /// Bytes of a block: a power of two, 512 or more.
    fn block_size(&self) -> usize;

    /// Blocks of the disk.
    fn blocks(&self) -> u64;

    /// Whether it takes writes, and may be written to in this run.
    fn is_writable(&self) -> bool;

    /// Reads whole blocks from `first`.
    ///
    /// # Errors
    ///
    /// The disk's own. The contents of `blocks` are then undefined.
    fn read(&mut self, first: u64, blocks: &mut [u8]) -> Result<(), Self::Error>;

    /// Writes whole blocks from `first`.
    ///
    /// # Errors
    ///
    /// The disk's own. Some of the blocks may have been written.
    fn write(&mut self, first: u64, blocks: &[u8]) -> Result<(), Self::Error>;

    /// Has the disk put on the medium what was written.
    ///
    /// # Errors
    ///
    /// The disk's own: what was written may be lost.
    fn flush(&mut self) -> Result<Flushed, Self::Error>;
}
