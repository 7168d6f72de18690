//! Devices: slots, contexts and the commands that change them.
//!
//! The trait's parts two and four. A device takes a place in the storage at once, and a slot of the
//! controller when Enable Slot has answered. Each operation is one command; what a completion
//! means is decided in [`slot`](super::slot) by the [`Work`] that the device has under way. Read `xHCI 1.2 §4.3` and `§4.6`.

use super::command::Command;
use super::context::Contexts;
use super::trb::{Trb, kind};
use super::{Xhci, device_at};
use crate::dma::Pool;
use crate::host::{
    Addressing, Attachment, DeviceHandle, Devices, EndpointConfig, EndpointHandle, EndpointKind,
    HostError, HubInfo, Hubs, RootPort,
};
use crate::mmio::Bus;
use crate::time::Instant;
use crate::usb::setup::Direction;
use crate::usb::speed::Speed;

/// No endpoint at a context index.
pub(super) const NO_ENDPOINT: u8 = u8::MAX;
/// Context index of endpoint 0.
pub(super) const CONTROL: u8 = 1;
/// Add flags of the slot context and of endpoint 0.
const ADD_SLOT: u32 = 1 << 0;
const ADD_CONTROL: u32 = 1 << CONTROL;

/// A device. The caller of the driver provides a slice of them.
#[derive(Debug)]
pub struct DeviceRecord {
    pub(super) generation: u8,
    pub(super) state: DeviceState,
    /// The controller's number for it, 0 for none.
    pub(super) slot: u8,
    /// Which device has the slot whose number is this record's place plus one.
    pub(super) tenant: u8,
    pub(super) attachment: Attachment,
    pub(super) hub: Option<HubInfo>,
    /// Place of the endpoint with each context index.
    pub(super) endpoints: [u8; 32],
    pub(super) contexts: Option<Contexts>,
    pub(super) work: Work,
    pub(super) command: Option<Command>,
    /// An endpoint's own command uses the input context.
    pub(super) lent: bool,
}

/// What a place holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DeviceState {
    Free,
    Open,
    /// To be closed as soon as the command under way has ended.
    Closing,
}

/// What a device has under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    Idle,
    Enabling,
    Addressing,
    /// Changes the packet size of endpoint 0.
    Evaluating(u16),
    Configuring,
    UpdatingHub(HubInfo),
    /// Disable Slot is under way, for the n-th time.
    Disabling(u8),
    /// The controller has let go; transfers are to be reported.
    Disabled,
    /// To be reported.
    Finished(Result<(), HostError>),
}

impl DeviceRecord {
    /// An unused place.
    pub const EMPTY: Self = Self {
        generation: 0,
        state: DeviceState::Free,
        slot: 0,
        tenant: u8::MAX,
        attachment: Attachment {
            root_port: RootPort(0),
            route: 0,
            speed: Speed::Full,
            max_packet0: 8,
            translator: None,
        },
        hub: None,
        endpoints: [NO_ENDPOINT; 32],
        contexts: None,
        work: Work::Idle,
        command: None,
        lent: false,
    };

    /// Forgets everything but which use of the place comes next, and the slot's tenant.
    pub(super) fn vacate(&mut self) {
        let in_use = self.state != DeviceState::Free;
        *self = Self {
            generation: self.generation.wrapping_add(u8::from(in_use)),
            tenant: self.tenant,
            ..Self::EMPTY
        };
    }

    /// Takes a new operation, if none is under way.
    pub(super) fn check_idle(&self) -> Result<(), HostError> {
        match self.work {
            Work::Idle if !self.lent => Ok(()),
            _ => Err(HostError::Busy),
        }
    }

    /// The endpoint with a context index, by its place.
    #[inline]
    pub(super) fn endpoint(&self, dci: u8) -> Option<usize> {
        let place = *self.endpoints.get(usize::from(dci))?;
        (place != NO_ENDPOINT).then_some(usize::from(place))
    }

    /// Its speed.
    pub(super) fn speed(&self) -> Speed {
        self.attachment.speed
    }
}

/// Endpoint 0 of a device.
pub(super) const fn endpoint0_config(max_packet: u16) -> EndpointConfig {
    EndpointConfig {
        number: 0,
        direction: Direction::In,
        kind: EndpointKind::Control,
        max_packet,
        max_burst: 0,
        interval: 0,
        // One, and a second that was given up and is not settled yet.
        transfers: 2,
        longest: u16::MAX as u32,
        streams: 0,
    }
}

impl<B: Bus> Xhci<'_, B> {
    /// Issues an Address Device, changed by `kind_of`.
    fn address(
        &mut self,
        device: DeviceHandle,
        kind_of: fn(Trb) -> Trb,
        now: Instant,
    ) -> Result<Addressing, HostError> {
        self.check_running()?;
        let index = self.idle_device(device)?;
        let slot = self.write_slot(index, CONTROL)?;
        self.write_control_endpoint(index)?;
        let input = self.write_flags(index, ADD_SLOT | ADD_CONTROL, 0)?;
        let command = kind_of(Trb::command(kind::ADDRESS_DEVICE, slot, input));
        self.device_command(index, Work::Addressing, command, now)?;
        Ok(Addressing::Controller)
    }
}

