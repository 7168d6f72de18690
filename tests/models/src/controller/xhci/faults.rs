//! [`Faults`]: what goes wrong on purpose in a controller or on its bus.

use std::collections::{BTreeMap, BTreeSet};

use super::Due;
use crate::clock::Agenda;
use crate::device::Nanoseconds;

/// How a controller dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Death {
    /// All registers read as ones, writes do nothing: it has left the bus.
    AllOnes,
    /// USBSTS.HSE.
    HostSystemError,
    /// USBSTS.HCE.
    ControllerError,
    /// It looks well and does nothing any more.
    Silent,
}

/// What a command or a TD ends with instead of what it would.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompletionFault {
    /// This completion code.
    Code(u8),
    /// Nothing: no event, ever.
    Never,
}

/// The plan of what goes wrong. Counts begin at 0.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// HCRST never clears.
    pub reset_hangs: bool,
    /// CNR never clears.
    pub never_ready: bool,
    /// HCHalted never clears after Run/Stop was set.
    pub never_runs: bool,
    /// HCHalted never sets after Run/Stop was cleared.
    pub never_halts: bool,
    /// Command Abort and Command Stop do nothing.
    pub abort_hangs: bool,
    /// No port reset ever ends.
    pub port_reset_hangs: bool,
    /// Links of SuperSpeed devices end in Inactive instead of U0, until a warm reset.
    pub training_fails: bool,
    /// The n-th command since power-on ends so.
    pub commands: BTreeMap<u64, CompletionFault>,
    /// The n-th command since power-on is not carried out, and says that it went well and gave this slot.
    pub given_slots: BTreeMap<u64, u8>,
    /// This many Stop Endpoint commands, from the first on, never complete.
    pub stops_hang: u64,
    /// The n-th TD of an endpoint address (bit 7: IN; endpoint 0 counts each stage), of any device,
    /// ends so.
    pub transfers: BTreeMap<(u8, u64), CompletionFault>,
    /// The controller loses an endpoint with this address: from the n-th TD there on, of any device,
    /// none ends until the controller was reset.
    pub lost_endpoints: Vec<(u8, u64)>,
    /// This many interrupts, from the first on, never leave the controller.
    pub lost_interrupts: u64,
    /// The controller dies at this moment.
    pub death: Option<(Nanoseconds, Death)>,
    /// Events that nothing caused, with their words (the cycle bit is added), at these moments: early
    /// or late ones, null pointers, slots that have gone.
    pub stray_events: Vec<(Nanoseconds, [u32; 4])>,
    /// This port draws too much from the first moment to the second: it loses its power.
    pub over_current: Vec<(usize, Nanoseconds, Nanoseconds)>,
    /// These ports never say how fast they are: their speed reads as 0.
    pub no_speed: BTreeSet<usize>,
    /// The device in this port is gone from its n-th transaction on.
    pub unplug_at: BTreeMap<usize, u64>,
    /// Transactions of the device in this port, by their count, get no answer.
    pub lost_transactions: BTreeSet<(usize, u64)>,
}

impl Faults {
    /// Nothing goes wrong.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// What the TD with this count at an endpoint address ends with.
    pub(super) fn of_transfer(&mut self, key: (u8, u64)) -> Option<CompletionFault> {
        let (address, count) = key;
        let is_lost = |&(lost, from): &(u8, u64)| lost == address && count >= from;
        match self.lost_endpoints.iter().any(is_lost) {
            true => Some(CompletionFault::Never),
            false => self.transfers.remove(&key),
        }
    }

    /// The controller was reset, after so many TDs at each address: it has what it had lost.
    pub(super) fn find_endpoints(&mut self, counts: &BTreeMap<u8, u64>) {
        self.lost_endpoints
            .retain(|(address, from)| counts.get(address).is_none_or(|count| count <= from));
    }

    /// Puts what happens at a certain moment on the agenda.
    pub(super) fn plan(&self, agenda: &mut Agenda<Due>) {
        if let Some((at, death)) = self.death {
            agenda.add(at, Due::Dies(death));
        }
        for (at, words) in &self.stray_events {
            agenda.add(*at, Due::StrayEvent(*words));
        }
        for &(port, from, to) in &self.over_current {
            agenda.add(from, Due::OverCurrent(port, true));
            agenda.add(to, Due::OverCurrent(port, false));
        }
    }
}
