//! [`Queueing::AfterData`] and [`Queueing::StatusLast`]: the status is asked for when the data has
//! come.

use super::*;
use crate::policy::Queueing;

fn passed(residue: u32) -> Input {
    Input::Status(Ok(Ok(Csw {
        status: CswStatus::Passed,
        residue,
    })))
}

fn moved(actual: u32) -> Input {
    Input::Data {
        outcome: Outcome::Complete,
        actual,
        status: None,
    }
}

#[test]
fn the_status_is_asked_for_when_the_data_has_ended() {
    for data in [DataPhase::In(512), DataPhase::Out(512)] {
        let mut machine = Machine::idle();
        let steps = [
            (Input::Command(Outcome::Complete), Action::SendData),
            (moved(512), Action::ReadStatus),
            (
                passed(0),
                Action::Finish(End::Status(CswStatus::Passed, 512)),
            ),
        ];
        assert_eq!(
            machine.begin(data, Queueing::AfterData),
            Action::SendCommand
        );
        for (input, action) in steps {
            assert_eq!(machine.step(input), action, "{data:?}, {input:?}");
        }
    }
}

#[test]
fn the_data_may_go_with_the_command_while_the_status_waits() {
    for data in [DataPhase::In(512), DataPhase::Out(512)] {
        let mut machine = Machine::idle();
        let begun = machine.begin(data, Queueing::StatusLast);
        assert_eq!(begun, Action::SendCommandAndData);
        assert_eq!(machine.step(moved(512)), Action::ReadStatus, "{data:?}");
        let end = Action::Finish(End::Status(CswStatus::Passed, 512));
        assert_eq!(machine.step(passed(0)), end);
    }
}

#[test]
fn without_data_the_status_goes_with_the_command() {
    let mut machine = Machine::idle();
    let begun = machine.begin(DataPhase::None, Queueing::StatusLast);
    assert_eq!(begun, Action::SendAll);
    let end = Action::Finish(End::Status(CswStatus::Passed, 0));
    assert_eq!(machine.step(passed(0)), end);
}

#[test]
fn a_wrapper_that_fails_with_the_data_behind_it_begins_recovery() {
    let mut machine = Machine::idle();
    machine.begin(DataPhase::In(512), Queueing::StatusLast);
    let failed = machine.step(Input::Command(Outcome::Stall));
    assert_eq!(failed, Action::Quiesce(Direction::Out));
}

#[test]
fn a_command_without_data_asks_for_its_status_at_once() {
    let mut machine = Machine::idle();
    machine.begin(DataPhase::None, Queueing::AfterData);
    let action = machine.step(Input::Command(Outcome::Complete));
    assert_eq!(action, Action::SendRest);
    let end = Action::Finish(End::Status(CswStatus::Passed, 0));
    assert_eq!(machine.step(passed(0)), end);
}

#[test]
fn a_stalled_data_phase_asks_for_the_status_when_the_halt_is_cleared() {
    for (data, direction) in [
        (DataPhase::In(512), Direction::In),
        (DataPhase::Out(512), Direction::Out),
    ] {
        let mut machine = Machine::idle();
        machine.begin(data, Queueing::AfterData);
        machine.step(Input::Command(Outcome::Complete));
        let stall = Input::Data {
            outcome: Outcome::Stall,
            actual: 0,
            status: None,
        };
        assert_eq!(machine.step(stall), Action::ClearHalt(direction));
        let cleared = machine.step(Input::Operated(Ok(())));
        assert_eq!(cleared, Action::ReadStatus, "{data:?}");
        let end = Action::Finish(End::Status(CswStatus::Passed, 0));
        assert_eq!(machine.step(passed(512)), end);
    }
}
