//! UAS disks, without streams at high speed and with them at SuperSpeed: what a user sees of good
//! ones, and of each odd one there is.

mod bad_input;
mod field_cases;
mod full;
mod losses;
mod rungs;

use crate::controller::LINKS;
use crate::rig::{OTHER_PORT, Rig, port_for};
use rootport::block::queue::{DiskId, Operation, RequestId};
use rootport::block::{BlockDevice, BlockError, Lba};
use rootport::scsi::bring_up::BringUpError;
use rootport::stack::DiskState;
use rootport::time::Duration;
use rootport_models::adapter::owned;
use rootport_models::device::scsi::{Sense, pattern};
use rootport_models::device::uas::{Manners, TaskManner, What, on};
use rootport_models::device::{Link, Script, UasDisk, UasScript};

pub(crate) const READ: u8 = 0x28;
pub(crate) const WRITE: u8 = 0x2a;

/// Commands in flight of the first UAS disk: the rig has room for 8, and two are left to others.
pub(crate) const DEPTH: usize = 6;

/// A command's deadline, an episode, and the readiness of a disk that starts anew.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10 + 20 + 20);

/// A disk at this link, ready.
pub(crate) fn plugged(link: Link, script: UasScript) -> (Rig, DiskId, UasDisk) {
    plugged_into(Rig::default(), link, script)
}

/// The same on this rig.
pub(crate) fn plugged_into(mut rig: Rig, link: Link, script: UasScript) -> (Rig, DiskId, UasDisk) {
    let device = script.speed(link).build();
    let disk = rig.disk(port_for(link), device.clone());
    (rig, disk, device)
}

pub(crate) fn driver(rig: &Rig, port: usize) -> &'static str {
    rig.units_at(port)[0].device.driver
}

#[test]
fn a_disk_that_offers_nothing_else_is_used_over_uas() {
    for &link in LINKS {
        let (mut rig, disk, device) = plugged(link, UasScript::new());
        assert_eq!(driver(&rig, port_for(link)), "uas");
        rig.check(disk, 0, 64);
        rig.write(disk, 100, &[0x5a; 4096]).unwrap();
        rig.flush(disk).unwrap();
        assert_eq!(rig.read(disk, 100, 4096).unwrap(), [0x5a; 4096]);
        assert_eq!(device.block(107), [0x5a; 512]);
        assert!(device.tasks().is_empty());
    }
}

#[test]
fn a_blocking_read_that_is_longer_than_a_command_keeps_several_in_flight_by_itself() {
    for &link in LINKS {
        let (mut rig, disk, device) = plugged(link, UasScript::new());
        let blocks = 2048;
        rig.check(disk, 0, blocks);
        let limit = u64::from(rig.geometry(disk).transfer_blocks);
        let commands = blocks.div_ceil(limit) as usize;
        assert_eq!(device.deepest(), commands.min(DEPTH));
    }
}

#[test]
fn a_blocking_write_that_is_longer_than_a_command_arrives_whole() {
    for &link in LINKS {
        for seed in 1..6 {
            let manners = Manners {
                seed,
                ..Manners::default()
            };
            let (mut rig, disk, device) = plugged(link, UasScript::new().manners(manners));
            let bytes: Vec<u8> = (0..4 << 20)
                .map(|at: u32| (at / 512 * 7 + at) as u8)
                .collect();
            rig.write(disk, 3, &bytes).unwrap();
            assert!(device.deepest() > 2);
            assert!(rig.read(disk, 3, bytes.len()).unwrap() == bytes);
        }
    }
}

#[test]
fn a_buffer_between_cache_lines_is_read_whole() {
    for &link in LINKS {
        let (mut rig, disk, _) = plugged(link, UasScript::new());
        let bytes = rig.read_at(disk, 5, 1 << 19, 24).unwrap();
        let wanted: Vec<u8> = (5..5 + 1024).flat_map(|lba| pattern(lba, 512)).collect();
        assert!(bytes == wanted);
    }
}

pub(crate) fn submit(rig: &mut Rig, disk: DiskId, operation: Operation, fill: u8) -> RequestId {
    // On a page: on some controllers others are bounced, and only a few may be at a time.
    let mut buffer = rig.machine.buffer(4096, 0);
    buffer.fill(fill);
    let buffer = owned(&mut buffer);
    rig.host.submit(disk, operation, Some(buffer)).unwrap()
}

