//! UNMAP and WRITE SAME.

use rootport::block::queue::Operation;
use rootport::block::{BlockError, Lba, SenseCode};
use rootport::time::Duration;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::{LogicalUnit, Provisioning, Scripted, Sense, pattern};
use rootport_models::device::uas::{What, on};
use rootport_models::device::{Script, UasScript};

use super::{Handle, bulk_only, details, over_both, trusting, uas};
use crate::controller::LINKS;
use crate::rig::{HIGH_PORT, Rig, port_for};

const UNMAP: u8 = 0x42;
const WRITE_SAME: u8 = 0x93;
const UNKNOWN: BlockError = BlockError::Unsupported(SenseCode::UNKNOWN_COMMAND);

fn disk(provisioning: Provisioning) -> LogicalUnit {
    LogicalUnit::disk(16_384, 512)
        .provisioned(provisioning)
        .with(|unit| unit.maximum_write_same = Some(64))
}

#[test]
fn blocks_that_were_given_back_read_as_zeros_where_the_disk_says_so() {
    for reads_zero in [true, false] {
        let provisioning = Provisioning {
            reads_zero,
            ..Provisioning::default()
        };
        over_both(&disk(provisioning), |mut rig, disk, handle| {
            rig.host.disk(disk).unmap(Lba(100), 50).unwrap();
            assert_eq!(handle.sent(UNMAP).len(), 1);
            assert!(handle.unit(|unit| unit.image.is_given_back(149)));
            let found = rig.read(disk, 149, 1024).unwrap();
            assert_eq!(found[..512] == [0; 512], reads_zero);
            assert_eq!(found[512..], pattern(150, 512));
            let details = details(&rig, disk);
            assert_eq!(details.provisioning.unwrap().reads_zero, reads_zero);
        });
    }
}

/// The model refuses, and records, what goes beyond the limits that it tells.
#[test]
fn a_long_unmap_is_cut_at_limits_and_granules() {
    let provisioning = Provisioning {
        maximum_blocks: 1000,
        granule: (64, 5),
        ..Provisioning::default()
    };
    over_both(&disk(provisioning), |mut rig, disk, handle| {
        rig.host.disk(disk).unmap(Lba(10), 4000).unwrap();
        assert_eq!(handle.sent(UNMAP).len(), 5);
        let kept = |lba| !handle.unit(|unit| unit.image.is_given_back(lba));
        // Granules begin at 5, 69, 133 ...: only the edges of the whole stay.
        let first = 69;
        let end = 5 + (4010 - 5) / 64 * 64;
        assert!((10..first).all(kept) && (end..4010).all(kept));
        assert!(!(first..end).any(kept));
    });
}

/// The page is refused when the disk is asked for it again, behind the reset of its port.
#[test]
fn a_disk_that_does_not_tell_its_limits_again_keeps_those_it_has_told() {
    let provisioning = Provisioning {
        maximum_blocks: 1000,
        ..Provisioning::default()
    };
    let hang = opcode(0x28).touching(100..101).times(1);
    let pages = opcode(0x12).page(0xb0).after(1);
    let device = Script::new()
        .unit(disk(provisioning))
        .on(hang, Action::Hang(Until::BusReset))
        .on(pages, Action::Fail(Sense::new(0x05, 0x24, 0x00)))
        .build();
    let mut rig = trusting();
    let disk = rig.disk(HIGH_PORT, device.clone());
    let before = details(&rig, disk).limits;
    rig.check(disk, 100, 1);
    assert_eq!(details(&rig, disk).limits, before);
    assert!(before.maximum_unmap.is_some());
    rig.host.disk(disk).unmap(Lba(10), 4000).unwrap();
    assert_eq!(device.count(UNMAP), 4);
}

#[test]
fn a_disk_that_gives_back_by_write_same_alone_is_told_so() {
    let provisioning = Provisioning {
        knows_unmap: false,
        unmaps_by_write_same: true,
        reads_zero: false,
        granule: (8, 0),
        ..Provisioning::default()
    };
    over_both(&disk(provisioning), |mut rig, disk, handle| {
        // What the transport's small memory held before must not be taken for zeros.
        rig.host.disk(disk).unmap(Lba(100), 100).unwrap();
        assert_eq!(handle.sent(WRITE_SAME).len(), 2);
        assert!(handle.sent(UNMAP).is_empty());
        let given_back = |lba| handle.unit(|unit| unit.image.is_given_back(lba));
        assert!(!given_back(103) && (104..200).all(given_back) && !given_back(200));
        assert!(handle.unit(|unit| unit.same_blocks.iter().all(|block| *block == [0; 512])));
    });
}

