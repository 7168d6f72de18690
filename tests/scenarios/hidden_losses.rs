//! Losses that come to light where nobody asks for them: in the answers to a bring-up, and in a flush
//! that fails and is good the next time.

use rootport::block::queue::Operation;
use rootport::block::{BlockError, Lba};
use rootport::dma::DmaBuffer;
use rootport::time::Duration;
use rootport_models::device::bot::{Action, opcode};
use rootport_models::device::scsi::{CacheLoss, Image, LogicalUnit, Sense};
use rootport_models::device::{Disk, Script};

use crate::rig::{HIGH_PORT, Rig};

const FLUSH: u8 = 0x35;

/// A disk that cannot be taken out of its enclosure, with a cache, that holds an unflushed write.
fn dirty_disk(rig: &mut Rig) -> (Disk, rootport::block::queue::DiskId) {
    let unit = LogicalUnit::disk(65536, 512).write_cache(CacheLoss::PowerCycle);
    let device = Script::new().unit(unit).build();
    let disk = rig.disk(HIGH_PORT, device.clone());
    rig.write(disk, 9, &[7; 512]).unwrap();
    (device, disk)
}

/// A bridge stays up while its disk loses power for a moment: it says first that the disk is becoming
/// ready, and only then why.
#[test]
fn a_reset_that_is_told_while_a_disk_becomes_ready_again_is_a_loss() {
    let mut rig = Rig::default();
    let (device, disk) = dirty_disk(&mut rig);
    device.unit(0, |unit| {
        unit.image.drop_cache();
        unit.raise(Sense::BECOMING_READY);
        unit.raise(Sense::RESET);
    });
    assert!(rig.read(disk, 100, 512).is_ok());
    assert_eq!(rig.flush(disk), Err(BlockError::WritesMayBeLost));
    assert_eq!(rig.flush(disk), Ok(()), "it is told once");
}

/// The sense data that say so are damaged on their way: they are not told twice.
#[test]
fn a_reset_that_is_told_and_not_understood_is_a_loss() {
    let unit = LogicalUnit::disk(65536, 512).write_cache(CacheLoss::PowerCycle);
    let damaged = Action::Tag(0xdead_beef);
    let device = Script::new().unit(unit).on(opcode(0x03).once(), damaged);
    // Its attention at power-on would be the first: this disk has none.
    let device = device.build();
    device.unit(0, |unit| unit.attention_after_reset = false);
    let mut rig = Rig::default();
    let disk = rig.disk(HIGH_PORT, device.clone());
    rig.write(disk, 9, &[7; 512]).unwrap();
    device.unit(0, |unit| {
        unit.image.drop_cache();
        unit.raise(Sense::RESET);
    });
    assert!(rig.read(disk, 100, 512).is_ok());
    assert_eq!(rig.flush(disk), Err(BlockError::WritesMayBeLost));
    assert_eq!(rig.flush(disk), Ok(()), "it is told once");
}

/// The same of a card: what was meant for the one before must not be written to the next.
#[test]
fn a_medium_that_is_changed_while_its_unit_becomes_ready_again_is_another_disk() {
    let mut rig = Rig::default();
    let stick = Script::new().unit(LogicalUnit::stick(4096)).build();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    stick.unit(0, |unit| {
        unit.raise(Sense::BECOMING_READY);
        unit.insert(Image::new(512), 4096);
    });
    let buffer = DmaBuffer::from_static(vec![0xee; 512].leak());
    let operation = Operation::Write(Lba(10));
    rig.host.submit(disk, operation, Some(buffer)).unwrap();
    rig.run(Duration::from_secs(5));
    let completion = rig.host.take_completion().unwrap();
    assert_eq!(stick.block(10), [0; 512], "it was not meant for this one");
    assert_eq!(completion.result, Err(BlockError::MediumChanged));
    assert!(rig.read(disk, 0, 512).is_err());
    let new = rig.wait_for_disk(HIGH_PORT);
    assert_ne!(new, disk);
}

/// What the cache could not get onto the medium is not there, however good the next flush is.
#[test]
fn a_flush_that_cannot_write_its_cache_is_not_good_when_tried_again() {
    for sense in [Sense::WRITE_ERROR, Sense::UNDER_POWERED] {
        let mut rig = Rig::default();
        let unit = LogicalUnit::disk(65536, 512).write_cache(CacheLoss::PowerCycle);
        let fails = Action::Fail(sense);
        let device = Script::new().unit(unit).on(opcode(FLUSH).once(), fails);
        let device = device.build();
        let disk = rig.disk(HIGH_PORT, device.clone());
        rig.write(disk, 9, &[7; 512]).unwrap();
        // The disk gives up what it cannot write.
        device.unit(0, |unit| unit.image.drop_cache());
        assert!(rig.flush(disk).is_err(), "{sense:?}");
        rig.flush(disk).ok();
        assert_eq!(rig.flush(disk), Ok(()), "it is told once");
    }
}

/// Whoever flushes next has lost as much as whoever saw the flush fail.
#[test]
fn every_holder_is_told_of_a_flush_that_failed_for_another() {
    let mut rig = Rig::default();
    let unit = LogicalUnit::disk(65536, 512).write_cache(CacheLoss::PowerCycle);
    let fails = Action::Fail(Sense::WRITE_ERROR);
    let device = Script::new().unit(unit).on(opcode(FLUSH).times(4), fails);
    let device = device.build();
    let disk = rig.disk(HIGH_PORT, device.clone());
    let holder = rig.host.add_holder(disk).unwrap();
    rig.write(disk, 9, &[7; 512]).unwrap();
    device.unit(0, |unit| unit.image.drop_cache());
    assert!(rig.flush(disk).is_err());
    let mut flush = || {
        rig.host.submit_flush(holder).unwrap();
        rig.run(Duration::from_secs(1));
        rig.host.take_completion().unwrap().result
    };
    assert_eq!(flush(), Err(BlockError::WritesMayBeLost));
    assert_eq!(flush(), Ok(()), "it is told once");
}
