//! The table of devices: identity, description, and the one operation under way on each.

use super::bus::{Configuring, Fate};
use super::descriptor::Device;
use super::error::UsbError;
use super::operation::Running;
use super::speed::Speed;
use crate::dma::Allocation;
use crate::host::{Attachment, DeviceHandle, EndpointHandle};
use crate::platform::ControllerId;
use crate::time::Instant;

/// A device of the host: its place in the table and which use of that place. The id of a device
/// that has gone stays valid and names nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceId {
    pub(crate) index: u8,
    pub(crate) generation: u8,
}

/// Where a device is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceState {
    /// Its descriptors are being read.
    Enumerating,
    /// Its descriptors are known, no driver uses it (yet).
    Described,
    /// Its configuration is being set.
    Configuring,
    /// It is configured.
    Configured,
    /// It could not be configured.
    Failed(UsbError),
    /// It has gone; the controller still has to let go of it.
    Closing,
    /// Its controller reaches its memory no more; its driver still has to be told what becomes of
    /// it.
    Orphaned(Fate),
}

/// Who began the operation that is under way on a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Requester {
    /// Enumeration.
    Enumeration,
    /// Configuration.
    Configuration,
    /// The function driver of the device.
    Function,
}

/// One device. The caller of the stack provides a slice of them.
#[derive(Debug)]
pub struct DeviceEntry {
    pub(crate) generation: u8,
    pub(crate) in_use: bool,
    pub(crate) state: DeviceState,
    pub(crate) controller: ControllerId,
    pub(crate) handle: DeviceHandle,
    pub(crate) endpoint0: EndpointHandle,
    pub(crate) attachment: Option<Attachment>,
    pub(crate) descriptor: Option<Device>,
    pub(crate) configuration_length: u16,
    /// Small requests at 0, the configuration behind them: see [`super::bus`].
    pub(crate) control_buffer: Option<Allocation>,
    pub(crate) operation: Option<(Requester, Running)>,
    pub(crate) deadline: Instant,
    /// Counts control transfers, to tell a late end of an old one from the present one's.
    pub(crate) control_count: u8,
    /// How far its configuration has come.
    pub(crate) configuring: Option<Configuring>,
    /// Which attempt to bring up what is in the port found it, from 0.
    pub(crate) attempt: u8,
    /// It is being closed for another attempt on its port, after this failure.
    pub(crate) retry: Option<UsbError>,
    /// What the driver of its function is called, for people.
    pub(crate) driver: &'static str,
}

impl DeviceEntry {
    /// An unused entry.
    pub const EMPTY: Self = Self {
        generation: 0,
        in_use: false,
        state: DeviceState::Closing,
        controller: ControllerId(0),
        handle: DeviceHandle {
            index: 0,
            generation: 0,
        },
        endpoint0: EndpointHandle {
            index: 0,
            generation: 0,
        },
        attachment: None,
        descriptor: None,
        configuration_length: 0,
        control_buffer: None,
        operation: None,
        deadline: Instant::NEVER,
        control_count: 0,
        configuring: None,
        attempt: 0,
        retry: None,
        driver: "",
    };

    /// When the device wants to be looked at.
    pub(crate) fn deadline(&self) -> Instant {
        match self.state {
            DeviceState::Orphaned(_) => Instant::from_micros(0),
            _ => self.deadline,
        }
    }
}

/// What the host knows about a device, for a person or a driver.
#[derive(Clone, Copy, Debug)]
pub struct DeviceInfo {
    /// Its id.
    pub id: DeviceId,
    /// The controller that it is on.
    pub controller: ControllerId,
    /// How it is attached: root port, route, speed.
    pub attachment: Attachment,
    /// Where it is in its life.
    pub state: DeviceState,
    /// Its device descriptor, once read.
    pub descriptor: Option<Device>,
    /// Which driver uses it; empty if none.
    pub driver: &'static str,
}

impl DeviceInfo {
    /// Its speed.
    #[must_use]
    pub fn speed(&self) -> Speed {
        self.attachment.speed
    }
}
