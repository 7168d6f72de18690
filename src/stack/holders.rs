//! Who is told of losses: every holder of a disk, once, by its own next flush.
//!
//! A disk's first user needs no holder: flushes without one count as the disk's own. Where several
//! parts of a kernel write to the same disk, each takes a holder, so that none misses a loss that
//! another was told of.

use super::Host;
use crate::block::BlockError;
use crate::block::queue::{DiskId, HolderEntry, HolderId, Operation, RequestId};
use crate::platform::Platform;
use crate::usb::Driver;

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Adds a holder of a disk: it is told of losses from now on.
    ///
    /// # Errors
    ///
    /// [`BlockError::Disconnected`]; [`BlockError::QueueFull`] if the storage has no more holders.
    pub fn add_holder(&mut self, disk: DiskId) -> Result<HolderId, BlockError> {
        let epoch = self
            .unit(disk)
            .ok_or(BlockError::Disconnected)?
            .durability
            .epoch();
        let is_free = |entry: &HolderEntry| entry.disk.is_none();
        let index = self
            .holders
            .iter()
            .position(is_free)
            .ok_or(BlockError::QueueFull)?;
        let entry = self.holders.get_mut(index).ok_or(BlockError::QueueFull)?;
        *entry = HolderEntry {
            generation: entry.generation.wrapping_add(1),
            disk: Some(disk),
            seen: epoch,
        };
        Ok(HolderId {
            index: index as u8,
            generation: entry.generation,
        })
    }

    /// Ends a holder.
    pub fn remove_holder(&mut self, holder: HolderId) {
        if let Some(entry) = self.holder_mut(holder) {
            entry.disk = None;
        }
    }

    /// Submits a flush for a holder, as [`Host::submit`] does for the disk's own.
    ///
    /// # Errors
    ///
    /// [`BlockError::Disconnected`], [`BlockError::NotReady`], [`BlockError::QueueFull`].
    pub fn submit_flush(&mut self, holder: HolderId) -> Result<RequestId, BlockError> {
        let entry = self.holder_mut(holder).ok_or(BlockError::Disconnected)?;
        let disk = entry.disk.ok_or(BlockError::Disconnected)?;
        self.submit_queued(disk, Operation::Flush, None, Some(holder))
    }

    /// What a flush that has ended is to its holder: a loss that it was not told of yet is.
    pub(super) fn weigh_flush(
        &mut self,
        request: u8,
        result: Result<(), BlockError>,
    ) -> Result<(), BlockError> {
        let Some(slot) = self.requests.get(usize::from(request)) else {
            return result;
        };
        if slot.operation != Operation::Flush || result.is_err() {
            return result;
        }
        let (unit, holder) = (slot.disk.index, slot.holder);
        let Some(entry) = self.units.get_mut(usize::from(unit)) else {
            return result;
        };
        let epoch = entry.durability.epoch();
        let seen = match holder {
            None => &mut entry.seen,
            Some(holder) => match self.holder_mut(holder) {
                Some(entry) => &mut entry.seen,
                None => return result,
            },
        };
        if core::mem::replace(seen, epoch) == epoch {
            result
        } else {
            Err(BlockError::WritesMayBeLost)
        }
    }

    /// Whether a holder of a disk has still to be told of a loss.
    pub(super) fn has_a_holder_to_tell(&self, disk: DiskId) -> bool {
        let epoch = self.unit(disk).map(|entry| entry.durability.epoch());
        let mut holders = self.holders.iter();
        holders.any(|holder| holder.disk == Some(disk) && Some(holder.seen) != epoch)
    }

    fn holder_mut(&mut self, holder: HolderId) -> Option<&mut HolderEntry> {
        let entry = self.holders.get_mut(usize::from(holder.index))?;
        (entry.generation == holder.generation && entry.disk.is_some()).then_some(entry)
    }
}
