//! The Mass Storage interfaces of a configuration, with the pipes that each transport needs.
//!
//! `storage::choose` walks [`MassStorage`] to decide between UAS and Bulk-Only. Alternate settings
//! are known by their protocol byte, never by their position or number: the Bulk-Only setting may
//! come first, last or not at all. A setting that cannot be used is still listed, with the reason.
//! Read the Mass Storage Class overview 1.4 §2 and §3, BOT 1.0 §4 and UAS §5.2.3.

use super::{Alternate, Alternates, Endpoint, EndpointKind, PipeUsage};
use crate::usb::setup::Direction;
use crate::usb::speed::Speed;

/// `bInterfaceClass` of mass storage.
const CLASS: u8 = 0x08;
/// `bInterfaceProtocol` of UAS.
const UAS: u8 = 0x62;

/// The command set that an interface announces (Mass Storage Class overview 1.4 §2, table 1).
///
/// A hint, seldom more: nearly all devices take SCSI commands whatever they announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "bInterfaceSubClass")]
pub enum CommandSet {
    /// 00: de facto SCSI.
    NotReported,
    /// 01: Reduced Block Commands.
    ReducedBlock,
    /// 02: MMC-5, the ATAPI drives.
    Multimedia,
    /// 04: floppy drives.
    Floppy,
    /// 05: SFF-8070i, obsolete.
    Removable,
    /// 06: transparent SCSI.
    Scsi,
    /// Anything else, by its byte.
    Other(u8),
}

impl CommandSet {
    /// From `bInterfaceSubClass`.
    #[must_use]
    pub const fn from_subclass(subclass: u8) -> Self {
        match subclass {
            0x00 => Self::NotReported,
            0x01 => Self::ReducedBlock,
            0x02 => Self::Multimedia,
            0x04 => Self::Floppy,
            0x05 => Self::Removable,
            0x06 => Self::Scsi,
            other => Self::Other(other),
        }
    }
}

/// The transport that an interface announces (Mass Storage Class overview 1.4 §3, table 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "bInterfaceProtocol")]
pub enum Protocol {
    /// 50: Bulk-Only.
    BulkOnly,
    /// 62: USB Attached SCSI.
    Uas,
    /// Anything else, by its byte. 00 and 01 are Control/Bulk, of old floppy drives.
    Other(u8),
}

impl Protocol {
    /// From `bInterfaceProtocol`.
    #[must_use]
    pub const fn from_byte(protocol: u8) -> Self {
        match protocol {
            0x50 => Self::BulkOnly,
            UAS => Self::Uas,
            other => Self::Other(other),
        }
    }
}

/// The endpoints of a Bulk-Only setting: the first bulk one of each direction (BOT 1.0 §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkOnlyPipes {
    /// Data and status from the device.
    pub bulk_in: Endpoint,
    /// Commands and data to the device.
    pub bulk_out: Endpoint,
}

/// The endpoints of a UAS setting, by their pipe usage descriptors (UAS §5.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UasPipes {
    /// Commands and task management, OUT.
    pub command: Endpoint,
    /// Status and readiness, IN.
    pub status: Endpoint,
    /// Data from the device.
    pub data_in: Endpoint,
    /// Data to the device.
    pub data_out: Endpoint,
}

impl UasPipes {
    /// Streams that status and both data pipes have in common: the command pipe has none
    /// (UAS §4.2). Zero below SuperSpeed, and on a device that announces none.
    #[must_use]
    pub fn stream_count(&self) -> u32 {
        let data = self.data_in.max_streams().min(self.data_out.max_streams());
        self.status.max_streams().min(data).count()
    }
}

/// Why an alternate setting cannot be used. All are the device's fault: use another setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The protocol byte names a transport that this library does not speak.
    Protocol(u8),
    /// Bulk-Only without a bulk endpoint of this direction.
    NoBulkEndpoint(Direction),
    /// UAS without a bulk endpoint that is described as this pipe.
    NoPipe(PipeUsage),
    /// A UAS pipe on an endpoint of the wrong direction.
    PipeDirection(PipeUsage),
}

