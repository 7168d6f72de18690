//! Leaving: the next stage of a boot loader must find disks that hold what was written, and
//! controllers that write to no memory any more.

use super::Host;
use crate::block::queue::{DiskId, Operation};
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
    /// The first disk whose flush failed, and why: what was written to it may be lost.
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
    /// that are under way end before that, or with [`BlockError::Disconnected`]. Controllers that do not stop are cut off by the platform,
    /// where it can.
    pub fn shutdown(&mut self, parting: Parting, timeout: Duration) -> Leaving {
        let mut unflushed = None;
        let dirty = UnitSet::of(self.units, has_unflushed);
        for index in 0..self.units.len() as u8 {
            let Some(disk) = self.usable_disk(index) else {
                // It may have been pulled while another one was flushed.
                if dirty.contains(index) {
                    unflushed = unflushed.or(self.gone_disk(index));
                }
                continue;
            };
            if self.needs_flush(disk)
                && let Err(error) = self.disk(disk).flush()
            {
                unflushed = unflushed.or(Some((disk, error)));
            }
            if parting == Parting::FlushAndStop {
                // A disk that does not spin down is no loss: it was flushed.
                let _ = self.disk(disk).run(Operation::Stop);
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

    /// A disk that cannot be flushed any more, and why.
    fn gone_disk(&self, index: u8) -> Option<(DiskId, BlockError)> {
        let entry = self.units.get(usize::from(index))?;
        let generation = entry.generation;
        let why = match entry.geometry() {
            Err(error) if !entry.is_free() => error,
            _ => BlockError::Disconnected,
        };
        Some((DiskId { index, generation }, why))
    }

    fn needs_flush(&self, disk: DiskId) -> bool {
        self.unit(disk).is_some_and(has_unflushed)
    }
}

/// Whether a disk may hold writes in its cache, or has lost some and nobody was told.
fn has_unflushed(entry: &UnitEntry) -> bool {
    entry.durability.is_dirty() || entry.durability.epoch() != entry.seen
}

/// Some of the units, a bit each.
struct UnitSet([u64; 4]);

impl UnitSet {
    fn of(units: &[UnitEntry], is_in: impl Fn(&UnitEntry) -> bool) -> Self {
        let mut bits = [0; 4];
        for (index, entry) in units.iter().enumerate() {
            if let Some(word) = bits.get_mut(index / 64)
                && !entry.is_free()
                && is_in(entry)
            {
                *word |= 1 << (index % 64);
            }
        }
        Self(bits)
    }

    fn contains(&self, index: u8) -> bool {
        let word = self.0.get(usize::from(index / 64));
        word.is_some_and(|word| word >> (index % 64) & 1 == 1)
    }
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
            Err(BlockError::Unsupported(_)) => Ok(()),
            result => result,
        }
    }
}
