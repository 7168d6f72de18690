//! Tables of what happens and what is done about it. Every table begins with commands, and each of
//! its rows is one input with all actions that follow.

use super::*;
use crate::scsi::sense::SenseKey;
use std::vec::Vec;

const DEPTH: u8 = 4;
/// ABORT TASK and LOGICAL UNIT RESET.
const ABORT: u16 = 5;
const RESET: u16 = 6;
const READ: DataPhase = DataPhase::In(4096);
const WRITE: DataPhase = DataPhase::Out(4096);

fn tag(number: u16) -> Tag {
    Tag::new(number).unwrap()
}

fn drain(machine: &mut Machine) -> Vec<Action> {
    let mut actions = Vec::new();
    loop {
        match machine.next_action() {
            Action::Wait => return actions,
            action => actions.push(action),
        }
        assert!(actions.len() < 100, "no end of actions");
    }
}

/// A machine with these commands begun, on unit 0.
fn begun(mode: Mode, commands: &[(u16, DataPhase)]) -> Machine {
    let mut machine = Machine::new(mode, DEPTH);
    for (number, data) in commands {
        machine.begin(tag(*number), 0, *data);
    }
    drain(&mut machine);
    machine
}

fn check(machine: &mut Machine, rows: &[(Input, &[Action])]) {
    for (number, (input, expected)) in rows.iter().enumerate() {
        machine.step(*input);
        assert_eq!(drain(machine), *expected, "row {number}: {input:?}");
    }
}

fn sense(number: u16, status: ScsiStatus) -> StatusUnit {
    StatusUnit::Sense {
        tag: tag(number),
        status,
        sense: Sense::NONE,
    }
}

/// A unit on the one status pipe.
fn heard(unit: StatusUnit) -> Input {
    Input::Status {
        stream: None,
        result: Ok(Ok(unit)),
    }
}

/// A unit on its stream.
fn on(number: u16, unit: StatusUnit) -> Input {
    Input::Status {
        stream: Some(tag(number)),
        result: Ok(Ok(unit)),
    }
}

fn good(number: u16) -> StatusUnit {
    sense(number, ScsiStatus::Good)
}

fn bad(number: u16) -> StatusUnit {
    sense(number, ScsiStatus::CheckCondition)
}

fn response(number: u16, code: ResponseCode) -> StatusUnit {
    StatusUnit::Response {
        tag: tag(number),
        code,
    }
}

fn data(number: u16, outcome: Outcome, actual: u32) -> Input {
    Input::Data {
        tag: tag(number),
        outcome,
        actual,
    }
}

fn ended(number: u16, status: ScsiStatus, moved: u32) -> Action {
    let sense = Sense::NONE;
    let end = End::Status {
        status,
        sense,
        moved,
    };
    Action::Finish(tag(number), end)
}

fn failed(number: u16, cause: Cause) -> Action {
    Action::Finish(tag(number), End::Failed(cause))
}

fn listen(number: u16) -> Action {
    Action::ReadStatus(Some(tag(number)))
}

const LISTEN: Action = Action::ReadStatus(None);
const OPERATED: Input = Input::Operated(Ok(()));

fn cancelled_status(number: u16) -> Input {
    Input::Status {
        stream: Some(tag(number)),
        result: Err(Outcome::Cancelled),
    }
}

fn abort_task(target: u16) -> Action {
    Action::SendTask(tag(ABORT), TaskFunction::AbortTask(tag(target)), 0)
}

fn unit_reset() -> Action {
    Action::SendTask(tag(RESET), TaskFunction::LogicalUnitReset, 0)
}

// With streams.

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

// Without streams.

#[test]
fn without_streams_one_status_read_is_posted_always() {
    let mut machine = Machine::new(Mode::Ready, DEPTH);
    machine.begin(tag(1), 0, DataPhase::None);
    let expected = [LISTEN, Action::SendCommand(tag(1))];
    assert_eq!(drain(&mut machine), expected);
    machine.begin(tag(2), 0, DataPhase::None);
    assert_eq!(drain(&mut machine), [Action::SendCommand(tag(2))]);
    check(
        &mut machine,
        &[
            (heard(good(2)), &[ended(2, ScsiStatus::Good, 0), LISTEN]),
            (heard(good(1)), &[ended(1, ScsiStatus::Good, 0), LISTEN]),
        ],
    );
}