/// The device serves what it has in any order: the host keeps those apart that must not meet.
#[test]
fn requests_that_overlap_are_carried_out_in_the_order_of_their_submission() {
    for &link in LINKS {
        for seed in 1..20 {
            let manners = Manners {
                seed,
                ..Manners::default()
            };
            let (mut rig, disk, device) = plugged(link, UasScript::new().manners(manners));
            for (fill, lba) in [(1, 8), (2, 12), (3, 40), (4, 10), (5, 44)] {
                submit(&mut rig, disk, Operation::Write(Lba(lba)), fill);
            }
            rig.run(Duration::from_secs(1));
            for _ in 0..5 {
                assert_eq!(rig.host.take_completion().unwrap().result, Ok(()));
            }
            let first_bytes = [8, 10, 12, 16, 18, 40, 44].map(|lba| device.block(lba)[0]);
            assert_eq!(first_bytes, [1, 4, 4, 4, 2, 3, 5], "seed {seed}");
            assert!(device.deepest() > 1, "those that do not meet go together");
        }
    }
}

#[test]
fn a_flush_waits_for_the_writes_before_it_and_is_waited_for() {
    for &link in LINKS {
        let (mut rig, disk, device) = plugged(link, UasScript::new());
        submit(&mut rig, disk, Operation::Write(Lba(0)), 1);
        submit(&mut rig, disk, Operation::Write(Lba(8)), 2);
        rig.host.submit(disk, Operation::Flush, None).unwrap();
        submit(&mut rig, disk, Operation::Read(Lba(64)), 0);
        rig.run(Duration::from_secs(1));
        let exchanges = device.exchanges();
        let flush = exchanges.iter().position(|it| it.cdb[0] == 0x35).unwrap();
        assert_eq!(exchanges[flush].beside, 0);
        assert_eq!(exchanges[flush + 1].beside, 0);
        assert_eq!(exchanges[flush + 1].cdb[0], READ);
    }
}

#[test]
fn completions_are_taken_before_those_of_later_requests_in_the_same_place() {
    let (mut rig, disk, _) = plugged(LINKS[0], UasScript::new());
    let both = [0, 64].map(|lba| submit(&mut rig, disk, Operation::Read(Lba(lba)), 0));
    for _ in 0..2 {
        rig.run(Duration::from_secs(1));
        let taken = rig.host.take_completion().expect("both have ended").id;
        assert!(both.contains(&taken));
        submit(&mut rig, disk, Operation::Read(Lba(128)), 0);
    }
}

/// What is left behind a fault: the rig, the disk, and how each call ended.
pub(crate) type Passage = (Rig, UasDisk, Vec<Result<(), BlockError>>);

/// Reads and writes through a fault. Every call ends within its time, with the data or with an error;
/// and the disk in the other port goes on.
pub(crate) fn through(link: Link, script: UasScript) -> Passage {
    through_on(Rig::default(), link, script)
}

/// The same on this rig.
pub(crate) fn through_on(mut rig: Rig, link: Link, script: UasScript) -> Passage {
    let device = script.speed(link).build();
    let disk = rig.disk(port_for(link), device.clone());
    let neighbour = rig.disk(OTHER_PORT, Script::new().build());
    let mut results = Vec::new();
    for round in 0..4_u64 {
        let lba = 16 + round;
        let read = rig.within(PATIENCE, |rig| rig.read(disk, lba, 512));
        if let Ok(bytes) = &read {
            assert_eq!(*bytes, pattern(lba, 512), "round {round}");
        }
        results.push(read.map(|_| ()));
        let write = rig.within(PATIENCE, |rig| rig.write(disk, 200 + round, &[0x77; 512]));
        if write.is_ok() {
            assert_eq!(device.block(200 + round), [0x77; 512], "round {round}");
        }
        results.push(write);
        rig.check(neighbour, round, 1);
    }
    (rig, device, results)
}

pub(crate) fn all_good(results: &[Result<(), BlockError>]) -> bool {
    results.iter().all(Result::is_ok)
}

#[test]
fn field_case_23_a_lost_status_costs_an_abort_and_no_request() {
    for &link in LINKS {
        for opcode in [READ, WRITE] {
            let fault = on(opcode, What::LoseStatus).after(1).times(1);
            let (rig, device, results) = through(link, UasScript::new().fault(fault));
            assert!(all_good(&results), "{results:?}");
            let functions: Vec<u8> = device.tasks().iter().map(|task| task.function).collect();
            assert_eq!(functions, [0x01]);
            assert_eq!(driver(&rig, port_for(link)), "uas");
        }
    }
}

#[test]
fn field_case_23_a_status_that_comes_while_its_command_is_aborted_ends_it_well() {
    for &link in LINKS {
        let late = What::DelayStatus(10_500_000_000);
        let manners = Manners {
            // For two seconds: the status comes meanwhile.
            abort: TaskManner::Ignores,
            ..Manners::default()
        };
        let script = UasScript::new().fault(on(READ, late).after(1).times(1));
        let (_, device, results) = through(link, script.manners(manners));
        assert!(all_good(&results), "{results:?}");
        let exchanges = device.exchanges();
        let reads = exchanges.iter().filter(|one| one.cdb[0] == READ).count();
        assert_eq!(reads, 1 + 4, "none is issued again, {link:?}");
    }
}

