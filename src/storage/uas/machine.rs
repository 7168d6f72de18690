//! The order of things on one UAS function: several commands at once, from COMMAND to SENSE, and what
//! is done about those that do not end.
//!
//! A machine without I/O. [`Machine::step`] takes what happened; then [`Machine::next_action`] is asked what
//! to do until it says [`Action::Wait`]. The transport carries it out. Two modes:
//!
//! - with streams, status and data of a command are queued on its stream before the command goes out,
//!   and each waits there for itself;
//! - without, one status read is posted always, and a data transfer is queued when the device says
//!   that it is ready for it: that keeps the order in which the device wants its one data phase a
//!   direction.
//!
//! Invariants: a tag ends ([`Action::Finish`]) when its nexus is gone at the device *and* none of its
//! transfers is in flight; a command goes out when its transfers are queued; at most one task
//! management function and one operation on a pipe are under way.
//!
//! Data that a device has passed over is taken back by stopping its pipe. With streams the neighbours'
//! data stay where they are ([`Machine::to_take_back`]); without, they come back too, and are queued
//! again from where they had come to.
//!
//! What comes back is weighed in `answers`; the rungs of recovery are in
//! `tasks`, the short ways of commands that nothing is wrong with in `calm`. Read UAS §4.3 and §6.

use super::nexus::{Data, Nexus, State};
use super::tags::{MAX_TAGS, TagSet};
use super::tasks::Task;
use super::wire::{ResponseCode, ScsiStatus, StatusUnit, Tag, TaskFunction, UnitFault};
use crate::host::{HostError, Outcome};
use crate::scsi::cdb::DataPhase;
use crate::scsi::luns::Luns;
use crate::scsi::sense::{Sense, Verdict};
use crate::usb::UsbError;

/// Whether the pipes have streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Status and data have a stream for each tag.
    Streams,
    /// They have none: the device says whose turn it is.
    Ready,
}

/// The four pipes (UAS §5.2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UasPipe {
    /// Commands and task management.
    Command,
    /// Status and readiness.
    Status,
    /// Data from the device.
    DataIn,
    /// Data to the device.
    DataOut,
}

/// Why a command ended without a status, or not as its status says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// No answer within the deadline.
    Timeout,
    /// What came for it on the status pipe is no unit.
    Status(UnitFault),
    /// The device refused it.
    Refused(ResponseCode),
    /// A data transfer failed on the wire or in the controller.
    Transfer(Outcome),
    /// Its unit was reset for another command's sake.
    Neighbour,
}

/// How a command ended. Its nexus is gone in either case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// With a status.
    Status {
        /// How.
        status: ScsiStatus,
        /// What the device says about it.
        sense: Sense,
        /// Bytes of data that were moved.
        moved: u32,
    },
    /// Without one.
    Failed(Cause),
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// The transfer of a unit on the command pipe ended.
    Command(Outcome),
    /// A data transfer ended, with so many bytes.
    Data {
        /// Of this command.
        tag: Tag,
        /// How.
        outcome: Outcome,
        /// Bytes.
        actual: u32,
    },
    /// A status read ended.
    Status {
        /// On the stream of this tag; without streams `None`.
        stream: Option<Tag>,
        /// The unit that came, or how the transfer failed.
        result: Result<Result<StatusUnit, UnitFault>, Outcome>,
    },
    /// The operation on a pipe ended.
    Operated(Result<(), UsbError>),
    /// The deadline of a command, or of a task management function, has passed.
    Late(Tag),
    /// The deadline of the operation on a pipe has passed.
    OperationLate,
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Queue a status read: on the stream of this tag, or the only one.
    ReadStatus(Option<Tag>),
    /// Queue the data of a command from this byte on.
    QueueData(Tag, u32),
    /// Send the command.
    SendCommand(Tag),
    /// Send a task management function, for a unit; it has a deadline of its own.
    SendTask(Tag, TaskFunction, u8),
    /// Take all transfers of a pipe back and leave it usable.
    Recall(UasPipe),
    /// The same, and clear the device's halt.
    ClearHalt(UasPipe),
    /// The command has ended well, and its data has not: give that a moment, then say
    /// [`Input::Late`].
    Linger(Tag),
    /// The command has ended; nothing of it is under way any more.
    Finish(Tag, End),
    /// Nothing short of a reset of the port can help; all commands end when the controller has closed
    /// the device.
    GiveUp,
    /// Wait for what is under way.
    Wait,
}

/// The highest of the functions that have brought the device back in step, since it has ended a command last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tried {
    /// None was needed.
    Nothing,
    /// ABORT TASK.
    Abort,
    /// LOGICAL UNIT RESET.
    UnitReset,
}

/// What is to be done on a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PipeWork {
    None,
    Recall,
    ClearHalt,
}

