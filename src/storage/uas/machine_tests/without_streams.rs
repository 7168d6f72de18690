//! Tests of the machine: commands without streams.

use super::*;

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