#[test]
fn a_device_that_knows_no_abort_has_its_unit_reset() {
    for &link in LINKS {
        for abort in [TaskManner::Refuses(0x04), TaskManner::Ignores] {
            let manners = Manners {
                abort,
                ..Manners::default()
            };
            let script = UasScript::new().fault(on(READ, What::Hang).after(1).times(1));
            let (_, device, results) = through(link, script.manners(manners));
            assert!(all_good(&results), "{results:?}");
            let functions: Vec<u8> = device.tasks().iter().map(|task| task.function).collect();
            assert_eq!(functions, [0x01, 0x08]);
        }
    }
}

#[test]
fn a_device_that_answers_no_function_has_its_port_reset_and_stays_the_same_disk() {
    for &link in LINKS {
        let manners = Manners {
            abort: TaskManner::Ignores,
            unit_reset: TaskManner::Ignores,
            ..Manners::default()
        };
        let script = UasScript::new().fault(on(READ, What::Hang).after(1).times(1));
        let (_, device, results) = through(link, script.manners(manners));
        assert!(all_good(&results), "{results:?}");
        assert_eq!(device.tasks().len(), 2);
        assert!(device.bus_resets().len() > 1);
    }
}

#[test]
fn a_command_that_is_never_answered_ends_with_a_typed_error_and_the_disk_goes_on() {
    for &link in LINKS {
        let (mut rig, disk, device) = plugged(link, UasScript::new());
        device.change(|device| device.function.faults.push(on(READ, What::Hang)));
        let read = rig.within(PATIENCE, |rig| rig.read(disk, 3, 512));
        assert!(read.is_err(), "{read:?}");
        device.change(|device| device.function.faults.clear());
        let disk = rig.wait_for_disk(port_for(link));
        rig.check(disk, 3, 1);
    }
}

#[test]
fn each_odd_answer_that_comes_once_costs_no_request() {
    for &link in LINKS {
        let oddities = [
            What::HaltData,
            What::Status(0x08),
            What::Status(0x28),
            What::Status(0x40),
            What::Response(0x02),
            What::SkipData,
            What::WrongTag(9),
            What::WrongTag(77),
            What::ReadyForTag(5),
            What::Babble,
            What::BulkOnlyWords,
            What::Fail(Sense::ABORTED),
            What::Fail(Sense::RESET),
        ];
        for what in oddities {
            let script = UasScript::new().fault(on(READ, what.clone()).after(1).times(1));
            let (_, _, results) = through(link, script);
            // A command that the device halts on and then refuses is refused.
            let refused =
                |result: &Result<(), BlockError>| matches!(result, Err(BlockError::Device(_)));
            let bad: Vec<_> = results.iter().filter(|result| result.is_err()).collect();
            let fine = match what {
                What::HaltData => bad.len() == 1 && refused(bad[0]),
                _ => bad.is_empty(),
            };
            assert!(fine, "{what:?}: {results:?}");
        }
    }
}

#[test]
fn case_0984_0301_a_device_that_answers_in_bulk_only_words_is_no_disk_and_ends_in_time() {
    for &link in LINKS {
        let mut rig = Rig::default();
        let every = [0x12, 0x00, 0x25, 0x28].map(|opcode| on(opcode, What::BulkOnlyWords));
        let script = every
            .into_iter()
            .fold(UasScript::new(), |script, fault| script.fault(fault));
        let device = script.speed(link).build();
        rig.plug(port_for(link), device.clone());
        rig.run(Duration::from_secs(120));
        let [unit] = rig.units_at(port_for(link))[..] else {
            panic!("{}", rig.describe());
        };
        let failed = matches!(unit.state, DiskState::Failed(BringUpError::Transport(_)));
        assert!(failed, "{:?}", unit.state);
        let neighbour = rig.disk(OTHER_PORT, Script::new().build());
        rig.check(neighbour, 0, 1);
    }
}

#[test]
fn a_device_that_is_full_gets_no_more_commands_than_it_holds() {
    for &link in LINKS {
        let manners = Manners {
            room: 3,
            ..Manners::default()
        };
        let (mut rig, disk, device) = plugged(link, UasScript::new().manners(manners));
        rig.check(disk, 0, 8192);
        rig.check(disk, 0, 8192);
        let beyond = |it: &&rootport_models::device::uas::Exchange| it.beside >= 3;
        let refused = device.exchanges().iter().filter(beyond).count();
        assert!((1..8).contains(&refused), "{refused} were refused");
    }
}

