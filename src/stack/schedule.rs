//! Which commands a function carries next: a unit's bring-up first, then requests in the order of
//! their submission, as many at a time as it takes.

use super::{FunctionSlot, Host};
use crate::block::BlockError;
use crate::block::queue::{Operation, Piece};
use crate::dma::{Dma, MapError};
use crate::platform::Platform;
use crate::scsi::transport::{
    Client, ClientKind, Completion, DataPlace, Ended, Fault, Outcome, Request, Status,
    TransportError,
};
use crate::scsi::unit::{
    Next, UnitEntry, UnitState, has_relapsed, tells_of_reset, transport_failed,
};
use crate::storage::uas::transport::Tools;
use crate::time::{Duration, Instant};
use crate::usb::Driver;

/// Whether a function takes another command now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Room {
    Perhaps,
    None,
}

impl FunctionSlot {
    /// How long a command may take that is issued again after an interruption: no longer than the
    /// episode of recovery that its device is in. A new request begins with a clean slate.
    #[inline(always)]
    fn time_left(&mut self, interrupted: bool, episode: Duration, now: Instant) -> Duration {
        if interrupted {
            return self.ladder.time_left(episode, now);
        }
        // With several commands under way, one that is new says nothing about the others.
        if self.ladder.is_climbed() && self.function.starts_anew() {
            self.ladder.succeeded();
        }
        Duration::MAX
    }

    /// Begins a command, and says whether there is room for another, and when to look at it. Inlined,
    /// so that the request is never written down on the usual way.
    #[inline(always)]
    fn begin<C: Driver, D: Dma>(
        &mut self,
        tools: Tools<'_, '_, C, D>,
        request: &Request,
        client: Client,
    ) -> Result<(Room, Instant), TransportError> {
        self.function.begin(tools, request, client)?;
        Ok(self.room())
    }

