//! Whether a device is used over UAS or over Bulk-Only, and how it gets from one to the other.

use crate::controller::{self, Faults};
use crate::rig::{FAST_PORT, FASTEST, HIGH_PORT, OTHER_PORT, Rig};
use rootport::block::queue::DiskId;
use rootport::block::{BlockError, Lba, Stored, WriteCache, WriteOptions};
use rootport::policy::{Policy, UasFallback, UasUse};
use rootport::time::Duration;
use rootport_models::device::scsi::{CacheLoss, Forced, LogicalUnit};
use rootport_models::device::uas::{Manners, TaskManner, What, on};
use rootport_models::device::{BothDisk, BothScript, Link, Script, UasScript};
use rootport_models::machine::Options;

const READ: u8 = 0x28;
const WRITE: u8 = 0x2a;

/// A command's deadline, an episode, and the readiness of a disk that starts anew.
const PATIENCE: Duration = Duration::from_secs(10 + 20 + 20);

fn plugged(script: BothScript) -> (Rig, DiskId, BothDisk) {
    plugged_into(Rig::default(), script)
}

fn plugged_into(mut rig: Rig, script: BothScript) -> (Rig, DiskId, BothDisk) {
    let device = script.build();
    let disk = rig.disk(HIGH_PORT, device.clone());
    (rig, disk, device)
}

fn usage(rig: &Rig, port: usize) -> String {
    let unit = &rig.units_at(port)[0];
    let usage = unit.usage.to_string();
    assert!(usage.starts_with(unit.device.driver), "{usage}");
    usage
}

/// A bridge that takes no task management function.
fn hopeless() -> Manners {
    Manners {
        abort: TaskManner::Ignores,
        unit_reset: TaskManner::Ignores,
        ..Manners::default()
    }
}

#[test]
fn a_bridge_with_both_is_used_over_uas() {
    let (mut rig, disk, device) = plugged(BothScript::new());
    assert_eq!(usage(&rig, HIGH_PORT), "uas");
    rig.check(disk, 0, 1024);
    assert_eq!(device.commands().1, 0, "nothing over Bulk-Only");
}

#[test]
fn a_bridge_that_the_table_or_the_string_names_is_used_over_bulk_only() {
    let named = BothScript::new().ids(0x2537, 0x1068);
    let (mut rig, disk, device) = plugged(named);
    assert_eq!(usage(&rig, HIGH_PORT), "bot (quirk u)");
    rig.check(disk, 0, 1024);
    assert_eq!(device.commands().0, 0, "nothing over UAS");
    assert!(
        rig.machine
            .log()
            .iter()
            .any(|line| line.contains("2537:1068: bot (quirk u)"))
    );
    for (string, expected) in [("1209:0002:u", "bot (quirk u)"), ("1209:0003:u", "uas")] {
        let mut rig = Rig::default();
        rig.host.set_quirks(string);
        let (rig, ..) = plugged_into(rig, BothScript::new());
        assert_eq!(usage(&rig, HIGH_PORT), expected);
    }
    let mut rig = Rig::default();
    rig.host.set_quirks("2537:1068:");
    let (rig, ..) = plugged_into(rig, BothScript::new().ids(0x2537, 0x1068));
    assert_eq!(
        usage(&rig, HIGH_PORT),
        "uas",
        "the string takes the letter away"
    );
}

#[test]
fn an_asmedia_of_unknown_kind_is_used_over_bulk_only_and_one_without_draw_over_uas() {
    let asmedia = |power| BothScript::new().ids(0x174c, 0x55aa).max_power(power);
    let (rig, ..) = plugged(asmedia(36));
    assert_eq!(usage(&rig, HIGH_PORT), "bot (an ASMedia of unknown kind)");
    let (rig, ..) = plugged(asmedia(0));
    assert_eq!(usage(&rig, HIGH_PORT), "uas");
}

/// Chips that ids alone do not tell apart, or that one release of an id is: each with its neighbour.
#[test]
fn bridges_that_fail_over_uas_are_used_over_bulk_only_and_their_neighbours_are_not() {
    // Hiksemi MD202 by its strings, VIA VL817, an Apricorn dongle that answers in Bulk-Only words.
    let hiksemi = |product| {
        let bridge = BothScript::new().ids(0x0bda, 0x9210);
        bridge.names("HIKSEMI", product)
    };
    let via = |release| BothScript::new().ids(0x2109, 0x0715).release(release);
    let apricorn = |release| BothScript::new().ids(0x0984, 0x0301).release(release);
    for (named, neighbour) in [
        (hiksemi("MD202"), hiksemi("MD203")),
        (via(0x9999), via(0x0336)),
        (apricorn(0x0128), apricorn(0x0129)),
    ] {
        let (mut rig, disk, device) = plugged(named);
        assert_eq!(usage(&rig, HIGH_PORT), "bot (quirk u)");
        rig.check(disk, 0, 64);
        assert_eq!(device.commands().0, 0, "nothing over UAS");
        let (mut rig, disk, device) = plugged(neighbour);
        assert_eq!(usage(&rig, HIGH_PORT), "uas");
        rig.check(disk, 0, 64);
        assert_eq!(device.commands().1, 0, "nothing over Bulk-Only");
    }
}

