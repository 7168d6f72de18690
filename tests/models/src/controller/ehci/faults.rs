//! [`Faults`]: what goes wrong on purpose in an EHCI controller or on its bus.

use std::collections::{BTreeMap, BTreeSet};

use crate::device::Nanoseconds;

/// How a controller dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Death {
    /// All registers read as ones, writes do nothing: it has left the bus.
    AllOnes,
    /// An error of the system's bus: it halts and sets USBSTS.HSE.
    HostSystemError,
    /// It looks well and executes nothing any more.
    Silent,
}

/// What a qTD ends with instead of what it would (EHCI 1.0 §3.5.3, bits 7..0 of the token).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferFault {
    /// Halted and nothing else: a STALL.
    Stall,
    /// Halted and Babble Detected.
    Babble,
    /// Halted and Transaction Error, the error counter at zero.
    Transaction,
    /// Halted and Data Buffer Error.
    DataBuffer,
    /// It stays active for ever, without a transaction.
    Never,
}

/// The plan of what goes wrong. Counts begin at 0.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// HCRESET never clears.
    pub reset_hangs: bool,
    /// HCHalted never sets after Run/Stop was cleared.
    pub never_halts: bool,
    /// HCHalted never clears after Run/Stop was set.
    pub never_runs: bool,
    /// No schedule status bit ever follows its enable bit.
    pub schedules_stuck: bool,
    /// The doorbell never answers: IAAD stays set.
    pub doorbell_hangs: bool,
    /// This many answers to the doorbell get lost: IAAD clears, IAA does not set.
    pub lost_advances: u64,
    /// This many interrupts, from the first on, never leave the controller.
    pub lost_interrupts: u64,
    /// No port reset ever ends: PR stays set after software has cleared it.
    pub port_reset_hangs: bool,
    /// The companion never takes a port: PORT_OWNER stays clear.
    pub companion_refuses: bool,
    /// The controller's access to memory with this number meets an error of the system's bus: HSE.
    pub host_system_error_at: Option<u64>,
    /// The controller dies at this moment.
    pub death: Option<(Nanoseconds, Death)>,
    /// The n-th qTD of an endpoint address (bit 7: IN; endpoint 0 counts all its qTDs with the
    /// direction bit clear), of any device, ends so.
    pub transfers: BTreeMap<(u8, u64), TransferFault>,
    /// The controller loses an endpoint with this address: from the n-th qTD there on, of any device,
    /// none ends until the controller was reset.
    pub lost_endpoints: Vec<(u8, u64)>,
    /// The device in this port is gone from its n-th transaction on.
    pub unplug_at: BTreeMap<usize, u64>,
    /// Transactions of the device in this port, by their count, get no answer.
    pub lost_transactions: BTreeSet<(usize, u64)>,
    /// Too much current flows at this port from one moment to another.
    pub over_current: Vec<(usize, Nanoseconds, Nanoseconds)>,
}

impl Faults {
    /// Nothing goes wrong.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// What the qTD with this count at an endpoint address ends with.
    pub(super) fn of_transfer(&mut self, key: (u8, u64)) -> Option<TransferFault> {
        let (address, count) = key;
        let is_lost = |&(lost, from): &(u8, u64)| lost == address && count >= from;
        match self.lost_endpoints.iter().any(is_lost) {
            true => Some(TransferFault::Never),
            false => self.transfers.remove(&key),
        }
    }

    /// The controller was reset, after so many qTDs at each address: it has what it had lost.
    pub(super) fn find_endpoints(&mut self, counts: &BTreeMap<u8, u64>) {
        self.lost_endpoints
            .retain(|(address, from)| counts.get(address).is_none_or(|count| count <= from));
    }
}
