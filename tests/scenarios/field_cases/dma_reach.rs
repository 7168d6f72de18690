//! What a controller cannot reach is carried through the pool, counted; where the pool has no room for
//! it, that is an error of one request, never lost data, and the disk goes on.

use crate::controller::{self, Driver, Faults};
use crate::rig::{CALL_LIMIT, HIGH_PORT, POOL, Rig};
use rootport::block::queue::{DiskId, Operation};
use rootport::block::{BlockDevice, BlockError, Lba};
use rootport::dma::MapError;
use rootport::time::Duration;
use rootport_models::adapter::owned;
use rootport_models::device::field::good_stick;
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Disk, Script, UasScript};
use rootport_models::machine::{Machine, Options};

/// Above what 32 bits can name.
const HIGH: u64 = 0x1_2345_6000;

fn narrow() -> Rig {
    Rig::new(Options::default(), controller::addresses_32())
}

fn bounced(rig: &Rig, disk: DiskId) -> u64 {
    rig.host.copies(disk).expect("it is there").bounced
}

#[test]
fn memory_above_4_gib_is_read_and_written_through_the_pool_by_a_controller_of_32_bits() {
    for offset in [0, 3, 61] {
        let mut rig = narrow();
        let disk = rig.disk(HIGH_PORT, good_stick());
        let length = 300 * 512;
        let before = rig.pool_used();
        let mut high = rig.machine.buffer_at(HIGH, length, offset);
        rig.host.disk(disk).read(Lba(3), &mut high).unwrap();
        assert_eq!(bounced(&rig, disk), length as u64);
        assert!(high[..] == rig.read(disk, 3, length).unwrap()[..]);

        high.iter_mut().for_each(|byte| *byte = !*byte);
        rig.host.disk(disk).write(Lba(1000), &high).unwrap();
        let copied = bounced(&rig, disk);
        assert!(copied >= 2 * length as u64);
        let written = rig.read(disk, 1000, length).unwrap();
        assert!(written[..] == high[..]);
        assert_eq!(bounced(&rig, disk), copied, "what is reached is not copied");
        assert_eq!(rig.pool_used(), before, "every piece went back");
    }
}

#[test]
fn a_request_of_the_queue_face_is_carried_too_and_its_buffer_comes_back() {
    let mut rig = narrow();
    let disk = rig.disk(HIGH_PORT, good_stick());
    let mut high = rig.machine.buffer_at(HIGH, 64 * 512, 0);
    let buffer = Some(owned(&mut high));
    let read = Operation::Read(Lba(7));
    rig.host
        .submit(disk, read, buffer)
        .expect("there is a slot");
    rig.run(CALL_LIMIT);
    let completion = rig.host.take_completion().expect("it has ended");
    assert_eq!(completion.result, Ok(()));
    let found = completion.buffer.expect("it comes back");
    assert!(found.as_slice() == &rig.read(disk, 7, 64 * 512).unwrap()[..]);
}

/// Reads into memory that only the detour reaches, and gives the buffer, as it came back, to another disk
/// whose controller reaches it by itself: what the CPU has carried must not stay behind in its cache.
#[test]
fn a_buffer_that_was_filled_on_the_detour_is_written_to_another_disk_as_it_is() {
    let machine = Machine::new(Options::default());
    let narrow = controller::add(&machine, controller::addresses_32(), Faults::none());
    let wide = controller::add(&machine, controller::addresses_64(), Faults::none());
    let mut rig = Rig::on(machine, narrow, POOL, Driver::default());
    rig.add_controller(wide);
    let from = rig.disk_on(narrow, HIGH_PORT, good_stick());
    let to = rig.disk_on(wide, HIGH_PORT, good_stick());
    const LENGTH: usize = 64 * 512;
    let mut high = rig.machine.buffer_at(HIGH, LENGTH, 0);
    let mut buffer = Some(owned(&mut high));
    for (disk, operation) in [
        (to, Operation::Read(Lba(0))),
        (from, Operation::Read(Lba(7))),
        (to, Operation::Write(Lba(1000))),
    ] {
        rig.host
            .submit(disk, operation, buffer.take())
            .expect("room");
        rig.run(CALL_LIMIT);
        let completion = rig.host.take_completion().expect("it has ended");
        assert_eq!(completion.result, Ok(()));
        buffer = completion.buffer;
    }
    assert_eq!(bounced(&rig, from), LENGTH as u64);
    assert_eq!(bounced(&rig, to), 0);
    assert!(rig.read(to, 1000, LENGTH).unwrap() == rig.read(from, 7, LENGTH).unwrap());
}

