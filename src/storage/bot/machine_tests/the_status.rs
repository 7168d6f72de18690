//! Tests of the Bulk-Only machine: the status.

use super::*;

#[test]
fn that_cannot_be_believed_gets_reset_recovery() {
    let faults = [
        CswFault::WrongLength { found: 12 },
        CswFault::WrongLength { found: 14 },
        CswFault::WrongLength { found: 16 },
        CswFault::WrongSignature { found: 0x5553_4253 },
        CswFault::WrongTag { found: 1 },
        CswFault::ReservedStatus { found: 3 },
        CswFault::ResidueTooLarge { found: 513 },
    ];
    for fault in faults {
        for phase in [NONE, IN, OUT] {
            let script = [(bad_status(fault), RECOVER)];
            play_recovery(phase, &script, BotError::Status(fault));
        }
    }
}

#[test]
fn of_no_bytes_is_read_once_more_and_not_twice() {
    let empty = CswFault::WrongLength { found: 0 };
    let stray = [
        (bad_status(empty), Action::ReadStatus),
        (passed(0), ends(512)),
    ];
    play(IN, &stray);
    let again = [
        (bad_status(empty), Action::ReadStatus),
        (bad_status(empty), RECOVER),
    ];
    play_recovery(IN, &again, BotError::Status(empty));
}

#[test]
fn that_stalls_is_read_once_more_and_not_twice() {
    let once = [
        (STALLED_STATUS, CLEAR_IN),
        (DONE, Action::ReadStatus),
        (passed(0), ends(512)),
    ];
    play(IN, &once);
    let twice = [
        (STALLED_STATUS, CLEAR_IN),
        (DONE, Action::ReadStatus),
        (STALLED_STATUS, RECOVER),
    ];
    play_recovery(IN, &twice, BotError::Stalled);
}

#[test]
fn that_stalls_after_the_data_had_stalled_is_read_once_more() {
    let script = [
        (data(Outcome::Stall, 0), CLEAR_IN),
        (CANCELLED_STATUS, Action::Wait),
        (DONE, Action::ReadStatus),
        (STALLED_STATUS, CLEAR_IN),
        (DONE, Action::ReadStatus),
        (csw(CswStatus::Failed, 512), ends_failed(0)),
    ];
    play(IN, &script);
}

#[test]
fn that_fails_on_the_wire_gets_reset_recovery() {
    let table = [
        (Outcome::TransactionError, UsbError::NoAnswer),
        (Outcome::SplitError, UsbError::NoAnswer),
        (Outcome::Babble, UsbError::Babble),
    ];
    for (outcome, error) in table {
        let script = [(Input::Status(Err(outcome)), RECOVER)];
        play_recovery(OUT, &script, BotError::Transfer(error));
    }
}

#[test]
fn whose_halt_cannot_be_cleared_gets_reset_recovery() {
    let script = [
        (STALLED_STATUS, CLEAR_IN),
        (Input::Operated(Err(UsbError::Timeout)), RECOVER),
    ];
    play_recovery(NONE, &script, BotError::Transfer(UsbError::Timeout));
}

#[test]
fn that_stalls_while_the_data_still_goes_out_is_read_after_both_halts_are_cleared() {
    let status_first = [
        (STALLED_STATUS, CLEAR_IN),
        (data(Outcome::Stall, 64), Action::Wait),
        (DONE, CLEAR_OUT),
        (DONE, Action::ReadStatus),
        (csw(CswStatus::Failed, 448), ends_failed(64)),
    ];
    play(OUT, &status_first);
    let data_first = [
        (data(Outcome::Stall, 64), CLEAR_OUT),
        (STALLED_STATUS, Action::Wait),
        (DONE, CLEAR_IN),
        (DONE, Action::ReadStatus),
        (csw(CswStatus::Failed, 448), ends_failed(64)),
    ];
    play(OUT, &data_first);
}
