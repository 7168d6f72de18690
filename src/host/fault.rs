//! Why a controller as a whole does not work.
//!
//! Faults travel through every layer up to the caller, beside results of a few bytes: they hold no
//! texts and no counts, so that they fit into a register.

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
    /// How wide its addresses are: the pool lies above 4 GiB. Move it.
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
