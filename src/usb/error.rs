//! What can go wrong between the core and one device, as the classes above see it.

use core::fmt;

use super::descriptor::DescriptorFault;
use crate::host::{ControllerFault, HostError, Outcome};

/// Why an operation on a device failed. The device's neighbours are not concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(4))]
pub enum UsbError {
    /// The device refused the request (STALL). It may take others.
    Stall,
    /// The device did not answer in time. Reset it.
    Timeout,
    /// The device does not answer, or with damaged packets. Reset it; check cable and power.
    NoAnswer,
    /// The device sent more than it may. Reset it.
    Babble,
    /// The device sent less than the request needs. Ask it once more, or do without.
    TooShort,
    /// A descriptor makes no sense: the device cannot be used as it is.
    Descriptor(DescriptorFault),
    /// The device is not there any more, or was reset under the request.
    Disconnected,
    /// An operation of this device is under way already: wait for its end.
    Busy,
    /// The table named here is full: give the host's storage more of them.
    TableFull(Table),
    /// The controller refused or failed the operation; what is inside says what is short, if something is.
    Controller(HostError),
    /// The port did not come out of its reset, or not enabled. Pull the device, and check cable and power.
    PortReset,
    /// What was on the port drew more than the port can give, and has lost its power. See to the
    /// device's own supply, or to its cable.
    OverCurrent,
    /// Low or full speed behind a controller without a driver for its companion. Put the device
    /// into a port of an xHCI, if there is one.
    NeedsCompanion,
    /// The controller's driver was made for another place than the next free one: make it with the number
    /// of that. Two of the same number would free each other's memory.
    WrongNumber,
    /// The controller as a whole does not work.
    ControllerDied(ControllerFault),
}

const _: () = assert!(size_of::<UsbError>() <= 4, "it fits into a register");

/// A table of the host, of which its caller chose the length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// Controllers.
    Controllers,
    /// Root ports.
    Ports,
    /// Devices.
    Devices,
    /// Storage interfaces.
    Functions,
    /// Commands in flight of UAS.
    Commands,
}

impl UsbError {
    /// The error that a transfer's outcome is, if it is one.
    #[must_use]
    pub fn from_outcome(outcome: Outcome) -> Option<Self> {
        match outcome {
            Outcome::Complete | Outcome::Short => None,
            Outcome::Stall => Some(Self::Stall),
            Outcome::Babble => Some(Self::Babble),
            Outcome::Cancelled => Some(Self::Disconnected),
            Outcome::TransactionError | Outcome::SplitError | Outcome::HostOverrun => {
                Some(Self::NoAnswer)
            }
            Outcome::Other(code) => Some(Self::Controller(HostError::Refused(code))),
        }
    }
}

impl From<HostError> for UsbError {
    #[cold]
    #[inline(never)]
    fn from(error: HostError) -> Self {
        match error {
            HostError::NoAnswer => Self::NoAnswer,
            HostError::Timeout => Self::Timeout,
            HostError::Stale => Self::Disconnected,
            HostError::Busy => Self::Busy,
            other => Self::Controller(other),
        }
    }
}

impl From<DescriptorFault> for UsbError {
    fn from(fault: DescriptorFault) -> Self {
        Self::Descriptor(fault)
    }
}

impl fmt::Display for UsbError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Stall => "the device refuses it",
            Self::Timeout => "the device did not answer in time: pull it and plug it in again",
            Self::NoAnswer => {
                "the device does not answer, or with damaged packets: check its cable and power"
            }
            Self::Babble => "the device sent more than it may",
            Self::TooShort => "the device sent less than was asked for",
            Self::Descriptor(fault) => {
                return write!(formatter, "the device describes itself wrongly ({fault:?})");
            }
            Self::Disconnected => "the device has gone",
            Self::Busy => "another operation of the device is under way: wait for its end",
            Self::TableFull(table) => {
                return write!(
                    formatter,
                    "the table of {table:?} is full: give the host's storage more"
                );
            }
            Self::Controller(error) => return error.fmt(formatter),
            Self::PortReset => "the port did not come out of its reset: check cable and power",
            Self::OverCurrent => {
                "it drew more than the port can give: see to its own supply, or to its cable"
            }
            Self::NeedsCompanion => {
                "full or low speed, and its companion has no driver: use a port of an xHCI"
            }
            Self::WrongNumber => "the driver was made for another place than the next free one",
            Self::ControllerDied(fault) => {
                return write!(formatter, "the controller does not work: {fault}");
            }
        })
    }
}

impl core::error::Error for UsbError {}
