//! The ATA disk behind a bridge.

use rootport::block::queue::DiskId;
use rootport::block::{BlockError, SenseCode};
use rootport::scsi::ata::{
    AtaIdentity, Health, Prognosis, SectorFault, SelfTest, SelfTestKind, SelfTestOutcome,
};
use rootport::scsi::vpd::Rotation;
use rootport::stack::SmartError;
use rootport::time::Duration;
use rootport_models::device::MINUTE;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::{AtaDisk, Bringing, LogicalUnit};
use rootport_models::device::uas::{What, on};
use rootport_models::device::{Script, UasScript};
use rootport_models::machine::Options;

use super::{Handle, bulk_only, over_both};
use crate::controller;
use crate::rig::{CALL_LIMIT, HIGH_PORT, OTHER_PORT, Rig};

const SIXTEEN: u8 = 0x85;
const TWELVE: u8 = 0xa1;

fn bridge(ata: AtaDisk) -> LogicalUnit {
    LogicalUnit::disk(16_384, 512).bridge_to(ata)
}

fn smart(rig: &mut Rig, disk: DiskId) -> Result<Health, SmartError> {
    let mut sector = rig.machine.buffer(512, 0);
    rig.host.disk(disk).smart(&mut sector)
}

fn identify(rig: &mut Rig, disk: DiskId) -> Result<AtaIdentity, SmartError> {
    let mut sector = rig.machine.buffer(512, 0);
    rig.host.disk(disk).identify_ata(&mut sector)
}

fn self_test(rig: &mut Rig, disk: DiskId, kind: SelfTestKind) -> Result<(), SmartError> {
    let mut sector = rig.machine.buffer(512, 0);
    rig.host.disk(disk).self_test(kind, &mut sector)
}

/// How a command ends that the bridge, or a policy for it, keeps back.
fn kept_back<T>(sense: SenseCode) -> Result<T, SmartError> {
    Err(SmartError::Block(BlockError::Unsupported(sense)))
}

#[test]
fn a_healthy_disk_says_how_it_is() {
    over_both(&bridge(AtaDisk::default()), |mut rig, disk, _| {
        let health = smart(&mut rig, disk).unwrap();
        assert_eq!(health.prognosis, Prognosis::Good);
        assert_eq!(health.temperature, Some(31));
        assert_eq!(health.power_on_hours, Some(12345));
        assert_eq!(health.reallocated_sectors, Some(0));
        assert_eq!(health.pending_sectors, Some(0));
        assert_eq!(health.self_test, SelfTest::Ended(SelfTestOutcome::Passed));
        assert_eq!(health.self_test_minutes, (2, 90));
        rig.check(disk, 0, 8);
    });
}

#[test]
fn a_failing_disk_says_so_and_how() {
    let ata = AtaDisk {
        is_failing: true,
        attributes: vec![(5, 1800), (197, 24), (190, 58)],
        test_status: 0x74,
        ..AtaDisk::default()
    };
    over_both(&bridge(ata), |mut rig, disk, _| {
        let health = smart(&mut rig, disk).unwrap();
        assert_eq!(health.prognosis, Prognosis::Failing);
        assert_eq!(health.reallocated_sectors, Some(1800));
        assert_eq!(health.pending_sectors, Some(24));
        assert_eq!(health.temperature, Some(58));
        assert_eq!(health.power_on_hours, None);
        let failed = SelfTest::Ended(SelfTestOutcome::FailedRead);
        assert_eq!(health.self_test, failed);
    });
}

#[test]
fn the_prognosis_comes_in_either_format_or_is_unknown() {
    for (bringing, prognosis) in [
        (Bringing::Descriptor, Prognosis::Failing),
        (Bringing::Fixed, Prognosis::Failing),
        (Bringing::Nothing, Prognosis::Unknown),
    ] {
        let ata = AtaDisk {
            bringing,
            is_failing: true,
            ..AtaDisk::default()
        };
        over_both(&bridge(ata), |mut rig, disk, _| {
            assert_eq!(smart(&mut rig, disk).unwrap().prognosis, prognosis);
        });
    }
}

