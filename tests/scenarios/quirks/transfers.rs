//! How much one command may move.

use rootport_models::device::Disk;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::LogicalUnit;

use super::stick;
use crate::rig::{FASTEST, HIGH_PORT, Rig, disk_at, port_for, with_disk};

/// The most blocks of a command when 256 KiB are read and written.
fn longest(device: &Disk) -> u32 {
    let (mut rig, disk) = with_disk(device);
    rig.check(disk, 0, 512);
    rig.write(disk, 0, &[7; 1 << 18]).unwrap();
    assert_eq!(device.block(511), [7; 512]);
    device.longest_transfer()
}

#[test]
fn a_device_that_leaves_above_64_kib_gets_32_and_its_neighbour_120() {
    // Rockchip MP3 player.
    let device = stick(0x071b, 0x3203, 0x0100)
        .on(
            opcode(0x28).longer_than(128),
            Action::Hang(Until::PowerCycle),
        )
        .on(
            opcode(0x2a).longer_than(128),
            Action::Hang(Until::PowerCycle),
        )
        .build();
    assert_eq!(longest(&device), 64);
    assert_eq!(longest(&stick(0x071b, 0x3203, 0x0101).build()), 240);
}

#[test]
fn a_device_with_room_for_a_page_gets_a_page() {
    // IBM RSA2.
    let device = stick(0x04b3, 0x4001, 0x0110)
        .on(opcode(0x28).longer_than(8), Action::HaltData)
        .on(opcode(0x2a).longer_than(8), Action::HaltData)
        .build();
    assert_eq!(longest(&device), 8);
    assert_eq!(longest(&stick(0x04b3, 0x4002, 0x0110).build()), 240);
}

#[test]
fn a_fixed_disk_is_believed_about_its_limit() {
    let mut unit = LogicalUnit::disk(65536, 512);
    unit.maximum_blocks = 100;
    let device = stick(0x1209, 0x0001, 0x0100).unit(unit).build();
    let mut rig = Rig::default();
    let disk = rig.disk(HIGH_PORT, device.clone());
    assert_eq!(rig.geometry(disk).transfer_blocks, 100);
    rig.check(disk, 0, 240);
    assert_eq!(device.longest_transfer(), 100);
}

/// Letter `g`. At the slower speeds nobody gets more.
#[test]
fn a_device_that_dies_above_120_kib_gets_no_more_at_any_speed_and_its_neighbour_does() {
    let port = port_for(FASTEST);
    let mut rig = Rig::default();
    rig.host.set_quirks("1209:0001:g");
    let device = disk_at(FASTEST)
        .ids(0x1209, 0x0001)
        .on(
            opcode(0x28).longer_than(240),
            Action::Hang(Until::PowerCycle),
        )
        .build();
    let disk = rig.disk(port, device.clone());
    rig.check(disk, 0, 4096);
    assert_eq!(device.longest_transfer(), 240);
    rig.unplug(port);
    let neighbour = disk_at(FASTEST).ids(0x1209, 0x0002).build();
    let disk = rig.disk(port, neighbour.clone());
    rig.check(disk, 0, 4096);
    let usual = if FASTEST.is_super() { 2048 } else { 240 };
    assert_eq!(neighbour.longest_transfer(), usual);
}
