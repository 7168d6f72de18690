//! Tests of bring-up: readiness.

use super::*;

#[test]
fn that_takes_8_seconds_is_waited_for() {
    let ready = Instant::from_micros(13_000_000);
    let ended = but_for(TEST_UNIT_READY, |now| match now < ready {
        true => fails(sense(2, 4, 1)),
        false => good(&[]),
    });
    ended.found();
    assert!(ended.took >= Duration::from_secs(8));
    assert!(ended.took < Duration::from_millis(8_200));
    assert!(ended.count(TEST_UNIT_READY) <= 82);
}

#[test]
fn that_answers_each_question_only_after_3_seconds_is_waited_for() {
    let mut asked = 0;
    let ended = but_for(TEST_UNIT_READY, |_| {
        asked += 1;
        let answer = if asked < 4 {
            fails(sense(2, 4, 1))
        } else {
            good(&[])
        };
        answer.taking(Duration::from_secs(3))
    });
    ended.found();
}

#[test]
fn that_never_comes_ends_with_the_budget_and_says_what_the_unit_said_last() {
    let states = [
        sense(2, 4, 0),
        sense(2, 4, 1),
        sense(2, 4, 7),
        sense(2, 4, 3),
    ];
    for state in states {
        let ended = but_for(TEST_UNIT_READY, |_| fails(state));
        let fault = Action::Fail(BringUpError::NotReady(state));
        assert_eq!(ended.action, fault);
        assert!(ended.took >= BUDGET);
        assert!(ended.took < BUDGET + Duration::from_millis(200));
        assert!(ended.count(TEST_UNIT_READY) <= 201, "{state}");
    }
}

#[test]
fn is_asked_for_again_when_the_capacity_says_that_it_is_gone() {
    let ended = at_first(READ_CAPACITY_10, 1, || fails(sense(2, 4, 1)));
    ended.found();
    let order = [
        INQUIRY,
        TEST_UNIT_READY,
        READ_CAPACITY_10,
        TEST_UNIT_READY,
        READ_CAPACITY_10,
        READ_10,
        MODE_SENSE_6,
    ];
    assert_eq!(ended.commands, order);
    assert!(ended.took >= READY_POLL);
}

#[test]
fn that_comes_and_goes_for_ever_ends_with_the_budget() {
    let state = sense(2, 4, 1);
    let ended = but_for(READ_CAPACITY_10, |_| fails(state));
    assert_eq!(ended.action, Action::Fail(BringUpError::NotReady(state)));
    assert!(ended.took < BUDGET + Duration::from_millis(200));
}

#[test]
fn cannot_be_asked_of_a_device_without_the_command_which_counts_as_ready() {
    let ended = but_for(TEST_UNIT_READY, |_| fails(sense(5, 0x20, 0)));
    ended.found();
    assert_eq!(ended.count(TEST_UNIT_READY), 1);
}

#[test]
fn that_fails_without_a_reason_is_asked_three_times_then_the_capacity_decides() {
    for state in [Sense::NONE, sense(4, 0x44, 0x81), sense(3, 0x11, 0)] {
        let ended = but_for(TEST_UNIT_READY, |_| fails(state));
        ended.found();
        assert_eq!(ended.count(TEST_UNIT_READY), 3, "{state}");
    }
}
