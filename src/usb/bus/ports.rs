//! Root ports: what changed, what has become stable, what has gone.

use super::{Bus, BusEvent, ControllerState, Driver};
use crate::host::{PortProtocol, PortStatus, RootPort};
use crate::platform::ControllerId;
use crate::time::Instant;
use crate::usb::device::DeviceId;
use crate::usb::error::UsbError;
use crate::usb::port::{
    DEBOUNCE, OTHER_HALF, POWER_OFF, POWER_ON, POWER_RETURNS, PortEntry, PortState,
};

impl<C: Driver> Bus<'_, C> {
    /// A controller reports that something about a port has changed.
    pub(super) fn port_changed(&mut self, controller: ControllerId, port: RootPort) {
        let is_it = |entry: &&mut super::PortEntry| {
            entry.in_use && entry.controller == controller && entry.port == port
        };
        if let Some(entry) = self.ports.iter_mut().find(is_it) {
            entry.changed = true;
            self.wake_at(Instant::from_micros(0));
        }
    }

    /// Looks at every port that changed or whose time has come.
    pub(super) fn run_ports(&mut self, now: Instant) -> Option<BusEvent> {
        for index in 0..self.ports.len() {
            let Some(entry) = self.ports.get(index) else {
                break;
            };
            if !entry.in_use || !self.runs(entry.controller) {
                continue;
            }
            let Some(entry) = self.ports.get_mut(index) else {
                break;
            };
            if entry.changed {
                entry.changed = false;
                if let Some(event) = self.look_at(index, now) {
                    return Some(event);
                }
            } else if now >= entry.deadline() {
                self.port_time(index, now);
            }
        }
        None
    }

    /// The time that a port waited for has come.
    fn port_time(&mut self, index: usize, now: Instant) {
        let Some(&entry) = self.ports.get(index) else {
            return;
        };
        let next = match entry.state {
            PortState::Debouncing(_) => PortState::Waiting(now, 0),
            PortState::Unpowered(_) if self.is_used_by_other_half(index) => {
                PortState::Unpowered(now + OTHER_HALF)
            }
            PortState::Unpowered(_) => {
                if let Some(driver) = self.driver(entry.controller) {
                    driver.power_port(entry.port, true);
                }
                PortState::PoweringOn(now + POWER_ON)
            }
            // Nothing has shown itself.
            PortState::PoweringOn(_) => PortState::Empty,
            // A waiting port is taken by the lane.
            _ => return,
        };
        if let Some(entry) = self.ports.get_mut(index) {
            // What is on it may have shown itself already: its power may come from elsewhere.
            entry.changed |= matches!(entry.state, PortState::Unpowered(_));
            entry.state = next;
            // What comes later is another one.
            entry.kept &= next != PortState::Empty;
            entry.note_empty(now);
        }
    }

    /// Reads and acknowledges what a port shows. A connection that comes or goes in between is acknowledged
    /// unseen, since its change is shown already: the port is looked at again then.
    fn take_port_status(&mut self, index: usize, now: Instant) -> Option<PortStatus> {
        let entry = *self.ports.get(index)?;
        let driver = self.driver(entry.controller)?;
        let status = driver.read_port(entry.port);
        driver.acknowledge(entry.port, &status);
        if driver.read_port(entry.port).connected != status.connected {
            self.ports.get_mut(index)?.changed = true;
            self.wake_at(now);
        }
        Some(status)
    }

    /// Resets the port of a device, so that it is enumerated again: [`BusEvent::Gone`] is not
    /// reported, [`BusEvent::Closed`] is, and [`BusEvent::Described`] names what is on the port
    /// then. [`Bus::is_kept`] tells whether it was pulled meanwhile.
    pub fn reset_device(&mut self, device: DeviceId, now: Instant) {
        self.leave_port(device, PortState::Resetting(device));
        self.close(device, now);
    }

    /// The same, with the port's power off for a while. Where the platform switches the power, it
    /// does so when the device is reported as closed.
    pub fn cycle_power(&mut self, device: DeviceId, now: Instant) {
        self.leave_port(device, PortState::PoweringOff(device));
        self.close(device, now);
    }

    fn leave_port(&mut self, device: DeviceId, state: PortState) {
        let mut ports = self.ports.iter_mut();
        if let Some(port) = ports.find(|port| port.is_occupied_by(device)) {
            port.state = state;
            port.kept = true;
        }
    }

    /// The controller has let go of a device: its port goes on, if it is to be reset. Returns
    /// whether it is.
    pub(super) fn port_left(&mut self, device: DeviceId, now: Instant) -> bool {
        let is_it = |port: &PortEntry| match port.state {
            PortState::Resetting(leaving) | PortState::PoweringOff(leaving) => leaving == device,
            _ => false,
        };
        let Some(index) = self.ports.iter().position(is_it) else {
            return false;
        };
        let Some(entry) = self.ports.get_mut(index) else {
            return false;
        };
        let (controller, port) = (entry.controller, entry.port);
        let cycle = matches!(entry.state, PortState::PoweringOff(_));
        entry.state = if cycle {
            PortState::Unpowered(now + POWER_OFF)
        } else {
            PortState::Waiting(now, 0)
        };
        if cycle {
            if let Some(driver) = self.driver(controller) {
                driver.power_port(port, false);
            }
            self.switch_other_half_off(index, now);
        }
        self.wake_at(now);
        true
    }

    /// The same for a port whose device did not come back from its reset.
    pub fn cycle_port(&mut self, controller: ControllerId, port: RootPort, now: Instant) {
        let is_it = |entry: &PortEntry| {
            entry.in_use && entry.controller == controller && entry.port == port
        };
        // No register of a controller that was cut off is touched.
        if !self.runs(controller) {
            return;
        }
        let Some(index) = self.ports.iter().position(is_it) else {
            return;
        };
        let Some(entry) = self.ports.get_mut(index) else {
            return;
        };
        if matches!(entry.state, PortState::Enumerating | PortState::Occupied(_)) {
            return;
        }
        entry.kept = true;
        entry.state = PortState::Unpowered(now + POWER_OFF);
        if let Some(driver) = self.driver(controller) {
            driver.power_port(port, false);
        }
        self.switch_other_half_off(index, now);
        self.wake_at(now);
    }

    /// Whether a device is the one that was on its port before [`Bus::reset_device`] or
    /// [`Bus::cycle_power`], as far as the port can tell: nothing was pulled.
    #[must_use]
    pub fn is_kept(&self, device: DeviceId) -> bool {
        self.ports
            .iter()
            .any(|port| port.is_occupied_by(device) && port.kept)
    }

    /// Reads a port and acts on what it shows.
    fn look_at(&mut self, index: usize, now: Instant) -> Option<BusEvent> {
        let entry = *self.ports.get(index)?;
        let status = self.take_port_status(index, now)?;
        let protocol = self.port_protocol(&entry)?;
        // Some boards show over-current for ever, and nothing comes of it.
        let is_used = matches!(entry.state, PortState::Occupied(_));
        if status.over_current && (!status.connected || is_used && !status.enabled) {
            return self.switched_off(index, now);
        }
        let had_over_current = matches!(entry.state, PortState::Failed(UsbError::OverCurrent));
        if had_over_current && !status.over_current {
            self.give_power_back(index, status.connected, protocol, now);
            return None;
        }
        // A port that is being reset may show a changed connection that is none. A SuperSpeed link
        // shows none at all until it is trained again (xHCI 1.2 §4.19.1.2).
        let replaced = match (self.is_resetting(entry.controller, index), protocol) {
            // It is there, and a companion controller has it.
            _ if status.handed_over => false,
            (true, PortProtocol::Usb3) => false,
            (true, PortProtocol::Usb2) => !status.connected,
            (false, _) => !status.connected || status.connect_changed,
        };
        match entry.state {
            PortState::Empty | PortState::PoweringOn(_) if status.connected => {
                self.arrive(index, protocol, now);
            }
            PortState::Debouncing(_)
            | PortState::Waiting(..)
            | PortState::Failed(_)
            | PortState::Resetting(_)
                if replaced =>
            {
                self.settle(index, status.connected, protocol, now);
                return vacated(&entry);
            }
            PortState::Enumerating if replaced => {
                self.abort_lane(entry.controller, now);
                self.settle(index, status.connected, protocol, now);
                return vacated(&entry);
            }
            PortState::Occupied(device) if replaced => {
                self.settle(index, status.connected, protocol, now);
                self.close(device, now);
                return Some(BusEvent::Gone(device));
            }
            _ => {}
        }
        None
    }

    /// A port's power has gone because of over-current: so has what was on it.
    fn switched_off(&mut self, index: usize, now: Instant) -> Option<BusEvent> {
        let entry = self.ports.get_mut(index)?;
        let before = *entry;
        if matches!(before.state, PortState::Failed(UsbError::OverCurrent)) {
            return None;
        }
        entry.state = PortState::Failed(UsbError::OverCurrent);
        entry.surge = true;
        entry.kept = false;
        match before.state {
            PortState::Occupied(device) => {
                self.close(device, now);
                Some(BusEvent::Gone(device))
            }
            PortState::Enumerating => {
                self.abort_lane(before.controller, now);
                vacated(&before)
            }
            _ => vacated(&before),
        }
    }

    /// The over-current is over: the port gets its power back, a few times.
    fn give_power_back(
        &mut self,
        index: usize,
        connected: bool,
        protocol: PortProtocol,
        now: Instant,
    ) {
        let Some(entry) = self.ports.get_mut(index) else {
            return;
        };
        if entry.power_returns >= POWER_RETURNS {
            return;
        }
        entry.power_returns += 1;
        if connected {
            // Nobody can switch this port: it was only disabled.
            return self.settle(index, true, protocol, now);
        }
        entry.state = PortState::Unpowered(now + POWER_OFF);
        self.wake_at(now + POWER_OFF);
    }

    /// Takes the next port whose power has gone because of over-current and that was not told of yet.
    pub fn take_surge(&mut self) -> Option<(ControllerId, RootPort)> {
        let entry = self.ports.iter_mut().find(|entry| entry.surge)?;
        entry.surge = false;
        Some((entry.controller, entry.port))
    }

    /// Whether a controller runs: its ports and registers mean nothing before and after.
    pub(super) fn runs(&self, controller: ControllerId) -> bool {
        self.controller_state(controller) == Some(ControllerState::Running)
    }

    #[inline(never)]
    fn settle(&mut self, index: usize, connected: bool, protocol: PortProtocol, now: Instant) {
        if let Some(entry) = self.ports.get_mut(index) {
            entry.state = PortState::Empty;
            entry.kept = false;
            entry.note_empty(now);
        }
        if connected {
            self.arrive(index, protocol, now);
        }
    }

    /// Something was plugged in. A SuperSpeed link was trained, which is debounce enough.
    #[inline(never)]
    fn arrive(&mut self, index: usize, protocol: PortProtocol, now: Instant) {
        self.forget_speed(index, now);
        let Some(entry) = self.ports.get_mut(index) else {
            return;
        };
        entry.state = match protocol {
            PortProtocol::Usb2 => PortState::Debouncing(now + DEBOUNCE),
            PortProtocol::Usb3 => PortState::Waiting(now, 0),
        };
    }
}

/// What is to be told when a port was found empty.
fn vacated(before: &PortEntry) -> Option<BusEvent> {
    let vacated = BusEvent::Vacated(before.controller, before.port);
    before.kept.then_some(vacated)
}
