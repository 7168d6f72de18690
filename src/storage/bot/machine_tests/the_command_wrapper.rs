//! Tests of the Bulk-Only machine: the command wrapper.

use super::*;

#[test]
fn goes_alone_first_and_the_rest_follows_its_arrival() {
    let mut machine = Machine::idle();
    let begun = machine.begin(IN, Queueing::AfterCommand);
    assert_eq!(begun, Action::SendCommand);
    follow(
        &mut machine,
        &[(Input::Command(Outcome::Complete), Action::SendRest)],
    );
}

#[test]
fn that_is_reported_as_arrived_in_eager_queueing_changes_nothing() {
    let mut machine = queued(IN, Queueing::Eager);
    let script = [
        (Input::Command(Outcome::Complete), Action::Wait),
        (passed(0), ends(512)),
    ];
    follow(&mut machine, &script);
}

#[test]
fn that_fails_gets_reset_recovery_in_both_queueings() {
    let table = [
        (Outcome::Stall, BotError::Stalled),
        (
            Outcome::TransactionError,
            BotError::Transfer(UsbError::NoAnswer),
        ),
        (Outcome::SplitError, BotError::Transfer(UsbError::NoAnswer)),
        (Outcome::HostOverrun, BotError::Transfer(UsbError::NoAnswer)),
        (Outcome::Babble, BotError::Transfer(UsbError::Babble)),
    ];
    for (outcome, error) in table {
        for queueing in QUEUEINGS {
            let mut machine = Machine::idle();
            machine.begin(OUT, queueing);
            follow(&mut machine, &[(Input::Command(outcome), RECOVER)]);
            follow(&mut machine, &recovery(error));
        }
    }
}

#[test]
fn that_nobody_takes_is_given_up_at_the_deadline() {
    let mut machine = Machine::idle();
    machine.begin(NONE, Queueing::AfterCommand);
    follow(&mut machine, &[(Input::Deadline, RECOVER)]);
    follow(&mut machine, &recovery(BotError::Timeout));
}
