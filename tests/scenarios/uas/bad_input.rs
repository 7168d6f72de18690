//! What a UAS device may do to its host: each ends in data or in an error with a type, in time, never in
//! a silent loss; and the disk beside it goes on.

use rootport::block::queue::Operation;
use rootport::block::{BlockError, Lba};
use rootport::time::Duration;
use rootport_models::device::scsi::{CacheLoss, LogicalUnit, pattern};
use rootport_models::device::uas::{Exchange, Fault, Manners, TaskManner, What, on};
use rootport_models::device::{Script, UasDisk, UasScript};

use super::{PATIENCE, READ, WRITE, all_good, plugged, submit, through};
use crate::controller::LINKS;
use crate::rig::{OTHER_PORT, port_for};

const FLUSH: u8 = 0x35;

/// A flush's deadline, an episode, and the readiness of a disk that starts anew.
const FLUSH_PATIENCE: Duration = Duration::from_secs(60 + 20 + 20);

#[test]
fn a_response_in_place_of_a_status_costs_no_request_when_it_comes_once() {
    // Invalid unit, function refused, failed, and what is no code.
    for code in [0x00, 0x02, 0x04, 0x05, 0x08, 0x7f] {
        for opcode in [READ, WRITE] {
            for &link in LINKS {
                let fault = on(opcode, What::Response(code)).after(1).times(1);
                let (_, _, results) = through(link, UasScript::new().fault(fault));
                assert!(all_good(&results), "{code:#04x}, {link:?}: {results:?}");
            }
        }
    }
}

#[test]
fn a_response_that_there_is_no_such_unit_is_the_request_s_error() {
    for &link in LINKS {
        let fault = on(READ, What::Response(0x09)).after(1).times(1);
        let (_, _, results) = through(link, UasScript::new().fault(fault));
        let [first, rest @ ..] = &results[..] else {
            panic!("{results:?}");
        };
        assert!(matches!(first, Err(BlockError::Device(_))), "{first:?}");
        assert!(all_good(rest), "{link:?}: {rest:?}");
    }
}

#[test]
fn a_response_in_place_of_every_status_ends_each_call_with_an_error() {
    for &link in LINKS {
        let fault = on(READ, What::Response(0x02)).after(1);
        let (_, _, results) = through(link, UasScript::new().fault(fault));
        for (place, result) in results.iter().enumerate() {
            assert_eq!(result.is_ok(), place % 2 == 1, "writes work: {results:?}");
        }
    }
}

#[test]
fn an_overlapped_tag_that_the_device_claims_costs_a_reset_of_the_port_and_no_request() {
    for &link in LINKS {
        let fault = on(READ, What::Response(0x0a)).after(1).times(1);
        let (_, device, results) = through(link, UasScript::new().fault(fault));
        assert!(all_good(&results), "{results:?}");
        assert!(device.bus_resets().len() > 1, "all tags are dead");
    }
}

#[test]
fn a_status_for_a_tag_that_nobody_has_is_ignored_and_its_own_command_aborted() {
    for other in [5, 9, 10, 15, 16, 200, 0xfffe] {
        for &link in LINKS {
            let fault = on(READ, What::WrongTag(other)).after(1).times(1);
            let (_, device, results) = through(link, UasScript::new().fault(fault));
            assert!(all_good(&results), "{other}, {link:?}: {results:?}");
            assert!(device.tasks().len() <= 1);
        }
    }
}

#[test]
fn field_case_23_a_status_that_comes_long_after_its_command_was_given_up_is_ignored() {
    // The device knows no abort, so the command stays; its status comes when the unit was reset.
    for delay in [10_010, 11_000, 12_500, 15_000, 30_000] {
        for &link in LINKS {
            let late = What::DelayStatus(delay * 1_000_000);
            let manners = Manners {
                abort: TaskManner::Refuses(0x04),
                unit_reset: TaskManner::LeavesStatus,
                ..Manners::default()
            };
            let script = UasScript::new().fault(on(READ, late).after(1).times(1));
            let (mut rig, device, results) = through(link, script.manners(manners));
            assert!(all_good(&results), "{delay} ms, {link:?}: {results:?}");
            rig.run(Duration::from_secs(30));
            let disk = rig.units_at(port_for(link))[0].id;
            for lba in 0..32 {
                rig.check(disk, 300 + lba, 1);
            }
            // With streams it waits on its own, on which nothing is read while the tag rests.
            let uas = rig.host.uas(disk).expect("it is used over UAS");
            let fetched = usize::from(!uas.streams);
            assert_eq!(device.leftovers().len(), fetched, "{delay} ms, {link:?}");
            assert_eq!(uas.counters.strays as usize, fetched);
            assert_eq!((uas.counters.aborts, uas.counters.unit_resets), (1, 1));
        }
    }
}