/// ASM1053 and ASM1051, which share an id: 16 streams or 32.
#[test]
fn of_two_asmedias_at_superspeed_one_gets_short_commands_and_the_other_no_uas() {
    if !FASTEST.is_super() {
        return;
    }
    for (exponent, expected, blocks) in
        [(4, "uas", Some(240)), (5, "bot (perhaps an ASM1051)", None)]
    {
        let bridge = BothScript::new().speed(FASTEST).ids(0x174c, 0x55aa);
        let device = bridge.max_power(36).streams(exponent).build();
        let mut rig = Rig::default();
        let disk = rig.disk(FAST_PORT, device.clone());
        assert_eq!(usage(&rig, FAST_PORT), expected);
        rig.check(disk, 0, 4096);
        let longest = device.change(|device| {
            let exchanges = device.function.uas.exchanges.iter();
            let reads = exchanges.filter(|one| one.cdb[0] == READ);
            let blocks = reads.map(|one| u16::from_be_bytes([one.cdb[7], one.cdb[8]]));
            blocks.max()
        });
        assert_eq!(longest, blocks, "{expected}");
    }
}

/// A bridge that has no streams at SuperSpeed is moved to a port where none are needed, and back.
#[test]
fn whether_uas_is_used_is_decided_again_at_another_speed() {
    if !FASTEST.is_super() {
        return;
    }
    let mut rig = Rig::default();
    for (port, link, expected) in [
        (FAST_PORT, FASTEST, "bot"),
        (HIGH_PORT, Link::High, "uas"),
        (FAST_PORT, FASTEST, "bot"),
    ] {
        let device = BothScript::new().streams(0).speed(link).build();
        let disk = rig.disk(port, device.clone());
        let used = usage(&rig, port);
        assert!(used.starts_with(expected), "{link:?}: {used}");
        rig.check(disk, 0, 64);
        rig.unplug(port);
    }
}

#[test]
fn where_policy_says_so_no_device_is_used_over_uas() {
    let mut rig = Rig::default();
    rig.host.set_policy(Policy {
        uas: UasUse::Never,
        ..Policy::DEFAULT
    });
    let (mut rig, disk, device) = plugged_into(rig, BothScript::new());
    assert_eq!(usage(&rig, HIGH_PORT), "bot (policy)");
    rig.check(disk, 0, 64);
    assert_eq!(device.commands().0, 0);
}

#[test]
fn a_bridge_that_refuses_the_uas_setting_is_opened_again_over_bulk_only() {
    let (mut rig, disk, device) = plugged(BothScript::new().refuses_uas());
    assert_eq!(
        usage(&rig, HIGH_PORT),
        "bot (uas not opened: the device refuses it)"
    );
    rig.check(disk, 0, 64);
    assert_eq!(device.commands().0, 0);
    assert!(
        rig.age() < Duration::from_secs(5),
        "without waiting for anything"
    );
}

#[test]
fn two_resets_in_a_minute_are_the_end_of_uas_and_cost_no_request() {
    let script = BothScript::new()
        .manners(hopeless())
        .fault(on(WRITE, What::Hang));
    let (mut rig, disk, device) = plugged(script);
    assert_eq!(usage(&rig, HIGH_PORT), "uas");
    rig.check(disk, 0, 8);
    let written = rig.within(PATIENCE, |rig| rig.write(disk, 9, &[7; 512]));
    assert_eq!(written, Ok(()));
    assert_eq!(device.block(9), [7; 512]);
    assert_eq!(usage(&rig, HIGH_PORT), "bot (fell back: 2 resets in 60 s)");
    let log = rig.machine.log();
    let told = |line: &&String| line.contains("bot (fell back: 2 resets in 60 s)");
    assert_eq!(log.iter().filter(told).count(), 1);
    let flushed = rig.flush(disk);
    assert!(
        matches!(flushed, Ok(()) | Err(BlockError::WritesMayBeLost)),
        "{flushed:?}"
    );
    rig.check(disk, 100, 64);
}

#[test]
fn one_reset_is_forgiven_and_forgotten_after_a_minute() {
    let script = BothScript::new().manners(hopeless());
    let (mut rig, disk, device) = plugged(script);
    for _ in 0..3 {
        device.change(|device| {
            device.function.uas.faults = vec![on(READ, What::Hang).times(1)];
        });
        rig.within(PATIENCE, |rig| rig.check(disk, 0, 1));
        assert_eq!(usage(&rig, HIGH_PORT), "uas");
        rig.run(Duration::from_secs(61));
    }
    assert_eq!(device.commands().1, 0);
}

