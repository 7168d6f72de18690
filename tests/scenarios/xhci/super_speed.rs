//! Disks at SuperSpeed: what is about their links, their limits and their ports' power.

use rootport::time::Duration;
use rootport::usb::speed::Speed;
use rootport::usb::{PortState, UsbError};
use rootport_models::device::base::{Answer, Request};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Link, MILLISECOND, Script};
use rootport_models::machine::Options;

use super::{Faults, usual};
use crate::rig::{FAST_PORT, HIGH_PORT, Rig, disk_at};

#[test]
fn a_superspeed_disk_is_found_and_read() {
    let mut rig = Rig::default();
    let stick = Script::new()
        .speed(Link::Super)
        .unit(LogicalUnit::disk(65536, 512).content(b"block zero"))
        .build();
    let disk = rig.disk(FAST_PORT, stick);
    let block = rig.read(disk, 0, 512).unwrap();
    assert_eq!(&block[..10], b"block zero");
}

#[test]
fn a_superspeed_disk_that_was_given_up_is_left_alone_until_it_is_pulled() {
    let device = Script::new()
        .speed(Link::Super)
        .control(Request::get_descriptor(1), Answer::Stall)
        .build();
    let mut rig = Rig::default();
    rig.plug(FAST_PORT, device.clone());
    assert_eq!(
        rig.settle_port(FAST_PORT),
        PortState::Failed(UsbError::Stall)
    );
    let resets = device.bus_resets().len();
    rig.run(Duration::from_secs(30));
    assert_eq!(device.bus_resets().len(), resets);
    rig.unplug(FAST_PORT);
    let good = Script::new().speed(Link::Super).build();
    let disk = rig.disk(FAST_PORT, good);
    rig.check(disk, 0, 8);
}

#[test]
fn a_superspeed_disk_that_shows_itself_at_high_speed_is_used_there() {
    let disk = disk_at(Link::Super).appears(0, Some(Link::High)).build();
    let mut rig = Rig::default();
    let id = rig.disk(HIGH_PORT, disk);
    assert_eq!(rig.units_at(HIGH_PORT)[0].device.speed(), Speed::High);
    rig.check(id, 0, 8);
}

#[test]
fn a_link_that_does_not_train_gets_a_warm_reset() {
    let mut faults = Faults::none();
    faults.training_fails = true;
    let mut rig = Rig::faulty(Options::default(), usual(), faults);
    let id = rig.disk(FAST_PORT, disk_at(Link::Super).build());
    assert_eq!(rig.units_at(FAST_PORT)[0].device.speed(), Speed::Super);
    rig.check(id, 0, 8);
}

#[test]
fn a_disk_that_drops_its_link_while_it_starts_is_found_when_it_has_settled() {
    for at in [30, 90, 130, 160, 200, 300, 420] {
        let disk = disk_at(Link::Super)
            .appears(at * MILLISECOND, None)
            .appears((at + 40) * MILLISECOND, Some(Link::Super))
            .build();
        let mut rig = Rig::default();
        let id = rig.disk(FAST_PORT, disk);
        rig.run(Duration::from_secs(1));
        let id = match rig.host.geometry(id) {
            Ok(_) => id,
            Err(_) => rig.wait_for_disk(FAST_PORT),
        };
        rig.check(id, 0, 8);
    }
}

#[test]
fn a_superspeed_disk_is_not_asked_by_mode_sense_10() {
    let mut rig = Rig::default();
    let device = Script::new()
        .speed(Link::Super)
        .unit(LogicalUnit::disk(65536, 512))
        .build();
    let disk = rig.disk(FAST_PORT, device.clone());
    rig.check(disk, 0, 8);
    assert_eq!(device.count(0x5a), 0);
}

#[test]
fn the_letter_g_keeps_a_super_speed_disk_to_120_kib() {
    let limit = |text| {
        let mut rig = Rig::default();
        rig.host.set_quirks(text);
        let device = Script::new().ids(0x1209, 1).speed(Link::Super).build();
        let disk = rig.disk(FAST_PORT, device.clone());
        rig.check(disk, 0, 512);
        device.longest_transfer()
    };
    assert_eq!(limit("1209:0001:g"), 240);
    assert_eq!(limit("1209:0002:g"), 512);
}
