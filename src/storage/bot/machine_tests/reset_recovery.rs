//! Tests of the Bulk-Only machine: reset recovery.

use super::*;

/// A machine in reset recovery, so many steps of which were taken.
fn recovering(steps: usize) -> Machine {
    let mut machine = queued(IN, Queueing::AfterCommand);
    follow(&mut machine, &[(Input::Deadline, RECOVER)]);
    follow(&mut machine, &recovery(BotError::Timeout)[..steps]);
    machine
}

#[test]
fn is_not_moved_by_the_ends_of_what_it_takes_back() {
    let late = [
        CANCELLED_STATUS,
        STALLED_STATUS,
        passed(0),
        phase_error(),
        data(Outcome::Cancelled, 100),
        data(Outcome::Stall, 0),
        wrapper_as_data(Ok(wrapper(CswStatus::Passed, 0))),
        Input::Command(Outcome::Cancelled),
        Input::Command(Outcome::Stall),
    ];
    for steps in 0..5 {
        let mut machine = recovering(steps);
        for input in late {
            assert_eq!(machine.step(input), Action::Wait, "{steps}: {input:?}");
        }
        follow(&mut machine, &recovery(BotError::Timeout)[steps..]);
    }
}

/// What fails, or does not end, after so many steps.
fn failing(steps: usize) -> [Action; 2] {
    [Input::Operated(Err(UsbError::Timeout)), Input::Deadline].map(|failure| {
        let mut machine = recovering(steps);
        let action = machine.step(failure);
        assert!(!machine.is_busy());
        action
    })
}

#[test]
fn that_cannot_make_a_pipe_quiet_never_ends_the_command_by_itself() {
    assert_eq!(failing(0), [Action::GiveUp; 2]);
    assert_eq!(failing(1), [Action::GiveUp; 2]);
}

#[test]
fn that_fails_behind_quiet_pipes_ends_the_command_and_says_why_it_began() {
    let broken = Action::Finish(End::Broken(BotError::Timeout));
    for steps in 2..5 {
        assert_eq!(failing(steps), [broken; 2], "{steps}");
    }
}

#[test]
fn leaves_the_machine_ready_for_the_next_command() {
    let mut machine = recovering(5);
    assert_eq!(machine.begin(OUT, Queueing::Eager), Action::SendAll);
    let script = [
        (data(Outcome::Complete, 512), Action::Wait),
        (passed(0), ends(512)),
    ];
    follow(&mut machine, &script);
}