#[test]
fn without_streams_data_is_queued_when_the_device_is_ready_in_its_order() {
    let mut machine = begun(Mode::Ready, &[(1, READ), (2, WRITE), (3, READ)]);
    let read_ready = |number| heard(StatusUnit::ReadReady(tag(number)));
    let write_ready = |number| heard(StatusUnit::WriteReady(tag(number)));
    check(
        &mut machine,
        &[
            (read_ready(3), &[LISTEN, Action::QueueData(tag(3), 0)]),
            (write_ready(2), &[LISTEN, Action::QueueData(tag(2), 0)]),
            (data(3, Outcome::Complete, 4096), &[]),
            (heard(good(3)), &[ended(3, ScsiStatus::Good, 4096), LISTEN]),
            (read_ready(1), &[LISTEN, Action::QueueData(tag(1), 0)]),
            (data(1, Outcome::Complete, 4096), &[]),
            (heard(good(1)), &[ended(1, ScsiStatus::Good, 4096), LISTEN]),
            (data(2, Outcome::Complete, 4096), &[]),
            (heard(good(2)), &[ended(2, ScsiStatus::Good, 4096), LISTEN]),
        ],
    );
    assert_eq!(machine.counters(), Counters::default());
}

#[test]
fn readiness_that_fits_no_command_is_counted_and_ignored() {
    let strays = [
        StatusUnit::ReadReady(tag(2)),
        StatusUnit::ReadReady(tag(4)),
        StatusUnit::ReadReady(tag(77)),
        StatusUnit::WriteReady(tag(1)),
        StatusUnit::WriteReady(tag(3)),
    ];
    for unit in strays {
        let mut machine = begun(Mode::Ready, &[(1, READ), (2, WRITE), (3, DataPhase::None)]);
        check(&mut machine, &[(heard(unit), &[LISTEN])]);
        assert_eq!(machine.counters().strays, 1, "{unit:?}");
    }
    let mut machine = begun(Mode::Ready, &[(1, READ)]);
    let ready = heard(StatusUnit::ReadReady(tag(1)));
    check(
        &mut machine,
        &[
            (ready, &[LISTEN, Action::QueueData(tag(1), 0)]),
            (ready, &[LISTEN]),
            (data(1, Outcome::Complete, 4096), &[]),
            (ready, &[LISTEN]),
        ],
    );
    assert_eq!(machine.counters().strays, 2, "twice for the same data");
}

#[test]
fn a_command_may_end_without_its_data_phase() {
    let mut machine = begun(Mode::Ready, &[(1, READ)]);
    check(
        &mut machine,
        &[(
            heard(bad(1)),
            &[ended(1, ScsiStatus::CheckCondition, 0), LISTEN],
        )],
    );
}

#[test]
fn readiness_during_a_halt_waits_until_the_pipe_is_usable() {
    let mut machine = begun(Mode::Ready, &[(1, READ), (2, READ)]);
    check(
        &mut machine,
        &[
            (
                heard(StatusUnit::ReadReady(tag(1))),
                &[LISTEN, Action::QueueData(tag(1), 0)],
            ),
            (
                data(1, Outcome::Stall, 0),
                &[Action::ClearHalt(UasPipe::DataIn)],
            ),
            (
                heard(bad(1)),
                &[ended(1, ScsiStatus::CheckCondition, 0), LISTEN],
            ),
            (heard(StatusUnit::ReadReady(tag(2))), &[LISTEN]),
            (OPERATED, &[Action::QueueData(tag(2), 0)]),
        ],
    );
}

#[test]
fn field_case_23_sense_for_an_unknown_tag_is_counted_and_ignored() {
    for number in [2, 4, ABORT, RESET, 7, 16, 17, u16::MAX] {
        for unit in [good(number), response(number, ResponseCode::InvalidUnit)] {
            let mut machine = begun(Mode::Ready, &[(1, READ)]);
            check(&mut machine, &[(heard(unit), &[LISTEN])]);
            assert_eq!(machine.counters().strays, 1, "{unit:?}");
        }
    }
}