/// The transport of an alternate setting, with its pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageTransport {
    /// Bulk-Only, complete.
    BulkOnly(BulkOnlyPipes),
    /// UAS, complete.
    Uas(UasPipes),
    /// Neither.
    Unusable(Unusable),
}

impl StorageTransport {
    /// The pipes that `protocol` needs, from the endpoints of `alternate` at `speed`.
    ///
    /// `protocol` is the interface's own, or what a quirk knows better: some devices hide a
    /// Bulk-Only interface behind the vendor class.
    #[must_use]
    pub fn find(alternate: &Alternate<'_>, protocol: Protocol, speed: Speed) -> Self {
        let found = match protocol {
            Protocol::BulkOnly => bulk_only(alternate, speed).map(Self::BulkOnly),
            Protocol::Uas if cfg!(feature = "uas") => uas(alternate, speed).map(Self::Uas),
            Protocol::Uas => Err(Unusable::Protocol(UAS)),
            Protocol::Other(byte) => Err(Unusable::Protocol(byte)),
        };
        found.unwrap_or_else(Self::Unusable)
    }
}

fn bulk_only(alternate: &Alternate<'_>, speed: Speed) -> Result<BulkOnlyPipes, Unusable> {
    let first = |direction| {
        let is_it = |endpoint: &Endpoint| endpoint.direction() == direction;
        bulk_endpoint(alternate, speed, &is_it).ok_or(Unusable::NoBulkEndpoint(direction))
    };
    Ok(BulkOnlyPipes {
        bulk_in: first(Direction::In)?,
        bulk_out: first(Direction::Out)?,
    })
}

fn uas(alternate: &Alternate<'_>, speed: Speed) -> Result<UasPipes, Unusable> {
    let pipe = |usage: PipeUsage| {
        let is_it = |endpoint: &Endpoint| endpoint.pipe_usage() == Some(usage);
        let endpoint = bulk_endpoint(alternate, speed, &is_it).ok_or(Unusable::NoPipe(usage))?;
        if endpoint.direction() == usage.direction() {
            Ok(endpoint)
        } else {
            Err(Unusable::PipeDirection(usage))
        }
    };
    Ok(UasPipes {
        command: pipe(PipeUsage::Command)?,
        status: pipe(PipeUsage::Status)?,
        data_in: pipe(PipeUsage::DataIn)?,
        data_out: pipe(PipeUsage::DataOut)?,
    })
}

/// The first bulk endpoint that is the one. A single loop for all six pipes, that a program has once.
fn bulk_endpoint(
    alternate: &Alternate<'_>,
    speed: Speed,
    is_it: &dyn Fn(&Endpoint) -> bool,
) -> Option<Endpoint> {
    let mut endpoints = alternate.endpoints(speed);
    endpoints.find(|endpoint| endpoint.kind() == EndpointKind::Bulk && is_it(endpoint))
}

/// One alternate setting of class Mass Storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MassStorageAlternate {
    /// Number of the interface, for SET_INTERFACE and class requests.
    pub interface: u8,
    /// Number of the alternate setting, for SET_INTERFACE.
    pub alternate: u8,
    /// The command set that it announces.
    pub command_set: CommandSet,
    /// How commands travel, with the endpoints.
    pub transport: StorageTransport,
}

/// Walks the alternate settings of class Mass Storage.
#[derive(Clone, Debug)]
pub struct MassStorage<'a> {
    alternates: Alternates<'a>,
    speed: Speed,
}

impl<'a> MassStorage<'a> {
    pub(super) const fn new(alternates: Alternates<'a>, speed: Speed) -> Self {
        Self { alternates, speed }
    }
}

impl Iterator for MassStorage<'_> {
    type Item = MassStorageAlternate;

    fn next(&mut self) -> Option<MassStorageAlternate> {
        let alternate = self.alternates.find(|alternate| alternate.class == CLASS)?;
        let protocol = Protocol::from_byte(alternate.protocol);
        Some(MassStorageAlternate {
            interface: alternate.interface,
            alternate: alternate.alternate,
            command_set: CommandSet::from_subclass(alternate.subclass),
            transport: StorageTransport::find(&alternate, protocol, self.speed),
        })
    }
}
