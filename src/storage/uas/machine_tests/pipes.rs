//! Tests of the machine: halts and stops of pipes.

use super::*;

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

/// The controller goes on where the stream stands, with a buffer that is its owner's again, unless it is told not to.
#[test]
fn a_stream_that_stalled_is_named_also_when_its_command_has_ended_before_its_pipe_s_turn() {
    let numbers = |machine: &Machine, pipe| -> Vec<u16> {
        machine.to_take_back(pipe).map(Tag::number).collect()
    };
    let mut machine = begun(Mode::Streams, &[(1, READ), (2, WRITE)]);
    check(
        &mut machine,
        &[
            (
                data(1, Outcome::Stall, 0),
                &[Action::ClearHalt(UasPipe::DataIn)],
            ),
            (data(2, Outcome::Stall, 0), &[]),
            (on(2, bad(2)), &[ended(2, ScsiStatus::CheckCondition, 0)]),
            (OPERATED, &[Action::ClearHalt(UasPipe::DataOut)]),
        ],
    );
    assert_eq!(numbers(&machine, UasPipe::DataOut), [2]);
    machine.step(OPERATED);
    assert_eq!(numbers(&machine, UasPipe::DataOut), [RESET]);
}

/// The operation under way was told its streams when it began.
#[test]
fn a_stream_that_stalls_while_its_pipe_is_stopped_is_named_by_the_next_operation() {
    let numbers = |machine: &Machine| -> Vec<u16> {
        machine
            .to_take_back(UasPipe::DataIn)
            .map(Tag::number)
            .collect()
    };
    let halted = Input::Operated(Err(UsbError::Controller(HostError::Halted)));
    for (end, work) in [(OPERATED, "was stopped"), (halted, "was found halted")] {
        let mut machine = begun(Mode::Streams, &[(1, READ), (4, READ)]);
        check(
            &mut machine,
            &[
                (on(1, bad(1)), &[Action::Recall(UasPipe::DataIn)]),
                (
                    data(1, Outcome::Cancelled, 0),
                    &[ended(1, ScsiStatus::CheckCondition, 0)],
                ),
                (data(4, Outcome::Stall, 0), &[]),
                (on(4, bad(4)), &[ended(4, ScsiStatus::CheckCondition, 0)]),
                (end, &[Action::ClearHalt(UasPipe::DataIn)]),
            ],
        );
        assert_eq!(numbers(&machine), [4], "{work}");
    }
}
