//! Tests of the machine: commands with streams.

use super::*;

#[test]
fn with_streams_status_and_data_are_queued_before_the_command_goes_out() {
    let mut machine = Machine::new(Mode::Streams, DEPTH);
    machine.begin(tag(1), 0, READ);
    let expected = [
        listen(1),
        Action::QueueData(tag(1), 0),
        Action::SendCommand(tag(1)),
    ];
    assert_eq!(drain(&mut machine), expected);
    machine.begin(tag(2), 0, DataPhase::None);
    let expected = [listen(2), Action::SendCommand(tag(2))];
    assert_eq!(drain(&mut machine), expected);
}

#[test]
fn with_streams_commands_end_in_any_order() {
    let mut machine = begun(
        Mode::Streams,
        &[(1, READ), (2, WRITE), (3, DataPhase::None)],
    );
    check(
        &mut machine,
        &[
            (on(3, good(3)), &[ended(3, ScsiStatus::Good, 0)]),
            (data(2, Outcome::Complete, 4096), &[]),
            (data(1, Outcome::Complete, 4096), &[]),
            (on(2, good(2)), &[ended(2, ScsiStatus::Good, 4096)]),
            (on(1, good(1)), &[ended(1, ScsiStatus::Good, 4096)]),
        ],
    );
}

#[test]
fn a_short_read_ends_with_the_bytes_that_came() {
    let mut machine = begun(Mode::Streams, &[(1, READ)]);
    check(
        &mut machine,
        &[
            (data(1, Outcome::Short, 36), &[]),
            (on(1, good(1)), &[ended(1, ScsiStatus::Good, 36)]),
        ],
    );
}

#[test]
fn a_good_status_that_is_seen_before_its_data_lingers_for_it() {
    let mut machine = begun(Mode::Streams, &[(1, READ)]);
    check(
        &mut machine,
        &[
            (on(1, good(1)), &[Action::Linger(tag(1))]),
            (
                data(1, Outcome::Complete, 4096),
                &[ended(1, ScsiStatus::Good, 4096)],
            ),
        ],
    );
}

#[test]
fn data_that_never_come_behind_a_good_status_are_taken_back_and_counted_as_short() {
    let mut machine = begun(Mode::Streams, &[(1, READ)]);
    check(
        &mut machine,
        &[
            (on(1, good(1)), &[Action::Linger(tag(1))]),
            (Input::Late(tag(1)), &[Action::Recall(UasPipe::DataIn)]),
            (
                data(1, Outcome::Cancelled, 512),
                &[ended(1, ScsiStatus::Good, 512)],
            ),
            (OPERATED, &[]),
        ],
    );
}

#[test]
fn a_failed_command_has_its_data_taken_back_and_its_neighbours_go_on_where_they_were() {
    let mut machine = begun(Mode::Streams, &[(1, READ), (2, READ), (3, WRITE)]);
    check(
        &mut machine,
        &[
            (on(1, bad(1)), &[Action::Recall(UasPipe::DataIn)]),
            (
                data(1, Outcome::Cancelled, 0),
                &[ended(1, ScsiStatus::CheckCondition, 0)],
            ),
            (data(2, Outcome::Cancelled, 1024), &[]),
            (OPERATED, &[Action::QueueData(tag(2), 1024)]),
            (data(2, Outcome::Complete, 3072), &[]),
            (on(2, good(2)), &[ended(2, ScsiStatus::Good, 4096)]),
        ],
    );
}

#[test]
fn a_command_that_begins_while_its_pipe_is_stopped_goes_out_behind_its_data() {
    let mut machine = begun(Mode::Streams, &[(1, READ)]);
    check(
        &mut machine,
        &[(on(1, bad(1)), &[Action::Recall(UasPipe::DataIn)])],
    );
    assert!(!machine.takes_commands());
    machine.begin(tag(2), 0, READ);
    assert_eq!(drain(&mut machine), [listen(2)]);
    check(
        &mut machine,
        &[
            (
                data(1, Outcome::Cancelled, 0),
                &[ended(1, ScsiStatus::CheckCondition, 0)],
            ),
            (
                OPERATED,
                &[Action::QueueData(tag(2), 0), Action::SendCommand(tag(2))],
            ),
        ],
    );
    assert!(machine.takes_commands());
}

#[test]
fn a_stalled_data_pipe_is_an_error_of_that_command_alone() {
    let mut machine = begun(Mode::Streams, &[(1, READ), (2, READ)]);
    check(
        &mut machine,
        &[
            (
                data(1, Outcome::Stall, 512),
                &[Action::ClearHalt(UasPipe::DataIn)],
            ),
            (data(2, Outcome::Cancelled, 0), &[]),
            (on(1, bad(1)), &[ended(1, ScsiStatus::CheckCondition, 512)]),
            (OPERATED, &[Action::QueueData(tag(2), 0)]),
        ],
    );
}

#[test]
fn a_good_status_does_not_cover_data_that_failed_on_the_wire() {
    for outcome in [Outcome::Babble, Outcome::TransactionError, Outcome::Stall] {
        let mut machine = begun(Mode::Streams, &[(1, READ)]);
        machine.step(data(1, outcome, 512));
        assert_eq!(drain(&mut machine), [Action::ClearHalt(UasPipe::DataIn)]);
        machine.step(OPERATED);
        assert_eq!(drain(&mut machine), []);
        machine.step(on(1, good(1)));
        assert_eq!(drain(&mut machine), [failed(1, Cause::Transfer(outcome))]);
    }
}

#[test]
fn a_unit_on_the_wrong_stream_is_counted_and_the_stream_is_read_again() {
    let mut machine = begun(Mode::Streams, &[(1, READ), (2, READ)]);
    check(
        &mut machine,
        &[
            (on(1, good(2)), &[listen(1)]),
            (data(1, Outcome::Complete, 4096), &[]),
            (on(1, good(1)), &[ended(1, ScsiStatus::Good, 4096)]),
        ],
    );
    assert_eq!(machine.counters().strays, 1);
}

#[test]
fn with_streams_ready_units_mean_nothing() {
    let mut machine = begun(Mode::Streams, &[(1, READ)]);
    let ready = StatusUnit::ReadReady(tag(1));
    check(&mut machine, &[(on(1, ready), &[listen(1)])]);
    assert_eq!(machine.counters().strays, 1);
}

#[test]
fn what_is_no_unit_aborts_the_command_of_its_stream() {
    let mut machine = begun(Mode::Streams, &[(1, DataPhase::None)]);
    let fault = UnitFault::BulkOnlyStatus;
    let words = Input::Status {
        stream: Some(tag(1)),
        result: Ok(Err(fault)),
    };
    check(
        &mut machine,
        &[
            (words, &[listen(1), listen(ABORT), abort_task(1)]),
            (
                on(ABORT, response(ABORT, ResponseCode::Complete)),
                &[Action::Recall(UasPipe::Status)],
            ),
            (cancelled_status(1), &[failed(1, Cause::Status(fault))]),
            (OPERATED, &[]),
        ],
    );
    assert_eq!(machine.counters().bad_units, 1);
}

#[test]
fn case_0984_0301_a_device_that_says_nothing_else_than_bulk_only_words_is_given_up() {
    let mut machine = begun(Mode::Ready, &[(1, READ)]);
    let words = Input::Status {
        stream: None,
        result: Ok(Err(UnitFault::BulkOnlyStatus)),
    };
    check(
        &mut machine,
        &[
            (words, &[LISTEN]),
            (words, &[LISTEN]),
            (words, &[LISTEN]),
            (words, &[Action::GiveUp]),
            (words, &[]),
        ],
    );
}
