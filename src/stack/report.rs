//! What a person or a boot loader wants to know about the disks that are there.

use super::{FunctionSlot, Host};
use crate::block::queue::DiskId;
use crate::block::{BlockError, Geometry};
use crate::platform::Platform;
use crate::scsi::bring_up::BringUpError;
use crate::scsi::details::Details;
use crate::scsi::inquiry::Inquiry;
use crate::scsi::unit::{UnitEntry, UnitState};
use crate::storage::bot::transport::CopyCount;
use crate::storage::quirks::{Decision, Quirks};
use crate::storage::uas::machine::{Counters, Mode};
use crate::storage::usage::Usage;
use crate::usb::{DeviceId, DeviceInfo, Driver};

/// Whether a disk can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskState {
    /// It is being brought up.
    NotReady,
    /// It can be read, and written if its geometry says so.
    Ready(Geometry),
    /// There is no medium in it.
    Empty,
    /// It cannot be used, and why.
    Failed(BringUpError),
}

/// A disk that is there.
#[derive(Clone, Copy, Debug)]
pub struct DiskInfo {
    /// Its id.
    pub id: DiskId,
    /// The device that it is a unit of.
    pub device: DeviceInfo,
    /// Which unit, from 0.
    pub unit: u8,
    /// Whether it can be used.
    pub state: DiskState,
    /// Who it says it is, once asked.
    pub inquiry: Option<Inquiry>,
    /// What else it says, where it could be asked: serial number and world-wide name among it.
    pub details: Option<Details>,
    /// How commands travel to it, and why not otherwise.
    pub usage: Usage,
    /// The policies that are honoured, with what was learnt in use.
    pub quirks: Quirks,
    /// The policies that were decided when its device was described, and why.
    pub decision: Decision,
}

/// How a disk is used over UAS. All units of a device are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UasInfo {
    /// Whether its pipes have streams.
    pub streams: bool,
    /// The most commands in flight: less than [`Policy::depth`](crate::policy::Policy::depth) where device,
    /// controller, pool or table allow no more.
    pub depth: u8,
    /// What was odd since its device was configured.
    pub counters: Counters,
}

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Every logical unit that is there, ready or not.
    pub fn disks(&self) -> impl Iterator<Item = DiskInfo> + '_ {
        (0_u8..)
            .zip(self.units.iter())
            .filter_map(|(index, entry)| self.disk_info(index, entry))
    }

    fn disk_info(&self, index: u8, entry: &UnitEntry) -> Option<DiskInfo> {
        let function = self.functions.get(usize::from(entry.function))?;
        let mut details = None;
        let (state, inquiry) = match &entry.state {
            UnitState::Free => return None,
            UnitState::BringUp(machine, _) if machine.is_looking() => {
                (DiskState::Empty, machine.inquiry())
            }
            UnitState::BringUp(..) | UnitState::Away => {
                let before = entry.before.as_ref();
                details = before.map(|found| found.details);
                (DiskState::NotReady, before.map(|found| found.inquiry))
            }
            UnitState::Ready(found) => {
                details = Some(found.details);
                let geometry = entry.geometry().ok()?;
                (DiskState::Ready(geometry), Some(found.inquiry))
            }
            UnitState::Empty(inquiry) => (DiskState::Empty, Some(*inquiry)),
            UnitState::Failed(error) => (DiskState::Failed(*error), None),
        };
        Some(DiskInfo {
            id: DiskId {
                index,
                generation: entry.generation,
            },
            device: self.device_of(function)?,
            unit: entry.lun,
            state,
            inquiry,
            details,
            usage: function.usage?,
            quirks: function.function.quirks(),
            decision: *function.function.decision(),
        })
    }

    /// The device of a function, or what was known of it before it was opened again.
    fn device_of(&self, slot: &FunctionSlot) -> Option<DeviceInfo> {
        let device = slot.function.device();
        let info = device.and_then(|device| self.bus.info(device));
        info.or(slot.home.as_ref().map(|home| *home.info()))
    }

    /// How commands travel to a device with storage, and why not otherwise.
    pub fn usage(&self, device: DeviceId) -> Option<Usage> {
        let function = self.function_of(device)?;
        self.functions.get(usize::from(function))?.usage
    }

    /// How much of a disk's data was copied rather than reached by the controller itself, since its
    /// device was configured; all units of a device are counted together. `None` once it has gone.
    pub fn copies(&self, disk: DiskId) -> Option<CopyCount> {
        let function = self.unit(disk)?.function;
        let slot = self.functions.get(usize::from(function))?;
        Some(slot.function.copies())
    }

    /// How a disk is used over UAS; `None` over Bulk-Only, or once it has gone.
    pub fn uas(&self, disk: DiskId) -> Option<UasInfo> {
        let function = self.unit(disk)?.function;
        let slot = self.functions.get(usize::from(function))?;
        let transport = slot.function.uas()?;
        Some(UasInfo {
            streams: transport.mode() == Mode::Streams,
            depth: transport.depth(),
            counters: transport.counters(),
        })
    }

    /// The first disk that can be used.
    ///
    /// # Errors
    ///
    /// [`BlockError::NotReady`] if there is none (yet).
    pub fn first_disk(&self) -> Result<DiskId, BlockError> {
        let ready = |disk: &DiskInfo| matches!(disk.state, DiskState::Ready(_));
        self.disks()
            .find(ready)
            .map(|disk| disk.id)
            .ok_or(BlockError::NotReady)
    }
}
