//! The bus: controllers, their ports, the devices on them, and the machines that serve them.
//!
//! Called by the stack, which owns it; calls the controllers. [`Bus::poll`] takes one thing at a
//! time from the controllers or the timers, carries out what the machines answer, and returns what
//! the drivers above must know. Nothing waits, and each call does bounded work.
//!
//! Invariant: a device has at most one operation under way (see [`super::operation`]), and a
//! controller enumerates one port at a time, so that address 0 is never shared.

mod configure;
mod halves;
mod lane;
mod operate;
mod ports;
mod start;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod token;
mod transfers;
mod turns;

use super::descriptor::EndpointAddress;
use super::device::{DeviceEntry, DeviceId, DeviceInfo, DeviceState, Requester};
use super::error::UsbError;
use super::operation::Operation;
use super::port::PortEntry;
use super::speed::Speed;
use crate::dma::{Pool, SegmentRules};
use crate::host::{
    Capabilities, ControllerFault, Devices, EndpointHandle, Endpoints, Event, HostController,
    HostError, Hubs, RootPort, RootPorts, TransferEnd,
};
use crate::platform::ControllerId;
use crate::time::Instant;
pub(crate) use configure::Configuring;
pub use configure::FunctionConfig;
use lane::Lane;
pub use start::ControllerState;
use start::Reach;
use token::Kind;
pub(crate) use token::function as function_token;
pub use token::function_and_tag;
pub use turns::Turn;

/// A controller with all five parts.
pub trait Driver: HostController + Devices + Endpoints + Hubs + RootPorts {}

impl<T: HostController + Devices + Endpoints + Hubs + RootPorts> Driver for T {}

/// A controller of the bus. The caller of the stack provides a slice of them.
#[derive(Debug)]
pub struct ControllerSlot<C> {
    driver: Option<C>,
    state: ControllerState,
    lane: Option<Lane>,
    reach: Reach,
    /// How often it was started again after it died.
    restarts: u8,
    /// How often on behalf of a device.
    renewals: u8,
}

impl<C> ControllerSlot<C> {
    /// An unused slot.
    pub const EMPTY: Self = Self {
        driver: None,
        state: ControllerState::Stopped,
        lane: None,
        reach: Reach::Open,
        restarts: 0,
        renewals: 0,
    };

    /// When the controller is due to start again.
    fn restart(&self) -> Instant {
        match self.state {
            ControllerState::Restarting => Instant::from_micros(0),
            _ => Instant::NEVER,
        }
    }
}

/// What a driver above the bus must know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BusEvent {
    /// A device's descriptors are known: does a driver want it?
    Described(DeviceId),
    /// [`Bus::configure`] has ended.
    Configured(DeviceId, Result<(), UsbError>),
    /// The operation that the device's driver began has ended, with the bytes of data.
    Operated(DeviceId, Result<u32, UsbError>),
    /// A transfer of a driver's function has ended: [`function_and_tag`] says whose
    /// it was.
    Transfer(TransferEnd),
    /// A device has gone or was given up. Its transfers may still be in flight.
    Gone(DeviceId),
    /// The controller has let go of a device: none of its memory is reached now.
    Closed(DeviceId, Fate),
    /// What was away from this port, to be reset or without power, was pulled meanwhile: it does not
    /// come back.
    Vacated(ControllerId, RootPort),
    /// A controller could not be stopped: it may reach memory of its devices, or of whoever had it before, for
    /// ever, unless the platform can cut its DMA. Its devices are reported as closed after that.
    Runaway(ControllerId, ControllerFault),
}

/// What [`Bus::take_change`] tells of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// It was described.
    Arrived,
    /// It has gone, and the controller has let go of it.
    Removed,
}

/// What becomes of a device that was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It has gone, or was given up.
    Gone,
    /// Its port or its controller is reset: if it is not pulled meanwhile, it is described again.
    Returning,
}

/// An open endpoint of a device, as its driver holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pipe {
    /// The device.
    pub device: DeviceId,
    /// The endpoint's address.
    pub address: EndpointAddress,
    /// The controller of the device.
    pub(crate) controller: ControllerId,
    /// The controller's handle.
    pub(crate) handle: EndpointHandle,
}

