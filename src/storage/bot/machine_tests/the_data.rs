//! Tests of the Bulk-Only machine: the data.

use super::*;

/// The same recovery for every error of the wire or the controller.
#[test]
fn that_fails_on_the_wire_gets_reset_recovery() {
    let table = [
        (Outcome::TransactionError, UsbError::NoAnswer),
        (Outcome::SplitError, UsbError::NoAnswer),
        (Outcome::HostOverrun, UsbError::NoAnswer),
        (Outcome::Babble, UsbError::Babble),
        (
            Outcome::Other(29),
            UsbError::Controller(crate::host::HostError::Refused(29)),
        ),
    ];
    for (outcome, error) in table {
        for phase in [IN, OUT] {
            let script = [(data(outcome, 100), RECOVER)];
            play_recovery(phase, &script, BotError::Transfer(error));
        }
    }
}

/// As a stick is known to answer MODE SENSE: 192 bytes asked for, 16 come, then a stall, and a residue of 0xB0.
#[test]
fn that_is_short_then_stalled_is_kept_as_the_residue_says() {
    let script = [
        (data(Outcome::Stall, 16), CLEAR_IN),
        (CANCELLED_STATUS, Action::Wait),
        (DONE, Action::ReadStatus),
        (passed(0xb0), ends(16)),
    ];
    play(DataPhase::In(192), &script);
}

#[test]
fn counts_as_the_smaller_of_what_came_and_what_the_device_processed() {
    let table = [
        (512, 0, 512),
        (512, 512, 0),
        (512, 1, 511),
        (100, 0, 100),
        (100, 412, 100),
        (100, 500, 12),
        (0, 0, 0),
    ];
    for (came, residue, moved) in table {
        let script = [
            (data(Outcome::Short, came), Action::Wait),
            (passed(residue), ends(moved)),
        ];
        play(IN, &script);
    }
}

#[test]
fn whose_halt_cannot_be_cleared_gets_reset_recovery() {
    let refused = Input::Operated(Err(UsbError::Stall));
    let script = [(data(Outcome::Stall, 0), CLEAR_IN), (refused, RECOVER)];
    play_recovery(IN, &script, BotError::Transfer(UsbError::Stall));
    let script = [(data(Outcome::Stall, 0), CLEAR_OUT), (refused, RECOVER)];
    play_recovery(OUT, &script, BotError::Transfer(UsbError::Stall));
}

#[test]
fn that_stalls_out_while_the_status_has_come_already_ends_with_that_status() {
    let script = [
        (data(Outcome::Stall, 64), CLEAR_OUT),
        (csw(CswStatus::Failed, 448), Action::Wait),
        (DONE, ends_failed(64)),
    ];
    play(OUT, &script);
}

#[test]
fn that_is_passed_over_has_its_pipe_cleared_once_whether_it_stalls_meanwhile_or_not() {
    for outcome in [Outcome::Stall, Outcome::Cancelled] {
        let script = [
            (passed(512), CLEAR_OUT),
            (data(outcome, 0), Action::Wait),
            (DONE, ends(0)),
        ];
        play(OUT, &script);
    }
}

#[test]
fn that_ended_after_all_while_it_is_taken_back_counts() {
    let script = [
        (passed(0), CLEAR_OUT),
        (data(Outcome::Complete, 512), Action::Wait),
        (DONE, ends(512)),
    ];
    play(OUT, &script);
}

#[test]
fn that_cannot_be_taken_back_gets_reset_recovery_and_no_status_is_believed() {
    let script = [
        (passed(512), CLEAR_OUT),
        (Input::Operated(Err(UsbError::Timeout)), RECOVER),
    ];
    play_recovery(OUT, &script, BotError::Transfer(UsbError::Timeout));
}
