//! The vocabulary between the USB core and a controller: handles, transfers, events, errors.
//!
//! Handles are small indices with a generation: a handle of something that has gone is refused,
//! also after its place was taken again.

use super::fault::{ControllerFault, HostError};
use crate::dma::Segment;
use crate::time::Duration;
use crate::usb::setup::{Direction, SetupPacket};
use crate::usb::speed::Speed;

/// A root port of one controller, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RootPort(pub u8);

/// Which bus a root port belongs to. A USB 3 socket is two ports, one of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortProtocol {
    /// Low, full and high speed: the port must be reset before the device can be used.
    Usb2,
    /// SuperSpeed: link training enables the port by itself.
    Usb3,
}

/// What a root port shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortStatus {
    /// A device is there.
    pub connected: bool,
    /// The port is enabled: the device can be talked to.
    pub enabled: bool,
    /// A reset is under way.
    pub resetting: bool,
    /// The port has power.
    pub powered: bool,
    /// The port draws too much.
    pub over_current: bool,
    /// The SuperSpeed link is in Inactive or Compliance mode: only a warm reset helps.
    pub needs_warm_reset: bool,
    /// The device's speed, valid while enabled; before a USB 2 port was reset it may be unknown.
    pub speed: Option<Speed>,
    /// The connection changed since the last [`RootPorts::acknowledge`](super::RootPorts).
    pub connect_changed: bool,
    /// A reset ended since the last acknowledge.
    pub reset_changed: bool,
    /// A companion controller has it since [`RootPorts::hand_over`](super::RootPorts::hand_over):
    /// what is on it is not seen here until it is pulled.
    pub handed_over: bool,
}

/// How a device is reached from the root of its bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attachment {
    /// The root port at the start of the path.
    pub root_port: RootPort,
    /// Hub ports from the root port down, 4 bits a tier, the first hub's port in bits 3..0
    /// (`USB 3.2 §8.9`); 0 for a device on the root port itself.
    pub route: u32,
    /// The device's speed.
    pub speed: Speed,
    /// Packet size that endpoint 0 is opened with, in bytes. The core chooses it by speed, 64 for
    /// full speed: a device with less answers the first read short, and is not cut off by it.
    pub max_packet0: u16,
    /// For full and low speed below a high-speed hub: the transaction translator.
    pub translator: Option<Translator>,
}

/// The transaction translator that serves a full- or low-speed device: always in the nearest
/// high-speed hub (`USB 2.0 §11.14`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Translator {
    /// The high-speed hub.
    pub hub: DeviceHandle,
    /// The hub's own USB address, for controllers with software addresses.
    pub hub_address: u8,
    /// The hub's port behind which the device is, counted from 1.
    pub port: u8,
    /// The hub has one translator a port.
    pub multi: bool,
}

/// What a controller must know about a device that is a hub.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HubInfo {
    /// Number of downstream ports.
    pub ports: u8,
    /// The hub runs with one translator a port.
    pub multi_translator: bool,
    /// Translator think time as in the hub descriptor: 0 to 3, in units of 8 full-speed bit times
    /// less one.
    pub think_time: u8,
}

/// A device that a controller has opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceHandle {
    /// Place in the controller's storage.
    pub index: u8,
    /// Which use of that place.
    pub generation: u8,
}

/// An endpoint that a controller has opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndpointHandle {
    /// Place in the controller's storage.
    pub index: u8,
    /// Which use of that place.
    pub generation: u8,
}

/// What kind of transfers an endpoint makes. Isochronous endpoints are not supported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndpointKind {
    /// Endpoint 0.
    Control,
    /// Bulk.
    Bulk,
    /// Interrupt.
    Interrupt,
}

/// All that a controller needs to open an endpoint. Values are checked: `usb::descriptor` clamps
/// what a device says to what its speed allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndpointConfig {
    /// Endpoint number, 0 to 15.
    pub number: u8,
    /// Direction; both for endpoint 0, where it is ignored.
    pub direction: Direction,
    /// Kind.
    pub kind: EndpointKind,
    /// Bytes of a full packet.
    pub max_packet: u16,
    /// Packets of a burst less one: `bMaxBurst`, 0 below SuperSpeed.
    pub max_burst: u8,
    /// For interrupt endpoints: the descriptor's `bInterval`.
    pub interval: u8,
    /// Transfers that may be in flight at the same time.
    pub transfers: u8,
    /// The longest transfer, in bytes: with `transfers` it decides how much of the pool is
    /// reserved.
    pub longest: u32,
    /// Streams to open, ids 1 to `streams`; 0 for none.
    pub streams: u16,
}

