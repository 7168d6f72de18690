//! Modelled USB devices, and the packet-level seam between them and any controller model.
//!
//! A controller model (xHCI, EHCI, OHCI) drives a device only through [`UsbDevice`]: power, bus
//! reset, and one [`UsbDevice::transact`] per transaction on the wire. So a device needs to be
//! written once, and a controller model needs to know nothing of descriptors or SCSI.
//!
//! Rules of the seam, for whoever writes a controller model:
//! - One call of `transact` is one transaction of the wire: token (or header), data and handshake.
//!   What a device answered has arrived: the host's own handshake is never lost. A model that injects
//!   a transaction error **does not call the device**, as if the token had been damaged.
//! - `sequence` is DATA0/DATA1 (0 or 1) up to high speed and the 5-bit sequence number at
//!   SuperSpeed. It is what the *host* sends or expects. A device compares it with its own, does what
//!   a real one does, and records a [`Violation`], since a mismatch is always a host's fault.
//!   On [`Packet::In`] the device answers with *its* number; a controller that finds another one
//!   than it expects drops the data (USB 2.0 §8.6.3).
//! - Every address but the device's own gets [`Reply::Silent`].
//! - Timing belongs to the controller model: the device only says from when on it has an answer.
//!
//! | for | look at |
//! |---|---|
//! | a faulty disk in a few lines | [`Script`], and [`field`] for those that are there already |
//! | what the host did to it | [`Shared`], the handle that stays with the test: a [`Disk`], say |
//! | another class or transport | [`base::Function`] behind [`base::Device`] |
//! | SCSI without a transport | [`scsi::Target`] |
//! | a test of a device alone | [`packet_host::PacketHost`] |
//!
//! Nothing here uses a type or a constant of the driver library: the models are an independent
//! reading of USB 2.0, USB 3.2, BOT 1.0, SPC-4 and SBC-3.

pub mod base;
pub mod bot;
mod both;
pub mod descriptor;
mod disk;
pub mod field;
pub mod packet_host;
mod script;
pub mod scsi;
pub mod setup;
mod shared;
pub mod uas;
mod violation;

pub use both::{Both, BothDisk, BothScript};
pub use disk::Disk;
pub use script::Script;
pub use shared::Shared;
pub use uas::{UasDisk, UasScript};
pub use violation::{Violation, Violations};

/// Virtual time: nanoseconds since the start of the test.
pub type Nanoseconds = u64;

/// A microsecond in [`Nanoseconds`].
pub const MICROSECOND: Nanoseconds = 1_000;
/// A millisecond in [`Nanoseconds`].
pub const MILLISECOND: Nanoseconds = 1_000_000;
/// A second in [`Nanoseconds`].
pub const SECOND: Nanoseconds = 1_000_000_000;
/// A minute.
pub const MINUTE: Nanoseconds = 60 * SECOND;

/// How fast a device runs, slowest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Link {
    /// 1.5 Mbit/s.
    Low,
    /// 12 Mbit/s.
    Full,
    /// 480 Mbit/s, found by the chirp in a bus reset (USB 2.0 §7.1.7.5).
    High,
    /// 5 Gbit/s.
    Super,
    /// 10 Gbit/s.
    SuperPlus,
}

impl Link {
    /// Whether the link speaks the USB 3 protocol: NRDY for NAK, sequence numbers for toggles.
    #[must_use]
    pub const fn is_super(self) -> bool {
        matches!(self, Self::Super | Self::SuperPlus)
    }
}

/// What the host puts on the wire to one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packet<'a> {
    /// The SETUP transaction with its eight bytes (USB 2.0 §8.5.3).
    Setup([u8; 8]),
    /// A data packet from the host; zero bytes is a packet too.
    Out {
        /// The payload, at most a maximum packet.
        data: &'a [u8],
        /// Toggle or sequence number of this packet.
        sequence: u8,
        /// The stream at SuperSpeed, 0 without streams.
        stream: u16,
    },
    /// The host asks for one data packet.
    In {
        /// Toggle or sequence number that the host expects.
        sequence: u8,
        /// The maximum packet size that the *host* believes. A longer answer is babble, which the
        /// controller model finds.
        maximum: usize,
        /// The stream at SuperSpeed, 0 without streams.
        stream: u16,
    },
    /// High speed: is there room for an OUT packet? Answered by ACK, NAK or STALL
    /// (USB 2.0 §8.5.1).
    Ping,
    /// SuperSpeed: the STATUS transaction packet that ends a control transfer, answered by ACK,
    /// NRDY or STALL (USB 3.2 §8.12.2). Up to high speed the status stage is an ordinary empty
    /// [`Packet::In`] or [`Packet::Out`] with sequence 1.
    Status,
    /// SuperSpeed with streams: the host has buffers now, and names no stream yet. Answered by NRDY;
    /// the device then says which stream it starts ([`UsbDevice::streams_ready`], USB 3.2 §8.12.1.4).
    Prime,
}