#[test]
fn a_disk_without_unmap_is_not_sent_any() {
    over_both(&LogicalUnit::disk(16_384, 512), |mut rig, disk, handle| {
        assert_eq!(rig.host.disk(disk).unmap(Lba(0), 8), Err(UNKNOWN));
        assert!(handle.sent(UNMAP).is_empty());
        rig.check(disk, 0, 8);
    });
}

#[test]
fn ranges_beyond_the_end_are_refused_before_any_command() {
    over_both(&disk(Provisioning::default()), |mut rig, disk, handle| {
        for (lba, blocks) in [(16_383, 2), (5, 0), (u64::MAX, 2), (1, u64::MAX)] {
            let lba = Lba(lba);
            let beyond = Err(BlockError::OutOfRange { lba, blocks });
            assert_eq!(rig.host.disk(disk).unmap(lba, blocks), beyond);
            let block = rig.machine.buffer(512, 0);
            let same = rig.host.disk(disk).write_same(lba, blocks, &block);
            assert_eq!(same, beyond);
        }
        assert!(handle.sent(UNMAP).is_empty() && handle.sent(WRITE_SAME).is_empty());
    });
}

#[test]
fn one_block_is_written_to_many_places_in_pieces() {
    over_both(&disk(Provisioning::default()), |mut rig, disk, handle| {
        for offset in [0, 24] {
            let mut block = rig.machine.buffer(512, offset);
            block.fill(0xa0 + offset as u8);
            let base = 1000 + 200 * offset as u64;
            rig.host
                .disk(disk)
                .write_same(Lba(base), 150, &block)
                .unwrap();
            assert_eq!(handle.block(base - 1), pattern(base - 1, 512));
            assert_eq!(handle.block(base), block.to_vec());
            assert_eq!(handle.block(base + 149), block.to_vec());
            assert_eq!(handle.block(base + 150), pattern(base + 150, 512));
        }
        assert_eq!(handle.sent(WRITE_SAME).len(), 6, "64, 64 and 22 blocks");
    });
}

#[test]
fn a_buffer_that_is_not_one_block_is_not_written_anywhere() {
    over_both(&disk(Provisioning::default()), |mut rig, disk, handle| {
        for length in [256, 1024] {
            let block = rig.machine.buffer(length, 0);
            let refused = rig.host.disk(disk).write_same(Lba(0), 8, &block);
            let block_bytes = 512;
            let wrong = BlockError::BufferLength {
                length,
                block_bytes,
            };
            assert_eq!(refused, Err(wrong));
        }
        assert!(handle.sent(WRITE_SAME).is_empty());
    });
}

#[test]
fn a_trusted_disk_that_minds_write_same_says_so_once() {
    let unit = || LogicalUnit::disk(16_384, 512);
    for (mut rig, disk, handle) in [bulk_only(trusting(), unit()), uas(trusting(), unit())] {
        let block = rig.machine.buffer(512, 0);
        for _ in 0..2 {
            let refused = rig.host.disk(disk).write_same(Lba(0), 8, &block);
            assert_eq!(refused, Err(UNKNOWN));
            assert_eq!(
                handle.sent(WRITE_SAME).len(),
                1,
                "its refusal is remembered"
            );
        }
        rig.check(disk, 0, 8);
    }
}

/// It announces what it does not know: by its pages it would be sent the same command for ever.
#[test]
fn a_disk_that_does_not_know_the_command_by_which_it_gives_blocks_back_is_not_sent_it_again() {
    let by_write_same = Provisioning {
        knows_unmap: false,
        unmaps_by_write_same: true,
        ..Provisioning::default()
    };
    for (provisioning, command) in [
        (by_write_same, WRITE_SAME),
        (Provisioning::default(), UNMAP),
    ] {
        let unknown = Scripted::Fail(Sense::new(0x05, 0x20, 0x00));
        let unit = disk(provisioning).script(command, unknown);
        over_both(&unit, |mut rig, disk, handle| {
            for _ in 0..2 {
                let refused = rig.host.disk(disk).unmap(Lba(100), 50);
                assert_eq!(refused, Err(UNKNOWN));
                assert_eq!(handle.sent(command).len(), 1);
            }
            rig.check(disk, 100, 50);
        });
    }
}

