//! Devices: addresses, endpoint 0, and which endpoints a device has.
//!
//! Called by the core through [`Devices`] and [`Hubs`]. EHCI knows no devices, only queue heads: an
//! address is a field of each, a configuration is which of them are in a schedule, and the hub that
//! splits transactions is named in each again. Addresses are the driver's to choose and the core's
//! to set (`EHCI 1.0 §3.6.2`, `USB 2.0 §9.4.6`).

use super::Ehci;
use super::endpoint::{Reason, Stage};
use super::queue_head::Split;
use crate::dma::{Owner, Pool};
use crate::host::{
    Addressing, Attachment, DeviceHandle, Devices, EndpointConfig, EndpointHandle, EndpointKind,
    Event, HostError, HubInfo, Hubs, Sequence,
};
use crate::mmio::Bus;
use crate::time::Instant;
use crate::usb::setup::Direction;
use crate::usb::speed::Speed;

/// Transfers in flight on endpoint 0. Policy: the core sends one request at a time, and may have a
/// second one waiting.
const CONTROL_TRANSFERS: u8 = 2;

/// The longest data stage in bytes. Policy: one page, more than any configuration that a boot host
/// reads whole.
const CONTROL_LONGEST: u32 = 4096;

/// Behind the highest USB address (`USB 2.0 §8.3.2.1`).
const NO_ADDRESS: u32 = 128;

/// What a device has under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    None,
    /// Ends when none of its endpoints is being changed or closed.
    Settle,
    /// The same, and the device goes.
    Close,
}

/// A place for a device. The caller of the stack provides a slice of them.
#[derive(Debug)]
pub struct DeviceRecord {
    generation: u8,
    open: bool,
    speed: Speed,
    split: Option<Split>,
    /// The address that its queue heads use.
    address: u8,
    /// The address that is kept for it, or 0.
    reserved: u8,
    endpoint0: Option<EndpointHandle>,
    operation: Operation,
}

impl DeviceRecord {
    /// An unused place.
    pub const EMPTY: Self = Self {
        generation: 0,
        open: false,
        speed: Speed::High,
        split: None,
        address: 0,
        reserved: 0,
        endpoint0: None,
        operation: Operation::None,
    };

    /// Makes the place free: handles to it are stale from now on.
    pub(super) fn vacate(&mut self) {
        *self = Self {
            generation: self.generation.wrapping_add(1),
            ..Self::EMPTY
        };
    }

    /// USB address in use.
    pub(super) fn address(&self) -> u8 {
        self.address
    }

    /// Speed.
    pub(super) fn speed(&self) -> Speed {
        self.speed
    }

    /// The hub that splits its transactions.
    pub(super) fn split(&self) -> Option<Split> {
        self.split
    }

    /// Whether it is on its way out.
    pub(super) fn is_closing(&self) -> bool {
        self.operation == Operation::Close
    }
}

/// The addresses of one bus.
///
/// They are given out in turn, so that one that was given back stays unused as long as may be: its
/// device may still be there, and answer, until its port is reset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    /// A bit for each that is taken.
    taken: u128,
    /// The one given out last.
    last: u8,
}

impl Addresses {
    /// All free but 0, which a device has after its reset.
    pub(super) const EMPTY: Self = Self { taken: 1, last: 0 };

    fn take(&mut self) -> Option<u8> {
        let after = (u128::MAX << self.last) << 1;
        let free = |among: u128| (!self.taken & among).trailing_zeros();
        let address = match free(after) {
            NO_ADDRESS => free(u128::MAX),
            address => address,
        };
        if address == NO_ADDRESS {
            return None;
        }
        self.taken |= 1 << address;
        self.last = address as u8;
        Some(self.last)
    }

    fn put(&mut self, address: u8) {
        if address != 0 && u32::from(address) < NO_ADDRESS {
            self.taken &= !(1 << address);
        }
    }
}

/// How a device is spoken to, or why this controller cannot.
fn route(attachment: &Attachment) -> Result<Option<Split>, HostError> {
    match (attachment.speed, attachment.translator) {
        (Speed::High, _) => Ok(None),
        (Speed::Full | Speed::Low, Some(translator)) => Ok(Some(Split {
            hub: translator.hub_address,
            port: translator.port,
        })),
        // On a root port it belongs to the companion; SuperSpeed has no way here.
        _ => Err(HostError::Unsupported),
    }
}

