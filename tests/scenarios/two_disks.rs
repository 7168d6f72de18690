//! Several disks at once: each request gets the data of its own, whatever its neighbour does.

use crate::rig::{FAST_PORT, FASTEST, HIGH_PORT, ModelHost, OTHER_PORT, Rig, disk_at};
use rootport::block::queue::{DiskId, Operation};
use rootport::block::{BlockDevice, BlockError, Lba};
use rootport::time::Duration;
use rootport_models::adapter::owned;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::{LogicalUnit, pattern};
use rootport_models::device::{Disk, Link, Script};
use rootport_models::machine::Buffer;

/// Waits until so many completions have come.
fn completions(rig: &mut Rig, count: usize) -> Vec<rootport::block::queue::Completion> {
    let mut ended = Vec::new();
    for _ in 0..1000 {
        while let Some(completion) = rig.host.take_completion() {
            ended.push(completion);
        }
        if ended.len() >= count {
            break;
        }
        rig.run(Duration::from_millis(100));
    }
    ended
}

fn submit_read(rig: &mut Rig, disk: DiskId, lba: u64, buffer: &mut Buffer) {
    let submitted = rig
        .host
        .submit(disk, Operation::Read(Lba(lba)), Some(owned(buffer)));
    submitted.expect("there is room");
}

#[test]
fn three_disks_answer_interleaved_requests_with_their_own_data() {
    let mut rig = Rig::default();
    let contents = [0x11, 0x22, 0x33];
    let disks: Vec<DiskId> = [HIGH_PORT, OTHER_PORT, FAST_PORT]
        .into_iter()
        .zip(contents)
        .map(|(port, byte)| {
            let unit = LogicalUnit::stick(4096).content(&vec![byte; 64 * 512]);
            let link = if port == FAST_PORT {
                FASTEST
            } else {
                Link::High
            };
            rig.disk(port, Script::new().speed(link).unit(unit).build())
        })
        .collect();
    for round in 0..10 {
        let mut buffers: Vec<_> = (0..6)
            .map(|index| rig.machine.buffer(8 * 512, index * 5))
            .collect();
        for (index, buffer) in buffers.iter_mut().enumerate() {
            submit_read(&mut rig, disks[index % 3], round, buffer);
        }
        let ended = completions(&mut rig, 6);
        assert_eq!(ended.len(), 6);
        for completion in ended {
            assert_eq!(completion.result, Ok(()));
            let which = disks
                .iter()
                .position(|disk| *disk == completion.disk)
                .unwrap();
            let buffer = completion.buffer.expect("it comes back");
            assert!(
                buffer
                    .as_slice()
                    .iter()
                    .all(|byte| *byte == contents[which])
            );
        }
    }
}

#[test]
fn a_full_queue_is_an_error_of_one_request_with_its_buffer() {
    let mut rig = Rig::default();
    let disk = rig.disk(HIGH_PORT, Script::new().build());
    let mut buffers: Vec<_> = (0..9).map(|_| rig.machine.buffer(512, 0)).collect();
    for (lba, buffer) in buffers[..8].iter_mut().enumerate() {
        submit_read(&mut rig, disk, lba as u64, buffer);
    }
    let length = buffers[8].len();
    let last = Some(owned(&mut buffers[8]));
    let (error, returned) = rig
        .host
        .submit(disk, Operation::Read(Lba(8)), last)
        .unwrap_err();
    assert_eq!(error, BlockError::QueueFull);
    assert_eq!(returned.map(|buffer| buffer.length()), Some(length));
    let ended = completions(&mut rig, 8);
    assert_eq!(ended.len(), 8);
    for completion in ended {
        assert_eq!(completion.result, Ok(()));
        let bytes = completion.buffer.expect("it comes back");
        assert!((0..8).any(|lba| bytes.as_slice() == pattern(lba, 512)));
    }
    // A blocking call waits its turn beside the queue face, and is refused when there is no slot.
    rig.check(disk, 100, 3);
}

