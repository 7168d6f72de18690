//! Input contexts: what a command is to make of a device.
//!
//! Called by [`device`](super::device) and [`recovery`](super::recovery) before the commands that take
//! one. Everything is written from the driver's own state; nothing is copied from what the
//! controller wrote. Read `xHCI 1.2 §6.2.5`.

use super::context::{Slot, endpoint_words, stream_words};
use super::device::CONTROL;
use super::endpoint::{EndpointRecord, EndpointState};
use super::{Xhci, device_at};
use crate::host::{Attachment, HostError};
use crate::mmio::Bus;

impl<B: Bus> Xhci<'_, B> {
    /// A device that may begin an operation, by its place.
    pub(super) fn slot_of(&self, index: usize) -> Result<u8, HostError> {
        match self.devices.get(index).map(|device| device.slot) {
            Some(slot) if slot != 0 => Ok(slot),
            _ => Err(HostError::Stale),
        }
    }

    /// The slot of the hub with the device's transaction translator.
    pub(super) fn translator_slot(&self, attachment: &Attachment) -> Result<u8, HostError> {
        match &attachment.translator {
            None => Ok(0),
            Some(translator) => self.slot_of(device_at(self.devices, translator.hub)?),
        }
    }

    /// Writes the input slot context and returns the slot.
    pub(super) fn write_slot(&self, index: usize, entries: u8) -> Result<u8, HostError> {
        let device = self.devices.get(index).ok_or(HostError::Stale)?;
        let contexts = device.contexts.as_ref().ok_or(HostError::Stale)?;
        let slot = Slot {
            attachment: &device.attachment,
            hub: device.hub.as_ref(),
            translator_slot: self.translator_slot(&device.attachment)?,
            entries,
        };
        contexts.write_slot(slot.words());
        self.slot_of(index)
    }

    /// Writes the flags of the input context and returns its address.
    pub(super) fn write_flags(&self, index: usize, add: u32, drop: u32) -> Result<u64, HostError> {
        let device = self.devices.get(index).ok_or(HostError::Stale)?;
        let contexts = device.contexts.as_ref().ok_or(HostError::Stale)?;
        contexts.write_flags(add, drop);
        Ok(contexts.input().get())
    }

    pub(super) fn control_endpoint(
        &mut self,
        index: usize,
    ) -> Result<&mut EndpointRecord, HostError> {
        let place = self
            .devices
            .get(index)
            .and_then(|device| device.endpoint(CONTROL));
        place
            .and_then(|place| self.endpoints.get_mut(place))
            .ok_or(HostError::Stale)
    }

    pub(super) fn write_control_endpoint(&mut self, index: usize) -> Result<(), HostError> {
        let device = self.devices.get(index).ok_or(HostError::Stale)?;
        let place = device.endpoint(CONTROL).ok_or(HostError::Stale)?;
        self.write_endpoint(index, place).map(|_| ())
    }

    /// Writes an endpoint's input context and returns its flag.
    pub(super) fn write_endpoint(&mut self, index: usize, place: usize) -> Result<u32, HostError> {
        let device = self.devices.get(index).ok_or(HostError::Stale)?;
        let contexts = device.contexts.as_ref().ok_or(HostError::Stale)?;
        let endpoint = self.endpoints.get_mut(place).ok_or(HostError::Stale)?;
        let words = match (&mut endpoint.transfers, &endpoint.streams) {
            (Some(ring), _) => {
                endpoint_words(&endpoint.config, device.speed(), ring.start_pointer())
            }
            (None, Some(set)) => {
                let (array, exponent) = set.install(self.streams);
                stream_words(&endpoint.config, device.speed(), array, exponent)
            }
            (None, None) => return Err(HostError::Stale),
        };
        contexts.write_endpoint(endpoint.dci, words);
        Ok(1 << endpoint.dci)
    }

    /// Writes the contexts of all endpoints that were opened, and returns the flags to add and to
    /// drop.
    pub(super) fn write_staged_endpoints(&mut self, index: usize) -> Result<(u32, u32), HostError> {
        let (mut add, mut drop) = (0, 0);
        for place in 0..self.endpoints.len() {
            let Some(endpoint) = self.endpoints.get(place) else {
                break;
            };
            if usize::from(endpoint.device) != index || endpoint.dci == CONTROL {
                continue;
            }
            match endpoint.state {
                EndpointState::Staged => add |= self.write_endpoint(index, place)?,
                EndpointState::Dropping => drop |= 1 << endpoint.dci,
                _ => {}
            }
        }
        Ok((add, drop))
    }

    /// The highest context index that a device will use.
    pub(super) fn context_entries(&self, index: usize) -> u8 {
        self.endpoints
            .iter()
            .filter(|endpoint| usize::from(endpoint.device) == index && endpoint.will_be_used())
            .map(|endpoint| endpoint.dci)
            .fold(CONTROL, u8::max)
    }
}