#[test]
fn a_second_status_of_the_same_command_is_a_stray() {
    let mut machine = begun(Mode::Ready, &[(1, DataPhase::None)]);
    check(
        &mut machine,
        &[
            (heard(good(1)), &[ended(1, ScsiStatus::Good, 0), LISTEN]),
            (heard(good(1)), &[LISTEN]),
        ],
    );
    assert_eq!(machine.counters().strays, 1);
}

#[test]
fn a_refused_command_is_dead_at_once_and_only_an_overlapped_tag_kills_all() {
    let codes = [
        ResponseCode::InvalidUnit,
        ResponseCode::IncorrectLun,
        ResponseCode::Failed,
        ResponseCode::Complete,
        ResponseCode::Other(0x42),
    ];
    for code in codes {
        let mut machine = begun(Mode::Ready, &[(1, READ), (2, READ)]);
        check(
            &mut machine,
            &[(
                heard(response(1, code)),
                &[failed(1, Cause::Refused(code)), LISTEN],
            )],
        );
    }
    let mut machine = begun(Mode::Ready, &[(1, READ), (2, READ)]);
    let overlapped = heard(response(1, ResponseCode::OverlappedTag));
    check(&mut machine, &[(overlapped, &[Action::GiveUp])]);
}

// The status and command pipes.

#[test]
fn a_halted_status_pipe_is_cleared_and_all_its_reads_are_queued_again() {
    let mut machine = begun(Mode::Streams, &[(1, DataPhase::None), (2, DataPhase::None)]);
    let stalled = Input::Status {
        stream: Some(tag(1)),
        result: Err(Outcome::Stall),
    };
    check(
        &mut machine,
        &[
            (stalled, &[Action::ClearHalt(UasPipe::Status)]),
            (cancelled_status(2), &[]),
            (OPERATED, &[listen(1), listen(2)]),
            (on(2, good(2)), &[ended(2, ScsiStatus::Good, 0)]),
        ],
    );
}

#[test]
fn a_status_pipe_that_halts_for_ever_ends_with_giving_up() {
    let mut machine = begun(Mode::Ready, &[(1, DataPhase::None)]);
    let stalled = Input::Status {
        stream: None,
        result: Err(Outcome::Stall),
    };
    for _ in 0..3 {
        check(
            &mut machine,
            &[
                (stalled, &[Action::ClearHalt(UasPipe::Status)]),
                (OPERATED, &[LISTEN]),
            ],
        );
    }
    check(&mut machine, &[(stalled, &[Action::GiveUp])]);
}

#[test]
fn a_command_pipe_that_fails_and_a_pipe_that_cannot_be_stopped_leave_the_port_reset() {
    for outcome in [Outcome::Stall, Outcome::TransactionError] {
        let mut machine = begun(Mode::Streams, &[(1, READ)]);
        check(
            &mut machine,
            &[(Input::Command(outcome), &[Action::GiveUp])],
        );
        assert!(!machine.takes_commands());
    }
    for end in [
        Input::Operated(Err(UsbError::Timeout)),
        Input::OperationLate,
    ] {
        let mut machine = begun(Mode::Streams, &[(1, READ)]);
        check(
            &mut machine,
            &[
                (on(1, bad(1)), &[Action::Recall(UasPipe::DataIn)]),
                (end, &[Action::GiveUp]),
            ],
        );
    }
}

// The ladder.

#[test]
fn rung_1_a_late_command_is_aborted_and_its_tag_alone_dies() {
    let mut machine = begun(Mode::Streams, &[(1, READ), (2, READ)]);
    check(
        &mut machine,
        &[
            (Input::Late(tag(1)), &[Action::Recall(UasPipe::DataIn)]),
            (data(1, Outcome::Cancelled, 512), &[]),
            (OPERATED, &[listen(ABORT), abort_task(1)]),
            (
                on(ABORT, response(ABORT, ResponseCode::Succeeded)),
                &[Action::Recall(UasPipe::Status)],
            ),
            (cancelled_status(1), &[failed(1, Cause::Timeout)]),
            (OPERATED, &[]),
            (data(2, Outcome::Complete, 4096), &[]),
            (on(2, good(2)), &[ended(2, ScsiStatus::Good, 4096)]),
        ],
    );
    assert_eq!(
        (machine.counters().aborts, machine.counters().unit_resets),
        (1, 0)
    );
}

