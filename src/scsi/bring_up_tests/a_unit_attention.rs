//! Tests of bring-up: a unit attention.

use super::*;

#[test]
fn costs_the_same_question_once_more_and_no_pause() {
    let attentions = [
        sense(6, 0x28, 0),
        sense(6, 0x29, 0),
        sense(6, 0x2a, 1),
        sense(6, 0x2a, 9),
        sense(0xb, 0, 0),
    ];
    for code in [INQUIRY, TEST_UNIT_READY, READ_CAPACITY_10] {
        for attention in attentions {
            let ended = at_first(code, 1, || fails(attention));
            assert_eq!(ended.found().capacity.blocks(), 1000);
            assert_eq!(ended.count(code), 2, "{code:02x} {attention}");
            assert_eq!(ended.took, Duration::ZERO);
        }
    }
}

#[test]
fn may_come_eight_times_one_for_each_cause() {
    let ended = at_first(TEST_UNIT_READY, 8, || fails(sense(6, 0x29, 0)));
    assert_eq!(ended.count(TEST_UNIT_READY), 9);
    ended.found();
}

#[test]
fn that_never_ends_is_a_fault_of_the_unit() {
    for code in [INQUIRY, TEST_UNIT_READY, READ_CAPACITY_10] {
        let attention = sense(6, 0x28, 0);
        let ended = but_for(code, |_| fails(attention));
        let fault = Action::Fail(BringUpError::Failed(attention));
        assert_eq!(ended.action, fault);
        assert_eq!(ended.count(code), 9);
    }
}
