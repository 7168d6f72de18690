//! Not ready for ever: no medium ends at once, becoming ready within the budget, each with a result
//! of its own.

use crate::rig::{HIGH_PORT, OTHER_PORT, Rig, with_device};
use rootport::block::BlockError;
use rootport::policy::Policy;
use rootport::scsi::bring_up::BringUpError;
use rootport::stack::DiskState;
use rootport::time::Duration;
use rootport_models::device::field::good_stick;
use rootport_models::device::field::readiness::{is_becoming_ready_for_ever, never_has_a_medium};

#[test]
fn no_medium_is_listed_as_empty_after_a_few_questions() {
    let device = never_has_a_medium();
    let (mut rig, units) = with_device(&device);
    assert_eq!(units.len(), 1);
    assert_eq!(units[0].state, DiskState::Empty);
    assert!(rig.age() < Duration::from_secs(1));
    let asked = device.commands().len();
    assert!(asked <= 8, "{:x?}", device.opcodes());
    assert_eq!(rig.host.geometry(units[0].id), Err(BlockError::NoMedium));
    assert_eq!(rig.read(units[0].id, 0, 512), Err(BlockError::NoMedium));
    // No capacity is asked of nothing; from then on it is only looked at, by two commands each time.
    assert_eq!((device.count(0x25), device.count(0x28)), (0, 0));
    rig.run(Duration::from_secs(60));
    let looks = 60 / (Policy::DEFAULT.medium_poll.as_millis() / 1000) as usize;
    let more = device.commands().len() - asked;
    assert!(
        (2 * (looks - 2)..=2 * (looks + 1)).contains(&more),
        "{more}"
    );
    assert_eq!((device.count(0x25), device.count(0x28)), (0, 0));
    assert_eq!(rig.units_at(HIGH_PORT)[0].state, DiskState::Empty);
}

#[test]
fn becoming_ready_for_ever_ends_with_the_budget_and_says_why() {
    let device = is_becoming_ready_for_ever();
    let (rig, units) = with_device(&device);
    let DiskState::Failed(BringUpError::NotReady(sense)) = units[0].state else {
        panic!("{:?}", units[0].state);
    };
    assert_eq!((sense.key.code(), sense.asc, sense.ascq), (2, 0x04, 0x01));
    let took = rig.age();
    let budget = Policy::DEFAULT.readiness;
    assert!(
        took >= budget && took < budget + Duration::from_secs(2),
        "{took:?}"
    );
    // A question and its sense every 100 ms.
    let asked = device.commands().len();
    assert!((100..=420).contains(&asked), "{asked} commands");
    assert_eq!(rig.host.geometry(units[0].id), Err(BlockError::NotReady));
}

#[test]
fn a_disk_that_never_gets_ready_does_not_hold_up_its_neighbour() {
    let mut rig = Rig::default();
    rig.plug(HIGH_PORT, is_becoming_ready_for_ever());
    let disk = rig.within(Duration::from_secs(2), |rig| {
        rig.disk(OTHER_PORT, good_stick())
    });
    rig.check(disk, 100, 16);
}
