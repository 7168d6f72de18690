//! Enumeration: from a port with something on it to a device whose descriptors are known.
//!
//! A machine without I/O: [`Enumeration::step`] takes what happened and says what to do next. The
//! bus carries it out. One attempt is one run; a failed one is followed by another with a new port
//! reset, at most [`ATTEMPTS`](super::port::ATTEMPTS) in all.
//!
//! The order survives most devices: reset, recovery, address, recovery, device descriptor (first
//! 8 bytes, then all), configuration (first 9 bytes, then all), strings. Read USB 2.0 §9.1.2, §9.2.6 and
//! §7.1.7.5 first.

use super::descriptor::{Configuration, Device, DeviceHead};
use super::device::PowerDraw;
use super::error::UsbError;
use super::quirks::{BusQuirks, bus_quirks};
use super::setup::SetupPacket;
use super::speed::Speed;
use super::strings::{DeviceStrings, Reading, STRING_TIMEOUT};
use crate::host::{PortProtocol, PortStatus};
use crate::time::{Duration, Instant};

/// After a port reset, before the first request. USB 2.0 §7.1.7.5 (tRSTRCY) asks for 10 ms.
/// Policy: 40 ms more, as Linux has learnt; at later attempts longer.
pub const RESET_RECOVERY: Duration = Duration::from_millis(50);

/// After SET_ADDRESS. USB 2.0 §9.2.6.3 asks for 2 ms. Policy: 10 ms, as Linux has learnt.
pub const ADDRESS_RECOVERY: Duration = Duration::from_millis(10);

/// How long a port reset may take. USB 2.0 §7.1.7.5 (tDRSTR) drives it for 50 ms; a SuperSpeed
/// warm reset may last 120 ms (USB 3.2 §7.5.12). Policy: 500 ms.
pub const RESET_TIMEOUT: Duration = Duration::from_millis(500);

/// How often a port in reset is looked at. Policy: costs little and loses little.
const RESET_POLL: Duration = Duration::from_millis(1);

/// How long a SuperSpeed link may train before a warm reset is tried. USB 3.2 §7.5.4 lets Polling
/// last 360 ms.
const TRAINING_TIMEOUT: Duration = Duration::from_millis(400);

/// Before the configuration of a device that is not ready for it. Policy: 200 ms, as Linux has learnt.
pub const DELAYED_CONFIGURATION: Duration = Duration::from_millis(200);

/// How long the first request may take. Policy: a device that lives answers in milliseconds
/// (USB 2.0 §9.2.6.4 allows 500 ms to the first data packet); a dead one shall not hold the bus.
pub const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_millis(1_000);

/// How long a standard request may take in all (USB 2.0 §9.2.6.4).
pub const REQUEST_TIMEOUT: Duration = Duration::from_millis(5_000);

/// Bytes of a configuration that are kept. Longer ones are cut: what matters for storage comes
/// early. Policy: the longest seen on a disk is below 200.
pub const CONFIGURATION_LIMIT: u16 = 1024;

/// The first read of the device descriptor. Policy: 64 as Windows asks: high-speed devices send
/// 18 or 64 bytes whatever is asked.
const FIRST_READ: u16 = 64;

