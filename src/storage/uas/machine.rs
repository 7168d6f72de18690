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
//! Data that a device has passed over is taken back by stopping its pipe. That takes back the data of
//! its neighbours too: theirs is queued again from where it had come to.
//!
//! The rungs of recovery are in [`tasks`](super::tasks). Read UAS §4.3 and §6.

use super::nexus::{Data, Nexus, State};
use super::tags::{MAX_TAGS, TagSet};
use super::tasks::Task;
use super::wire::{ResponseCode, ScsiStatus, StatusUnit, Tag, TaskFunction, UnitFault};
use crate::host::Outcome;
use crate::scsi::cdb::DataPhase;
use crate::scsi::sense::Sense;
use crate::usb::UsbError;

/// How often in a row the status pipe may fail or bring what is no unit, before the device counts as
/// broken. Policy: a bridge in trouble has one bad answer, one in the wrong mode has nothing else.
const BAD_UNITS: u8 = 4;

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
    Transfer(UsbError),
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

/// What is to be done on a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PipeWork {
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
    mode: Mode,
    pub(super) nexuses: [Nexus; MAX_TAGS as usize],
    pub(super) due: Due,
    /// The task management function under way.
    pub(super) task: Option<Task>,
    /// Tags of commands; the two above are for task management.
    pub(super) depth: u8,
    /// The one status read is posted.
    reading: bool,
    wanted: [PipeWork; 4],
    running: Option<UasPipe>,
    /// Failures of the status pipe in a row.
    bad_units: u8,
    gave_up: bool,
    said_so: bool,
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
            depth,
            reading: false,
            wanted: [PipeWork::None; 4],
            running: None,
            bad_units: 0,
            gave_up: false,
            said_so: false,
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

    /// Whether commands may begin: not while the device is being brought back in step, so that no
    /// command waits behind a pipe that is stopped.
    #[inline]
    #[must_use]
    pub fn takes_commands(&self) -> bool {
        !self.gave_up && self.task.is_none() && self.running.is_none()
    }

    /// Begins a command, whose tag is free.
    #[inline]
    pub fn begin(&mut self, tag: Tag, lun: u8, data: DataPhase) {
        let streams = self.mode == Mode::Streams;
        let Some(nexus) = self.nexus_mut(tag) else {
            return;
        };
        *nexus = Nexus {
            state: State::Open,
            lun,
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
        *nexus = Nexus::FREE;
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
    fn is_open(&self, pipe: UasPipe) -> bool {
        let [command, status, data_in, data_out] = self.wanted;
        let wanted = match pipe {
            UasPipe::Command => command,
            UasPipe::Status => status,
            UasPipe::DataIn => data_in,
            UasPipe::DataOut => data_out,
        };
        wanted == PipeWork::None && self.running != Some(pipe)
    }

    fn work_mut(&mut self, pipe: UasPipe) -> &mut PipeWork {
        let [command, status, data_in, data_out] = &mut self.wanted;
        match pipe {
            UasPipe::Command => command,
            UasPipe::Status => status,
            UasPipe::DataIn => data_in,
            UasPipe::DataOut => data_out,
        }
    }

    /// Asks for a pipe to be stopped. A halt that is to be cleared does as much, and so does the
    /// operation that is under way on it: all that was queued comes back before that ends.
    pub(super) fn want_recall(&mut self, pipe: UasPipe) {
        if self.running == Some(pipe) {
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

/// Data.
impl Machine {
    fn data_ended(&mut self, tag: Tag, outcome: Outcome, actual: u32) {
        let Some(nexus) = self.nexus_mut(tag) else {
            return;
        };
        if nexus.data != Data::Queued {
            return;
        }
        nexus.moved = nexus.moved.saturating_add(actual);
        match outcome {
            Outcome::Complete | Outcome::Short => nexus.data = Data::Done,
            Outcome::Cancelled if nexus.is_alive() => nexus.data = Data::Recalled,
            Outcome::Cancelled => nexus.data = Data::Done,
            failed => {
                nexus.data = Data::Done;
                let error = UsbError::from_outcome(failed).unwrap_or(UsbError::NoAnswer);
                nexus.fault = Some(Cause::Transfer(error));
                let pipe = nexus.data_pipe();
                *self.work_mut(pipe) = PipeWork::ClearHalt;
            }
        }
        self.settle(tag);
    }

    /// The device is ready for the data of a command.
    fn ready(&mut self, tag: Tag, pipe: UasPipe) {
        let is_due = self.mode == Mode::Ready
            && self.nexus_mut(tag).is_some_and(|nexus| {
                nexus.is_alive() && nexus.data == Data::Due && nexus.data_pipe() == pipe
            });
        if is_due && !self.due.data.contains(tag) {
            self.due.data.insert(tag);
        } else {
            self.stray();
        }
    }

    /// A pipe is usable again: what was taken back for another's sake is queued again.
    fn operated(&mut self) {
        let Some(pipe) = self.running.take() else {
            return;
        };
        if pipe == UasPipe::Status {
            self.reading = false;
        }
        for tag in TagSet::first(MAX_TAGS) {
            let streams = self.mode == Mode::Streams;
            let Some(nexus) = self.nexus_mut(tag) else {
                break;
            };
            match pipe {
                UasPipe::Status => {
                    nexus.listening = false;
                    if streams && nexus.wants_status() {
                        self.due.status.insert(tag);
                    }
                }
                _ if nexus.data == Data::Recalled && nexus.data_pipe() == pipe => {
                    if nexus.is_alive() {
                        self.due.data.insert(tag);
                    } else {
                        nexus.data = Data::Done;
                    }
                }
                _ => {}
            }
            self.settle(tag);
        }
    }
}

/// Status.
impl Machine {
    fn status_ended(
        &mut self,
        stream: Option<Tag>,
        result: Result<Result<StatusUnit, UnitFault>, Outcome>,
    ) {
        match stream {
            Some(tag) => {
                if let Some(nexus) = self.nexus_mut(tag) {
                    nexus.listening = false;
                }
            }
            None => self.reading = false,
        }
        match result {
            Ok(Ok(unit)) => {
                self.bad_units = 0;
                self.heard(stream, unit);
            }
            Ok(Err(fault)) => self.bad_unit(stream, fault),
            // Taken back for another's sake: read again when the pipe is usable.
            Err(Outcome::Cancelled) => {}
            Err(_) => {
                *self.work_mut(UasPipe::Status) = PipeWork::ClearHalt;
                self.count_bad_unit();
            }
        }
        if let Some(tag) = stream {
            self.listen_again(tag);
        }
    }

    /// A command that is still to be answered keeps its status read.
    fn listen_again(&mut self, tag: Tag) {
        let open = self.is_open(UasPipe::Status);
        match self.nexus_mut(tag) {
            // When the pipe is usable again, all are.
            Some(nexus) if nexus.wants_status() && !nexus.listening && open => {
                self.due.status.insert(tag);
            }
            _ => self.settle(tag),
        }
    }

    fn count_bad_unit(&mut self) {
        self.counters.bad_units = self.counters.bad_units.wrapping_add(1);
        self.bad_units += 1;
        if self.bad_units >= BAD_UNITS {
            self.give_up();
        }
    }

    /// What came is no unit. With streams it is known whose it should have been.
    fn bad_unit(&mut self, stream: Option<Tag>, fault: UnitFault) {
        self.count_bad_unit();
        if let Some(tag) = stream {
            self.abort(tag, Cause::Status(fault));
        }
    }

    pub(super) fn stray(&mut self) {
        self.counters.strays = self.counters.strays.wrapping_add(1);
    }

    fn heard(&mut self, stream: Option<Tag>, unit: StatusUnit) {
        let (StatusUnit::Sense { tag, .. }
        | StatusUnit::Response { tag, .. }
        | StatusUnit::ReadReady(tag)
        | StatusUnit::WriteReady(tag)) = unit;
        if stream.is_some_and(|stream| stream != tag) {
            return self.stray();
        }
        match unit {
            StatusUnit::Sense { status, sense, .. } => self.answered(tag, status, sense),
            StatusUnit::Response { code, .. } => self.responded(tag, code),
            StatusUnit::ReadReady(_) => self.ready(tag, UasPipe::DataIn),
            StatusUnit::WriteReady(_) => self.ready(tag, UasPipe::DataOut),
        }
    }

    /// A command has ended at the device.
    #[inline]
    pub(super) fn answered(&mut self, tag: Tag, status: ScsiStatus, sense: Sense) {
        let Some(nexus) = self.nexus_mut(tag).filter(|nexus| nexus.is_alive()) else {
            return self.stray();
        };
        nexus.state = State::Answered(status, sense);
        match nexus.data {
            Data::Queued if status == ScsiStatus::Good => self.due.linger.insert(tag),
            Data::Queued => {
                let pipe = nexus.data_pipe();
                self.want_recall(pipe);
            }
            // The device has left it out, or ended the command while it was taken back.
            Data::Due | Data::Recalled => {
                nexus.data = Data::Done;
                self.due.data.remove(tag);
            }
            Data::Done => {}
        }
        self.settle(tag);
    }

    fn responded(&mut self, tag: Tag, code: ResponseCode) {
        if self.task.is_some_and(|task| task.tag == tag) {
            return self.task_ended(code);
        }
        let Some(nexus) = self.nexus_mut(tag) else {
            return self.stray();
        };
        match (nexus.state, code) {
            // The device has given everything up with it, whatever it was.
            (State::Open | State::Aborting(_), ResponseCode::OverlappedTag) => self.give_up(),
            (State::Open, code) => self.bury(tag, Cause::Refused(code)),
            // The late end of a function that was given up: its tag is good again.
            (State::Lost, _) => {
                nexus.state = State::Free;
                self.stray();
            }
            _ => self.stray(),
        }
    }

    /// The device has certainly given a command up: its transfers are taken back.
    pub(super) fn bury(&mut self, tag: Tag, cause: Cause) {
        let Some(nexus) = self.nexus_mut(tag) else {
            return;
        };
        nexus.state = State::Dead(cause);
        let (listening, queued, pipe) = (
            nexus.listening,
            nexus.data == Data::Queued,
            nexus.data_pipe(),
        );
        if matches!(nexus.data, Data::Due | Data::Recalled) {
            nexus.data = Data::Done;
        }
        self.due.data.remove(tag);
        self.due.status.remove(tag);
        self.due.command.remove(tag);
        if listening {
            self.want_recall(UasPipe::Status);
        }
        if queued {
            self.want_recall(pipe);
        }
        self.settle(tag);
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
