//! The two halves of a socket: a USB 2 port and a SuperSpeed port that lead to the same device.
//!
//! A SuperSpeed device shows itself on one of them, by its own choice: where its link does not train it falls back
//! to high speed. Called by [`ports`](super::ports), [`lane`](super::lane) and the stack.

use super::{Bus, Driver};
use crate::host::{Attachment, PortProtocol};
use crate::platform::ControllerId;
use crate::time::{Duration, Instant};
use crate::usb::descriptor::Device;
use crate::usb::device::DeviceId;
use crate::usb::port::{OTHER_HALF, POWER_OFF, PortEntry, PortState};
use crate::usb::speed::Speed;

/// What `bcdUSB` of a SuperSpeed device is at high speed, at least (USB 3.2 §9.6.1).
const SUPER_SPEED_AT_HIGH_SPEED: u16 = 0x0210;

/// A socket that was empty for so long had its device pulled by a person. Policy: longer than a device that
/// changes its link is away.
const PULLED: Duration = Duration::from_secs(3);

impl<C: Driver> Bus<'_, C> {
    /// Resets a device that runs at high speed, is made for SuperSpeed by its own word, and is in a socket
    /// that has that: once after it was plugged in, as its link may train better the second time (a change
    /// of edk2's of 2026). `true` if it is being reset. What comes to the socket soon afterwards may be the same
    /// device, and is not reset again.
    pub fn reset_for_speed(&mut self, device: DeviceId, now: Instant) -> bool {
        let Some(entry) = self.device(device) else {
            return false;
        };
        let is_made_for_more =
            |descriptor: &Device| descriptor.head.usb_release >= SUPER_SPEED_AT_HIGH_SPEED;
        let runs_at_high_speed = |attachment: &Attachment| attachment.speed == Speed::High;
        let is_slow = entry.descriptor.as_ref().is_some_and(is_made_for_more)
            && entry.attachment.as_ref().is_some_and(runs_at_high_speed);
        let is_new = |port: &PortEntry| port.is_occupied_by(device) && !port.kept && !port.sped;
        let port = self.ports.iter().position(is_new).filter(|_| is_slow);
        let is_alone = port
            .and_then(|port| self.other_half(port))
            .and_then(|half| self.ports.get(half))
            .is_some_and(|half| half.state == PortState::Empty);
        let entry = port.and_then(|port| self.ports.get_mut(port));
        let Some(entry) = entry.filter(|_| is_alone) else {
            return false;
        };
        entry.sped = true;
        self.reset_device(device, now);
        true
    }

    /// A device comes to a port: if its socket was empty for long, it is another one, which may be reset for its
    /// speed.
    pub(super) fn forget_speed(&mut self, index: usize, now: Instant) {
        let was_empty = |port: &PortEntry| {
            port.state == PortState::Empty && now.since(port.empty_since) >= PULLED
        };
        let half = self.other_half(index).and_then(|half| self.ports.get(half));
        let is_long_empty = half.is_some_and(was_empty);
        if let Some(entry) = self.ports.get_mut(index) {
            entry.sped &= !(is_long_empty && was_empty(entry));
        }
    }

    /// A SuperSpeed port is given up. If its device was used at high speed before it was reset for its speed, it is
    /// driven back there: the SuperSpeed half has no power while the other one is used. `true` if it is so.
    pub(super) fn fall_back_to_high_speed(&mut self, index: usize, now: Instant) -> bool {
        let Some(&entry) = self.ports.get(index) else {
            return false;
        };
        let is_super = self.port_protocol(&entry) == Some(PortProtocol::Usb3);
        let half = self.other_half(index).and_then(|half| self.ports.get(half));
        if !is_super || !half.is_some_and(|half| half.sped) {
            return false;
        }
        if let Some(driver) = self.driver(entry.controller) {
            driver.power_port(entry.port, false);
        }
        if let Some(entry) = self.ports.get_mut(index) {
            entry.dark = true;
            entry.state = PortState::Unpowered(now + OTHER_HALF);
        }
        true
    }

    /// The time without power is over. Whether the port is to stay dark, because its device is on the other half of
    /// the socket; if it is not, it gets its chances on this half anew.
    pub(super) fn is_used_by_other_half(&mut self, index: usize) -> bool {
        let Some(entry) = self.ports.get_mut(index).filter(|entry| entry.dark) else {
            return false;
        };
        entry.dark = false;
        let Some(half) = self
            .other_half(index)
            .and_then(|half| self.ports.get_mut(half))
        else {
            return false;
        };
        let is_used = half.state != PortState::Empty;
        half.sped &= is_used;
        if let Some(entry) = self.ports.get_mut(index) {
            entry.dark = is_used;
        }
        is_used
    }

    /// A socket has power while one of its halves has (xHCI 1.2 §4.19.4): the other one goes off too,
    /// if nothing is on it.
    pub(super) fn switch_other_half_off(&mut self, index: usize, now: Instant) {
        let Some(half) = self.other_half(index) else {
            return;
        };
        let Some(entry) = self.ports.get_mut(half) else {
            return;
        };
        if matches!(entry.state, PortState::Empty) {
            entry.state = PortState::Unpowered(now + POWER_OFF);
            let (controller, port) = (entry.controller, entry.port);
            if let Some(driver) = self.driver(controller) {
                driver.power_port(port, false);
            }
        }
    }

    /// The other half of a port's socket: USB 2 and SuperSpeed have a port there each, and count their
    /// sockets in the same order. `None` where there are more of one kind than of the other, and the
    /// order says nothing.
    fn other_half(&self, index: usize) -> Option<usize> {
        let entry = self.ports.get(index)?;
        let own = self.port_protocol(entry)?;
        // Sockets up to this one, and all, as either kind counts them.
        let (mut place, mut own_count, mut other_count) = (0, 0, 0);
        for (at, port) in self.ports.iter().enumerate() {
            match self.is_of_kind(port, entry.controller, own) {
                Some(true) => {
                    own_count += 1;
                    place += usize::from(at < index);
                }
                Some(false) => other_count += 1,
                None => {}
            }
        }
        if own_count != other_count {
            return None;
        }
        let is_other =
            |port: &PortEntry| self.is_of_kind(port, entry.controller, own) == Some(false);
        let ports = self.ports.iter().enumerate();
        let mut others = ports.filter(|(_, port)| is_other(port));
        others.nth(place).map(|(at, _)| at)
    }

    /// Whether a port is of a kind; `None` for a port of another controller.
    #[inline(never)]
    fn is_of_kind(
        &self,
        port: &PortEntry,
        controller: ControllerId,
        kind: PortProtocol,
    ) -> Option<bool> {
        let is_its = port.in_use && port.controller == controller;
        is_its.then(|| self.port_protocol(port) == Some(kind))
    }
}
