//! Slots: what a device holds, and what follows its commands.
//!
//! Called by [`device`](super::device) to reserve, and by [`command`](super::command) when a completion
//! came. Read `xHCI 1.2 §4.6.3` to `§4.6.7`.

use super::Xhci;
use super::command::Completion;
use super::context::Contexts;
use super::device::{CONTROL, DeviceState, NO_ENDPOINT, Work, endpoint0_config};
use super::endpoint::EndpointState;
use super::trb::{Trb, code, kind};
use crate::dma::{Allocation, Owner, Pool};
use crate::host::{Attachment, ControllerFault, DeviceHandle, Event, HostError};
use crate::mmio::Bus;
use crate::time::Instant;

/// How often Disable Slot is tried. Policy: the memory of a device cannot be given back without it, and
/// the one thing left is to stop the controller with all its devices. Twice its time is less than the core's patience.
const DISABLE_TRIES: u8 = 2;

/// Taking and giving back.
impl<B: Bus> Xhci<'_, B> {
    pub(super) fn idle_device(&self, device: DeviceHandle) -> Result<usize, HostError> {
        let index = super::device_at(self.devices, device)?;
        let record = self.devices.get(index).ok_or(HostError::Stale)?;
        record.check_idle().map(|()| index)
    }

    pub(super) fn set_work(&mut self, index: usize, work: Work) {
        if let Some(device) = self.devices.get_mut(index) {
            device.work = work;
        }
    }

    /// An operation is over: to be reported by the next poll.
    pub(super) fn finish_device(
        &mut self,
        index: usize,
        result: Result<(), HostError>,
    ) -> Result<(), HostError> {
        self.set_work(index, Work::Finished(result));
        self.mark_pending();
        Ok(())
    }

    pub(super) fn device_command(
        &mut self,
        index: usize,
        work: Work,
        trb: Trb,
        now: Instant,
    ) -> Result<(), HostError> {
        let command = self.issue(trb, now);
        let device = self.devices.get_mut(index).ok_or(HostError::Stale)?;
        if command.is_none() {
            return Err(HostError::Dead);
        }
        device.command = command;
        device.work = work;
        Ok(())
    }

    pub(super) fn reserve_device(
        &mut self,
        pool: &mut Pool<'_>,
        index: usize,
        attachment: &Attachment,
    ) -> Result<(), HostError> {
        let owner = self.device_owner(index);
        let contexts = Contexts::allocate(pool, owner, &self.parameters)?;
        let mask = self.parameters.address_mask;
        let reachable = |piece: &&Allocation| piece.bus().reachable(piece.length(), mask);
        if !contexts.pieces().iter().all(reachable) {
            return Err(HostError::Unsupported);
        }
        let device = self.devices.get_mut(index).ok_or(HostError::StorageFull)?;
        device.state = DeviceState::Open;
        device.attachment = *attachment;
        device.contexts = Some(contexts);
        let config = endpoint0_config(attachment.max_packet0);
        self.reserve_endpoint(pool, index, &config).map(|_| ())
    }

    pub(super) fn device_owner(&self, index: usize) -> Owner {
        Owner::Device(self.controller, index as u8)
    }

    /// Gives back all that a device holds. The controller must not reach it any more.
    pub(super) fn release_device(&mut self, pool: &mut Pool<'_>, index: usize) {
        for endpoint in self.endpoints.iter_mut() {
            if endpoint.state != EndpointState::Free && usize::from(endpoint.device) == index {
                endpoint.vacate(self.streams, &mut self.records);
            }
        }
        pool.reclaim(self.device_owner(index));
        if let Some(device) = self.devices.get_mut(index) {
            device.vacate();
        }
    }
}