/// The core's name for a transfer, given back with its completion. The controller does not look
/// into it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token(pub u32);

/// Which transfers a completion is reported for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// However it ends.
    Always,
    /// Always, but without an interrupt if it ends well and in full.
    WithoutInterrupt,
    /// Only if it ends badly or short. In full, it is done when a later transfer of the same
    /// endpoint is reported, or when its owner calls
    /// [`Endpoints::retire`](super::Endpoints::retire).
    Unexpected,
}

#[cfg(feature = "xhci")]
impl Report {
    /// All of them, each in the place that its number says.
    pub(crate) const ALL: [Self; 3] = [Self::Always, Self::WithoutInterrupt, Self::Unexpected];
}

/// How a transfer of one segment is made. Small, so that it is passed in one register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handling {
    /// The stream, or 0.
    pub stream: u16,
    /// Which way the data goes.
    pub direction: Direction,
    /// When to report.
    pub report: Report,
}

impl Handling {
    /// From the device, on no stream.
    #[must_use]
    pub const fn inward(report: Report) -> Self {
        Self {
            stream: 0,
            direction: Direction::In,
            report,
        }
    }

    /// To the device, on no stream.
    #[must_use]
    pub const fn outward(report: Report) -> Self {
        Self {
            stream: 0,
            direction: Direction::Out,
            report,
        }
    }

    /// The transfer of a segment.
    #[must_use]
    pub fn of(self, token: Token, segment: &Segment) -> Transfer<'_> {
        Transfer {
            token,
            setup: None,
            direction: self.direction,
            segments: core::slice::from_ref(segment),
            report: self.report,
            stream: self.stream,
        }
    }
}

/// The transfers of a Bulk-Only command, where each is one segment: the wrapper, the data, and the status
/// behind them.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// Takes the wrapper, and data to the device.
    pub outward: EndpointHandle,
    /// Takes data from the device, and the status.
    pub inward: EndpointHandle,
    /// The core's names for the wrapper, the data and the status.
    pub tokens: [Token; 3],
    /// The wrapper. Its end is told only if it is none that was hoped for ([`Report::Unexpected`]).
    pub wrapper: Segment,
    /// The data.
    pub data: Segment,
    /// Which way they go.
    pub direction: Direction,
    /// When their end is told.
    pub report: Report,
    /// Room for the status. Its end is told in any case.
    pub status: Segment,
    /// When the controller may read it.
    pub reading: StatusReading,
}

/// When the status of an [`Exchange`] is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatusReading {
    /// It is queued with the others.
    Behind,
    /// It is queued, but kept from the controller as by
    /// [`Endpoints::hold_segment`](super::Endpoints::hold_segment). Only behind data from the device.
    Held,
    /// It is not queued: somebody will do that later.
    Later,
}

/// A transfer to submit.
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'t> {
    /// Given back with the completion.
    pub token: Token,
    /// The stage before the data, on a control endpoint only.
    pub setup: Option<SetupPacket>,
    /// Which way the data goes.
    pub direction: Direction,
    /// The data, in order; none for a transfer without data.
    pub segments: &'t [Segment],
    /// When to report.
    pub report: Report,
    /// The stream, or 0.
    pub stream: u16,
}

impl Transfer<'_> {
    /// Sum of the segments, in bytes.
    #[must_use]
    pub fn length(&self) -> u32 {
        self.segments
            .iter()
            .map(Segment::length)
            .fold(0, u32::saturating_add)
    }
}

/// How a transfer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All bytes were moved.
    Complete,
    /// The device ended an IN transfer early. No error.
    Short,
    /// The device answered STALL. The endpoint is halted.
    Stall,
    /// The device sent more than a packet, or outside its turn. The endpoint is halted.
    Babble,
    /// No or damaged answers, three times in a row. The endpoint is halted.
    TransactionError,
    /// A split transaction failed in the hub. The endpoint is halted.
    SplitError,
    /// The controller could not keep up with the bus. The endpoint is halted.
    HostOverrun,
    /// Taken back by [`Endpoints::quiesce`](super::Endpoints::quiesce).
    Cancelled,
    /// Something that the driver does not expect; the controller's own code. The endpoint is
    /// halted or must be treated as halted.
    Other(u8),
}

