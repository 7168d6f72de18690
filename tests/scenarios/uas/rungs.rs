//! The rungs of recovery that UAS has of its own: which is tried, how often, and for how long.

use rootport::block::BlockError;
use rootport::policy::Policy;
use rootport::time::Duration;
use rootport_models::device::uas::{Manners, TaskManner, What, on};
use rootport_models::device::{MILLISECOND, Nanoseconds, SECOND, UasDisk, UasScript};

use super::{PATIENCE, READ, WRITE, plugged, plugged_into};
use crate::controller::LINKS;
use crate::rig::Rig;

const FLUSH: u8 = 0x35;

/// 01: ABORT TASK, 08: LOGICAL UNIT RESET.
fn functions(device: &UasDisk) -> Vec<u8> {
    device.tasks().iter().map(|task| task.function).collect()
}

#[test]
fn a_device_that_takes_every_function_and_hangs_again_is_asked_for_each_once_and_has_its_port_reset()
 {
    let knows_no_abort = TaskManner::Refuses(0x04);
    for (abort, hangs) in [(TaskManner::Works, 3), (knows_no_abort, 2)] {
        for &link in LINKS {
            let manners = Manners {
                abort,
                ..Manners::default()
            };
            let fault = on(READ, What::Hang).after(1).times(hangs);
            let script = UasScript::new().manners(manners).fault(fault);
            let (mut rig, disk, device) = plugged(link, script);
            let resets = device.bus_resets().len();
            rig.within(PATIENCE, |rig| rig.check(disk, 3, 1));
            assert_eq!(functions(&device), [0x01, 0x08], "{abort:?}, {link:?}");
            let last = device.tasks()[1].at;
            let later = device.bus_resets();
            let later = &later[resets..];
            assert_eq!(later.len(), 1, "{abort:?}, {link:?}");
            assert!(later[0] > last);
            rig.check(disk, 100, 64);
        }
    }
}

#[test]
fn a_device_that_has_ended_a_command_in_between_is_asked_for_an_abort_again() {
    for &link in LINKS {
        let mut script = UasScript::new();
        for skipped in [1, 2, 4] {
            script = script.fault(on(READ, What::Hang).after(skipped).times(1));
        }
        let (mut rig, disk, device) = plugged(link, script);
        let resets = device.bus_resets().len();
        for lba in 0..6 {
            rig.within(PATIENCE, |rig| rig.check(disk, lba, 1));
        }
        assert_eq!(functions(&device), [0x01; 3], "{link:?}");
        assert_eq!(device.bus_resets().len(), resets, "{link:?}");
    }
}

/// Holds that so many seconds lie between two moments, but for what the wire takes.
fn hold_about(seconds: u64, from: Nanoseconds, to: Nanoseconds) {
    let milliseconds = (to - from) / MILLISECOND;
    let wanted = 1000 * seconds;
    assert!(
        milliseconds.abs_diff(wanted) < 200,
        "{milliseconds} of {wanted}"
    );
}

#[test]
fn every_rung_has_its_time_and_all_of_them_an_episode() {
    for &link in LINKS {
        let manners = Manners {
            abort: TaskManner::Ignores,
            unit_reset: TaskManner::Ignores,
            ..Manners::default()
        };
        let fault = on(READ, What::Hang).after(1).times(1);
        let script = UasScript::new().manners(manners).fault(fault);
        let (mut rig, disk, device) = plugged(link, script);
        let resets = device.bus_resets().len();
        rig.within(PATIENCE, |rig| rig.check(disk, 3, 1));
        let exchanges = device.exchanges();
        let mut reads = exchanges.iter().filter(|one| one.cdb[0] == READ);
        let hung = reads.nth(1).expect("the second read hangs").at;
        let tasks = device.tasks();
        assert_eq!(functions(&device), [0x01, 0x08]);
        let (abort, unit_reset, port_reset) =
            (tasks[0].at, tasks[1].at, device.bus_resets()[resets]);
        hold_about(10, hung, abort);
        hold_about(2, abort, unit_reset);
        hold_about(2, unit_reset, port_reset);
    }
}

/// A device that hangs again behind each rung, and takes none of UAS's own.
#[test]
fn no_rung_is_begun_when_the_time_of_the_episode_is_over() {
    for task_management in [2, 60] {
        for &link in LINKS {
            let manners = Manners {
                abort: TaskManner::Ignores,
                unit_reset: TaskManner::Ignores,
                ..Manners::default()
            };
            let mut rig = Rig::default();
            rig.host.set_policy(Policy {
                task_management: Duration::from_secs(task_management),
                ..Policy::DEFAULT
            });
            let (mut rig, disk, device) =
                plugged_into(rig, link, UasScript::new().manners(manners));
            let before = device.bus_resets().len();
            device.change(|device| {
                for opcode in [0x00, 0x12, 0x25, READ, 0x9e, 0xa0] {
                    device.function.faults.push(on(opcode, What::Hang));
                }
            });
            let began = rig.now();
            let (read, took) = rig.timed(|rig| rig.read(disk, 3, 512));
            assert!(read.is_err());
            assert!(took <= Duration::from_secs(10 + 20 + 2), "{took:?}");
            let late = (began + Duration::from_secs(10)).as_micros() * 1000;
            let limit = late + 20 * SECOND;
            let tasks = device.tasks();
            assert!(tasks.iter().all(|task| task.at <= limit), "{tasks:?}");
            let resets = device.bus_resets();
            assert!(resets.len() > before && resets.iter().all(|at| *at <= limit));
        }
    }
}

/// What has hung before, and was given up at the end of its tries, is another matter.
#[test]
fn a_command_that_hangs_long_after_one_that_was_given_up_has_an_episode_of_its_own() {
    for &link in LINKS {
        let (mut rig, disk, device) = plugged(link, UasScript::new());
        device.change(|device| device.function.faults.push(on(WRITE, What::Hang)));
        let write = rig.write(disk, 3, &[1; 512]);
        assert_eq!(write, Err(BlockError::Timeout), "{}", rig.describe());
        device.change(|device| {
            device.function.faults.clear();
            device.function.faults.push(on(FLUSH, What::Hang).times(1));
        });
        rig.run(Duration::from_secs(60));
        let flush = rig.flush(disk);
        assert_ne!(flush, Err(BlockError::Broken), "{}", rig.describe());
        assert_eq!(rig.flush(disk), Ok(()), "{link:?}");
        rig.check(disk, 3, 8);
    }
}