/// The device says that it has aborted the command, and a second later it sends its status.
#[test]
fn field_case_23_the_tag_of_an_aborted_command_rests_and_its_late_status_ends_no_other() {
    for delay in [10_100, 10_900, 12_000, 25_000] {
        for &link in LINKS {
            let manners = Manners {
                abort: TaskManner::LeavesStatus,
                ..Manners::default()
            };
            let late = on(WRITE, What::DelayStatus(delay * 1_000_000))
                .after(1)
                .times(1);
            let script = UasScript::new().fault(late).manners(manners);
            let (mut rig, disk, device) = plugged(link, script);
            let until = rig.now() + Duration::from_secs(40);
            let mut round = 0_u8;
            while rig.now() < until {
                round = round.wrapping_add(1);
                for lba in 0..4_u64 {
                    submit(&mut rig, disk, Operation::Write(Lba(8 * lba)), round);
                }
                let mut ended = 0;
                while ended < 4 {
                    rig.run(Duration::from_millis(20));
                    assert!(rig.now() < until + PATIENCE, "{}", rig.describe());
                    while let Some(completion) = rig.host.take_completion() {
                        assert_eq!(completion.result, Ok(()), "{delay} ms, {link:?}");
                        ended += 1;
                    }
                }
                let stored = [0, 8, 16, 24].map(|lba| device.block(lba)[0]);
                assert_eq!(stored, [round; 4], "{delay} ms, {link:?}");
            }
            let aborted = device.tasks()[0].target;
            let begun = device.tasks()[0].at;
            let exchanges = device.exchanges();
            let again = exchanges
                .iter()
                .any(|it| it.at > begun && it.tag == aborted);
            assert!(
                !again,
                "{delay} ms, {link:?}: the tag {aborted} was used again"
            );
        }
    }
}

#[test]
fn bulk_only_words_in_place_of_a_status_cost_no_request_when_they_come_once() {
    for opcode in [READ, WRITE] {
        for &link in LINKS {
            let fault = on(opcode, What::BulkOnlyWords).after(1).times(1);
            let (_, _, results) = through(link, UasScript::new().fault(fault));
            assert!(all_good(&results), "{link:?}: {results:?}");
        }
    }
}

#[test]
fn babble_in_the_data_costs_no_request_and_never_reaches_its_buffer() {
    for times in [1, 2] {
        for &link in LINKS {
            let fault = on(READ, What::Babble).after(1).times(times);
            let (_, _, results) = through(link, UasScript::new().fault(fault));
            assert!(all_good(&results), "{times}, {link:?}: {results:?}");
        }
    }
}

/// A disk with a cache that its restart loses.
fn cached(fault: Fault) -> UasScript {
    let unit = LogicalUnit::disk(16_384, 512).write_cache(CacheLoss::BusReset);
    UasScript::new().unit(unit).fault(fault)
}

#[test]
fn a_device_that_resets_itself_amid_dirty_writes_has_the_next_flush_tell_of_the_loss() {
    for trigger in [READ, WRITE, FLUSH] {
        for &link in LINKS {
            let skipped = u32::from(trigger == READ);
            let script = cached(on(trigger, What::ResetItself).after(skipped + 2).times(1));
            let (mut rig, disk, device) = plugged(link, script);
            let neighbour = rig.disk(OTHER_PORT, Script::new().build());
            let mut told = 0;
            for round in 0..6_u8 {
                let lba = u64::from(round) * 8;
                let written = rig.within(PATIENCE, |rig| rig.write(disk, lba, &[round + 1; 4096]));
                let read = rig.within(PATIENCE, |rig| rig.read(disk, 4000, 512));
                rig.check(neighbour, lba, 1);
                assert_eq!(written, Ok(()), "{trigger:#04x}, {link:?}, {round}");
                assert_eq!(read.as_deref(), Ok(&pattern(4000, 512)[..]));
                match rig.within(FLUSH_PATIENCE, |rig| rig.flush(disk)) {
                    Ok(()) => {
                        let kept = device.durable_block(lba) == [round + 1; 512];
                        assert!(kept, "{trigger:#04x}, {link:?}: lost without a word");
                    }
                    Err(BlockError::WritesMayBeLost) => told += 1,
                    Err(error) => panic!("{trigger:#04x}, {link:?}: {error}"),
                }
            }
            assert_eq!(told, 1, "{trigger:#04x}, {link:?}");
        }
    }
}

