//! Arrivals and removals, as a kernel wants them: one at a time, none lost, none twice.
//!
//! There is no queue that could overflow. Each entry of the tables remembers which use of it was
//! told of; [`Host::take_event`] compares that with what is there. What came and went between two
//! calls was never told of, and is not now.

use super::Host;
use crate::block::queue::DiskId;
use crate::host::RootPort;
use crate::platform::{ControllerId, Platform};
use crate::scsi::unit::{UnitEntry, UnitState};
use crate::usb::{Change, DeviceId, Driver};

/// What has come or gone. Ids have generations: the id of something that has gone names nothing
/// any more, also when its place is used again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostEvent {
    /// A device was described. One that was reset to recover it is a new one to the bus, though its
    /// disks stay.
    DeviceArrived(DeviceId),
    /// A device has gone, after its disks.
    DeviceRemoved(DeviceId),
    /// A disk can be used: it was found, or a medium was put in.
    DiskReady(DiskId),
    /// A root port has lost its power because of over-current, and what was on it is gone.
    OverCurrent(ControllerId, RootPort),
    /// A disk cannot be used any more: it was pulled or given up, or its medium was taken out. A disk
    /// that is being recovered is not gone.
    DiskGone(DiskId),
}

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Takes the next event; `None` when all was told. Ask after [`Host::poll`].
    pub fn take_event(&mut self) -> Option<HostEvent> {
        if let Some(disk) = self.take_disk(is_gone) {
            return Some(HostEvent::DiskGone(disk));
        }
        if let Some((controller, port)) = self.bus.take_surge() {
            return Some(HostEvent::OverCurrent(controller, port));
        }
        match self.bus.take_change() {
            Some((device, Change::Removed)) => return Some(HostEvent::DeviceRemoved(device)),
            Some((device, Change::Arrived)) => return Some(HostEvent::DeviceArrived(device)),
            None => {}
        }
        self.take_disk(is_new).map(HostEvent::DiskReady)
    }

    /// The first disk that was not told of yet, as `news` says what is told of it from now on.
    fn take_disk(&mut self, news: fn(&UnitEntry) -> Option<News>) -> Option<DiskId> {
        let (index, entry, news) = (0_u8..)
            .zip(self.units.iter_mut())
            .find_map(|(index, entry)| news(entry).map(|news| (index, entry, news)))?;
        entry.told = news.told;
        Some(DiskId {
            index,
            generation: news.generation,
        })
    }
}

/// Which use of an entry an event is about, and which is told of from then on.
struct News {
    generation: u32,
    told: Option<u32>,
}

fn is_gone(entry: &UnitEntry) -> Option<News> {
    let generation = entry.told?;
    let is_over = match entry.state {
        UnitState::Free | UnitState::Empty(_) | UnitState::Failed(_) => true,
        UnitState::Ready(_) | UnitState::BringUp(..) | UnitState::Away => {
            generation != entry.generation
        }
    };
    is_over.then_some(News {
        generation,
        told: None,
    })
}

fn is_new(entry: &UnitEntry) -> Option<News> {
    (entry.told.is_none() && entry.is_ready()).then_some(News {
        generation: entry.generation,
        told: Some(entry.generation),
    })
}
