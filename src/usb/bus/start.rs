//! Controllers as a whole: added, started, stopped, and what happens when one dies.
//!
//! A controller that dies is stopped, which ends its DMA; its devices are closed; then it is
//! started again, at most [`RESTARTS`] times. The same is done as often on behalf of a device that
//! nothing less has helped: see [`Bus::restart_controller`]. One that cannot be started is stopped, too: whoever
//! had it before may have left it running over memory that is somebody else's now.
//!
//! Invariant: as long as a controller may reach memory by itself, [`Bus::is_quiet`] is false.

use super::{Bus, BusEvent, Driver, Fate};
use crate::host::{Capabilities, ControllerFault, PortProtocol, RootPort};
use crate::platform::ControllerId;
use crate::time::Instant;
use crate::usb::device::{DeviceId, DeviceState};
use crate::usb::error::{Table, UsbError};
use crate::usb::port::{POWER_ON, PortEntry, PortState};

/// How often a controller that died is started again. Policy: once may be an accident, twice is a
/// pattern; a loop of resets would hold up the others for ever.
const RESTARTS: u8 = 2;

/// Where a controller is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControllerState {
    /// Not started yet, as it was found; or stopped: it reaches no memory.
    Stopped,
    /// On its way up.
    Starting,
    /// It runs.
    Running,
    /// On its way down for good.
    Stopping,
    /// On its way down because it could not be started: it may have been left running, or run later.
    Aborting(ControllerFault),
    /// On its way down because it died; it is started again after that.
    Recovering(ControllerFault),
    /// On its way down on behalf of one of its devices; it is started again after that.
    Renewing,
    /// It has stopped, and starts again when its devices are closed.
    Restarting,
    /// It does not work.
    Failed(ControllerFault),
}

/// What is known of a controller's own accesses to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    /// It may access any memory that it was told of, by us or by whoever had it before.
    Open,
    /// It was halted and reset.
    Ended,
    /// The platform has cut it off, maybe by its reset line or its clock: no register is touched any more.
    CutOff,
}

