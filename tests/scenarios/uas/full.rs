//! Devices that have no room for a command, or keep their unit for another host: what they say is no sense
//! data, and is not forgotten on the way.

use rootport::block::BlockError;
use rootport::time::Duration;
use rootport_models::device::uas::{Manners, What, on};
use rootport_models::device::{SECOND, UasDisk, UasScript};

use super::{DEPTH, READ, plugged};
use crate::controller::LINKS;

const BUSY: u8 = 0x08;
const RESERVATION_CONFLICT: u8 = 0x18;
const TASK_SET_FULL: u8 = 0x28;

fn reads(device: &UasDisk) -> Vec<u64> {
    let exchanges = device.exchanges();
    let reads = exchanges.iter().filter(|one| one.cdb[0] == READ);
    reads.map(|one| one.at).collect()
}

#[test]
fn a_command_that_the_device_has_no_room_for_is_sent_again_after_a_pause() {
    for status in [BUSY, TASK_SET_FULL] {
        for &link in LINKS {
            let fault = on(READ, What::Status(status)).after(1).times(30);
            let (mut rig, disk, device) = plugged(link, UasScript::new().fault(fault));
            let ((), took) = rig.timed(|rig| rig.check(disk, 3, 1));
            assert_eq!(took.as_millis() / 100, 30, "{status:#04x}, {link:?}");
            let reads = reads(&device);
            let pauses = reads[1..].windows(2).map(|pair| pair[1] - pair[0]);
            assert!(pauses.clone().all(|pause| pause >= SECOND / 10));
            assert_eq!(pauses.count(), 30);
            assert!(device.tasks().is_empty());
            rig.check(disk, 0, 4096);
        }
    }
}

#[test]
fn a_device_that_never_has_room_is_said_to_be_full_when_the_command_s_time_is_over() {
    for status in [BUSY, TASK_SET_FULL] {
        for &link in LINKS {
            let (mut rig, disk, device) = plugged(link, UasScript::new());
            device.change(|device| {
                let fault = on(READ, What::Status(status));
                device.function.faults.push(fault);
            });
            let (read, took) = rig.timed(|rig| rig.read(disk, 3, 512));
            assert_eq!(read, Err(BlockError::DeviceBusy), "{status:#04x}, {link:?}");
            assert!(took >= Duration::from_secs(9), "{took:?}");
            assert!(took <= Duration::from_secs(10), "{took:?}");
            assert!(device.tasks().is_empty());
            device.change(|device| device.function.faults.clear());
            rig.check(disk, 3, 1);
        }
    }
}

#[test]
fn a_full_device_costs_only_those_commands_that_it_has_no_room_for() {
    use super::submit;
    use rootport::block::Lba;
    use rootport::block::queue::Operation;
    for &link in LINKS {
        let fault = on(READ, What::Status(BUSY)).after(1).times(5);
        let (mut rig, disk, device) = plugged(link, UasScript::new().fault(fault));
        submit(&mut rig, disk, Operation::Read(Lba(0)), 0);
        rig.run(Duration::from_millis(50));
        let write = submit(&mut rig, disk, Operation::Write(Lba(64)), 7);
        rig.run(Duration::from_millis(50));
        let first = rig.host.take_completion().expect("the write has ended");
        assert_eq!((first.id, first.result), (write, Ok(())));
        assert_eq!(device.block(64), [7; 512]);
        rig.run(Duration::from_secs(1));
        assert_eq!(rig.host.take_completion().unwrap().result, Ok(()));
    }
}

#[test]
fn a_unit_that_is_reserved_for_another_host_is_said_to_be_and_not_asked_again() {
    for &link in LINKS {
        let (mut rig, disk, device) = plugged(link, UasScript::new());
        device.change(|device| {
            let fault = on(READ, What::Status(RESERVATION_CONFLICT));
            device.function.faults.push(fault);
        });
        let before = reads(&device).len();
        assert_eq!(
            rig.read(disk, 3, 512),
            Err(BlockError::Reserved),
            "{link:?}"
        );
        assert_eq!(reads(&device).len(), before + 1, "{link:?}");
        let told = BlockError::Reserved.to_string();
        assert_eq!(told, "the disk is reserved for another host");
        device.change(|device| device.function.faults.clear());
        rig.check(disk, 3, 1);
    }
}

#[test]
fn a_device_that_was_full_for_a_while_is_given_as_many_commands_as_before_in_the_end() {
    for &link in LINKS {
        let manners = Manners {
            room: 3,
            ..Manners::default()
        };
        let (mut rig, disk, device) = plugged(link, UasScript::new().manners(manners));
        rig.check(disk, 0, 16_384);
        device.change(|device| {
            device.function.manners.room = usize::MAX;
            device.function.exchanges.clear();
        });
        rig.check(disk, 0, 16_384);
        assert!((1..=3).contains(&device.deepest()), "{link:?}");
        for lba in 0..512 * (DEPTH as u64 - 1) {
            rig.check(disk, lba, 1);
        }
        rig.check(disk, 0, 16_384);
        assert_eq!(device.deepest(), DEPTH, "{link:?}");
    }
}
