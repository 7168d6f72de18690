//! Capacities that no disk has: no block device comes of them, and nothing hangs.

use crate::rig::with_device;
use rootport::scsi::bring_up::BringUpError;
use rootport::scsi::capacity::CapacityFault;
use rootport::stack::DiskState;
use rootport::time::Duration;
use rootport_models::device::field::capacity::{has_blocks_of, tells_capacity};

#[test]
fn a_block_length_that_is_no_power_of_two_from_512_to_65536_is_refused() {
    for length in [
        0,
        1,
        256,
        511,
        513,
        520,
        0x1_0001,
        0x2_0000,
        263_520_264,
        u32::MAX,
    ] {
        let device = tells_capacity(65535, length);
        let (rig, units) = with_device(&device);
        let wanted = BringUpError::Capacity(CapacityFault::BlockLength(length));
        assert_eq!(units[0].state, DiskState::Failed(wanted), "{length}");
        assert!(rig.now() < Duration::from_secs(5));
        assert!(rig.host.first_disk().is_err());
        assert!(device.count(0x25) <= 3, "a lie is not asked for ever");
        assert_eq!(device.count(0x28), 0);
    }
}

#[test]
fn the_largest_legal_block_length_is_taken() {
    let (rig, units) = with_device(&has_blocks_of(0x1_0000));
    assert!(matches!(units[0].state, DiskState::Ready(_)));
    assert_eq!(rig.geometry(units[0].id).block_bytes, 0x1_0000);
}

#[test]
fn a_last_block_of_zero_is_no_medium() {
    let device = tells_capacity(0, 512);
    let (_rig, units) = with_device(&device);
    assert_eq!(units[0].state, DiskState::Empty);
}
