//! The first read after plug-in fails, or brings junk: what the user reads is right, whatever it
//! costs.

use crate::rig::with_disk;
use rootport::block::BlockError;
use rootport_models::device::field::commands::announces_a_new_medium_at_the_first_read;

#[test]
fn a_new_medium_that_is_announced_at_the_first_read_is_told_and_read() {
    let device = announces_a_new_medium_at_the_first_read();
    let (mut rig, disk) = with_disk(&device);
    // It may be told to the caller, once, and never as data.
    match rig.read(disk, 0, 512) {
        Ok(_) | Err(BlockError::MediumChanged) => {}
        other => panic!("{other:?}"),
    }
    let disk = rig.wait_for_disk(crate::rig::HIGH_PORT);
    rig.check(disk, 0, 8);
}