#[test]
fn the_disk_behind_the_bridge_tells_its_own_name() {
    over_both(&bridge(AtaDisk::default()), |mut rig, disk, _| {
        let identity = identify(&mut rig, disk).unwrap();
        assert_eq!(identity.model.as_str(), "Model disk");
        assert_eq!(identity.serial.as_str(), "RP0001");
        assert_eq!(identity.firmware.as_str(), "1.0");
        assert_eq!(identity.rotation, Rotation::PerMinute(5400));
    });
}

#[test]
fn a_test_is_begun_goes_on_in_the_background_and_ends() {
    over_both(&bridge(AtaDisk::default()), |mut rig, disk, _| {
        self_test(&mut rig, disk, SelfTestKind::Short).unwrap();
        let state = smart(&mut rig, disk).unwrap().self_test;
        assert_eq!(state, SelfTest::Running { remaining: 90 });
        rig.check(disk, 0, 8);
        rig.run(Duration::from_micros(MINUTE / 1000));
        let state = smart(&mut rig, disk).unwrap().self_test;
        assert!(matches!(state, SelfTest::Running { remaining: 10..=50 }));
        rig.run(Duration::from_micros(2 * MINUTE / 1000));
        let state = smart(&mut rig, disk).unwrap().self_test;
        assert_eq!(state, SelfTest::Ended(SelfTestOutcome::Passed));
        self_test(&mut rig, disk, SelfTestKind::Extended).unwrap();
        self_test(&mut rig, disk, SelfTestKind::Abort).unwrap();
        let state = smart(&mut rig, disk).unwrap().self_test;
        assert_eq!(state, SelfTest::Ended(SelfTestOutcome::Aborted));
    });
}

#[test]
fn a_bridge_with_the_short_form_alone_gets_that() {
    let ata = AtaDisk {
        forms: (false, true),
        ..AtaDisk::default()
    };
    over_both(&bridge(ata), |mut rig, disk, handle| {
        for _ in 0..2 {
            assert_eq!(smart(&mut rig, disk).unwrap().prognosis, Prognosis::Good);
        }
        assert_eq!(handle.sent(SIXTEEN).len(), 1, "once, to find out");
        assert_eq!(handle.sent(TWELVE).len(), 6);
    });
}

#[test]
fn a_disk_that_is_no_bridge_says_that_it_knows_neither_form() {
    over_both(&LogicalUnit::disk(16_384, 512), |mut rig, disk, handle| {
        let neither = kept_back(SenseCode::UNKNOWN_COMMAND);
        assert_eq!(smart(&mut rig, disk), neither);
        assert_eq!(handle.sent(SIXTEEN).len() + handle.sent(TWELVE).len(), 2);
        rig.check(disk, 0, 8);
    });
}

/// As the JMS562 does.
#[test]
fn a_bridge_that_passes_identify_alone_refuses_the_rest_with_its_own_sense() {
    let ata = AtaDisk {
        passes_smart: false,
        ..AtaDisk::default()
    };
    over_both(&bridge(ata), |mut rig, disk, handle| {
        assert!(identify(&mut rig, disk).is_ok());
        assert_eq!(smart(&mut rig, disk), kept_back(SenseCode::BAD_FIELD));
        assert!(handle.sent(TWELVE).is_empty());
    });
}

#[test]
fn smart_that_is_not_there_or_switched_off_is_told_apart() {
    for (smart_state, error) in [
        ((false, false), SmartError::Absent),
        ((true, false), SmartError::SwitchedOff),
    ] {
        let ata = AtaDisk {
            smart: smart_state,
            ..AtaDisk::default()
        };
        over_both(&bridge(ata), |mut rig, disk, handle| {
            assert_eq!(smart(&mut rig, disk), Err(error));
            let test = self_test(&mut rig, disk, SelfTestKind::Short);
            assert_eq!(test, Err(error));
            assert_eq!(handle.sent(SIXTEEN).len(), 2, "IDENTIFY DEVICE alone");
        });
    }
}

#[test]
fn damaged_answers_are_refused() {
    let ata = AtaDisk {
        damages_data: true,
        ..AtaDisk::default()
    };
    over_both(&bridge(ata), |mut rig, disk, _| {
        let damaged = Err(SmartError::Sector(SectorFault::Checksum));
        assert_eq!(smart(&mut rig, disk), damaged);
    });
}

