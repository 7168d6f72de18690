//! Leaving: the next stage of a boot loader must find disks that hold what was written, and
//! controllers that write to no memory any more.

use super::Host;
use crate::block::queue::{DiskId, Operation, RequestSlot};
use crate::block::{BlockDevice, BlockError};
use crate::platform::Platform;
#[cfg(doc)]
use crate::policy::Policy;
use crate::scsi::unit::UnitEntry;
use crate::time::Duration;
use crate::usb::{ControllerState, Driver};

/// How long devices may take, all together, to go back to their first setting. Policy: ten times what a request
/// without data has (USB 2.0 §9.2.6.4). One that takes longer is left as it is.
const SETTINGS: Duration = Duration::from_millis(500);

/// What is to be done with the disks on the way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parting {
    /// Dirty disks are flushed.
    Flush,
    /// Dirty disks are flushed, and all are spun down, for a machine that is switched off.
    FlushAndStop,
}

/// What came of leaving.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaving {
    /// The first disk whose flush failed, and why: what was written to it may be lost. Also one that has lost
    /// writes of which a holder was not told yet ([`Host::add_holder`]).
    pub unflushed: Option<(DiskId, BlockError)>,
    /// Every controller has stopped and was reset, or was cut off: no DMA happens any more, and the pool's
    /// memory is free. If not, leave that memory alone for good.
    pub quiet: bool,
}

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Flushes the disks, brings UAS devices back to alternate setting 0, stops and resets every controller, and
    /// lets go of all devices.
    ///
    /// Bounded: disks are flushed one after the other, each behind what is under way on it, within
    /// [`Policy::flush`] and, where it hangs, an episode of recovery ([`Policy::episode`]) and
    /// [`Policy::readiness`] more: 100 s by default. Spinning a disk down may take as long again. Then settings
    /// have half a second in all, and the controllers have `timeout` in all to stop. Requests of the queue face
    /// that are under way end before that, or with [`BlockError::Disconnected`]; writes among them are flushed too. Take
    /// completions first: where they fill the table of requests, no flush has a place in it. Controllers that do not stop are cut off by the platform,
    /// where it can.
    pub fn shutdown(&mut self, parting: Parting, timeout: Duration) -> Leaving {
        let mut unflushed = None;
        self.note_owed();
        for index in 0..self.units.len() as u8 {
            if let Some(gone) = self.take_owed(index) {
                unflushed = unflushed.or(Some(gone));
            }
            let Some(disk) = self.usable_disk(index) else {
                continue;
            };
            if self.needs_flush(disk)
                && let Err(error) = self.disk(disk).flush()
            {
                unflushed = unflushed.or(Some((disk, error)));
            }
            // None of its flushes will tell it.
            if self.has_a_holder_to_tell(disk) {
                unflushed = unflushed.or(Some((disk, BlockError::WritesMayBeLost)));
            }
            if parting == Parting::FlushAndStop
                && let Err(error) = self.disk(disk).run(Operation::Stop)
                // A disk that does not spin down is no loss where it was flushed.
                && self.needs_flush(disk)
            {
                unflushed = unflushed.or(Some((disk, error)));
            }
        }
        self.restore_settings();
        let quiet = self.stop(timeout);
        Leaving { unflushed, quiet }
    }

    /// Brings devices back to alternate setting 0: whoever comes next and resets no port would speak Bulk-Only
    /// to a bridge that listens for UAS.
    fn restore_settings(&mut self) {
        let now = self.platform.now();
        for slot in self.functions.iter_mut() {
            slot.function.restore_setting(&mut self.bus, SETTINGS, now);
        }
        self.poll_until(SETTINGS, |host| {
            let mut devices = host
                .functions
                .iter()
                .filter_map(|slot| slot.function.device());
            !devices.any(|device| host.bus.is_operating(device))
        });
    }

    /// Stops every controller and lets go of all devices, without a flush. Requests in flight end
    /// with [`BlockError::Disconnected`].
    ///
    /// `true` if every controller has stopped or was cut off within `timeout`: no DMA happens any more.
    pub fn stop(&mut self, timeout: Duration) -> bool {
        self.bus.stop(self.platform.now());
        self.forget_absent();
        let stopped = self.poll_until(timeout, |host| host.is_stopped());
        self.switch_rails_on();
        stopped
    }

    fn is_stopped(&self) -> bool {
        // One that failed was stopped before, or was cut off, or runs away.
        let still = |state| matches!(state, ControllerState::Stopped | ControllerState::Failed(_));
        self.bus.controllers().all(|(_, state, _)| still(state))
            && self.bus.is_quiet()
            && self.bus.devices().next().is_none()
    }

    /// A disk that takes requests, also one that is being opened again: its flush waits for it.
    fn usable_disk(&self, index: u8) -> Option<DiskId> {
        let entry = self.units.get(usize::from(index))?;
        let generation = entry.generation;
        entry.geometry().ok()?;
        Some(DiskId { index, generation })
    }

    /// Notes which disks are owed a flush. What is queued for one counts as written: it will be.
    fn note_owed(&mut self) {
        for index in 0..self.units.len() as u8 {
            let Some(entry) = self.units.get(usize::from(index)) else {
                break;
            };
            let generation = entry.generation;
            let disk = DiskId { index, generation };
            let is_owed = !entry.is_free() && self.needs_flush(disk);
            if let Some(entry) = self.units.get_mut(usize::from(index)) {
                entry.owed = is_owed.then_some(generation);
            }
        }
    }

    /// A disk that was owed a flush and cannot be flushed any more, and why: it may have been pulled while another
    /// one was flushed, and another disk may have its place.
    fn take_owed(&mut self, index: u8) -> Option<(DiskId, BlockError)> {
        let entry = self.units.get_mut(usize::from(index))?;
        let generation = entry.owed.take()?;
        let is_here = !entry.is_free() && entry.generation == generation;
        let why = match entry.geometry() {
            Ok(_) if is_here => return None,
            Err(error) if is_here => error,
            _ => BlockError::Disconnected,
        };
        Some((DiskId { index, generation }, why))
    }

    /// Whether a disk has, or will have, writes that no flush has covered.
    fn needs_flush(&self, disk: DiskId) -> bool {
        let writes = |slot: &RequestSlot| {
            slot.is_waiting() && slot.disk == disk && slot.operation.leaves_unflushed()
        };
        self.unit(disk).is_some_and(has_unflushed) || self.requests.iter().any(writes)
    }
}

/// Whether a disk may hold writes in its cache, or has lost some and nobody was told.
fn has_unflushed(entry: &UnitEntry) -> bool {
    entry.durability.is_dirty() || entry.durability.epoch() != entry.seen
}

impl<P: Platform, C: Driver> super::Disk<'_, '_, P, C> {
    /// Puts what was written on the medium by a flush, where there is anything, and spins the disk down,
    /// if it knows how to.
    ///
    /// # Errors
    ///
    /// As [`BlockDevice::flush`].
    pub fn stop(&mut self) -> Result<(), BlockError> {
        if self.host.needs_flush(self.id()) {
            self.flush()?;
        }
        match self.run(Operation::Stop) {
            // It was flushed.
            Err(BlockError::Unsupported(_)) if !self.host.needs_flush(self.id()) => Ok(()),
            result => result,
        }
    }
}
