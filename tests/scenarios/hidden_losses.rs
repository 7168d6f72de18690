//! Losses that come to light where nobody asks for them: in the answers to a bring-up, and in a flush
//! that fails and is good the next time.

use rootport::block::queue::Operation;
use rootport::block::{BlockError, Lba};
use rootport::dma::DmaBuffer;
use rootport::time::Duration;
use rootport_models::device::base::Request;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::{CacheLoss, Image, LogicalUnit, Sense, StatusLoss};
use rootport_models::device::uas::{What, on};
use rootport_models::device::{Disk, SECOND, Script, UasScript};

use crate::controller::LINKS;
use crate::rig::{HIGH_PORT, Rig, port_for};
use crate::scenarios::every_step::course::Subject;

const READ: u8 = 0x28;
const WRITE: u8 = 0x2a;
const FLUSH: u8 = 0x35;
const REQUEST_SENSE: u8 = 0x03;

/// No status has this one: the host must not believe the wrapper.
const DAMAGED: Action = Action::Signature(*b"USBX");

const LOSSES: [StatusLoss; 2] = [StatusLoss::Silent, StatusLoss::Damaged];

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

/// The one status that tells of it does not arrive. The unit keeps its sense data for whoever asks first.
#[test]
fn a_reset_that_is_told_in_a_status_that_is_lost_on_the_wire_is_asked_for_and_told_of() {
    for loss in LOSSES {
        for command in [READ, WRITE, FLUSH] {
            let mut rig = Rig::default();
            let (device, disk) = dirty_disk(&mut rig);
            device.brown_out(&[Sense::RESET], Some(loss));
            let first = match command {
                READ => rig.read(disk, 100, 512).map(|_| ()),
                WRITE => rig.write(disk, 100, &[1; 512]),
                _ => rig.flush(disk),
            };
            let told = Err(BlockError::WritesMayBeLost);
            let what = format!("{loss:?}, {command:#04x}");
            match command {
                FLUSH => assert_eq!(first, told, "{what}"),
                _ => {
                    assert_eq!(first, Ok(()), "{what}");
                    assert_eq!(rig.flush(disk), told, "{what}");
                }
            }
            assert_eq!(rig.flush(disk), Ok(()), "{what}: it is told once");
            assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 1);
            let opcodes = device.opcodes();
            let lost = opcodes.iter().rposition(|code| *code == REQUEST_SENSE);
            let lost = lost.expect("it is asked") - 1;
            assert_eq!(opcodes[lost], command, "{what}: ahead of all else");
        }
    }
}

/// The answer to the question is lost too, and it is not given twice.
#[test]
fn a_unit_whose_answer_does_not_arrive_either_may_have_lost_writes() {
    for answer in [DAMAGED, Action::DelayStatus(100 * SECOND)] {
        let unit = LogicalUnit::disk(65536, 512).write_cache(CacheLoss::PowerCycle);
        let script = Script::new().unit(unit);
        let device = script.on(opcode(REQUEST_SENSE).once(), answer).build();
        device.unit(0, |unit| unit.attention_after_reset = false);
        let mut rig = Rig::default();
        let disk = rig.disk(HIGH_PORT, device.clone());
        rig.write(disk, 9, &[7; 512]).unwrap();
        device.brown_out(&[Sense::RESET], Some(StatusLoss::Silent));
        assert!(rig.read(disk, 100, 512).is_ok());
        assert_eq!(rig.flush(disk), Err(BlockError::WritesMayBeLost));
        assert_eq!(rig.flush(disk), Ok(()), "it is told once");
    }
}

/// It refuses the question, for whatever reason: what it had to say was not heard.
#[test]
fn a_unit_that_refuses_the_question_may_have_lost_writes() {
    for reason in [Sense::BAD_FIELD, Sense::new(0, 0, 0)] {
        let unit = LogicalUnit::disk(65536, 512).write_cache(CacheLoss::PowerCycle);
        let refuses = Action::Fail(reason);
        let script = Script::new().unit(unit);
        let device = script.on(opcode(REQUEST_SENSE).once(), refuses).build();
        device.unit(0, |unit| unit.attention_after_reset = false);
        let mut rig = Rig::default();
        let disk = rig.disk(HIGH_PORT, device.clone());
        rig.write(disk, 9, &[7; 512]).unwrap();
        device.brown_out(&[Sense::RESET], Some(StatusLoss::Silent));
        assert!(rig.read(disk, 100, 512).is_ok());
        let flush = rig.flush(disk);
        assert_eq!(flush, Err(BlockError::WritesMayBeLost), "{reason:?}");
        assert_eq!(rig.flush(disk), Ok(()), "it is told once");
    }
}

/// A flush that the device has failed is good when it is tried again, since what failed was given up.
#[test]
fn a_flush_whose_failure_is_lost_on_the_wire_is_not_good_when_tried_again() {
    for lost in [DAMAGED, Action::DelayStatus(100 * SECOND)] {
        let mut rig = Rig::default();
        let unit = LogicalUnit::disk(65536, 512).write_cache(CacheLoss::PowerCycle);
        let fails = Action::Fail(Sense::WRITE_ERROR);
        let script = Script::new().unit(unit).on(opcode(FLUSH).once(), fails);
        let device = script.on(opcode(FLUSH).once(), lost).build();
        let disk = rig.disk(HIGH_PORT, device.clone());
        rig.write(disk, 9, &[7; 512]).unwrap();
        // The disk gives up what it cannot write.
        device.unit(0, |unit| unit.image.drop_cache());
        assert_eq!(rig.flush(disk), Err(BlockError::WritesMayBeLost));
        assert_eq!(rig.flush(disk), Ok(()), "it is told once");
    }
}

