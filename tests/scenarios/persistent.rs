//! One command that never ends, on a device that is well otherwise.

use crate::rig::{HIGH_PORT, ModelHost, Rig};
use rootport::block::Lba;
use rootport::block::queue::{Completion, DiskId, Operation};
use rootport::dma::DmaBuffer;
use rootport::time::Duration;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{SECOND, Script};

/// Every rung, each with a command's deadline, and the bring-up behind it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Reads a block, and panics if that does not end in time.
fn read(rig: &mut Rig, disk: DiskId, lba: u64) -> Completion {
    let buffer = DmaBuffer::from_static(vec![0; 512].leak());
    let operation = Operation::Read(Lba(lba));
    rig.host.submit(disk, operation, Some(buffer)).unwrap();
    rig.run(PATIENCE);
    let completion = rig.host.take_completion();
    completion.unwrap_or_else(|| panic!("no end: {:?}", rig.machine.log()))
}

#[test]
fn a_block_that_hangs_the_disk_each_time_ends_in_an_error_and_the_others_are_well() {
    let mut rig = Rig::default();
    let hangs = opcode(0x28).touching(100..101);
    let stick = Script::new()
        .unit(LogicalUnit::stick(4096))
        .on(hangs, Action::Delay(3600 * SECOND));
    let disk = rig.disk(HIGH_PORT, stick.build());
    let read100 = read(&mut rig, disk, 100);
    assert!(read100.result.is_err());
    assert_eq!(read(&mut rig, disk, 7).result, Ok(()));
}

/// A stick that dies of MODE SENSE, at its worst.
#[test]
fn a_device_that_hangs_until_a_bus_reset_when_asked_for_write_protection_is_used_without() {
    let mut rig = Rig::default();
    let hangs = Action::Hang(Until::BusReset);
    let stick = Script::new()
        .unit(LogicalUnit::stick(4096))
        .on(opcode(0x1a), hangs)
        .build();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    for lba in [1, 2, 3] {
        assert_eq!(read(&mut rig, disk, lba).result, Ok(()));
    }
    assert_eq!(stick.count(0x1a), 1, "it is not asked again");
}

#[test]
fn a_device_that_hangs_until_a_bus_reset_when_asked_for_its_capacity_is_not_reset_for_ever() {
    let mut rig = Rig::default();
    let hangs = Action::Hang(Until::BusReset);
    let stick = Script::new()
        .unit(LogicalUnit::stick(4096))
        .on(opcode(0x25), hangs)
        .build();
    rig.plug(HIGH_PORT, stick.clone());
    rig.run(Duration::from_secs(300));
    let asked = stick.count(0x25);
    assert!(asked < 12, "{asked}");
    let usable = |host: &ModelHost| host.first_disk().is_ok();
    assert!(!usable(&rig.host));
    rig.run(Duration::from_secs(300));
    assert_eq!(stick.count(0x25), asked, "it is left alone");
}