impl Outcome {
    /// Whether the endpoint goes on by itself.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Complete | Self::Short)
    }
}

/// The end of a transfer, as [`HostController::take_end`](super::HostController::take_end) tells of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransferEnd {
    /// From the submitted transfer.
    pub token: Token,
    /// Data bytes moved. For a control transfer those of the data stage.
    pub actual: u32,
    /// How.
    pub outcome: Outcome,
}

impl TransferEnd {
    /// Of no transfer: a place for one.
    pub(crate) const NONE: Self = Self {
        token: Token(0),
        actual: 0,
        outcome: Outcome::Complete,
    };
}

/// What a controller reports, one at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// [`HostController::start`](super::HostController::start) has ended.
    Started(Result<(), ControllerFault>),
    /// [`HostController::stop`](super::HostController::stop) has ended: no DMA happens any more if `Ok`.
    Stopped(Result<(), ControllerFault>),
    /// A transfer has ended. The controller does not reach its memory any more.
    Transfer {
        /// The endpoint, as long as it is still open.
        endpoint: EndpointHandle,
        /// From the submitted transfer.
        token: Token,
        /// How.
        outcome: Outcome,
        /// Data bytes moved. For a control transfer those of the data stage.
        actual: u32,
    },
    /// The operation that a device had under way has ended.
    Device {
        /// The device.
        device: DeviceHandle,
        /// The operation's result.
        result: Result<(), HostError>,
    },
    /// [`Endpoints::quiesce`](super::Endpoints::quiesce) or
    /// [`Endpoints::restart`](super::Endpoints::restart) has ended.
    Endpoint {
        /// The endpoint.
        endpoint: EndpointHandle,
        /// The operation's result.
        result: Result<(), HostError>,
    },
    /// Something about a root port has changed: read its status.
    Port(RootPort),
    /// The controller has died: everything on it is lost until it is started again. It may still reach
    /// memory, until [`HostController::stop`](super::HostController::stop) has ended well.
    Died(ControllerFault),
}

/// Who gives a device its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addressing {
    /// The controller does (xHCI). An [`Event::Device`] follows.
    Controller,
    /// The core sends SET_ADDRESS with this value on endpoint 0, waits the recovery time, and
    /// calls [`Devices::adopt_address`](super::Devices::adopt_address) (EHCI, OHCI).
    Software(u8),
}

/// Whether an endpoint's data toggle or sequence number starts again at zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sequence {
    /// The device keeps its own, so the host does too.
    Keep,
    /// The device was told to clear its halt, or set an interface: both start at zero.
    Reset,
}

/// What a controller can do, constant from the making of its driver on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// The place among its host's controllers that it was made for. What it holds of the pool is kept
    /// under that number.
    pub number: u8,
    /// The highest address that it can form.
    pub address_mask: u64,
    /// Shape of bounced ends: see [`SegmentRules`](crate::dma::streaming::SegmentRules).
    pub grain: usize,
    /// Number of root ports.
    pub root_ports: u8,
    /// The most streams of an endpoint; 0 if it has none.
    pub streams: u16,
    /// Whether it keeps a transfer back for the one before it, by
    /// [`Endpoints::hold_segment`](super::Endpoints::hold_segment).
    pub holds: bool,
    /// How long the core holds a USB 2 root port in reset; `None` if the controller times it.
    pub reset_hold: Option<Duration>,
}

/// What a controller needs before it can start: read from the chip when its driver is made, before
/// anything is allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Requirement {
    /// Bytes of the coherent pool for the controller itself.
    pub pool: usize,
    /// Pieces of the pool for the controller itself.
    pub pool_records: usize,
    /// Bytes of the pool for each device with two bulk endpoints of default depth.
    pub pool_per_device: usize,
    /// Bytes of `pool` that the controller keeps to itself (scratchpads).
    pub scratchpads: usize,
}
