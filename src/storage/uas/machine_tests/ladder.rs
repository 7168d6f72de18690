//! Tests of the machine: late commands, and the functions that bring a device back in step.

use super::*;

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
fn the_data_of_all_commands_of_a_unit_are_taken_back_before_it_is_reset() {
    let mut machine = begun(Mode::Ready, &[(1, DataPhase::None), (2, READ)]);
    machine.begin(tag(3), 1, READ);
    drain(&mut machine);
    let ready = |number| heard(StatusUnit::ReadReady(tag(number)));
    check(
        &mut machine,
        &[
            (ready(2), &[LISTEN, Action::QueueData(tag(2), 0)]),
            (ready(3), &[LISTEN, Action::QueueData(tag(3), 0)]),
            (Input::Late(tag(1)), &[abort_task(1)]),
            (Input::Late(tag(ABORT)), &[Action::Recall(UasPipe::DataIn)]),
            (data(2, Outcome::Cancelled, 512), &[]),
            (data(3, Outcome::Cancelled, 0), &[]),
            // Those of another unit are queued again.
            (OPERATED, &[Action::QueueData(tag(3), 0), unit_reset()]),
            (ready(2), &[LISTEN]),
            (
                heard(response(RESET, ResponseCode::Complete)),
                &[
                    failed(1, Cause::Timeout),
                    failed(2, Cause::Neighbour),
                    LISTEN,
                ],
            ),
        ],
    );
}

#[test]
fn with_streams_the_data_of_a_units_commands_are_taken_back_before_it_is_reset_too() {
    let mut machine = begun(Mode::Streams, &[(1, DataPhase::None), (2, WRITE)]);
    machine.step(Input::Late(tag(1)));
    assert_eq!(drain(&mut machine), [listen(ABORT), abort_task(1)]);
    machine.step(Input::Late(tag(ABORT)));
    assert_eq!(drain(&mut machine), [Action::Recall(UasPipe::DataOut)]);
    assert!(machine.to_take_back(UasPipe::DataOut).contains(tag(2)));
    machine.step(data(2, Outcome::Cancelled, 0));
    assert_eq!(drain(&mut machine), [], "its pipe is not usable yet");
    machine.step(OPERATED);
    assert_eq!(drain(&mut machine), [listen(RESET), unit_reset()]);
}

#[test]
fn a_unit_reset_waits_for_data_that_end_by_themselves_and_goes_out_once() {
    let mut machine = begun(Mode::Ready, &[(1, DataPhase::None), (2, READ)]);
    let ready = heard(StatusUnit::ReadReady(tag(2)));
    check(
        &mut machine,
        &[
            (ready, &[LISTEN, Action::QueueData(tag(2), 0)]),
            // Its data are still to be seen.
            (heard(good(2)), &[LISTEN, Action::Linger(tag(2))]),
            (Input::Late(tag(1)), &[abort_task(1)]),
            (Input::Late(tag(ABORT)), &[]),
            (
                data(2, Outcome::Complete, 4096),
                &[ended(2, ScsiStatus::Good, 4096), unit_reset()],
            ),
        ],
    );
}

#[test]
fn a_command_that_is_aborted_gets_no_data_that_waited_for_their_pipe() {
    let mut machine = begun(Mode::Ready, &[(1, READ), (2, READ)]);
    let ready = |number| heard(StatusUnit::ReadReady(tag(number)));
    check(
        &mut machine,
        &[
            (ready(1), &[LISTEN, Action::QueueData(tag(1), 0)]),
            (
                data(1, Outcome::Stall, 0),
                &[Action::ClearHalt(UasPipe::DataIn)],
            ),
            (ready(2), &[LISTEN]),
            (Input::Late(tag(2)), &[abort_task(2)]),
            (OPERATED, &[]),
        ],
    );
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

/// The device ends a command, and with it the episode.
fn end_one(machine: &mut Machine) {
    machine.begin(tag(1), 0, DataPhase::None);
    drain(machine);
    machine.step(heard(good(1)));
    drain(machine);
    assert_eq!(machine.tried(), Tried::Nothing);
}

#[test]
fn each_function_is_tried_once_until_the_device_ends_a_command() {
    let mut machine = begun(Mode::Ready, &[(1, DataPhase::None), (2, DataPhase::None)]);
    let succeeded = |number| heard(response(number, ResponseCode::Complete));
    machine.step(Input::Late(tag(1)));
    assert_eq!(drain(&mut machine), [abort_task(1)]);
    machine.step(succeeded(ABORT));
    drain(&mut machine);
    // What was in flight beside it is late of the same fault.
    machine.step(Input::Late(tag(2)));
    assert_eq!(drain(&mut machine), [abort_task(2)]);
    machine.step(succeeded(ABORT));
    drain(&mut machine);
    // What was begun behind it is not.
    machine.begin(tag(3), 0, DataPhase::None);
    drain(&mut machine);
    machine.step(Input::Late(tag(3)));
    assert_eq!(drain(&mut machine), [unit_reset()]);
    machine.step(succeeded(RESET));
    drain(&mut machine);
    let mut well = machine;
    machine.begin(tag(4), 0, DataPhase::None);
    drain(&mut machine);
    machine.step(Input::Late(tag(4)));
    assert_eq!(drain(&mut machine), [Action::GiveUp]);
    // Had it ended one, all would begin anew.
    end_one(&mut well);
    well.begin(tag(4), 0, DataPhase::None);
    drain(&mut well);
    well.step(Input::Late(tag(4)));
    assert_eq!(drain(&mut well), [abort_task(4)]);
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
    end_one(&mut machine);
    // ABORT TASK's tag is not sure: the next late command has its unit reset at once.
    machine.begin(tag(3), 0, READ);
    drain(&mut machine);
    machine.step(Input::Late(tag(3)));
    assert_eq!(drain(&mut machine), [unit_reset()]);
    machine.step(heard(response(RESET, ResponseCode::Complete)));
    drain(&mut machine);
    end_one(&mut machine);
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
