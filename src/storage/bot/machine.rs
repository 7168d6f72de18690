//! One Bulk-Only command at a time, from its wrapper to its status, and back in step when the two
//! sides have lost each other.
//!
//! A machine without I/O: [`Machine::step`] takes what happened and says what to do next; the
//! transport carries it out. Read BOT 1.0 §5.3 (the flow), §6.3 to §6.7 (what may go wrong) first.
//! The thirteen cases of §6.7 need no code of their own: they are what the rules here make of
//! stalls, short data and residues.

use super::wire::{Csw, CswFault, CswStatus};
use crate::host::{HostError, Outcome};
use crate::policy::Queueing;
use crate::scsi::cdb::DataPhase;
use crate::usb::UsbError;
use crate::usb::setup::Direction;

/// Why a command did not end with a status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BotError {
    /// No answer within the deadline.
    Timeout,
    /// The device says that the two sides are out of step.
    PhaseError,
    /// The status wrapper cannot be believed.
    Status(CswFault),
    /// The device stalled the status twice, or the command wrapper.
    Stalled,
    /// A transfer failed on the wire or in the controller.
    Transfer(UsbError),
}

/// How a command ended, and whether the device can take the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// With a status, and so many bytes of data moved.
    Status(CswStatus, u32),
    /// Without one, but reset recovery brought both sides back in step.
    Recovered(BotError),
    /// Without one, and reset recovery failed too: only a port reset can help. Both pipes are quiet.
    Broken(BotError),
}

/// What the status phase brought.
pub type StatusResult = Result<Result<Csw, CswFault>, Outcome>;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// The command wrapper's transfer ended.
    Command(Outcome),
    /// The data transfer ended, with so many bytes. `status` if those are a status wrapper: the
    /// device left the data phase out.
    Data {
        /// How.
        outcome: Outcome,
        /// Bytes.
        actual: u32,
        /// The wrapper that came in place of the data.
        status: Option<Result<Csw, CswFault>>,
    },
    /// The status transfer ended.
    Status(StatusResult),
    /// The operation that was asked for ended.
    Operated(Result<(), UsbError>),
    /// The deadline has passed.
    Deadline,
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Send the command wrapper alone.
    SendCommand,
    /// Send the command wrapper, and queue data and status behind it.
    SendAll,
    /// Send the command wrapper, and queue the data behind it.
    SendCommandAndData,
    /// Queue data and status.
    SendRest,
    /// Queue the data alone.
    SendData,
    /// Queue the status read alone.
    ReadStatus,
    /// Clear the halt of the pipe in this direction.
    ClearHalt(Direction),
    /// Take the transfers of this pipe back and leave it usable.
    Recall(Direction),
    /// Take the transfers of this pipe back.
    Quiesce(Direction),
    /// Send the Bulk-Only Mass Storage Reset; recovery has its own deadline from here.
    Reset,
    /// Wait for what is under way.
    Wait,
    /// The command has ended; nothing of it is under way any more.
    Finish(End),
    /// A pipe cannot be made quiet: the controller may reach the command's memory for as long as the
    /// device is open. Give the device up; the command ends when the controller has closed it.
    GiveUp,
}

/// How far the data has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Data {
    /// Under way, or still to come.
    Pending,
    /// Ended with so many bytes.
    Moved(u32),
    /// The pipe is halted after so many bytes.
    Halted(u32),
}

/// How far the status has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StatusRead {
    /// Its read is queued, or will be with the data.
    Pending,
    /// It came while a halt was being cleared.
    Early(StatusResult),
    /// No read is queued: it waits for the data, or has ended without a status.
    Due,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Idle,
    /// The wrapper is under way, and all else waits for it.
    Command,
    /// Data and status are under way, or what is left of them.
    Transfer,
    /// The halt of the data pipe is being cleared.
    ClearingData,
    /// The halt of the status pipe is being cleared.
    ClearingStatus,
    /// A transfer that the device has passed over is being taken back; then the command ends so.
    Recalling(Csw),
    /// Reset recovery: what comes next.
    Recovery(Step, BotError),
}

/// The steps of reset recovery (BOT 1.0 §5.3.4), after both pipes were made quiet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    QuiesceOut,
    QuiesceIn,
    Reset,
    ClearIn,
    ClearOut,
}

/// The machine of one Bulk-Only device.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    phase: Phase,
    expected: DataPhase,
    data: Data,
    status: StatusRead,
    /// The status was read a second time already.
    second_status: bool,
}

