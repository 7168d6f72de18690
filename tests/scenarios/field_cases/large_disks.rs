//! Disks around and beyond 2 TiB: 64-bit capacities, and the right command for each block.

use crate::rig::{HIGH_PORT, Rig, with_disk};
use rootport::stack::DiskState;
use rootport_models::device::field::capacity::{
    has_bit_31_in_its_last_block, has_five_terabytes,
    sends_to_a_long_capacity_that_it_does_not_know,
};

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
