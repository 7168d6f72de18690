//! Power cycles: the rung for disks that nothing gentler brings back, by the port's own switch and by a rail
//! that others share.

use rootport::block::BlockError;
use rootport::block::Lba;
use rootport::block::queue::{DiskId, Operation};
use rootport::policy::Policy;
use rootport::stack::Parting;
use rootport::time::Duration;
use rootport_models::adapter::owned;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::{CacheLoss, LogicalUnit, pattern};
use rootport_models::device::uas::{Fault, Manners, TaskManner, What, on};
use rootport_models::device::{BothScript, Disk, Script, UasScript};
use rootport_models::machine::{Options, Power};

use crate::controller::{self, LINKS, Traits};
use crate::rig::{CALL_LIMIT, HIGH_PORT, OTHER_PORT, Rig, port_for};

const READ: u8 = 0x28;

fn rig(power: Power) -> Rig {
    let options = Options {
        power,
        ..Options::default()
    };
    let traits = Traits {
        port_power_control: power == Power::Port,
        ..controller::usual()
    };
    let mut rig = Rig::new(options, traits);
    rig.host.set_policy(Policy {
        // Every rung is waited for that long: all of them fit into an episode.
        read_write: Duration::from_secs(3),
        bring_up: Duration::from_secs(3),
        ..Policy::DEFAULT
    });
    rig
}

/// A disk that hangs in one of its reads until it has lost its power, on pipes of its own.
fn hanging(pipe: u8) -> Disk {
    let hangs = Action::Hang(Until::PowerCycle);
    let unit = LogicalUnit::disk(4096, 512).write_cache(CacheLoss::PowerCycle);
    let late = opcode(READ).touching(2000..2001).once();
    let script = Script::new().unit(unit).on(late, hangs);
    script.pipes(0, 0x80 | pipe, pipe + 1).build()
}

fn cycles(rig: &Rig) -> usize {
    let log = rig.machine.log();
    let is_one = |line: &&String| line.contains("then CyclePower");
    log.iter().filter(is_one).count()
}

fn submit_read(rig: &mut Rig, disk: DiskId, lba: u64) {
    let buffer = owned(&mut rig.machine.buffer(512, 0));
    let read = Operation::Read(Lba(lba));
    rig.host.submit(disk, read, Some(buffer)).expect("room");
}

#[test]
fn a_disk_that_nothing_else_brings_back_loses_its_power_and_goes_on() {
    for power in [Power::Port, Power::Rails(2)] {
        let mut rig = rig(power);
        let device = hanging(1);
        let disk = rig.disk(HIGH_PORT, device.clone());
        let beside = rig.disk(OTHER_PORT, hanging(3));
        rig.write(disk, 9, &[7; 512]).unwrap();
        let block = rig.within(CALL_LIMIT, |rig| rig.read(disk, 2000, 512));
        assert_eq!(block, Ok(pattern(2000, 512)), "{}", rig.describe());
        assert_eq!(cycles(&rig), 1);
        assert_eq!(device.power_ons().len(), 2, "{power:?}");
        assert_eq!(rig.flush(disk), Err(BlockError::WritesMayBeLost));
        assert_eq!(rig.flush(disk), Ok(()));
        rig.check(beside, 5, 8);
        assert_eq!(rig.flush(beside), Ok(()));
        assert!(rig.machine.all_rails_are_on());
    }
}

/// What a firmware does that answers nothing any more until its power comes back.
fn dead_until_power_on() -> Vec<Fault> {
    let all = [0x00, 0x12, 0x25, READ, 0x9e, 0xa0].into_iter();
    all.map(|opcode| on(opcode, What::Hang).until_power_on())
        .collect()
}

fn deaf() -> Manners {
    Manners {
        abort: TaskManner::Ignores,
        unit_reset: TaskManner::Ignores,
        ..Manners::default()
    }
}

