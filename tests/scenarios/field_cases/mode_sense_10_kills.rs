//! MODE SENSE(10) crashes the firmware of a stick: a disk of subclass 06 never sees one.

use crate::rig::{HIGH_PORT, Rig, with_disk};
use rootport_models::device::Script;
use rootport_models::device::field::commands::dies_of_mode_sense_10;
use rootport_models::device::scsi::LogicalUnit;

#[test]
fn no_mode_sense_10_is_ever_sent() {
    let device = dies_of_mode_sense_10();
    let (mut rig, disk) = with_disk(&device);
    assert!(rig.geometry(disk).writable);
    rig.write(disk, 5, &[0xa5; 1024]).unwrap();
    rig.flush(disk).unwrap();
    assert_eq!(rig.read(disk, 5, 1024).unwrap(), [0xa5; 1024]);
    assert_eq!(device.count(0x5a), 0);
    assert_eq!(device.count(0x1a), 1);
}

#[test]
fn the_question_is_for_all_pages_in_192_bytes() {
    let device = dies_of_mode_sense_10();
    let (_rig, _disk) = with_disk(&device);
    let commands = device.commands();
    let asked = commands
        .iter()
        .find(|command| command.opcode() == 0x1a)
        .unwrap();
    assert_eq!((asked.cdb[2] & 0x3f, asked.cdb[4]), (0x3f, 192));
}

#[test]
fn a_disk_that_does_not_know_mode_sense_is_writable_and_not_asked_again() {
    use rootport_models::device::scsi::{Scripted, Sense};
    let failure = Scripted::Fail(Sense::UNKNOWN_COMMAND);
    let device = Script::new()
        .unit(LogicalUnit::stick(65536).script(0x1a, failure))
        .build();
    let mut rig = Rig::default();
    let disk = rig.disk(HIGH_PORT, device.clone());
    assert!(rig.geometry(disk).writable);
    rig.check(disk, 9, 3);
    assert_eq!((device.count(0x1a), device.count(0x5a)), (1, 0));
}
