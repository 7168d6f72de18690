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
fn without_streams_a_command_goes_the_short_way_in_the_devices_order() {
    let mut machine = Machine::new(Mode::Ready, DEPTH);
    assert!(!machine.is_calm(), "nobody listens yet");
    assert_eq!(drain(&mut machine), [LISTEN]);
    for (number, expected, pipe) in [
        (1, READ, UasPipe::DataIn),
        (2, WRITE, UasPipe::DataOut),
        (1, READ, UasPipe::DataIn),
    ] {
        let tag = tag(number);
        machine.begin_at_once(tag, 0, expected);
        assert!(machine.is_calm());
        assert!(!machine.data_came(tag, 4096), "it is not even ready");
        assert_eq!(machine.pass(tag), None, "its data are missing");
        let other = match pipe {
            UasPipe::DataIn => UasPipe::DataOut,
            _ => UasPipe::DataIn,
        };
        assert!(!machine.ready_at_once(tag, other));
        assert!(machine.ready_at_once(tag, pipe));
        assert!(!machine.ready_at_once(tag, pipe), "twice for the same data");
        assert_eq!(machine.pass(tag), None, "its data are under way");
        assert!(machine.data_came(tag, 4096));
        assert_eq!(machine.pass(tag), Some(4096));
        assert_eq!(machine.pass(tag), None, "it has ended");
        assert!(machine.is_calm());
        assert_eq!(drain(&mut machine), [], "all was done at once");
    }
    for number in [3, 4, 15, 16, 17, 77] {
        assert!(!machine.ready_at_once(tag(number), UasPipe::DataIn));
        assert_eq!(machine.pass(tag(number)), None, "no command");
    }
}

#[test]
fn without_streams_a_command_that_began_the_short_way_may_go_on_the_long_one() {
    let mut machine = Machine::new(Mode::Ready, DEPTH);
    drain(&mut machine);
    machine.begin_at_once(tag(1), 0, READ);
    machine.begin_at_once(tag(2), 0, READ);
    assert!(machine.ready_at_once(tag(2), UasPipe::DataIn));
    let read_ready = heard(StatusUnit::ReadReady(tag(1)));
    check(
        &mut machine,
        &[
            (heard(good(2)), &[LISTEN, Action::Linger(tag(2))]),
            (
                data(2, Outcome::Complete, 4096),
                &[ended(2, ScsiStatus::Good, 4096)],
            ),
            (read_ready, &[LISTEN, Action::QueueData(tag(1), 0)]),
            (data(1, Outcome::Short, 512), &[]),
            (heard(good(1)), &[ended(1, ScsiStatus::Good, 512), LISTEN]),
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
