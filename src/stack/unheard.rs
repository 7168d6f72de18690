//! What a unit may have said in a status that has not arrived: that it was reset, that a flush has failed, that
//! its medium is another one. It says so once.
//!
//! Called by [`schedule`](super::schedule) when a command has ended without a status. It matters where writes
//! before it may be in a cache, or the medium can be taken out.
//!
//! Bulk-Only has no sense data with its status: a unit keeps them for REQUEST SENSE until its next command
//! (SPC-4 §6.39), so it is asked before anything else, and answers with what it said or with what it has still
//! to say. Nothing to say is believed, so that a command which was only late is no loss. Over UAS sense data come
//! with the status and are lost with it: nothing can be asked, and what the unit held may be lost. What
//! cannot be known is in decision 11 of `docs/architecture.md`.

use super::Host;
use crate::platform::Platform;
use crate::scsi::cdb::request_sense;
use crate::scsi::sense::{Sense, Verdict};
use crate::scsi::transport::{
    Client, ClientKind, Completion, DataPlace, Fault, Outcome, Request, Status, TransportError,
};
use crate::scsi::unit::{UnitState, is_loss};
use crate::time::Instant;
use crate::usb::Driver;

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// A command has ended without a status, and its device goes on: what it may have said is asked, or
    /// taken for said. One whose device is reset has lost what it held in any case.
    #[cold]
    pub(super) fn doubt(
        &mut self,
        function: u8,
        client: Client,
        error: TransportError,
        now: Instant,
    ) {
        let (unit, operation) = match client.kind {
            ClientKind::Unit | ClientKind::Doubt => (client.index, None),
            ClientKind::Request => match self.requests.get(usize::from(client.index)) {
                Some(slot) => (slot.disk.index, Some(slot.operation)),
                None => return,
            },
        };
        let slot = self.functions.get(usize::from(function));
        let takes_several = slot.is_some_and(|slot| slot.function.takes_several());
        let Some(entry) = self.units.get_mut(usize::from(unit)) else {
            return;
        };
        let is_dirty = entry.has_unflushed_beside(operation);
        // What is issued again must not go to another medium.
        let is_removable = entry.found().is_some_and(|found| found.inquiry.removable);
        match error {
            TransportError::Timeout | TransportError::Protocol(_)
                if !takes_several && (is_dirty || is_removable) =>
            {
                self.ask_in_doubt(function, unit, now);
            }
            // A fault of the wire is one of the data there: the status has come, and was good.
            TransportError::Timeout
            | TransportError::Neighbour
            | TransportError::Protocol(Fault::BadStatus)
                if takes_several && is_dirty =>
            {
                entry.durability.doubted();
                // One line for all that end together.
                if error != TransportError::Neighbour {
                    self.platform.log(format_args!(
                        "usb: storage {function}: a status has not come; unflushed writes may be lost"
                    ));
                }
            }
            _ => {}
        }
    }

    /// Asks a unit, ahead of every other command.
    fn ask_in_doubt(&mut self, function: u8, unit: u8, now: Instant) {
        let Some(entry) = self.units.get(usize::from(unit)) else {
            return;
        };
        let lun = entry.lun;
        if !self.is_idle(function) {
            return;
        }
        let timeout = self.time_left(function, true, now);
        let request = Request {
            lun,
            command: request_sense(Sense::FIXED_LENGTH),
            data: DataPlace::Scratch,
            timeout: timeout.min(self.policy.optional),
        };
        self.begin_rarely(function, Client::doubt(unit), &request, now);
    }

    /// A unit was asked. An answer that has not come either may have been anything.
    #[cold]
    pub(super) fn doubt_answered(
        &mut self,
        function: u8,
        unit: u8,
        outcome: &Outcome,
        now: Instant,
    ) {
        let sense = match outcome {
            Ok(Completion {
                status: Status::Good,
                moved,
            }) => self.sense_that_came(function, *moved),
            // It minds the question, or cannot say why: what it had to say was not heard.
            Ok(Completion {
                status: Status::Check(sense),
                ..
            }) if matches!(sense.verdict(), Verdict::Unexplained | Verdict::Unsupported) => {
                Sense::UNHEARD
            }
            Ok(Completion {
                status: Status::Check(sense),
                ..
            }) => *sense,
            // It hangs: what is issued again would only wait for its deadline too.
            Err(error @ (TransportError::Timeout | TransportError::Broken(_))) => {
                self.spend_try(unit);
                self.climb_after(function, *error, now);
                Sense::UNHEARD
            }
            Err(_) => Sense::UNHEARD,
        };
        let verdict = sense.verdict();
        if verdict != Verdict::Unexplained {
            self.platform.log(format_args!(
                "usb: storage {function}: a status has not come; asked again, the unit says {sense}"
            ));
        }
        match verdict {
            // It is not said again, so the unit must be looked at.
            Verdict::MediaChanged | Verdict::NoMedium | Verdict::CapacityChanged => {
                self.look_into(unit, now);
            }
            // It may have been said of a flush.
            verdict if is_loss(verdict) => {
                if let Some(entry) = self.units.get_mut(usize::from(unit)) {
                    entry.durability.doubted();
                }
            }
            _ => {}
        }
        let completion = Completion {
            status: Status::Check(sense),
            moved: 0,
        };
        self.weigh_attention(unit, &Ok(completion));
    }

    /// The question has had the second try of what was to be issued again, which is the next time behind the
    /// reset of the port.
    fn spend_try(&mut self, unit: u8) {
        for slot in self.requests.iter_mut() {
            let waits = slot.is_waiting() && slot.disk.index == unit;
            if waits && slot.interruptions != 0 {
                slot.interruptions = slot.interruptions.saturating_add(1);
            }
        }
    }

    fn sense_that_came(&self, function: u8, moved: u32) -> Sense {
        let mut bytes = [0; Sense::FIXED_LENGTH as usize];
        if let Some(slot) = self.functions.get(usize::from(function)) {
            slot.function.read_scratch(&mut bytes);
        }
        Sense::parse(bytes.get(..moved as usize).unwrap_or(&bytes))
    }

    /// Brings a unit up again, also one whose bring-up is under way.
    fn look_into(&mut self, unit: u8, now: Instant) {
        let state = self.units.get(usize::from(unit)).map(|entry| &entry.state);
        match state {
            Some(UnitState::Ready(_)) => self.relapsed(unit, now),
            Some(UnitState::BringUp(..)) => self.bring_up(unit, now),
            _ => {}
        }
    }
}