#[test]
fn a_uas_disk_that_nothing_else_brings_back_loses_its_power_and_goes_on() {
    for power in [Power::Port, Power::Rails(2)] {
        for &link in LINKS {
            let mut rig = rig(power);
            let unit = LogicalUnit::disk(4096, 512).write_cache(CacheLoss::PowerCycle);
            let script = UasScript::new().speed(link).unit(unit).manners(deaf());
            let device = script.build();
            let disk = rig.disk(port_for(link), device.clone());
            rig.write(disk, 9, &[7; 512]).unwrap();
            device.change(|device| device.function.faults = dead_until_power_on());
            let block = rig.within(CALL_LIMIT, |rig| rig.read(disk, 2000, 512));
            assert_eq!(block, Ok(pattern(2000, 512)), "{}", rig.describe());
            assert_eq!(cycles(&rig), 1, "{power:?}, {link:?}");
            assert_eq!(rig.units_at(port_for(link))[0].device.driver, "uas");
            assert_eq!(rig.flush(disk), Err(BlockError::WritesMayBeLost));
            assert_eq!(rig.flush(disk), Ok(()));
        }
    }
}

/// It has lost its power before it came to the second reset, so it is still used over UAS.
#[test]
fn a_bridge_with_both_that_loses_its_power_stays_with_uas() {
    for power in [Power::Port, Power::Rails(2)] {
        let mut rig = rig(power);
        let device = BothScript::new().manners(deaf()).build();
        let disk = rig.disk(HIGH_PORT, device.clone());
        device.change(|device| device.function.uas.faults = dead_until_power_on());
        let block = rig.within(CALL_LIMIT, |rig| rig.read(disk, 2000, 512));
        assert_eq!(block, Ok(pattern(2000, 512)), "{}", rig.describe());
        assert_eq!(cycles(&rig), 1, "{power:?}");
        assert_eq!(rig.units_at(HIGH_PORT)[0].usage.to_string(), "uas");
    }
}

#[test]
fn a_clean_neighbour_on_the_rail_goes_along_and_comes_back() {
    let mut rig = rig(Power::Rails(1));
    let disk = rig.disk(HIGH_PORT, hanging(1));
    let beside = rig.disk(OTHER_PORT, hanging(3));
    let block = rig.within(CALL_LIMIT, |rig| rig.read(disk, 2000, 512));
    assert_eq!(block, Ok(pattern(2000, 512)), "{}", rig.describe());
    assert_eq!(cycles(&rig), 1);
    rig.check(beside, 5, 8);
    assert_eq!(rig.flush(beside), Ok(()), "it was clean");
}

#[test]
fn a_rail_that_feeds_a_disk_with_something_to_lose_stays_on() {
    let mut rig = rig(Power::Rails(1));
    let disk = rig.disk(HIGH_PORT, hanging(1));
    let beside = rig.disk(OTHER_PORT, hanging(3));
    rig.write(beside, 9, &[7; 512]).unwrap();
    assert!(
        rig.within(CALL_LIMIT, |rig| rig.read(disk, 2000, 512))
            .is_err()
    );
    assert_eq!(cycles(&rig), 0);
    assert_eq!(rig.flush(beside), Ok(()));
}

/// A brown-out hangs several disks at once.
#[test]
fn rails_that_are_without_power_at_the_same_time_all_get_it_back() {
    let mut rig = rig(Power::Rails(2));
    let disks = [(HIGH_PORT, 1), (OTHER_PORT, 3)].map(|(port, pipe)| {
        let disk = rig.disk(port, hanging(pipe));
        (port, disk)
    });
    for (_, disk) in disks {
        submit_read(&mut rig, disk, 2000);
    }
    rig.run(CALL_LIMIT);
    assert_eq!(cycles(&rig), 2);
    assert!(rig.machine.all_rails_are_on());
    for (_, disk) in disks {
        let completion = rig.host.take_completion().expect("both have ended");
        assert_eq!(completion.result, Ok(()), "{}", rig.describe());
        rig.check(disk, 5, 8);
    }
}

/// The next stage of a boot loader finds its disks with power.
#[test]
fn a_rail_that_is_without_power_when_the_host_stops_gets_it_back() {
    let mut rig = rig(Power::Rails(2));
    let disk = rig.disk(HIGH_PORT, hanging(1));
    submit_read(&mut rig, disk, 2000);
    let is_dark = |rig: &Rig| !rig.machine.all_rails_are_on();
    for _ in 0..10_000 {
        rig.run(Duration::from_millis(10));
        if is_dark(&rig) {
            break;
        }
    }
    assert!(is_dark(&rig));
    let leaving = rig.host.shutdown(Parting::Flush, Duration::from_secs(2));
    assert!(leaving.quiet);
    assert!(!is_dark(&rig));
}
