//! The base device: everything that all USB devices do alike.
//!
//! Address, configuration, endpoint 0, halts, toggles and recovery times are here; what lies behind
//! is a [`Function`]. The device answers only at its address, only when powered and reset, and checks
//! every packet of the host (USB 2.0 chapters 8 and 9, USB 3.2 chapters 8 and 9). It does not know
//! any class.

mod bulk;
mod control;
mod endpoints;
mod function;
mod requests;
mod standard;
mod table;
mod timing;

pub use endpoints::{EndpointState, Endpoints};
pub use function::{Answer, Function, Given, Reset, Taken, Wire};
pub use table::{ControlTable, Request};
pub use timing::{Early, Recovery};

#[cfg(test)]
mod tests;

use core::ops::Range;

use super::descriptor::Descriptors;
use super::setup::Setup;
use super::{Link, Nanoseconds, Packet, Reply, UsbDevice, Violation, Violations};
use control::{ControlWire, Stage};
use timing::Since;

/// What a host did to a device besides bulk data, for assertions.
#[derive(Clone, Debug, Default)]
pub struct BusTrace {
    /// Every control request and when its SETUP came, oldest first.
    pub requests: Vec<(Nanoseconds, Setup)>,
    /// The ends of bus resets.
    pub resets: Vec<Nanoseconds>,
    /// The moments at which power came.
    pub power_ons: Vec<Nanoseconds>,
    /// Transactions at the device's address, answered or not.
    pub transactions: u64,
    /// Every STALL of an endpoint other than 0: when, and which. A host that goes on before the halt
    /// is cleared collects more than one.
    pub stalls: Vec<(Nanoseconds, u8)>,
}

/// A device with its function.
pub struct Device<F> {
    /// The class behind endpoint 0.
    pub function: F,
    /// What the device answers to chosen control requests in place of the usual.
    pub controls: ControlTable,
    /// How long the device is deaf after resets.
    pub recovery: Recovery,
    /// What the host did.
    pub trace: BusTrace,
    /// The links that the device shows, each from a time after power-on. The first one is at 0.
    pub appearances: Vec<(Nanoseconds, Option<Link>)>,
    /// The plug is pulled at this transaction from now on, counted from 1; 0: it is out, and no power
    /// comes any more.
    pub pulled_after: Option<u64>,
    /// Packets that its data pipes move at once at SuperSpeed, if fewer than they announce.
    pub packets_at_once: Option<u32>,
    /// What the host did wrong.
    pub violations: Violations,
    describe: Box<dyn Fn(Link) -> Descriptors + Send>,
    descriptors: Descriptors,
    state: State,
}

/// What power-off and reset forget.
#[derive(Default)]
struct State {
    powered: bool,
    /// The speed of the link, once a bus reset has settled it.
    link: Option<Link>,
    address: u8,
    new_address: Option<u8>,
    since: Since,
    stage: Stage,
    configuration: u8,
    alternates: Vec<(u8, u8)>,
    endpoints: Endpoints,
}

impl<F: Function> Device<F> {
    /// A device of speed `link` with `function`, whose descriptors `describe` gives for each speed.
    pub fn new(
        link: Link,
        function: F,
        violations: Violations,
        describe: impl Fn(Link) -> Descriptors + Send + 'static,
    ) -> Self {
        Self {
            function,
            controls: ControlTable::default(),
            recovery: Recovery::default(),
            trace: BusTrace::default(),
            appearances: vec![(0, Some(link))],
            pulled_after: None,
            packets_at_once: None,
            violations,
            describe: Box::new(describe),
            descriptors: Descriptors::default(),
            state: State::default(),
        }
    }

    /// The address that the device answers at.
    #[must_use]
    pub const fn address(&self) -> u8 {
        self.state.address
    }

    /// The label of the chosen configuration, 0 for none.
    #[must_use]
    pub const fn configuration(&self) -> u8 {
        self.state.configuration
    }