impl Machine {
    /// No command.
    #[must_use]
    pub const fn idle() -> Self {
        Self {
            phase: Phase::Idle,
            expected: DataPhase::None,
            data: Data::Moved(0),
            status: StatusRead::Pending,
            second_status: false,
        }
    }

    /// Whether a command is under way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Whether all data of the command came, now that its status has: an IN pipe keeps the order.
    #[must_use]
    pub fn has_all_data(&self) -> bool {
        match (self.data, self.expected) {
            (Data::Pending, DataPhase::In(_)) => true,
            (Data::Moved(moved), DataPhase::In(length)) => moved == length,
            _ => false,
        }
    }

    /// Begins a command. The machine is idle.
    pub fn begin(&mut self, data: DataPhase, queueing: Queueing) -> Action {
        self.expected = data;
        self.data = match data {
            DataPhase::None => Data::Moved(0),
            DataPhase::In(_) | DataPhase::Out(_) => Data::Pending,
        };
        self.status = match (queueing, data) {
            (Queueing::AfterData | Queueing::StatusLast, DataPhase::In(_) | DataPhase::Out(_)) => {
                StatusRead::Due
            }
            _ => StatusRead::Pending,
        };
        self.second_status = false;
        match queueing {
            Queueing::AfterCommand | Queueing::AfterData => {
                self.phase = Phase::Command;
                Action::SendCommand
            }
            Queueing::Eager | Queueing::StatusLast => {
                self.phase = Phase::Transfer;
                match self.status {
                    StatusRead::Due => Action::SendCommandAndData,
                    _ => Action::SendAll,
                }
            }
        }
    }

    /// Ends a command whose status has passed with nothing left over, if all its data came. `false`: nothing was
    /// done.
    #[inline]
    pub fn pass(&mut self) -> bool {
        let all_came = match (self.data, self.expected) {
            // IN data and status share a pipe, in order: the data was moved in full.
            (Data::Pending, DataPhase::In(_)) => true,
            (Data::Moved(moved), expected) => moved == expected.length(),
            _ => false,
        };
        let passes = all_came && self.phase == Phase::Transfer;
        if passes {
            self.phase = Phase::Idle;
        }
        passes
    }

    /// Whether the good end of the data asks for the status to be read. `None`: [`Machine::step`] must find out what
    /// it asks for.
    #[inline]
    #[must_use]
    pub fn asks_for_status(&self) -> Option<bool> {
        (self.phase == Phase::Transfer).then_some(matches!(self.status, StatusRead::Due))
    }

    /// Takes the end of the data transfer, as [`Machine::step`] does, with what nearly every command is
    /// made of ahead of what may go wrong.
    #[inline]
    pub fn data_ended(
        &mut self,
        outcome: Outcome,
        actual: u32,
        status: Option<Result<Csw, CswFault>>,
    ) -> Action {
        if outcome == Outcome::Complete && status.is_none() && self.phase == Phase::Transfer {
            return self.data_moved(actual);
        }
        self.step(Input::Data {
            outcome,
            actual,
            status,
        })
    }

    /// Takes the end of the status transfer, likewise.
    #[inline]
    pub fn status_ended(&mut self, result: StatusResult) -> Action {
        match result {
            Ok(Ok(csw)) if csw.status == CswStatus::Passed && self.phase == Phase::Transfer => {
                self.ended(csw)
            }
            result => self.step(Input::Status(result)),
        }
    }

    /// Takes what happened, and says what to do next.
    #[inline(never)]
    pub fn step(&mut self, input: Input) -> Action {
        match (self.phase, input) {
            (Phase::Idle, _) => Action::Wait,
            (Phase::Recovery(step, error), Input::Operated(result)) => {
                self.recovery_step(step, error, result)
            }
            (Phase::Recovery(step, error), Input::Deadline) => self.recovery_failed(step, error),
            // The ends of transfers that recovery has taken back.
            (Phase::Recovery(..), _) => Action::Wait,
            (_, Input::Deadline) => self.recover(BotError::Timeout),
            (Phase::Command, Input::Command(outcome)) if outcome.is_ok() => {
                self.phase = Phase::Transfer;
                match self.status {
                    StatusRead::Due => Action::SendData,
                    _ => Action::SendRest,
                }
            }
            (_, Input::Command(outcome)) => match outcome {
                Outcome::Complete | Outcome::Short => Action::Wait,
                Outcome::Stall => self.recover(BotError::Stalled),
                other => self.recover_transfer(other),
            },
            (Phase::Recalling(csw), input) => self.recall_step(csw, input),
            (
                _,
                Input::Data {
                    outcome,
                    actual,
                    status,
                },
            ) => self.data(outcome, actual, status),
            (Phase::Transfer, Input::Status(result)) => self.status(result),
            (Phase::ClearingData | Phase::ClearingStatus, Input::Status(result)) => {
                self.status = match result {
                    // Clearing the halt of its own pipe has taken it back.
                    Err(Outcome::Cancelled) => StatusRead::Due,
                    result => StatusRead::Early(result),
                };
                Action::Wait
            }
            (Phase::ClearingData, Input::Operated(result)) => self.data_cleared(result),
            (Phase::ClearingStatus, Input::Operated(result)) => self.status_cleared(result),
            (Phase::Command, Input::Status(_)) | (_, Input::Operated(_)) => Action::Wait,
        }
    }

