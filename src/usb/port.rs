//! What the core knows of each root port: debounce, attempts, and who sits there.

use super::device::DeviceId;
use super::error::UsbError;
use crate::host::RootPort;
use crate::platform::ControllerId;
use crate::time::{Duration, Instant};

/// How long a connection must be stable (USB 2.0 §7.1.7.3, tATTDB).
pub const DEBOUNCE: Duration = Duration::from_millis(100);

/// Attempts to enumerate what is on a port, each with a new reset.
/// Policy: three, as other hosts make; more only hold up the neighbours.
pub const ATTEMPTS: u8 = 3;

/// Pause before another attempt. Policy: some devices boot for 100 ms after power.
pub const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// How long a port stays without power. Policy: disks whose capacitors keep them alive for less were
/// not reported; others need seconds.
pub const POWER_OFF: Duration = Duration::from_millis(1_000);

/// How long a device has from power to showing itself. USB 2.0 §7.1.7.3 allows 100 ms to the
/// attachment; disks that draw much take longer. Policy: three seconds; what shows itself earlier does
/// not wait for them.
pub const POWER_ON: Duration = Duration::from_millis(3_000);

/// How often a port that was switched off because of over-current gets its power back. Policy: a plug
/// that was pushed in askew trips it once; a short circuit trips it each time.
pub const POWER_RETURNS: u8 = 3;

/// How long a socket's SuperSpeed half is without power before the other half is looked at, whose device it has to
/// be. Policy: longer than a device takes to show itself there.
pub const OTHER_HALF: Duration = Duration::from_millis(5_000);

/// Where a port is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortState {
    /// Nothing is connected.
    Empty,
    /// Something is; it must stay until then.
    Debouncing(Instant),
    /// It waits for its turn, from then on, with so many attempts made.
    Waiting(Instant, u8),
    /// The controller's enumeration is at work on it.
    Enumerating,
    /// This device is on it.
    Occupied(DeviceId),
    /// This device is on it and is to be reset, when the controller has let go of it.
    Resetting(DeviceId),
    /// This device is on it and is to lose its power, when the controller has let go of it.
    PoweringOff(DeviceId),
    /// It has no power until then.
    Unpowered(Instant),
    /// It has power again; what is on it has until then to show itself.
    PoweringOn(Instant),
    /// What is on it could not be enumerated. It is left alone until it is pulled.
    Failed(UsbError),
}

/// One root port. The caller of the stack provides a slice of them, one for each port of all
/// controllers.
#[derive(Clone, Copy, Debug)]
pub struct PortEntry {
    pub(crate) controller: ControllerId,
    pub(crate) port: RootPort,
    pub(crate) state: PortState,
    /// The controller reported a change that was not looked at yet.
    pub(crate) changed: bool,
    /// Over-current that nobody was told of yet.
    pub(crate) surge: bool,
    /// How often its power came back after over-current.
    pub(crate) power_returns: u8,
    /// What is on it was reset by the host and has not been pulled since.
    pub(crate) kept: bool,
    /// What is on it, or was a moment ago, was reset for its speed.
    pub(crate) sped: bool,
    /// It has no power so that its device shows itself on the other half of the socket.
    pub(crate) dark: bool,
    /// When it became empty.
    pub(crate) empty_since: Instant,
    pub(crate) in_use: bool,
}

impl PortEntry {
    /// An unused entry.
    pub const EMPTY: Self = Self {
        controller: ControllerId(0),
        port: RootPort(0),
        state: PortState::Empty,
        changed: false,
        surge: false,
        power_returns: 0,
        kept: false,
        sped: false,
        dark: false,
        empty_since: Instant::from_micros(0),
        in_use: false,
    };

    /// The controller that the port belongs to.
    #[must_use]
    pub fn controller(&self) -> ControllerId {
        self.controller
    }

    /// The port on it.
    #[must_use]
    pub fn port(&self) -> RootPort {
        self.port
    }

    /// Where it is.
    #[must_use]
    pub fn state(&self) -> PortState {
        self.state
    }

    /// Notes the time if it is empty from now on.
    pub(crate) fn note_empty(&mut self, now: Instant) {
        if self.state == PortState::Empty {
            self.empty_since = now;
        }
    }

    /// The device that is on it, used or about to be reset.
    pub(crate) fn device(&self) -> Option<DeviceId> {
        match self.state {
            PortState::Occupied(device)
            | PortState::Resetting(device)
            | PortState::PoweringOff(device) => Some(device),
            _ => None,
        }
    }

    /// Whether this device is on it and in use.
    pub(crate) fn is_occupied_by(&self, device: DeviceId) -> bool {
        matches!(self.state, PortState::Occupied(tenant) if tenant == device)
    }

    /// Whether it waits for its turn.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.state, PortState::Waiting(..))
    }

    /// When the port wants to be looked at.
    pub(crate) fn deadline(&self) -> Instant {
        match self.state {
            _ if self.changed => Instant::from_micros(0),
            PortState::Debouncing(until)
            | PortState::Waiting(until, _)
            | PortState::Unpowered(until)
            | PortState::PoweringOn(until) => until,
            _ => Instant::NEVER,
        }
    }
}
