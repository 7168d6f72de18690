//! Tests of bring-up: an empty unit.

use super::*;

#[test]
fn is_asked_three_times_and_then_is_there_without_a_medium() {
    for state in [
        sense(2, 0x3a, 0),
        sense(2, 0x3a, 1),
        sense(2, 0x3a, 2),
        sense(6, 0x3a, 0),
    ] {
        let ended = but_for(TEST_UNIT_READY, |_| fails(state));
        let inquiry = Inquiry::parse(STICK).unwrap();
        assert_eq!(ended.action, Action::Empty(inquiry));
        assert_eq!(
            ended.commands,
            [INQUIRY, TEST_UNIT_READY, TEST_UNIT_READY, TEST_UNIT_READY]
        );
        assert!(ended.took <= Duration::from_millis(300));
    }
}

#[test]
fn may_have_looked_only_at_the_third_question() {
    at_first(TEST_UNIT_READY, 2, || fails(sense(2, 0x3a, 0))).found();
}

#[test]
fn may_say_so_only_when_asked_for_its_capacity() {
    let ended = but_for(READ_CAPACITY_10, |_| fails(sense(2, 0x3a, 0)));
    assert!(matches!(ended.action, Action::Empty(_)));
    assert_eq!(ended.count(READ_CAPACITY_10), 3);
}

/// As card readers are known to give it.
#[test]
fn may_give_block_0_as_its_last() {
    let ended = but_for(READ_CAPACITY_10, |_| good(&capacity_10(0, 512)));
    assert!(matches!(ended.action, Action::Empty(_)));
    assert_eq!(ended.count(READ_CAPACITY_10), 1);
}