    fn data(
        &mut self,
        outcome: Outcome,
        actual: u32,
        status: Option<Result<Csw, CswFault>>,
    ) -> Action {
        match outcome {
            Outcome::Complete | Outcome::Short => match status {
                Some(Ok(csw)) => self.status_in_place_of_data(csw),
                Some(Err(fault)) => self.recover(BotError::Status(fault)),
                None => self.data_moved(actual),
            },
            Outcome::Stall => {
                self.data = Data::Halted(actual);
                if self.phase == Phase::Transfer {
                    self.clear_data()
                } else {
                    Action::Wait
                }
            }
            Outcome::Cancelled if self.phase != Phase::Transfer => {
                self.data = Data::Moved(actual);
                Action::Wait
            }
            other => self.recover_transfer(other),
        }
    }

    #[inline]
    fn data_moved(&mut self, actual: u32) -> Action {
        self.data = Data::Moved(actual);
        match (self.phase, self.status) {
            (Phase::Transfer, StatusRead::Due) => self.read_status(),
            _ => Action::Wait,
        }
    }

    /// The data phase was left out, and its wrapper has landed in the data's memory: the status
    /// read that is queued behind it will never be answered.
    fn status_in_place_of_data(&mut self, csw: Csw) -> Action {
        self.data = Data::Moved(0);
        match csw.status {
            CswStatus::PhaseError => self.recover(BotError::PhaseError),
            CswStatus::Passed | CswStatus::Failed => {
                self.phase = Phase::Recalling(csw);
                Action::Recall(Direction::In)
            }
        }
    }

    fn clear_data(&mut self) -> Action {
        self.phase = Phase::ClearingData;
        Action::ClearHalt(self.data_direction())
    }

    fn data_cleared(&mut self, result: Result<(), UsbError>) -> Action {
        if let Err(error) = result {
            return self.recover(BotError::Transfer(error));
        }
        if let Data::Halted(actual) = self.data {
            self.data = Data::Moved(actual);
        }
        self.phase = Phase::Transfer;
        match (self.status, self.data_direction()) {
            (StatusRead::Early(result), _) => self.status(result),
            (StatusRead::Pending, Direction::Out) => Action::Wait,
            // Clearing the IN pipe has taken the queued status read back.
            (StatusRead::Pending, Direction::In) | (StatusRead::Due, _) => self.read_status(),
        }
    }

    #[inline]
    fn read_status(&mut self) -> Action {
        self.status = StatusRead::Pending;
        Action::ReadStatus
    }

    fn status(&mut self, result: StatusResult) -> Action {
        match result {
            Ok(Ok(Csw {
                status: CswStatus::PhaseError,
                ..
            })) => self.recover(BotError::PhaseError),
            Ok(Ok(csw)) => self.ended(csw),
            Ok(Err(CswFault::WrongLength { found: 0 })) if !self.second_status => {
                self.second_status = true;
                self.read_status()
            }
            Ok(Err(fault)) => self.recover(BotError::Status(fault)),
            Err(Outcome::Stall) if !self.second_status => {
                self.second_status = true;
                self.status = StatusRead::Due;
                self.phase = Phase::ClearingStatus;
                Action::ClearHalt(Direction::In)
            }
            Err(Outcome::Stall) => self.recover(BotError::Stalled),
            Err(other) => self.recover_transfer(other),
        }
    }

    fn status_cleared(&mut self, result: Result<(), UsbError>) -> Action {
        if let Err(error) = result {
            return self.recover(BotError::Transfer(error));
        }
        if let Data::Halted(_) = self.data {
            // The OUT pipe stalled meanwhile; the status is read behind its clearing.
            self.phase = Phase::ClearingData;
            return Action::ClearHalt(Direction::Out);
        }
        self.phase = Phase::Transfer;
        self.read_status()
    }

