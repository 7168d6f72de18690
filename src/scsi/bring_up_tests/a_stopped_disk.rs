//! Tests of bring-up: a stopped disk.

use super::*;

#[test]
fn is_started_then_asked_for_readiness() {
    let ended = at_first(TEST_UNIT_READY, 1, || fails(sense(2, 4, 2)));
    ended.found();
    let order = [
        INQUIRY,
        TEST_UNIT_READY,
        START_STOP,
        TEST_UNIT_READY,
        READ_CAPACITY_10,
        READ_10,
        MODE_SENSE_6,
    ];
    assert_eq!(ended.commands, order);
}

#[test]
fn that_wants_the_start_and_then_some_time_gets_both() {
    let mut started = None;
    let ended = bring_up(|command, now| match operation(command) {
        START_STOP => {
            started = Some(now);
            good(&[])
        }
        TEST_UNIT_READY => match started {
            None => fails(sense(2, 4, 2)),
            Some(start) if now - start < Duration::from_secs(6) => fails(sense(2, 4, 1)),
            Some(_) => good(&[]),
        },
        _ => healthy(command),
    });
    ended.found();
    assert_eq!(ended.count(START_STOP), 1);
    assert!(ended.took < Duration::from_millis(6_200));
}

#[test]
fn that_takes_the_start_but_stays_stopped_is_given_up_with_the_budget() {
    let state = sense(2, 4, 2);
    let ended = but_for(TEST_UNIT_READY, |_| fails(state));
    assert_eq!(ended.action, Action::Fail(BringUpError::NotReady(state)));
    assert!(ended.took >= BUDGET);
    assert!(ended.took < BUDGET + Duration::from_millis(200));
    assert!(ended.count(START_STOP) <= 201);
}

#[test]
fn that_wants_a_second_start_gets_it() {
    let mut starts = 0;
    let ended = bring_up(|command, _| match operation(command) {
        START_STOP => {
            starts += 1;
            good(&[])
        }
        TEST_UNIT_READY if starts < 2 => fails(sense(2, 4, 2)),
        _ => healthy(command),
    });
    ended.found();
    assert_eq!(ended.count(START_STOP), 2);
}

#[test]
fn that_does_not_know_the_start_is_waited_for_within_the_budget() {
    let state = sense(2, 4, 2);
    let ended = bring_up(|command, _| match operation(command) {
        START_STOP => fails(sense(5, 0x20, 0)),
        TEST_UNIT_READY => fails(state),
        _ => healthy(command),
    });
    assert!(matches!(
        ended.action,
        Action::Fail(BringUpError::NotReady(_))
    ));
    assert!(ended.took < BUDGET + Duration::from_millis(200));
}
