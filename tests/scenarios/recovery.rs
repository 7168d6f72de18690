//! The ladder of recovery on devices that need each rung, and what becomes of writes meanwhile.
//!
//! Devices that are left in the middle of a command by a reset, or by none.

use crate::rig::{HIGH_PORT, ModelHost, Rig};
use rootport::block::queue::{DiskId, Operation};
use rootport::block::{BlockDevice, BlockError, Lba};
use rootport::dma::DmaBuffer;
use rootport::stack::DiskState;
use rootport::time::Duration;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::field::halts;
use rootport_models::device::scsi::{CacheLoss, Image, LogicalUnit, Sense, pattern};
use rootport_models::device::{Disk, Script};

/// A command's deadline, an episode, and the readiness of a disk that starts anew.
const PATIENCE: Duration = Duration::from_secs(10 + 20 + 20);

/// Reads block 1 again and again, with the other port's disk beside it.
fn read_through(disk: Disk) -> (Rig, Vec<Result<(), BlockError>>) {
    let mut rig = Rig::default();
    let id = rig.disk(HIGH_PORT, disk);
    let results = (0..6)
        .map(|_| {
            let before = rig.now();
            let result = rig.read(id, 1, 512).map(|block| {
                assert_eq!(block, pattern(1, 512));
            });
            assert!(rig.now() - before <= PATIENCE);
            result
        })
        .collect();
    (rig, results)
}