#[test]
fn rung_1_without_streams_nothing_needs_to_be_taken_back() {
    let mut machine = begun(Mode::Ready, &[(1, READ), (2, READ)]);
    check(
        &mut machine,
        &[
            (Input::Late(tag(1)), &[abort_task(1)]),
            (
                heard(response(ABORT, ResponseCode::Complete)),
                &[failed(1, Cause::Timeout), LISTEN],
            ),
        ],
    );
}

#[test]
fn the_data_of_a_late_command_are_taken_back_before_it_is_aborted() {
    let mut machine = begun(Mode::Ready, &[(1, READ), (2, READ)]);
    check(
        &mut machine,
        &[
            (
                heard(StatusUnit::ReadReady(tag(1))),
                &[LISTEN, Action::QueueData(tag(1), 0)],
            ),
            (Input::Late(tag(1)), &[Action::Recall(UasPipe::DataIn)]),
            (data(1, Outcome::Cancelled, 512), &[]),
            (OPERATED, &[abort_task(1)]),
            (
                heard(response(ABORT, ResponseCode::Complete)),
                &[failed(1, Cause::Timeout), LISTEN],
            ),
        ],
    );
}

#[test]
fn a_device_that_is_ready_for_data_of_a_command_that_is_being_aborted_gets_none() {
    let mut machine = begun(Mode::Ready, &[(1, READ)]);
    check(
        &mut machine,
        &[
            (Input::Late(tag(1)), &[abort_task(1)]),
            (heard(StatusUnit::ReadReady(tag(1))), &[LISTEN]),
            (
                heard(response(ABORT, ResponseCode::Complete)),
                &[failed(1, Cause::Timeout), LISTEN],
            ),
        ],
    );
    assert_eq!(machine.counters().strays, 0);
}

#[test]
fn of_two_late_commands_each_has_its_data_taken_back_although_their_pipe_is_the_same() {
    let mut machine = begun(Mode::Streams, &[(1, READ), (2, READ)]);
    let succeeded = on(ABORT, response(ABORT, ResponseCode::Succeeded));
    check(
        &mut machine,
        &[
            (Input::Late(tag(1)), &[Action::Recall(UasPipe::DataIn)]),
            // Its stream was not named when the pipe was stopped.
            (Input::Late(tag(2)), &[]),
            (data(1, Outcome::Cancelled, 0), &[]),
            (
                OPERATED,
                &[
                    listen(ABORT),
                    abort_task(1),
                    Action::Recall(UasPipe::DataIn),
                ],
            ),
            (data(2, Outcome::Cancelled, 0), &[]),
            (OPERATED, &[]),
            (succeeded, &[Action::Recall(UasPipe::Status)]),
            (cancelled_status(1), &[failed(1, Cause::Timeout)]),
            (OPERATED, &[listen(ABORT), abort_task(2)]),
            (succeeded, &[Action::Recall(UasPipe::Status)]),
            (cancelled_status(2), &[failed(2, Cause::Timeout)]),
            (OPERATED, &[]),
        ],
    );
}

#[test]
fn field_case_23_a_late_status_ends_the_command_but_not_before_its_abort_has() {
    let mut machine = begun(Mode::Ready, &[(1, DataPhase::None)]);
    check(
        &mut machine,
        &[
            (Input::Late(tag(1)), &[abort_task(1)]),
            (heard(good(1)), &[LISTEN]),
            (
                heard(response(ABORT, ResponseCode::Complete)),
                &[ended(1, ScsiStatus::Good, 0), LISTEN],
            ),
        ],
    );
}

