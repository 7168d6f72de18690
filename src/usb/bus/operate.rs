//! Operations on devices: carries out what [`Running`] answers, and closes devices.

use super::lane::data_offset;
use super::{Bus, BusEvent, Driver, Fate, token};
use crate::dma::Segment;
use crate::host::{
    ControllerFault, DeviceHandle, EndpointHandle, HostError, Outcome, Report, Sequence, Transfer,
};
use crate::platform::ControllerId;
use crate::time::{Duration, Instant};
use crate::usb::device::{DeviceEntry, DeviceId, DeviceState, Requester};
use crate::usb::enumerate::CONFIGURATION_LIMIT;
use crate::usb::error::UsbError;
use crate::usb::operation::{Action, Input, Operation, Running};
use crate::usb::port::PortState;
use crate::usb::setup::{Direction, SetupPacket};

/// Where the configuration lies in a device's control buffer; other requests' data is before it.
pub(super) const CONFIGURATION_OFFSET: usize = 256;

/// Bytes of a device's control buffer.
pub(super) const CONTROL_BUFFER: usize = CONFIGURATION_OFFSET + CONFIGURATION_LIMIT as usize;

/// How long a controller may take for an operation on a device. Policy: the drivers give up after little more than
/// 10 s (two commands of 5 s, or one and its abort) and then report it; this is the net below.
const CONTROLLER_TIMEOUT: Duration = Duration::from_secs(15);

