//! Tests of bring-up: write protection.

use super::*;

#[test]
fn is_asked_for_with_6_bytes_and_192_of_answer() {
    let ended = bring_up(|command, _| {
        if operation(command) == MODE_SENSE_6 {
            assert_eq!(command.cdb.to_bytes(), [0x1a, 0, 0x3f, 0, 192, 0]);
            assert_eq!(command.data, DataPhase::In(192));
        }
        healthy(command)
    });
    ended.found();
}

#[test]
fn is_one_bit_of_the_answer() {
    let protected = |byte| {
        but_for(MODE_SENSE_6, |_| good(&[3, 0, byte, 0]))
            .found()
            .write_protected
    };
    assert!(protected(0x80));
    assert!(!protected(0x7f));
}

#[test]
fn that_is_not_told_means_writable_and_is_not_asked_for_again() {
    let answers: [fn() -> Answer; 6] = [
        || good(&[]),
        || good(&[3, 0]),
        || fails(sense(5, 0x20, 0)),
        || fails(sense(5, 0x24, 0)),
        || fails(sense(4, 0x44, 0)),
        || fails(Sense::NONE),
    ];
    for answer in answers {
        let ended = but_for(MODE_SENSE_6, |_| answer());
        assert!(!ended.found().write_protected);
        assert_eq!(ended.count(MODE_SENSE_6), 1);
        assert_eq!(ended.commands.last(), Some(&MODE_SENSE_6));
    }
}

#[test]
fn is_asked_for_again_after_a_unit_attention() {
    let mut attention = Some(sense(6, 0x29, 0));
    let ended = but_for(MODE_SENSE_6, |_| match attention.take() {
        Some(attention) => fails(attention),
        None => good(&[3, 0, 0x80, 0]),
    });
    assert!(ended.found().write_protected);
    let ended = but_for(MODE_SENSE_6, |_| fails(sense(6, 0x29, 0)));
    assert!(!ended.found().write_protected);
    assert_eq!(ended.count(MODE_SENSE_6), 9);
}

#[test]
fn of_another_medium_than_the_capacity_is_not_taken() {
    for changed in [sense(6, 0x28, 0), sense(6, 0x2a, 9)] {
        let mut blocks = 999;
        let ended = bring_up(|command, _| match operation(command) {
            READ_CAPACITY_10 => good(&capacity_10(blocks, 512)),
            MODE_SENSE_6 if blocks == 999 => {
                blocks = 499;
                fails(changed)
            }
            _ => healthy(command),
        });
        assert_eq!(ended.found().capacity.blocks(), 500);
        assert_eq!(ended.count(MODE_SENSE_6), 2);
    }
}

#[test]
fn of_a_medium_that_was_taken_out_leaves_an_empty_unit() {
    let mut out = false;
    let ended = bring_up(|command, _| match operation(command) {
        MODE_SENSE_6 => {
            out = true;
            fails(sense(2, 0x3a, 0))
        }
        TEST_UNIT_READY if out => fails(sense(2, 0x3a, 0)),
        _ => healthy(command),
    });
    assert!(matches!(ended.action, Action::Empty(_)));
}

#[test]
fn whose_question_upsets_the_device_leaves_a_disk_that_can_be_used() {
    for error in [
        TransportError::Timeout,
        TransportError::Protocol(Fault::Stall),
    ] {
        let ended = but_for(MODE_SENSE_6, |_| dies(error));
        assert!(!ended.found().write_protected);
        assert_eq!(ended.count(MODE_SENSE_6), 1);
    }
}
