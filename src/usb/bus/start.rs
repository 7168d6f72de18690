//! Controllers as a whole: added, started, stopped, and what happens when one dies.
//!
//! A controller that dies is stopped, which ends its DMA; its devices are closed; then it is
//! started again, at most [`RESTARTS`] times. The same is done as often on behalf of a device that
//! nothing less has helped: see [`Bus::restart_controller`].

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
    /// Not started, or stopped: it reaches no memory.
    Stopped,
    /// On its way up.
    Starting,
    /// It runs.
    Running,
    /// On its way down for good.
    Stopping,
    /// On its way down because it died; it is started again after that.
    Recovering(ControllerFault),
    /// On its way down on behalf of one of its devices; it is started again after that.
    Renewing,
    /// It has stopped, and starts again when its devices are closed.
    Restarting,
    /// It does not work.
    Failed(ControllerFault),
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
                driver.start(&mut self.pool, now);
            }
        }
        self.wake_at(now);
    }

    /// Begins to stop every controller that is not stopped. Its devices are reported as gone, and
    /// as closed when it has stopped.
    pub fn stop(&mut self, now: Instant) {
        for slot in self.controllers.iter_mut() {
            let Some(driver) = slot.driver.as_mut() else {
                continue;
            };
            if !matches!(slot.state, ControllerState::Stopped) {
                slot.state = ControllerState::Stopping;
                slot.lane = None;
                driver.stop(now);
            }
        }
        self.wake_at(now);
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
    ) {
        let Some(slot) = self.slot_mut(controller) else {
            return;
        };
        if slot.state != ControllerState::Starting {
            // It was told to stop meanwhile.
            return;
        }
        slot.state = match result {
            Ok(()) => ControllerState::Running,
            Err(fault) => ControllerState::Failed(fault),
        };
        if result.is_ok() {
            for port in self
                .ports
                .iter_mut()
                .filter(|port| port.in_use && port.controller == controller)
            {
                port.changed = true;
                if port.kept {
                    port.state = PortState::PoweringOn(now + POWER_ON);
                }
            }
        }
        self.wake_at(now);
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
        slot.runs_away = result.is_err();
        if let Err(fault) = result {
            slot.state = ControllerState::Failed(fault);
            return Some(BusEvent::Runaway(controller, fault));
        }
        slot.state = match slot.state {
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

    /// The platform has cut a runaway controller off from memory: its devices can be closed.
    pub fn confirm_cut(&mut self, controller: ControllerId, now: Instant) {
        if let Some(slot) = self.slot_mut(controller) {
            slot.runs_away = false;
        }
        self.orphan(controller, now);
    }

    /// Whether a controller that did not stop may still reach memory, of devices or of its own.
    #[must_use]
    pub fn has_runaway(&self) -> bool {
        self.controllers.iter().any(|slot| slot.runs_away)
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