/// The storage of a bus, from the caller of the stack. Of each slice 255 entries are used at most.
#[derive(Debug)]
pub struct BusStorage<'s, C> {
    /// One for each controller.
    pub controllers: &'s mut [ControllerSlot<C>],
    /// One for each root port of all controllers.
    pub ports: &'s mut [PortEntry],
    /// One for each device, hubs included.
    pub devices: &'s mut [DeviceEntry],
}

/// All controllers and devices.
#[derive(Debug)]
pub struct Bus<'s, C> {
    controllers: &'s mut [ControllerSlot<C>],
    ports: &'s mut [PortEntry],
    devices: &'s mut [DeviceEntry],
    pool: Pool<'s>,
    /// Which controller is asked next.
    cursor: usize,
    /// How many things it has reported in a row.
    taken: u8,
    /// When the ports, lanes and operations must be looked at.
    next_timer: Instant,
    /// When a controller's share was over before its events were.
    cut_short: Instant,
    /// In how many polls in a row that was so.
    behind: u8,
    /// When there is something to do at the latest: for the timers, or for a driver.
    wake: Instant,
    /// A function's driver has queued transfers that the controller is to be told of soon.
    owes_kick: bool,
}

/// The part of a table that its numbers, which are bytes, can count: 255 entries.
pub(crate) fn countable<T>(table: &mut [T]) -> &mut [T] {
    let length = table.len().min(usize::from(u8::MAX));
    table.get_mut(..length).unwrap_or_default()
}

impl<'s, C: Driver> Bus<'s, C> {
    /// A bus without controllers, on `pool`.
    pub fn new(storage: BusStorage<'s, C>, pool: Pool<'s>) -> Self {
        let BusStorage {
            controllers,
            ports,
            devices,
        } = storage;
        Self {
            controllers: countable(controllers),
            ports: countable(ports),
            devices: countable(devices),
            pool,
            cursor: 0,
            taken: 0,
            next_timer: Instant::from_micros(0),
            cut_short: Instant::NEVER,
            behind: 0,
            wake: Instant::from_micros(0),
            owes_kick: false,
        }
    }

    /// The drivers, which fill the slice from its start.
    #[inline]
    fn drivers(&self) -> impl Iterator<Item = &C> {
        self.controllers
            .iter()
            .map_while(|slot| slot.driver.as_ref())
    }

    /// Sorts one event of the controller whose turn it is.
    #[inline]
    fn take(&mut self, event: Event, now: Instant) -> Option<BusEvent> {
        let Event::Transfer {
            token,
            outcome,
            actual,
            ..
        } = event
        else {
            let controller = ControllerId(self.cursor as u8);
            return self.handle(controller, event, now);
        };
        match Kind::of(token)? {
            Kind::Function => Some(BusEvent::Transfer(TransferEnd {
                token,
                actual,
                outcome,
            })),
            Kind::Control { device, count } => {
                self.control_ended(device, count, outcome, actual, now)
            }
        }
    }

    /// Takes an event that is not the end of a transfer.
    #[cold]
    #[inline(never)]
    fn handle(&mut self, controller: ControllerId, event: Event, now: Instant) -> Option<BusEvent> {
        match event {
            Event::Transfer { .. } => None,
            Event::Endpoint { endpoint, result } => {
                self.endpoint_ended(controller, endpoint, result, now)
            }
            Event::Device { device, result } => self.device_ended(controller, device, result, now),
            Event::Port(port) => {
                self.port_changed(controller, port);
                None
            }
            Event::Started(result) => self.controller_started(controller, result, now),
            Event::Stopped(result) => self.controller_stopped(controller, result, now),
            Event::Died(fault) => self.controller_died(controller, fault, now),
        }
    }

    /// Looks at everything that time moves, one thing at a time; the first that a driver must know
    /// ends the walk, and the rest is due again at once.
    #[cold]
    #[inline(never)]
    fn run_timers(&mut self, now: Instant) -> Option<BusEvent> {
        let event = self
            .release_dead_devices(now)
            .or_else(|| self.run_ports(now))
            .or_else(|| self.run_lanes(now))
            .or_else(|| self.run_operations(now));
        self.next_timer = match event {
            Some(_) => now,
            None => self.earliest_timer(),
        };
        event
    }

