//! Tests of the Bulk-Only machine: the deadline.

use super::*;

#[test]
fn begins_reset_recovery_wherever_the_command_is() {
    let waiting: [(DataPhase, Script<'_>); 6] = [
        (IN, &[]),
        (OUT, &[(data(Outcome::Complete, 512), Action::Wait)]),
        (IN, &[(data(Outcome::Stall, 0), CLEAR_IN)]),
        (NONE, &[(STALLED_STATUS, CLEAR_IN)]),
        (OUT, &[(passed(512), CLEAR_OUT)]),
        (
            NONE,
            &[(STALLED_STATUS, CLEAR_IN), (DONE, Action::ReadStatus)],
        ),
    ];
    for (phase, script) in waiting {
        for queueing in QUEUEINGS {
            let mut machine = queued(phase, queueing);
            follow(&mut machine, script);
            follow(&mut machine, &[(Input::Deadline, RECOVER)]);
            follow(&mut machine, &recovery(BotError::Timeout));
        }
    }
}

#[test]
fn means_nothing_to_an_idle_machine() {
    assert_eq!(Machine::idle().step(Input::Deadline), Action::Wait);
}
