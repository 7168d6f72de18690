//! One endpoint: its queue, its transfers in flight, and where it stands with the controller.
//!
//! Called by [`endpoints`](super::endpoints) for what the core asks, by [`unlink`](super::unlink)
//! while it leaves a schedule, and by `poll` for completions. Nothing here touches a register.
//!
//! The stages:
//!
//! ```text
//! Free -> Opened -> Linked -> Leaving -> Draining -> Out -> Linked ...
//!                      ^          |          `----> Free (closed)
//!                      `----------' (only its identity changed)
//! ```

use super::periodic::Slot;
use super::queue::{Prepared, Queue, Span, Watched};
use super::queue_head::{self, Identity};
use super::storage::{NO_RECORD, Records};
use super::transfer::{Ending, TransferRecord};
use super::transfer_descriptor::{TOKEN, Token as QtdToken};
use crate::dma::{self, Segment};
use crate::host::{
    EndpointHandle, Event, Handling, HostError, Outcome, Report, Sequence, Token, Transfer,
    TransferEnd,
};
use crate::time::Instant;

/// Why an endpoint leaves its schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reason {
    /// The core takes its transfers back.
    Quiesce,
    /// It is closed.
    Close,
    /// Its queue head must say something else: another address or packet size.
    Change,
}

/// When the controller has let go of a queue head that is out of its schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    /// After a doorbell that is yet to be rung.
    NextDoorbell,
    /// When the doorbell that was rung is answered.
    Doorbell,
    /// At a time (periodic schedule).
    Until(Instant),
}

/// Where an endpoint stands with the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Not in use.
    Free,
    /// Reserved, not in a schedule yet.
    Opened,
    /// In its schedule.
    Linked,
    /// Out of its schedule, but the controller may hold a copy of the queue head.
    Leaving(Reason, Wait),
    /// The controller has let go; transfers are being handed back.
    Draining(Reason),
    /// Out, and empty.
    Out,
}

/// A place for an endpoint. The caller of the stack provides a slice of them.
#[derive(Debug)]
pub struct EndpointRecord {
    pub(super) generation: u8,
    pub(super) stage: Stage,
    /// Index of its device.
    pub(super) device: u8,
    /// What its queue head says, valid unless free.
    pub(super) identity: Option<Identity>,
    /// Its queue, unless free.
    pub(super) queue: Option<Queue>,
    /// To be dropped at the next `configure`.
    pub(super) closing: bool,
    /// It stopped on an error and waits for `quiesce`.
    pub(super) halted: bool,
    /// Asynchronous list: index of the endpoint behind it.
    pub(super) list_next: Option<u8>,
    /// Periodic schedule: frames from one poll to the next, and in which of them.
    pub(super) period: u8,
    pub(super) phase: u8,
    /// A transfer that must not be seen before the queue head is back in its schedule.
    held: Option<Prepared>,
    /// A transfer that must not be seen before those in front of it have ended well, and how many they
    /// are.
    kept: Option<Prepared>,
    before_kept: u8,
    /// Oldest and newest record in flight.
    front: u16,
    back: u16,
    in_flight: u8,
    /// The most transfers in flight.
    pub(super) limit: u8,
    /// The qTD that is to end next, if anything is in flight and the queue has not halted.
    watched: Option<Watched>,
}

impl EndpointRecord {
    /// An unused place.
    pub const EMPTY: Self = Self {
        generation: 0,
        stage: Stage::Free,
        device: 0,
        identity: None,
        queue: None,
        closing: false,
        halted: false,
        list_next: None,
        period: 0,
        phase: 0,
        held: None,
        kept: None,
        before_kept: 0,
        front: NO_RECORD,
        back: NO_RECORD,
        in_flight: 0,
        limit: 0,
        watched: None,
    };