/// The plug is pulled at the n-th transaction of six requests in flight: each buffer comes back once.
fn pulled_during_queue_io(port: usize, device: &Disk, step: u64) {
    let mut rig = Rig::default();
    rig.run(Duration::from_millis(500));
    let before = rig.pool_used();
    let neighbour = rig.disk(OTHER_PORT, Script::new().pipes(0, 0x83, 0x04).build());
    let disk = rig.disk(port, device.clone());
    device.pull_at(step);
    let mut buffers: Vec<_> = (0..6)
        .map(|index| rig.machine.buffer(9 * 512, index * 11))
        .collect();
    let mut addresses: Vec<_> = buffers.iter().map(|buffer| buffer.as_ptr()).collect();
    for (index, buffer) in buffers.iter_mut().enumerate() {
        let operation = match index % 3 {
            2 => Operation::Write(Lba(1000)),
            _ => Operation::Read(Lba(index as u64)),
        };
        let buffer = owned(buffer);
        rig.host
            .submit(disk, operation, Some(buffer))
            .expect("there is room");
    }
    rig.host
        .submit(disk, Operation::Flush, None)
        .expect("there is room");
    let ended = completions(&mut rig, 7);
    assert_eq!(ended.len(), 7, "step {step}: {}", rig.describe());
    for completion in ended {
        assert!(
            matches!(completion.result, Ok(()) | Err(BlockError::Disconnected)),
            "step {step}: {:?}",
            completion.result
        );
        if let Some(buffer) = completion.buffer {
            let address = buffer.as_slice().as_ptr();
            let at = addresses.iter().position(|other| *other == address);
            addresses.swap_remove(at.expect("each comes back once"));
        }
    }
    assert!(addresses.is_empty(), "step {step}: buffers were kept");
    rig.check(neighbour, step, 4);
    rig.unplug(port);
    rig.unplug(OTHER_PORT);
    assert_eq!(rig.pool_used(), before);
    device.put_back();
    let disk = rig.disk(port, device.clone());
    rig.check(disk, 5, 9);
}

#[test]
fn buffers_come_back_exactly_once_whenever_the_plug_is_pulled() {
    for step in (1..90).step_by(3) {
        pulled_during_queue_io(HIGH_PORT, &Script::new().build(), step);
        pulled_during_queue_io(FAST_PORT, &disk_at(FASTEST).build(), step + 1);
    }
}

/// A read hangs, and while its disk is recovered the plug is pulled.
#[test]
fn a_disk_that_is_pulled_at_any_moment_of_its_recovery_is_disconnected_at_once() {
    for milliseconds in (0..700).step_by(35) {
        let hangs = Action::Hang(Until::BusReset);
        let device = Script::new().on(opcode(0x28).after(1), hangs).build();
        let mut rig = Rig::default();
        let disk = rig.disk(HIGH_PORT, device);
        let mut buffer = rig.machine.buffer(512, 0);
        submit_read(&mut rig, disk, 9, &mut buffer);
        let is_away = |host: &ModelHost| host.first_disk().is_err();
        assert!(rig.host.poll_until(Duration::from_secs(60), is_away));
        rig.run(Duration::from_millis(milliseconds));
        drop(rig.machine.unplug(0, HIGH_PORT));
        let ended = rig.within(Duration::from_secs(1), |rig| completions(rig, 1));
        assert_eq!(ended.len(), 1, "{milliseconds}");
        assert_eq!(
            ended[0].result,
            Err(BlockError::Disconnected),
            "{milliseconds}"
        );
    }
}

#[test]
fn a_disk_may_be_plugged_in_and_out_as_often_as_one_likes() {
    let mut rig = Rig::default();
    let neighbour = rig.disk(OTHER_PORT, Script::new().build());
    rig.run(Duration::from_millis(10));
    let before = rig.pool_used();
    let device = Script::new().build();
    for round in 0..40 {
        let disk = rig.disk(HIGH_PORT, device.clone());
        rig.check(disk, round, 2);
        rig.unplug(HIGH_PORT);
        assert_eq!(rig.pool_used(), before, "round {round}");
        assert_eq!(rig.host.disk(disk).flush(), Err(BlockError::Disconnected));
    }
    rig.check(neighbour, 0, 8);
}

#[test]
fn a_plug_that_bounces_ends_as_one_disk() {
    let device = Script::new().build();
    let mut rig = Rig::default();
    for milliseconds in [1, 3, 20, 60, 99, 130] {
        rig.plug(HIGH_PORT, device.clone());
        rig.run(Duration::from_millis(milliseconds));
        drop(rig.machine.unplug(0, HIGH_PORT));
        rig.run(Duration::from_millis(2));
    }
    let disk = rig.disk(HIGH_PORT, device.clone());
    assert_eq!(rig.units_at(HIGH_PORT).len(), 1);
    assert_eq!(rig.host.bus().devices().count(), 1);
    rig.check(disk, 0, 8);
}
