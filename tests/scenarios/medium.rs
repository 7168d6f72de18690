//! Media that are changed, put in and taken out; disks that stop, or change their size.

use crate::rig::{CALL_LIMIT, HIGH_PORT, Rig};
use rootport::block::queue::Operation;
use rootport::block::{BlockError, Lba};
use rootport::dma::DmaBuffer;
use rootport::stack::DiskState;
use rootport::time::Duration;
use rootport_models::device::Script;
use rootport_models::device::bot::{Action, opcode};
use rootport_models::device::scsi::{CacheLoss, Image, LogicalUnit, Scripted, Sense};

const TEST_UNIT_READY: u8 = 0x00;
const START_STOP: u8 = 0x1b;
const READ: u8 = 0x28;

/// What was meant for one medium must never be written to another.
#[test]
fn writes_that_wait_for_the_old_medium_end_and_the_new_one_stays_as_it_was() {
    let mut rig = Rig::default();
    let stick = Script::new().unit(LogicalUnit::stick(4096)).build();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    stick.unit(0, |unit| unit.insert(Image::new(512), 2048));
    for lba in [10, 20, 30] {
        let buffer = DmaBuffer::from_static(vec![0xee; 512].leak());
        let operation = Operation::Write(Lba(lba));
        rig.host.submit(disk, operation, Some(buffer)).unwrap();
    }
    rig.run(Duration::from_secs(5));
    for _ in 0..3 {
        let completion = rig.host.take_completion().unwrap();
        assert_eq!(completion.result, Err(BlockError::MediumChanged));
        assert!(completion.buffer.is_some());
    }
    for lba in [10, 20, 30] {
        assert_eq!(stick.block(lba), [0; 512]);
    }
    // The new medium is another disk: whoever still holds the old one cannot reach it.
    assert_eq!(rig.host.geometry(disk), Err(BlockError::Disconnected));
    assert_eq!(
        rig.write(disk, 10, &[0xee; 512]),
        Err(BlockError::Disconnected)
    );
    let new = rig.wait_for_disk(HIGH_PORT);
    assert_eq!(rig.geometry(new).blocks, 2048);
    rig.write(new, 10, &[0x11; 512]).unwrap();
    assert_eq!(rig.flush(new), Ok(()), "what was lost was the old disk's");
}

#[test]
fn a_disk_with_a_fixed_medium_that_tells_of_a_change_is_proved_the_same_and_keeps_its_id() {
    let mut rig = Rig::default();
    let device = Script::new().unit(LogicalUnit::disk(65536, 512)).build();
    let disk = rig.disk(HIGH_PORT, device.clone());
    device.unit(0, |unit| unit.raise(Sense::MEDIUM_CHANGED));
    assert_eq!(rig.read(disk, 0, 512), Err(BlockError::MediumChanged));
    rig.check(disk, 0, 8);
}

#[test]
fn a_disk_that_has_stopped_is_started_and_the_read_is_carried_out() {
    let mut rig = Rig::default();
    let device = Script::new().unit(LogicalUnit::disk(65536, 512)).build();
    let disk = rig.disk(HIGH_PORT, device.clone());
    rig.host.disk(disk).stop().unwrap();
    let before = device.count(START_STOP);
    rig.check(disk, 7, 8);
    assert_eq!(device.count(START_STOP), before + 1, "it was started once");
}

/// Many bridges know no START STOP UNIT: what was written must be on the medium all the same.
#[test]
fn a_disk_that_cannot_be_stopped_is_flushed_when_it_should_stop() {
    let unit = LogicalUnit::disk(65536, 512).write_cache(CacheLoss::PowerCycle);
    let unit = unit.script(START_STOP, Scripted::Fail(Sense::UNKNOWN_COMMAND));
    let mut rig = Rig::default();
    let device = Script::new().unit(unit).build();
    let disk = rig.disk(HIGH_PORT, device.clone());
    rig.write(disk, 9, &[7; 512]).unwrap();
    assert_eq!(rig.host.disk(disk).stop(), Ok(()));
    assert_eq!(device.durable_block(9), [7; 512]);
}

#[test]
fn a_disk_that_never_starts_again_ends_its_read_in_time() {
    // What a bring-up asks of a good one is answered well.
    let good = || Script::new().unit(LogicalUnit::disk(65536, 512));
    let asked = good().build();
    Rig::default().disk(HIGH_PORT, asked.clone());
    let first = |code| opcode(code).after(asked.count(code) as u32);
    let device = good()
        .on(first(READ), Action::Fail(Sense::NEEDS_START))
        .on(first(TEST_UNIT_READY), Action::Fail(Sense::BECOMING_READY))
        .build();
    let mut rig = Rig::default();
    let disk = rig.disk(HIGH_PORT, device);
    let result = rig.within(CALL_LIMIT, |rig| rig.read(disk, 7, 512));
    assert_eq!(result, Err(BlockError::NotReady));
}

#[test]
fn a_disk_that_is_of_another_size_now_is_another_disk() {
    let mut rig = Rig::default();
    let device = Script::new().unit(LogicalUnit::disk(65536, 512)).build();
    let disk = rig.disk(HIGH_PORT, device.clone());
    rig.check(disk, 0, 1);
    device.unit(0, |unit| {
        unit.insert(Image::new(512), 2048);
        unit.raise(Sense::new(6, 0x2a, 0x09));
    });
    assert!(rig.read(disk, 0, 512).is_err());
    let new = rig.wait_for_disk(HIGH_PORT);
    assert_ne!(new, disk);
    assert_eq!(rig.geometry(new).blocks, 2048);
}

#[test]
fn a_card_that_is_put_into_an_empty_slot_is_noticed_and_an_eject_ends_its_id() {
    let mut rig = Rig::default();
    let reader = Script::new().unit(LogicalUnit::empty_slot()).build();
    rig.settle(HIGH_PORT, reader.clone());
    reader.unit(0, |unit| unit.insert(Image::new(512), 2048));
    let first = rig.within(Duration::from_secs(8), |rig| rig.wait_for_disk(HIGH_PORT));
    assert_eq!(rig.geometry(first).blocks, 2048);

    reader.unit(0, LogicalUnit::eject);
    assert_eq!(rig.read(first, 0, 512), Err(BlockError::NoMedium));
    rig.run(Duration::from_secs(20));
    let units = rig.units_at(HIGH_PORT);
    assert_eq!(units[0].state, DiskState::Empty, "also while it is asked");

    reader.unit(0, |unit| unit.insert(Image::new(512), 4096));
    let second = rig.wait_for_disk(HIGH_PORT);
    assert_ne!(second, first);
    assert_eq!(rig.read(first, 0, 512), Err(BlockError::Disconnected));
}
