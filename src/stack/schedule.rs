//! Which command a function carries next: a unit's bring-up first, then requests in the order of
//! their submission.

use super::Host;
use crate::block::queue::RequestState;
use crate::platform::Platform;
use crate::scsi::transport::{DataPlace, Outcome, Request};
use crate::scsi::unit::{Next, UnitState, transport_failed};
use crate::time::Instant;
use crate::usb::Driver;

/// What a function is at work on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// Nothing.
    None,
    /// The bring-up of the unit with this place in the table.
    Unit(u8),
    /// The request with this place in the table.
    Request(u8),
}

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Gives an idle function its next command.
    pub(super) fn schedule(&mut self, function: u8, now: Instant) {
        while self
            .functions
            .get(usize::from(function))
            .is_some_and(|slot| slot.function.is_idle())
        {
            let begun = match self.next_bring_up(function) {
                Some(unit) => self.begin_bring_up(function, unit, now),
                None => match self.next_request(function) {
                    Some(request) => self.begin_request(function, request, now),
                    None => return,
                },
            };
            if begun {
                return;
            }
        }
    }

    fn next_bring_up(&self, function: u8) -> Option<u8> {
        let wants = |state: &UnitState| matches!(state, UnitState::BringUp(_, Next::Issue(_)));
        let is_due = |entry: &super::UnitEntry| entry.function == function && wants(&entry.state);
        self.units.iter().position(is_due).map(|index| index as u8)
    }

    /// The oldest waiting request on a unit of the function.
    fn next_request(&self, function: u8) -> Option<u8> {
        if self.waiting == 0 {
            return None;
        }
        let mut oldest: Option<(u32, u8)> = None;
        for (index, slot) in (0_u8..).zip(self.requests.iter()) {
            if slot.state != RequestState::Waiting || !self.is_unit_of(slot.disk.index, function) {
                continue;
            }
            // Sequence numbers wrap: the difference tells the order.
            let age = self.sequence.wrapping_sub(slot.sequence);
            if oldest.is_none_or(|(oldest, _)| age > oldest) {
                oldest = Some((age, index));
            }
        }
        oldest.map(|(_, index)| index)
    }

    /// Whether a unit is one of the function's, and not being opened again.
    fn is_unit_of(&self, unit: u8, function: u8) -> bool {
        self.units.get(usize::from(unit)).is_some_and(|entry| {
            entry.function == function && (entry.is_ready() || entry.before.is_none())
        })
    }

    fn begin_bring_up(&mut self, function: u8, unit: u8, now: Instant) -> bool {
        let Some(entry) = self.units.get_mut(usize::from(unit)) else {
            return false;
        };
        let UnitState::BringUp(_, next) = &mut entry.state else {
            return false;
        };
        let Next::Issue(command) = *next else {
            return false;
        };
        *next = Next::Ended;
        let request = Request {
            lun: entry.lun,
            command,
            data: DataPlace::Scratch,
            timeout: self.policy.bring_up,
        };
        self.begin(function, Work::Unit(unit), &request, now)
    }

    /// Issues the next command of a request.
    #[inline]
    pub(super) fn begin_request(&mut self, function: u8, request: u8, now: Instant) -> bool {
        let Some(slot) = self.requests.get_mut(usize::from(request)) else {
            return false;
        };
        let Some(unit) = self.units.get_mut(usize::from(slot.disk.index)) else {
            return false;
        };
        match unit.command_for(slot, &self.policy) {
            Ok(command) => self.begin(function, Work::Request(request), &command, now),
            Err(error) => {
                self.end_request(request, Err(error));
                false
            }
        }
    }

    #[inline]
    fn begin(&mut self, function: u8, work: Work, request: &Request, now: Instant) -> bool {
        let Some(slot) = self.functions.get_mut(usize::from(function)) else {
            return false;
        };
        match slot
            .function
            .begin(&mut self.bus, &self.platform, request, now)
        {
            Ok(()) => {
                slot.work = work;
                let deadline = slot.function.deadline();
                self.wake_at(deadline);
                true
            }
            Err(error) => {
                self.work_ended(function, work, Err(error), now);
                false
            }
        }
    }

    /// The command of a function has ended: whoever wanted it is told, and may want another.
    #[inline]
    pub(super) fn command_ended(&mut self, function: u8, outcome: Outcome, now: Instant) {
        let Some(slot) = self.functions.get_mut(usize::from(function)) else {
            return;
        };
        let work = core::mem::replace(&mut slot.work, Work::None);
        let keeps_waiting = self.climb_after(function, outcome, now);
        if let (true, Err(error)) = (keeps_waiting, outcome) {
            self.interrupted(work, transport_failed(error));
        }
        // A request that keeps waiting is scheduled again; a bring-up knows best itself.
        if !keeps_waiting || matches!(work, Work::Unit(_)) {
            self.work_ended(function, work, outcome, now);
        }
        self.schedule(function, now);
    }

    #[inline]
    fn work_ended(&mut self, function: u8, work: Work, outcome: Outcome, now: Instant) {
        match work {
            Work::None => {}
            Work::Unit(unit) => self.bring_up_ended(function, unit, outcome, now),
            Work::Request(request) => self.request_ended(request, outcome, now),
        }
    }

    fn request_ended(&mut self, request: u8, outcome: Outcome, now: Instant) {
        let Some(slot) = self.requests.get_mut(usize::from(request)) else {
            return;
        };
        let index = slot.disk.index;
        let Some(unit) = self.units.get_mut(usize::from(index)) else {
            return;
        };
        if let Some(result) = unit.request_ended(slot, outcome) {
            let result = self.weigh_flush(request, result);
            self.end_request(request, result);
            if let Err(error) = result {
                self.weigh_failure(index, error, now);
            }
        }
    }
}