#[test]
fn rung_2_a_unit_reset_kills_all_tags_of_that_unit_and_no_other() {
    let reasons = [
        heard(response(ABORT, ResponseCode::NotSupported)),
        heard(response(ABORT, ResponseCode::Failed)),
        heard(response(ABORT, ResponseCode::Other(0x99))),
        Input::Late(tag(ABORT)),
    ];
    for reason in reasons {
        let mut machine = begun(Mode::Ready, &[(1, READ), (2, READ)]);
        machine.begin(tag(3), 1, READ);
        drain(&mut machine);
        machine.step(Input::Late(tag(1)));
        assert_eq!(drain(&mut machine), [abort_task(1)]);
        machine.step(reason);
        assert!(drain(&mut machine).contains(&unit_reset()), "{reason:?}");
        check(
            &mut machine,
            &[
                (
                    heard(response(RESET, ResponseCode::Complete)),
                    &[
                        failed(1, Cause::Timeout),
                        failed(2, Cause::Neighbour),
                        LISTEN,
                    ],
                ),
                (
                    heard(bad(3)),
                    &[ended(3, ScsiStatus::CheckCondition, 0), LISTEN],
                ),
            ],
        );
        assert_eq!(machine.counters().unit_resets, 1);
    }
}

#[test]
fn rung_3_a_unit_reset_that_fails_leaves_the_port_reset() {
    let reasons = [
        heard(response(RESET, ResponseCode::NotSupported)),
        heard(response(RESET, ResponseCode::Failed)),
        heard(response(RESET, ResponseCode::IncorrectLun)),
        Input::Late(tag(RESET)),
    ];
    for reason in reasons {
        let mut machine = begun(Mode::Ready, &[(1, READ)]);
        machine.step(Input::Late(tag(1)));
        drain(&mut machine);
        machine.step(Input::Late(tag(ABORT)));
        assert_eq!(drain(&mut machine), [unit_reset()]);
        machine.step(reason);
        assert_eq!(drain(&mut machine), [Action::GiveUp], "{reason:?}");
    }
}

#[test]
fn late_commands_are_aborted_one_after_the_other() {
    let mut machine = begun(Mode::Ready, &[(1, READ), (2, READ), (3, READ)]);
    check(
        &mut machine,
        &[
            (Input::Late(tag(1)), &[abort_task(1)]),
            (Input::Late(tag(2)), &[]),
            (Input::Late(tag(3)), &[]),
            (heard(bad(2)), &[LISTEN]),
            (
                heard(response(ABORT, ResponseCode::Complete)),
                &[
                    failed(1, Cause::Timeout),
                    ended(2, ScsiStatus::CheckCondition, 0),
                    LISTEN,
                    abort_task(3),
                ],
            ),
            (
                heard(response(ABORT, ResponseCode::Complete)),
                &[failed(3, Cause::Timeout), LISTEN],
            ),
        ],
    );
    assert_eq!(machine.counters().aborts, 2);
}

#[test]
fn a_function_that_had_no_answer_keeps_its_tag_until_the_answer_comes() {
    let mut machine = begun(Mode::Ready, &[(1, READ), (2, READ)]);
    machine.step(Input::Late(tag(1)));
    drain(&mut machine);
    machine.step(Input::Late(tag(ABORT)));
    drain(&mut machine);
    machine.step(heard(response(RESET, ResponseCode::Complete)));
    drain(&mut machine);
    // ABORT TASK's tag is not sure: the next late command has its unit reset at once.
    machine.begin(tag(3), 0, READ);
    drain(&mut machine);
    machine.step(Input::Late(tag(3)));
    assert_eq!(drain(&mut machine), [unit_reset()]);
    machine.step(heard(response(RESET, ResponseCode::Complete)));
    drain(&mut machine);
    // Its late answer makes it good again.
    machine.step(heard(response(ABORT, ResponseCode::Complete)));
    drain(&mut machine);
    machine.begin(tag(4), 0, READ);
    drain(&mut machine);
    machine.step(Input::Late(tag(4)));
    assert_eq!(drain(&mut machine), [abort_task(4)]);
}

