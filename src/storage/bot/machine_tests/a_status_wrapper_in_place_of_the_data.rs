//! Tests of the Bulk-Only machine: a status wrapper in place of the data.

use super::*;

#[test]
fn is_the_status_of_a_command_that_moved_nothing() {
    let failed = wrapper(CswStatus::Failed, 512);
    let script = [
        (wrapper_as_data(Ok(failed)), RECALL_IN),
        (CANCELLED_STATUS, Action::Wait),
        (DONE, ends_failed(0)),
    ];
    play(IN, &script);
}

#[test]
fn moves_nothing_also_if_it_claims_that_nothing_is_left_over() {
    let script = [
        (
            wrapper_as_data(Ok(wrapper(CswStatus::Passed, 0))),
            RECALL_IN,
        ),
        (CANCELLED_STATUS, Action::Wait),
        (DONE, ends(0)),
    ];
    play(DataPhase::In(13), &script);
}

#[test]
fn may_be_followed_by_a_stall_which_is_cleared_before_the_next_command() {
    let script = [
        (
            wrapper_as_data(Ok(wrapper(CswStatus::Failed, 512))),
            RECALL_IN,
        ),
        (STALLED_STATUS, Action::Wait),
        (DONE, CLEAR_IN),
        (DONE, ends_failed(0)),
    ];
    play(IN, &script);
}

#[test]
fn on_a_pipe_that_is_found_halted_has_the_halt_cleared_once() {
    let halted = Input::Operated(Err(UsbError::Controller(HostError::Halted)));
    for status in [CANCELLED_STATUS, STALLED_STATUS] {
        let script = [
            (
                wrapper_as_data(Ok(wrapper(CswStatus::Failed, 512))),
                RECALL_IN,
            ),
            (status, Action::Wait),
            (halted, CLEAR_IN),
            (DONE, ends_failed(0)),
        ];
        play(IN, &script);
    }
}

#[test]
fn may_be_a_phase_error() {
    let phase_error = wrapper(CswStatus::PhaseError, 0);
    let script = [(wrapper_as_data(Ok(phase_error)), RECOVER)];
    play_recovery(IN, &script, BotError::PhaseError);
}

#[test]
fn that_cannot_be_believed_gets_reset_recovery() {
    let fault = CswFault::ReservedStatus { found: 7 };
    let script = [(wrapper_as_data(Err(fault)), RECOVER)];
    play_recovery(IN, &script, BotError::Status(fault));
}

#[test]
fn is_ended_by_the_deadline_if_the_status_read_behind_it_cannot_be_recalled() {
    let script = [
        (
            wrapper_as_data(Ok(wrapper(CswStatus::Passed, 0))),
            RECALL_IN,
        ),
        (Input::Deadline, RECOVER),
    ];
    play_recovery(IN, &script, BotError::Timeout);
}