/// What was meant for the card before must not be written to the next.
#[test]
fn a_medium_that_is_changed_and_told_of_in_a_lost_status_is_another_disk() {
    for loss in LOSSES {
        let mut rig = Rig::default();
        let stick = Script::new().unit(LogicalUnit::stick(4096)).build();
        let disk = rig.disk(HIGH_PORT, stick.clone());
        stick.unit(0, |unit| unit.insert(Image::new(512), 4096));
        stick.change(|device| device.function.target.attention_loss = Some(loss));
        let buffer = DmaBuffer::from_static(vec![0xee; 512].leak());
        let operation = Operation::Write(Lba(10));
        rig.host.submit(disk, operation, Some(buffer)).unwrap();
        rig.run(Duration::from_secs(60));
        let completion = rig.host.take_completion().unwrap();
        assert_eq!(
            completion.result,
            Err(BlockError::MediumChanged),
            "{loss:?}"
        );
        assert_eq!(stick.block(10), [0; 512], "it was not meant for this one");
        assert!(rig.read(disk, 0, 512).is_err());
        assert_ne!(rig.wait_for_disk(HIGH_PORT), disk);
    }
}

/// What was only late has nothing to say, and a disk with nothing to lose is not asked.
#[test]
fn a_status_that_does_not_come_is_no_loss_where_a_bulk_only_disk_has_nothing_to_say() {
    for (begins, asked) in [(false, 0), (true, 1)] {
        let mut rig = Rig::default();
        let unit = LogicalUnit::disk(65536, 512).write_cache(CacheLoss::PowerCycle);
        let hangs = Action::Hang(Until::ClassReset);
        let script = Script::new().unit(unit);
        let device = script.on(opcode(READ).after(1).once(), hangs).build();
        let disk = rig.disk(HIGH_PORT, device.clone());
        let before = device.count(REQUEST_SENSE);
        if begins {
            rig.write(disk, 9, &[7; 512]).unwrap();
        }
        assert!(rig.read(disk, 100, 512).is_ok());
        assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 1);
        assert_eq!(device.count(REQUEST_SENSE) - before, asked);
        assert_eq!(rig.flush(disk), Ok(()));
    }
}

/// A device that says behind a flush how it went (Amazon Kindle), and is not heard.
#[test]
fn a_flush_that_is_told_of_behind_it_and_not_heard_is_a_loss() {
    let unit = LogicalUnit::disk(65536, 512).write_cache(CacheLoss::PowerCycle);
    let script = Script::new().unit(unit).ids(0x1949, 0x0004);
    let says = Action::Data(Sense::WRITE_ERROR.fixed());
    let script = script.on(opcode(REQUEST_SENSE).once(), says);
    let device = script.on(opcode(REQUEST_SENSE).once(), DAMAGED).build();
    device.unit(0, |unit| unit.attention_after_reset = false);
    let mut rig = Rig::default();
    let disk = rig.disk(HIGH_PORT, device.clone());
    rig.write(disk, 9, &[7; 512]).unwrap();
    device.unit(0, |unit| unit.image.drop_cache());
    assert_eq!(rig.flush(disk), Err(BlockError::WritesMayBeLost));
    assert_eq!(rig.flush(disk), Ok(()), "it is told once");
}

/// Over UAS sense data come with the status, and nothing can be asked when it is lost.
#[test]
fn a_reset_that_is_told_in_a_lost_status_over_uas_may_have_lost_writes() {
    for &link in LINKS {
        for loss in LOSSES {
            let unit = LogicalUnit::disk(16_384, 512).write_cache(CacheLoss::PowerCycle);
            let device = UasScript::new().speed(link).unit(unit).build();
            let mut rig = Rig::default();
            let disk = rig.disk(port_for(link), device.clone());
            rig.write(disk, 9, &[7; 512]).unwrap();
            device.brown_out(&[Sense::RESET], Some(loss));
            assert!(rig.read(disk, 100, 512).is_ok(), "{link:?}, {loss:?}");
            let flush = rig.flush(disk);
            assert_eq!(
                flush,
                Err(BlockError::WritesMayBeLost),
                "{link:?}, {loss:?}"
            );
            assert_eq!(rig.flush(disk), Ok(()), "it is told once");
            assert_eq!(device.bus_resets().len(), 1, "nor was its port reset");
        }
    }
}

/// The write itself was not acknowledged yet when its status was lost, and is issued again.
#[test]
fn a_uas_write_without_a_status_is_no_loss_where_it_is_the_only_one() {
    for &link in LINKS {
        let fault = on(WRITE, What::LoseStatus).times(1);
        let device = UasScript::new().speed(link).fault(fault).build();
        let mut rig = Rig::default();
        let disk = rig.disk(port_for(link), device.clone());
        rig.write(disk, 9, &[7; 512]).unwrap();
        assert_eq!(device.tasks().len(), 1, "{link:?}: it was aborted");
        assert_eq!(rig.flush(disk), Ok(()), "{link:?}");
    }
}
