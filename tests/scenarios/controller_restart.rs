//! A controller that looks well and has lost an endpoint: a reset of the port does not help, a start of
//! the controller does. What that costs the disk, and the disks beside it.

use rootport::block::queue::{DiskId, Operation};
use rootport::block::{BlockError, Lba};
use rootport::policy::Policy;
use rootport::time::Duration;
use rootport::usb::ControllerState;
use rootport_models::adapter::owned;
use rootport_models::device::bot::{Action, opcode};
use rootport_models::device::scsi::{CacheLoss, LogicalUnit, pattern};
use rootport_models::device::{Disk, Link, Script, UasScript};
use rootport_models::machine::Options;

use crate::controller::{self, Faults, LINKS};
use crate::rig::{CALL_LIMIT, OTHER_PORT, Rig, port_for};

/// Pipes of the UAS disk: status, data in.
const STATUS: u8 = 0x82;
const DATA_IN: u8 = 0x83;
/// Endpoint 0, of any device.
const CONTROL: u8 = 0;
/// Bulk IN of a Bulk-Only disk.
const BULK_IN: u8 = 0x81;

/// More transfers than any bring-up makes on a pipe.
const LATER: u64 = 40;

fn rig(lost: &[(u8, u64)]) -> Rig {
    let mut faults = Faults::none();
    faults.lost_endpoints = lost.to_vec();
    Rig::faulty(Options::default(), controller::usual(), faults)
}

/// How often a controller was started again for a device's sake.
fn restarts(rig: &Rig) -> usize {
    let log = rig.machine.log();
    let is_one = |line: &&String| line.contains("then RestartController");
    log.iter().filter(is_one).count()
}

/// A disk beside, on pipes of its own, whose cache a reset of its bus loses.
fn neighbour() -> Disk {
    let unit = LogicalUnit::disk(65536, 512).write_cache(CacheLoss::BusReset);
    Script::new().pipes(0, 0x85, 0x06).unit(unit).build()
}

/// Reads until the controller was started again, and some blocks more: all are right.
fn read_through_a_restart(rig: &mut Rig, disk: DiskId) {
    let mut more = 4;
    for lba in 0..200 {
        let block = rig.within(CALL_LIMIT, |rig| rig.read(disk, lba, 512));
        assert_eq!(block, Ok(pattern(lba, 512)), "{}", rig.describe());
        more -= u32::from(restarts(rig) != 0);
        if more == 0 {
            return;
        }
    }
    panic!("no restart: {}", rig.describe());
}

#[test]
fn a_uas_disk_whose_endpoint_the_controller_has_lost_costs_a_restart_and_no_request() {
    for &link in LINKS {
        for pipe in [STATUS, DATA_IN] {
            let mut rig = rig(&[(pipe, LATER)]);
            let device = UasScript::new().speed(link).build();
            let disk = rig.disk(port_for(link), device);
            let beside = rig.disk(OTHER_PORT, neighbour());
            read_through_a_restart(&mut rig, disk);
            assert_eq!(restarts(&rig), 1, "{pipe:#04x}, {link:?}");
            assert_eq!(rig.units_at(port_for(link))[0].usage.to_string(), "uas");
            assert_eq!(rig.controller_state(), ControllerState::Running);
            // The same disks as before, by the same handles.
            rig.check(beside, 3, 8);
            assert_eq!(rig.flush(disk), Ok(()), "it was clean");
            assert_eq!(rig.flush(beside), Ok(()), "so was its neighbour");
        }
    }
}

/// Both are away for the resets of their ports when the controller is started again for the one.
#[test]
fn two_disks_whose_endpoints_the_controller_has_lost_come_back_from_one_restart() {
    // From the first that two bring-ups do not reach on: either disk is the first to have its time behind the reset
    // over.
    for control in (60..=92).step_by(4) {
        two_come_back(rig(&[(BULK_IN, LATER), (0x85, LATER), (CONTROL, control)]));
    }
}

fn two_come_back(mut rig: Rig) {
    rig.host.set_policy(Policy {
        read_write: Duration::from_secs(2),
        bring_up: Duration::from_secs(2),
        ..Policy::DEFAULT
    });
    let unit = LogicalUnit::disk(65536, 512);
    let first = rig.disk(port_for(Link::High), Script::new().unit(unit).build());
    let second = rig.disk(OTHER_PORT, neighbour());
    let mut lba = 0;
    while restarts(&rig) == 0 {
        lba += 1;
        assert!(lba < 100, "no restart: {}", rig.describe());
        for disk in [first, second] {
            let buffer = owned(&mut rig.machine.buffer(512, 0));
            let submitted = rig
                .host
                .submit(disk, Operation::Read(Lba(lba)), Some(buffer));
            assert!(submitted.is_ok(), "{}", rig.describe());
        }
        let mut ended = 0;
        for _ in 0..CALL_LIMIT.as_millis() {
            rig.run(Duration::from_millis(1));
            ended += usize::from(rig.host.take_completion().is_some());
            if ended == 2 {
                break;
            }
        }
        assert_eq!(ended, 2, "{}", rig.describe());
    }
    for disk in [first, second] {
        rig.check(disk, 3, 8);
    }
}