#[test]
fn a_device_that_fell_back_and_was_pulled_is_used_over_uas_again() {
    let script = BothScript::new().fault(on(READ, What::Hang).after(1).times(2));
    let (mut rig, disk, device) = plugged(script.manners(hopeless()));
    rig.check(disk, 0, 1);
    assert_eq!(usage(&rig, HIGH_PORT), "bot (fell back: 2 resets in 60 s)");
    rig.unplug(HIGH_PORT);
    let disk = rig.disk(HIGH_PORT, device);
    assert_eq!(usage(&rig, HIGH_PORT), "uas");
    rig.check(disk, 0, 64);
}

#[test]
fn the_disk_beside_it_goes_on_while_a_bridge_falls_back() {
    let script = BothScript::new()
        .manners(hopeless())
        .fault(on(READ, What::Hang).after(1));
    let (mut rig, disk, _) = plugged(script);
    let neighbour = rig.disk(OTHER_PORT, Script::new().build());
    rig.within(PATIENCE, |rig| rig.check(disk, 0, 1));
    assert_eq!(usage(&rig, HIGH_PORT), "bot (fell back: 2 resets in 60 s)");
    assert_eq!(usage(&rig, OTHER_PORT), "bot");
    rig.check(neighbour, 0, 64);
}

/// A bridge that takes ABORT TASK, or LOGICAL UNIT RESET, and hangs in every tenth read all the same.
#[test]
fn a_bridge_that_hangs_often_falls_back_however_well_it_takes_what_helps() {
    for abort in [TaskManner::Works, TaskManner::Refuses(0x04)] {
        let manners = Manners {
            abort,
            ..Manners::default()
        };
        let (mut rig, disk, device) = plugged(BothScript::new().manners(manners));
        let mut reads = 0;
        while usage(&rig, HIGH_PORT) == "uas" {
            if reads % 10 == 0 {
                device.change(|device| {
                    let hangs = on(READ, What::Hang).after(9).times(1);
                    device.function.uas.faults = vec![hangs];
                });
            }
            rig.within(PATIENCE, |rig| rig.check(disk, reads, 1));
            reads += 1;
            assert!(reads <= 50, "{abort:?}: {}", rig.describe());
        }
        let fell_back = "bot (fell back: 5 aborts in 600 s)";
        assert_eq!(usage(&rig, HIGH_PORT), fell_back, "{abort:?}");
        assert_eq!(reads, 50, "{abort:?}");
        rig.check(disk, 0, 64);
    }
}

#[test]
fn a_bridge_that_hangs_now_and_then_stays_with_uas() {
    let (mut rig, disk, device) = plugged(BothScript::new());
    for _ in 0..8 {
        device.change(|device| {
            device.function.uas.faults = vec![on(READ, What::Hang).times(1)];
        });
        rig.within(PATIENCE, |rig| rig.check(disk, 0, 1));
        rig.run(Duration::from_secs(190));
    }
    assert_eq!(usage(&rig, HIGH_PORT), "uas");
    assert_eq!(device.commands().1, 0);
}

/// UAS's failures are blamed on the controller.
fn blaming_the_controller() -> Policy {
    Policy {
        uas_fallback: UasFallback::UntilRestart,
        uas_window: Duration::MAX,
        ..Policy::DEFAULT
    }
}

/// How often a controller was started again for a device's sake.
fn restarts(rig: &Rig) -> usize {
    let log = rig.machine.log();
    let is_one = |line: &&String| line.contains("then RestartController");
    log.iter().filter(is_one).count()
}

/// Data in of the bridge over UAS, which the controller loses at these transfers.
fn losing(counts: &[u64]) -> Rig {
    let mut faults = Faults::none();
    faults.lost_endpoints = counts.iter().map(|count| (0x83, *count)).collect();
    Rig::faulty(Options::default(), controller::usual(), faults)
}

/// Reads blocks one by one until `done`, all of them right.
fn read_until(rig: &mut Rig, disk: DiskId, done: impl Fn(&Rig) -> bool) {
    for lba in 0..300 {
        if done(rig) {
            return;
        }
        rig.within(PATIENCE, |rig| rig.check(disk, lba, 1));
    }
    panic!("{}", rig.describe());
}