impl<C: Driver> Bus<'_, C> {
    /// Begins an operation on a device.
    pub(super) fn begin(
        &mut self,
        device: DeviceId,
        requester: Requester,
        operation: Operation,
        now: Instant,
    ) -> Result<(), UsbError> {
        let entry = self.device_mut(device).ok_or(UsbError::Disconnected)?;
        if entry.operation.is_some() {
            return Err(UsbError::Busy);
        }
        let (running, action) = Running::begin(operation, now);
        entry.operation = Some((requester, running));
        match self.operation_act(device, action, now) {
            Ok(()) => Ok(()),
            Err(error) => {
                if let Some(entry) = self.device_mut(device) {
                    entry.operation = None;
                    entry.deadline = Instant::NEVER;
                }
                Err(error)
            }
        }
    }

    /// A control transfer has ended.
    pub(super) fn control_ended(
        &mut self,
        index: u8,
        count: u8,
        outcome: Outcome,
        actual: u32,
        now: Instant,
    ) -> Option<BusEvent> {
        let id = self.id_of(usize::from(index))?;
        if self.device(id)?.control_count != count {
            return None;
        }
        self.operation_step(id, Input::Transfer(outcome, actual), now)
    }

    /// An endpoint was made quiet or restarted.
    pub(super) fn endpoint_ended(
        &mut self,
        controller: ControllerId,
        endpoint: EndpointHandle,
        result: Result<(), HostError>,
        now: Instant,
    ) -> Option<BusEvent> {
        let mut waiting = self.devices.iter().enumerate();
        let (index, _) = waiting.find(|(_, entry)| {
            entry.in_use
                && entry.controller == controller
                && entry
                    .operation
                    .is_some_and(|(_, running)| running.awaits(endpoint, entry.endpoint0))
        })?;
        let id = self.id_of(index)?;
        self.operation_step(id, Input::Endpoint(result), now)
    }

    /// Ends operations whose deadline has passed.
    pub(super) fn run_operations(&mut self, now: Instant) -> Option<BusEvent> {
        for index in 0..self.devices.len() {
            let Some(entry) = self.devices.get(index) else {
                break;
            };
            if entry.in_use && now >= entry.deadline {
                let id = self.id_of(index)?;
                if entry.operation.is_none() {
                    return self.controller_is_late(id, now);
                }
                if let Some(event) = self.operation_step(id, Input::Deadline, now) {
                    return Some(event);
                }
            }
        }
        None
    }

    /// The controller has a net's worth of time for what was begun on a device.
    pub(super) fn await_controller(&mut self, id: DeviceId, now: Instant) {
        let until = now + CONTROLLER_TIMEOUT;
        if let Some(entry) = self.device_mut(id) {
            entry.deadline = until;
        }
        self.wake_at(until);
    }

    /// A controller that does not end what it has begun is as good as dead.
    fn controller_is_late(&mut self, id: DeviceId, now: Instant) -> Option<BusEvent> {
        let entry = self.device_mut(id)?;
        entry.deadline = Instant::NEVER;
        let controller = entry.controller;
        self.controller_died(controller, ControllerFault::Unresponsive, now)
    }

    fn operation_step(&mut self, id: DeviceId, input: Input, now: Instant) -> Option<BusEvent> {
        let entry = self.device_mut(id)?;
        let (_, running) = entry.operation.as_mut()?;
        let action = running.step(input, now);
        match self.operation_act(id, action, now) {
            Ok(()) => self.take_result(id, action, now),
            Err(error) => self.operation_done(id, Err(error), now),
        }
    }

    fn take_result(&mut self, id: DeviceId, action: Action, now: Instant) -> Option<BusEvent> {
        match action {
            Action::Done(result) => self.operation_done(id, result, now),
            _ => None,
        }
    }

    fn operation_act(
        &mut self,
        id: DeviceId,
        action: Action,
        now: Instant,
    ) -> Result<(), UsbError> {
        let entry = self.device(id).ok_or(UsbError::Disconnected)?;
        let (controller, endpoint0) = (entry.controller, entry.endpoint0);
        let deadline = match action {
            Action::Submit(setup, deadline) => {
                self.submit_control(id, &setup)?;
                deadline
            }
            Action::Quiesce(pipe, deadline) => {
                let driver = self.driver(controller).ok_or(UsbError::Disconnected)?;
                driver.quiesce(pipe.unwrap_or(endpoint0), now)?;
                deadline
            }
            Action::Restart(pipe, sequence, deadline) => {
                self.restart(controller, pipe.unwrap_or(endpoint0), sequence, now)?;
                deadline
            }
            Action::Wait => return Ok(()),
            Action::Done(_) => Instant::NEVER,
        };
        if let Some(entry) = self.device_mut(id) {
            entry.deadline = deadline;
        }
        self.wake_at(deadline);
        Ok(())
    }

    fn restart(
        &mut self,
        controller: ControllerId,
        endpoint: EndpointHandle,
        sequence: Sequence,
        now: Instant,
    ) -> Result<(), UsbError> {
        let driver = self.driver(controller).ok_or(UsbError::Disconnected)?;
        Ok(driver.restart(endpoint, sequence, now)?)
    }

    fn submit_control(&mut self, id: DeviceId, setup: &SetupPacket) -> Result<(), UsbError> {
        let entry = self.device_mut(id).ok_or(UsbError::Disconnected)?;
        entry.control_count = entry.control_count.wrapping_add(1);
        let length = usize::from(setup.length);
        let offset = data_offset(setup);
        let memory = entry
            .control_buffer
            .as_ref()
            .and_then(|buffer| buffer.raw(offset, length));
        let segments = [Segment::from(
            memory.ok_or(UsbError::Controller(HostError::TooLong))?,
        )];
        let direction = if length == 0 {
            Direction::Out
        } else {
            setup.direction()
        };
        let transfer = Transfer {
            token: token::control(id.index, entry.control_count),
            setup: Some(*setup),
            direction,
            segments: if length == 0 { &[] } else { &segments },
            report: Report::Always,
            stream: 0,
        };
        let (controller, endpoint0) = (entry.controller, entry.endpoint0);
        let driver = self.driver(controller).ok_or(UsbError::Disconnected)?;
        driver.submit(endpoint0, &transfer)?;
        driver.kick(endpoint0, 0);
        Ok(())
    }

    /// An operation has ended: whoever began it is told.
    fn operation_done(
        &mut self,
        id: DeviceId,
        result: Result<u32, UsbError>,
        now: Instant,
    ) -> Option<BusEvent> {
        let entry = self.device_mut(id)?;
        entry.deadline = Instant::NEVER;
        let (requester, running) = entry.operation.take()?;
        match (requester, running.operation()) {
            (Requester::Enumeration, Operation::Request(setup, _)) => {
                self.lane_request(id, &setup, result, now)
            }
            (Requester::Configuration, _) => self.configuration_request(id, result, now),
            (Requester::Function, _) => Some(BusEvent::Operated(id, result)),
            (Requester::Enumeration, _) => None,
        }
    }

    /// The controller has ended an operation on a device.
    pub(super) fn device_ended(
        &mut self,
        controller: ControllerId,
        handle: DeviceHandle,
        result: Result<(), HostError>,
        now: Instant,
    ) -> Option<BusEvent> {
        let is_it = |entry: &DeviceEntry| {
            entry.in_use && entry.controller == controller && entry.handle == handle
        };
        let index = self.devices.iter().position(is_it)?;
        let id = self.id_of(index)?;
        let result = result.map_err(UsbError::from);
        self.device_mut(id)?.deadline = Instant::NEVER;
        match self.device(id)?.state {
            DeviceState::Enumerating => self.lane_controller(id, result, now),
            DeviceState::Configuring => self.controller_configured(id, result, now),
            DeviceState::Closing => self.closed(id, now),
            _ => None,
        }
    }

    /// Gives a device up that its driver cannot handle any more; [`BusEvent::Closed`] follows when the
    /// controller has let go of it. Its port is left alone until it is pulled.
    pub fn give_up(&mut self, id: DeviceId, now: Instant) {
        if let Some(port) = self.ports.iter_mut().find(|port| port.is_occupied_by(id)) {
            port.state = PortState::Failed(UsbError::Timeout);
        }
        self.close(id, now);
    }

    /// Whether a device has gone or is being closed: [`BusEvent::Closed`] follows, or has come.
    #[must_use]
    pub fn is_leaving(&self, id: DeviceId) -> bool {
        let state = self.device(id).map(|entry| entry.state);
        matches!(
            state,
            None | Some(DeviceState::Closing | DeviceState::Orphaned(_))
        )
    }

    /// Begins to close a device; [`BusEvent::Closed`] follows for one that was described.
    pub(super) fn close(&mut self, id: DeviceId, now: Instant) {
        let Some(entry) = self.device_mut(id) else {
            return;
        };
        if matches!(entry.state, DeviceState::Closing | DeviceState::Orphaned(_)) {
            return;
        }
        entry.state = DeviceState::Closing;
        entry.operation = None;
        entry.deadline = Instant::NEVER;
        let (controller, handle) = (entry.controller, entry.handle);
        let begun = self
            .driver(controller)
            .map(|driver| driver.close_device(handle, now));
        if begun == Some(Ok(())) {
            self.await_controller(id, now);
        }
        // A running controller that knows no such device has let go of it. One that does not run
        // may know nothing and still reach memory: its devices are closed when it has stopped.
        if self.runs(controller) && begun == Some(Err(HostError::Stale)) {
            if let Some(entry) = self.device_mut(id) {
                entry.state = DeviceState::Orphaned(Fate::Gone);
            }
            self.wake_at(now);
        }
    }

    pub(super) fn closed(&mut self, id: DeviceId, now: Instant) -> Option<BusEvent> {
        let entry = self.device(id)?;
        let controller = entry.controller;
        let will_return = entry.state == DeviceState::Orphaned(Fate::Returning);
        let on_lane = self.is_on_lane(id);
        self.given_up_closed(id, now);
        self.release(id);
        let fate = if self.port_left(id, now) || will_return {
            Fate::Returning
        } else {
            Fate::Gone
        };
        if on_lane {
            self.lane_closed(controller, now);
            return None;
        }
        Some(BusEvent::Closed(id, fate))
    }

    /// Frees a device's place in the table.
    pub(super) fn release(&mut self, id: DeviceId) {
        if let Some(entry) = self.device_mut(id) {
            *entry = DeviceEntry {
                generation: id.generation,
                told: entry.told,
                ..DeviceEntry::EMPTY
            };
        }
    }

    pub(super) fn id_of(&self, index: usize) -> Option<DeviceId> {
        let entry = self.devices.get(index)?;
        Some(DeviceId {
            index: index as u8,
            generation: entry.generation,
        })
    }
}
