//! Tables of what happens and what is done about it. Every table begins with commands, and each of
//! its rows is one input with all actions that follow.

use super::*;
use crate::scsi::sense::SenseKey;
use std::vec::Vec;

const DEPTH: u8 = 4;
/// ABORT TASK and LOGICAL UNIT RESET.
const ABORT: u16 = 5;
const RESET: u16 = 6;
const READ: DataPhase = DataPhase::In(4096);
const WRITE: DataPhase = DataPhase::Out(4096);

fn tag(number: u16) -> Tag {
    Tag::new(number).unwrap()
}

fn drain(machine: &mut Machine) -> Vec<Action> {
    let mut actions = Vec::new();
    loop {
        match machine.next_action() {
            Action::Wait => return actions,
            action => actions.push(action),
        }
        assert!(actions.len() < 100, "no end of actions");
    }
}

/// A machine with these commands begun, on unit 0.
fn begun(mode: Mode, commands: &[(u16, DataPhase)]) -> Machine {
    let mut machine = Machine::new(mode, DEPTH);
    for (number, data) in commands {
        machine.begin(tag(*number), 0, *data);
    }
    drain(&mut machine);
    machine
}

fn check(machine: &mut Machine, rows: &[(Input, &[Action])]) {
    for (number, (input, expected)) in rows.iter().enumerate() {
        machine.step(*input);
        assert_eq!(drain(machine), *expected, "row {number}: {input:?}");
    }
}

fn sense(number: u16, status: ScsiStatus) -> StatusUnit {
    StatusUnit::Sense {
        tag: tag(number),
        status,
        sense: Sense::NONE,
    }
}

/// A unit on the one status pipe.
fn heard(unit: StatusUnit) -> Input {
    Input::Status {
        stream: None,
        result: Ok(Ok(unit)),
    }
}

/// A unit on its stream.
fn on(number: u16, unit: StatusUnit) -> Input {
    Input::Status {
        stream: Some(tag(number)),
        result: Ok(Ok(unit)),
    }
}

fn good(number: u16) -> StatusUnit {
    sense(number, ScsiStatus::Good)
}

fn bad(number: u16) -> StatusUnit {
    sense(number, ScsiStatus::CheckCondition)
}

fn response(number: u16, code: ResponseCode) -> StatusUnit {
    StatusUnit::Response {
        tag: tag(number),
        code,
    }
}

fn data(number: u16, outcome: Outcome, actual: u32) -> Input {
    Input::Data {
        tag: tag(number),
        outcome,
        actual,
    }
}

fn ended(number: u16, status: ScsiStatus, moved: u32) -> Action {
    let sense = Sense::NONE;
    let end = End::Status {
        status,
        sense,
        moved,
    };
    Action::Finish(tag(number), end)
}

fn failed(number: u16, cause: Cause) -> Action {
    Action::Finish(tag(number), End::Failed(cause))
}

fn listen(number: u16) -> Action {
    Action::ReadStatus(Some(tag(number)))
}

const LISTEN: Action = Action::ReadStatus(None);
const OPERATED: Input = Input::Operated(Ok(()));

fn cancelled_status(number: u16) -> Input {
    Input::Status {
        stream: Some(tag(number)),
        result: Err(Outcome::Cancelled),
    }
}

fn abort_task(target: u16) -> Action {
    Action::SendTask(tag(ABORT), TaskFunction::AbortTask(tag(target)), 0)
}

fn unit_reset() -> Action {
    Action::SendTask(tag(RESET), TaskFunction::LogicalUnitReset, 0)
}

mod at_random;
mod ladder;
mod pipes;
mod with_streams;
mod without_streams;