    /// A good status has come.
    #[inline]
    fn ended(&mut self, csw: Csw) -> Action {
        match (self.data, self.expected) {
            // IN data and status share a pipe, in order: the data was moved in full.
            (Data::Pending, DataPhase::In(length)) => self.data = Data::Moved(length),
            // The device has passed over data that is still queued, and may have halted the pipe for
            // that (cases 9 and 11) without a packet of them having met its halt: the next command
            // would, and with it what the device has to say about this one.
            (Data::Pending, _) => {
                self.phase = Phase::Recalling(csw);
                return Action::ClearHalt(Direction::Out);
            }
            _ => {}
        }
        self.finish_with(csw)
    }

    fn recall_step(&mut self, csw: Csw, input: Input) -> Action {
        match input {
            // Its halt, if it has met one, is being cleared.
            Input::Data { actual, .. } => {
                self.data = Data::Moved(actual);
                Action::Wait
            }
            Input::Status(Err(Outcome::Stall)) => {
                self.status = StatusRead::Early(Err(Outcome::Stall));
                Action::Wait
            }
            Input::Operated(Ok(())) => self.recalled(csw),
            Input::Operated(Err(UsbError::Controller(HostError::Halted))) => self.recalled_halted(),
            Input::Operated(Err(error)) => self.recover(BotError::Transfer(error)),
            _ => Action::Wait,
        }
    }

    /// What was passed over is back, from a pipe that was found halted.
    #[cold]
    fn recalled_halted(&mut self) -> Action {
        if self.status == StatusRead::Early(Err(Outcome::Stall)) {
            self.status = StatusRead::Due;
        }
        Action::ClearHalt(self.data_direction())
    }

    /// What was passed over is back. If a status read was halted instead, the device's side must be
    /// cleared too, or the next command would meet its halt.
    fn recalled(&mut self, csw: Csw) -> Action {
        if self.status == StatusRead::Early(Err(Outcome::Stall)) {
            self.status = StatusRead::Due;
            return Action::ClearHalt(Direction::In);
        }
        self.finish_with(csw)
    }

    fn finish_with(&mut self, csw: Csw) -> Action {
        let (Data::Moved(moved) | Data::Halted(moved)) = self.data else {
            return self.finish(End::Status(csw.status, 0));
        };
        let processed = self.expected.length().saturating_sub(csw.residue);
        self.finish(End::Status(csw.status, moved.min(processed)))
    }

    fn recover_transfer(&mut self, outcome: Outcome) -> Action {
        let error = UsbError::from_outcome(outcome).unwrap_or(UsbError::NoAnswer);
        self.recover(BotError::Transfer(error))
    }

    /// Brings both sides back in step. Nothing of the command may be under way when the device is
    /// reset, so that its memory can be given back afterwards.
    fn recover(&mut self, error: BotError) -> Action {
        self.phase = Phase::Recovery(Step::QuiesceOut, error);
        Action::Quiesce(Direction::Out)
    }

    fn recovery_step(
        &mut self,
        step: Step,
        error: BotError,
        result: Result<(), UsbError>,
    ) -> Action {
        if result.is_err() {
            return self.recovery_failed(step, error);
        }
        let (next, action) = match step {
            Step::QuiesceOut => (Step::QuiesceIn, Action::Quiesce(Direction::In)),
            Step::QuiesceIn => (Step::Reset, Action::Reset),
            Step::Reset => (Step::ClearIn, Action::ClearHalt(Direction::In)),
            Step::ClearIn => (Step::ClearOut, Action::ClearHalt(Direction::Out)),
            Step::ClearOut => return self.finish(End::Recovered(error)),
        };
        self.phase = Phase::Recovery(next, error);
        action
    }

    /// Only behind both quiet pipes is nothing of the command under way.
    fn recovery_failed(&mut self, step: Step, error: BotError) -> Action {
        match step {
            Step::QuiesceOut | Step::QuiesceIn => {
                self.phase = Phase::Idle;
                Action::GiveUp
            }
            Step::Reset | Step::ClearIn | Step::ClearOut => self.finish(End::Broken(error)),
        }
    }

    fn finish(&mut self, end: End) -> Action {
        self.phase = Phase::Idle;
        Action::Finish(end)
    }

    fn data_direction(&self) -> Direction {
        match self.expected {
            DataPhase::Out(_) => Direction::Out,
            DataPhase::In(_) | DataPhase::None => Direction::In,
        }
    }
}

#[cfg(test)]
#[path = "machine_tests/mod.rs"]
mod tests;

#[cfg(test)]
#[path = "after_data_tests.rs"]
mod after_data_tests;
