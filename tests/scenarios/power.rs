//! Power cycles: the rung for disks that nothing gentler brings back, by the port's own switch and by a rail
//! that others share.

use rootport::block::BlockError;
use rootport::block::Lba;
use rootport::block::queue::{DiskId, Operation};
use rootport::policy::Policy;
use rootport::stack::Parting;
use rootport::time::Duration;
use rootport::usb::PortState;
use rootport_models::adapter::owned;
use rootport_models::device::base::{Answer, ControlTable, Request};
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::{CacheLoss, LogicalUnit, pattern};
use rootport_models::device::uas::{Fault, Manners, TaskManner, What, on};
use rootport_models::device::{BothScript, Disk, SECOND, Script, UasScript};
use rootport_models::machine::{Options, Power};

use crate::controller::{self, LINKS, Traits};
use crate::rig::{CALL_LIMIT, HIGH_PORT, ModelHost, OTHER_PORT, Rig, port_for};

const READ: u8 = 0x28;
const WRITE: u8 = 0x2a;
const READ_CAPACITY: u8 = 0x25;

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
fn hanging_script(pipe: u8) -> Script {
    let hangs = Action::Hang(Until::PowerCycle);
    let unit = LogicalUnit::disk(4096, 512).write_cache(CacheLoss::PowerCycle);
    let late = opcode(READ).touching(2000..2001).once();
    let script = Script::new().unit(unit).on(late, hangs);
    script.pipes(0, 0x80 | pipe, pipe + 1)
}

fn hanging(pipe: u8) -> Disk {
    hanging_script(pipe).build()
}

fn cycles(rig: &Rig) -> usize {
    let log = rig.machine.log();
    let is_one = |line: &&String| line.contains("then CyclePower");
    log.iter().filter(is_one).count()
}

fn is_dark(host: &ModelHost) -> bool {
    let mut ports = host.bus().ports();
    ports.any(|port| matches!(port.state(), PortState::Unpowered(_)))
}

fn submit_read(rig: &mut Rig, disk: DiskId, lba: u64) {
    let buffer = owned(&mut rig.machine.buffer(512, 0));
    let read = Operation::Read(Lba(lba));
    rig.host.submit(disk, read, Some(buffer)).expect("room");
}

