//! A partition as a file system wants it: sectors of 512 bytes, small reads cheap.
//!
//! Who calls it: `files`, as the device that `hadris-fat` mounts. Small reads come out of a window
//! that is filled by one large read; large ones go straight to the caller's memory. Writes go
//! through at once: nothing is kept back. On disks with larger blocks, sectors are cut out of the
//! window, and a write of part of a block reads the rest first.
//! Invariant: what the window holds equals the disk, or the window is empty.

use hadris_io::{Error, ErrorKind, ErrorType};
use hadris_storage::sync::BlockDevice;
use hadris_storage::{BlockIndex, BlockSize};
use rootport::block::BlockError;

use super::disk::Disk;
use super::partitions::Partition;

/// Bytes of a sector; what the FAT driver asks for.
const SECTOR: usize = 512;

/// Part of a disk, in sectors.
pub struct Sectors<'d, 'b> {
    disk: &'d mut Disk<'b>,
    first: u64,
    blocks: u64,
    window: &'d mut [u8],
    /// Block of the partition at which the window begins, and how many it holds; 0 when empty.
    held: (u64, u64),
    writable: bool,
}

impl<'d, 'b> Sectors<'d, 'b> {
    /// The partition `partition` of `disk`. `window` has room for one block at least, better for
    /// many. With `writable` false every write is refused here.
    pub fn new(
        disk: &'d mut Disk<'b>,
        partition: &Partition,
        window: &'d mut [u8],
        writable: bool,
    ) -> Self {
        let writable = writable && disk.is_writable();
        let (first, blocks) = (partition.first, partition.blocks);
        Self {
            disk,
            first,
            blocks,
            window,
            held: (0, 0),
            writable,
        }
    }

    fn block(&self) -> usize {
        self.disk.block_size()
    }

    /// Whether a run of bytes is made of whole blocks.
    fn is_whole(&self, start: u64, length: usize) -> bool {
        start.is_multiple_of(self.block() as u64) && length.is_multiple_of(self.block())
    }

    /// Fills the window from `block` on, unless it holds that block.
    fn hold(&mut self, block: u64) -> Result<(), Error<BlockError>> {
        let (start, count) = self.held;
        if (start..start + count).contains(&block) {
            return Ok(());
        }
        self.held = (0, 0);
        let room = (self.window.len() / self.block()) as u64;
        let count = room.min(self.blocks.saturating_sub(block));
        let length = count as usize * self.block();
        let bytes = self
            .window
            .get_mut(..length)
            .filter(|bytes| !bytes.is_empty());
        let bytes = bytes.ok_or(ErrorKind::InvalidInput)?;
        self.disk.read(self.first + block, bytes).map_err(failed)?;
        self.held = (block, count);
        Ok(())
    }

    /// The bytes of the window from byte `at` of the partition to the window's end, which holds it.
    fn held_from(&mut self, at: u64) -> &mut [u8] {
        let block = self.block();
        let (start, count) = self.held;
        let offset = (at - start * block as u64) as usize;
        &mut self.window[offset..count as usize * block]
    }

    /// Whether `length` bytes at `at` lie in the partition.
    fn check(&self, at: u64, length: usize) -> Result<(), Error<BlockError>> {
        let size = self.blocks * self.block() as u64;
        let inside = at.checked_add(length as u64).is_some_and(|end| end <= size);
        if inside {
            Ok(())
        } else {
            Err(ErrorKind::InvalidInput.into())
        }
    }
}

impl ErrorType for Sectors<'_, '_> {
    type Error = BlockError;
}

impl BlockDevice for Sectors<'_, '_> {
    fn block_size(&self) -> BlockSize {
        const { BlockSize::new(SECTOR as u32).expect("not zero") }
    }

    fn block_count(&self) -> u64 {
        self.blocks * (self.block() / SECTOR) as u64
    }

    fn writable(&self) -> bool {
        self.writable
    }

    fn read_blocks(
        &mut self,
        first: BlockIndex,
        bytes: &mut [u8],
    ) -> Result<(), Error<BlockError>> {
        let mut at = first.get().saturating_mul(SECTOR as u64);
        self.check(at, bytes.len())?;
        if bytes.len() >= self.window.len() && self.is_whole(at, bytes.len()) {
            let block = self.first + at / self.block() as u64;
            return self.disk.read(block, bytes).map_err(failed);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            self.hold(at / self.block() as u64)?;
            let held = self.held_from(at);
            let length = held.len().min(rest.len());
            let (now, later) = rest.split_at_mut(length);
            now.copy_from_slice(&held[..length]);
            (rest, at) = (later, at + length as u64);
        }
        Ok(())
    }

    fn write_blocks(&mut self, first: BlockIndex, bytes: &[u8]) -> Result<(), Error<BlockError>> {
        if !self.writable {
            return Err(ErrorKind::ReadOnly.into());
        }
        let mut at = first.get().saturating_mul(SECTOR as u64);
        self.check(at, bytes.len())?;
        if self.is_whole(at, bytes.len()) {
            self.held = (0, 0);
            let block = self.first + at / self.block() as u64;
            return self.disk.write(block, bytes).map_err(failed);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let length = self.patch(at, rest)?;
            rest = &rest[length..];
            at += length as u64;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error<BlockError>> {
        self.disk.flush().map(drop).map_err(failed)
    }
}

impl Sectors<'_, '_> {
    /// Writes the part of `bytes` that lies in the block at byte `at`; says how much that was.
    fn patch(&mut self, at: u64, bytes: &[u8]) -> Result<usize, Error<BlockError>> {
        let size = self.block();
        let block = at / size as u64;
        self.hold(block)?;
        let within = (at % size as u64) as usize;
        let length = bytes.len().min(size - within);
        let whole = &mut self.held_from(block * size as u64)[..size];
        whole[within..within + length].copy_from_slice(&bytes[..length]);
        let start = ((block - self.held.0) as usize) * size;
        let result = self
            .disk
            .write(self.first + block, &self.window[start..start + size]);
        if result.is_err() {
            self.held = (0, 0);
        }
        result.map(|()| length).map_err(failed)
    }
}

/// The disk's error as the file system passes it on.
fn failed(error: BlockError) -> Error<BlockError> {
    Error::device(error, "the disk failed")
}
