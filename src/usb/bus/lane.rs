//! The lane of a controller: one port at a time is enumerated on it.
//!
//! Carries out what [`Enumeration`] answers. A port whose attempt failed goes to the end of the
//! queue, so that a dead device does not hold up its neighbours for more than one attempt.

use super::operate::{CONFIGURATION_OFFSET, CONTROL_BUFFER};
use super::{Bus, BusEvent, Driver};
use crate::dma::{Class, Owner, Rules};
use crate::host::{Addressing, Attachment, PortProtocol, PortStatus, RootPort};
use crate::platform::ControllerId;
use crate::time::Instant;
use crate::usb::descriptor::{DescriptorKind, initial_control_packet_size};
use crate::usb::device::{DeviceEntry, DeviceId, DeviceState, Requester};
use crate::usb::enumerate::{Action, Enumeration, Input};
use crate::usb::error::{Table, UsbError};
use crate::usb::operation::Operation;
use crate::usb::port::{ATTEMPTS, PortState, RETRY_PAUSE};
use crate::usb::setup::SetupPacket;
use crate::usb::speed::Speed;

/// One attempt on one port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    enumeration: Enumeration,
    /// Place of the port in the table.
    port: usize,
    root_port: RootPort,
    attempt: u8,
    device: Option<DeviceId>,
    until: Instant,
    /// The attempt has failed, and the controller still has to let go of the device. `None` inside:
    /// the device was pulled, and the port is settled already.
    ended: Option<Option<UsbError>>,
}

impl Lane {
    pub(super) fn deadline(&self) -> Instant {
        self.until
    }
}

