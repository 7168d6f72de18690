//! What comes back from the device: data and status, and what it means for each tag.
//!
//! Called by [`machine`](super::machine), whose other half this is. What a unit says is weighed against
//! the state of its tag: what fits nothing is counted and ignored. Read UAS §6.2.5 to §6.2.8.

use super::machine::{Cause, Machine, Mode, PipeWork, UasPipe};
use super::nexus::{Data, State};
use super::tags::{MAX_TAGS, TagSet};
use super::wire::{ResponseCode, ScsiStatus, StatusUnit, Tag, UnitFault};
use crate::host::Outcome;
use crate::scsi::sense::Sense;

/// How often in a row the status pipe may fail or bring what is no unit, before the device counts as
/// broken. Policy: a bridge in trouble has one bad answer, one in the wrong mode has nothing else.
const BAD_UNITS: u8 = 4;

/// Data.
impl Machine {
    pub(super) fn data_ended(&mut self, tag: Tag, outcome: Outcome, actual: u32) {
        let Some(nexus) = self.nexus_mut(tag) else {
            return;
        };
        if nexus.data != Data::Queued {
            return;
        }
        nexus.moved = nexus.moved.saturating_add(actual);
        match outcome {
            Outcome::Complete | Outcome::Short => nexus.data = Data::Done,
            Outcome::Cancelled if nexus.state == State::Open => nexus.data = Data::Recalled,
            Outcome::Cancelled => nexus.data = Data::Done,
            failed => {
                nexus.data = Data::Done;
                nexus.fault = Some(Cause::Transfer(failed));
                let pipe = nexus.data_pipe();
                *self.work_mut(pipe) = PipeWork::ClearHalt;
                if let Some(stalled) = self.stalled_mut(pipe) {
                    stalled.insert(tag);
                }
            }
        }
        self.settle(tag);
        self.send_task();
    }

    /// The device is ready for the data of a command. One that is being aborted gets none any more.
    fn ready(&mut self, tag: Tag, pipe: UasPipe) {
        let known = self.nexus_mut(tag).map(|nexus| {
            let is_its = nexus.data == Data::Due && nexus.data_pipe() == pipe;
            (nexus.state, is_its)
        });
        match known {
            Some((State::Open, true))
                if self.mode == Mode::Ready && !self.due.data.contains(tag) =>
            {
                self.due.data.insert(tag);
            }
            Some((State::Aborting(_), true)) => {}
            _ => self.stray(),
        }
    }

    /// A pipe is usable again: what was taken back for another's sake is queued again.
    pub(super) fn operated(&mut self) {
        let Some(pipe) = self.running.take() else {
            return;
        };
        if pipe == UasPipe::Status {
            self.reading = false;
            self.deaf = TagSet::EMPTY;
        }
        self.moved_on(pipe);
        for tag in TagSet::first(MAX_TAGS) {
            let streams = self.mode == Mode::Streams;
            let Some(nexus) = self.nexus_mut(tag) else {
                break;
            };
            match pipe {
                UasPipe::Status if streams && nexus.wants_status() && !nexus.listening => {
                    self.due.status.insert(tag);
                }
                UasPipe::Status => {}
                _ if nexus.data == Data::Recalled && nexus.data_pipe() == pipe => {
                    if nexus.state == State::Open {
                        self.due.data.insert(tag);
                    } else {
                        nexus.data = Data::Done;
                    }
                }
                _ => {}
            }
            self.settle(tag);
        }
        self.data_are_back();
    }
}

/// Status.
impl Machine {
    pub(super) fn status_ended(
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
                if let Some(tag) = stream {
                    self.deaf.insert(tag);
                }
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
