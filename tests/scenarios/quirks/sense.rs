//! How much sense data is asked for, and when.

use rootport::block::{BlockError, FlushSupport};
use rootport::storage::quirks::Quirks;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::{CacheLoss, LogicalUnit, Sense};
use rootport_models::device::{Disk, Script};

use super::{stick, works};
use crate::rig::{HIGH_PORT, with_disk};
use crate::scenarios::every_step::course::Subject;

/// A stick whose reads fail from the second on, a medium error each time.
fn failing(script: Script) -> Script {
    script.on(opcode(0x28).after(1), Action::Fail(Sense::READ_ERROR))
}

/// Lengths of the REQUEST SENSE commands, when a read fails.
fn asked(device: &Disk) -> Vec<u8> {
    let (mut rig, disk) = with_disk(device);
    let error = rig.read(disk, 0, 512);
    assert!(matches!(error, Err(BlockError::Medium { .. })), "{error:?}");
    questions(device)
}

/// Lengths of the REQUEST SENSE commands so far.
fn questions(device: &Disk) -> Vec<u8> {
    let commands = device.commands().into_iter();
    let sense = commands.filter(|command| command.opcode() == 0x03);
    sense.map(|command| command.cdb[4]).collect()
}

#[test]
fn a_device_with_more_sense_data_is_asked_for_it_and_its_neighbour_is_not() {
    // Seagate FreeAgent Pro.
    let known = failing(stick(0x0bc2, 0x3010, 0x0000)).build();
    assert!(asked(&known).iter().all(|length| *length == 96));
    let neighbour = failing(stick(0x0bc2, 0x3010, 0x0001)).build();
    assert!(asked(&neighbour).iter().all(|length| *length == 18));
}

#[test]
fn a_device_that_dies_of_a_long_question_gets_the_short_one_whatever_it_says() {
    // Silicon Motion SM3350; its sense data announce 24 bytes more.
    let mut long = Sense::READ_ERROR.fixed();
    long[7] = 24;
    let device = failing(stick(0x090c, 0x3350, 0x0100))
        .on(opcode(0x03), Action::Data(long.clone()))
        .on(
            opcode(0x03).announcing_more_than(18),
            Action::Hang(Until::PowerCycle),
        )
        .build();
    assert!(asked(&device).iter().all(|length| *length == 18));
    // Its neighbour proves that it has more, and is asked for it from then on.
    let neighbour = failing(stick(0x090c, 0x3351, 0x0100))
        .on(opcode(0x03), Action::Data(long))
        .build();
    assert_eq!(asked(&neighbour)[..3], [18, 96, 96]);
}

#[test]
fn that_a_long_question_fails_is_learnt_too() {
    let mut long = Sense::READ_ERROR.fixed();
    long[7] = 24;
    let device = failing(stick(0x1209, 0x0001, 0x0100))
        .on(opcode(0x03), Action::Data(long))
        .on(
            opcode(0x03).announcing_more_than(18),
            Action::Fail(Sense::BAD_FIELD),
        )
        .build();
    assert_eq!(asked(&device)[..4], [18, 96, 18, 18]);
}

#[test]
fn a_flush_is_followed_by_request_sense_on_the_device_that_wants_it() {
    // Amazon Kindle, which else ejects itself.
    let device = stick(0x1949, 0x0004, 0x0100).build();
    let (mut rig, disk) = with_disk(&device);
    works(&mut rig, disk);
    assert_eq!(rig.units_at(HIGH_PORT)[0].quirks, Quirks::SENSE_AFTER_SYNC);
    let opcodes = device.opcodes();
    let flush = opcodes.iter().position(|opcode| *opcode == 0x35).unwrap();
    assert_eq!(opcodes[flush + 1], 0x03);
    assert_eq!(device.count(0x03), 1);
    let neighbour = stick(0x1949, 0x0005, 0x0100).build();
    let (mut rig, disk) = with_disk(&neighbour);
    works(&mut rig, disk);
    assert_eq!(neighbour.count(0x03), 0);
}

/// What it says behind a flush is about the flush, however good that was called.
#[test]
fn a_flush_that_is_called_good_and_told_otherwise_behind_it_is_not_good() {
    let device = stick(0x1949, 0x0004, 0x0100)
        .on(opcode(0x03), Action::Data(Sense::WRITE_ERROR.fixed()))
        .build();
    let (mut rig, disk) = with_disk(&device);
    rig.write(disk, 5, &[1; 512]).unwrap();
    let result = rig.flush(disk);
    assert!(
        matches!(result, Err(BlockError::Medium { .. })),
        "{result:?}"
    );
}

/// A disk with a cache, of a maker whose bridges are asked for 96 bytes of sense data.
fn asked_for_more() -> Script {
    let unit = LogicalUnit::disk(4096, 512).write_cache(CacheLoss::PowerCycle);
    Script::new().unit(unit).ids(0x0d49, 0x7310)
}

/// The long answer has told of the reset, and was lost: the short one has nothing to say any more.
#[test]
fn a_reset_that_was_told_in_an_answer_which_was_lost_is_a_loss_whatever_the_next_answer_says() {
    let damaged = Action::Signature(*b"USBX");
    let device = asked_for_more()
        .on(opcode(0x03).after(1).times(1), damaged)
        .build();
    let (mut rig, disk) = with_disk(&device);
    rig.write(disk, 9, &[7; 512]).unwrap();
    device.brown_out(&[Sense::RESET], None);
    rig.read(disk, 100, 512).unwrap();
    assert_eq!(questions(&device)[1..3], [96, 18]);
    assert_eq!(rig.flush(disk), Err(BlockError::WritesMayBeLost));
    assert_eq!(rig.flush(disk), Ok(()), "it is told once");
}

/// What it minds then is the question, and not the flush.
#[test]
fn a_disk_that_refuses_the_long_question_about_a_flush_has_not_refused_the_flush() {
    let device = asked_for_more()
        .on(opcode(0x35).once(), Action::Fail(Sense::WRITE_ERROR))
        .on(
            opcode(0x03).after(1),
            Action::Data(Sense::BAD_FIELD.fixed()),
        )
        .on(
            opcode(0x03).announcing_more_than(18).after(1),
            Action::Fail(Sense::BAD_FIELD),
        )
        .build();
    let (mut rig, disk) = with_disk(&device);
    rig.write(disk, 9, &[7; 512]).unwrap();
    device.unit(0, |unit| unit.image.drop_cache());
    assert_eq!(rig.flush(disk), Err(BlockError::WritesMayBeLost));
    assert_eq!(questions(&device)[1..3], [96, 18]);
    assert_eq!(rig.geometry(disk).flush, FlushSupport::Command);
    assert_eq!(rig.flush(disk), Ok(()), "it is told once");
}
