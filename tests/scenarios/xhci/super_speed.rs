//! Disks at SuperSpeed: what is about their links, their limits and their ports' power.

use rootport::time::Duration;
use rootport::usb::speed::Speed;
use rootport::usb::{PortState, UsbError};
use rootport_models::device::base::{Answer, Request};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Disk, Link, MILLISECOND, Script};
use rootport_models::machine::Options;

use super::{Faults, usual};
use crate::rig::{FAST_PORT, HIGH_PORT, OTHER_PORT, Rig, disk_at};

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
fn field_case_41_a_superspeed_disk_that_shows_itself_at_high_speed_is_reset_once_and_used_there() {
    let disk = disk_at(Link::Super).appears(0, Some(Link::High)).build();
    let mut rig = Rig::default();
    let id = rig.disk(HIGH_PORT, disk.clone());
    assert_eq!(rig.units_at(HIGH_PORT)[0].device.speed(), Speed::High);
    rig.check(id, 0, 8);
    rig.run(Duration::from_secs(30));
    assert_eq!(disk.bus_resets().len(), 2);
}

#[test]
fn field_case_41_a_superspeed_disk_whose_link_trains_at_the_second_reset_is_used_there() {
    let disk = disk_at(Link::Super).appears(0, Some(Link::High)).build();
    let mut rig = Rig::default();
    rig.plug(HIGH_PORT, disk.clone());
    while disk.bus_resets().len() < 2 {
        rig.run(Duration::from_millis(1));
    }
    drop(rig.machine.unplug(0, HIGH_PORT));
    let id = rig.disk(FAST_PORT, disk_at(Link::Super).build());
    assert_eq!(rig.units_at(FAST_PORT)[0].device.speed(), Speed::Super);
    rig.check(id, 0, 8);
    assert!(rig.units_at(HIGH_PORT).is_empty());
}

/// Shows itself at high speed, although it is made for more.
fn hidden() -> Disk {
    disk_at(Link::Super).appears(0, Some(Link::High)).build()
}

/// Its link trains, and it answers nothing there.
fn mute() -> Disk {
    let device = Script::new().speed(Link::Super);
    device
        .control(Request::get_descriptor(1), Answer::Stall)
        .build()
}

/// A rig whose disk left its high-speed half for the reset and is mute on the other one, until that is given up.
fn given_up_at_super_speed() -> Rig {
    let mut rig = Rig::default();
    let disk = hidden();
    rig.plug(HIGH_PORT, disk.clone());
    while disk.bus_resets().len() < 2 {
        rig.run(Duration::from_millis(1));
    }
    drop(rig.machine.unplug(0, HIGH_PORT));
    rig.plug(FAST_PORT, mute());
    rig.run(Duration::from_secs(3));
    rig
}

fn is_dark(rig: &Rig) -> bool {
    matches!(rig.port_state(FAST_PORT), PortState::Unpowered(_))
}

#[test]
fn field_case_41_a_disk_that_works_at_high_speed_alone_is_driven_back_there_and_stays() {
    let mut rig = given_up_at_super_speed();
    assert!(is_dark(&rig), "{}", rig.describe());
    drop(rig.machine.unplug(0, FAST_PORT));
    let disk = hidden();
    let id = rig.disk(HIGH_PORT, disk.clone());
    for _ in 0..10 {
        rig.check(id, 0, 8);
        rig.run(Duration::from_secs(7));
        assert!(is_dark(&rig), "{}", rig.describe());
    }
    assert_eq!(disk.bus_resets().len(), 1, "only to be found");
    // It is pulled: whatever comes next has both halves.
    rig.unplug(HIGH_PORT);
    rig.run(Duration::from_secs(10));
    assert_eq!(rig.port_state(FAST_PORT), PortState::Empty);
    let fast = rig.disk(FAST_PORT, disk_at(Link::Super).build());
    rig.check(fast, 0, 8);
    rig.unplug(FAST_PORT);
    rig.run(Duration::from_secs(5));
    let other = hidden();
    rig.disk(HIGH_PORT, other.clone());
    assert_eq!(other.bus_resets().len(), 2, "it may train better");
}

#[test]
fn a_disk_that_shows_itself_on_neither_half_is_left_alone_in_the_end() {
    let mut rig = given_up_at_super_speed();
    assert!(is_dark(&rig), "{}", rig.describe());
    rig.run(Duration::from_secs(20));
    let given_up = PortState::Failed(UsbError::Stall);
    assert_eq!(rig.port_state(FAST_PORT), given_up);
    rig.run(Duration::from_secs(60));
    assert_eq!(rig.port_state(FAST_PORT), given_up);
}

/// It falls back to high speed at each reset.
#[test]
fn a_disk_whose_link_comes_and_goes_is_reset_for_its_speed_once() {
    let mut rig = Rig::default();
    let mut resets = 0;
    for _ in 0..5 {
        let disk = hidden();
        let id = rig.disk(HIGH_PORT, disk.clone());
        rig.check(id, 0, 8);
        resets += disk.bus_resets().len() - 1;
        rig.unplug(HIGH_PORT);
        let fast = rig.disk(FAST_PORT, disk_at(Link::Super).build());
        rig.check(fast, 0, 8);
        rig.unplug(FAST_PORT);
    }
    assert_eq!(resets, 1);
}

#[test]
fn a_high_speed_disk_and_one_beside_a_superspeed_disk_in_the_same_socket_are_reset_once() {
    let mut rig = Rig::default();
    let fast = rig.disk(FAST_PORT, disk_at(Link::Super).build());
    let hidden = disk_at(Link::Super).appears(0, Some(Link::High)).build();
    let slow = rig.disk(HIGH_PORT, hidden.clone());
    let plain = disk_at(Link::High).build();
    let other = rig.disk(OTHER_PORT, plain.clone());
    for disk in [fast, slow, other] {
        rig.check(disk, 0, 8);
    }
    assert_eq!(
        (hidden.bus_resets().len(), plain.bus_resets().len()),
        (1, 1)
    );
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
