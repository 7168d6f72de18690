//! Disks that are ready only after seconds: waited for, started where they want it, and found soon
//! after they are ready.

use crate::rig::{HIGH_PORT, Rig, with_disk};
use rootport::policy::Policy;
use rootport::time::Duration;
use rootport_models::device::SECOND;
use rootport_models::device::field::readiness::{
    holds_up_test_unit_ready_for_three_seconds, is_ready_after, waits_for_start_unit,
};

#[test]
fn a_disk_that_spins_up_for_seconds_is_found_soon_after_it_is_ready() {
    for seconds in [1, 6, 8, 10, 18] {
        let device = is_ready_after(seconds * SECOND);
        let (mut rig, disk) = with_disk(&device);
        let took = rig.age();
        assert!(took >= Duration::from_secs(seconds));
        assert!(
            took <= Duration::from_secs(seconds + 1),
            "{took:?} for {seconds} s"
        );
        rig.check(disk, 0, 8);
    }
}

#[test]
fn a_question_that_is_held_up_for_three_seconds_is_waited_for() {
    let device = holds_up_test_unit_ready_for_three_seconds();
    let (mut rig, disk) = with_disk(&device);
    assert!(rig.age() < Duration::from_secs(4));
    assert_eq!(device.count(0x00), 1, "asked once, and not given up");
    assert_eq!(device.bus_resets().len(), 1);
    rig.check(disk, 0, 8);
}

#[test]
fn a_disk_that_waits_for_its_start_is_started_once() {
    let device = waits_for_start_unit();
    let (mut rig, disk) = with_disk(&device);
    assert_eq!(device.count(0x1b), 1);
    rig.check(disk, 0, 8);
}

#[test]
fn a_disk_that_stays_unready_is_given_up_when_the_budget_is_over_whatever_the_policy_says() {
    for seconds in [2, 20, 40] {
        let device = is_ready_after(3600 * SECOND);
        let mut rig = Rig::default();
        let readiness = Duration::from_secs(seconds);
        rig.host.set_policy(Policy {
            readiness,
            ..Policy::DEFAULT
        });
        let (units, took) = rig.timed(|rig| rig.settle(HIGH_PORT, device.clone()));
        assert_eq!(units.len(), 1);
        assert!(rig.host.first_disk().is_err());
        assert!(
            took >= readiness && took <= readiness + Duration::from_secs(2),
            "{took:?}"
        );
    }
}
