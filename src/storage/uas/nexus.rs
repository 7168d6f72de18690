//! One command in flight, as the machine remembers it.
//!
//! Called by [`machine`](super::machine) and [`tasks`](super::tasks) only.

use super::machine::{Cause, End, Tried, UasPipe};
use super::wire::ScsiStatus;
use crate::scsi::cdb::DataPhase;
use crate::scsi::sense::Sense;

/// Where a command, or a task management function, is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// No command has the tag.
    Free,
    /// The device has it, or will.
    Open,
    /// It is to be aborted, for this cause.
    Aborting(Cause),
    /// It has ended so at the device; its transfers may not have.
    Answered(ScsiStatus, Sense),
    /// The device has certainly given it up; its transfers may still be in flight.
    Dead(Cause),
    /// A task management function.
    Task,
    /// A task management function that had no answer: its tag is not used again.
    Lost,
}

/// How far the data has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Data {
    /// Its transfer is to be queued: at once with streams, when the device is ready without.
    Due,
    /// In flight.
    Queued,
    /// Taken back on behalf of another command; the rest is to be queued again.
    Recalled,
    /// Ended, or there is none.
    Done,
}

/// A tag and what has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nexus {
    pub(super) state: State,
    pub(super) lun: u8,
    /// What had been tried on the device already when the command began.
    pub(super) tried: Tried,
    pub(super) expected: DataPhase,
    pub(super) data: Data,
    /// Bytes that were moved so far.
    pub(super) moved: u32,
    /// A status read of its own is in flight, on its stream.
    pub(super) listening: bool,
    /// A task management function is about it: it must not end before that has.
    pub(super) held: bool,
    /// Its data transfer has failed.
    pub(super) fault: Option<Cause>,
}

impl Nexus {
    pub(super) const FREE: Self = Self {
        state: State::Free,
        lun: 0,
        tried: Tried::Nothing,
        expected: DataPhase::None,
        data: Data::Done,
        moved: 0,
        listening: false,
        held: false,
        fault: None,
    };

    /// Its command is over: the tag is free.
    #[inline]
    pub(super) fn leave(&mut self) {
        self.state = State::Free;
        self.data = Data::Done;
        self.listening = false;
        self.held = false;
        self.fault = None;
    }

    /// The pipe of its data.
    pub(super) fn data_pipe(&self) -> UasPipe {
        match self.expected {
            DataPhase::Out(_) => UasPipe::DataOut,
            DataPhase::In(_) | DataPhase::None => UasPipe::DataIn,
        }
    }

    /// Without streams: whether the device may say that it is ready for the data of the command on this
    /// pipe. Nothing of them has been queued then.
    #[inline]
    pub(super) fn awaits_data_on(&self, pipe: UasPipe) -> bool {
        self.state == State::Open && self.data == Data::Due && self.data_pipe() == pipe
    }

    /// Whether the device has the command, as far as is known.
    pub(super) fn is_alive(&self) -> bool {
        matches!(self.state, State::Open | State::Aborting(_))
    }

    /// Whether a status read belongs on its stream.
    pub(super) fn wants_status(&self) -> bool {
        self.is_alive() || matches!(self.state, State::Task | State::Lost)
    }

    /// Whether nothing of it is under way any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Answered(..) | State::Dead(_))
            && matches!(self.data, Data::Done)
            && !self.listening
            && !self.held
    }

    /// How it ended; it is over.
    pub(super) fn end(&self) -> End {
        match (self.state, self.fault) {
            // Good, and yet what came over the wire is not all of it.
            (State::Answered(ScsiStatus::Good, _), Some(cause)) => End::Failed(cause),
            (State::Answered(status, sense), _) => End::Status {
                status,
                sense,
                moved: self.moved.min(self.expected.length()),
            },
            (State::Dead(cause), _) => End::Failed(cause),
            _ => End::Failed(Cause::Timeout),
        }
    }
}
