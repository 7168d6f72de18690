//! Tests of bring-up: inquiry.

use super::*;

#[test]
fn tells_what_is_no_disk_and_no_more_is_asked_of_it() {
    let kinds = [
        (0x01, "a tape"),
        (0x0d, "an enclosure"),
        (0x1f, "nothing"),
        (0x20, "a disk that is not connected"),
        (0x7f, "a unit that cannot be"),
    ];
    for (byte, what) in kinds {
        let ended = but_for(INQUIRY, |_| good(&[byte, 0, 6, 2, 31]));
        assert_eq!(ended.action, Action::Skip, "{what}");
        assert_eq!(ended.commands, [INQUIRY], "{what}");
    }
}

#[test]
fn of_an_optical_drive_or_a_reduced_disk_leads_on() {
    for byte in [0x05, 0x0e] {
        but_for(INQUIRY, |_| good(&[byte, 0x80, 0, 2, 31])).found();
    }
}

#[test]
fn that_the_unit_refuses_again_and_again_skips_it() {
    for refusal in [sense(5, 0x25, 0), sense(5, 0x20, 0), sense(5, 0x24, 0)] {
        let ended = but_for(INQUIRY, |_| fails(refusal));
        assert_eq!(ended.action, Action::Skip);
        assert_eq!(ended.commands, [INQUIRY; 3]);
    }
}

#[test]
fn that_the_unit_refuses_once_does_not_lose_it() {
    for refusal in [sense(5, 0x25, 0), sense(5, 0x20, 0), sense(5, 0x24, 0)] {
        let ended = at_first(INQUIRY, 1, || fails(refusal));
        ended.found();
    }
}

#[test]
fn is_believed_over_a_unit_that_says_once_that_it_is_not_there() {
    let ended = at_first(TEST_UNIT_READY, 1, || fails(sense(5, 0x25, 0)));
    ended.found();
}

#[test]
fn without_an_answer_is_asked_three_times() {
    let ended = but_for(INQUIRY, |_| good(&[]));
    assert_eq!(ended.action, Action::Fail(BringUpError::NoInquiryData));
    assert_eq!(ended.commands, [INQUIRY; 3]);
    at_first(INQUIRY, 2, || good(&[])).found();
}