impl<C: Driver> Bus<'_, C> {
    /// Whether a controller's lane holds this port in a reset.
    pub(super) fn is_resetting(&self, controller: ControllerId, port: usize) -> bool {
        let slot = self.controllers.get(usize::from(controller.0));
        let lane = slot.and_then(|slot| slot.lane.as_ref());
        lane.is_some_and(|lane| lane.port == port && lane.enumeration.is_resetting())
    }

    /// Gives idle lanes the next port, and moves those whose time has come.
    pub(super) fn run_lanes(&mut self, now: Instant) -> Option<BusEvent> {
        for index in 0..self.controllers.len() {
            let controller = ControllerId(index as u8);
            let Some(slot) = self.controllers.get(index) else {
                break;
            };
            match slot.lane {
                _ if !self.runs(controller) => {}
                None => self.next_port(controller, now),
                Some(lane) if now >= lane.until => {
                    if let Some(event) = self.lane_time(controller, now) {
                        return Some(event);
                    }
                }
                Some(_) => {}
            }
        }
        None
    }

    /// Takes the waiting port with the fewest attempts.
    fn next_port(&mut self, controller: ControllerId, now: Instant) {
        let due = self
            .ports
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| match entry.state {
                PortState::Waiting(from, attempt)
                    if entry.in_use && entry.controller == controller && now >= from =>
                {
                    Some((attempt, index))
                }
                _ => None,
            });
        let Some((attempt, port)) = due.min() else {
            return;
        };
        let Some(entry) = self.ports.get_mut(port) else {
            return;
        };
        entry.state = PortState::Enumerating;
        let root_port = entry.port;
        let Some(driver) = self.driver(controller) else {
            return;
        };
        let protocol = driver.port_protocol(root_port);
        let hold = driver.capabilities().reset_hold;
        let enumeration = Enumeration::new(protocol, hold, attempt);
        let lane = Lane {
            enumeration,
            port,
            root_port,
            attempt,
            device: None,
            until: Instant::NEVER,
            ended: None,
        };
        if let Some(slot) = self.slot_mut(controller) {
            slot.lane = Some(lane);
        }
        self.lane_step(controller, Input::Begin, now);
    }

    /// The time that the lane waited for has come.
    fn lane_time(&mut self, controller: ControllerId, now: Instant) -> Option<BusEvent> {
        let status = self.lane_port(controller)?;
        self.lane_mut(controller)?.until = Instant::NEVER;
        self.lane_step(controller, Input::Time(status), now)
    }

    fn lane_mut(&mut self, controller: ControllerId) -> Option<&mut Lane> {
        self.slot_mut(controller)?.lane.as_mut()
    }

    fn lane_port(&mut self, controller: ControllerId) -> Option<PortStatus> {
        let slot = self.slot_mut(controller)?;
        let root_port = slot.lane.as_ref()?.root_port;
        Some(slot.driver.as_ref()?.read_port(root_port))
    }

    /// The lane, if this device is on it and its attempt still runs.
    fn lane_of(&mut self, device: DeviceId) -> Option<&mut Lane> {
        let controller = self.device(device)?.controller;
        let lane = self.lane_mut(controller)?;
        (lane.device == Some(device) && lane.ended.is_none()).then_some(lane)
    }

    /// Feeds the machine and carries out its answer, until it waits for something.
    pub(super) fn lane_step(
        &mut self,
        controller: ControllerId,
        input: Input<'_>,
        now: Instant,
    ) -> Option<BusEvent> {
        let lane = self.lane_mut(controller)?;
        let action = lane.enumeration.step(input, now);
        if action == Action::Ignore {
            return None;
        }
        lane.until = Instant::NEVER;
        match self.lane_act(controller, action, now) {
            Ok(event) => event,
            Err(error) => {
                self.lane_failed(controller, error, now);
                None
            }
        }
    }

    fn lane_act(
        &mut self,
        controller: ControllerId,
        action: Action,
        now: Instant,
    ) -> Result<Option<BusEvent>, UsbError> {
        let gone = UsbError::Disconnected;
        let slot = self.slot_mut(controller).ok_or(gone)?;
        let (lane, driver) = slot.lane.as_mut().zip(slot.driver.as_mut()).ok_or(gone)?;
        let (root_port, device) = (lane.root_port, lane.device);
        match action {
            Action::Reset(until) => {
                driver.begin_reset(root_port);
                lane.until = until;
            }
            Action::WarmReset(until) => {
                driver.begin_warm_reset(root_port);
                lane.until = until;
            }
            Action::EndReset(until) => {
                driver.end_reset(root_port);
                lane.until = until;
            }
            Action::Wait(until) => lane.until = until,
            Action::Ignore => {}
            Action::Open(speed) => self.lane_open(controller, root_port, speed, now)?,
            Action::ReachAtZero | Action::Address => {
                let device = device.ok_or(gone)?;
                let handle = self.device(device).ok_or(gone)?.handle;
                let driver = self.driver(controller).ok_or(gone)?;
                let addressing = match action {
                    Action::ReachAtZero => driver.reach_at_zero(handle, now)?,
                    _ => driver.address_device(handle, now)?,
                };
                return Ok(self.addressing_begun(controller, device, addressing, now));
            }
            Action::Adopt(address, until) => {
                lane.until = until;
                let handle = self.device(device.ok_or(gone)?).ok_or(gone)?.handle;
                if let Some(driver) = self.driver(controller) {
                    driver.adopt_address(handle, address);
                }
            }
            Action::Request(setup, until) => {
                let operation = Operation::Request(setup, until - now);
                self.begin(device.ok_or(gone)?, Requester::Enumeration, operation, now)?;
            }
            Action::MaxPacket(bytes) => {
                let handle = self.device(device.ok_or(gone)?).ok_or(gone)?.handle;
                self.driver(controller)
                    .ok_or(gone)?
                    .set_max_packet0(handle, bytes, now)?;
                self.await_controller(device.ok_or(gone)?, now);
            }
            Action::Done => return Ok(self.lane_done(controller)),
            Action::Fail(error) => return Err(error),
        }
        if let Some(lane) = self.lane_mut(controller) {
            let until = lane.until;
            self.wake_at(until);
        }
        Ok(None)
    }

    fn lane_open(
        &mut self,
        controller: ControllerId,
        root_port: RootPort,
        speed: Speed,
        now: Instant,
    ) -> Result<(), UsbError> {
        let max_packet0 = initial_control_packet_size(speed);
        let attachment = Attachment {
            root_port,
            route: 0,
            speed,
            max_packet0,
            translator: None,
        };
        let index = self.devices.iter().position(|entry| !entry.in_use);
        let index = index.ok_or(UsbError::TableFull(Table::Devices))?;
        let slot = self.controllers.get_mut(usize::from(controller.0));
        let driver = slot
            .and_then(|slot| slot.driver.as_mut())
            .ok_or(UsbError::Disconnected)?;
        let handle = driver.open_device(&mut self.pool, &attachment, now)?;
        let endpoint0 = driver.endpoint0(handle).ok_or(UsbError::Disconnected)?;
        let entry = self
            .devices
            .get_mut(index)
            .ok_or(UsbError::TableFull(Table::Devices))?;
        let generation = entry.generation.wrapping_add(1);
        let id = DeviceId {
            index: index as u8,
            generation,
        };
        *entry = DeviceEntry {
            generation,
            in_use: true,
            told: entry.told,
            state: DeviceState::Enumerating,
            controller,
            handle,
            endpoint0,
            attachment: Some(attachment),
            ..DeviceEntry::EMPTY
        };
        let owner = Owner::Device(controller.0, handle.index);
        let buffer = self
            .pool
            .allocate(owner, Class::Command, CONTROL_BUFFER, Rules::aligned(128));
        let failed = buffer.as_ref().err().copied();
        entry.control_buffer = buffer.ok();
        if let Some(lane) = self.lane_mut(controller) {
            lane.device = Some(id);
            lane.enumeration.opened_with(max_packet0);
        }
        self.await_controller(id, now);
        match failed {
            Some(error) => Err(UsbError::Controller(error.into())),
            None => Ok(()),
        }
    }

    /// The controller is at work, or it is the core's turn.
    fn addressing_begun(
        &mut self,
        controller: ControllerId,
        device: DeviceId,
        addressing: Addressing,
        now: Instant,
    ) -> Option<BusEvent> {
        match addressing {
            Addressing::Controller => {
                self.await_controller(device, now);
                None
            }
            Addressing::Software(address) => {
                self.lane_step(controller, Input::SoftwareAddress(address), now)
            }
        }
    }

    /// A request of the lane's device has ended.
    pub(super) fn lane_request(
        &mut self,
        device: DeviceId,
        setup: &SetupPacket,
        result: Result<u32, UsbError>,
        now: Instant,
    ) -> Option<BusEvent> {
        self.lane_of(device)?;
        let entry = self.device(device)?;
        let controller = entry.controller;
        let mut bytes = [0; crate::usb::enumerate::CONFIGURATION_LIMIT as usize];
        let input = match result {
            Err(error) => Err(error),
            Ok(actual) => {
                let came = bytes.get_mut(..actual as usize).ok_or(UsbError::Babble);
                came.map(|came| {
                    if let Some(buffer) = entry.control_buffer.as_ref() {
                        buffer.read_bytes(data_offset(setup), came);
                    }
                    &*came
                })
            }
        };
        self.lane_step(controller, Input::Request(input), now)
    }

    /// The controller ended its operation on the lane's device.
    pub(super) fn lane_controller(
        &mut self,
        device: DeviceId,
        result: Result<(), UsbError>,
        now: Instant,
    ) -> Option<BusEvent> {
        self.lane_of(device)?;
        let controller = self.device(device)?.controller;
        self.lane_step(controller, Input::Controller(result), now)
    }

    fn lane_done(&mut self, controller: ControllerId) -> Option<BusEvent> {
        let lane = self.slot_mut(controller)?.lane.take()?;
        let device = lane.device?;
        let description = lane.enumeration.description()?;
        let entry = self.device_mut(device)?;
        entry.state = DeviceState::Described;
        entry.descriptor = Some(description.device);
        entry.configuration_length = description.configuration_length;
        entry.power = description.power;
        entry.strings = description.strings;
        entry.attempt = lane.attempt;
        if let Some(port) = self.ports.get_mut(lane.port) {
            port.state = PortState::Occupied(device);
        }
        self.wake_at(Instant::from_micros(0));
        Some(BusEvent::Described(device))
    }

    /// The attempt has failed: the device is closed first, if there is one.
    fn lane_failed(&mut self, controller: ControllerId, error: UsbError, now: Instant) {
        self.end_lane(controller, Some(error), now);
    }

    /// The device of the lane was pulled; its port is settled by the caller.
    pub(super) fn abort_lane(&mut self, controller: ControllerId, now: Instant) {
        self.end_lane(controller, None, now);
    }

    fn end_lane(&mut self, controller: ControllerId, error: Option<UsbError>, now: Instant) {
        let Some(lane) = self.lane_mut(controller) else {
            return;
        };
        if lane.ended.is_none() || error.is_none() {
            lane.ended = Some(error);
        }
        lane.until = Instant::NEVER;
        match lane.device {
            Some(device) => self.close(device, now),
            None => self.lane_closed(controller, now),
        }
    }

    /// The controller has let go of the failed device: the port may have another attempt.
    pub(super) fn lane_closed(&mut self, controller: ControllerId, now: Instant) {
        let Some(lane) = self.slot_mut(controller).and_then(|slot| slot.lane.take()) else {
            return;
        };
        self.wake_at(now);
        let Some(Some(error)) = lane.ended else {
            return;
        };
        self.attempt_failed(lane.port, lane.attempt, error, now);
    }

    /// An attempt to bring up what is in a port has failed, and nothing of it is left: the port waits
    /// for its next attempt, or is left alone after the last one.
    fn attempt_failed(&mut self, port: usize, attempt: u8, error: UsbError, now: Instant) {
        let Some(entry) = self.ports.get(port) else {
            return;
        };
        let (controller, root_port) = (entry.controller, entry.port);
        let is_last = attempt + 1 >= ATTEMPTS;
        if let Some(driver) = self.driver(controller) {
            // A disabled SuperSpeed link is trained anew to see its device being pulled, and the one
            // that has failed would look like another: it is left as it is.
            let can_disable = driver.port_protocol(root_port) == PortProtocol::Usb2;
            if error == UsbError::NeedsCompanion {
                driver.hand_over(root_port);
            } else if can_disable {
                // Left enabled, it might answer at address 0 beside the next one.
                driver.disable_port(root_port);
            }
        }
        self.wake_at(now);
        let is_devices = !matches!(error, UsbError::Controller(_) | UsbError::TableFull(_));
        if is_last && is_devices && self.fall_back_to_high_speed(port, now) {
            return;
        }
        let Some(entry) = self.ports.get_mut(port) else {
            return;
        };
        entry.state = if is_last || error == UsbError::NeedsCompanion {
            PortState::Failed(error)
        } else {
            PortState::Waiting(now + RETRY_PAUSE, attempt + 1)
        };
        // A change during the attempt was put off.
        entry.changed = true;
    }

    /// A device that was described could not be taken into use, for a reason that another attempt
    /// with a new reset may cure: it is closed, and its port gets the attempts that are left.
    pub fn try_again(&mut self, device: DeviceId, error: UsbError, now: Instant) {
        if let Some(entry) = self.device_mut(device) {
            entry.given_up = Some(error);
            self.close(device, now);
        }
    }

    /// A device that was given up is closed, unless it was pulled meanwhile.
    pub(super) fn given_up_closed(&mut self, device: DeviceId, now: Instant) {
        let Some(entry) = self.device(device) else {
            return;
        };
        let (attempt, given_up) = (entry.attempt, entry.given_up);
        let port = self
            .ports
            .iter()
            .position(|port| port.is_occupied_by(device));
        if let (Some(error), Some(port)) = (given_up, port) {
            self.attempt_failed(port, attempt, error, now);
        }
    }

    /// Whether the lane of this device's controller holds it.
    pub(super) fn is_on_lane(&self, device: DeviceId) -> bool {
        let Some(entry) = self.device(device) else {
            return false;
        };
        let slot = self.controllers.get(usize::from(entry.controller.0));
        slot.and_then(|slot| slot.lane.as_ref())
            .is_some_and(|lane| lane.device == Some(device))
    }
}

/// Where in the control buffer the data of a request lies.
pub(super) fn data_offset(setup: &SetupPacket) -> usize {
    let [kind, _] = setup.value.to_be_bytes();
    let is_standard_read = setup.request_type == 0x80 && setup.request == 6;
    if is_standard_read && kind == DescriptorKind::CONFIGURATION.0 {
        CONFIGURATION_OFFSET
    } else {
        0
    }
}