#[test]
fn a_disk_that_nothing_else_brings_back_loses_its_power_and_goes_on() {
    for (power, &link) in [Power::Port, Power::Rails(2)]
        .into_iter()
        .flat_map(|power| LINKS.iter().map(move |link| (power, link)))
    {
        let mut rig = rig(power);
        let device = hanging_script(1).speed(link).build();
        let disk = rig.disk(port_for(link), device.clone());
        let beside = rig.disk(OTHER_PORT, hanging(3));
        rig.write(disk, 9, &[7; 512]).unwrap();
        let block = rig.within(CALL_LIMIT, |rig| rig.read(disk, 2000, 512));
        assert_eq!(block, Ok(pattern(2000, 512)), "{}", rig.describe());
        assert_eq!(cycles(&rig), 1);
        assert_eq!(device.power_ons().len(), 2, "{power:?}, {link:?}");
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

/// It takes ABORT TASK well, but needs it too often; and does not survive the reset behind which UAS is left.
#[test]
fn a_bridge_that_is_lost_in_the_reset_that_leaves_uas_loses_its_power_and_goes_on() {
    for power in [Power::Port, Power::Rails(2)] {
        let mut rig = rig(power);
        let device = BothScript::new().build();
        let disk = rig.disk(HIGH_PORT, device.clone());
        let hang_once = || {
            let hangs = on(READ, What::Hang).times(1);
            device.change(|device| device.function.uas.faults = vec![hangs]);
        };
        for lba in 1..Policy::DEFAULT.uas_aborts {
            hang_once();
            rig.within(CALL_LIMIT, |rig| rig.check(disk, lba.into(), 1));
        }
        hang_once();
        device.change(|device| device.controls.always(Request::ANY, Answer::Silent));
        submit_read(&mut rig, disk, 2000);
        assert!(
            rig.host.poll_until(CALL_LIMIT, is_dark),
            "{}",
            rig.describe()
        );
        device.change(|device| device.controls = ControlTable::default());
        rig.run(CALL_LIMIT);
        let completion = rig.host.take_completion().expect("it has ended");
        assert_eq!(completion.result, Ok(()), "{power:?}: {}", rig.describe());
        assert_eq!(cycles(&rig), 1, "{power:?}");
        let usage = rig.units_at(HIGH_PORT)[0].usage.to_string();
        assert_eq!(usage, "bot (fell back: 5 aborts in 600 s)");
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

/// What it reads takes a second, so that there is always something under way.
#[test]
fn a_request_of_a_neighbour_on_the_rail_that_is_under_way_ends_with_the_reason_and_no_other_does() {
    let mut rig = rig(Power::Rails(1));
    let disk = rig.disk(HIGH_PORT, hanging(1));
    let slow = hanging_script(3).on(opcode(READ).after(1), Action::Delay(SECOND));
    let beside = rig.disk(OTHER_PORT, slow.build());
    submit_read(&mut rig, disk, 2000);
    submit_read(&mut rig, beside, 0);
    let (mut own, mut neighbour, mut lba) = (None, Vec::new(), 0);
    while rig.age() < Duration::from_secs(60) {
        rig.run(Duration::from_millis(50));
        let Some(completion) = rig.host.take_completion() else {
            continue;
        };
        if completion.disk == disk {
            own = Some(completion.result);
            continue;
        }
        if completion.result.is_ok() {
            let buffer = completion.buffer.expect("it comes back");
            assert!(buffer.as_slice() == pattern(lba, 512), "block {lba}");
        }
        neighbour.push(completion.result);
        lba += 1;
        submit_read(&mut rig, beside, lba);
    }
    assert_eq!(own, Some(Ok(())), "{}", rig.describe());
    assert_eq!(cycles(&rig), 1);
    let failed: Vec<_> = neighbour.iter().filter(|it| it.is_err()).collect();
    assert_eq!(failed, [&Err(BlockError::Reset)]);
    assert!(neighbour.len() > 20);
    rig.run(Duration::from_secs(5));
    assert_eq!(rig.flush(beside), Ok(()), "it was clean");
}

/// A device that answers nothing is tried three times, and costs its neighbour nothing.
#[test]
fn a_device_that_cannot_be_enumerated_never_has_its_power_cycled() {
    for power in [Power::Port, Power::Rails(1)] {
        let mut rig = rig(power);
        let neighbour = hanging(1);
        let beside = rig.disk(HIGH_PORT, neighbour.clone());
        let deaf = Script::new().control(Request::ANY, Answer::Silent).build();
        let port = rig.settle(OTHER_PORT, deaf.clone());
        assert!(port.is_empty());
        rig.run(CALL_LIMIT);
        let state = rig.port_state(OTHER_PORT);
        assert!(matches!(state, PortState::Failed(_)), "{state:?}");
        assert!(deaf.bus_resets().len() >= 3);
        assert_eq!(deaf.power_ons().len(), 1, "{power:?}");
        assert_eq!(neighbour.power_ons().len(), 1, "{power:?}");
        rig.check(beside, 5, 8);
    }
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

/// What takes a disk's place while its port has no power.
type Change = fn(Script) -> Script;
/// What another disk is like in few words, and what makes it so in its script and in its unit.
type Twin = (&'static str, Change, fn(&mut LogicalUnit));

/// A fixed disk whose pages name it.
fn named(change: Change, unit: impl FnOnce(&mut LogicalUnit)) -> Script {
    let mut disk = LogicalUnit::disk(4096, 512).write_cache(CacheLoss::PowerCycle);
    unit(&mut disk);
    change(Script::new().unit(disk))
}

/// A write hangs until the power is gone, and `second` is in the port when that comes back: how the write
/// ends. No port sees such a swap.
fn write_over_a_swap(power: Power, second: &Disk) -> Result<(), BlockError> {
    let mut rig = rig(power);
    let late = opcode(WRITE).touching(2000..2001);
    let first = named(|script| script, |_| {}).on(late, Action::Hang(Until::PowerCycle));
    let disk = rig.disk(HIGH_PORT, first.build());
    let buffer = owned(&mut rig.machine.buffer(512, 0));
    let write = Operation::Write(Lba(2000));
    rig.host.submit(disk, write, Some(buffer)).expect("room");
    assert!(rig.host.poll_until(CALL_LIMIT, is_dark));
    drop(rig.machine.unplug(0, HIGH_PORT).expect("it is still in"));
    rig.plug(HIGH_PORT, second.clone());
    rig.run(CALL_LIMIT);
    assert_eq!(cycles(&rig), 1);
    rig.host.take_completion().expect("it has ended").result
}

#[test]
fn a_disk_that_proves_to_be_the_same_gets_the_write_that_its_power_was_cycled_for() {
    for power in [Power::Port, Power::Rails(2)] {
        let same = named(|script| script, |_| {}).build();
        assert_eq!(write_over_a_swap(power, &same), Ok(()), "{power:?}");
        assert_eq!(same.count(WRITE), 1);
    }
}

#[test]
fn a_twin_that_is_plugged_in_while_the_power_is_off_gets_none_of_its_writes() {
    const SERIAL_STRING: Request = Request {
        value: Some(0x0303),
        ..Request::of(0x80, 6)
    };
    let twins: [Twin; 7] = [
        (
            "another serial number",
            |script| script.strings("rootport", "Model disk", "RP0002"),
            |_| {},
        ),
        (
            "a serial number that cannot be read now",
            |script| script.control(SERIAL_STRING, Answer::Stall),
            |_| {},
        ),
        ("another release", |script| script.release(0x0101), |_| {}),
        (
            "another INQUIRY",
            |script| script,
            |unit| unit.identity[2] = "1.1".into(),
        ),
        (
            "another serial number of the unit",
            |script| script,
            |unit| unit.identity[3] = "RP0002".into(),
        ),
        (
            "no pages",
            |script| script,
            |unit| unit.has_vital_pages = false,
        ),
        ("another size", |script| script, |unit| unit.blocks = 4000),
    ];
    for power in [Power::Port, Power::Rails(2)] {
        for (what, change, unit) in twins {
            let twin = named(change, unit).build();
            let result = write_over_a_swap(power, &twin);
            assert_eq!(result, Err(BlockError::Disconnected), "{what}, {power:?}");
            assert_eq!(twin.count(WRITE), 0, "{what}, {power:?}");
            assert!(twin.count(READ_CAPACITY) > 0, "it is used, as another disk");
        }
    }
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
