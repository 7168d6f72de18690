//! Capacities that are one too large, odd, or cut.

use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::{LogicalUnit, Scripted};

use super::stick;
use crate::rig::{HIGH_PORT, Rig, with_disk};

/// A stick of 65536 blocks that says this for its last block.
fn says(last: u32) -> LogicalUnit {
    let bytes = [last.to_be_bytes(), 512_u32.to_be_bytes()].concat();
    LogicalUnit::stick(65536).script(0x25, Scripted::Data(bytes))
}

fn blocks(vendor: u16, product: u16, release: u16, last: u32) -> u64 {
    let device = stick(vendor, product, release).unit(says(last)).build();
    let (mut rig, disk) = with_disk(&device);
    rig.check(disk, 65535, 1);
    rig.geometry(disk).blocks
}

#[test]
fn a_count_in_place_of_the_last_block_is_mended_where_it_is_known() {
    // Prolific PL-2507, and the release beside it.
    assert_eq!(blocks(0x067b, 0x2507, 0x0100, 65536), 65536);
    assert_eq!(blocks(0x067b, 0x2507, 0x0101, 65536), 65537);
    assert_eq!(blocks(0x067b, 0x2508, 0x0100, 65535), 65536);
}

#[test]
fn an_odd_count_is_made_even_where_the_vendor_is_known_for_it() {
    // Any Nokia phone; DataStor.
    assert_eq!(blocks(0x0421, 0x0001, 0x0100, 65536), 65536);
    assert_eq!(blocks(0x0421, 0x0001, 0x0100, 65535), 65536);
    assert_eq!(blocks(0xed06, 0x4500, 0x0001, 65536), 65536);
    assert_eq!(blocks(0xed06, 0x4500, 0x0002, 65536), 65537);
    assert_eq!(blocks(0x0422, 0x0001, 0x0100, 65536), 65537);
}

#[test]
fn a_capacity_modulo_two_tebibytes_is_asked_with_sixteen_bytes_at_once() {
    let device = rootport_models::device::field::capacity::wraps_its_capacity_at_two_tebibytes();
    let (mut rig, disk) = with_disk(&device);
    assert_eq!(rig.geometry(disk).blocks, 5_860_533_168);
    assert_eq!(device.count(0x25), 0);
    rig.check(disk, 5_860_533_167, 1);
    // A neighbour is asked with ten bytes first.
    let neighbour = stick(0x174c, 0x55aa, 0x0101).build();
    with_disk(&neighbour);
    assert_eq!((neighbour.count(0x25), neighbour.count(0x9e)), (1, 0));
}

#[test]
fn a_device_that_hangs_on_read_capacity_16_is_never_asked() {
    let large = || LogicalUnit::disk(1 << 33, 512);
    let device = stick(0x054c, 0x02a5, 0x0100)
        .unit(large())
        .on(opcode(0x9e), Action::Hang(Until::PowerCycle))
        .build();
    let (mut rig, disk) = with_disk(&device);
    assert_eq!(device.count(0x9e), 0);
    assert_eq!(rig.geometry(disk).blocks, 1 << 32);
    rig.check(disk, (1 << 32) - 1, 1);
    let neighbour = stick(0x054c, 0x02a6, 0x0100).unit(large()).build();
    let (rig, disk) = with_disk(&neighbour);
    assert_eq!(rig.geometry(disk).blocks, 1 << 33);
}

/// Letter `o`. An odd number of blocks is right for a device whose vendor is known for counting too
/// high, where somebody says so.
#[test]
fn a_capacity_that_is_right_is_believed_in_spite_of_the_vendor() {
    let counted = |string| {
        let mut rig = Rig::default();
        rig.host.set_quirks(string);
        let device = stick(0x0421, 0x0001, 0x0100).unit(says(65536)).build();
        let disk = rig.disk(HIGH_PORT, device);
        rig.geometry(disk).blocks
    };
    assert_eq!(counted("0421:0001:o"), 65537);
    assert_eq!(counted("0421:0002:o"), 65536);
}
