//! Disks at full speed in a root port. An EHCI leaves them to its companion.

use rootport_models::device::field::enumeration::has_control_packets_of;
use rootport_models::device::{Link, Script};

use crate::rig::with_disk;

#[test]
fn every_legal_packet_size_of_endpoint_zero_at_full_speed_is_learnt() {
    for size in [8, 16, 32, 64] {
        let device = has_control_packets_of(Link::Full, size);
        let (mut rig, disk) = with_disk(&device);
        assert_eq!(device.bus_resets().len(), 1, "{size} bytes");
        rig.check(disk, 0, 8);
    }
}

/// Genesys USB to IDE, whose pause is for high speed only.
#[test]
fn a_device_that_dies_of_haste_at_high_speed_gets_no_pause_at_full_speed() {
    let slow = Script::new().ids(0x05e3, 0x0702).release(0x0002);
    let (mut rig, disk) = with_disk(&slow.speed(Link::Full).build());
    rig.check(disk, 0, 8);
}
