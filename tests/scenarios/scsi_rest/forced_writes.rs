//! Writes that end on the medium: by forced unit access, by a flush, or not at all.

use rootport::block::queue::Operation;
use rootport::block::{BlockError, FlushSupport, Lba, SenseCode, Stored, WriteCache, WriteOptions};
use rootport::dma::DmaBuffer;
use rootport_models::device::bot::{Action, opcode};
use rootport_models::device::scsi::{CacheLoss, Forced, LogicalUnit};
use rootport_models::device::uas::{What, on};
use rootport_models::device::{Script, UasScript};

use super::{bulk_only, details, over_both, trusting, uas};
use crate::controller::LINKS;
use crate::rig::{HIGH_PORT, Rig, port_for};

const WRITE: u8 = 0x2a;
const FLUSH: u8 = 0x35;

const ON_MEDIUM: WriteOptions = WriteOptions {
    stored: Stored::OnMedium,
};

fn cached() -> LogicalUnit {
    LogicalUnit::disk(16_384, 512).write_cache(CacheLoss::PowerCycle)
}

fn write_to_medium(
    rig: &mut Rig,
    disk: rootport::block::queue::DiskId,
    lba: u64,
    bytes: usize,
) -> Result<(), BlockError> {
    let mut buffer = rig.machine.buffer(bytes, 0);
    buffer.fill(0x5a);
    rig.host.disk(disk).write_with(Lba(lba), &buffer, ON_MEDIUM)
}

/// Whether each write that came carried the bit.
fn forced(handle: &super::Handle) -> Vec<bool> {
    let sent = handle.sent(WRITE);
    sent.iter().map(|cdb| cdb[1] & 0x08 != 0).collect()
}

#[test]
fn forced_unit_access_puts_each_piece_on_the_medium_without_a_flush() {
    over_both(&cached(), |mut rig, disk, handle| {
        write_to_medium(&mut rig, disk, 100, 3000 * 512).unwrap();
        assert!(forced(&handle).len() > 1 && forced(&handle).iter().all(|it| *it));
        assert!(handle.sent(FLUSH).is_empty());
        assert_eq!(handle.durable(3099), [0x5a; 512]);
    });
}

#[test]
fn it_is_no_flush_of_what_was_written_before() {
    over_both(&cached(), |mut rig, disk, handle| {
        rig.write(disk, 7, &[1; 512]).unwrap();
        write_to_medium(&mut rig, disk, 100, 512).unwrap();
        assert_ne!(handle.durable(7), [1; 512]);
        rig.flush(disk).unwrap();
        assert_eq!(handle.durable(7), [1; 512]);
    });
}

#[test]
fn a_plain_write_stays_plain() {
    over_both(&cached(), |mut rig, disk, handle| {
        let buffer = rig.machine.buffer(512, 0);
        let plain = WriteOptions::default();
        rig.host
            .disk(disk)
            .write_with(Lba(5), &buffer, plain)
            .unwrap();
        assert_eq!(forced(&handle), [false]);
        assert!(handle.sent(FLUSH).is_empty());
    });
}

#[test]
fn a_plain_bulk_only_disk_is_flushed_whatever_it_says() {
    let (mut rig, disk, handle) = bulk_only(Rig::default(), cached());
    write_to_medium(&mut rig, disk, 100, 512).unwrap();
    assert_eq!(forced(&handle), [false]);
    assert_eq!(handle.sent(FLUSH).len(), 1);
    assert_eq!(handle.durable(100), [0x5a; 512]);
    assert_eq!(rig.geometry(disk).cache, WriteCache::Unknown);
    assert!(handle.sent(0x1a).iter().all(|cdb| cdb[2] == 0x3f));
}

#[test]
fn a_disk_that_refuses_what_it_announced_is_flushed_and_not_told_again() {
    let unit = cached().with(|unit| unit.forced = Forced::Refused);
    over_both(&unit, |mut rig, disk, handle| {
        for _ in 0..2 {
            write_to_medium(&mut rig, disk, 100, 512).unwrap();
        }
        assert_eq!(forced(&handle), [true, false, false]);
        assert_eq!(handle.sent(FLUSH).len(), 2);
        assert_eq!(handle.durable(100), [0x5a; 512]);
    });
}