#[test]
fn any_buffer_of_a_sector_will_do_and_a_shorter_one_is_refused() {
    over_both(&bridge(AtaDisk::default()), |mut rig, disk, handle| {
        for offset in [1, 24, 63] {
            let mut sector = rig.machine.buffer(600, offset);
            let health = rig.host.disk(disk).smart(&mut sector).unwrap();
            assert_eq!(health.power_on_hours, Some(12345));
        }
        let before = handle.commands().len();
        let mut short = rig.machine.buffer(511, 0);
        let refused = rig.host.disk(disk).smart(&mut short);
        let length = 511;
        let block_bytes = 512;
        let wrong = BlockError::BufferLength {
            length,
            block_bytes,
        };
        assert_eq!(refused, Err(SmartError::Block(wrong)));
        assert_eq!(handle.commands().len(), before);
    });
}

#[test]
fn where_the_controller_cannot_be_cut_off_the_sector_goes_through_staging_memory() {
    let options = Options {
        can_cut_dma: false,
        ..Options::default()
    };
    let rig = Rig::new(options, controller::usual());
    let (mut rig, disk, _) = bulk_only(rig, bridge(AtaDisk::default()));
    let mut sector = [0; 512];
    let missing = Err(SmartError::Block(BlockError::NoStaging));
    assert_eq!(rig.host.disk(disk).smart(&mut sector), missing);
    let mut memory = rig.machine.buffer(4096, 0);
    rig.host
        .set_staging(rootport_models::adapter::owned(&mut memory));
    let health = rig.host.disk(disk).smart(&mut sector).unwrap();
    assert_eq!(health.temperature, Some(31));
}

#[test]
fn where_the_controller_cannot_reach_the_buffer_the_sector_goes_through_the_pool() {
    let rig = Rig::new(Options::default(), controller::addresses_32());
    let (mut rig, disk, _) = bulk_only(rig, bridge(AtaDisk::default()));
    let before = rig.pool_used();
    let mut sector = rig.machine.buffer_at(0x1_2345_6000, 512, 3);
    let health = rig.host.disk(disk).smart(&mut sector).unwrap();
    assert_eq!(health.temperature, Some(31));
    assert_eq!(rig.pool_used(), before);
}

/// The device answers no ATA command, until it loses its power or its port is reset.
#[test]
fn a_bridge_that_dies_of_an_ata_command_is_reset_and_gets_no_other() {
    let hang = Action::Hang(Until::BusReset);
    let script = Script::new().unit(bridge(AtaDisk::default()));
    let bulk_only = script.on(opcode(SIXTEEN), hang).build();
    let script = UasScript::new().unit(bridge(AtaDisk::default()));
    let uas = script.fault(on(SIXTEEN, What::Hang)).build();
    for handle in [Handle::BulkOnly(bulk_only), Handle::Uas(uas)] {
        let mut rig = Rig::default();
        let disk = match &handle {
            Handle::BulkOnly(device) => rig.disk(HIGH_PORT, device.clone()),
            Handle::Uas(device) => rig.disk(HIGH_PORT, device.clone()),
        };
        let neighbour = rig.disk(OTHER_PORT, Script::new().build());
        let dead = rig.within(CALL_LIMIT, |rig| smart(rig, disk));
        assert!(
            matches!(dead, Err(SmartError::Block(BlockError::Timeout))),
            "{dead:?}"
        );
        assert_eq!(handle.sent(SIXTEEN).len(), 1);
        rig.check(disk, 0, 8);
        assert_eq!(smart(&mut rig, disk), kept_back(SenseCode::BAD_FIELD));
        assert_eq!(handle.sent(SIXTEEN).len(), 1);
        rig.check(neighbour, 0, 8);
    }
}

#[test]
fn a_bridge_that_is_pulled_ends_the_question() {
    let script = Script::new().unit(bridge(AtaDisk::default()));
    let device = script.build();
    let mut rig = Rig::default();
    let disk = rig.disk(HIGH_PORT, device.clone());
    device.pull_at(1);
    let gone = rig.within(CALL_LIMIT, |rig| smart(rig, disk));
    assert_eq!(gone, Err(SmartError::Block(BlockError::Disconnected)));
}