    /// Makes the place an endpoint of `device`.
    pub(super) fn open(&mut self, device: u8, identity: Identity, queue: Queue, limit: u8) {
        *self = Self {
            generation: self.generation,
            stage: Stage::Opened,
            device,
            identity: Some(identity),
            queue: Some(queue),
            limit,
            ..Self::EMPTY
        };
    }

    /// Gives an interrupt endpoint its frames and microframes.
    pub(super) fn poll_in(&mut self, slot: Slot) {
        self.period = slot.period;
        self.phase = slot.phase;
        if let Some(identity) = self.identity.as_mut() {
            identity.masks = slot.masks;
        }
    }

    /// Makes the place free: handles to it are stale from now on. Returns what it held.
    pub(super) fn vacate(&mut self) -> Option<Queue> {
        let queue = self.queue.take();
        *self = Self {
            generation: self.generation.wrapping_add(1),
            ..Self::EMPTY
        };
        queue
    }

    /// Its handle, for its place `index`.
    pub(super) fn handle(&self, index: u8) -> EndpointHandle {
        EndpointHandle {
            index,
            generation: self.generation,
        }
    }

    /// Whether anything is in flight.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Whether the controller is at work on the queue for this handle.
    #[inline]
    pub(super) fn is_live(&self, handle: EndpointHandle) -> bool {
        self.generation == handle.generation && self.stage == Stage::Linked && !self.halted
    }

    /// Queues one piece of memory on a live queue, if it fits one qTD and there is room for it. `false`
    /// if not: then nothing was changed.
    #[inline]
    pub(super) fn submit_one(
        &mut self,
        records: &mut Records<'_>,
        token: Token,
        piece: &Segment,
        (handling, shown): (Handling, Shown),
    ) -> bool {
        let before = self.in_flight;
        if before == self.limit || self.kept.is_some() {
            return false;
        }
        let Some(prepared) = self
            .queue
            .as_mut()
            .and_then(|queue| queue.prepare_one(handling.direction, handling.report, piece))
        else {
            return false;
        };
        let record = TransferRecord {
            token,
            report: handling.report,
            span: prepared.span,
            length: piece.length(),
            ..TransferRecord::EMPTY
        };
        self.append(records, record);
        if shown == Shown::InItsTurn && before != 0 {
            self.kept = Some(prepared);
            self.before_kept = before;
        } else if let Some(queue) = &self.queue {
            queue.activate(prepared);
        }
        true
    }

    /// Shows the controller the transfer that was kept from it.
    fn let_go(&mut self) {
        if let (Some(kept), Some(queue)) = (self.kept.take(), &self.queue) {
            queue.activate(kept);
            dma::release();
        }
    }

    /// Queues a transfer.
    pub(super) fn submit(
        &mut self,
        records: &mut Records<'_>,
        transfer: &Transfer<'_>,
    ) -> Result<(), HostError> {
        let visible = self.stage == Stage::Linked && !self.halted;
        if !visible {
            self.may_hold()?;
        }
        if self.kept.is_some() {
            return Err(HostError::QueueFull);
        }
        if self.in_flight == self.limit {
            self.retire(records);
            if self.in_flight == self.limit {
                return Err(HostError::QueueFull);
            }
        }
        let prepared = match self.prepare(transfer) {
            Err(HostError::QueueFull) => {
                self.retire(records);
                self.prepare(transfer)?
            }
            other => other?,
        };
        let record = TransferRecord {
            token: transfer.token,
            report: transfer.report,
            span: prepared.span,
            control: transfer.setup.is_some(),
            length: transfer.length(),
            ..TransferRecord::EMPTY
        };
        self.append(records, record);
        // Nothing leads to it past one that is held.
        if visible || self.held.is_some() {
            if let Some(queue) = &self.queue {
                queue.activate(prepared);
            }
        } else {
            self.held = Some(prepared);
        }
        Ok(())
    }

    /// Whether a transfer may be queued although the controller cannot see it yet.
    #[cold]
    fn may_hold(&self) -> Result<(), HostError> {
        match self.stage {
            Stage::Leaving(Reason::Change, _) | Stage::Draining(Reason::Change) if !self.halted => {
                Ok(())
            }
            Stage::Free | Stage::Opened => Err(HostError::Stale),
            _ => Err(HostError::Halted),
        }
    }