#[test]
fn a_bulk_only_disk_whose_endpoint_the_controller_has_lost_costs_a_restart_and_no_request() {
    let mut rig = rig(&[(BULK_IN, LATER)]);
    rig.host.set_policy(Policy {
        // Every rung is waited for that long: all of them fit into an episode.
        read_write: Duration::from_secs(3),
        bring_up: Duration::from_secs(3),
        ..Policy::DEFAULT
    });
    let disk = rig.disk(port_for(Link::High), Script::new().build());
    let beside = rig.disk(OTHER_PORT, neighbour());
    read_through_a_restart(&mut rig, disk);
    assert_eq!(restarts(&rig), 1);
    rig.check(beside, 3, 8);
}

#[test]
fn what_the_disk_had_not_flushed_before_a_restart_is_told_of_once() {
    for &link in LINKS {
        let mut rig = rig(&[(DATA_IN, LATER)]);
        let unit = LogicalUnit::disk(16_384, 512).write_cache(CacheLoss::BusReset);
        let device = UasScript::new().speed(link).unit(unit).build();
        let disk = rig.disk(port_for(link), device.clone());
        rig.write(disk, 5000, &[9; 512]).unwrap();
        read_through_a_restart(&mut rig, disk);
        assert_eq!(device.durable_block(5000), pattern(5000, 512), "it is lost");
        assert_eq!(rig.flush(disk), Err(BlockError::WritesMayBeLost));
        assert_eq!(rig.flush(disk), Ok(()));
    }
}

#[test]
fn a_neighbour_that_has_something_to_lose_is_left_alone_and_the_disk_is_given_up() {
    for &link in LINKS {
        let mut rig = rig(&[(DATA_IN, LATER)]);
        let device = UasScript::new().speed(link).build();
        let disk = rig.disk(port_for(link), device);
        let other = neighbour();
        let beside = rig.disk(OTHER_PORT, other.clone());
        rig.write(beside, 7, &[5; 512]).unwrap();
        let failed = (0..200).find_map(|lba| {
            let read = rig.within(CALL_LIMIT, |rig| rig.read(disk, lba, 512));
            read.err()
        });
        assert_eq!(failed, Some(BlockError::Broken));
        assert_eq!(restarts(&rig), 0);
        assert_eq!(rig.flush(beside), Ok(()));
        assert_eq!(other.durable_block(7), [5; 512]);
    }
}

#[test]
fn a_neighbour_s_requests_in_flight_end_with_a_reset_and_their_buffers() {
    let mut rig = rig(&[(DATA_IN, LATER)]);
    let disk = rig.disk(port_for(Link::High), UasScript::new().build());
    // Each of its reads takes so long that one is under way whenever the controller is stopped.
    let slow = Action::Delay(8_000_000_000);
    let unit = LogicalUnit::disk(65536, 512);
    let other = Script::new().pipes(0, 0x85, 0x06).unit(unit);
    let other = other.on(opcode(0x28).after(1), slow).build();
    let beside = rig.disk(OTHER_PORT, other);
    let mut buffers: Vec<_> = (0..7).map(|_| rig.machine.buffer(512, 0)).collect();
    let mut free: Vec<_> = buffers.iter_mut().map(owned).collect();
    let (mut good, mut reset) = (0, 0);
    let mut lba = 0;
    while restarts(&rig) == 0 || free.len() < 7 {
        if restarts(&rig) == 0 {
            while free.len() > 2
                && let Some(buffer) = free.pop()
            {
                let read = Operation::Read(Lba(lba));
                rig.host.submit(beside, read, Some(buffer)).unwrap();
                lba += 1;
            }
            if let Some(buffer) = free.pop() {
                rig.host
                    .submit(disk, Operation::Read(Lba(0)), Some(buffer))
                    .unwrap();
            }
        }
        rig.run(Duration::from_millis(200));
        while let Some(completion) = rig.host.take_completion() {
            match completion.result {
                Ok(()) => good += 1,
                Err(BlockError::Reset) => {
                    assert_eq!(completion.disk, beside);
                    reset += 1;
                }
                Err(error) => panic!("{error}"),
            }
            free.push(completion.buffer.expect("it comes back"));
        }
        assert!(rig.age() < Duration::from_secs(300), "{}", rig.describe());
    }
    assert_eq!(reset, 1, "the one that was under way, of {good} others");
    rig.check(disk, 0, 8);
}

#[test]
fn a_controller_is_started_again_for_its_devices_twice_and_no_more() {
    let lost: Vec<_> = (1..4).map(|time| (DATA_IN, LATER * time)).collect();
    let mut rig = rig(&lost);
    let device = UasScript::new().build();
    let disk = rig.disk(port_for(Link::High), device);
    let beside = rig.disk(OTHER_PORT, neighbour());
    let end = (0..400).find_map(|round| {
        let read = rig.within(CALL_LIMIT, |rig| rig.read(disk, round, 512));
        read.map(|block| assert_eq!(block, pattern(round, 512)))
            .err()
    });
    assert_eq!(end, Some(BlockError::Broken));
    assert_eq!(restarts(&rig), 2);
    rig.check(beside, 0, 8);
}

/// Its port was reset, and then the controller has lost endpoint 0 too.
#[test]
fn a_disk_that_does_not_come_back_from_a_reset_of_its_port_is_back_after_a_restart() {
    for &link in LINKS {
        let mut rig = rig(&[(DATA_IN, LATER), (0, 70)]);
        let disk = rig.disk(port_for(link), UasScript::new().speed(link).build());
        read_through_a_restart(&mut rig, disk);
    }
}
