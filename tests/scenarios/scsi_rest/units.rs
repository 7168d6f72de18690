//! Units beyond the first: by REPORT LUNS, or one INQUIRY after the other.

use rootport::stack::DiskInfo;
use rootport_models::device::base::{Answer, Request};
use rootport_models::device::scsi::{LogicalUnit, Scripted, Sense};
use rootport_models::device::{Script, UasDisk, UasScript};

use super::trusting;
use crate::rig::{HIGH_PORT, Rig};

const INQUIRY: u8 = 0x12;
const REPORT_LUNS: u8 = 0xa0;

fn disk(blocks: u64) -> LogicalUnit {
    LogicalUnit::disk(blocks, 512)
}

fn three(first: LogicalUnit) -> UasDisk {
    let script = UasScript::new().unit(first).unit(disk(2048));
    script.unit(disk(4096)).build()
}

fn numbers(units: &[DiskInfo]) -> Vec<u8> {
    let mut numbers: Vec<u8> = units.iter().map(|unit| unit.unit).collect();
    numbers.sort_unstable();
    numbers
}

/// How many commands with this operation code went to a unit.
fn sent(device: &UasDisk, lun: u8, opcode: u8) -> usize {
    let commands = device.change(|device| device.function.target.commands.clone());
    let is_it =
        |it: &&rootport_models::device::scsi::Command| (it.lun, it.opcode()) == (lun, opcode);
    commands.iter().filter(is_it).count()
}

/// Each unit has blocks of its own.
fn check_all(rig: &mut Rig, units: &[DiskInfo]) {
    for unit in units {
        rig.check(unit.id, 3, 4);
        let fill = [unit.unit + 1; 512];
        rig.write(unit.id, 9, &fill).unwrap();
    }
    for unit in units {
        let fill = vec![unit.unit + 1; 512];
        assert_eq!(rig.read(unit.id, 9, 512).unwrap(), fill);
    }
}

#[test]
fn units_that_a_uas_disk_lists_are_disks_of_their_own() {
    let mut rig = Rig::default();
    let device = three(disk(1024));
    let units = rig.settle(HIGH_PORT, device.clone());
    assert_eq!(numbers(&units), [0, 1, 2]);
    assert_eq!(sent(&device, 0, REPORT_LUNS), 1);
    assert_eq!(sent(&device, 1, REPORT_LUNS), 0);
    check_all(&mut rig, &units);
}

#[test]
fn where_the_list_fails_or_is_forbidden_units_are_found_one_by_one() {
    let refused = Scripted::Fail(Sense::UNKNOWN_COMMAND);
    let garbled = Scripted::Data(vec![0; 8]);
    for (string, answer) in [
        ("", Some(refused)),
        ("", Some(garbled)),
        ("1234:0a5d:j", None),
    ] {
        let mut rig = Rig::default();
        rig.host.set_quirks(string);
        let first = match &answer {
            Some(answer) => disk(1024).script(REPORT_LUNS, answer.clone()),
            None => disk(1024),
        };
        let device = three(first);
        let units = rig.settle(HIGH_PORT, device.clone());
        assert_eq!(numbers(&units), [0, 1, 2]);
        assert_eq!(sent(&device, 0, REPORT_LUNS), usize::from(answer.is_some()));
        assert_eq!(sent(&device, 3, INQUIRY), 1, "nobody is there");
        assert_eq!(sent(&device, 4, INQUIRY), 0);
        check_all(&mut rig, &units);
    }
}

#[test]
fn a_first_unit_that_is_no_disk_does_not_hide_the_others() {
    let enclosure = disk(1024).with(|unit| unit.device_type = 0x0d);
    let mut rig = Rig::default();
    let units = rig.settle(HIGH_PORT, three(enclosure));
    assert_eq!(numbers(&units), [1, 2]);
    check_all(&mut rig, &units);
}

#[test]
fn units_come_back_with_their_device_and_are_not_found_twice() {
    let mut rig = Rig::default();
    let device = three(disk(1024));
    let units = rig.settle(HIGH_PORT, device.clone());
    let hang = rootport_models::device::uas::What::Hang;
    let manners = rootport_models::device::uas::Manners {
        abort: rootport_models::device::uas::TaskManner::Ignores,
        unit_reset: rootport_models::device::uas::TaskManner::Ignores,
        ..Default::default()
    };
    device.change(|device| {
        device.function.manners = manners;
        let fault = rootport_models::device::uas::on(0x28, hang).times(1);
        device.function.faults.push(fault);
    });
    rig.check(units[0].id, 3, 1);
    assert!(device.bus_resets().len() > 1, "the port was reset");
    rig.settle_port(HIGH_PORT);
    assert_eq!(numbers(&rig.units_at(HIGH_PORT)), [0, 1, 2]);
    check_all(&mut rig, &units);
}

#[test]
fn a_bulk_only_disk_is_not_asked_for_a_list_and_its_count_stands() {
    let two = |rig: &mut Rig| {
        let device = Script::new()
            .control(Request::GET_MAX_LUN, Answer::Data(vec![1]))
            .unit(disk(1024))
            .unit(disk(2048))
            .build();
        let units = rig.settle(HIGH_PORT, device.clone());
        assert_eq!(numbers(&units), [0, 1]);
        device.count(REPORT_LUNS)
    };
    assert_eq!(two(&mut Rig::default()), 0);
    assert_eq!(two(&mut trusting()), 1, "a trusted one is");
}

#[test]
fn a_trusted_disk_that_counts_too_low_is_corrected_by_its_list() {
    let device = Script::new()
        .control(Request::GET_MAX_LUN, Answer::Stall)
        .unit(disk(1024))
        .unit(disk(2048))
        .build();
    let mut rig = trusting();
    let units = rig.settle(HIGH_PORT, device);
    assert_eq!(numbers(&units), [0, 1]);
    check_all(&mut rig, &units);
}