#[test]
fn no_command_begins_while_the_device_is_brought_back_in_step() {
    let mut machine = begun(Mode::Ready, &[(1, READ)]);
    assert!(machine.takes_commands());
    machine.step(Input::Late(tag(1)));
    drain(&mut machine);
    assert!(!machine.takes_commands());
    machine.step(heard(response(ABORT, ResponseCode::Complete)));
    drain(&mut machine);
    assert!(machine.takes_commands());
}

#[test]
fn an_answer_to_the_function_itself_that_is_no_unit_is_the_next_rung() {
    let mut machine = begun(Mode::Streams, &[(1, DataPhase::None)]);
    let fault = UnitFault::WrongIdentifier { found: 0xff };
    machine.step(Input::Late(tag(1)));
    drain(&mut machine);
    machine.step(Input::Status {
        stream: Some(tag(ABORT)),
        result: Ok(Err(fault)),
    });
    assert_eq!(drain(&mut machine), [listen(RESET), unit_reset()]);
}

#[test]
fn sense_data_reach_the_end_of_the_command() {
    let mut machine = begun(Mode::Ready, &[(1, READ)]);
    let data = [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0, 0, 0, 0, 0];
    let sense = Sense::parse(&data);
    machine.step(heard(StatusUnit::Sense {
        tag: tag(1),
        status: ScsiStatus::CheckCondition,
        sense,
    }));
    let actions = drain(&mut machine);
    let Some(Action::Finish(_, End::Status { sense: found, .. })) = actions.first() else {
        panic!("not finished: {actions:?}");
    };
    assert_eq!(found.key, SenseKey::IllegalRequest);
}

/// Whatever comes in whatever order: no tag ends twice, none ends with a transfer in flight, and the
/// machine neither panics nor loops.
#[test]
fn no_sequence_of_inputs_ends_a_tag_with_a_transfer_in_flight() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..4000 {
        let mode = if round % 2 == 0 {
            Mode::Streams
        } else {
            Mode::Ready
        };
        run_at_random(mode, &mut seed);
    }
}

fn random(seed: &mut u64, below: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed % below
}

fn run_at_random(mode: Mode, seed: &mut u64) {
    let mut machine = Machine::new(mode, DEPTH);
    // Transfers in flight by tag: status, data; and whether a command has the tag.
    let (mut status, mut data_out, mut used) = ([false; 18], [false; 18], [false; 18]);
    for _ in 0..60 {
        let number = random(seed, 7) as u16 + 1;
        let place = usize::from(number);
        let outcome = match random(seed, 8) {
            0 => Outcome::Stall,
            1 => Outcome::Short,
            2 => Outcome::Babble,
            _ => Outcome::Complete,
        };
        let unit = match random(seed, 6) {
            0 => bad(number),
            1 => response(number, ResponseCode::Complete),
            2 => response(number, ResponseCode::NotSupported),
            3 => StatusUnit::ReadReady(tag(number)),
            _ => good(number),
        };
        match random(seed, 6) {
            0 if number <= u16::from(DEPTH) && !used[place] && machine.takes_commands() => {
                used[place] = true;
                machine.begin(tag(number), 0, READ);
            }
            1 if data_out[place] => {
                data_out[place] = false;
                machine.step(data(number, outcome, 512));
            }
            2 if mode == Mode::Streams && status[place] => {
                status[place] = false;
                machine.step(on(number, unit));
            }
            3 if mode == Mode::Ready => machine.step(heard(unit)),
            4 => machine.step(Input::Late(tag(number))),
            5 if machine.running.is_some() => {
                let pipe = machine.running;
                for other in 1..18_u16 {
                    let place = usize::from(other);
                    if pipe == Some(UasPipe::Status) && core::mem::take(&mut status[place]) {
                        machine.step(cancelled_status(other));
                    }
                    if pipe == Some(UasPipe::DataIn) && core::mem::take(&mut data_out[place]) {
                        machine.step(data(other, Outcome::Cancelled, 0));
                    }
                }
                machine.step(OPERATED);
            }
            _ => {}
        }
        for action in drain(&mut machine) {
            match action {
                Action::ReadStatus(Some(tag)) => {
                    let place = &mut status[usize::from(tag.number())];
                    assert!(!core::mem::replace(place, true), "two reads on a stream");
                }
                Action::QueueData(tag, _) => {
                    let place = &mut data_out[usize::from(tag.number())];
                    assert!(!core::mem::replace(place, true), "its data twice");
                }
                Action::Finish(tag, _) => {
                    let place = usize::from(tag.number());
                    assert!(core::mem::take(&mut used[place]), "ended twice");
                    assert!(!data_out[place] && !status[place], "still in flight");
                }
                Action::GiveUp => return,
                _ => {}
            }
        }
    }
}

