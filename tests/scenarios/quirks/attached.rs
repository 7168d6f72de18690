//! Policies of devices that speak UAS, honoured there, and their neighbours that must not get them.
//!
//! Whether a device is used over UAS at all is in `uas_choice`.

use rootport::block::queue::DiskId;
use rootport::block::{BlockError, Lba, SenseCode, Stored, WriteOptions};
use rootport::scsi::ata::Prognosis;
use rootport::stack::SmartError;
use rootport_models::device::scsi::{AtaDisk, CacheLoss, Forced, LogicalUnit};
use rootport_models::device::uas::{What, on};
use rootport_models::device::{UasDisk, UasScript};

use super::works;
use crate::rig::{FASTEST, HIGH_PORT, Rig, port_for};

/// A disk with everything that is asked for here.
fn unit() -> LogicalUnit {
    LogicalUnit::disk(65536, 512)
        .write_cache(CacheLoss::PowerCycle)
        .bridge_to(AtaDisk::default())
        .with(|unit| unit.maximum_write_same = Some(64))
}

/// A device with these ids, used over UAS.
fn plug(ids: (u16, u16), script: UasScript) -> (Rig, DiskId, UasDisk) {
    let mut rig = Rig::default();
    let device = script.ids(ids.0, ids.1).build();
    let disk = rig.disk(HIGH_PORT, device.clone());
    assert_eq!(rig.units_at(HIGH_PORT)[0].device.driver, "uas");
    (rig, disk, device)
}

/// How many commands with this operation code came.
fn count(device: &UasDisk, opcode: u8) -> usize {
    let exchanges = device.exchanges();
    exchanges.iter().filter(|it| it.cdb[0] == opcode).count()
}

fn smart(rig: &mut Rig, disk: DiskId) -> Result<Prognosis, SmartError> {
    let mut sector = rig.machine.buffer(512, 0);
    let health = rig.host.disk(disk).smart(&mut sector)?;
    Ok(health.prognosis)
}

/// All of Seagate's, PNY Pro Elite, VIA VL711.
#[test]
fn ata_commands_are_kept_from_devices_that_die_of_them_and_their_neighbours_get_them() {
    for (ids, neighbour) in [
        ((0x0bc2, 0xab20), (0x0bc3, 0xab20)),
        ((0x154b, 0xf00b), (0x154b, 0xf00c)),
        ((0x2109, 0x0711), (0x2109, 0x0712)),
    ] {
        let dying = [0x85, 0xa1].map(|code| on(code, What::Hang));
        let script = dying
            .into_iter()
            .fold(UasScript::new().unit(unit()), UasScript::fault);
        let (mut rig, disk, device) = plug(ids, script);
        let forbidden = BlockError::Unsupported(SenseCode::BAD_FIELD);
        assert_eq!(smart(&mut rig, disk), Err(SmartError::Block(forbidden)));
        assert_eq!(count(&device, 0x85) + count(&device, 0xa1), 0, "{ids:x?}");
        works(&mut rig, disk);
        let (mut rig, disk, device) = plug(neighbour, UasScript::new().unit(unit()));
        assert_eq!(smart(&mut rig, disk), Ok(Prognosis::Good));
        assert_eq!(count(&device, 0x85), 3, "{neighbour:x?}");
    }
}

/// Seagate Expansion Desk.
#[test]
fn a_device_that_dies_of_report_luns_has_its_units_found_one_by_one() {
    let two = |script: UasScript| script.unit(unit()).unit(LogicalUnit::disk(1024, 512));
    let dying = two(UasScript::new()).fault(on(0xa0, What::Hang));
    for (ids, script, asked) in [
        ((0x0bc2, 0x331a), dying, 0),
        ((0x0bc2, 0x331b), two(UasScript::new()), 1),
    ] {
        let (mut rig, _, device) = plug(ids, script);
        rig.settle_port(HIGH_PORT);
        assert_eq!(rig.units_at(HIGH_PORT).len(), 2, "{ids:x?}");
        assert_eq!(count(&device, 0xa0), asked, "{ids:x?}");
    }
}

/// LaCie Rugged.
#[test]
fn a_device_that_dies_of_write_same_is_not_sent_any() {
    let dying = UasScript::new().unit(unit()).fault(on(0x93, What::Hang));
    let forbidden = BlockError::Unsupported(SenseCode::UNKNOWN_COMMAND);
    for (ids, script, result, sent) in [
        ((0x059f, 0x1061), dying, Err(forbidden), 0),
        ((0x059f, 0x1062), UasScript::new().unit(unit()), Ok(()), 1),
    ] {
        let (mut rig, disk, device) = plug(ids, script);
        let block = rig.machine.buffer(512, 0);
        let written = rig.host.disk(disk).write_same(Lba(100), 8, &block);
        assert_eq!(written, result, "{ids:x?}");
        assert_eq!(count(&device, 0x93), sent);
        works(&mut rig, disk);
    }
}

/// JMicron JMS578: forced data stay in its cache. G-Drive: it hangs when it is asked for its cache.
#[test]
fn a_write_to_the_medium_is_a_flush_where_forced_unit_access_or_the_question_for_it_is_no_good() {
    let lying = UasScript::new().unit(unit().with(|unit| unit.forced = Forced::Ignored));
    let hanging = UasScript::new().unit(unit()).fault(on(0x1a, What::Hang));
    let good = || UasScript::new().unit(unit());
    for (ids, script, is_forced) in [
        ((0x152d, 0x0578), lying, false),
        ((0x152d, 0x0577), good(), true),
        ((0x4971, 0x8024), hanging, false),
        ((0x4971, 0x8025), good(), true),
    ] {
        let (mut rig, disk, device) = plug(ids, script);
        let options = WriteOptions {
            stored: Stored::OnMedium,
        };
        let mut buffer = rig.machine.buffer(512, 0);
        buffer.fill(0x5a);
        let written = rig.host.disk(disk).write_with(Lba(9), &buffer, options);
        assert_eq!(written, Ok(()));
        let exchanges = device.exchanges();
        let mut writes = exchanges.iter().filter(|it| it.cdb[0] == 0x2a);
        assert_eq!(
            writes.all(|it| it.cdb[1] & 0x08 != 0),
            is_forced,
            "{ids:x?}"
        );
        let durable = device.change(|device| device.function.target.units[0].image.durable(9));
        assert_eq!(durable, [0x5a; 512], "{ids:x?}");
    }
}

/// Letter `g`.
#[test]
fn a_device_that_minds_long_commands_gets_120_kib_at_any_speed() {
    for (string, ids, most) in [
        ("1209:0001:g", (0x1209, 0x0001), 240),
        (
            "1209:0001:g",
            (0x1209, 0x0002),
            if FASTEST.is_super() { 2048 } else { 240 },
        ),
    ] {
        let port = port_for(FASTEST);
        let mut rig = Rig::default();
        rig.host.set_quirks(string);
        let script = UasScript::new().speed(FASTEST).unit(unit());
        let device = script.ids(ids.0, ids.1).build();
        let disk = rig.disk(port, device.clone());
        rig.check(disk, 0, 4096);
        let exchanges = device.exchanges();
        let reads = exchanges.iter().filter(|it| it.cdb[0] == 0x28);
        let blocks = reads.map(|it| u16::from_be_bytes([it.cdb[7], it.cdb[8]]));
        assert_eq!(blocks.max(), Some(most), "{ids:x?}");
    }
}