#[test]
fn a_device_that_hangs_until_its_class_reset_costs_no_request() {
    let (_, results) = read_through(halts::hangs_in_the_third_read_until(Until::ClassReset));
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

#[test]
fn a_device_that_hangs_until_a_bus_reset_costs_no_request_and_stays_the_same_disk() {
    let (_, results) = read_through(halts::hangs_in_the_third_read_until(Until::BusReset));
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

/// The page that proves it is the same disk is not told, or not heard, the first time it is asked behind the reset.
#[test]
fn a_disk_whose_proof_of_identity_fails_once_on_its_way_stays_the_same_disk() {
    let damaged = Action::Signature(*b"USBX");
    let busy = Action::Fail(Sense::new(0x0b, 0x47, 0x03));
    for trouble in [damaged, busy] {
        for page in [0x00, 0x80, 0x83] {
            let page_again = opcode(0x12).page(page).after(1).times(1);
            let device = Script::new()
                .unit(LogicalUnit::disk(65536, 512))
                .on(
                    opcode(0x28).after(1).times(1),
                    Action::Hang(Until::BusReset),
                )
                .on(page_again, trouble.clone())
                .build();
            let mut rig = Rig::default();
            let disk = rig.disk(HIGH_PORT, device.clone());
            let read = rig.within(PATIENCE, |rig| rig.read(disk, 1, 512));
            assert!(
                read.is_ok(),
                "page {page:#04x}, {trouble:?}: {}",
                rig.describe()
            );
            rig.check(disk, 2, 8);
        }
    }
}

#[test]
fn a_device_that_hangs_until_its_power_goes_is_given_up_where_power_is_always_on() {
    let (rig, results) = read_through(halts::hangs_in_the_third_read_until(Until::PowerCycle));
    let first_bad = results.iter().position(Result::is_err).unwrap();
    assert_eq!(results[first_bad], Err(BlockError::Broken));
    let rest = &results[first_bad + 1..];
    assert!(
        rest.iter()
            .all(|result| *result == Err(BlockError::Disconnected))
    );
    assert!(rig.host.first_disk().is_err());
}

#[test]
fn a_device_that_hangs_in_every_read_is_given_up_within_an_episode() {
    let (_, results) = read_through(halts::hangs_in_every_read_from_the_third_on());
    assert!(results.contains(&Err(BlockError::Broken)), "{results:?}");
}

/// Hangs in the first write behind `sound` good ones until the bus is reset, which also loses the
/// disk's cache.
fn forgetful(sound: u32) -> Script {
    let unit = LogicalUnit::stick(4096).write_cache(CacheLoss::BusReset);
    Script::new().unit(unit).on(
        opcode(0x2a).after(sound).once(),
        Action::Hang(Until::BusReset),
    )
}

#[test]
fn a_write_is_issued_again_after_the_port_was_reset() {
    let mut rig = Rig::default();
    let stick = forgetful(0).build();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    let mut buffer = rig.machine.buffer(512, 0);
    buffer.fill(0x5a);
    rig.host.disk(disk).write(Lba(3), &buffer).unwrap();
    // The write that hung may have been the first since the last flush: it is told of.
    let flush = rig.host.disk(disk).flush();
    assert_eq!(flush, Err(BlockError::WritesMayBeLost));
    assert_eq!(rig.host.disk(disk).flush(), Ok(()), "once");
    assert_eq!(rig.read(disk, 3, 512).unwrap(), buffer.to_vec());
}

#[test]
fn a_write_that_was_lost_with_a_cache_is_told_of_by_the_next_flush_and_only_once() {
    let mut rig = Rig::default();
    let stick = forgetful(1).build();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    let other = rig.host.add_holder(disk).unwrap();
    let mut buffer = rig.machine.buffer(512, 0);
    buffer.fill(0x5a);
    rig.host.disk(disk).write(Lba(3), &buffer).unwrap();
    rig.host.disk(disk).write(Lba(4), &buffer).unwrap();
    assert_ne!(
        rig.read(disk, 3, 512).unwrap(),
        buffer.to_vec(),
        "the model lost it"
    );
    assert_eq!(
        rig.host.disk(disk).flush(),
        Err(BlockError::WritesMayBeLost)
    );
    assert_eq!(rig.host.disk(disk).flush(), Ok(()));
    // The other holder has its own say.
    rig.host.submit_flush(other).unwrap();
    let mut completion = None;
    rig.host.poll_until(Duration::from_secs(5), |_| false);
    completion = rig.host.take_completion().or(completion);
    assert_eq!(
        completion.map(|it| it.result),
        Some(Err(BlockError::WritesMayBeLost))
    );
}

#[test]
fn nothing_that_a_good_flush_covers_is_lost_or_told_of() {
    let mut rig = Rig::default();
    let stick = forgetful(1).build();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    let mut buffer = rig.machine.buffer(512, 0);
    buffer.fill(0x5a);
    rig.host.disk(disk).write(Lba(3), &buffer).unwrap();
    rig.host.disk(disk).flush().unwrap();
    rig.read(disk, 3, 512).unwrap();
    assert_eq!(rig.read(disk, 3, 512).unwrap(), buffer.to_vec());
    assert_eq!(rig.host.disk(disk).flush(), Ok(()));
}

#[test]
fn a_device_that_hangs_in_every_read_until_its_bus_is_reset_does_not_hold_a_caller_for_ever() {
    for opcode_of in [0x28, 0x2a, 0x35] {
        let device = Script::new()
            .on(opcode(opcode_of).after(1), Action::Hang(Until::BusReset))
            .build();
        let mut rig = Rig::default();
        let disk = rig.disk(HIGH_PORT, device);
        for _ in 0..2 {
            let (result, took) = rig.timed(|rig| match opcode_of {
                0x28 => rig.read(disk, 1, 512).map(|_| ()),
                0x2a => rig.write(disk, 1, &[1; 512]),
                _ => rig.flush(disk),
            });
            let deadline = if opcode_of == 0x35 { 60 } else { 10 };
            let limit = Duration::from_secs(deadline + 20 + 20 + 1);
            assert!(
                took <= limit,
                "{opcode_of:#x}: {} ms, {result:?}",
                took.as_millis()
            );
        }
    }
}

/// A write that hangs until the port is reset is under way, the device is being opened again, and
/// `meanwhile` happens. How the write ends.
fn write_over_a_reset(
    rig: &mut Rig,
    disk: DiskId,
    meanwhile: impl FnOnce(&mut Rig),
) -> Result<(), BlockError> {
    let buffer = DmaBuffer::from_static(vec![0x5a; 512].leak());
    let write = Operation::Write(Lba(3));
    rig.host.submit(disk, write, Some(buffer)).unwrap();
    let is_away = |host: &ModelHost| host.disks().any(|disk| disk.state == DiskState::NotReady);
    assert!(rig.host.poll_until(PATIENCE, is_away));
    meanwhile(rig);
    rig.run(PATIENCE);
    rig.host.take_completion().expect("it has ended").result
}

#[test]
fn a_twin_that_is_plugged_in_while_a_disk_is_reset_gets_none_of_its_writes() {
    let mut rig = Rig::default();
    let disk = rig.disk(HIGH_PORT, forgetful(0).build());
    let twin = Script::new().unit(LogicalUnit::stick(4096)).build();
    let result = write_over_a_reset(&mut rig, disk, |rig| {
        drop(rig.machine.unplug(0, HIGH_PORT));
        // No hand is quicker.
        rig.run(Duration::from_millis(100));
        rig.plug(HIGH_PORT, twin.clone());
    });
    assert_eq!(result, Err(BlockError::Disconnected));
    assert_eq!(twin.count(0x2a), 0);
    let new = rig.wait_for_disk(HIGH_PORT);
    assert_ne!(new, disk);
    assert_eq!(rig.read(disk, 3, 512), Err(BlockError::Disconnected));
}

#[test]
fn a_disk_that_comes_back_from_a_reset_in_another_size_gets_no_write_meant_for_the_old_one() {
    let mut rig = Rig::default();
    let stick = forgetful(0).build();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    let writes = stick.count(0x2a);
    let result = write_over_a_reset(&mut rig, disk, |_| {
        stick.unit(0, |unit| unit.insert(Image::new(512), 2048));
    });
    assert_eq!(result, Err(BlockError::Disconnected));
    assert_eq!(stick.count(0x2a), writes + 1, "the one that hung");
    assert_ne!(rig.wait_for_disk(HIGH_PORT), disk);
}
