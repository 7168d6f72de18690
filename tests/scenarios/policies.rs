//! Policies that nobody in his right mind chooses: a call ends all the same, and small limits cost speed and
//! nothing else.

use rootport::block::BlockError;
use rootport::block::queue::DiskId;
use rootport::policy::Policy;
use rootport::time::Duration;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::{LogicalUnit, pattern};
use rootport_models::device::uas::{Manners, TaskManner, What, on};
use rootport_models::device::{Disk, Script, UasScript};

use crate::controller::LINKS;
use crate::rig::{CALL_LIMIT, HIGH_PORT, Rig, disk_at, port_for, with_disk};

fn rig(policy: Policy) -> Rig {
    let mut rig = Rig::default();
    rig.host.set_policy(policy);
    rig
}

#[test]
fn transfers_may_be_limited_to_less_than_a_block_and_are_a_block_long_then() {
    for bytes in [0, 1, 511, 512, 513, 4095, 4097, u32::MAX] {
        let policy = Policy {
            transfer_high: bytes,
            transfer_super: bytes,
            ..Policy::DEFAULT
        };
        for &link in LINKS {
            let mut rig = rig(policy);
            let disk = rig.disk(port_for(link), disk_at(link).build());
            rig.check(disk, 3, 20);
            rig.write(disk, 3, &[7; 5 * 512]).unwrap();
            rig.flush(disk).unwrap();

            let mut rig = rig_with_uas(policy, link);
            let disk = rig.wait_for_disk(port_for(link));
            rig.check(disk, 3, 20);
            rig.write(disk, 3, &[7; 5 * 512]).unwrap();
        }
    }
}

fn rig_with_uas(policy: Policy, link: rootport_models::device::Link) -> Rig {
    let rig = rig(policy);
    rig.plug(port_for(link), UasScript::new().speed(link).build());
    rig
}

#[test]
fn any_depth_is_one_that_the_device_can_have() {
    for depth in [0, 1, 13, 14, 15, u8::MAX] {
        let policy = Policy {
            depth,
            ..Policy::DEFAULT
        };
        for &link in LINKS {
            let mut rig = rig_with_uas(policy, link);
            let disk = rig.wait_for_disk(port_for(link));
            rig.check(disk, 3, 20);
            let uas = rig.host.uas(disk).expect("it is used over UAS");
            // The rig has room for 8 commands, two of which are left to others.
            assert_eq!(uas.depth, depth.clamp(1, 6), "{depth}, {link:?}");
        }
    }
}

/// A deadline in the past is passed at once. With all time there is, a good disk is a good disk.
#[test]
fn deadlines_of_no_time_or_of_all_time_end_every_call() {
    let set: [fn(&mut Policy, Duration); 9] = [
        |policy, time| policy.read_write = time,
        |policy, time| policy.optional = time,
        |policy, time| policy.flush = time,
        |policy, time| policy.bring_up = time,
        |policy, time| policy.readiness = time,
        |policy, time| policy.medium_poll = time,
        |policy, time| policy.reopen = time,
        |policy, time| policy.episode = time,
        |policy, time| policy.task_management = time,
    ];
    for set in set {
        for time in [Duration::ZERO, Duration::from_micros(1), Duration::MAX] {
            let mut policy = Policy::DEFAULT;
            set(&mut policy, time);
            let mut rig = rig(policy);
            rig.plug(HIGH_PORT, Script::new().build());
            rig.run(Duration::from_secs(60));
            let has_time = time == Duration::MAX;
            let Ok(disk) = rig.host.first_disk() else {
                assert!(!has_time, "{policy:?}");
                continue;
            };
            for lba in 0..3 {
                let read = rig.within(CALL_LIMIT, |rig| rig.read(disk, lba, 512));
                let write = rig.within(CALL_LIMIT, |rig| rig.write(disk, lba, &[1; 512]));
                let flush = rig.within(CALL_LIMIT, |rig| rig.flush(disk));
                let all = (read.map(|block| block == pattern(lba, 512)), write, flush);
                assert!(
                    !has_time || all == (Ok(true), Ok(()), Ok(())),
                    "{all:?}, {policy:?}"
                );
            }
        }
    }
}