/// Where an attempt is; each phase holds what is valid in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// A SuperSpeed link trains by itself.
    Training { until: Instant },
    /// The core holds the reset.
    Holding,
    /// The reset ends by itself.
    Resetting { until: Instant, warm: bool },
    /// The device may not be asked yet.
    Recovering,
    /// The controller opens the device.
    Opening,
    /// The controller makes the device reachable at address 0.
    ReachingZero,
    /// The first 8 bytes of the device descriptor are asked for there.
    HeadAtZero,
    /// The controller addresses the device.
    Addressing,
    /// SET_ADDRESS is under way.
    SettingAddress(u8),
    /// The device gets used to its address.
    AddressRecovery,
    /// The first 8 bytes of the device descriptor.
    DeviceHead,
    /// The controller changes endpoint 0.
    MaxPacket,
    /// The whole device descriptor.
    Device,
    /// The device gets ready for its configuration to be read.
    Delaying,
    /// The first 9 bytes of the configuration.
    ConfigurationHead,
    /// All of the configuration.
    Configuration,
    /// The strings; the rest is known.
    Strings,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// The attempt begins.
    Begin,
    /// The time that was waited for has come; the port shows this.
    Time(PortStatus),
    /// The controller ended its operation.
    Controller(Result<(), UsbError>),
    /// The controller leaves addressing to the core: this address is to be set.
    SoftwareAddress(u8),
    /// A request ended, with the bytes that came.
    Request(Result<&'a [u8], UsbError>),
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Begin a port reset, then come back at the time.
    Reset(Instant),
    /// Begin a warm reset, then come back at the time.
    WarmReset(Instant),
    /// End the reset that the core holds, then come back at the time.
    EndReset(Instant),
    /// Come back at the time.
    Wait(Instant),
    /// Nothing: it was something late of an earlier phase. Go on waiting as before, also for a time.
    Ignore,
    /// Open the device at this speed.
    Open(Speed),
    /// Have the controller make the device reachable at address 0.
    ReachAtZero,
    /// Give the device an address.
    Address,
    /// The device has taken the address; then come back at the time.
    Adopt(u8, Instant),
    /// Send a request with this deadline.
    Request(SetupPacket, Instant),
    /// Give endpoint 0 another packet size.
    MaxPacket(u16),
    /// All is known: [`Enumeration::description`] has it.
    Done,
    /// The attempt has failed.
    Fail(UsbError),
}

/// What enumeration has learnt of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Description {
    /// Its device descriptor.
    pub device: Device,
    /// Bytes of its first configuration that came, at most [`CONFIGURATION_LIMIT`].
    pub configuration_length: u16,
    /// What its first configuration draws.
    pub power: PowerDraw,
    /// What it calls itself.
    pub strings: DeviceStrings,
}

/// One attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enumeration {
    phase: Phase,
    protocol: PortProtocol,
    /// How long the core holds the reset, if it does.
    hold: Option<Duration>,
    /// The attempt's number, from 0.
    attempt: u8,
    speed: Speed,
    max_packet0: u16,
    device: Option<Device>,
    configuration_length: u16,
    power: PowerDraw,
    reading: Reading,
}

impl Enumeration {
    /// The `attempt`-th attempt, from 0, on a port of `protocol` whose reset the core holds for
    /// `hold`, if it does.
    #[must_use]
    pub fn new(protocol: PortProtocol, hold: Option<Duration>, attempt: u8) -> Self {
        Self {
            phase: Phase::Holding,
            protocol,
            hold,
            attempt,
            speed: Speed::Full,
            max_packet0: 0,
            device: None,
            configuration_length: 0,
            power: PowerDraw::UNKNOWN,
            reading: Reading::NONE,
        }
    }

    /// Takes what happened, and says what to do next.
    pub fn step(&mut self, input: Input<'_>, now: Instant) -> Action {
        match self.try_step(input, now) {
            Ok(action) => action,
            Err(error) => Action::Fail(error),
        }
    }

