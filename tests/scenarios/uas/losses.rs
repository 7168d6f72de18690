//! What a flush owes its caller after recovery on a UAS device: no write is lost in silence because a unit
//! was reset for the sake of a command that hung.

use rootport::block::BlockError;
use rootport_models::device::scsi::{CacheLoss, LogicalUnit};
use rootport_models::device::uas::{Manners, TaskManner, What, on};
use rootport_models::device::{Link, UasDisk, UasScript};

use super::{READ, plugged};
use crate::controller::LINKS;
use crate::rig::Rig;
use rootport::block::queue::DiskId;

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