/// How endpoint 0 is opened.
pub(super) fn control_config(max_packet: u16) -> EndpointConfig {
    EndpointConfig {
        number: 0,
        direction: Direction::Out,
        kind: EndpointKind::Control,
        max_packet,
        max_burst: 0,
        interval: 0,
        transfers: CONTROL_TRANSFERS,
        longest: CONTROL_LONGEST,
        streams: 0,
    }
}

impl<B: Bus> Ehci<'_, B> {
    /// The device behind a handle.
    pub(super) fn device(&self, handle: DeviceHandle) -> Result<&DeviceRecord, HostError> {
        self.must_run()?;
        self.devices
            .get(usize::from(handle.index))
            .filter(|device| device.open && device.generation == handle.generation)
            .ok_or(HostError::Stale)
    }

    /// Begins an operation of a device that has none under way.
    fn begin(&mut self, handle: DeviceHandle) -> Result<&mut DeviceRecord, HostError> {
        if self.device(handle)?.operation != Operation::None {
            return Err(HostError::Busy);
        }
        self.operating.insert(handle.index);
        self.attend_now();
        let device = self
            .devices
            .get_mut(usize::from(handle.index))
            .ok_or(HostError::Stale)?;
        device.operation = Operation::Settle;
        Ok(device)
    }

    /// Calls `visit` with the index of each endpoint of a device.
    pub(super) fn each_endpoint(&mut self, device: u8, mut visit: impl FnMut(&mut Self, u8)) {
        for index in 0..self.endpoints.len().min(256) {
            let index = index as u8;
            let belongs = self
                .endpoint(index)
                .is_some_and(|endpoint| endpoint.stage != Stage::Free && endpoint.device == device);
            if belongs {
                visit(self, index);
            }
        }
    }

    /// Whether an endpoint of the device is being changed or closed.
    fn is_settling(&self, device: u8) -> bool {
        let mut at = 0;
        while let Some(index) = self.moving.first_from(at) {
            at = u16::from(index) + 1;
            let Some(endpoint) = self.endpoint(index) else {
                continue;
            };
            let reason = match endpoint.stage {
                Stage::Leaving(reason, _) | Stage::Draining(reason) => reason,
                _ => continue,
            };
            if endpoint.device == device && reason != Reason::Quiesce {
                return true;
            }
        }
        false
    }

    /// Ends operations of devices whose endpoints have settled.
    pub(super) fn tend_devices(&mut self, pool: &mut Pool<'_>) -> Option<Event> {
        let mut at = 0;
        while let Some(index) = self.operating.first_from(at) {
            at = u16::from(index) + 1;
            if self.is_settling(index) {
                continue;
            }
            self.operating.remove(index);
            let device = self.devices.get_mut(usize::from(index))?;
            let handle = DeviceHandle {
                index,
                generation: device.generation,
            };
            if device.is_closing() {
                self.addresses.put(device.reserved);
                device.vacate();
                // Also what the core holds in the device's name.
                pool.reclaim(Owner::Device(self.index, index));
            } else {
                device.operation = Operation::None;
            }
            return Some(Event::Device {
                device: handle,
                result: Ok(()),
            });
        }
        None
    }

    fn change_endpoint0(
        &mut self,
        handle: DeviceHandle,
        now: Instant,
        change: impl Fn(&mut super::queue_head::Identity),
    ) {
        let Ok(Some(endpoint0)) = self.device(handle).map(|device| device.endpoint0) else {
            return;
        };
        if let Ok(endpoint) = self.endpoint_mut(endpoint0) {
            if let Some(identity) = endpoint.identity.as_mut() {
                change(identity);
            }
            // One that is out of the schedule gets its identity on the way back.
            if endpoint.stage == Stage::Linked {
                self.unlink(endpoint0.index, Reason::Change, now);
            }
        }
    }
}

