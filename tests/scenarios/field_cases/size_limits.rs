//! Devices that miscount beyond a number of blocks: the cap is never passed, and data are right.

use crate::rig::with_disk;
use rootport_models::device::field::commands::{Overflow, miscounts_above};

#[test]
fn no_command_is_longer_than_240_blocks_below_superspeed() {
    for overflow in [
        Overflow::StopsSilently,
        Overflow::Halts,
        Overflow::WrongData,
    ] {
        let device = miscounts_above(240, overflow);
        let (mut rig, disk) = with_disk(&device);
        for blocks in [1, 239, 240, 241, 480, 1000] {
            rig.check(disk, 17, blocks);
            let data: Vec<u8> = (0..blocks as usize * 512)
                .map(|index| (index / 3) as u8)
                .collect();
            rig.write(disk, 5000, &data).unwrap();
            assert!(
                rig.read(disk, 5000, data.len()).unwrap() == data,
                "{blocks} blocks"
            );
        }
        assert_eq!(device.longest_transfer(), 240);
        assert_eq!(rig.geometry(disk).transfer_blocks, 240);
    }
}

#[test]
fn a_device_that_needs_less_gets_it_by_policy() {
    use crate::rig::{HIGH_PORT, Rig};
    use rootport::policy::Policy;
    for limit in [64_u32, 128] {
        let device = miscounts_above(limit, Overflow::WrongData);
        let mut rig = Rig::default();
        let transfer_high = limit * 512;
        rig.host.set_policy(Policy {
            transfer_high,
            ..Policy::DEFAULT
        });
        let disk = rig.disk(HIGH_PORT, device.clone());
        rig.check(disk, 3, 700);
        assert_eq!(device.longest_transfer(), limit);
    }
}

#[test]
fn blocks_that_stop_coming_without_a_word_are_an_error() {
    use rootport::block::BlockError;
    // The limit is lower than the cap: what is missing must be noticed.
    let device = miscounts_above(100, Overflow::StopsSilently);
    let (mut rig, disk) = with_disk(&device);
    let result = rig.read(disk, 0, 200 * 512);
    assert_eq!(result, Err(BlockError::Short { moved: 100 * 512 }));
    rig.check(disk, 0, 100);
}

#[test]
fn a_device_that_halts_beyond_its_limit_fails_that_request_alone() {
    use rootport::block::BlockError;
    for limit in [64, 128] {
        let device = miscounts_above(limit, Overflow::Halts);
        let (mut rig, disk) = with_disk(&device);
        let result = rig.read(disk, 0, 200 * 512);
        assert!(matches!(result, Err(BlockError::Device(_))), "{result:?}");
        rig.check(disk, 0, u64::from(limit));
    }
}