    /// Whether there is room for another command behind one that was begun, and when to look at it.
    #[inline]
    fn room(&self) -> (Room, Instant) {
        let room = match self.function.takes_several() {
            true => Room::Perhaps,
            false => Room::None,
        };
        (room, self.function.deadline())
    }
}

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Gives a function the commands that it takes now.
    pub(super) fn schedule(&mut self, function: u8, now: Instant) {
        while self.is_idle(function) {
            let room = match self.next_bring_up(function) {
                Some(unit) => self.issue_bring_up(function, unit, now),
                None => match self.next_request(function) {
                    Some(request) => self.issue_request(function, request, now),
                    None => return,
                },
            };
            if room == Room::None {
                return;
            }
        }
    }

    /// The same where nobody but one request wants a command, and its unit is ready: it needs no search.
    #[inline(always)]
    pub(super) fn schedule_alone(&mut self, function: u8, request: u8, now: Instant) {
        if self.bring_ups || !self.is_idle(function) {
            self.note_hunger(request);
            return self.schedule(function, now);
        }
        let room = self.issue_request(function, request, now);
        if room == Room::Perhaps && self.hungry != 0 {
            self.schedule(function, now);
        }
    }

    #[inline(always)]
    pub(super) fn is_idle(&self, function: u8) -> bool {
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

    /// Issues the next command of a unit's bring-up.
    #[cold]
    #[inline(never)]
    fn issue_bring_up(&mut self, function: u8, unit: u8, now: Instant) -> Room {
        let Some(entry) = self.units.get_mut(usize::from(unit)) else {
            return Room::Perhaps;
        };
        let UnitState::BringUp(_, next) = &mut entry.state else {
            return Room::Perhaps;
        };
        let Next::Issue(command) = *next else {
            return Room::Perhaps;
        };
        *next = Next::Ended;
        let lun = entry.lun;
        let timeout = self.time_left(function, true, now);
        let request = Request {
            lun,
            command,
            data: DataPlace::Scratch,
            timeout: timeout.min(self.policy.bring_up),
        };
        self.begin_rarely(function, Client::unit(unit), &request, now)
    }

    /// Issues the next command of a request, or ends the request without one.
    #[inline(never)]
    fn issue_request(&mut self, function: u8, request: u8, now: Instant) -> Room {
        let Some(slot) = self.requests.get_mut(usize::from(request)) else {
            return Room::Perhaps;
        };
        let Some(unit) = self.units.get_mut(usize::from(slot.disk.index)) else {
            return Room::Perhaps;
        };
        let (Operation::Read(lba) | Operation::Write(lba)) = slot.operation else {
            return self.issue_rare_request(function, request, now);
        };
        let Some(carrier) = self.functions.get_mut(usize::from(function)) else {
            return Room::None;
        };
        let mut command = match unit.moving_command(slot, lba, &self.policy) {
            Ok(command) => command,
            Err(error) => return self.not_even_issued(request, error),
        };
        let client = Client::request(request, slot.piece);
        let is_longer = slot.wants_command();
        let left = carrier.time_left(slot.interruptions != 0, self.policy.episode, now);
        if slot.is_in_line && !is_longer {
            slot.is_in_line = false;
            self.hungry = self.hungry.saturating_sub(1);
            unit.line.leave(self.requests, request);
        }
        command.timeout = command.timeout.min(left);
        let tools = Tools {
            bus: &mut self.bus,
            dma: &self.platform,
            commands: self.commands,
            now,
        };
        match carrier.begin(tools, &command, client) {
            Ok((room, deadline)) => {
                self.wake_at(deadline);
                if is_longer {
                    self.note_hunger(request);
                }
                room
            }
            Err(error) => {
                let copy = command;
                self.not_begun(function, client, &copy, error, now)
            }
        }
    }

    /// The same for what is neither a read nor a write.
    #[cold]
    #[inline(never)]
    fn issue_rare_request(&mut self, function: u8, request: u8, now: Instant) -> Room {
        let Some(slot) = self.requests.get_mut(usize::from(request)) else {
            return Room::Perhaps;
        };
        let Some(unit) = self.units.get_mut(usize::from(slot.disk.index)) else {
            return Room::Perhaps;
        };
        let interrupted = slot.interruptions != 0;
        if unit.needs_no_command(slot.operation) {
            return self.flushed_without_command(request);
        }
        match unit.command_for(slot, &self.policy) {
            Ok(mut command) => {
                let client = Client::request(request, slot.piece);
                let left = self.time_left(function, interrupted, now);
                command.timeout = command.timeout.min(left);
                self.note_hunger(request);
                self.begin_rarely(function, client, &command, now)
            }
            Err(error) => self.not_even_issued(request, error),
        }
    }

    #[cold]
    #[inline(never)]
    fn not_even_issued(&mut self, request: u8, error: BlockError) -> Room {
        self.end_request(request, Err(error));
        Room::Perhaps
    }

    /// A disk without the command has nothing to do for a flush, whose holder is told of losses all the same.
    fn flushed_without_command(&mut self, request: u8) -> Room {
        let result = self.weigh_flush(request, Ok(()));
        self.end_request(request, result);
        Room::Perhaps
    }

    pub(super) fn time_left(&mut self, function: u8, interrupted: bool, now: Instant) -> Duration {
        let slot = self.functions.get_mut(usize::from(function));
        slot.map_or(Duration::ZERO, |slot| {
            slot.time_left(interrupted, self.policy.episode, now)
        })
    }

    #[cold]
    #[inline(never)]
    pub(super) fn begin_rarely(
        &mut self,
        function: u8,
        client: Client,
        request: &Request,
        now: Instant,
    ) -> Room {
        let Some(slot) = self.functions.get_mut(usize::from(function)) else {
            return Room::None;
        };
        let mut tools = Tools {
            bus: &mut self.bus,
            dma: &self.platform,
            commands: self.commands,
            now,
        };
        match slot.function.begin_rarely(&mut tools, request, client) {
            Ok(()) => {
                let (room, deadline) = slot.room();
                self.wake_at(deadline);
                room
            }
            Err(error) => self.not_begun(function, client, request, error, now),
        }
    }

    /// A function has not begun a command.
    #[cold]
    #[inline(never)]
    fn not_begun(
        &mut self,
        function: u8,
        client: Client,
        request: &Request,
        error: TransportError,
        now: Instant,
    ) -> Room {
        let room = match error {
            TransportError::Busy => {
                self.not_issued(client, request);
                Room::None
            }
            TransportError::Memory(MapError::Unreachable) => {
                self.begin_bounced(function, client, request, now)
            }
            error => {
                self.client_told(function, client, Err(error), now);
                Room::Perhaps
            }
        };
        if client.kind == ClientKind::Request {
            self.note_hunger(client.index);
        }
        room
    }

    /// Begins a command with a piece of the pool in place of the caller's memory.
    #[cold]
    #[inline(never)]
    fn begin_bounced(
        &mut self,
        function: u8,
        client: Client,
        request: &Request,
        now: Instant,
    ) -> Room {
        match self.bounce(function, client, request) {
            Ok((client, request)) => self.begin_rarely(function, client, &request, now),
            Err(TransportError::Busy) => {
                self.not_issued(client, request);
                Room::None
            }
            Err(error) => {
                self.client_told(function, client, Err(error), now);
                Room::Perhaps
            }
        }
    }

    /// A function had no room for a command after all.
    #[cold]
    fn not_issued(&mut self, client: Client, request: &Request) {
        match client.kind {
            ClientKind::Unit => {
                if let Some(entry) = self.units.get_mut(usize::from(client.index))
                    && let UnitState::BringUp(_, next) = &mut entry.state
                {
                    *next = Next::Issue(request.command);
                }
            }
            // It takes several commands, or is idle when it is asked.
            ClientKind::Doubt => {}
            ClientKind::Request => {
                let (request, piece) = (client.index, client.piece);
                self.end_bounce(request, piece, Err(TransportError::Busy));
                if let Some(slot) = self.requests.get_mut(usize::from(request)) {
                    slot.not_issued(piece);
                }
            }
        }
    }

    /// A command has moved all of a piece of a request, `moved` bytes.
    #[inline]
    pub(super) fn request_done(
        &mut self,
        function: u8,
        request: u8,
        piece: Piece,
        moved: u32,
        now: Instant,
    ) {
        match self.requests.get_mut(usize::from(request)) {
            Some(slot) if slot.is_waiting() && slot.ends_with(piece) => {
                slot.in_flight = 0;
                self.backlog
                    .end(&mut self.ended, self.requests, request, Ok(()));
            }
            _ => {
                let status = Status::Good;
                self.request_ended(request, piece, Ok(Completion { status, moved }), now);
            }
        }
        if self.hungry != 0 || self.bring_ups {
            self.schedule(function, now);
        }
    }

    /// A command of a function has ended, and perhaps others with it.
    #[inline(never)]
    pub(super) fn commands_ended(&mut self, function: u8, first: Ended, now: Instant) {
        self.weigh_resets(function);
        self.command_ended(function, first, now);
        let slot = self.functions.get(usize::from(function));
        if slot.is_some_and(|slot| slot.function.takes_several()) {
            self.others_ended(function, now);
        }
        if self.hungry != 0 || self.bring_ups {
            self.schedule(function, now);
        }
    }

    /// The same where it is not a transfer that has ended a command.
    #[cold]
    #[inline(never)]
    pub(super) fn commands_ended_rarely(&mut self, function: u8, first: Ended, now: Instant) {
        self.commands_ended(function, first, now);
    }

    #[inline(never)]
    fn others_ended(&mut self, function: u8, now: Instant) {
        while let Some(ended) = self.take_ended(function, now) {
            self.command_ended(function, ended, now);
        }
        self.note_deadline(function);
    }

    #[inline]
    fn take_ended(&mut self, function: u8, now: Instant) -> Option<Ended> {
        let slot = self.functions.get_mut(usize::from(function))?;
        slot.function.take_ended(&mut Tools {
            bus: &mut self.bus,
            dma: &self.platform,
            commands: self.commands,
            now,
        })
    }

    /// A command of a function has ended: whoever wanted it is told, and may want another.
    #[inline]
    fn command_ended(&mut self, function: u8, ended: Ended, now: Instant) {
        let Ended { outcome, client } = ended;
        let completion = match outcome {
            Ok(completion) => completion,
            Err(error) => return self.command_not_ended(function, client, error, now),
        };
        // Recovery has reset it itself, perhaps: whether that has helped is still to be seen.
        let is_news = completion.status != Status::Good && tells_of_reset(&completion.status);
        if let Some(slot) = self
            .functions
            .get_mut(usize::from(function))
            .filter(|_| !is_news && client.kind != ClientKind::Doubt)
        {
            slot.ladder.succeeded();
        }
        self.client_told(function, client, outcome, now);
    }

    /// A device has not ended a command: what is done about it, and what its client is told.
    #[cold]
    #[inline(never)]
    fn command_not_ended(
        &mut self,
        function: u8,
        client: Client,
        error: TransportError,
        now: Instant,
    ) {
        if client.kind == ClientKind::Doubt {
            return self.client_told(function, client, Err(error), now);
        }
        if error == TransportError::Protocol(Fault::Stall) && self.is_flush(client) {
            // Before anything else is sent: what comes next wipes out what the unit may have said.
            self.doubt(function, client, error, now);
            return self.flush_stalled(client, now);
        }
        let keeps_waiting = self.climb_after(function, error, now);
        self.doubt(function, client, error, now);
        match client.kind {
            ClientKind::Request if keeps_waiting => {
                let counts =
                    error != TransportError::Neighbour && !self.is_between_resets(function);
                let error = counts.then_some(transport_failed(error));
                return self.put_back(client.index, client.piece, error);
            }
            // A bring-up knows best itself.
            ClientKind::Unit if keeps_waiting => self.bring_up_interrupted(client.index),
            ClientKind::Request | ClientKind::Unit | ClientKind::Doubt => {}
        }
        self.client_told(function, client, Err(error), now);
    }

    fn is_flush(&self, client: Client) -> bool {
        let slot = self.requests.get(usize::from(client.index));
        client.kind == ClientKind::Request
            && slot.is_some_and(|slot| slot.operation == Operation::Flush)
    }

    /// A device has stalled a flush, and was brought back in step: no rung of the ladder is climbed for it, since
    /// a reset of the port might cost what the flush was to save.
    fn flush_stalled(&mut self, client: Client, now: Instant) {
        let Some(slot) = self.requests.get_mut(usize::from(client.index)) else {
            return;
        };
        let index = slot.disk.index;
        let Some(unit) = self.units.get_mut(usize::from(index)) else {
            return;
        };
        let is_habit = unit.flush_stalled(slot);
        match slot.settle() {
            Some(result) => self.end_request(client.index, result),
            None => self.note_hunger(client.index),
        }
        if is_habit {
            self.relapsed(index, now);
        }
    }

    #[inline(never)]
    fn client_told(&mut self, function: u8, client: Client, outcome: Outcome, now: Instant) {
        let Client { kind, index, piece } = client;
        match kind {
            ClientKind::Unit => self.bring_up_ended(function, index, outcome, now),
            ClientKind::Request => self.request_ended(index, piece, outcome, now),
            ClientKind::Doubt => self.doubt_answered(function, index, &outcome, now),
        }
    }

    /// A command of a request was not carried out: it is issued again. `error` is what it ends with
    /// if that was once too often.
    #[cold]
    #[inline(never)]
    pub(super) fn put_back(&mut self, request: u8, piece: Piece, error: Option<BlockError>) {
        self.end_bounce(request, piece, Err(TransportError::Disconnected));
        let Some(slot) = self.requests.get_mut(usize::from(request)) else {
            return;
        };
        slot.put_back(piece);
        slot.interrupted = slot.interrupted.or(error);
        if let (Some(_), Some(unit)) = (error, self.units.get_mut(usize::from(slot.disk.index))) {
            unit.note_harm(slot.operation);
        }
        match slot.settle() {
            Some(result) => self.end_request(request, result),
            None => self.note_hunger(request),
        }
    }

    #[inline]
    fn request_ended(&mut self, request: u8, piece: Piece, outcome: Outcome, now: Instant) {
        self.end_bounce(request, piece, outcome);
        let Some(slot) = self.requests.get_mut(usize::from(request)) else {
            return;
        };
        let index = slot.disk.index;
        let Some(unit) = self.units.get_mut(usize::from(index)) else {
            return;
        };
        let has_relapsed = outcome.is_ok_and(|completion| has_relapsed(&completion.status));
        match unit.request_ended(piece, slot, outcome) {
            None => self.note_hunger(request),
            Some(result) => {
                let result = self.weigh_flush(request, result);
                self.end_request(request, result);
                if let Err(error) = result {
                    self.weigh_failure(index, error, now);
                }
            }
        }
        if has_relapsed {
            self.relapsed(index, now);
        }
    }
}