/// What comes after a command.
impl<B: Bus> Xhci<'_, B> {
    pub(super) fn device_command_done(
        &mut self,
        index: usize,
        completion: Completion,
        pool: &mut Pool<'_>,
        now: Instant,
    ) {
        let Some(device) = self.devices.get_mut(index) else {
            return;
        };
        device.command = None;
        let work = device.work;
        let closing = device.state == DeviceState::Closing;
        let result = completion.result();
        let result = match (work, result) {
            (Work::Enabling, Ok(())) => self.enabled(index, completion.slot),
            (Work::Disabling(tries), _) => return self.disabled(index, completion, tries, now),
            (_, Ok(())) if !closing => {
                self.adopt(index, work, pool);
                Ok(())
            }
            (_, result) => result,
        };
        if closing {
            self.disable(index, now);
        } else {
            self.set_work(index, Work::Finished(result));
            self.mark_pending();
        }
    }

    /// The controller gave the device a slot.
    fn enabled(&mut self, index: usize, slot: u8) -> Result<(), HostError> {
        let place = usize::from(slot).checked_sub(1);
        if slot > self.extent().slots {
            return Err(HostError::Refused(code::SUCCESS));
        }
        let tenant = place.and_then(|place| self.devices.get_mut(place));
        // One that is in use is another device's, whatever the controller says.
        let tenant = tenant.filter(|place| place.tenant == NO_ENDPOINT);
        tenant.ok_or(HostError::Refused(code::SUCCESS))?.tenant = index as u8;
        let device = self.devices.get_mut(index).ok_or(HostError::Stale)?;
        device.slot = slot;
        let output = device
            .contexts
            .as_ref()
            .map(|contexts| contexts.output().get());
        if let (Some(base), Some(output)) = (&self.base, output) {
            base.set_slot(slot, output);
        }
        self.control_endpoint(index)?.slot = slot;
        Ok(())
    }

    /// A command that changes the device has succeeded.
    fn adopt(&mut self, index: usize, work: Work, pool: &mut Pool<'_>) {
        match work {
            Work::Addressing => {
                if let Ok(control) = self.control_endpoint(index) {
                    control.state = EndpointState::Running;
                }
            }
            Work::Evaluating(bytes) => {
                if let Ok(control) = self.control_endpoint(index) {
                    control.set_max_packet(bytes);
                }
            }
            Work::Configuring => self.adopt_endpoints(index, pool),
            Work::UpdatingHub(hub) => {
                if let Some(device) = self.devices.get_mut(index) {
                    device.hub = Some(hub);
                }
            }
            Work::Idle
            | Work::Enabling
            | Work::Disabling(_)
            | Work::Disabled
            | Work::Finished(_) => {}
        }
    }

    /// A configuration is in force: what was opened is usable, what was closed is gone.
    pub(super) fn adopt_endpoints(&mut self, index: usize, pool: &mut Pool<'_>) {
        for place in 0..self.endpoints.len() {
            let Some(endpoint) = self.endpoints.get_mut(place) else {
                break;
            };
            if usize::from(endpoint.device) != index || endpoint.dci == CONTROL {
                continue;
            }
            match endpoint.state {
                EndpointState::Staged => endpoint.state = EndpointState::Running,
                EndpointState::Dropping | EndpointState::Discarded => {
                    self.free_endpoint(pool, place);
                }
                _ => {}
            }
        }
    }

    /// Takes the slot away from the device: its endpoints are stopped before, each by a command
    /// ahead of Disable Slot, so that none is cut off within a packet (`xHCI 1.2 §4.6.4`).
    pub(super) fn disable(&mut self, index: usize, now: Instant) {
        self.try_to_disable(index, 1, now);
    }

    fn try_to_disable(&mut self, index: usize, tries: u8, now: Instant) {
        let Ok(slot) = self.slot_of(index) else {
            self.set_work(index, Work::Disabled);
            return self.mark_pending();
        };
        self.stop_all_endpoints(index, now);
        let command = Trb::command(kind::DISABLE_SLOT, slot, 0);
        if self
            .device_command(index, Work::Disabling(tries), command, now)
            .is_err()
        {
            self.set_work(index, Work::Idle);
        }
    }

    fn disabled(&mut self, index: usize, completion: Completion, tries: u8, now: Instant) {
        let gone = matches!(completion.code, code::SUCCESS | code::SLOT_NOT_ENABLED);
        if !gone && tries < DISABLE_TRIES {
            return self.try_to_disable(index, tries + 1, now);
        }
        if !gone {
            // It may reach the device's memory for as long as it runs.
            return self.die(ControllerFault::KeepsDevice);
        }
        if let (Some(base), Ok(slot)) = (&self.base, self.slot_of(index)) {
            base.set_slot(slot, 0);
            if let Some(place) = self.devices.get_mut(usize::from(slot) - 1) {
                place.tenant = NO_ENDPOINT;
            }
        }
        self.set_work(index, Work::Disabled);
        self.mark_pending();
    }

    /// Reports what a device has to say, if anything.
    pub(super) fn report_device(&mut self, index: usize, pool: &mut Pool<'_>) -> Option<Event> {
        let device = self.devices.get(index)?;
        let handle = DeviceHandle {
            index: index as u8,
            generation: device.generation,
        };
        let result = match device.work {
            Work::Finished(result) => {
                self.set_work(index, Work::Idle);
                result
            }
            // A configuration without changes.
            Work::Configuring if device.command.is_none() => {
                self.adopt_endpoints(index, pool);
                self.set_work(index, Work::Idle);
                Ok(())
            }
            Work::Disabled => {
                if let Some(event) = self.drain_device(index) {
                    return Some(event);
                }
                self.release_device(pool, index);
                Ok(())
            }
            _ => return None,
        };
        Some(Event::Device {
            device: handle,
            result,
        })
    }
}