impl<B: Bus> Devices for Xhci<'_, B> {
    fn open_device(
        &mut self,
        pool: &mut Pool<'_>,
        attachment: &Attachment,
        now: Instant,
    ) -> Result<DeviceHandle, HostError> {
        self.check_running()?;
        self.translator_slot(attachment)?;
        let free = |device: &DeviceRecord| device.state == DeviceState::Free;
        let index = self.devices.iter().position(free);
        let index = index.ok_or(HostError::StorageFull)?;
        if let Err(error) = self.reserve_device(pool, index, attachment) {
            self.release_device(pool, index);
            return Err(error);
        }
        let command = Trb::enable_slot(self.parameters.slot_type(attachment.root_port));
        self.device_command(index, Work::Enabling, command, now)?;
        let device = self.devices.get(index).ok_or(HostError::StorageFull)?;
        Ok(DeviceHandle {
            index: index as u8,
            generation: device.generation,
        })
    }

    fn reach_at_zero(
        &mut self,
        device: DeviceHandle,
        now: Instant,
    ) -> Result<Addressing, HostError> {
        self.address(device, Trb::without_set_address, now)
    }

    fn address_device(
        &mut self,
        device: DeviceHandle,
        now: Instant,
    ) -> Result<Addressing, HostError> {
        self.address(device, |command| command, now)
    }

    fn adopt_address(&mut self, _device: DeviceHandle, _address: u8) {
        // The controller chose the address and keeps it.
    }

    fn set_max_packet0(
        &mut self,
        device: DeviceHandle,
        bytes: u16,
        now: Instant,
    ) -> Result<(), HostError> {
        self.check_running()?;
        let index = self.idle_device(device)?;
        let control = self.control_endpoint(index)?;
        if control.config.max_packet == bytes {
            return self.finish_device(index, Ok(()));
        }
        let previous = core::mem::replace(&mut control.config.max_packet, bytes);
        let written = self.write_control_endpoint(index);
        // The size is the endpoint's own only when the controller has agreed.
        self.control_endpoint(index)?.config.max_packet = previous;
        written?;
        let slot = self.slot_of(index)?;
        let input = self.write_flags(index, ADD_CONTROL, 0)?;
        let command = Trb::command(kind::EVALUATE_CONTEXT, slot, input);
        self.device_command(index, Work::Evaluating(bytes), command, now)
    }

    fn endpoint0(&self, device: DeviceHandle) -> Option<EndpointHandle> {
        let index = device_at(self.devices, device).ok()?;
        let place = self.devices.get(index)?.endpoint(CONTROL)?;
        Some(self.endpoints.get(place)?.handle(place))
    }

    fn configure(&mut self, device: DeviceHandle, now: Instant) -> Result<(), HostError> {
        self.check_running()?;
        let index = self.idle_device(device)?;
        let (add, drop) = self.write_staged_endpoints(index)?;
        if add | drop == 0 {
            self.set_work(index, Work::Configuring);
            self.mark_pending();
            return Ok(());
        }
        let entries = self.context_entries(index);
        let slot = self.write_slot(index, entries)?;
        let input = self.write_flags(index, ADD_SLOT | add, drop)?;
        let command = Trb::command(kind::CONFIGURE_ENDPOINT, slot, input);
        self.device_command(index, Work::Configuring, command, now)
    }

    fn close_device(&mut self, device: DeviceHandle, now: Instant) -> Result<(), HostError> {
        self.check_running()?;
        let index = device_at(self.devices, device)?;
        let device = self.devices.get_mut(index).ok_or(HostError::Stale)?;
        device.state = DeviceState::Closing;
        let waiting = device.command.is_some();
        self.abandon_endpoint_work(index);
        if !waiting {
            self.disable(index, now);
        }
        Ok(())
    }
}

impl<B: Bus> Hubs for Xhci<'_, B> {
    fn update_hub(
        &mut self,
        device: DeviceHandle,
        hub: &HubInfo,
        now: Instant,
    ) -> Result<(), HostError> {
        self.check_running()?;
        let index = self.idle_device(device)?;
        let entries = self.context_entries(index);
        let record = self.devices.get_mut(index).ok_or(HostError::Stale)?;
        let previous = record.hub.replace(*hub);
        let written = self.write_slot(index, entries);
        if let Some(record) = self.devices.get_mut(index) {
            record.hub = previous;
        }
        let slot = written?;
        let input = self.write_flags(index, ADD_SLOT, 0)?;
        // Before 1.0 it was Evaluate Context that took what a hub says (`xHCI 0.96 §4.6.7`).
        let kind = if self.parameters.version >= 0x100 {
            kind::CONFIGURE_ENDPOINT
        } else {
            kind::EVALUATE_CONTEXT
        };
        let command = Trb::command(kind, slot, input);
        self.device_command(index, Work::UpdatingHub(*hub), command, now)
    }
}
