//! [`Tables`]: the host's [`Storage`] as one value, for callers that need no other proportions.

use super::{FunctionSlot, Storage};
use crate::block::queue::{HolderEntry, RequestSlot};
use crate::dma::PoolRecord;
use crate::scsi::unit::UnitEntry;
use crate::storage::fallback::Fallback;
use crate::storage::uas::CommandSlot;
use crate::usb::{ControllerSlot, DeviceEntry, PortEntry};

/// Pieces of the pool for each device, with its share of its controller's.
const PIECES: usize = 24;

/// Tables for so many controllers, root ports, devices and requests in flight; as many storage
/// interfaces and units as devices, and as many commands in flight on UAS devices as requests: see
/// [`Storage::commands`] for how several devices share them.
///
/// It holds no pointers into itself: put it into a `static`, on the stack, or where you like.
#[derive(Debug)]
pub struct Tables<
    C,
    const CONTROLLERS: usize,
    const PORTS: usize,
    const DEVICES: usize,
    const REQUESTS: usize,
> {
    controllers: [ControllerSlot<C>; CONTROLLERS],
    ports: [PortEntry; PORTS],
    devices: [DeviceEntry; DEVICES],
    functions: [FunctionSlot; DEVICES],
    units: [UnitEntry; DEVICES],
    requests: [RequestSlot; REQUESTS],
    commands: [CommandSlot; REQUESTS],
    holders: [HolderEntry; DEVICES],
    fallbacks: [Fallback; CONTROLLERS],
    pool: [[PoolRecord; PIECES]; DEVICES],
}

impl<C, const CONTROLLERS: usize, const PORTS: usize, const DEVICES: usize, const REQUESTS: usize>
    Tables<C, CONTROLLERS, PORTS, DEVICES, REQUESTS>
{
    /// Empty tables.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            controllers: [const { ControllerSlot::EMPTY }; CONTROLLERS],
            ports: [const { PortEntry::EMPTY }; PORTS],
            devices: [const { DeviceEntry::EMPTY }; DEVICES],
            functions: [const { FunctionSlot::EMPTY }; DEVICES],
            units: [const { UnitEntry::EMPTY }; DEVICES],
            requests: [const { RequestSlot::EMPTY }; REQUESTS],
            commands: [const { CommandSlot::EMPTY }; REQUESTS],
            holders: [HolderEntry::EMPTY; DEVICES],
            fallbacks: [Fallback::NONE; CONTROLLERS],
            pool: [const { [PoolRecord::EMPTY; PIECES] }; DEVICES],
        }
    }

    /// The slices, for [`Host::new`](super::Host::new).
    pub fn storage(&mut self) -> Storage<'_, C> {
        Storage {
            controllers: &mut self.controllers,
            ports: &mut self.ports,
            devices: &mut self.devices,
            functions: &mut self.functions,
            units: &mut self.units,
            requests: &mut self.requests,
            commands: &mut self.commands,
            holders: &mut self.holders,
            fallbacks: &mut self.fallbacks,
            pool: self.pool.as_flattened_mut(),
        }
    }
}

impl<C, const CONTROLLERS: usize, const PORTS: usize, const DEVICES: usize, const REQUESTS: usize>
    Default for Tables<C, CONTROLLERS, PORTS, DEVICES, REQUESTS>
{
    fn default() -> Self {
        Self::new()
    }
}
