//! Blocks that have not 512 bytes: told as they are, and buffers that do not fit are refused.

use crate::rig::with_disk;
use rootport::block::BlockError;
use rootport_models::device::field::capacity::has_blocks_of;
use rootport_models::device::scsi::pattern;

#[test]
fn blocks_of_every_legal_size_are_read_and_written_whole() {
    for exponent in 9..=16 {
        let size = 1_usize << exponent;
        let device = has_blocks_of(size);
        let (mut rig, disk) = with_disk(&device);
        let geometry = rig.geometry(disk);
        assert_eq!(
            (geometry.block_bytes as usize, geometry.blocks),
            (size, 65536)
        );
        rig.check(disk, 65535, 1);
        rig.check(disk, 10, 5);
        rig.write(disk, 11, &vec![0x5a; 2 * size]).unwrap();
        assert_eq!(
            device.block(10),
            pattern(10, size),
            "the neighbour of what was written"
        );
        assert_eq!(device.block(12), vec![0x5a; size]);
        assert_eq!(device.block(13), pattern(13, size));
    }
}

#[test]
fn a_buffer_that_is_no_whole_number_of_blocks_is_refused_before_anything_is_sent() {
    let device = has_blocks_of(4096);
    let (mut rig, disk) = with_disk(&device);
    let sent = device.commands().len();
    for length in [512, 4095, 4097, 6144] {
        let block_bytes = 4096;
        let refused = BlockError::BufferLength {
            length,
            block_bytes,
        };
        assert_eq!(rig.read(disk, 0, length), Err(refused));
        assert_eq!(rig.write(disk, 0, &vec![0; length]), Err(refused));
    }
    assert_eq!(device.commands().len(), sent);
}

#[test]
fn what_lies_beyond_the_end_is_refused_before_anything_is_sent() {
    let device = has_blocks_of(2048);
    let (mut rig, disk) = with_disk(&device);
    let sent = device.commands().len();
    for (lba, blocks) in [(65535, 2), (65536, 1), (u64::MAX, 1), (u64::MAX - 1, 4)] {
        let result = rig.read(disk, lba, 2048 * blocks);
        assert!(
            matches!(result, Err(BlockError::OutOfRange { .. })),
            "{lba}: {result:?}"
        );
    }
    assert_eq!(device.commands().len(), sent);
}
