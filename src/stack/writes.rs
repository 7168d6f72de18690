//! The blocking face's rare writes: to the medium at once, one block to many places, and blocks given
//! back.

use super::Disk;
use super::disk::Small;
use crate::block::queue::Operation;
use crate::block::{
    BlockDevice, BlockError, FlushSupport, Lba, SenseCode, Stored, WriteCache, WriteOptions,
};
use crate::platform::Platform;
use crate::usb::Driver;

/// Nothing gets a write to the medium for certain: the disk has neither a flush command nor forced
/// unit access.
const NO_WAY: BlockError = BlockError::Unsupported(SenseCode::UNKNOWN_COMMAND);

impl<P: Platform, C: Driver> Disk<'_, '_, P, C> {
    /// Writes `buffer` to the blocks from `lba` on, as the options say.
    ///
    /// [`Stored::OnMedium`] is done by forced unit access where the disk takes it (it says so over
    /// UAS, and no policy forbids it), by a plain write where it says that it has no write cache, else
    /// by a write and a flush. Forced unit access is no flush: what was written before stays where it
    /// is.
    ///
    /// # Errors
    ///
    /// As [`BlockDevice::write`], and as [`BlockDevice::flush`] where one is needed;
    /// [`BlockError::Unsupported`] if the disk has no way to say that data are on its medium: before
    /// anything is written if that is known, else behind the write.
    pub fn write_with(
        &mut self,
        lba: Lba,
        buffer: &[u8],
        options: WriteOptions,
    ) -> Result<(), BlockError> {
        match options.stored {
            Stored::InCache => self.write(lba, buffer),
            Stored::OnMedium => self.write_to_medium(lba, buffer),
        }
    }

    fn write_to_medium(&mut self, lba: Lba, buffer: &[u8]) -> Result<(), BlockError> {
        let geometry = self.geometry()?;
        if geometry.cache == WriteCache::WriteThrough {
            return self.write(lba, buffer);
        }
        match self.write_pieces(Operation::WriteForced, lba, buffer) {
            // Not told to, or it minds: then by a flush.
            Err(BlockError::Unsupported(_)) => {}
            result => return result,
        }
        if geometry.flush == FlushSupport::NoFlushCommand {
            return Err(NO_WAY);
        }
        self.write(lba, buffer)?;
        self.flush()?;
        match self.geometry()?.flush {
            FlushSupport::Command => Ok(()),
            FlushSupport::NoFlushCommand => Err(NO_WAY),
        }
    }

    /// Writes one block, `block`, to each of `blocks` blocks from `lba` on, by WRITE SAME: in as many
    /// commands as the disk's limits need. The disk may still hold it in a cache.
    ///
    /// # Errors
    ///
    /// [`BlockError::Unsupported`] for a disk that does not know the command or must not get it
    /// ([`Quirks::NO_SAME`](crate::storage::quirks::Quirks::NO_SAME); Bulk-Only, unless
    /// [`Policy::trust`](crate::policy::Policy::trust) says otherwise): write the blocks one by one.
    /// [`BlockError::BufferLength`] unless `block` is one block; else as [`BlockDevice::write`].
    pub fn write_same(&mut self, lba: Lba, blocks: u64, block: &[u8]) -> Result<(), BlockError> {
        self.geometry()?.range(lba, blocks)?;
        for (lba, blocks) in pieces(lba, blocks) {
            let operation = Operation::WriteSame { lba, blocks };
            self.run_with(operation, Small::Out(block))?;
        }
        Ok(())
    }

    /// Says that `blocks` blocks from `lba` on hold nothing any more, by UNMAP or, on a disk that can
    /// do it only so and may get it, by WRITE SAME; in as many commands as the disk's limits need. Until they are written again they read as zeros if
    /// [`Provisioning::reads_zero`](crate::scsi::vpd::Provisioning::reads_zero) says so, else as
    /// anything; a disk may keep parts of the range that are no whole granules.
    ///
    /// # Errors
    ///
    /// [`BlockError::Unsupported`] for a disk that announces neither way (pages B0 and B2), or must
    /// not get it: leave the blocks as they are. Else as [`BlockDevice::write`].
    pub fn unmap(&mut self, lba: Lba, blocks: u64) -> Result<(), BlockError> {
        self.geometry()?.range(lba, blocks)?;
        for (lba, blocks) in pieces(lba, blocks) {
            self.run(Operation::Unmap { lba, blocks })?;
        }
        Ok(())
    }
}

/// A range in pieces that an operation can name.
fn pieces(lba: Lba, blocks: u64) -> impl Iterator<Item = (Lba, u32)> {
    // A whole number of granules of any size.
    const MOST: u64 = 1 << 31;
    (0..blocks.div_ceil(MOST)).map(move |piece| {
        let before = piece * MOST;
        let rest = (blocks - before).min(MOST);
        (Lba(lba.0 + before), rest as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_range_is_cut_without_gaps() {
        let cut: Vec<_> = pieces(Lba(7), (1 << 32) + 5).collect();
        assert_eq!(
            cut,
            [
                (Lba(7), 1 << 31),
                (Lba(7 + (1 << 31)), 1 << 31),
                (Lba(7 + (1 << 32)), 5)
            ]
        );
        assert_eq!(pieces(Lba(7), 1).collect::<Vec<_>>(), [(Lba(7), 1)]);
    }
}
