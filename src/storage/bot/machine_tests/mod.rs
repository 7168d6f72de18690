//! What the Bulk-Only machine does with each thing that a device or a wire can do.
//!
//! A test is a script: what happens, and the answer that it must get. Scripts begin where command,
//! data and status are queued, so that one script holds for both ways of queueing.

/// As some devices send it when they do not know a command.
mod a_status_wrapper_in_place_of_the_data;
mod reset_recovery;
mod the_command_wrapper;
mod the_data;
mod the_deadline;
/// Of the wrong length, tag, signature or value, as devices are known to send it.
mod the_status;
/// BOT 1.0 §6.7: what the host expects against what the device means to do.
mod thirteen_cases;

use super::*;

const QUEUEINGS: [Queueing; 2] = [Queueing::AfterCommand, Queueing::Eager];
const NONE: DataPhase = DataPhase::None;
const IN: DataPhase = DataPhase::In(512);
const OUT: DataPhase = DataPhase::Out(512);
const DONE: Input = Input::Operated(Ok(()));
const CLEAR_IN: Action = Action::ClearHalt(Direction::In);
const CLEAR_OUT: Action = Action::ClearHalt(Direction::Out);
const RECALL_IN: Action = Action::Recall(Direction::In);
/// The first step of reset recovery.
const RECOVER: Action = Action::Quiesce(Direction::Out);
const CANCELLED_STATUS: Input = Input::Status(Err(Outcome::Cancelled));
const STALLED_STATUS: Input = Input::Status(Err(Outcome::Stall));

/// What happens, and the answer to it.
type Script<'s> = &'s [(Input, Action)];

fn data(outcome: Outcome, actual: u32) -> Input {
    Input::Data {
        outcome,
        actual,
        status: None,
    }
}

fn wrapper(status: CswStatus, residue: u32) -> Csw {
    Csw { status, residue }
}

fn csw(status: CswStatus, residue: u32) -> Input {
    Input::Status(Ok(Ok(wrapper(status, residue))))
}

/// A good status that leaves so many bytes over.
fn passed(residue: u32) -> Input {
    csw(CswStatus::Passed, residue)
}

/// A device that says "phase error".
fn phase_error() -> Input {
    csw(CswStatus::PhaseError, 0)
}

fn bad_status(fault: CswFault) -> Input {
    Input::Status(Ok(Err(fault)))
}

/// The 13 bytes of a status wrapper, come as data.
fn wrapper_as_data(result: Result<Csw, CswFault>) -> Input {
    Input::Data {
        outcome: Outcome::Short,
        actual: Csw::LENGTH as u32,
        status: Some(result),
    }
}

/// The command ends well with so many bytes moved.
fn ends(moved: u32) -> Action {
    Action::Finish(End::Status(CswStatus::Passed, moved))
}

fn ends_failed(moved: u32) -> Action {
    Action::Finish(End::Status(CswStatus::Failed, moved))
}

/// A machine whose command, data and status are queued.
fn queued(phase: DataPhase, queueing: Queueing) -> Machine {
    let mut machine = Machine::idle();
    match queueing {
        Queueing::AfterCommand => {
            assert_eq!(machine.begin(phase, queueing), Action::SendCommand);
            let arrived = machine.step(Input::Command(Outcome::Complete));
            assert_eq!(arrived, Action::SendRest);
        }
        Queueing::Eager => assert_eq!(machine.begin(phase, queueing), Action::SendAll),
        Queueing::AfterData | Queueing::StatusLast => {
            unreachable!("they never have all three queued: after_data_tests")
        }
    }
    machine
}

#[track_caller]
fn follow(machine: &mut Machine, script: Script<'_>) {
    for (place, (input, answer)) in script.iter().enumerate() {
        assert_eq!(machine.step(*input), *answer, "step {place}: {input:?}");
    }
}

/// The script, in both ways of queueing.
#[track_caller]
fn play(phase: DataPhase, script: Script<'_>) {
    for queueing in QUEUEINGS {
        let mut machine = queued(phase, queueing);
        follow(&mut machine, script);
        let is_finished = matches!(script.last(), Some((_, Action::Finish(_))));
        assert_eq!(machine.is_busy(), !is_finished, "{queueing:?}");
    }
}

/// The rest of reset recovery, all of it well (BOT 1.0 §5.3.4).
fn recovery(error: BotError) -> [(Input, Action); 5] {
    [
        (DONE, Action::Quiesce(Direction::In)),
        (DONE, Action::Reset),
        (DONE, CLEAR_IN),
        (DONE, CLEAR_OUT),
        (DONE, Action::Finish(End::Recovered(error))),
    ]
}

/// The script, which ends at the begin of reset recovery, and the whole recovery.
#[track_caller]
fn play_recovery(phase: DataPhase, script: Script<'_>, error: BotError) {
    for queueing in QUEUEINGS {
        let mut machine = queued(phase, queueing);
        follow(&mut machine, script);
        follow(&mut machine, &recovery(error));
        assert!(!machine.is_busy(), "{queueing:?}");
    }
}

#[test]
fn a_command_takes_nothing_over_from_the_one_before() {
    let mut machine = queued(OUT, Queueing::AfterCommand);
    // A stalled status, an early one, and data that is known: all of it must be forgotten.
    let script = [
        (data(Outcome::Stall, 64), CLEAR_OUT),
        (STALLED_STATUS, Action::Wait),
        (DONE, CLEAR_IN),
        (DONE, Action::ReadStatus),
        (passed(448), ends(64)),
    ];
    follow(&mut machine, &script);
    machine.begin(IN, Queueing::Eager);
    let script = [
        (STALLED_STATUS, CLEAR_IN),
        (DONE, Action::ReadStatus),
        (passed(0), ends(512)),
    ];
    follow(&mut machine, &script);
}

#[test]
fn an_idle_machine_ignores_the_ends_of_what_has_ended() {
    let mut machine = Machine::idle();
    for input in [passed(0), data(Outcome::Stall, 0), DONE, STALLED_STATUS] {
        assert_eq!(machine.step(input), Action::Wait, "{input:?}");
        assert!(!machine.is_busy());
    }
}
