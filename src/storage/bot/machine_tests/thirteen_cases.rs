//! Tests of the Bulk-Only machine: thirteen cases.

use super::*;

#[test]
fn case_1_no_data_and_none_meant_ends_with_the_status() {
    play(NONE, &[(passed(0), ends(0))]);
    play(NONE, &[(csw(CswStatus::Failed, 0), ends_failed(0))]);
}

#[test]
fn case_2_no_data_but_the_device_sends_gets_reset_recovery() {
    play_recovery(NONE, &[(phase_error(), RECOVER)], BotError::PhaseError);
    // A device that stalls the status instead is asked once more.
    let stalled = [
        (STALLED_STATUS, CLEAR_IN),
        (DONE, Action::ReadStatus),
        (phase_error(), RECOVER),
    ];
    play_recovery(NONE, &stalled, BotError::PhaseError);
    // One that sends its data where the status belongs is out of step.
    let fault = CswFault::WrongLength { found: 512 };
    let sends = [(bad_status(fault), RECOVER)];
    play_recovery(NONE, &sends, BotError::Status(fault));
}

#[test]
fn case_3_no_data_but_the_device_receives_gets_reset_recovery() {
    play_recovery(NONE, &[(phase_error(), RECOVER)], BotError::PhaseError);
}

#[test]
fn case_4_data_in_that_the_device_does_not_have_ends_with_0_bytes() {
    let stalls = [
        (data(Outcome::Stall, 0), CLEAR_IN),
        (CANCELLED_STATUS, Action::Wait),
        (DONE, Action::ReadStatus),
        (csw(CswStatus::Failed, 512), ends_failed(0)),
    ];
    play(IN, &stalls);
    let empty_packet = [
        (data(Outcome::Short, 0), Action::Wait),
        (csw(CswStatus::Failed, 512), ends_failed(0)),
    ];
    play(IN, &empty_packet);
    // Padding is not data: the residue says so.
    let pads = [
        (data(Outcome::Complete, 512), Action::Wait),
        (passed(512), ends(0)),
    ];
    play(IN, &pads);
}

#[test]
fn case_5_less_data_in_than_asked_for_ends_short() {
    let short = [
        (data(Outcome::Short, 36), Action::Wait),
        (passed(476), ends(36)),
    ];
    play(IN, &short);
    let stalls_after_it = [
        (data(Outcome::Stall, 36), CLEAR_IN),
        (CANCELLED_STATUS, Action::Wait),
        (DONE, Action::ReadStatus),
        (passed(476), ends(36)),
    ];
    play(IN, &stalls_after_it);
    let pads = [
        (data(Outcome::Complete, 512), Action::Wait),
        (passed(476), ends(36)),
    ];
    play(IN, &pads);
}

#[test]
fn case_6_all_data_in_ends_with_all_of_it() {
    // A full transfer is not reported by itself: the status behind it says that it is done.
    play(IN, &[(passed(0), ends(512))]);
    play(IN, &[(csw(CswStatus::Failed, 0), ends_failed(512))]);
    let reported = [
        (data(Outcome::Complete, 512), Action::Wait),
        (passed(0), ends(512)),
    ];
    play(IN, &reported);
}

#[test]
fn case_7_more_data_in_than_asked_for_gets_reset_recovery() {
    let polite = [
        (data(Outcome::Complete, 512), Action::Wait),
        (phase_error(), RECOVER),
    ];
    play_recovery(IN, &polite, BotError::PhaseError);
    let babble = BotError::Transfer(UsbError::Babble);
    play_recovery(IN, &[(data(Outcome::Babble, 512), RECOVER)], babble);
    // The surplus lands in the status read.
    let fault = CswFault::WrongLength { found: 488 };
    let surplus = [(bad_status(fault), RECOVER)];
    play_recovery(IN, &surplus, BotError::Status(fault));
}

#[test]
fn case_8_data_in_where_the_device_receives_gets_reset_recovery() {
    let stalls = [
        (data(Outcome::Stall, 0), CLEAR_IN),
        (CANCELLED_STATUS, Action::Wait),
        (DONE, Action::ReadStatus),
        (phase_error(), RECOVER),
    ];
    play_recovery(IN, &stalls, BotError::PhaseError);
}

#[test]
fn case_9_data_out_that_the_device_does_not_want_ends_with_0_bytes() {
    let stalls = [
        (data(Outcome::Stall, 0), CLEAR_OUT),
        (DONE, Action::Wait),
        (csw(CswStatus::Failed, 512), ends_failed(0)),
    ];
    play(OUT, &stalls);
    let swallows = [
        (data(Outcome::Complete, 512), Action::Wait),
        (passed(512), ends(0)),
    ];
    play(OUT, &swallows);
    // The status comes and the data was never taken: nothing may be left in flight.
    let ignores = [
        (csw(CswStatus::Failed, 512), CLEAR_OUT),
        (data(Outcome::Cancelled, 0), Action::Wait),
        (DONE, ends_failed(0)),
    ];
    play(OUT, &ignores);
}

#[test]
fn case_10_data_out_where_the_device_sends_gets_reset_recovery() {
    let stalls = [
        (data(Outcome::Stall, 0), CLEAR_OUT),
        (DONE, Action::Wait),
        (phase_error(), RECOVER),
    ];
    play_recovery(OUT, &stalls, BotError::PhaseError);
    // The phase error may come first; the data is still queued then, and recovery takes it.
    play_recovery(OUT, &[(phase_error(), RECOVER)], BotError::PhaseError);
}

#[test]
fn case_11_less_data_out_than_offered_ends_short() {
    let stalls = [
        (data(Outcome::Stall, 192), CLEAR_OUT),
        (DONE, Action::Wait),
        (passed(320), ends(192)),
    ];
    play(OUT, &stalls);
    let takes_part = [
        (passed(320), CLEAR_OUT),
        (data(Outcome::Cancelled, 192), Action::Wait),
        (DONE, ends(192)),
    ];
    play(OUT, &takes_part);
}

#[test]
fn case_12_all_data_out_ends_with_all_of_it() {
    let all = [
        (data(Outcome::Complete, 512), Action::Wait),
        (passed(0), ends(512)),
    ];
    play(OUT, &all);
}

#[test]
fn case_13_more_data_out_wanted_than_offered_gets_reset_recovery() {
    let wants_more = [
        (data(Outcome::Complete, 512), Action::Wait),
        (phase_error(), RECOVER),
    ];
    play_recovery(OUT, &wants_more, BotError::PhaseError);
}
