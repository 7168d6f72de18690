//! A bridge without enough power fails TEST UNIT READY and both READ CAPACITY with 4/44/81: a typed
//! error with that sense, no disk, nothing divided by a block length of zero.

use crate::rig::with_device;
use rootport::block::BlockError;
use rootport::scsi::bring_up::BringUpError;
use rootport::scsi::transport::TransportError;
use rootport::stack::DiskState;
use rootport::time::Duration;
use rootport_models::device::Script;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::field::readiness::lacks_power_to_spin_up;
use rootport_models::device::scsi::{LogicalUnit, Scripted, Sense};

#[test]
fn the_failure_carries_the_sense_and_there_is_no_disk() {
    let device = lacks_power_to_spin_up();
    let (mut rig, units) = with_device(&device);
    let DiskState::Failed(why @ BringUpError::Failed(sense)) = units[0].state else {
        panic!("{:?}", units[0].state);
    };
    let words = why.to_string();
    assert!(
        words.contains("(4/44/81)") && words.contains("power"),
        "{words}"
    );
    assert_eq!((sense.key.code(), sense.asc, sense.ascq), (4, 0x44, 0x81));
    assert!(rig.age() < Duration::from_secs(5));
    assert!(rig.host.first_disk().is_err());
    assert_eq!(rig.host.geometry(units[0].id), Err(BlockError::NotReady));
    assert_eq!(rig.read(units[0].id, 0, 512), Err(BlockError::NotReady));
    assert_eq!(rig.flush(units[0].id), Err(BlockError::NotReady));
    assert!(device.commands().len() <= 16, "{:x?}", device.opcodes());
}

/// The same bridge in another state: it does not even say whether it is ready.
#[test]
fn a_bridge_that_does_not_answer_whether_it_is_ready_is_no_disk_either_and_ends_in_time() {
    let failure = Scripted::Fail(Sense::UNDER_POWERED);
    let unit = LogicalUnit::disk(65536, 512)
        .script(0x25, failure.clone())
        .script(0x9e, failure);
    let device = Script::new()
        .unit(unit)
        .on(opcode(0x00), Action::Hang(Until::ClassReset))
        .build();
    let (mut rig, units) = with_device(&device);
    let why = BringUpError::Transport(TransportError::Timeout);
    assert_eq!(units[0].state, DiskState::Failed(why));
    assert!(rig.age() < Duration::from_secs(50), "{:?}", rig.age());
    assert!(rig.host.first_disk().is_err());
    assert_eq!(rig.read(units[0].id, 0, 512), Err(BlockError::NotReady));
    let asked = device.commands().len();
    rig.run(Duration::from_secs(600));
    assert_eq!(device.commands().len(), asked, "it is left alone");
}
