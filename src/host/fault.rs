//! Why a controller as a whole does not work, and why one of its operations failed.
//!
//! Faults travel through every layer up to the caller, beside results of a few bytes: they hold no
//! texts and no counts, so that they fit into a register. What to do about each is in their words.

use core::fmt;

use crate::dma::PoolError;

/// Why a whole controller does not work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControllerFault {
    /// All registers read as ones: the controller is not there (any more), or not clocked.
    Absent,
    /// A capability register holds what no controller can have, or what this host cannot serve.
    Implausible(CapabilityField),
    /// The firmware did not give the controller up in time.
    FirmwareHolds,
    /// It did not halt in time.
    HaltTimeout,
    /// It did not come out of its reset in time.
    ResetTimeout,
    /// It did not start to run in time.
    RunTimeout,
    /// It reported an internal error.
    HostSystemError,
    /// Its command ring does not answer, and could not be aborted.
    CommandRingStuck,
    /// It did not end an operation on a device in time.
    Unresponsive,
    /// It does not let go of a device that was closed.
    KeepsDevice,
    /// The platform has cut it off from memory, since a call that had lent it some was left by a panic.
    CutOff,
    /// The pool is too small for it: see [`PoolError::Exhausted`].
    PoolExhausted,
    /// The pool's ledger is too short for it: see [`PoolError::LedgerFull`].
    LedgerFull,
    /// A slice of its storage is too short or too long; how many there may be at least, or at most.
    Storage(Slice, u8),
}

const _: () = assert!(size_of::<ControllerFault>() <= 4, "it fits into a register");

impl From<PoolError> for ControllerFault {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Exhausted => Self::PoolExhausted,
            PoolError::LedgerFull => Self::LedgerFull,
        }
    }
}

/// What a controller says about itself in its capability registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapabilityField {
    /// Where the operational registers begin.
    #[doc(alias = "CAPLENGTH")]
    Length,
    /// The edition of its interface.
    #[doc(alias = "HCIVERSION")]
    Version,
    /// The number of its ports, or of its device slots.
    #[doc(alias = "HCSPARAMS")]
    Ports,
    /// The number of its interrupters.
    #[doc(alias = "MaxIntrs")]
    Interrupters,
    /// Where the doorbells are.
    #[doc(alias = "DBOFF")]
    Doorbells,
    /// Where the runtime registers are.
    #[doc(alias = "RTSOFF")]
    Runtime,
    /// The size of its pages.
    #[doc(alias = "PAGESIZE")]
    PageSize,
    /// How wide its addresses are: some of the pool lies above them, above 4 GiB for most, or not all of it between
    /// two multiples of 4 GiB, as an EHCI wants it. Move it.
    #[doc(alias = "AC64")]
    AddressWidth,
}

/// A slice of the storage that a controller is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slice {
    /// Its devices.
    Devices,
    /// Their endpoints.
    Endpoints,
    /// Their transfers in flight.
    Transfers,
}

/// Why one operation of a controller failed. The neighbours are not concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostError {
    /// The pool is too small for one more of these: see [`PoolError::Exhausted`].
    PoolExhausted,
    /// The pool's ledger is too short for one more of these: see [`PoolError::LedgerFull`].
    LedgerFull,
    /// The storage that the controller was given holds no more devices or endpoints.
    StorageFull,
    /// The handle names nothing that is open.
    Stale,
    /// An operation of this device or endpoint is under way already.
    Busy,
    /// The endpoint has no room for one more transfer now: wait for completions.
    QueueFull,
    /// The transfer has more pieces than the endpoint was opened for.
    TooLong,
    /// The device did not answer as it must (stall, no answer) during an operation that the
    /// controller makes by itself, such as Address Device.
    NoAnswer,
    /// The controller has no bandwidth, slots or other resources left.
    Resources,
    /// The operation timed out inside the controller and was aborted.
    Timeout,
    /// The endpoint is halted: quiesce and restart it first.
    Halted,
    /// This controller cannot do it.
    Unsupported,
    /// The controller refused; its own code.
    Refused(u8),
    /// The controller has died.
    Dead,
}

impl From<PoolError> for HostError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Exhausted => Self::PoolExhausted,
            PoolError::LedgerFull => Self::LedgerFull,
        }
    }
}

/// What to do where the pool has no room left.
const GROW_POOL: &str = "the pool is too small: make the platform's coherent region larger";

/// What to do where the pool's ledger has no room left.
const GROW_LEDGER: &str = "the pool's ledger is too short: give the host's storage more records";

impl fmt::Display for ControllerFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Absent => "it is not there, or not clocked",
            Self::Implausible(field) => {
                return write!(
                    formatter,
                    "it cannot be used as it describes itself ({field:?})"
                );
            }
            Self::FirmwareHolds => "the firmware did not give it up",
            Self::HaltTimeout => "it did not halt in time",
            Self::ResetTimeout => "it did not come out of its reset in time",
            Self::RunTimeout => "it did not start to run in time",
            Self::HostSystemError => "it reported an error of its own, or of the way to memory",
            Self::CommandRingStuck => "it does not carry out commands",
            Self::Unresponsive => "it did not end an operation in time",
            Self::KeepsDevice => "it does not let go of a device",
            Self::CutOff => "it was cut off because a call was left by a panic",
            Self::PoolExhausted => GROW_POOL,
            Self::LedgerFull => GROW_LEDGER,
            Self::Storage(slice, bound) => {
                return write!(
                    formatter,
                    "its storage has too few or too many places ({slice:?}: see {bound})"
                );
            }
        })
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::PoolExhausted => GROW_POOL,
            Self::LedgerFull => GROW_LEDGER,
            Self::StorageFull => {
                "the controller's tables are full: give its storage more devices and endpoints"
            }
            Self::Stale => "the device has gone",
            Self::Busy => "another operation is under way: wait for its end",
            Self::QueueFull => "too many transfers at once: wait for one to end",
            Self::TooLong => "the transfer has too many pieces",
            Self::NoAnswer => "the device did not answer the controller: check its cable and power",
            Self::Resources => "the controller has no bandwidth or slots left: pull something",
            Self::Timeout => "the controller gave the operation up: it took too long",
            Self::Halted => "the endpoint is halted",
            Self::Unsupported => "the controller cannot do it",
            Self::Refused(code) => {
                return write!(formatter, "the controller refused it (its code {code})");
            }
            Self::Dead => "the controller has died",
        })
    }
}
