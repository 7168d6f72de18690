//! The first read after plug-in fails, or brings junk: the user never sees it.

use crate::rig::with_disk;
use rootport_models::device::Disk;
use rootport_models::device::Script;
use rootport_models::device::bot::{Action, opcode};
use rootport_models::device::field::commands::announces_a_new_medium_at_the_first_read;
use rootport_models::device::scsi::Sense;

const READ: u8 = 0x28;

/// The user's first read is right, and the device was asked for block 0 so often before.
fn is_read_at_once(device: &Disk, questions: usize) {
    let (mut rig, disk) = with_disk(device);
    assert_eq!(device.count(READ), questions);
    rig.check(disk, 0, 8);
}

#[test]
fn a_new_medium_that_is_announced_at_the_first_read_is_taken_note_of_before_the_user_reads() {
    is_read_at_once(&announces_a_new_medium_at_the_first_read(), 2);
}

/// Feiya's reader 090c:6000 says that block 0 is beyond the end.
#[test]
fn a_first_read_that_is_refused_is_tried_once_more() {
    let refusing = Script::new().on(opcode(READ).once(), Action::Fail(Sense::OUT_OF_RANGE));
    is_read_at_once(&refusing.build(), 2);
    let stubborn = Script::new().on(opcode(READ).times(2), Action::Fail(Sense::OUT_OF_RANGE));
    is_read_at_once(&stubborn.build(), 2);
}

/// Corsair's Padlock 1b1c:1ab5 brings what it likes.
#[test]
fn a_first_read_that_brings_junk_is_thrown_away() {
    let junk = Script::new().on(opcode(READ).once(), Action::WrongData);
    is_read_at_once(&junk.build(), 1);
}