#[test]
fn a_pool_without_room_for_a_block_fails_one_request_and_loses_nothing() {
    // The least pool with which the disk is found, by halves of a page.
    let find = |pool| {
        let mut rig = Rig::with_pool(
            Options::default(),
            controller::addresses_32(),
            Faults::none(),
            pool,
        );
        rig.settle(HIGH_PORT, stick_of_large_blocks());
        let disk = rig.host.first_disk();
        disk.map(|disk| (rig, disk))
    };
    let least = (8..128)
        .map(|halves| halves * 2048)
        .find_map(|pool| find(pool).ok());
    let (mut rig, disk) = least.expect("some pool is enough");
    let bytes = rig.geometry(disk).block_bytes as usize;
    let mut high = rig.machine.buffer_at(HIGH, bytes, 0);
    let exhausted = Err(BlockError::Memory(MapError::BounceExhausted));
    assert_eq!(rig.host.disk(disk).read(Lba(0), &mut high), exhausted);
    assert_eq!(rig.host.disk(disk).write(Lba(0), &high), exhausted);
    rig.check(disk, 0, 4);
}

fn stick_of_large_blocks() -> Disk {
    Script::new()
        .unit(LogicalUnit::disk(4096, 32 << 10))
        .build()
}

#[test]
fn a_device_pulled_while_a_piece_carries_its_data_leaves_the_pool_as_it_was() {
    let mut rig = narrow();
    rig.run(Duration::from_secs(1));
    let before = rig.pool_used();
    let disk = rig.disk(HIGH_PORT, good_stick());
    let mut high = rig.machine.buffer_at(HIGH, 240 * 512, 0);
    let buffer = Some(owned(&mut high));
    let read = Operation::Read(Lba(7));
    rig.host
        .submit(disk, read, buffer)
        .expect("there is a slot");
    rig.host.poll();
    rig.unplug(HIGH_PORT);
    let completion = rig.host.take_completion().expect("it has ended");
    assert_eq!(completion.result, Err(BlockError::Disconnected));
    assert!(completion.buffer.is_some());
    assert_eq!(rig.pool_used(), before);
    let disk = rig.disk(HIGH_PORT, good_stick());
    rig.check(disk, 0, 8);
}

#[test]
fn memory_above_4_gib_is_reached_by_a_controller_of_64_bits() {
    let mut rig = Rig::new(Options::above_4_gib(), controller::addresses_64());
    let disk = rig.disk(HIGH_PORT, good_stick());
    for offset in [0, 1, 63, 100] {
        let data = rig.read_at(disk, 5, 16 * 1024, offset).unwrap();
        assert!(data == rig.read(disk, 5, 16 * 1024).unwrap());
    }
}

#[test]
fn commands_that_are_under_way_together_take_turns_on_the_detour() {
    let mut rig = narrow();
    let uas = UasScript::new();
    let disk = rig.disk(HIGH_PORT, uas.build());
    let before = rig.pool_used();
    const LENGTH: usize = 300 * 512;
    let mut buffers: Vec<_> = (0..4)
        .map(|index| rig.machine.buffer_at(HIGH + index * 0x10_0000, LENGTH, 0))
        .collect();
    for (index, high) in (0..).zip(&mut buffers) {
        let read = Operation::Read(Lba(1000 * index));
        let buffer = Some(owned(high));
        rig.host
            .submit(disk, read, buffer)
            .expect("there is a slot");
    }
    rig.run(CALL_LIMIT);
    for _ in 0..4 {
        let completion = rig.host.take_completion().expect("all have ended");
        assert_eq!(completion.result, Ok(()));
    }
    for (index, high) in (0..).zip(&buffers) {
        assert!(high[..] == rig.read(disk, 1000 * index, LENGTH).unwrap()[..]);
    }
    assert_eq!(rig.pool_used(), before);
}
