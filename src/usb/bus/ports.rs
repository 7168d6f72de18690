//! Root ports: what changed, what has become stable, what has gone.

use super::{Bus, BusEvent, Driver};
use crate::host::{PortProtocol, RootPort};
use crate::platform::ControllerId;
use crate::time::Instant;
use crate::usb::port::{DEBOUNCE, PortState};

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
            let Some(entry) = self.ports.get_mut(index) else {
                break;
            };
            if !entry.in_use {
                continue;
            }
            if entry.changed {
                entry.changed = false;
                if let Some(event) = self.look_at(index, now) {
                    return Some(event);
                }
            } else if matches!(entry.state, PortState::Debouncing(until) if now >= until) {
                entry.state = PortState::Waiting(now, 0);
            }
        }
        None
    }

    /// Reads a port and acts on what it shows.
    fn look_at(&mut self, index: usize, now: Instant) -> Option<BusEvent> {
        let entry = *self.ports.get(index)?;
        let driver = self.driver(entry.controller)?;
        let status = driver.read_port(entry.port);
        driver.acknowledge(entry.port, &status);
        let protocol = driver.port_protocol(entry.port);
        // A port that is being reset may show a changed connection that is none.
        let resetting = self.is_resetting(entry.controller, index);
        let replaced = !status.connected || (status.connect_changed && !resetting);
        match entry.state {
            PortState::Empty if status.connected => self.arrive(index, protocol, now),
            PortState::Debouncing(_) | PortState::Waiting(..) | PortState::Failed(_)
                if replaced =>
            {
                self.settle(index, status.connected, protocol, now);
            }
            PortState::Enumerating if replaced => {
                self.abort_lane(entry.controller, now);
                self.settle(index, status.connected, protocol, now);
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

    fn settle(&mut self, index: usize, connected: bool, protocol: PortProtocol, now: Instant) {
        if connected {
            self.arrive(index, protocol, now);
        } else if let Some(entry) = self.ports.get_mut(index) {
            entry.state = PortState::Empty;
        }
    }

    /// Something was plugged in. A SuperSpeed link was trained, which is debounce enough.
    fn arrive(&mut self, index: usize, protocol: PortProtocol, now: Instant) {
        let Some(entry) = self.ports.get_mut(index) else {
            return;
        };
        entry.state = match protocol {
            PortProtocol::Usb2 => PortState::Debouncing(now + DEBOUNCE),
            PortProtocol::Usb3 => PortState::Waiting(now, 0),
        };
    }
}
