//! A halt must be cleared at the host, then at the device, and only then may the pipe be used again: a
//! doorbell before CLEAR_FEATURE collects a second STALL and may lose the endpoint for good.

use crate::rig::with_disk;
use rootport::block::BlockError;
use rootport_models::device::base::{Answer, Request};
use rootport_models::device::bot::{Action, opcode};
use rootport_models::device::field::halts::{halts_the_third_read, halts_the_third_write};
use rootport_models::device::{Disk, Nanoseconds, Script};

/// The times of the device's one STALL, and of the one CLEAR_FEATURE.
fn stall_and_clearing(device: &Disk) -> (Nanoseconds, Nanoseconds) {
    let stalls = device.stalls();
    assert_eq!(stalls.len(), 1, "one STALL for one halt: {stalls:?}");
    let requests = device.requests();
    let clearing: Vec<_> = requests
        .iter()
        .filter(|(_, setup)| Request::CLEAR_HALT.matches(setup))
        .collect();
    assert_eq!(clearing.len(), 1);
    assert_eq!(
        clearing[0].1.index,
        u16::from(stalls[0].1),
        "the pipe that was halted"
    );
    (stalls[0].0, clearing[0].0)
}

#[test]
fn a_halted_read_is_cleared_before_the_pipe_is_used_again() {
    // The first read was bring-up's.
    let device = halts_the_third_read();
    let (mut rig, disk) = with_disk(&device);
    rig.check(disk, 2, 2);
    assert!(matches!(
        rig.read(disk, 4, 1024),
        Err(BlockError::Device(_))
    ));
    for lba in 4..12 {
        rig.check(disk, lba, 2);
    }
    let (stalled, cleared) = stall_and_clearing(&device);
    assert!(stalled < cleared);
    let status = device
        .exchanges()
        .into_iter()
        .filter(|exchange| exchange.status == Some(1));
    assert!(
        status
            .map(|exchange| exchange.ended)
            .all(|ended| ended > Some(cleared))
    );
    assert_eq!(
        device.count_requests(Request::BULK_ONLY_RESET),
        0,
        "a halt is no reason for a reset"
    );
}

#[test]
fn a_halted_write_is_cleared_before_the_pipe_is_used_again() {
    let device = halts_the_third_write();
    let (mut rig, disk) = with_disk(&device);
    rig.write(disk, 0, &[1; 1024]).unwrap();
    rig.write(disk, 2, &[2; 1024]).unwrap();
    assert!(matches!(
        rig.write(disk, 4, &[3; 1024]),
        Err(BlockError::Device(_))
    ));
    for lba in 0..8 {
        rig.write(disk, 4 + 2 * lba, &[4; 1024]).unwrap();
        assert_eq!(device.block(5 + 2 * lba), [4; 512]);
    }
    let (stalled, cleared) = stall_and_clearing(&device);
    assert!(stalled < cleared);
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 0);
}

#[test]
fn the_toggles_start_again_with_a_cleared_halt() {
    // The model refuses a packet with the wrong toggle: an odd and an even number of packets before.
    for packets in [1, 2, 3, 4] {
        let device = halts_the_third_read();
        let (mut rig, disk) = with_disk(&device);
        rig.check(disk, 0, packets);
        assert!(rig.read(disk, 4, 512).is_err());
        rig.check(disk, 20, packets);
        rig.check(disk, 30, 5);
    }
}

#[test]
fn a_pipe_whose_halt_the_device_does_not_clear_gets_reset_recovery_and_the_write_arrives() {
    let device = Script::new()
        .on(opcode(0x2a).after(1).once(), Action::HaltData)
        .control_some(Request::CLEAR_HALT, 0..1, Answer::Stall)
        .build();
    let (mut rig, disk) = with_disk(&device);
    for lba in 0..4 {
        rig.write(disk, lba, &[lba as u8 + 1; 512]).unwrap();
    }
    for lba in 0..4 {
        assert_eq!(device.block(lba), [lba as u8 + 1; 512]);
    }
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 1);
    assert_eq!(device.bus_resets().len(), 1, "nothing more was needed");
}
