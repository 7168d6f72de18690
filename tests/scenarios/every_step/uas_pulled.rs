//! The plug of a UAS disk is pulled at the n-th transaction, for every n, with streams and without: one
//! call after the other, and with the queue full.

use super::Course;
use crate::controller::{self, Faults, LINKS};
use crate::rig::{OTHER_PORT, Rig, port_for};
use rootport::block::queue::Operation;
use rootport::block::{BlockError, Lba};
use rootport::time::Duration;
use rootport_models::adapter::owned;
use rootport_models::device::scsi::{CacheLoss, LogicalUnit};
use rootport_models::device::{Link, Script, UasDisk, UasScript};
use rootport_models::machine::Options;

/// A disk whose cache does not survive its plug.
fn forgetful(link: Link) -> UasDisk {
    let unit = LogicalUnit::disk(16_384, 512).write_cache(CacheLoss::PowerCycle);
    UasScript::new().speed(link).unit(unit).build()
}

/// Transactions at which a plug is pulled, in parts that run beside each other: every fifth, each part
/// one later than the one before, so that all of them together leave none out. The polls of a status
/// pipe that has nothing to say count too.
fn part(number: u64) -> impl Iterator<Item = u64> {
    (1 + number..).step_by(5)
}

/// What a good flush covers is on the medium: the course looks.
fn pull_along_the_way(number: u64) {
    for &link in LINKS {
        for step in part(number) {
            let mut course = Course::new(link, step, Faults::none());
            let device = forgetful(link);
            device.pull_at(step);
            let results = course.run(&device);
            if let Some(results) = results {
                for result in [results.read, results.write, results.flush] {
                    assert!(
                        matches!(result, Ok(()) | Err(BlockError::Disconnected)),
                        "step {step}: {result:?} {}",
                        course.rig.describe()
                    );
                }
            }
            course.end();
            // Later ones pull a plug that nothing needs any more: the status pipe is asked for ever.
            if results.is_some_and(|results| results.all_good()) {
                assert!(step > 80, "{link:?}: {step}");
                break;
            }
        }
    }
}

#[test]
fn field_case_40_a_uas_disk_may_be_pulled_at_any_transaction_part_1() {
    pull_along_the_way(0);
}

#[test]
fn field_case_40_a_uas_disk_may_be_pulled_at_any_transaction_part_2() {
    pull_along_the_way(1);
}

#[test]
fn field_case_40_a_uas_disk_may_be_pulled_at_any_transaction_part_3() {
    pull_along_the_way(2);
}

#[test]
fn field_case_40_a_uas_disk_may_be_pulled_at_any_transaction_part_4() {
    pull_along_the_way(3);
}

#[test]
fn field_case_40_a_uas_disk_may_be_pulled_at_any_transaction_part_5() {
    pull_along_the_way(4);
}

/// Blocks of each request at depth, and how many requests there are.
const BLOCKS: u64 = 9;
const DEPTH: u64 = 5;

/// Pulled so many transactions after its disk was ready, with writes in flight, a flush behind them and
/// a read and a write behind that. `true` if all had ended before.
fn pull_at_depth(link: Link, step: u64) -> bool {
    let options = Options {
        seed: step,
        cache_line: [32, 64, 128][step as usize % 3],
        coherent: step.is_multiple_of(4),
        ..Options::default()
    };
    let mut rig = Rig::new(options, controller::usual());
    let neighbour = Script::new().pipes(0, 0x85, 0x06).build();
    let neighbour = rig.disk(OTHER_PORT, neighbour);
    rig.run(Duration::from_millis(1));
    let held = rig.pool_used();
    let device = forgetful(link);
    let disk = rig.disk(port_for(link), device.clone());
    device.pull_at(step);
    let mut buffers: Vec<_> = (0..DEPTH + 2)
        .map(|index| {
            let mut buffer = rig.machine.buffer(512 * BLOCKS as usize, 0);
            buffer.fill(index as u8 + 1);
            buffer
        })
        .collect();
    let mut addresses: Vec<_> = buffers.iter().map(|buffer| buffer.as_ptr()).collect();
    let lba = |index: u64| Lba(100 * (index + 1));
    let mut submitted = Vec::new();
    let mut submit = |rig: &mut Rig, operation, buffer| {
        let id = rig.host.submit(disk, operation, buffer);
        submitted.push(id.expect("there is room"));
    };
    let mut memory = buffers.iter_mut().map(owned);
    for index in 0..DEPTH {
        submit(&mut rig, Operation::Write(lba(index)), memory.next());
    }
    submit(&mut rig, Operation::Flush, None);
    submit(&mut rig, Operation::Read(Lba(8)), memory.next());
    submit(&mut rig, Operation::Write(lba(DEPTH)), memory.next());
    let mut results = vec![None; submitted.len()];
    let mut have_ended = |rig: &mut Rig| {
        while let Some(completion) = rig.host.take_completion() {
            let place = submitted.iter().position(|id| *id == completion.id);
            let place = place.expect("it was submitted, and has not ended before");
            assert_eq!(results[place].replace(completion.result), None);
            if let Some(buffer) = completion.buffer {
                let address = buffer.as_slice().as_ptr();
                let at = addresses.iter().position(|other| *other == address);
                addresses.swap_remove(at.expect("each comes back once"));
            }
        }
        results.iter().all(Option::is_some)
    };
    let until = rig.now() + Duration::from_secs(2);
    while !have_ended(&mut rig) {
        assert!(
            rig.now() < until,
            "step {step}, {link:?}: {}",
            rig.describe()
        );
        rig.run(Duration::from_millis(1));
    }
    assert!(
        addresses.is_empty(),
        "step {step}, {link:?}: buffers were kept"
    );
    let results: Vec<_> = results.into_iter().flatten().collect();
    for result in &results {
        let is_typed = matches!(result, Ok(()) | Err(BlockError::Disconnected));
        assert!(is_typed, "step {step}, {link:?}: {result:?}");
    }
    if results[DEPTH as usize].is_ok() {
        for index in 0..DEPTH {
            assert!(results[index as usize].is_ok(), "it ended before the flush");
            for block in 0..BLOCKS {
                let kept = device.durable_block(lba(index).0 + block);
                assert_eq!(kept, [index as u8 + 1; 512], "step {step}, {link:?}");
            }
        }
    }
    rig.check(neighbour, step, 4);
    rig.unplug(port_for(link));
    assert_eq!(rig.pool_used(), held, "step {step}, {link:?}");
    results.iter().all(Result::is_ok)
}

#[test]
fn field_case_40_a_uas_disk_may_be_pulled_at_any_transaction_with_its_queue_full() {
    for &link in LINKS {
        let last = (1..).find(|step| pull_at_depth(link, *step));
        assert!(last.is_some_and(|step| step > 50), "{link:?}: {last:?}");
    }
}