    fn try_step(&mut self, input: Input<'_>, now: Instant) -> Result<Action, UsbError> {
        match (self.phase, input) {
            (_, Input::Begin) => Ok(self.begin(now)),
            (Phase::Training { until }, Input::Time(port)) => Ok(self.train(port, until, now)),
            (Phase::Holding, Input::Time(_)) => {
                self.phase = Phase::Resetting {
                    until: now + RESET_TIMEOUT,
                    warm: false,
                };
                Ok(Action::EndReset(now + RESET_POLL))
            }
            (Phase::Resetting { until, warm }, Input::Time(port)) => {
                self.reset(port, until, warm, now)
            }
            (Phase::Recovering, Input::Time(port)) => {
                self.speed = port.speed.ok_or(UsbError::PortReset)?;
                self.phase = Phase::Opening;
                Ok(Action::Open(self.speed))
            }
            (Phase::Opening, Input::Controller(result)) => {
                result?;
                if self.asks_at_zero() {
                    self.phase = Phase::ReachingZero;
                    return Ok(Action::ReachAtZero);
                }
                Ok(self.address())
            }
            (Phase::ReachingZero, Input::Controller(result)) => {
                result?;
                Ok(self.ask_at_zero(now))
            }
            (Phase::ReachingZero, Input::SoftwareAddress(_)) => Ok(self.ask_at_zero(now)),
            // What it says is asked again at its address.
            (Phase::HeadAtZero, Input::Request(result)) => {
                result?;
                Ok(self.address())
            }
            (Phase::Addressing, Input::Controller(result)) => {
                result?;
                self.phase = Phase::AddressRecovery;
                Ok(Action::Wait(now + ADDRESS_RECOVERY))
            }
            (Phase::Addressing, Input::SoftwareAddress(address)) => {
                self.phase = Phase::SettingAddress(address);
                let request = SetupPacket::set_address(address);
                Ok(Action::Request(request, now + FIRST_REQUEST_TIMEOUT))
            }
            (Phase::SettingAddress(address), Input::Request(result)) => {
                result?;
                self.phase = Phase::AddressRecovery;
                Ok(Action::Adopt(address, now + ADDRESS_RECOVERY))
            }
            (Phase::AddressRecovery, Input::Time(_)) => {
                self.phase = Phase::DeviceHead;
                let request = SetupPacket::device_descriptor(self.first_read());
                Ok(Action::Request(request, now + FIRST_REQUEST_TIMEOUT))
            }
            (Phase::DeviceHead, Input::Request(result)) => self.device_head(result?, now),
            (Phase::MaxPacket, Input::Controller(result)) => {
                result?;
                Ok(self.ask_device(now))
            }
            (Phase::Device, Input::Request(result)) => {
                let device = Device::parse(result?)?;
                self.device = Some(device);
                if bus_quirks(device.vendor, device.product).contains(BusQuirks::DELAY_INIT) {
                    self.phase = Phase::Delaying;
                    return Ok(Action::Wait(now + DELAYED_CONFIGURATION));
                }
                Ok(self.ask_configuration_head(now))
            }
            (Phase::Delaying, Input::Time(_)) => Ok(self.ask_configuration_head(now)),
            (Phase::ConfigurationHead, Input::Request(result)) => {
                let announced = Configuration::parse(result?)?.announced_length();
                self.phase = Phase::Configuration;
                let shortest = Configuration::HEAD_LENGTH as u16;
                Ok(self.ask_configuration(announced.clamp(shortest, CONFIGURATION_LIMIT), now))
            }
            (Phase::Configuration, Input::Request(result)) => self.describe(result?, now),
            (Phase::Strings, Input::Request(result)) => self.string(result, now),
            (_, _) => Ok(Action::Ignore),
        }
    }

    /// A USB 2 port is always reset. A SuperSpeed port that has trained needs none at first.
    fn begin(&mut self, now: Instant) -> Action {
        if self.protocol == PortProtocol::Usb3 && self.attempt == 0 {
            self.phase = Phase::Training {
                until: now + TRAINING_TIMEOUT,
            };
            return Action::Wait(now);
        }
        if self.protocol == PortProtocol::Usb3 && self.attempt > 1 {
            return self.warm_reset(now);
        }
        match self.hold {
            Some(hold) => {
                self.phase = Phase::Holding;
                Action::Reset(now + hold)
            }
            None => {
                self.phase = Phase::Resetting {
                    until: now + RESET_TIMEOUT,
                    warm: false,
                };
                Action::Reset(now + RESET_POLL)
            }
        }
    }

    /// Whether the device is asked for its descriptor before it gets an address. Policy: at the second
    /// attempt, since some devices take no SET_ADDRESS before (an order that other hosts had for long),
    /// and others have fallen over being asked so early. A SuperSpeed device needs none of that.
    fn asks_at_zero(&self) -> bool {
        self.attempt == 1 && self.protocol == PortProtocol::Usb2
    }

    fn ask_at_zero(&mut self, now: Instant) -> Action {
        self.phase = Phase::HeadAtZero;
        let request = SetupPacket::device_descriptor(self.first_read());
        Action::Request(request, now + FIRST_REQUEST_TIMEOUT)
    }

    fn address(&mut self) -> Action {
        self.phase = Phase::Addressing;
        Action::Address
    }

    fn warm_reset(&mut self, now: Instant) -> Action {
        self.phase = Phase::Resetting {
            until: now + RESET_TIMEOUT,
            warm: true,
        };
        Action::WarmReset(now + RESET_POLL)
    }

    /// Policy: three times as long at each further attempt, since devices that need more than 100 ms were
    /// reported.
    fn reset_recovery(&self) -> Duration {
        Duration::from_millis(match self.attempt {
            0 => RESET_RECOVERY.as_millis(),
            1 => 3 * RESET_RECOVERY.as_millis(),
            _ => 9 * RESET_RECOVERY.as_millis(),
        })
    }