/// Things to be done, by tag.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    pub(super) command: TagSet,
    pub(super) status: TagSet,
    pub(super) data: TagSet,
    pub(super) linger: TagSet,
    pub(super) end: TagSet,
    /// To be aborted when the present task management function is over.
    pub(super) abort: TagSet,
}

impl Due {
    #[inline]
    fn is_empty(&self) -> bool {
        let transfers = self.command.with(self.status).with(self.data);
        let rest = self.linger.with(self.end).with(self.abort);
        transfers.with(rest).is_empty()
    }
}

/// Counters for diagnosis. They wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Units for tags that nothing waits for, or on the wrong stream. They were ignored.
    pub strays: u32,
    /// What came on the status pipe and is no unit.
    pub bad_units: u32,
    /// Commands that were aborted.
    pub aborts: u32,
    /// Resets of a unit.
    pub unit_resets: u32,
}

/// The machine of one UAS function.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    pub(super) mode: Mode,
    pub(super) nexuses: [Nexus; MAX_TAGS as usize],
    pub(super) due: Due,
    /// The task management function under way.
    pub(super) task: Option<Task>,
    /// Whether the device has needed a function in this episode: it is not asked for the same again.
    pub(super) tried: Tried,
    /// Tags of commands; the two above are for task management.
    pub(super) depth: u8,
    /// The one status read is posted.
    pub(super) reading: bool,
    wanted: [PipeWork; 4],
    pub(super) running: Option<UasPipe>,
    /// The operation under way clears a halt.
    clearing: bool,
    /// Streams whose status read failed.
    pub(super) deaf: TagSet,
    /// Streams of the data pipes, in and out, that stand at a transfer which failed, whatever has become of their
    /// commands since: until an operation on the pipe has named them, the controller would go on there.
    stalled: [TagSet; 2],
    /// Those of them that the operation under way has named.
    named: TagSet,
    /// Failures of the status pipe in a row.
    pub(super) bad_units: u8,
    gave_up: bool,
    said_so: bool,
    /// Units that were reset, and of which nobody was told yet.
    pub(super) reset_units: Luns,
    pub(super) counters: Counters,
}

impl Machine {
    /// No commands. `depth` is that of the function's [`Tags`](super::tags::Tags).
    #[must_use]
    pub const fn new(mode: Mode, depth: u8) -> Self {
        const NONE: TagSet = TagSet::EMPTY;
        Self {
            mode,
            nexuses: [Nexus::FREE; MAX_TAGS as usize],
            due: Due {
                command: NONE,
                status: NONE,
                data: NONE,
                linger: NONE,
                end: NONE,
                abort: NONE,
            },
            task: None,
            tried: Tried::Nothing,
            depth,
            reading: false,
            wanted: [PipeWork::None; 4],
            running: None,
            clearing: false,
            deaf: TagSet::EMPTY,
            stalled: [TagSet::EMPTY; 2],
            named: TagSet::EMPTY,
            bad_units: 0,
            gave_up: false,
            said_so: false,
            reset_units: Luns::NONE,
            counters: Counters {
                strays: 0,
                bad_units: 0,
                aborts: 0,
                unit_resets: 0,
            },
        }
    }

    /// Whether the pipes have streams.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What was odd so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What has brought the device back in step, if nothing has ended well or badly at it since.
    #[must_use]
    pub fn tried(&self) -> Tried {
        self.tried
    }

    /// The units that were reset since it was asked last. Whatever their caches held may be lost, and the device
    /// need not say so.
    pub fn take_reset_units(&mut self) -> Luns {
        core::mem::take(&mut self.reset_units)
    }

    /// Whether commands may begin: not while the device is being brought back in step, so that no
    /// command waits behind a pipe that is stopped.
    #[inline]
    #[must_use]
    pub fn takes_commands(&self) -> bool {
        !self.gave_up && self.task.is_none() && self.running.is_none()
    }

    /// The data that a command announced.
    #[inline]
    #[must_use]
    pub fn expected(&self, tag: Tag) -> DataPhase {
        let nexus = self.nexuses.get(usize::from(tag.number()) - 1);
        nexus.map_or(DataPhase::None, |nexus| nexus.expected)
    }