impl<B: Bus> Devices for Ehci<'_, B> {
    fn open_device(
        &mut self,
        pool: &mut Pool<'_>,
        attachment: &Attachment,
        _now: Instant,
    ) -> Result<DeviceHandle, HostError> {
        self.must_run()?;
        let split = route(attachment)?;
        let (index, device) = (0_u8..=u8::MAX)
            .zip(self.devices.iter_mut())
            .find(|(_, device)| !device.open)
            .ok_or(HostError::StorageFull)?;
        let handle = DeviceHandle {
            index,
            generation: device.generation,
        };
        *device = DeviceRecord {
            generation: device.generation,
            open: true,
            speed: attachment.speed,
            split,
            ..DeviceRecord::EMPTY
        };
        match self.reserve(pool, index, &control_config(attachment.max_packet0)) {
            Ok(endpoint0) => {
                self.link_afresh(endpoint0.index, Sequence::Reset);
                self.begin(handle)?.endpoint0 = Some(endpoint0);
                Ok(handle)
            }
            Err(error) => {
                if let Some(device) = self.devices.get_mut(usize::from(index)) {
                    device.vacate();
                }
                Err(error)
            }
        }
    }

    fn reach_at_zero(
        &mut self,
        device: DeviceHandle,
        _now: Instant,
    ) -> Result<Addressing, HostError> {
        let found = self.device(device)?;
        if found.operation != Operation::None {
            return Err(HostError::Busy);
        }
        // Its queue head was made for address 0.
        Ok(Addressing::Software(0))
    }

    fn address_device(
        &mut self,
        device: DeviceHandle,
        _now: Instant,
    ) -> Result<Addressing, HostError> {
        let found = self.device(device)?;
        if found.operation != Operation::None {
            return Err(HostError::Busy);
        }
        let mut address = found.reserved;
        if address == 0 {
            address = self.addresses.take().ok_or(HostError::Resources)?;
            if let Some(device) = self.devices.get_mut(usize::from(device.index)) {
                device.reserved = address;
            }
        }
        Ok(Addressing::Software(address))
    }

    fn adopt_address(&mut self, device: DeviceHandle, address: u8) {
        if self.device(device).is_err() {
            return;
        }
        if let Some(found) = self.devices.get_mut(usize::from(device.index)) {
            found.address = address;
        }
        self.change_endpoint0(device, self.now, |identity| identity.address = address);
    }

    fn set_max_packet0(
        &mut self,
        device: DeviceHandle,
        bytes: u16,
        now: Instant,
    ) -> Result<(), HostError> {
        if !(8..=64).contains(&bytes) || !bytes.is_power_of_two() {
            return Err(HostError::Unsupported);
        }
        let endpoint0 = self.device(device)?.endpoint0.ok_or(HostError::Stale)?;
        if !self.endpoint_mut(endpoint0)?.is_idle() {
            return Err(HostError::Busy);
        }
        self.begin(device)?;
        self.change_endpoint0(device, now, |identity| identity.max_packet = bytes);
        Ok(())
    }

    fn endpoint0(&self, device: DeviceHandle) -> Option<EndpointHandle> {
        self.device(device).ok()?.endpoint0
    }

    fn configure(&mut self, device: DeviceHandle, now: Instant) -> Result<(), HostError> {
        self.begin(device)?;
        self.each_endpoint(device.index, |this, index| {
            let Some((closing, stage)) = this
                .endpoint(index)
                .map(|endpoint| (endpoint.closing, endpoint.stage))
            else {
                return;
            };
            match (closing, stage) {
                (true, _) => this.unlink(index, Reason::Close, now),
                (false, Stage::Opened) => this.link_afresh(index, Sequence::Reset),
                (false, _) => {}
            }
        });
        Ok(())
    }

    fn close_device(&mut self, device: DeviceHandle, now: Instant) -> Result<(), HostError> {
        if self.device(device)?.is_closing() {
            return Err(HostError::Stale);
        }
        if let Some(found) = self.devices.get_mut(usize::from(device.index)) {
            found.operation = Operation::Close;
        }
        self.operating.insert(device.index);
        self.each_endpoint(device.index, |this, index| {
            this.unlink(index, Reason::Close, now);
        });
        self.attend_now();
        Ok(())
    }
}

impl<B: Bus> Hubs for Ehci<'_, B> {
    /// Nothing to tell: each queue head behind the hub names it.
    fn update_hub(
        &mut self,
        device: DeviceHandle,
        _hub: &HubInfo,
        _now: Instant,
    ) -> Result<(), HostError> {
        self.begin(device).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_run_from_1_to_127_and_come_back() {
        let mut addresses = Addresses::EMPTY;
        for expected in 1..=127 {
            assert_eq!(addresses.take(), Some(expected));
        }
        assert_eq!(addresses.take(), None);
        addresses.put(0);
        assert_eq!(addresses.take(), None, "0 is never given");
        addresses.put(77);
        assert_eq!(addresses.take(), Some(77));
    }

    #[test]
    fn an_address_that_was_given_back_is_the_last_to_be_used_again() {
        let mut addresses = Addresses::EMPTY;
        assert_eq!(addresses.take(), Some(1));
        addresses.put(1);
        for expected in 2..=127 {
            assert_eq!(addresses.take(), Some(expected));
        }
        assert_eq!(addresses.take(), Some(1));
    }
}