    fn earliest_timer(&self) -> Instant {
        let mut earliest = Instant::NEVER;
        for port in self.ports.iter().filter(|port| port.in_use) {
            earliest = earliest.min(self.port_deadline(port));
        }
        for slot in self.controllers.iter() {
            let lane = slot.lane.as_ref().map_or(Instant::NEVER, Lane::deadline);
            earliest = earliest.min(lane).min(slot.restart());
        }
        for device in self.devices.iter().filter(|device| device.in_use) {
            earliest = earliest.min(device.deadline());
        }
        earliest
    }

    /// A waiting port has no time of its own while another one is at its turn: the end of that wakes.
    fn port_deadline(&self, port: &PortEntry) -> Instant {
        let slot = self.controllers.get(usize::from(port.controller.0));
        match slot {
            Some(slot) if slot.state != ControllerState::Running => Instant::NEVER,
            Some(slot) if slot.lane.is_some() && !port.changed && port.is_waiting() => {
                Instant::NEVER
            }
            _ => port.deadline(),
        }
    }

    /// Makes the bus due at a time, if it is not before.
    #[inline(never)]
    pub(crate) fn wake_at(&mut self, time: Instant) {
        self.next_timer = self.next_timer.min(time);
        self.wake = self.wake.min(time);
    }

    fn slot_mut(&mut self, controller: ControllerId) -> Option<&mut ControllerSlot<C>> {
        self.controllers.get_mut(usize::from(controller.0))
    }

    /// A controller's driver, to begin something: the next poll asks for its deadline.
    #[inline(never)]
    fn driver(&mut self, controller: ControllerId) -> Option<&mut C> {
        self.wake = Instant::from_micros(0);
        self.transfer_driver(controller).ok()
    }

    /// A controller's driver for transfers, which move no deadline. For whoever has several for it.
    ///
    /// # Errors
    ///
    /// [`HostError::Dead`]: there is no such controller.
    #[inline]
    pub(crate) fn transfer_driver(
        &mut self,
        controller: ControllerId,
    ) -> Result<&mut C, HostError> {
        let slot = self.controllers.get_mut(usize::from(controller.0));
        slot.and_then(|slot| slot.driver.as_mut())
            .ok_or(HostError::Dead)
    }

    #[inline(never)]
    fn device(&self, id: DeviceId) -> Option<&DeviceEntry> {
        let entry = self.devices.get(usize::from(id.index))?;
        (entry.in_use && entry.generation == id.generation).then_some(entry)
    }

    #[inline(never)]
    fn device_mut(&mut self, id: DeviceId) -> Option<&mut DeviceEntry> {
        let entry = self.devices.get_mut(usize::from(id.index))?;
        (entry.in_use && entry.generation == id.generation).then_some(entry)
    }
}