#[test]
fn a_uas_disk_that_does_not_say_that_it_has_write_same_is_not_sent_any() {
    let (mut rig, disk, handle) = uas(Rig::default(), LogicalUnit::disk(16_384, 512));
    let block = rig.machine.buffer(512, 0);
    let refused = rig.host.disk(disk).write_same(Lba(0), 8, &block);
    assert_eq!(refused, Err(UNKNOWN));
    assert!(handle.sent(WRITE_SAME).is_empty());
    rig.check(disk, 0, 8);
}

#[test]
fn both_are_refused_on_a_write_protected_disk() {
    over_both(
        &disk(Provisioning::default()).read_only(),
        |mut rig, disk, handle| {
            let protected = Err(BlockError::WriteProtected);
            assert_eq!(rig.host.disk(disk).unmap(Lba(0), 8), protected);
            let block = rig.machine.buffer(512, 0);
            let same = rig.host.disk(disk).write_same(Lba(0), 8, &block);
            assert_eq!(same, protected);
            assert!(handle.sent(UNMAP).is_empty());
        },
    );
}

/// What waits behind it in the queue sees it done; what is before it is done first.
#[test]
fn a_queued_unmap_keeps_its_place_among_the_writes_that_it_meets() {
    let (mut rig, disk, handle) = uas(Rig::default(), disk(Provisioning::default()));
    let write = |rig: &mut Rig, fill: u8| {
        let buffer = rootport::dma::DmaBuffer::from_static(vec![fill; 4096].leak());
        let operation = Operation::Write(Lba(8));
        rig.host.submit(disk, operation, Some(buffer)).unwrap();
    };
    let unmap = Operation::Unmap {
        lba: Lba(12),
        blocks: 100,
    };
    write(&mut rig, 1);
    rig.host.submit(disk, unmap, None).unwrap();
    rig.run(Duration::from_secs(1));
    assert_eq!(handle.block(11), [1; 512]);
    assert_eq!(handle.block(12), [0; 512]);
    rig.host.submit(disk, unmap, None).unwrap();
    write(&mut rig, 2);
    rig.run(Duration::from_secs(1));
    assert_eq!(handle.block(12), [2; 512]);
    for _ in 0..4 {
        assert_eq!(rig.host.take_completion().unwrap().result, Ok(()));
    }
}

#[test]
fn an_unmap_after_a_reset_is_a_write_that_may_be_lost() {
    over_both(&disk(Provisioning::default()), |mut rig, disk, handle| {
        rig.host.disk(disk).unmap(Lba(0), 8).unwrap();
        handle.unit(|unit| unit.raise(Sense::RESET));
        rig.check(disk, 100, 1);
        assert_eq!(rig.flush(disk), Err(BlockError::WritesMayBeLost));
        assert_eq!(rig.flush(disk), Ok(()));
    });
}

#[test]
fn write_same_is_kept_from_a_plain_bulk_only_disk_and_unmap_is_not() {
    let (mut rig, disk, handle) = bulk_only(Rig::default(), disk(Provisioning::default()));
    let block = rig.machine.buffer(512, 0);
    let same = rig.host.disk(disk).write_same(Lba(0), 8, &block);
    assert_eq!(same, Err(UNKNOWN));
    assert!(handle.sent(WRITE_SAME).is_empty());
    rig.host.disk(disk).unmap(Lba(0), 8).unwrap();
    assert!(matches!(handle, Handle::BulkOnly(_)));
    assert_eq!(handle.block(7), [0; 512]);
}

/// A good status without the list, or the block, having been taken.
#[test]
fn blocks_are_not_given_back_or_written_alike_by_a_disk_that_did_not_take_what_it_was_sent() {
    for link in LINKS {
        for opcode in [UNMAP, WRITE_SAME] {
            let skips = on(opcode, What::SkipData).times(u32::MAX);
            let unit = disk(Provisioning::default());
            let script = UasScript::new().speed(*link).unit(unit).fault(skips);
            let mut rig = Rig::default();
            let disk = rig.disk(port_for(*link), script.build());
            let result = match opcode {
                UNMAP => rig.host.disk(disk).unmap(Lba(100), 50),
                _ => {
                    let block = rig.machine.buffer(512, 0);
                    rig.host.disk(disk).write_same(Lba(100), 50, &block)
                }
            };
            let short = BlockError::Short { moved: 0 };
            assert_eq!(result, Err(short), "{link:?}, {opcode:#04x}");
        }
    }
}
