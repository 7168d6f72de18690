//! Which command a function carries next: a unit's bring-up first, then requests in the order of
//! their submission.

use super::Host;
use crate::block::queue::RequestState;
use crate::dma::MapError;
use crate::platform::Platform;
use crate::scsi::transport::{DataPlace, Outcome, Request, TransportError};
use crate::scsi::unit::{Next, UnitEntry, UnitState, transport_failed};
use crate::time::{Duration, Instant};
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
        while self.is_idle(function) {
            let (work, command) = match self.next_bring_up(function) {
                Some(unit) => (Work::Unit(unit), self.bring_up_command(function, unit, now)),
                None => match self.next_request(function) {
                    Some(request) => {
                        let command = self.request_command(function, request, now);
                        (Work::Request(request), command)
                    }
                    None => return,
                },
            };
            if let Some(command) = command
                && self.begin(function, work, &command, now)
            {
                return;
            }
        }
    }

    #[inline]
    fn is_idle(&self, function: u8) -> bool {
        let slot = self.functions.get(usize::from(function));
        slot.is_some_and(|slot| slot.function.is_idle())
    }

    #[inline]
    fn next_bring_up(&mut self, function: u8) -> Option<u8> {
        if self.bring_ups {
            self.find_bring_up(function)
        } else {
            None
        }
    }

    #[cold]
    #[inline(never)]
    fn find_bring_up(&mut self, function: u8) -> Option<u8> {
        let wants =
            |entry: &UnitEntry| matches!(entry.state, UnitState::BringUp(_, Next::Issue(_)));
        self.bring_ups = self.units.iter().any(wants);
        let is_due = |entry: &UnitEntry| entry.function == function && wants(entry);
        self.units.iter().position(is_due).map(|index| index as u8)
    }

    /// The oldest waiting request on a unit of the function.
    #[inline]
    fn next_request(&self, function: u8) -> Option<u8> {
        match self.waiting {
            0 => None,
            // Most likely nobody waits but who has just come.
            1 if self.is_next(self.newest, function) => Some(self.newest),
            _ => self.oldest_request(function),
        }
    }

    /// Whether a request waits for a command of the function.
    #[inline]
    fn is_next(&self, request: u8, function: u8) -> bool {
        let slot = self.requests.get(usize::from(request));
        slot.is_some_and(|slot| {
            slot.state == RequestState::Waiting && self.is_unit_of(slot.disk.index, function)
        })
    }

    #[inline(never)]
    fn oldest_request(&self, function: u8) -> Option<u8> {
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

    /// The next command of a unit's bring-up, which counts as issued.
    #[cold]
    #[inline(never)]
    fn bring_up_command(&mut self, function: u8, unit: u8, now: Instant) -> Option<Request> {
        let entry = self.units.get_mut(usize::from(unit))?;
        let UnitState::BringUp(_, next) = &mut entry.state else {
            return None;
        };
        let Next::Issue(command) = *next else {
            return None;
        };
        *next = Next::Ended;
        let lun = entry.lun;
        let timeout = self.time_left(function, true, now);
        Some(Request {
            lun,
            command,
            data: DataPlace::Scratch,
            timeout: timeout.min(self.policy.bring_up),
        })
    }

    /// The next command of a request. `None`: the request has ended without one.
    #[inline]
    fn request_command(&mut self, function: u8, request: u8, now: Instant) -> Option<Request> {
        let slot = self.requests.get_mut(usize::from(request))?;
        let unit = self.units.get_mut(usize::from(slot.disk.index))?;
        let interrupted = slot.interruptions != 0;
        match unit.command_for(slot, &self.policy) {
            Ok(mut command) => {
                let left = self.time_left(function, interrupted, now);
                command.timeout = command.timeout.min(left);
                Some(command)
            }
            Err(error) => {
                self.end_request(request, Err(error));
                None
            }
        }
    }

    /// How long a command may take that is issued again after an interruption: no longer than the
    /// episode of recovery that its device is in. A new request begins with a clean slate.
    #[inline]
    fn time_left(&mut self, function: u8, interrupted: bool, now: Instant) -> Duration {
        let Some(slot) = self.functions.get_mut(usize::from(function)) else {
            return Duration::ZERO;
        };
        if interrupted {
            slot.ladder.time_left(self.policy.episode, now)
        } else {
            slot.ladder.succeeded();
            Duration::MAX
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
            Err(error) => self.not_begun(function, work, error, now),
        }
    }

    /// A command could not be begun: by a detour, where there is one, else whoever wanted it is told.
    #[cold]
    #[inline(never)]
    fn not_begun(
        &mut self,
        function: u8,
        work: Work,
        mut error: TransportError,
        now: Instant,
    ) -> bool {
        if let (Work::Request(request), TransportError::Memory(MapError::Unreachable)) =
            (work, error)
        {
            match self.begin_bounced(function, request, now) {
                Ok(()) => return true,
                Err(other) => error = other,
            }
        }
        self.work_ended(function, work, Err(error), now);
        false
    }

    /// A function is at work on something.
    pub(super) fn began(&mut self, function: u8, work: Work) {
        if let Some(slot) = self.functions.get_mut(usize::from(function)) {
            slot.work = work;
            let deadline = slot.function.deadline();
            self.wake_at(deadline);
        }
    }

    /// The command of a function has ended: whoever wanted it is told, and may want another.
    #[inline]
    pub(super) fn command_ended(&mut self, function: u8, outcome: Outcome, now: Instant) {
        let Some(slot) = self.functions.get_mut(usize::from(function)) else {
            return;
        };
        let work = core::mem::replace(&mut slot.work, Work::None);
        if let Work::Request(request) = work {
            self.end_bounce(request, outcome);
        }
        let keeps_waiting = self.climb_after(function, outcome, now);
        if let (true, Err(error)) = (keeps_waiting, outcome) {
            self.interrupted(work, transport_failed(error));
        }
        // A request that keeps waiting is scheduled again; a bring-up knows best itself.
        if !keeps_waiting || matches!(work, Work::Unit(_)) {
            self.work_ended(function, work, outcome, now);
        }
        if self.waiting != 0 || self.bring_ups {
            self.schedule(function, now);
        }
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
