//! Arrivals and removals: each told once, in order, by ids that do not come back.

use rootport::stack::HostEvent;
use rootport::time::Duration;
use rootport_models::device::Script;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::LogicalUnit;

use crate::rig::{HIGH_PORT, OTHER_PORT, Rig};

fn events(rig: &mut Rig) -> Vec<HostEvent> {
    std::iter::from_fn(|| rig.host.take_event()).collect()
}

#[test]
fn a_disk_that_is_plugged_in_and_pulled_is_told_of_from_both_ends() {
    let mut rig = Rig::default();
    assert_eq!(events(&mut rig), []);
    let disk = rig.disk(HIGH_PORT, Script::new().build());
    let device = rig.units_at(HIGH_PORT)[0].device.id;
    let arrived = [HostEvent::DeviceArrived(device), HostEvent::DiskReady(disk)];
    assert_eq!(events(&mut rig), arrived);
    assert_eq!(events(&mut rig), [], "once");
    rig.unplug(HIGH_PORT);
    let gone = [HostEvent::DiskGone(disk), HostEvent::DeviceRemoved(device)];
    assert_eq!(events(&mut rig), gone);
    assert_eq!(events(&mut rig), []);
}

#[test]
fn what_takes_the_same_place_is_another_and_both_are_told_of() {
    let mut rig = Rig::default();
    let old = rig.disk(HIGH_PORT, Script::new().build());
    events(&mut rig);
    rig.unplug(HIGH_PORT);
    let new = rig.disk(HIGH_PORT, Script::new().build());
    assert_eq!(new.number(), old.number());
    assert_ne!(new, old);
    let told = events(&mut rig);
    assert_eq!(told.first(), Some(&HostEvent::DiskGone(old)));
    assert_eq!(told.last(), Some(&HostEvent::DiskReady(new)));
    assert_eq!(told.len(), 4);
}

#[test]
fn what_came_and_went_unseen_is_not_told_of() {
    let mut rig = Rig::default();
    rig.disk(HIGH_PORT, Script::new().build());
    rig.unplug(HIGH_PORT);
    assert_eq!(events(&mut rig), []);
}

#[test]
fn a_medium_that_goes_and_comes_is_told_of_and_its_device_stays() {
    let mut rig = Rig::default();
    let card = Script::new().unit(LogicalUnit::stick(4096)).build();
    let disk = rig.disk(HIGH_PORT, card.clone());
    events(&mut rig);
    card.unit(0, LogicalUnit::eject);
    assert!(rig.read(disk, 0, 512).is_err());
    rig.run(Duration::from_secs(3));
    assert_eq!(events(&mut rig), [HostEvent::DiskGone(disk)]);
}

#[test]
fn a_disk_that_is_recovered_was_never_gone() {
    let mut rig = Rig::default();
    let hang = Action::Hang(Until::BusReset);
    let stick = Script::new().on(opcode(0x28).after(2).once(), hang).build();
    let disk = rig.disk(HIGH_PORT, stick);
    let other = rig.disk(OTHER_PORT, Script::new().build());
    events(&mut rig);
    for lba in 0..4 {
        rig.check(disk, lba, 1);
        rig.check(other, lba, 1);
    }
    let told = events(&mut rig);
    let about_disks =
        |event: &HostEvent| matches!(event, HostEvent::DiskGone(_) | HostEvent::DiskReady(_));
    assert!(!told.iter().any(about_disks), "{told:?}");
    assert_eq!(
        told.len(),
        2,
        "the bus has opened the device again: {told:?}"
    );
}
