//! A good Bulk-Only disk on a strict controller: found, read, written, flushed.

use crate::rig::{HIGH_PORT, Rig};
use rootport::block::{BlockDevice, Lba};
use rootport_models::device::Script;
use rootport_models::device::scsi::LogicalUnit;

#[test]
fn a_stick_is_found_and_read() {
    let mut rig = Rig::default();
    let stick = Script::new()
        .unit(LogicalUnit::stick(65536).content(b"block zero"))
        .build();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    let block = rig.read(disk, 0, 512).unwrap();
    assert_eq!(&block[..10], b"block zero");
}

#[test]
fn what_was_written_is_read_back_after_a_flush() {
    let mut rig = Rig::default();
    let stick = Script::new().unit(LogicalUnit::stick(65536)).build();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    let mut buffer = rig.machine.buffer(300 * 1024, 0);
    for (index, byte) in buffer.iter_mut().enumerate() {
        *byte = (index / 7) as u8;
    }
    rig.host.disk(disk).write(Lba(100), &buffer).unwrap();
    rig.host.disk(disk).flush().unwrap();
    assert_eq!(rig.read(disk, 100, 300 * 1024).unwrap(), buffer.to_vec());
    assert!(
        stick.longest_transfer() <= 240,
        "the transfer limit below SuperSpeed"
    );
    assert_eq!(stick.count(0x35), 1);
}
