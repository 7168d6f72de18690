//! Disks around and beyond 2 TiB: 64-bit capacities, and the right command for each block.

use crate::rig::{HIGH_PORT, Rig, with_disk};
use rootport::stack::DiskState;
use rootport_models::device::Script;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::field::capacity::{
    has_bit_31_in_its_last_block, has_five_terabytes,
    sends_to_a_long_capacity_that_it_does_not_know,
};
use rootport_models::device::scsi::{LogicalUnit, Scripted};

#[test]
fn a_last_block_with_bit_31_is_no_negative_number() {
    let device = has_bit_31_in_its_last_block();
    let (mut rig, disk) = with_disk(&device);
    assert_eq!(rig.geometry(disk).blocks, 0xee77_52b0);
    rig.check(disk, 0xee77_52af, 1);
    rig.check(disk, 0x7fff_ffff, 3);
    assert_eq!(device.count(0x88), 0, "all of it is within READ(10)");
}

#[test]
fn five_terabytes_are_read_and_written_to_the_last_block() {
    let device = has_five_terabytes();
    let (mut rig, disk) = with_disk(&device);
    let blocks = rig.geometry(disk).blocks;
    assert_eq!(blocks, 9_767_541_168);
    rig.check(disk, blocks - 3, 3);
    assert_eq!(device.count(0x88), 2, "the last block has one of its own");
    rig.check(disk, 0xffff_fffe, 4);
    rig.write(disk, blocks - 1, &[0x77; 512]).unwrap();
    rig.flush(disk).unwrap();
    assert_eq!(device.durable_block(blocks - 1), [0x77; 512]);
    assert!(device.count(0x88) >= 1 && device.count(0x8a) == 1);
    // Nothing was written at the address modulo 2 TiB.
    rig.check(disk, (blocks - 1) & 0xffff_ffff, 1);
}

#[test]
fn a_long_capacity_that_is_unknown_leaves_what_the_short_one_can_say() {
    let device = sends_to_a_long_capacity_that_it_does_not_know();
    let mut rig = Rig::default();
    let units = rig.settle(HIGH_PORT, device.clone());
    let DiskState::Ready(geometry) = units[0].state else {
        panic!("{:?}", units[0].state);
    };
    assert_eq!(geometry.blocks, 1 << 32);
    rig.check(units[0].id, 0xffff_ffff, 1);
}

/// A disk whose short capacity is only what is left of its own modulo 2 TiB.
fn cut(blocks: u64) -> LogicalUnit {
    let cut = (blocks - 1) as u32;
    let told = [cut.to_be_bytes(), 512_u32.to_be_bytes()].concat();
    LogicalUnit::disk(blocks, 512).script(0x25, Scripted::Data(told))
}

/// `quirks::capacity` has the bridge that is known for it by its id; this one has an id that nobody knows.
#[test]
fn a_fixed_disk_whose_short_capacity_was_cut_is_known_by_its_long_one() {
    let blocks = 5_860_533_168;
    let device = Script::new().unit(cut(blocks)).build();
    let (mut rig, disk) = with_disk(&device);
    assert_eq!(rig.geometry(disk).blocks, blocks);
    rig.check(disk, blocks - 1, 1);
    rig.write(disk, blocks - 2, &[0x77; 512]).unwrap();
    rig.check(disk, (blocks - 1) & 0xffff_ffff, 1);
}

/// A question hangs while the disk becomes ready behind a reset, so that the next time it is asked as little as can be.
#[test]
fn a_disk_whose_short_capacity_was_cut_stays_the_same_disk_when_it_is_asked_only_what_must_be_known()
 {
    let blocks = 5_860_533_168;
    let hang = || Action::Hang(Until::BusReset);
    let script = Script::new().unit(cut(blocks));
    let script = script.on(opcode(0x28).after(1).times(1), hang());
    let device = script.on(opcode(0x1a).after(1).times(1), hang()).build();
    let (mut rig, disk) = with_disk(&device);
    rig.check(disk, 8, 8);
    assert_eq!(rig.geometry(disk).blocks, blocks);
    rig.check(disk, blocks - 1, 1);
}
