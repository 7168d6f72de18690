//! The table of devices: identity, description, and the one operation under way on each.

use super::bus::{Configuring, Fate};
use super::descriptor::{Configuration, Device};
use super::error::UsbError;
use super::operation::Running;
use super::speed::Speed;
use super::strings::DeviceStrings;
use crate::dma::Allocation;
use crate::host::{Attachment, DeviceHandle, EndpointHandle};
use crate::platform::ControllerId;
use crate::time::Instant;

/// A device of the host: its place in the table and which use of that place. The id of a device
/// that has gone stays valid and names nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceId {
    pub(crate) index: u8,
    pub(crate) generation: u32,
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
    pub(crate) generation: u32,
    pub(crate) in_use: bool,
    /// Which use of the entry was told of as a device that has arrived.
    pub(crate) told: Option<u32>,
    pub(crate) state: DeviceState,
    pub(crate) controller: ControllerId,
    pub(crate) handle: DeviceHandle,
    pub(crate) endpoint0: EndpointHandle,
    pub(crate) attachment: Option<Attachment>,
    pub(crate) descriptor: Option<Device>,
    pub(crate) configuration_length: u16,
    pub(crate) power: PowerDraw,
    pub(crate) strings: DeviceStrings,
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
    /// It is being closed because it was given up so: its port may have another attempt.
    pub(crate) given_up: Option<UsbError>,
    /// What the driver of its function is called, for people.
    pub(crate) driver: &'static str,
}

impl DeviceEntry {
    /// An unused entry.
    pub const EMPTY: Self = Self {
        generation: 0,
        in_use: false,
        told: None,
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
        power: PowerDraw::UNKNOWN,
        strings: DeviceStrings::NONE,
        control_buffer: None,
        operation: None,
        deadline: Instant::NEVER,
        control_count: 0,
        configuring: None,
        attempt: 0,
        given_up: None,
        driver: "",
    };

    /// Whether the use of the entry that was told of is over.
    pub(crate) fn is_told_over(&self) -> bool {
        let over = !self.in_use || self.told != Some(self.generation);
        self.told.is_some() && over
    }

    /// Whether a device is here that was not told of.
    pub(crate) fn is_news(&self) -> bool {
        let is_described = matches!(
            self.state,
            DeviceState::Described
                | DeviceState::Configuring
                | DeviceState::Configured
                | DeviceState::Failed(_)
        );
        self.in_use && is_described && self.told.is_none()
    }

    /// When the device wants to be looked at.
    pub(crate) fn deadline(&self) -> Instant {
        match self.state {
            DeviceState::Orphaned(_) => Instant::from_micros(0),
            _ => self.deadline,
        }
    }
}

/// What a device says that it draws from the bus when it is configured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PowerDraw {
    /// In mA. 0 of a bridge with a supply of its own, and of some that only say so.
    #[doc(alias = "bMaxPower")]
    pub milliamperes: u16,
    /// It says that it has a supply of its own.
    pub is_self_powered: bool,
    /// What a port without a deal gives at this speed: 500 mA (USB 2.0 §7.2.1), 900 mA at SuperSpeed
    /// (USB 3.2 §11.4.5).
    pub port_milliamperes: u16,
}

impl PowerDraw {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        milliamperes: 0,
        is_self_powered: false,
        port_milliamperes: 500,
    };

    /// What a configuration draws on a link of this speed.
    #[must_use]
    pub fn of(configuration: &Configuration<'_>, speed: Speed) -> Self {
        Self {
            milliamperes: configuration.max_power_milliamperes(speed),
            is_self_powered: configuration.is_self_powered(),
            port_milliamperes: if speed.is_super() { 900 } else { 500 },
        }
    }

    /// Whether the device wants more than its port need give. Advice: it may vanish under load, or
    /// never spin up; a hub with a supply of its own helps.
    #[must_use]
    pub const fn exceeds_port(&self) -> bool {
        self.milliamperes > self.port_milliamperes
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
    /// What it calls itself, once read.
    pub strings: DeviceStrings,
    /// What it draws from its port, once read.
    pub power: PowerDraw,
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
