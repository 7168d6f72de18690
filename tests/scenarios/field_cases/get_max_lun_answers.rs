//! GET MAX LUN stalled, odd, empty or late: one unit, no error, and endpoint 0 usable at once.

use crate::rig::{HIGH_PORT, Rig, with_disk};
use rootport::policy::Policy;
use rootport::time::Duration;
use rootport_models::device::Disk;
use rootport_models::device::base::Request;
use rootport_models::device::field::max_lun::{
    answers_after_ten_seconds, never_answers, says, says_nothing, stalls,
};

/// The disk is found with its one unit and read; how long that took.
fn finds_one_unit(device: &Disk) -> Duration {
    let mut rig = Rig::default();
    let (disk, took) = rig.timed(|rig| rig.disk(HIGH_PORT, device.clone()));
    assert_eq!(rig.units_at(HIGH_PORT).len(), 1);
    assert_eq!(rig.units_at(HIGH_PORT)[0].unit, 0);
    rig.check(disk, 0, 4);
    assert_eq!(device.count_requests(Request::GET_MAX_LUN), 1, "asked once");
    assert_eq!(device.bus_resets().len(), 1, "never reset again");
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 0);
    took
}

#[test]
fn a_stall_means_one_unit_at_once() {
    assert!(finds_one_unit(&stalls()) < Duration::from_secs(1));
}

#[test]
fn an_illegal_count_means_one_unit_at_once() {
    for value in [0x10, 0x20, 0x7f, 0xff] {
        assert!(
            finds_one_unit(&says(value)) < Duration::from_secs(1),
            "{value:#x}"
        );
    }
}

#[test]
fn an_empty_answer_means_one_unit_at_once() {
    assert!(finds_one_unit(&says_nothing()) < Duration::from_secs(1));
}

#[test]
fn no_answer_means_one_unit_after_the_deadline_of_an_optional_request() {
    for device in [never_answers(), answers_after_ten_seconds()] {
        let took = finds_one_unit(&device);
        assert!(took >= Policy::DEFAULT.optional);
        assert!(
            took < Policy::DEFAULT.optional + Duration::from_secs(1),
            "{took:?}"
        );
    }
}

#[test]
fn endpoint_zero_answers_after_a_stalled_question() {
    // A halt of a bulk pipe is cleared through endpoint 0.
    let device = stalls();
    let (mut rig, disk) = with_disk(&device);
    device.change(|device| {
        use rootport_models::device::bot::{Action, Hook, opcode};
        let when = opcode(0x28).once();
        device.function.hooks.push(Hook {
            when,
            action: Action::HaltData,
        });
    });
    // The halted read fails with 5/24/00 and is the caller's to repeat.
    assert!(rig.read(disk, 0, 512).is_err());
    rig.check(disk, 0, 1);
    assert_eq!(device.count_requests(Request::CLEAR_HALT), 1);
}