/// What a device answers to one [`Packet`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Taken.
    Ack,
    /// High speed OUT: taken, but ask by [`Packet::Ping`] before the next one.
    Nyet,
    /// Not now. NRDY at SuperSpeed: then the controller waits for the ERDY of
    /// [`UsbDevice::ready_at`].
    Nak,
    /// The endpoint is halted, or the request is refused.
    Stall,
    /// A data packet, perhaps longer than the host allows (babble).
    Data {
        /// The payload; empty is a zero-length packet.
        bytes: Vec<u8>,
        /// The toggle or sequence number of the device.
        sequence: u8,
        /// SuperSpeed: the device has no more for now (EOB), the burst ends here.
        end_of_burst: bool,
    },
    /// No answer: the controller counts a transaction error.
    Silent,
    /// An answer with a bad CRC: the controller counts a transaction error, too.
    Corrupt,
}

impl Reply {
    /// A data packet that does not end a burst.
    #[must_use]
    pub const fn data(bytes: Vec<u8>, sequence: u8) -> Self {
        Self::Data {
            bytes,
            sequence,
            end_of_burst: false,
        }
    }
}

/// A device as the wire sees it. `Send`, so that a test may share its machine between threads.
pub trait UsbDevice: Send {
    /// The fastest link that the device shows now, `None` while it shows no connection at all. A
    /// device may come back at another speed. The port answers with the link that it settled on in
    /// [`Self::bus_reset`].
    fn link(&self, now: Nanoseconds) -> Option<Link>;

    /// When [`Self::link`] will next change by itself, if it will.
    fn link_changes_at(&self, _now: Nanoseconds) -> Option<Nanoseconds> {
        None
    }

    /// VBUS came: the plug went in, or the port was switched on.
    fn power_on(&mut self, now: Nanoseconds);

    /// VBUS went: the plug was pulled, or the port was switched off.
    fn power_off(&mut self, now: Nanoseconds);

    /// A bus reset *ended* and the link runs at `link`: USB 2 reset, SuperSpeed hot or warm reset,
    /// and the first training of a SuperSpeed link. The device is back at address 0.
    fn bus_reset(&mut self, now: Nanoseconds, link: Link);

    /// One transaction to `endpoint` of the device at `address`. `endpoint` holds the number in bits
    /// 3..0 and the direction in bit 7 (set: IN), which endpoint 0 ignores.
    fn transact(
        &mut self,
        now: Nanoseconds,
        address: u8,
        endpoint: u8,
        packet: Packet<'_>,
    ) -> Reply;

    /// A hint: from when on an endpoint that answered [`Reply::Nak`] has another answer (the ERDY of
    /// SuperSpeed; up to high speed it lets the controller skip polls). `None`: not by the passing
    /// of time alone, so ask again after the next transaction with this device. A time that is not
    /// later than now means that it is ready.
    fn ready_at(&self, endpoint: u8, stream: u16) -> Option<Nanoseconds>;

    /// The ERDYs of an endpoint with streams, in the order in which the device sends them: from when on
    /// it wants to start which stream. The host starts the first one that it has a buffer for, and
    /// rejects those before it. Empty if the device starts nothing by itself.
    fn streams_ready(&self, _now: Nanoseconds, _endpoint: u8) -> Vec<(Nanoseconds, u16)> {
        Vec::new()
    }

    /// SuperSpeed: how many packets an endpoint moves at once if these are fewer than it announces. The device says
    /// so in each acknowledgement of data that it is sent (NumP), and by ending bursts early (EOB) in the data
    /// that it sends (USB 3.2 §8.5.1, §8.10). `None`: as many as it announces.
    fn packets_at_once(&self, _endpoint: u8) -> Option<u32> {
        None
    }

    /// What the host did wrong so far, oldest first. The device keeps the list.
    fn violations(&self) -> Vec<Violation> {
        Vec::new()
    }
}
