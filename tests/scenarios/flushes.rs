//! Disks that stall their flush command: none is reset for it, and none is believed to have flushed.

use rootport::block::{BlockError, FlushSupport};
use rootport::time::Duration;
use rootport_models::device::base::Request;
use rootport_models::device::bot::{Action, opcode};
use rootport_models::device::scsi::{CacheLoss, LogicalUnit, Sense};
use rootport_models::device::{Disk, Script};

use crate::rig::{CALL_LIMIT, HIGH_PORT, Rig, with_disk};
use crate::scenarios::every_step::course::Subject;

const FLUSH: u8 = 0x35;
const INQUIRY: u8 = 0x12;

/// The status is stalled, and once more when the halt was cleared: only reset recovery is left then
/// (BOT 1.0 §6.7.2).
const STALLS: Action = Action::HaltStatus(2);

fn caching_stick() -> Script {
    Script::new().unit(LogicalUnit::stick(4096).write_cache(CacheLoss::BusReset))
}

fn openings(device: &Disk) -> usize {
    device.count_requests(Request::SET_CONFIGURATION)
}

#[test]
fn a_bridge_that_stalls_every_flush_is_never_reset_for_it_and_counts_as_one_without_the_command() {
    let device = caching_stick().on(opcode(FLUSH), STALLS).build();
    let (mut rig, disk) = with_disk(&device);
    rig.write(disk, 9, &[7; 512]).unwrap();
    let flush = rig.within(Duration::from_secs(1), |rig| rig.flush(disk));
    assert_eq!(flush, Ok(()), "{}", rig.describe());
    assert_eq!(rig.geometry(disk).flush, FlushSupport::NoFlushCommand);
    assert_eq!(openings(&device), 1, "its port was not reset");
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 2);
    let commands = device.commands().len();
    let again = rig.within(Duration::from_micros(100), |rig| rig.flush(disk));
    assert_eq!(again, Ok(()));
    assert_eq!(device.commands().len(), commands, "nothing is sent for it");
    assert_eq!(rig.read(disk, 9, 512).unwrap(), [7; 512]);
}

#[test]
fn a_flush_that_is_stalled_once_is_issued_again() {
    let device = caching_stick().on(opcode(FLUSH).once(), STALLS).build();
    let (mut rig, disk) = with_disk(&device);
    rig.write(disk, 9, &[7; 512]).unwrap();
    assert_eq!(rig.flush(disk), Ok(()));
    assert_eq!(rig.geometry(disk).flush, FlushSupport::Command);
    assert_eq!(device.durable_block(9), [7; 512]);
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 1);
    assert_eq!(openings(&device), 1);
}

/// It stalls whatever comes, until its port was reset: that says nothing about the command.
#[test]
fn a_device_that_has_died_under_a_flush_is_not_taken_for_one_without_the_command() {
    let dies = caching_stick().on(opcode(FLUSH).times(2), STALLS);
    let device = dies.on(opcode(INQUIRY).after(1).times(2), STALLS).build();
    let mut rig = Rig::default();
    let disk = rig.disk(HIGH_PORT, device.clone());
    assert_eq!(device.count(INQUIRY), 1);
    rig.write(disk, 9, &[7; 512]).unwrap();
    let flush = rig.within(CALL_LIMIT, |rig| rig.flush(disk));
    assert_eq!(
        flush,
        Err(BlockError::WritesMayBeLost),
        "{}",
        rig.describe()
    );
    assert_eq!(openings(&device), 2);
    assert_eq!(rig.geometry(disk).flush, FlushSupport::Command);
    rig.write(disk, 9, &[8; 512]).unwrap();
    assert_eq!(rig.flush(disk), Ok(()));
    assert_eq!(device.durable_block(9), [8; 512]);
}

/// It has shown that it knows the command: what it holds is not on the medium as long as it stalls.
#[test]
fn a_disk_that_has_carried_out_a_flush_is_never_taken_for_one_without_the_command() {
    let stalls = opcode(FLUSH).after(1).times(6);
    let device = caching_stick().on(stalls, STALLS).build();
    let (mut rig, disk) = with_disk(&device);
    rig.write(disk, 9, &[7; 512]).unwrap();
    assert_eq!(rig.flush(disk), Ok(()));
    rig.write(disk, 9, &[8; 512]).unwrap();
    let flush = rig.within(Duration::from_secs(1), |rig| rig.flush(disk));
    assert_eq!(flush, Err(BlockError::Protocol), "{}", rig.describe());
    assert_eq!(rig.geometry(disk).flush, FlushSupport::Command);
    assert_eq!(openings(&device), 1, "its port was not reset");
    assert_eq!(rig.flush(disk), Ok(()), "after two more tries");
    assert_eq!(device.durable_block(9), [8; 512]);
}

/// The stalled status was not heard: it may have said that the cache could not be written, or was lost. Where all
/// flushes are stalled, that is all that is ever heard of it.
#[test]
fn what_a_unit_has_said_of_a_flush_that_was_stalled_is_asked_before_anything_wipes_it_out() {
    for stalled in [1, 2] {
        let fails = Action::Fail(Sense::WRITE_ERROR);
        let device = caching_stick().on(opcode(FLUSH).once(), fails);
        let device = device.on(opcode(FLUSH).times(stalled), STALLS).build();
        let (mut rig, disk) = with_disk(&device);
        rig.write(disk, 9, &[7; 512]).unwrap();
        // The disk gives up what it cannot write.
        device.unit(0, |unit| unit.image.drop_cache());
        let flush = rig.flush(disk);
        let what = format!("stalled {stalled} times: {}", rig.describe());
        assert_eq!(flush, Err(BlockError::WritesMayBeLost), "{what}");
        assert_eq!(rig.flush(disk), Ok(()), "it is told once");
        assert_eq!(openings(&device), 1, "its port was not reset");
    }
}

#[test]
fn a_reset_that_is_told_in_a_flush_s_stalled_status_is_a_loss() {
    let device = caching_stick().on(opcode(FLUSH).once(), STALLS).build();
    let (mut rig, disk) = with_disk(&device);
    rig.write(disk, 9, &[7; 512]).unwrap();
    device.brown_out(&[Sense::RESET], None);
    assert_eq!(rig.flush(disk), Err(BlockError::WritesMayBeLost));
    assert_eq!(rig.flush(disk), Ok(()), "it is told once");
}