impl<C: Driver> Bus<'_, C> {
    /// Adds a controller that was probed, and its root ports. It is not started yet.
    ///
    /// # Errors
    ///
    /// [`UsbError::TableFull`] says which slice of the storage is too short;
    /// [`UsbError::WrongNumber`] if the driver was not made for the next free place, the first being 0.
    pub fn add(&mut self, driver: C) -> Result<ControllerId, UsbError> {
        let free = self
            .controllers
            .iter()
            .position(|slot| slot.driver.is_none());
        let index = free.ok_or(UsbError::TableFull(Table::Controllers))?;
        let controller = ControllerId(index as u8);
        if driver.capabilities().number != controller.0 {
            return Err(UsbError::WrongNumber);
        }
        let ports = driver.capabilities().root_ports;
        if self.ports.iter().filter(|entry| !entry.in_use).count() < usize::from(ports) {
            return Err(UsbError::TableFull(Table::Ports));
        }
        let unused = self.ports.iter_mut().filter(|entry| !entry.in_use);
        for (port, entry) in (0..ports).zip(unused) {
            let port = RootPort(port);
            *entry = PortEntry {
                controller,
                port,
                in_use: true,
                ..PortEntry::EMPTY
            };
        }
        if let Some(slot) = self.slot_mut(controller) {
            slot.driver = Some(driver);
        }
        Ok(controller)
    }

    /// Begins to start every controller that is stopped.
    pub fn start(&mut self, now: Instant) {
        for slot in self.controllers.iter_mut() {
            if let (ControllerState::Stopped, Some(driver)) = (slot.state, slot.driver.as_mut()) {
                slot.state = ControllerState::Starting;
                slot.reach = Reach::Open;
                driver.start(&mut self.pool, now);
            }
        }
        self.wake_at(now);
    }

    /// Begins to stop every controller that is not stopped, one that was never started too: a boot loader may have
    /// left it running. Its devices are reported as gone, and as closed when it has stopped.
    pub fn stop(&mut self, now: Instant) {
        for slot in self.controllers.iter_mut() {
            let Some(driver) = slot.driver.as_mut() else {
                continue;
            };
            let is_stopped = slot.state == ControllerState::Stopped && slot.reach == Reach::Ended;
            if !is_stopped && slot.reach != Reach::CutOff {
                slot.state = ControllerState::Stopping;
                slot.lane = None;
                driver.stop(now);
            }
        }
        self.wake_at(now);
    }

    /// Whether it is certain that no controller reaches memory: each was stopped or cut off.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let mut used = self.controllers.iter().filter(|slot| slot.driver.is_some());
        used.all(|slot| slot.reach != Reach::Open)
    }

    /// Where a controller is.
    #[must_use]
    pub fn controller_state(&self, controller: ControllerId) -> Option<ControllerState> {
        let slot = self.controllers.get(usize::from(controller.0))?;
        slot.driver.as_ref().map(|_| slot.state)
    }

    /// The controllers that were added, with what each can do.
    pub fn controllers(
        &self,
    ) -> impl Iterator<Item = (ControllerId, ControllerState, Capabilities)> {
        (0_u8..)
            .zip(self.controllers.iter())
            .filter_map(|(index, slot)| {
                let capabilities = slot.driver.as_ref()?.capabilities();
                Some((ControllerId(index), slot.state, capabilities))
            })
    }

    /// A controller's driver, for what is its own.
    pub fn driver_mut(&mut self, controller: ControllerId) -> Option<&mut C> {
        self.driver(controller)
    }

    /// Whether a root port belongs to the SuperSpeed bus.
    #[must_use]
    pub fn port_protocol(&self, entry: &PortEntry) -> Option<PortProtocol> {
        let slot = self.controllers.get(usize::from(entry.controller.0))?;
        Some(slot.driver.as_ref()?.port_protocol(entry.port))
    }

    pub(super) fn controller_started(
        &mut self,
        controller: ControllerId,
        result: Result<(), ControllerFault>,
        now: Instant,
    ) -> Option<BusEvent> {
        let slot = self.slot_mut(controller)?;
        if slot.state != ControllerState::Starting {
            // It was told to stop meanwhile.
            return None;
        }
        match result {
            Ok(()) => {
                slot.state = ControllerState::Running;
                self.look_at_ports_of(controller, now);
            }
            // It is the firmware's, and stays so until the host leaves.
            Err(fault @ ControllerFault::FirmwareHolds) => {
                slot.state = ControllerState::Failed(fault);
            }
            // All that a stop could do was done.
            Err(fault @ ControllerFault::ResetTimeout) => {
                slot.state = ControllerState::Failed(fault);
                return Some(BusEvent::Runaway(controller, fault));
            }
            Err(fault) => {
                slot.state = ControllerState::Aborting(fault);
                slot.driver.as_mut()?.stop(now);
            }
        }
        self.wake_at(now);
        None
    }

    /// A controller has started: nothing is known of its ports.
    fn look_at_ports_of(&mut self, controller: ControllerId, now: Instant) {
        let all = self.ports.iter_mut();
        for port in all.filter(|port| port.in_use && port.controller == controller) {
            port.changed = true;
            if port.kept {
                port.state = PortState::PoweringOn(now + POWER_ON);
            }
        }
    }

    pub(super) fn controller_died(
        &mut self,
        controller: ControllerId,
        fault: ControllerFault,
        now: Instant,
    ) -> Option<BusEvent> {
        let slot = self.slot_mut(controller)?;
        slot.lane = None;
        slot.state = match slot.state {
            // On its way down for good, or down: it is not started again.
            ControllerState::Stopping => ControllerState::Stopping,
            ControllerState::Renewing => ControllerState::Renewing,
            ControllerState::Aborting(fault) => ControllerState::Aborting(fault),
            ControllerState::Stopped | ControllerState::Failed(_) => return None,
            _ => ControllerState::Recovering(fault),
        };
        slot.driver.as_mut()?.stop(now);
        self.wake_at(now);
        None
    }

    /// Whether [`Bus::restart_controller`] may be called: the controller runs, and was not started
    /// again so too often.
    #[must_use]
    pub fn may_restart(&self, controller: ControllerId) -> bool {
        let slot = self.controllers.get(usize::from(controller.0));
        slot.is_some_and(|slot| slot.state == ControllerState::Running && slot.renewals < RESTARTS)
    }

    /// Stops a controller that seems to run and starts it again, because a device on it could not be
    /// helped otherwise. All of its devices are reported as closed and described again, those that
    /// nobody pulled meanwhile as [`Fate::Returning`].
    pub fn restart_controller(&mut self, controller: ControllerId, now: Instant) {
        if !self.may_restart(controller) {
            return;
        }
        let Some(slot) = self.slot_mut(controller) else {
            return;
        };
        slot.lane = None;
        slot.state = ControllerState::Renewing;
        if let Some(driver) = slot.driver.as_mut() {
            driver.stop(now);
        }
        self.wake_at(now);
    }

    /// A controller reaches no memory any more, or cannot be brought to that.
    pub(super) fn controller_stopped(
        &mut self,
        controller: ControllerId,
        result: Result<(), ControllerFault>,
        now: Instant,
    ) -> Option<BusEvent> {
        let slot = self.slot_mut(controller)?;
        slot.lane = None;
        if let Err(fault) = result {
            slot.state = ControllerState::Failed(match slot.state {
                ControllerState::Aborting(first) => first,
                _ => fault,
            });
            return Some(BusEvent::Runaway(controller, fault));
        }
        slot.reach = Reach::Ended;
        slot.state = match slot.state {
            ControllerState::Aborting(fault) => ControllerState::Failed(fault),
            ControllerState::Recovering(fault) if slot.restarts >= RESTARTS => {
                ControllerState::Failed(fault)
            }
            ControllerState::Recovering(_) => {
                slot.restarts += 1;
                ControllerState::Restarting
            }
            ControllerState::Renewing => {
                slot.renewals += 1;
                ControllerState::Restarting
            }
            _ => ControllerState::Stopped,
        };
        self.orphan(controller, now);
        None
    }

    /// The platform has cut a controller off from memory: a runaway, or one whose borrowed memory is its owner's
    /// again. Its devices can be closed. It is neither stopped nor started again.
    pub fn confirm_cut(&mut self, controller: ControllerId, now: Instant) {
        if let Some(slot) = self.slot_mut(controller) {
            slot.reach = Reach::CutOff;
            slot.lane = None;
            if !matches!(slot.state, ControllerState::Failed(_)) {
                slot.state = ControllerState::Failed(ControllerFault::CutOff);
            }
            if let Some(driver) = slot.driver.as_mut() {
                driver.abandon();
            }
        }
        self.orphan(controller, now);
    }

    /// The devices of a controller that reaches no memory are gone; each is released and reported
    /// by [`Bus::release_dead_devices`], after which the controller may start again.
    fn orphan(&mut self, controller: ControllerId, now: Instant) {
        let is_restarting = self.controller_state(controller) == Some(ControllerState::Restarting);
        for index in 0..self.devices.len() {
            let fate = match self.id_of(index) {
                Some(id) if is_restarting && self.is_plugged(id) => Fate::Returning,
                _ => Fate::Gone,
            };
            let Some(entry) = self.devices.get_mut(index) else {
                break;
            };
            if entry.in_use && entry.controller == controller {
                entry.state = DeviceState::Orphaned(fate);
                entry.deadline = Instant::NEVER;
                entry.operation = None;
            }
        }
        for port in self
            .ports
            .iter_mut()
            .filter(|port| port.controller == controller)
        {
            // One that was kept is away for a reset, and nobody has pulled it.
            port.kept = is_restarting && (port.kept || port.device().is_some());
            port.state = PortState::Empty;
            port.note_empty(now);
            port.dark = false;
            port.changed = false;
        }
        self.pool.reclaim_controller(controller.0);
        self.wake_at(now);
    }

    /// Whether a port says that this device is on it: it was neither pulled nor given up.
    fn is_plugged(&self, id: DeviceId) -> bool {
        self.ports.iter().any(|port| port.device() == Some(id))
    }

    /// Releases one device of a stopped controller, and restarts a controller that has none left.
    pub(super) fn release_dead_devices(&mut self, now: Instant) -> Option<BusEvent> {
        if let Some(event) = self.release_orphan(now) {
            return Some(event);
        }
        let due = |state| matches!(state, ControllerState::Restarting);
        let slot = self.controllers.iter_mut().find(|slot| due(slot.state))?;
        slot.state = ControllerState::Starting;
        slot.reach = Reach::Open;
        slot.driver.as_mut()?.start(&mut self.pool, now);
        None
    }

    fn release_orphan(&mut self, now: Instant) -> Option<BusEvent> {
        let is_orphan = |state| matches!(state, DeviceState::Orphaned(_));
        let index = self
            .devices
            .iter()
            .position(|entry| entry.in_use && is_orphan(entry.state))?;
        let id = self.id_of(index)?;
        self.closed(id, now)
    }
}