#[test]
fn the_cache_is_shown_where_it_may_be_asked_and_a_disk_without_one_needs_neither() {
    over_both(&LogicalUnit::disk(16_384, 512), |mut rig, disk, handle| {
        assert_eq!(rig.geometry(disk).cache, WriteCache::WriteThrough);
        write_to_medium(&mut rig, disk, 100, 512).unwrap();
        assert_eq!(forced(&handle), [false]);
        assert!(handle.sent(FLUSH).is_empty());
    });
    over_both(&cached(), |rig, disk, _| {
        assert_eq!(rig.geometry(disk).cache, WriteCache::WriteBack);
        assert!(details(&rig, disk).takes_forced_writes);
    });
}

#[test]
fn where_nothing_reaches_the_medium_for_certain_the_write_says_so() {
    let unit = LogicalUnit::stick(16_384).with(|unit| unit.knows_flush = false);
    let (mut rig, disk, handle) = bulk_only(Rig::default(), unit);
    let no_way = Err(BlockError::Unsupported(SenseCode::UNKNOWN_COMMAND));
    assert_eq!(write_to_medium(&mut rig, disk, 100, 512), no_way);
    assert_eq!(rig.geometry(disk).flush, FlushSupport::NoFlushCommand);
    assert_eq!(forced(&handle).len(), 1);
    assert_eq!(write_to_medium(&mut rig, disk, 200, 512), no_way);
    assert_eq!(forced(&handle).len(), 1, "known now: nothing is written");
}

#[test]
fn the_queue_refuses_a_forced_write_where_it_is_not_taken_and_gives_the_buffer_back() {
    let (mut rig, disk, handle) = bulk_only(Rig::default(), cached());
    let buffer = DmaBuffer::from_static(vec![1; 512].leak());
    let operation = Operation::WriteForced(Lba(3));
    let (error, buffer) = rig.host.submit(disk, operation, Some(buffer)).unwrap_err();
    assert_eq!(error, BlockError::Unsupported(SenseCode::BAD_FIELD));
    assert!(buffer.is_some() && forced(&handle).is_empty());
}

/// The policies that hide a cache hide this too: `p` and `y`.
#[test]
fn a_policy_against_it_makes_a_flush_of_it() {
    for (string, is_forced) in [
        ("1234:0a5d:", true),
        ("1234:0a5d:p", false),
        ("1234:0a5d:y", false),
        ("1234:0a5e:y", true),
    ] {
        let mut rig = Rig::default();
        rig.host.set_quirks(string);
        let (mut rig, disk, handle) = uas(rig, cached());
        write_to_medium(&mut rig, disk, 100, 512).unwrap();
        assert_eq!(forced(&handle), [is_forced], "{string}");
        assert_eq!(handle.sent(FLUSH).is_empty(), is_forced);
        assert_eq!(handle.durable(100), [0x5a; 512]);
    }
}

/// A good status with less than all of the data, each time.
#[test]
fn a_forced_write_that_moves_too_little_is_not_good() {
    let short = on(WRITE, What::SkipData).times(u32::MAX);
    for link in LINKS {
        let script = UasScript::new().speed(*link).unit(cached());
        let device = script.fault(short.clone()).build();
        let mut rig = Rig::default();
        let disk = rig.disk(port_for(*link), device.clone());
        let result = write_to_medium(&mut rig, disk, 100, 512);
        assert_eq!(result, Err(BlockError::Short { moved: 0 }), "{link:?}");
    }
    let moves_half = Action::ShortData(512);
    let script = Script::new().unit(cached()).on(opcode(WRITE), moves_half);
    let mut rig = trusting();
    let disk = rig.disk(HIGH_PORT, script.build());
    let result = write_to_medium(&mut rig, disk, 100, 1024);
    assert_eq!(result, Err(BlockError::Short { moved: 512 }));
}
