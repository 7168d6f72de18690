//! What a flush owes its caller after recovery on a UAS device: no write is lost in silence because a unit
//! was reset for the sake of a command that hung.

use rootport::block::queue::{DiskId, Operation};
use rootport::block::{BlockError, Lba};
use rootport::time::Duration;
use rootport_models::device::scsi::{CacheLoss, LogicalUnit, Timing};
use rootport_models::device::uas::{Manners, TaskManner, What, on};
use rootport_models::device::{Link, MILLISECOND, UasDisk, UasScript};

use super::{DEPTH, READ, plugged, submit};
use crate::controller::LINKS;
use crate::rig::Rig;

/// A disk with a cache that LOGICAL UNIT RESET empties, and of which it says nothing afterwards. It knows no
/// ABORT TASK, so a command that hangs costs that.
fn forgetful(link: Link) -> (Rig, DiskId, UasDisk) {
    let manners = Manners {
        abort: TaskManner::Refuses(0x04),
        unit_reset: TaskManner::WithoutAttention,
        ..Manners::default()
    };
    let unit = LogicalUnit::disk(16_384, 512).write_cache(CacheLoss::UnitReset);
    let hangs = on(READ, What::Hang).after(1).times(1);
    let script = UasScript::new().unit(unit).manners(manners).fault(hangs);
    plugged(link, script)
}

#[test]
fn a_unit_that_the_host_reset_itself_has_its_next_flush_tell_of_the_loss() {
    for &link in LINKS {
        let (mut rig, disk, device) = forgetful(link);
        rig.write(disk, 9, &[7; 512]).unwrap();
        rig.read(disk, 100, 512).unwrap();
        rig.read(disk, 100, 512).unwrap();
        let functions: Vec<u8> = device.tasks().iter().map(|task| task.function).collect();
        assert_eq!(functions, [0x01, 0x08], "{link:?}");
        assert_ne!(device.durable_block(9), [7; 512], "{link:?}: it is lost");
        let told = rig.flush(disk);
        assert_eq!(told, Err(BlockError::WritesMayBeLost), "{link:?}");
        assert_eq!(rig.flush(disk), Ok(()), "{link:?}: it is told once");
    }
}

#[test]
fn a_unit_that_was_clean_when_the_host_reset_it_has_lost_nothing() {
    for &link in LINKS {
        let (mut rig, disk, device) = forgetful(link);
        rig.write(disk, 9, &[7; 512]).unwrap();
        rig.flush(disk).unwrap();
        rig.read(disk, 100, 512).unwrap();
        rig.read(disk, 100, 512).unwrap();
        assert_eq!(device.tasks().len(), 2, "{link:?}");
        assert_eq!(rig.flush(disk), Ok(()), "{link:?}");
        assert_eq!(device.durable_block(9), [7; 512], "{link:?}");
    }
}

/// One command hangs, and a neighbour's is still at work when their unit is reset for it. The device sends that
/// one's status all the same, later: while flushes are under way, which move no data that would give it away.
#[test]
fn field_case_23_the_status_of_a_neighbour_s_command_that_a_unit_reset_ended_is_no_flush_s() {
    for delay in [10_500, 12_300] {
        for extra in 0..DEPTH as u64 {
            for &link in LINKS {
                let manners = Manners {
                    abort: TaskManner::Refuses(0x04),
                    unit_reset: TaskManner::LeavesStatus,
                    ..Manners::default()
                };
                let slow = Timing {
                    flush: 700 * MILLISECOND,
                    ..Timing::default()
                };
                let unit = LogicalUnit::disk(16_384, 512).write_cache(CacheLoss::PowerCycle);
                let late = What::DelayStatus(delay * MILLISECOND);
                let script = UasScript::new()
                    .unit(unit.timing(slow))
                    .manners(manners)
                    .fault(on(READ, What::Hang).after(1).times(1))
                    .fault(on(READ, late).after(1).times(1));
                let (mut rig, disk, device) = plugged(link, script);
                submit(&mut rig, disk, Operation::Read(Lba(0)), 0);
                rig.run(Duration::from_millis(200));
                submit(&mut rig, disk, Operation::Read(Lba(64)), 0);
                rig.run(Duration::from_millis(9_900));
                assert_eq!(device.tasks().len(), 2, "{delay}, {link:?}");
                for round in 1..=12 {
                    rig.write(disk, 9, &[round; 512]).unwrap();
                    for lba in 0..extra {
                        rig.read(disk, 100 + lba, 512).unwrap();
                    }
                    assert_eq!(rig.flush(disk), Ok(()), "{delay}, {extra}, {link:?}");
                    let exchanges = device.exchanges();
                    let flush = exchanges.last().expect("there was a flush");
                    let has_ended = flush.ended.is_some();
                    assert!(has_ended, "{delay}, {extra}, {link:?}: flush {round}");
                }
            }
        }
    }
}