#[test]
fn a_loss_with_several_writes_in_flight_is_told_by_their_flush() {
    for &link in LINKS {
        let script = cached(on(WRITE, What::ResetItself).after(3).times(1));
        let (mut rig, disk, device) = plugged(link, script);
        for (fill, lba) in [(1, 0), (2, 8), (3, 16), (4, 24), (5, 32), (6, 40)] {
            submit(&mut rig, disk, Operation::Write(Lba(lba)), fill);
        }
        rig.run(Duration::from_secs(60));
        let results: Vec<_> = (0..6)
            .map(|_| rig.host.take_completion().expect("all have ended").result)
            .collect();
        let first = rig.flush(disk);
        assert_eq!(first, Err(BlockError::WritesMayBeLost), "{results:?}");
        for (fill, lba) in [(1, 0), (2, 8), (3, 16), (4, 24), (5, 32), (6, 40)] {
            rig.write(disk, lba, &[fill; 4096]).unwrap();
        }
        assert_eq!(rig.flush(disk), Ok(()));
        let kept = [0, 8, 16, 24, 32, 40].map(|lba| device.durable_block(lba)[0]);
        assert_eq!(kept, [1, 2, 3, 4, 5, 6]);
    }
}

/// How often each of these writes came: unit and block.
fn writes(device: &UasDisk, places: [(u8, u8); 3]) -> [usize; 3] {
    let exchanges = device.exchanges();
    places.map(|(lun, lba)| {
        let is_it = |it: &&Exchange| it.cdb[0] == WRITE && (it.lun, it.cdb[5]) == (lun, lba);
        exchanges.iter().filter(is_it).count()
    })
}

/// What dies at which rung: the late one's tag, all of its unit's, all.
#[test]
fn at_each_rung_exactly_those_commands_die_that_the_table_says() {
    let works = TaskManner::Works;
    // How often each is begun: the late write, one of the same unit, one of another. The first that is begun
    // again behind the reset of a unit is told of that, and begun once more.
    let rungs = [
        (works, works, [2, 1, 1]),
        (TaskManner::Refuses(0x04), works, [3, 2, 1]),
        (TaskManner::Refuses(0x05), TaskManner::Refuses(0x04), [2; 3]),
        (TaskManner::Ignores, TaskManner::Ignores, [2; 3]),
    ];
    for (abort, unit_reset, begun) in rungs {
        for &link in LINKS {
            let manners = Manners {
                abort,
                unit_reset,
                ..Manners::default()
            };
            // All three hang; two of them were begun so late that they are not late themselves yet.
            let script = UasScript::new()
                .unit(LogicalUnit::disk(16_384, 512))
                .unit(LogicalUnit::disk(16_384, 512))
                .fault(on(WRITE, What::Hang).times(3));
            let (mut rig, first, device) = plugged(link, script.manners(manners));
            rig.settle_port(port_for(link));
            let units = rig.units_at(port_for(link));
            let second = units.iter().find(|unit| unit.unit == 1);
            let second = second.expect("there are two").id;
            submit(&mut rig, first, Operation::Write(Lba(0)), 1);
            rig.run(Duration::from_secs(9));
            submit(&mut rig, first, Operation::Write(Lba(8)), 2);
            submit(&mut rig, second, Operation::Write(Lba(16)), 3);
            rig.run(Duration::from_secs(9));
            let places = [(0, 0), (0, 8), (1, 16)];
            assert_eq!(writes(&device, places), begun, "{abort:?}, {link:?}");
            let functions: Vec<u8> = device.tasks().iter().map(|task| task.function).collect();
            let expected: &[u8] = if begun[1] == 1 {
                &[0x01]
            } else {
                &[0x01, 0x08]
            };
            assert_eq!(functions, expected, "{abort:?}, {link:?}");
            let resets = device.bus_resets().len() - 1;
            assert_eq!(resets > 0, begun[2] == 2, "{abort:?}, {link:?}");
            rig.run(Duration::from_secs(60));
            for _ in 0..3 {
                let result = rig.host.take_completion().map(|one| one.result);
                assert_eq!(result, Some(Ok(())), "{abort:?}, {link:?}");
            }
            assert_eq!([0, 8].map(|lba| device.block(lba)[0]), [1, 2]);
            let other = device.change(|device| device.function.target.units[1].image.block(16));
            assert_eq!(other[0], 3);
            // A unit or a port that was reset may have lost what was not flushed; and a status that has not
            // come may have told of that.
            assert_eq!(rig.flush(first), Err(BlockError::WritesMayBeLost));
            assert_eq!(rig.flush(first), Ok(()), "{abort:?}, {link:?}");
        }
    }
}
