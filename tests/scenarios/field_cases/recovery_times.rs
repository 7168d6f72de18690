//! Devices that are deaf after power, reset and a new address: the host waits as long as the
//! specification asks and more, and makes three attempts, each with a new reset.

use crate::rig::{HIGH_PORT, OTHER_PORT, Rig, with_disk};
use rootport::time::Duration;
use rootport::usb::PortState;
use rootport_models::device::field::enumeration::{
    is_deaf_after_each_reset_for, is_deaf_after_its_address_for_ten_milliseconds,
    is_deaf_after_power_on_for, never_answers_endpoint_zero, stalls_before_its_address_has_settled,
};
use rootport_models::device::field::good_stick;
use rootport_models::device::{Disk, MILLISECOND};

/// The disk is found with so many resets, and read.
fn is_found_with(device: &Disk, resets: usize) {
    let (mut rig, disk) = with_disk(device);
    assert_eq!(device.bus_resets().len(), resets);
    rig.check(disk, 0, 2);
}

#[test]
fn a_device_that_stalls_right_after_its_address_is_not_asked_so_soon() {
    is_found_with(&stalls_before_its_address_has_settled(), 1);
}

#[test]
fn a_device_that_needs_ten_milliseconds_after_its_address_gets_them() {
    is_found_with(&is_deaf_after_its_address_for_ten_milliseconds(), 1);
}

#[test]
fn a_device_that_is_deaf_after_each_reset_is_found_at_the_first_attempt() {
    for milliseconds in [1, 10, 30, 49] {
        is_found_with(&is_deaf_after_each_reset_for(milliseconds * MILLISECOND), 1);
    }
}

#[test]
fn field_case_28_a_device_that_is_deaf_for_longer_is_found_by_a_later_attempt() {
    for (milliseconds, resets) in [(60, 2), (120, 2), (149, 2), (160, 3), (400, 3)] {
        let device = is_deaf_after_each_reset_for(milliseconds * MILLISECOND);
        is_found_with(&device, resets);
    }
}

#[test]
fn a_device_that_boots_long_after_power_on_is_found_by_a_later_attempt() {
    for milliseconds in [120, 300, 400] {
        let device = is_deaf_after_power_on_for(milliseconds * MILLISECOND);
        let (mut rig, disk) = with_disk(&device);
        let resets = device.bus_resets().len();
        assert!(
            (1..=3).contains(&resets),
            "{resets} resets for {milliseconds} ms"
        );
        rig.check(disk, 0, 2);
    }
}

#[test]
fn a_device_that_never_answers_gets_three_attempts_and_frees_all_that_it_held() {
    let device = never_answers_endpoint_zero();
    let mut rig = Rig::default();
    rig.run(Duration::from_millis(500));
    let before = rig.pool_used();
    rig.plug(HIGH_PORT, device.clone());
    let port = rig.within(Duration::from_secs(30), |rig| rig.settle_port(HIGH_PORT));
    assert!(matches!(port, PortState::Failed(_)), "{port:?}");
    assert_eq!(device.bus_resets().len(), 3);
    assert_eq!(rig.pool_used(), before);
    assert_eq!(rig.host.bus().devices().count(), 0);
    // Given up: it is left alone, until it is pulled.
    rig.run(Duration::from_secs(60));
    assert_eq!(device.bus_resets().len(), 3);
    rig.unplug(HIGH_PORT);
    let disk = rig.disk(HIGH_PORT, good_stick());
    rig.check(disk, 0, 1);
}

#[test]
fn a_deaf_device_holds_its_neighbour_up_for_one_attempt_at_most() {
    let mut rig = Rig::default();
    rig.plug(HIGH_PORT, never_answers_endpoint_zero());
    let disk = rig.within(Duration::from_secs(8), |rig| {
        rig.disk(OTHER_PORT, good_stick())
    });
    rig.check(disk, 0, 1);
}