/// For drivers of functions.
impl<'s, C: Driver> Bus<'s, C> {
    /// The pool, for what a driver needs of its own.
    pub fn pool(&mut self) -> &mut Pool<'s> {
        &mut self.pool
    }

    /// Ends a bus whose controllers have stopped.
    #[must_use]
    pub fn into_pool(self) -> Pool<'s> {
        self.pool
    }

    /// How fast a device is.
    #[must_use]
    pub fn speed(&self, device: DeviceId) -> Option<Speed> {
        Some(self.device(device)?.attachment.as_ref()?.speed)
    }

    /// The controller that a device is on.
    #[must_use]
    pub fn controller_of(&self, device: DeviceId) -> Option<ControllerId> {
        Some(self.device(device)?.controller)
    }

    /// What a device's controller can do.
    #[must_use]
    pub fn capabilities(&self, device: DeviceId) -> Option<Capabilities> {
        let controller = self.device(device)?.controller;
        let slot = self.controllers.get(usize::from(controller.0))?;
        Some(slot.driver.as_ref()?.capabilities())
    }

    /// How memory must be cut for a device's controller.
    #[must_use]
    pub fn segment_rules(&self, device: DeviceId) -> Option<SegmentRules> {
        let capabilities = self.capabilities(device)?;
        Some(SegmentRules {
            mask: capabilities.address_mask,
            grain: capabilities.grain,
        })
    }

    /// What is known about a device; `None` once it has gone.
    #[must_use]
    pub fn info(&self, id: DeviceId) -> Option<DeviceInfo> {
        let entry = self.device(id)?;
        Some(DeviceInfo {
            id,
            controller: entry.controller,
            attachment: entry.attachment?,
            state: entry.state,
            descriptor: entry.descriptor,
            strings: entry.strings,
            power: entry.power,
            driver: entry.driver,
        })
    }

    /// Every device, in the order of the table.
    pub fn devices(&self) -> impl Iterator<Item = DeviceInfo> + '_ {
        (0_u8..)
            .zip(self.devices.iter())
            .filter_map(|(index, entry)| {
                self.info(DeviceId {
                    index,
                    generation: entry.generation,
                })
            })
    }

    /// Takes the next arrival or removal of a device that was not told of yet, removals first.
    pub fn take_change(&mut self) -> Option<(DeviceId, Change)> {
        let mut all = (0_u8..).zip(self.devices.iter_mut());
        if let Some((index, entry)) = all.find(|(_, entry)| entry.is_told_over()) {
            let generation = entry.told.take()?;
            return Some((DeviceId { index, generation }, Change::Removed));
        }
        let mut all = (0_u8..).zip(self.devices.iter_mut());
        let (index, entry) = all.find(|(_, entry)| entry.is_news())?;
        let generation = entry.generation;
        entry.told = Some(generation);
        Some((DeviceId { index, generation }, Change::Arrived))
    }

    /// Every root port in use.
    pub fn ports(&self) -> impl Iterator<Item = &PortEntry> {
        self.ports.iter().filter(|port| port.in_use)
    }

    /// A described device could not be taken into use: the tree says why.
    pub fn set_failed(&mut self, device: DeviceId, error: UsbError) {
        if let Some(entry) = self.device_mut(device) {
            entry.state = DeviceState::Failed(error);
        }
    }

    /// Says who uses a device, for the tree.
    pub fn set_driver_name(&mut self, device: DeviceId, name: &'static str) {
        if let Some(entry) = self.device_mut(device) {
            entry.driver = name;
        }
    }

    /// Whether an operation is under way on a device.
    #[must_use]
    pub fn is_operating(&self, device: DeviceId) -> bool {
        let entry = self.device(device);
        entry.is_some_and(|entry| entry.operation.is_some())
    }

    /// Begins an operation on a device for its driver; [`BusEvent::Operated`] ends it.
    ///
    /// # Errors
    ///
    /// [`UsbError::Busy`] if one is under way, [`UsbError::Disconnected`].
    pub fn operate(
        &mut self,
        device: DeviceId,
        operation: Operation,
        now: Instant,
    ) -> Result<(), UsbError> {
        let entry = self.device(device).ok_or(UsbError::Disconnected)?;
        if entry.state != DeviceState::Configured {
            return Err(UsbError::Disconnected);
        }
        self.begin(device, Requester::Function, operation, now)
    }

    /// The bytes of the device's control buffer, from its start: the data of the last request.
    pub fn read_control(&self, device: DeviceId, bytes: &mut [u8]) {
        if let Some(buffer) = self
            .device(device)
            .and_then(|entry| entry.control_buffer.as_ref())
        {
            buffer.read_bytes(0, bytes);
        }
    }

    /// Copies the device's first configuration into `bytes`, and returns what came of it.
    pub fn read_configuration<'b>(&self, device: DeviceId, bytes: &'b mut [u8]) -> &'b [u8] {
        let Some(entry) = self.device(device) else {
            return &[];
        };
        let Some(buffer) = entry.control_buffer.as_ref() else {
            return &[];
        };
        let length = usize::from(entry.configuration_length).min(bytes.len());
        let Some(bytes) = bytes.get_mut(..length) else {
            return &[];
        };
        buffer.read_bytes(operate::CONFIGURATION_OFFSET, bytes);
        bytes
    }
}
