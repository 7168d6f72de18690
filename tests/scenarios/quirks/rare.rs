//! Commands that few hosts send: who must not get them, and who is sent none whatever happens.

use rootport::block::{BlockError, Lba, SenseCode, Stored, WriteOptions};
use rootport::scsi::ata::Prognosis;
use rootport::stack::SmartError;
use rootport::storage::quirks::Quirks;
use rootport_models::device::Disk;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::{AtaDisk, CacheLoss, Forced, LogicalUnit};

use super::{stick, works};
use crate::rig::{HIGH_PORT, Rig, with_disk};
use crate::scenarios::scsi_rest::trusting;

/// A disk with everything that is asked for here.
fn unit() -> LogicalUnit {
    LogicalUnit::disk(65536, 512)
        .write_cache(CacheLoss::PowerCycle)
        .bridge_to(AtaDisk::default())
        .with(|unit| unit.maximum_write_same = Some(64))
}

fn smart(rig: &mut Rig, disk: rootport::block::queue::DiskId) -> Result<Prognosis, SmartError> {
    let mut sector = rig.machine.buffer(512, 0);
    let health = rig.host.disk(disk).smart(&mut sector)?;
    Ok(health.prognosis)
}

/// DJI CineSSD, and a device that the string names.
#[test]
fn ata_commands_are_kept_from_a_device_that_dies_of_them_and_its_neighbour_gets_them() {
    for (string, product) in [("", 0x0031), ("2ca3:0040:t", 0x0040)] {
        let mut rig = Rig::default();
        rig.host.set_quirks(string);
        let device = stick(0x2ca3, product, 0x0100)
            .unit(unit())
            .on(opcode(0x85), Action::Hang(Until::PowerCycle))
            .on(opcode(0xa1), Action::Hang(Until::PowerCycle))
            .build();
        let disk = rig.disk(HIGH_PORT, device.clone());
        let forbidden = BlockError::Unsupported(SenseCode::BAD_FIELD);
        assert_eq!(smart(&mut rig, disk), Err(SmartError::Block(forbidden)));
        assert_eq!(device.count(0x85) + device.count(0xa1), 0);
        works(&mut rig, disk);
        rig.unplug(HIGH_PORT);
        let neighbour = stick(0x2ca3, product + 1, 0x0100).unit(unit()).build();
        let disk = rig.disk(HIGH_PORT, neighbour.clone());
        assert_eq!(smart(&mut rig, disk), Ok(Prognosis::Good));
        assert_eq!(neighbour.count(0x85), 3);
    }
}

/// Whether a write to the medium carried the bit, on a device that is trusted with it.
fn is_forced(device: &Disk) -> bool {
    let mut rig = trusting();
    let disk = rig.disk(HIGH_PORT, device.clone());
    let options = WriteOptions {
        stored: Stored::OnMedium,
    };
    let mut buffer = rig.machine.buffer(512, 0);
    buffer.fill(0x5a);
    let written = rig.host.disk(disk).write_with(Lba(9), &buffer, options);
    assert_eq!(written, Ok(()));
    assert_eq!(device.durable_block(9), [0x5a; 512], "on the medium");
    let commands = device.commands();
    let mut writes = commands.iter().filter(|it| it.opcode() == 0x2a);
    writes.any(|it| it.cdb[1] & 0x08 != 0)
}

/// JMicron JMS578: the bridge takes the bit, and the data stay in the cache.
#[test]
fn forced_unit_access_that_lies_is_not_used_and_the_neighbours_is() {
    let lying = unit().with(|unit| unit.forced = Forced::Ignored);
    let device = stick(0x152d, 0x0578, 0x0204).unit(lying).build();
    assert!(!is_forced(&device));
    let neighbour = stick(0x152d, 0x0577, 0x0204).unit(unit()).build();
    assert!(is_forced(&neighbour));
}

#[test]
fn write_same_is_kept_from_a_device_that_dies_of_it_and_its_neighbour_gets_it() {
    let mut rig = trusting();
    rig.host.set_quirks("1209:0001:k");
    let device = stick(0x1209, 0x0001, 0x0100)
        .unit(unit())
        .on(opcode(0x93), Action::Hang(Until::PowerCycle))
        .build();
    let disk = rig.disk(HIGH_PORT, device.clone());
    let block = rig.machine.buffer(512, 0);
    let forbidden = BlockError::Unsupported(SenseCode::UNKNOWN_COMMAND);
    let refused = rig.host.disk(disk).write_same(Lba(0), 8, &block);
    assert_eq!(refused, Err(forbidden));
    assert_eq!(device.count(0x93), 0);
    works(&mut rig, disk);
    rig.unplug(HIGH_PORT);
    let neighbour = stick(0x1209, 0x0002, 0x0100).unit(unit()).build();
    let disk = rig.disk(HIGH_PORT, neighbour.clone());
    rig.host.disk(disk).write_same(Lba(0), 8, &block).unwrap();
    assert_eq!(neighbour.count(0x93), 1);
}

/// REPORT LUNS (`j`), and the caching page of those that hide their cache (`y`, `p`).
#[test]
fn a_question_that_hangs_a_device_is_not_asked_even_of_a_trusted_one() {
    for (string, question) in [("1209:0001:j", 0xa0), ("1209:0001:y", 0x1a)] {
        let mut rig = trusting();
        rig.host.set_quirks(string);
        let device = stick(0x1209, 0x0001, 0x0100)
            .unit(unit())
            .on(opcode(question), Action::Hang(Until::PowerCycle))
            .build();
        let disk = rig.disk(HIGH_PORT, device.clone());
        assert_eq!(device.count(question), 0, "{string}");
        works(&mut rig, disk);
        rig.unplug(HIGH_PORT);
        let neighbour = stick(0x1209, 0x0002, 0x0100).unit(unit()).build();
        rig.disk(HIGH_PORT, neighbour.clone());
        assert_eq!(neighbour.count(question), 1, "{string}");
    }
}

/// Seagate Portable: its caching page says that it has no cache, which is not so.
#[test]
fn a_device_that_cannot_say_that_it_has_a_cache_is_flushed_and_its_neighbour_is_believed() {
    let flushes = |product: u16| {
        let says_none = LogicalUnit::disk(65536, 512);
        let device = stick(0x0bc2, product, 0x0100).unit(says_none).build();
        is_forced(&device);
        device.count(0x35)
    };
    assert_eq!(flushes(0x2300), 1);
    assert_eq!(flushes(0x2301), 0);
}

/// `l`, `f`, `d`: the stack sends these to nobody.
#[test]
fn commands_that_are_never_sent_are_not_sent_to_devices_that_would_mind_either() {
    let never = [0x1e, 0xa3, 0x51];
    for product in [0x0150, 0x0160] {
        // USBest stick, and a neighbour.
        let script = never.iter().fold(
            stick(0x0457, product, 0x0100).unit(unit()),
            |script, code| script.on(opcode(*code), Action::Hang(Until::PowerCycle)),
        );
        let device = script.build();
        let (mut rig, disk) = with_disk(&device);
        works(&mut rig, disk);
        let quirks = rig.units_at(HIGH_PORT)[0].quirks;
        assert_eq!(quirks.contains(Quirks::NOT_LOCKABLE), product == 0x0150);
        assert!(never.iter().all(|code| device.count(*code) == 0));
    }
}