/// The same of what becomes of a command that hangs on a device that takes no task management function.
#[test]
fn deadlines_of_recovery_of_no_time_or_of_all_time_end_every_call_over_uas() {
    let set: [fn(&mut Policy, Duration); 5] = [
        |policy, time| policy.task_management = time,
        |policy, time| policy.episode = time,
        |policy, time| policy.reopen = time,
        |policy, time| policy.readiness = time,
        |policy, time| policy.uas_window = time,
    ];
    for set in set {
        for time in [Duration::ZERO, Duration::from_micros(1), Duration::MAX] {
            for &link in LINKS {
                let mut policy = Policy::DEFAULT;
                set(&mut policy, time);
                let mut rig = rig(policy);
                let manners = Manners {
                    abort: TaskManner::Ignores,
                    unit_reset: TaskManner::Ignores,
                    ..Manners::default()
                };
                let device = UasScript::new().speed(link).manners(manners).build();
                rig.plug(port_for(link), device.clone());
                rig.run(Duration::from_secs(60));
                let Ok(disk) = rig.host.first_disk() else {
                    continue;
                };
                device.change(|device| {
                    device.function.faults.push(on(0x28, What::Hang).times(1));
                });
                let _any = rig.within(CALL_LIMIT, |rig| rig.read(disk, 3, 512));
                assert!(!device.tasks().is_empty(), "it has hung");
                let _any = rig.within(CALL_LIMIT, |rig| rig.read(disk, 3, 512));
            }
        }
    }
}

/// How many commands a read of a mebibyte took.
fn commands(rig: &mut Rig, device: &Disk, disk: DiskId) -> usize {
    let before = device.count(0x28);
    rig.check(disk, 64, 2048);
    device.count(0x28) - before
}

#[test]
fn the_limit_of_a_disk_that_is_there_can_be_lowered_and_raised_again_up_to_what_it_was_opened_for()
{
    for &link in LINKS {
        let mut rig = Rig::default();
        let device = disk_at(link).build();
        let disk = rig.disk(port_for(link), device.clone());
        let most = rig.geometry(disk).transfer_blocks;
        let usual = commands(&mut rig, &device, disk);
        assert_eq!(usual, 2048_usize.div_ceil(most as usize));
        for (bytes, blocks) in [(64 * 512, 64), (1, 1), (513, 1), (u32::MAX, most)] {
            rig.host.limit_transfers(disk, bytes).unwrap();
            assert_eq!(rig.geometry(disk).transfer_blocks, blocks);
            let expected = 2048_usize.div_ceil(blocks as usize);
            assert_eq!(commands(&mut rig, &device, disk), expected, "{bytes}");
        }
        rig.unplug(port_for(link));
        let gone = rig.host.limit_transfers(disk, 512);
        assert_eq!(gone, Err(BlockError::Disconnected));
    }
}

#[test]
fn a_limit_that_was_chosen_holds_behind_a_reset_and_never_exceeds_what_the_disk_says() {
    let mut unit = LogicalUnit::disk(65536, 512);
    unit.maximum_blocks = 100;
    let hangs = Action::Hang(Until::BusReset);
    let late = opcode(0x28).touching(2000..2001).once();
    let device = Script::new().unit(unit).on(late, hangs).build();
    let (mut rig, disk) = with_disk(&device);
    rig.host.limit_transfers(disk, 200 * 512).unwrap();
    assert_eq!(rig.geometry(disk).transfer_blocks, 100);
    rig.host.limit_transfers(disk, 32 * 512).unwrap();
    rig.within(CALL_LIMIT, |rig| rig.check(disk, 2000, 1));
    assert_eq!(rig.geometry(disk).transfer_blocks, 32);
    assert_eq!(commands(&mut rig, &device, disk), 64);
}