#[test]
fn where_the_device_is_blamed_uas_is_left_before_its_neighbours_are_disturbed() {
    let mut rig = losing(&[40]);
    let disk = rig.disk(HIGH_PORT, BothScript::new().build());
    let neighbour = rig.disk(OTHER_PORT, Script::new().pipes(0, 0x89, 0x0a).build());
    read_until(&mut rig, disk, |rig| usage(rig, HIGH_PORT) != "uas");
    assert_eq!(usage(&rig, HIGH_PORT), "bot (fell back: 2 resets in 60 s)");
    assert_eq!(restarts(&rig), 0);
    rig.check(disk, 0, 64);
    rig.check(neighbour, 0, 64);
}

#[test]
fn where_the_controller_is_blamed_it_is_started_again_first_and_uas_is_left_the_second_time() {
    let mut rig = losing(&[40, 80]);
    rig.host.set_policy(blaming_the_controller());
    let disk = rig.disk(HIGH_PORT, BothScript::new().build());
    let neighbour = rig.disk(OTHER_PORT, Script::new().pipes(0, 0x89, 0x0a).build());
    read_until(&mut rig, disk, |rig| restarts(rig) == 1);
    assert_eq!(usage(&rig, HIGH_PORT), "uas");
    rig.check(disk, 0, 1);
    // More than a minute later: it is not forgotten.
    rig.run(Duration::from_secs(100));
    read_until(&mut rig, disk, |rig| usage(rig, HIGH_PORT) != "uas");
    assert_eq!(usage(&rig, HIGH_PORT), "bot (fell back: 2 resets)");
    rig.check(disk, 0, 64);
    rig.check(neighbour, 0, 64);
}

#[test]
fn where_the_controller_is_blamed_uas_stays_left_after_an_unplug_and_for_every_device_on_it() {
    let script = BothScript::new().fault(on(READ, What::Hang).after(1).times(2));
    let mut rig = Rig::default();
    rig.host.set_policy(blaming_the_controller());
    let (mut rig, disk, device) = plugged_into(rig, script.manners(hopeless()));
    rig.within(PATIENCE, |rig| rig.check(disk, 0, 1));
    device.change(|device| {
        device.function.uas.faults = vec![on(READ, What::Hang).times(1)];
    });
    rig.within(PATIENCE, |rig| rig.check(disk, 0, 1));
    let fell_back = "bot (fell back: 2 resets)";
    assert_eq!(usage(&rig, HIGH_PORT), fell_back);
    for _ in 0..3 {
        rig.unplug(HIGH_PORT);
        let disk = rig.disk(HIGH_PORT, device.clone());
        assert_eq!(usage(&rig, HIGH_PORT), fell_back);
        rig.check(disk, 0, 64);
    }
    let other = rig.disk(OTHER_PORT, BothScript::new().build());
    assert_eq!(usage(&rig, OTHER_PORT), fell_back);
    rig.check(other, 0, 64);
    // One that can do nothing else is better used so than not at all.
    rig.unplug(OTHER_PORT);
    let other = rig.disk(OTHER_PORT, UasScript::new().build());
    assert_eq!(usage(&rig, OTHER_PORT), "uas");
    rig.check(other, 0, 64);
}

#[test]
fn a_bridge_that_cannot_be_opened_over_uas_says_nothing_about_its_controller() {
    let mut rig = Rig::default();
    rig.host.set_policy(blaming_the_controller());
    let (mut rig, ..) = plugged_into(rig, BothScript::new().refuses_uas());
    assert_eq!(
        usage(&rig, HIGH_PORT),
        "bot (uas not opened: the device refuses it)"
    );
    let other = rig.disk(OTHER_PORT, BothScript::new().build());
    assert_eq!(usage(&rig, OTHER_PORT), "uas");
    rig.check(other, 0, 64);
}

/// Over UAS it is believed what it says of its cache; over Bulk-Only nobody's word is taken for that.
#[test]
fn a_bridge_that_fell_back_is_asked_and_believed_no_more_than_any_bulk_only_disk() {
    let unit = LogicalUnit::disk(16_384, 512).write_cache(CacheLoss::PowerCycle);
    let script = BothScript::new()
        .unit(unit.with(|unit| unit.forced = Forced::Ignored))
        .manners(hopeless())
        .fault(on(WRITE, What::Hang));
    let (mut rig, disk, device) = plugged(script);
    assert_eq!(rig.geometry(disk).cache, WriteCache::WriteBack);
    rig.within(PATIENCE, |rig| rig.write(disk, 0, &[1; 512]))
        .unwrap();
    assert_eq!(usage(&rig, HIGH_PORT), "bot (fell back: 2 resets in 60 s)");
    assert_eq!(rig.geometry(disk).cache, WriteCache::Unknown);
    // The resets may have cost it a write.
    rig.flush(disk).ok();
    let stored = WriteOptions {
        stored: Stored::OnMedium,
    };
    let written = rig.host.disk(disk).write_with(Lba(100), &[7; 512], stored);
    assert_eq!(written, Ok(()));
    assert_eq!(device.durable_block(100), [7; 512]);
}