    /// With streams, those of a pipe whose transfers an operation on it must take back. The others are
    /// best left as they are: how far they have come is the controller's to know.
    #[must_use]
    pub fn to_take_back(&self, pipe: UasPipe) -> TagSet {
        let mut tags = TagSet::EMPTY;
        for (number, nexus) in (1..).zip(&self.nexuses) {
            let is_one = match pipe {
                UasPipe::Command => false,
                UasPipe::Status => nexus.listening && !nexus.wants_status(),
                _ if nexus.data_pipe() != pipe => false,
                _ => {
                    nexus.fault.is_some()
                        || nexus.data == Data::Queued && nexus.state != State::Open
                }
            };
            if let (true, Some(tag)) = (is_one, Tag::new(number)) {
                tags.insert(tag);
            }
        }
        tags = tags.with(match pipe {
            UasPipe::Command => TagSet::EMPTY,
            UasPipe::Status => self.deaf,
            UasPipe::DataIn => self.stalled[0],
            UasPipe::DataOut => self.stalled[1],
        });
        match Tag::new(u16::from(self.depth) + 2) {
            // Whatever it was for has ended by itself; one stream is to be named all the same.
            Some(tag) if tags.is_empty() => tags.insert(tag),
            _ => {}
        }
        tags
    }

    /// Whether nothing is due, on any pipe; without streams the one status read is posted too.
    #[inline]
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let listens = self.reading || self.mode == Mode::Streams;
        listens && self.due.is_empty() && self.wanted == [PipeWork::None; 4] && !self.gave_up
    }

    /// Nothing is under way, and what comes now has nothing to do with what was: nothing was tried on the device
    /// for it.
    pub fn forget_tried(&mut self) {
        self.tried = Tried::Nothing;
    }

    /// Begins a command, whose tag is free.
    #[inline]
    pub fn begin(&mut self, tag: Tag, lun: u8, data: DataPhase) {
        let streams = self.mode == Mode::Streams;
        let tried = self.tried;
        let Some(nexus) = self.nexus_mut(tag) else {
            return;
        };
        *nexus = Nexus {
            state: State::Open,
            lun,
            tried,
            expected: data,
            data: match data {
                DataPhase::None => Data::Done,
                DataPhase::In(_) | DataPhase::Out(_) => Data::Due,
            },
            ..Nexus::FREE
        };
        self.due.command.insert(tag);
        if streams {
            self.due.status.insert(tag);
            if data != DataPhase::None {
                self.due.data.insert(tag);
            }
        }
    }

    /// Begins a command again that has ended, and whose tag no other has got since.
    pub fn begin_again(&mut self, tag: Tag) {
        if let Some(&mut Nexus { lun, expected, .. }) = self.nexus_mut(tag) {
            self.begin(tag, lun, expected);
        }
    }

    /// Takes what happened.
    pub fn step(&mut self, input: Input) {
        match input {
            Input::Data {
                tag,
                outcome,
                actual,
            } => self.data_ended(tag, outcome, actual),
            Input::Status { stream, result } => self.status_ended(stream, result),
            Input::Command(outcome) => {
                // Taken back with its device, or a unit that the device did not even take.
                if !outcome.is_ok() {
                    self.give_up();
                }
            }
            Input::Operated(Ok(())) => self.operated(),
            Input::Operated(Err(UsbError::Controller(HostError::Halted))) if !self.clearing => {
                // It was found halted: the device's halt is to be cleared too.
                if let Some(pipe) = self.running.take() {
                    *self.work_mut(pipe) = PipeWork::ClearHalt;
                }
            }
            Input::Operated(Err(_)) | Input::OperationLate => {
                if self.running.is_some() {
                    self.give_up();
                }
            }
            Input::Late(tag) => self.late(tag),
        }
    }

    /// What to do next. To be asked until it says [`Action::Wait`].
    pub fn next_action(&mut self) -> Action {
        if self.gave_up {
            return match core::mem::replace(&mut self.said_so, true) {
                false => Action::GiveUp,
                true => Action::Wait,
            };
        }
        if let Some(tag) = self.due.end.next() {
            return self.finish(tag);
        }
        if let Some(action) = self.next_transfer() {
            return action;
        }
        if let Some(tag) = self.due.linger.next() {
            return Action::Linger(tag);
        }
        self.next_operation()
    }

    fn finish(&mut self, tag: Tag) -> Action {
        let Some(nexus) = self.nexus_mut(tag) else {
            return Action::Wait;
        };
        let end = nexus.end();
        nexus.leave();
        match end {
            // It says that it was reset, as it must, and nothing about whether that has helped.
            End::Status { sense, .. } if sense.verdict() == Verdict::ResetHappened => {}
            End::Status { .. } => self.tried = Tried::Nothing,
            End::Failed(_) => {}
        }
        Action::Finish(tag, end)
    }

    /// The next transfer that can be queued.
    #[inline]
    fn next_transfer(&mut self) -> Option<Action> {
        if self.is_open(UasPipe::Status) {
            match self.mode {
                Mode::Streams => {
                    if let Some(tag) = self.due.status.next() {
                        if let Some(nexus) = self.nexus_mut(tag) {
                            nexus.listening = true;
                        }
                        return Some(Action::ReadStatus(Some(tag)));
                    }
                }
                Mode::Ready => {
                    if !core::mem::replace(&mut self.reading, true) {
                        return Some(Action::ReadStatus(None));
                    }
                }
            }
        }
        if !self.due.data.is_empty()
            && let Some(action) = self.next_data()
        {
            return Some(action);
        }
        if self.due.command.is_empty() {
            return None;
        }
        // A command goes out behind its own transfers.
        let ready = self.due.command;
        let ready = ready.without(self.due.status);
        let ready = match self.mode {
            Mode::Streams => ready.without(self.due.data),
            Mode::Ready => ready,
        };
        let tag = ready.lowest()?;
        self.due.command.remove(tag);
        match &self.task {
            Some(task) if task.tag == tag => Some(Action::SendTask(tag, task.function(), task.lun)),
            _ => Some(Action::SendCommand(tag)),
        }
    }

    fn next_data(&mut self) -> Option<Action> {
        let pipes = [UasPipe::DataIn, UasPipe::DataOut].map(|pipe| self.is_open(pipe));
        for tag in self.due.data {
            let Some(nexus) = self.nexus_mut(tag) else {
                continue;
            };
            let [data_in, data_out] = pipes;
            let open = match nexus.data_pipe() {
                UasPipe::DataOut => data_out,
                _ => data_in,
            };
            if open {
                nexus.data = Data::Queued;
                let from = nexus.moved;
                self.due.data.remove(tag);
                return Some(Action::QueueData(tag, from));
            }
        }
        None
    }

    fn next_operation(&mut self) -> Action {
        if self.running.is_some() {
            return Action::Wait;
        }
        for pipe in [UasPipe::Status, UasPipe::DataIn, UasPipe::DataOut] {
            let work = core::mem::replace(self.work_mut(pipe), PipeWork::None);
            if work != PipeWork::None {
                self.running = Some(pipe);
                self.clearing = work == PipeWork::ClearHalt;
                self.named = self.stalled_mut(pipe).map_or(TagSet::EMPTY, |it| *it);
                return match work {
                    PipeWork::ClearHalt => Action::ClearHalt(pipe),
                    _ => Action::Recall(pipe),
                };
            }
        }
        Action::Wait
    }

    /// Whether transfers may be queued on a pipe.
    #[inline]
    pub(super) fn is_open(&self, pipe: UasPipe) -> bool {
        let [command, status, data_in, data_out] = self.wanted;
        let wanted = match pipe {
            UasPipe::Command => command,
            UasPipe::Status => status,
            UasPipe::DataIn => data_in,
            UasPipe::DataOut => data_out,
        };
        wanted == PipeWork::None && self.running != Some(pipe)
    }

    pub(super) fn work_mut(&mut self, pipe: UasPipe) -> &mut PipeWork {
        let [command, status, data_in, data_out] = &mut self.wanted;
        match pipe {
            UasPipe::Command => command,
            UasPipe::Status => status,
            UasPipe::DataIn => data_in,
            UasPipe::DataOut => data_out,
        }
    }

    /// The streams of a data pipe that stand at a transfer which failed.
    pub(super) fn stalled_mut(&mut self, pipe: UasPipe) -> Option<&mut TagSet> {
        let [data_in, data_out] = &mut self.stalled;
        match pipe {
            UasPipe::DataIn => Some(data_in),
            UasPipe::DataOut => Some(data_out),
            UasPipe::Command | UasPipe::Status => None,
        }
    }

    /// An operation on a pipe is done: the streams that it has named are past what had failed there.
    pub(super) fn moved_on(&mut self, pipe: UasPipe) {
        let named = self.named;
        if let Some(stalled) = self.stalled_mut(pipe) {
            *stalled = stalled.without(named);
        }
    }

    /// Asks for a pipe to be stopped. A halt that is to be cleared does as much. Without streams so does
    /// the operation that is under way on it: all that was queued comes back before that ends. With
    /// streams only what was named when that began comes back.
    pub(super) fn want_recall(&mut self, pipe: UasPipe) {
        if self.running == Some(pipe) && self.mode == Mode::Ready {
            return;
        }
        let work = self.work_mut(pipe);
        if *work == PipeWork::None {
            *work = PipeWork::Recall;
        }
    }

    #[inline]
    pub(super) fn nexus_mut(&mut self, tag: Tag) -> Option<&mut Nexus> {
        self.nexuses.get_mut(usize::from(tag.number()) - 1)
    }

    pub(super) fn give_up(&mut self) {
        self.gave_up = true;
    }

    /// Ends the command if nothing of it is under way any more.
    #[inline]
    pub(super) fn settle(&mut self, tag: Tag) {
        if self.nexus_mut(tag).is_some_and(|nexus| nexus.is_over()) {
            self.due.end.insert(tag);
        }
    }
}

#[cfg(test)]
#[path = "machine_tests/mod.rs"]
mod tests;