#[test]
fn a_machine_without_streams_is_not_quiet_while_its_status_read_is_missing() {
    let mut machine = begun(Mode::Ready, &[(1, READ)]);
    assert!(machine.is_quiet());
    machine.step(Input::Status {
        stream: None,
        result: Ok(Ok(StatusUnit::ReadReady(tag(9)))),
    });
    assert!(!machine.is_quiet());
    assert_eq!(machine.next_action(), LISTEN);
    assert!(machine.is_quiet());
}

#[test]
fn a_pipe_that_was_found_halted_as_it_was_recalled_has_its_device_s_halt_cleared_once() {
    let halted = Input::Operated(Err(UsbError::Controller(HostError::Halted)));
    let clear = Action::ClearHalt(UasPipe::DataIn);
    let mut machine = begun(Mode::Streams, &[(1, READ)]);
    check(
        &mut machine,
        &[
            (on(1, bad(1)), &[Action::Recall(UasPipe::DataIn)]),
            (
                data(1, Outcome::Cancelled, 0),
                &[ended(1, ScsiStatus::CheckCondition, 0)],
            ),
            (halted, &[clear]),
            (OPERATED, &[]),
        ],
    );
    assert!(machine.takes_commands());
    let mut machine = begun(Mode::Streams, &[(1, READ)]);
    check(
        &mut machine,
        &[
            (on(1, bad(1)), &[Action::Recall(UasPipe::DataIn)]),
            (halted, &[clear]),
            (halted, &[Action::GiveUp]),
        ],
    );
}

#[test]
fn a_command_that_fails_while_another_s_data_is_taken_back_has_its_own_taken_back_next() {
    let recall = Action::Recall(UasPipe::DataIn);
    let mut machine = begun(Mode::Streams, &[(1, READ), (2, READ)]);
    check(
        &mut machine,
        &[
            (on(1, bad(1)), &[recall]),
            (on(2, bad(2)), &[]),
            (
                data(1, Outcome::Cancelled, 0),
                &[ended(1, ScsiStatus::CheckCondition, 0)],
            ),
            (OPERATED, &[recall]),
            (
                data(2, Outcome::Cancelled, 0),
                &[ended(2, ScsiStatus::CheckCondition, 0)],
            ),
            (OPERATED, &[]),
        ],
    );
}

#[test]
fn with_streams_an_operation_names_only_those_whose_transfers_must_come_back() {
    let numbers = |machine: &Machine, pipe| -> Vec<u16> {
        machine.to_take_back(pipe).map(Tag::number).collect()
    };
    let mut machine = begun(
        Mode::Streams,
        &[(1, READ), (2, READ), (3, WRITE), (4, READ)],
    );
    // A failed command, whose data the device has passed over.
    machine.step(on(1, bad(1)));
    assert_eq!(numbers(&machine, UasPipe::DataIn), [1]);
    // Another one's data stalled meanwhile.
    machine.step(data(4, Outcome::Stall, 0));
    assert_eq!(numbers(&machine, UasPipe::DataIn), [1, 4]);
    // Nothing is known of the others: some stream without transfers stands for none.
    assert_eq!(numbers(&machine, UasPipe::DataOut), [RESET]);
    // A command that the device has given up waits for nothing on its status stream.
    machine.step(on(3, response(3, ResponseCode::InvalidUnit)));
    assert_eq!(numbers(&machine, UasPipe::DataOut), [3]);
    let mut machine = begun(Mode::Streams, &[(1, READ), (2, READ)]);
    machine.step(Input::Status {
        stream: Some(tag(2)),
        result: Err(Outcome::Stall),
    });
    assert_eq!(numbers(&machine, UasPipe::Status), [2]);
}