    /// Calls `work` on the function with its view of the wire.
    fn with_wire<R>(
        &mut self,
        now: Nanoseconds,
        work: impl FnOnce(&mut F, &mut Wire<'_>) -> R,
    ) -> R {
        let mut wire = Wire {
            now,
            link: self.state.link.unwrap_or(Link::Full),
            endpoints: &mut self.state.endpoints,
            violations: &self.violations,
        };
        work(&mut self.function, &mut wire)
    }

    /// Whether the device can be heard at all at this moment, and at which speed.
    fn hears(&self, now: Nanoseconds, address: u8) -> Option<Link> {
        let link = self.state.link.filter(|_| self.link(now).is_some())?;
        // After an absence only a reset brings the device back.
        let since_reset = self.state.since.reset;
        let left = |away: Range<Nanoseconds>| away.start <= now && since_reset < away.end;
        let heard = !self.function.absence().is_some_and(left)
            && !self.function.is_dead()
            && address == self.state.address;
        heard.then_some(link)
    }

    /// Counts a transaction; `true`: the plug is pulled at this one.
    fn is_pulled(&mut self, now: Nanoseconds) -> bool {
        self.trace.transactions += 1;
        let Some(left) = &mut self.pulled_after else {
            return false;
        };
        *left -= 1;
        let pulled = *left == 0;
        if pulled {
            self.power_off(now);
        }
        pulled
    }

    fn endpoint_zero(&mut self, now: Nanoseconds, link: Link, packet: Packet<'_>) -> Reply {
        if packet == Packet::Prime {
            let text = "endpoint 0 has no streams to prime";
            self.violations.record(now, "USB 3.2 §8.12.1.4", text);
            return Reply::Silent;
        }
        let Packet::Setup(bytes) = packet else {
            let wire = ControlWire {
                now,
                link,
                maximum: self.descriptors.control_packet_bytes(link),
                violations: &self.violations,
            };
            let step = self.state.stage.packet(&wire, packet);
            self.happened(now, link, step.happened);
            return step.reply;
        };
        self.setup(now, link, Setup::parse(bytes))
    }
}

impl<F: Function> UsbDevice for Device<F> {
    fn link(&self, now: Nanoseconds) -> Option<Link> {
        if !self.state.powered || self.pulled_after == Some(0) {
            return None;
        }
        if self
            .function
            .absence()
            .is_some_and(|away| away.contains(&now))
        {
            return None;
        }
        let age = now.saturating_sub(self.state.since.power);
        self.appearances
            .iter()
            .rev()
            .find(|(from, _)| *from <= age)
            .and_then(|(_, link)| *link)
    }

    fn link_changes_at(&self, now: Nanoseconds) -> Option<Nanoseconds> {
        if !self.state.powered {
            return None;
        }
        let away = self
            .function
            .absence()
            .map_or([None, None], |a| [Some(a.start), Some(a.end)]);
        let appearances = self
            .appearances
            .iter()
            .map(|(from, _)| self.state.since.power + from);
        appearances
            .chain(away.into_iter().flatten())
            .filter(|time| *time > now && *time != Nanoseconds::MAX)
            .min()
    }

    fn power_on(&mut self, now: Nanoseconds) {
        self.state = State {
            powered: true,
            ..State::default()
        };
        self.state.since.power = now;
        self.trace.power_ons.push(now);
        self.function.reset(now, Reset::PowerOn);
    }

    fn power_off(&mut self, now: Nanoseconds) {
        self.state = State::default();
        self.function.reset(now, Reset::PowerOff);
    }

    fn bus_reset(&mut self, now: Nanoseconds, link: Link) {
        let power = self.state.since.power;
        self.state = State {
            powered: true,
            link: Some(link),
            ..State::default()
        };
        self.state.since = Since {
            power,
            reset: now,
            address: None,
        };
        self.descriptors = (self.describe)(link);
        self.trace.resets.push(now);
        self.function.reset(now, Reset::Bus);
    }

    fn transact(
        &mut self,
        now: Nanoseconds,
        address: u8,
        endpoint: u8,
        packet: Packet<'_>,
    ) -> Reply {
        let Some(link) = self.hears(now, address) else {
            return Reply::Silent;
        };
        if self.is_pulled(now) {
            return Reply::Silent;
        }
        match self
            .recovery
            .deaf(now, self.state.since, link, &self.violations)
        {
            Some(Early::Silent) => return Reply::Silent,
            Some(Early::Stall) => {
                let setup = matches!(packet, Packet::Setup(_));
                return if setup { Reply::Ack } else { Reply::Stall };
            }
            None => {}
        }
        if endpoint & 0x0f == 0 {
            return self.endpoint_zero(now, link, packet);
        }
        let reply = self.bulk(now, link, endpoint, packet);
        if reply == Reply::Stall {
            self.trace.stalls.push((now, endpoint));
        }
        reply
    }

    fn packets_at_once(&self, endpoint: u8) -> Option<u32> {
        self.packets_at_once.filter(|_| endpoint & 0x0f != 0)
    }

    fn ready_at(&self, endpoint: u8, stream: u16) -> Option<Nanoseconds> {
        if endpoint & 0x0f == 0 {
            self.state.stage.ready_at()
        } else {
            self.function.ready_at(endpoint, stream)
        }
    }

    fn streams_ready(&self, now: Nanoseconds, endpoint: u8) -> Vec<(Nanoseconds, u16)> {
        let halted = self.state.endpoints.find(endpoint);
        if self.link(now).is_none() || halted.is_none_or(|endpoint| endpoint.halted) {
            return Vec::new();
        }
        self.function.streams_ready(now, endpoint)
    }

    fn violations(&self) -> Vec<Violation> {
        self.violations.all()
    }
}