#[test]
fn a_disk_that_is_pulled_with_commands_in_flight_ends_all_of_them() {
    for &link in LINKS {
        let (mut rig, disk, device) = plugged(link, UasScript::new());
        device.change(|device| device.function.faults.push(on(READ, What::Hang)));
        for lba in [0, 8, 16, 24] {
            submit(&mut rig, disk, Operation::Read(Lba(lba)), 0);
        }
        rig.run(Duration::from_millis(100));
        assert_eq!(device.change(|device| device.function.holds()), 4);
        rig.unplug(port_for(link));
        for _ in 0..4 {
            let completion = rig.host.take_completion().unwrap();
            assert_eq!(completion.result, Err(BlockError::Disconnected));
            assert!(completion.buffer.is_some());
        }
    }
}

#[test]
fn commands_in_flight_survive_a_reset_of_the_port() {
    for &link in LINKS {
        let manners = Manners {
            abort: TaskManner::Ignores,
            unit_reset: TaskManner::Ignores,
            ..Manners::default()
        };
        let script = UasScript::new().fault(on(WRITE, What::Hang).times(2));
        let (mut rig, disk, device) = plugged(link, script.manners(manners));
        for (fill, lba) in [(1, 0), (2, 8), (3, 16), (4, 24), (5, 32)] {
            submit(&mut rig, disk, Operation::Write(Lba(lba)), fill);
        }
        rig.run(Duration::from_secs(60));
        for _ in 0..5 {
            assert_eq!(rig.host.take_completion().unwrap().result, Ok(()));
        }
        let first_bytes = [0, 8, 16, 24, 32].map(|lba| device.block(lba)[0]);
        assert_eq!(first_bytes, [1, 2, 3, 4, 5]);
        let flush = rig.host.disk(disk).flush();
        assert_eq!(flush, Err(BlockError::WritesMayBeLost), "once");
        assert_eq!(rig.host.disk(disk).flush(), Ok(()));
    }
}

#[test]
fn nothing_is_left_in_the_pool_when_a_uas_disk_has_gone() {
    for &link in LINKS {
        let mut rig = Rig::default();
        let neighbour = rig.disk(OTHER_PORT, Script::new().build());
        rig.check(neighbour, 0, 1);
        let before = rig.pool_used();
        for _ in 0..3 {
            let disk = rig.disk(port_for(link), UasScript::new().speed(link).build());
            rig.check(disk, 0, 512);
            rig.unplug(port_for(link));
            assert_eq!(rig.pool_used(), before);
        }
    }
}

#[test]
fn a_request_that_comes_while_a_halt_is_cleared_is_begun_behind_it() {
    for &link in LINKS {
        let script = UasScript::new().fault(on(READ, What::HaltData).after(1).times(1));
        let (mut rig, disk, device) = plugged(link, script);
        assert!(rig.read(disk, 0, 512).is_err());
        let written = rig.within(Duration::from_secs(1), |rig| rig.write(disk, 9, &[7; 512]));
        assert_eq!(written, Ok(()));
        assert_eq!(device.block(9), [7; 512]);
    }
}

#[test]
fn commands_that_are_late_together_are_one_fault_and_cost_no_reset_of_the_port() {
    for &link in LINKS {
        let script = UasScript::new().fault(on(READ, What::Hang).after(1).times(4));
        let (mut rig, disk, device) = plugged(link, script);
        let resets = device.bus_resets().len();
        for lba in [0, 8, 16, 24] {
            submit(&mut rig, disk, Operation::Read(Lba(lba)), 0);
        }
        rig.run(Duration::from_secs(20));
        for _ in 0..4 {
            assert_eq!(rig.host.take_completion().unwrap().result, Ok(()));
        }
        assert_eq!(device.tasks().len(), 4, "each is aborted");
        assert_eq!(device.bus_resets().len(), resets);
    }
}

#[test]
fn a_second_uas_disk_finds_room_for_commands_beside_the_first() {
    for &link in LINKS {
        let (mut rig, first, device) = plugged(link, UasScript::new());
        let second = rig.disk(OTHER_PORT, UasScript::new().build());
        for port in [port_for(link), OTHER_PORT] {
            assert_eq!(driver(&rig, port), "uas");
        }
        for (fill, disk) in [(1, first), (2, second)] {
            submit(&mut rig, disk, Operation::Write(Lba(8)), fill);
            submit(&mut rig, disk, Operation::Read(Lba(64)), 0);
        }
        rig.run(Duration::from_secs(1));
        for _ in 0..4 {
            assert_eq!(rig.host.take_completion().unwrap().result, Ok(()));
        }
        rig.check(first, 100, 4096);
        rig.check(second, 100, 4096);
        assert!(device.deepest() > 1);
        // What the first one leaves behind is there for the next.
        rig.unplug(port_for(link));
        let device = UasScript::new().speed(link).build();
        let again = rig.disk(port_for(link), device.clone());
        rig.check(again, 0, 4096);
        assert!(device.deepest() > 1);
    }
}
