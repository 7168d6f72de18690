//! Sticks that lose their settings by a Bulk-Only reset, and devices that need one: none is sent
//! unasked, and one is sent when the first command fails.

use crate::rig::with_disk;
use rootport_models::device::base::Request;
use rootport_models::device::field::commands::cannot_write_after_a_class_reset;
use rootport_models::device::field::halts::{
    starts_halted_until_reset_recovery, swallows_wrappers_after_a_bus_reset,
};

#[test]
fn no_reset_is_sent_to_a_device_that_is_well() {
    let device = cannot_write_after_a_class_reset();
    let (mut rig, disk) = with_disk(&device);
    rig.write(disk, 7, &[3; 1024]).unwrap();
    rig.flush(disk).unwrap();
    assert_eq!(device.block(8), [3; 512]);
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 0);
}

#[test]
fn a_device_that_starts_in_the_middle_of_a_command_gets_reset_recovery() {
    for device in [
        starts_halted_until_reset_recovery(),
        swallows_wrappers_after_a_bus_reset(),
    ] {
        let (mut rig, disk) = with_disk(&device);
        rig.check(disk, 0, 8);
        assert!(device.count_requests(Request::BULK_ONLY_RESET) <= 1);
    }
    let device = starts_halted_until_reset_recovery();
    let (_rig, _disk) = with_disk(&device);
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 1);
}
