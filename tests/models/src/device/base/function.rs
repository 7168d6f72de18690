//! What a device does behind endpoint 0: the seam between the base device and a class.
//!
//! The base device owns addresses, toggles and halts; a [`Function`] only sees payloads. Before each
//! transaction the base calls [`Function::advance`], so that whatever became due by time happens
//! before the wire can look.

use core::ops::Range;

use super::super::setup::Setup;
use super::super::{Link, Nanoseconds, Violations};
use super::Endpoints;

/// The function's view of the device around it, at one moment.
pub struct Wire<'a> {
    /// Now.
    pub now: Nanoseconds,
    /// The speed that the device runs at.
    pub link: Link,
    /// The endpoints of the present configuration; a function halts its own here.
    pub endpoints: &'a mut Endpoints,
    /// Where host faults go.
    pub violations: &'a Violations,
}

/// The answer to a control request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The data stage of an IN request. More than the host asked for is cut.
    Data(Vec<u8>),
    /// The data stage of an IN request, sent whole even if the host asked for less (babble).
    Overlong(Vec<u8>),
    /// Good; without a data stage or with one from the host.
    Accept,
    /// STALL in the next stage (USB 2.0 §8.5.3.4).
    Stall,
    /// NAK (NRDY) for this long, then that answer. `Nanoseconds::MAX` is for ever.
    After(Nanoseconds, Box<Answer>),
    /// No handshake any more until the next SETUP.
    Silent,
}

/// What became of an OUT packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// It is the function's now.
    Yes,
    /// It is the function's now, and there is no room for another: NYET at high speed.
    Last,
    /// No room: NAK, NRDY.
    Busy,
    /// The endpoint halts and the packet is lost.
    Halt,
    /// No handshake, the packet is lost.
    Silent,
}

/// What an IN endpoint has to give.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Given {
    /// A packet; longer than the packet size is babble.
    Packet {
        /// The payload.
        bytes: Vec<u8>,
        /// Whether this is the last one for now (SuperSpeed: end of burst).
        last: bool,
    },
    /// Nothing yet: NAK, NRDY.
    Busy,
    /// The endpoint halts.
    Halt,
    /// No answer.
    Silent,
}

/// Why a function has to start afresh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reset {
    /// VBUS came.
    PowerOn,
    /// VBUS went.
    PowerOff,
    /// A bus reset ended.
    Bus,
    /// SET_CONFIGURATION or SET_INTERFACE.
    Configured,
}

/// A class or vendor function.
pub trait Function: Send {
    /// Starts afresh.
    fn reset(&mut self, now: Nanoseconds, reset: Reset);

    /// A request that is not a standard one, at its SETUP packet or, with a data stage from the host,
    /// after its last data packet. `None`: not known here.
    fn control(&mut self, wire: &mut Wire<'_>, setup: &Setup, data: &[u8]) -> Option<Answer>;

    /// Called before each transaction of a bulk or interrupt endpoint: does what has become due.
    fn advance(&mut self, wire: &mut Wire<'_>);

    /// A packet from the host on an endpoint that is not halted. Toggle and length were checked.
    fn take(&mut self, wire: &mut Wire<'_>, endpoint: u8, stream: u16, data: &[u8]) -> Taken;

    /// The host asks for a packet of at most `maximum` bytes on an endpoint that is not halted.
    fn give(&mut self, wire: &mut Wire<'_>, endpoint: u8, stream: u16, maximum: usize) -> Given;

    /// Whether there is room for a packet (PING).
    fn has_room(&mut self, wire: &mut Wire<'_>, endpoint: u8) -> Taken;

    /// The host cleared the halt of `endpoint`. `false`: it halts again at once.
    fn halt_cleared(&mut self, wire: &mut Wire<'_>, endpoint: u8) -> bool;

    /// As [`super::super::UsbDevice::ready_at`].
    fn ready_at(&self, endpoint: u8, stream: u16) -> Option<Nanoseconds>;

    /// As [`super::super::UsbDevice::streams_ready`].
    fn streams_ready(&self, _now: Nanoseconds, _endpoint: u8) -> Vec<(Nanoseconds, u16)> {
        Vec::new()
    }

    /// The host primes an endpoint. [`Taken::Busy`] is the right answer (NRDY); by default there are
    /// no streams to prime.
    fn prime(&mut self, wire: &mut Wire<'_>, endpoint: u8) -> Taken {
        let text = format!("endpoint {endpoint:#04x} has no streams to prime");
        wire.violations.record(wire.now, "USB 3.2 §8.12.1.4", text);
        Taken::Silent
    }

    /// The time in which the device shows no connection, as if the plug had been pulled.
    fn absence(&self) -> Option<Range<Nanoseconds>> {
        None
    }

    /// Whether the whole device is dead: no answer at all, not even on endpoint 0.
    fn is_dead(&self) -> bool {
        false
    }
}