    fn train(&mut self, port: PortStatus, until: Instant, now: Instant) -> Action {
        if port.enabled {
            self.phase = Phase::Recovering;
            Action::Wait(now + self.reset_recovery())
        } else if port.needs_warm_reset || now >= until {
            self.warm_reset(now)
        } else {
            Action::Wait(now + RESET_POLL)
        }
    }

    fn reset(
        &mut self,
        port: PortStatus,
        until: Instant,
        warm: bool,
        now: Instant,
    ) -> Result<Action, UsbError> {
        if !port.connected && self.protocol == PortProtocol::Usb2 {
            return Err(UsbError::Disconnected);
        }
        if port.enabled && !port.resetting {
            self.phase = Phase::Recovering;
            return Ok(Action::Wait(now + self.reset_recovery()));
        }
        if self.hold.is_some() && !port.resetting {
            // EHCI 1.0 §4.2.2: connected, reset and not enabled is full speed.
            return Err(UsbError::NeedsCompanion);
        }
        if now < until {
            return Ok(Action::Wait(now + RESET_POLL));
        }
        match self.protocol {
            PortProtocol::Usb3 if !warm => Ok(self.warm_reset(now)),
            _ => Err(UsbError::PortReset),
        }
    }

    /// Policy: a device that fails when asked for 64 bytes is asked for 8 at the last attempt.
    fn first_read(&self) -> u16 {
        if self.attempt < 2 {
            FIRST_READ
        } else {
            DeviceHead::LENGTH as u16
        }
    }

    fn device_head(&mut self, bytes: &[u8], now: Instant) -> Result<Action, UsbError> {
        let bytes0 = DeviceHead::parse(bytes)?.control_packet_size(self.speed)?;
        if bytes0 == self.max_packet0 {
            return Ok(self.ask_device(now));
        }
        self.max_packet0 = bytes0;
        self.phase = Phase::MaxPacket;
        Ok(Action::MaxPacket(bytes0))
    }

    fn ask_device(&mut self, now: Instant) -> Action {
        self.phase = Phase::Device;
        let request = SetupPacket::device_descriptor(Device::LENGTH as u16);
        Action::Request(request, now + REQUEST_TIMEOUT)
    }

    fn ask_configuration_head(&mut self, now: Instant) -> Action {
        self.phase = Phase::ConfigurationHead;
        self.ask_configuration(Configuration::HEAD_LENGTH as u16, now)
    }

    fn ask_configuration(&self, length: u16, now: Instant) -> Action {
        Action::Request(
            SetupPacket::configuration_descriptor(0, length),
            now + REQUEST_TIMEOUT,
        )
    }

    fn describe(&mut self, bytes: &[u8], now: Instant) -> Result<Action, UsbError> {
        let configuration = Configuration::parse(bytes)?;
        let device = self.device.ok_or(UsbError::TooShort)?;
        self.configuration_length = bytes.len() as u16;
        self.power = PowerDraw::of(&configuration, self.speed);
        self.reading = Reading::new(&device, bus_quirks(device.vendor, device.product));
        Ok(self.ask_string(now))
    }

    fn string(
        &mut self,
        result: Result<&[u8], UsbError>,
        now: Instant,
    ) -> Result<Action, UsbError> {
        self.reading.answered(result)?;
        Ok(self.ask_string(now))
    }

    /// The next string, or the end.
    fn ask_string(&mut self, now: Instant) -> Action {
        self.phase = Phase::Strings;
        match self.reading.request() {
            Some(request) => Action::Request(request, now + STRING_TIMEOUT),
            None => Action::Done,
        }
    }

    /// What was learnt, after [`Action::Done`].
    #[must_use]
    pub fn description(&self) -> Option<Description> {
        Some(Description {
            device: self.device?,
            configuration_length: self.configuration_length,
            power: self.power,
            strings: self.reading.strings(),
        })
    }

    /// Whether the port is being reset or its link trained: its connection may seem to change.
    #[must_use]
    pub fn is_resetting(&self) -> bool {
        matches!(
            self.phase,
            Phase::Training { .. } | Phase::Holding | Phase::Resetting { .. }
        )
    }

    /// The packet size that endpoint 0 was opened with.
    pub fn opened_with(&mut self, max_packet0: u16) {
        self.max_packet0 = max_packet0;
    }
}

#[cfg(test)]
#[path = "enumerate_tests/mod.rs"]
mod tests;
