//! What tells one disk from another, also of the same model.

use rootport::block::BlockError;
use rootport::scsi::vpd::Authority;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Disk, Script};

use super::works;
use crate::rig::{HIGH_PORT, Rig, with_disk};

/// The names of the disks in a port.
fn names(rig: &Rig) -> Vec<String> {
    let units = rig.units_at(HIGH_PORT);
    units
        .iter()
        .map(|it| it.stable_name().to_string())
        .collect()
}

#[test]
fn a_disk_is_named_by_the_best_that_is_known_of_it() {
    let (rig, _) = with_disk(&fixed().build());
    assert!(
        names(&rig)[0].starts_with("naa.5000c500"),
        "{:?}",
        names(&rig)
    );
    let (rig, _) = with_disk(&Script::new().strings("A", "B", "S-1").build());
    assert_eq!(names(&rig), ["usb-1209:0001-S-1:0"]);
    let (rig, _) = with_disk(&Script::new().strings("A", "B", "").build());
    assert_eq!(names(&rig), ["port-0.0.0:0"]);
}

fn fixed() -> Script {
    Script::new().unit(LogicalUnit::disk(65536, 512))
}

#[test]
fn a_fixed_disk_tells_serial_number_and_world_wide_name() {
    let (mut rig, disk) = with_disk(&fixed().build());
    let details = rig.units_at(HIGH_PORT)[0].details.unwrap();
    assert_eq!(details.serial.unwrap().as_str(), "RP0001");
    assert_eq!(details.name.unwrap().authority(), Authority::Naa);
    works(&mut rig, disk);
    // A stick is not asked.
    let (rig, _) = with_disk(&Script::new().build());
    let details = rig.units_at(HIGH_PORT)[0].details.unwrap();
    assert_eq!((details.serial, details.name), (None, None));
}

/// Hangs in its third read until the bus is reset; meanwhile `change` happens to it.
fn reads_after(change: impl Fn(&Disk)) -> Result<Vec<u8>, BlockError> {
    let device = fixed()
        .on(opcode(0x28).after(2).once(), Action::Hang(Until::BusReset))
        .build();
    let mut rig = Rig::default();
    let disk = rig.disk(HIGH_PORT, device.clone());
    rig.check(disk, 0, 1);
    change(&device);
    rig.read(disk, 0, 512)
}

#[test]
fn a_disk_that_comes_back_from_a_reset_as_it_was_goes_on() {
    assert!(reads_after(|_| {}).is_ok());
}

#[test]
fn a_disk_that_comes_back_with_another_serial_number_is_another_disk() {
    let swapped = reads_after(|device| {
        device.unit(0, |unit| unit.identity[3] = "RP0002".to_owned());
    });
    assert_eq!(swapped, Err(BlockError::Disconnected));
}