    fn prepare(&mut self, transfer: &Transfer<'_>) -> Result<Prepared, HostError> {
        let identity = self.identity.as_ref().ok_or(HostError::Stale)?;
        let queue = self.queue.as_mut().ok_or(HostError::Stale)?;
        queue.prepare(transfer, identity.max_packet.into())
    }

    #[inline]
    fn append(&mut self, records: &mut Records<'_>, record: TransferRecord) {
        // A record is there: the endpoint was promised `limit` of them.
        let Some(index) = records.take(record) else {
            return;
        };
        match records.get_mut(self.back) {
            Some(back) if self.in_flight != 0 => back.next = index,
            _ => {
                self.front = index;
                self.watch(record.span.first);
            }
        }
        self.back = index;
        self.in_flight += 1;
    }

    /// Has the qTD at `position` looked at for the end of the oldest transfer.
    #[inline]
    fn watch(&mut self, position: u16) {
        self.watched = self.queue.as_ref().map(|queue| queue.watch(position));
    }

    /// Takes the oldest transfer out of the line. The next one, if there is one, lies right behind it.
    /// Returns whether that is the one which is kept from the controller.
    #[inline]
    fn pop(&mut self, records: &mut Records<'_>) -> bool {
        let index = self.front;
        let (Some(record), Some(queue)) = (records.get_mut(index), self.queue.as_mut()) else {
            return false;
        };
        let Span { first, count } = record.span;
        self.front = record.next;
        records.put(index);
        queue.give_back(count);
        self.in_flight -= 1;
        self.watched = match self.in_flight {
            0 => None,
            _ => Some(queue.watch(queue.after(first, count))),
        };
        match self.before_kept {
            0 => false,
            before => {
                self.before_kept = before - 1;
                before == 1
            }
        }
    }

    /// The token of the qTD that is to end next, if the controller is through with it: one read of
    /// memory.
    #[inline]
    pub(super) fn read_ended(&self) -> Option<QtdToken> {
        let token = self.watched?.read_token();
        (!token.is_set(TOKEN::ACTIVE)).then_some(token)
    }

    /// Takes the oldest transfer if it has one qTD, which has ended well with `token`, as nearly all
    /// have. What is to be told goes to `end`.
    #[inline]
    pub(super) fn take_good_end(
        &mut self,
        records: &mut Records<'_>,
        token: QtdToken,
        end: &mut TransferEnd,
    ) -> Taken {
        let Some(record) = records.get_mut(self.front) else {
            return Taken::Otherwise;
        };
        let Some(ending) = record.good_ending(token) else {
            return Taken::Otherwise;
        };
        let (token, report) = (record.token, record.report);
        let kept_is_next = self.pop(records);
        if kept_is_next {
            self.let_go();
        }
        if !is_told(report, ending, kept_is_next) {
            return Taken::Quietly;
        }
        *end = end_of(token, ending);
        Taken::Told
    }

    /// Takes transfers that have ended until one of them is to be reported.
    #[inline(never)]
    pub(super) fn take_ended(&mut self, records: &mut Records<'_>) -> Option<TransferEnd> {
        loop {
            if self.in_flight == 0 || self.halted {
                return None;
            }
            let record = records.get_mut(self.front)?;
            let queue = self.queue.as_ref()?;
            let Some(ending) = record.progress(queue) else {
                self.watched = Some(queue.watch(queue.after(record.span.first, record.done)));
                return None;
            };
            let (token, report) = (record.token, record.report);
            self.halted = !ending.outcome.is_ok();
            let kept_is_next = self.pop(records);
            if self.halted {
                self.watched = None;
            } else if kept_is_next {
                self.let_go();
            }
            if is_told(report, ending, kept_is_next) {
                return Some(end_of(token, ending));
            }
        }
    }

    /// Drops quiet transfers at the front of the line that have ended well.
    pub(super) fn retire(&mut self, records: &mut Records<'_>) {
        while self.in_flight != 0 && !self.halted && self.stage == Stage::Linked {
            let (Some(record), Some(queue)) = (records.get_mut(self.front), &self.queue) else {
                return;
            };
            match record.progress(queue) {
                Some(ending) if !is_reported(record.report, ending) => {
                    if self.pop(records) {
                        self.let_go();
                    }
                }
                _ => return,
            }
        }
    }

    /// Hands the next transfer back after the controller has let go of the queue.
    pub(super) fn drain(&mut self, records: &mut Records<'_>, index: u8) -> Option<Event> {
        while self.in_flight != 0 {
            let record = records.get_mut(self.front)?;
            let unseen = self.before_kept == 0 && self.kept.take().is_some();
            let ending = if unseen || self.held.is_some() {
                Ending {
                    outcome: Outcome::Cancelled,
                    actual: 0,
                }
            } else {
                record.cancel(self.queue.as_ref()?)
            };
            let (token, report) = (record.token, record.report);
            self.pop(records);
            if is_reported(report, ending) {
                return Some(self.event(index, end_of(token, ending)));
            }
        }
        None
    }

    /// The event that tells of the end of one of its transfers, for its place `index`.
    #[inline]
    pub(super) fn event(&self, index: u8, end: TransferEnd) -> Event {
        Event::Transfer {
            endpoint: self.handle(index),
            token: end.token,
            outcome: end.outcome,
            actual: end.actual,
        }
    }

    /// Makes the queue head ready to go into its schedule empty, with its toggle at zero or as the
    /// device expects it. The queue head is out of its schedule.
    pub(super) fn prepare_restart(&mut self, sequence: Sequence) {
        if let Some(queue) = self.queue.as_mut() {
            let kept = match sequence {
                Sequence::Keep => {
                    queue_head::read_token(queue.memory())
                        & (TOKEN::TOGGLE::SET + TOKEN::PING::SET).value
                }
                Sequence::Reset => 0,
            };
            queue.rewind(kept);
        }
        self.halted = false;
        self.held = None;
        self.kept = None;
        self.before_kept = 0;
        self.write_identity();
    }

    /// Writes which endpoint the queue head is for. It is out of its schedule.
    pub(super) fn write_identity(&self) {
        if let (Some(identity), Some(queue)) = (&self.identity, &self.queue) {
            queue_head::write_identity(queue.memory(), identity.words());
        }
    }

    /// Shows the controller what was queued while the queue head was out of its schedule.
    pub(super) fn release_held(&mut self) {
        if let (Some(prepared), Some(queue)) = (self.held.take(), &self.queue) {
            queue.activate(prepared);
            dma::release();
        }
    }
}

/// When the controller is to see a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shown {
    /// When it has come to it.
    AtOnce,
    /// When all that is in front of it has ended well.
    InItsTurn,
}

/// What became of a transfer whose first qTD has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// It was taken, and its end is to be told.
    Told,
    /// It was taken, and nobody is to be told.
    Quietly,
    /// Nothing was done: it has more qTDs, or did not end well.
    Otherwise,
}

#[inline]
fn end_of(token: Token, ending: Ending) -> TransferEnd {
    TransferEnd {
        token,
        actual: ending.actual,
        outcome: ending.outcome,
    }
}

/// The same, where the next transfer may have been kept back for this one: its end then tells of both.
fn is_told(report: Report, ending: Ending, kept_is_next: bool) -> bool {
    is_reported(report, ending) && !(kept_is_next && ending.outcome == Outcome::Complete)
}

/// Whether a transfer that ended so is told to the core.
fn is_reported(report: Report, ending: Ending) -> bool {
    match report {
        Report::Always | Report::WithoutInterrupt => true,
        Report::Unexpected => ending.outcome != Outcome::Complete,
    }
}
