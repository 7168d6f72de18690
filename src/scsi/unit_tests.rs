//! How requests become commands, and what each end of a command makes of them.

use super::*;
use crate::block::queue::RequestState;
use crate::dma::{MapError, RawBuffer};
use crate::scsi::capacity::Capacity;
use crate::scsi::cdb::DataPhase;
use crate::scsi::details::Details;
use crate::scsi::transport::{Fault, TransportError};
use crate::time::Duration;

const LIMIT: u32 = 240 * 512;
const POLICY: Policy = Policy::DEFAULT;

fn found(last_block: u64, block_length: u32) -> Found {
    Found {
        inquiry: Inquiry::parse(&[0, 0x80, 6, 2, 31]).unwrap(),
        capacity: Capacity::new(last_block, block_length).unwrap(),
        write_protected: false,
        details: Details::default(),
    }
}

/// A disk of so many blocks of 512 bytes.
fn disk(blocks: u64) -> UnitEntry {
    unit(UnitState::Ready(found(blocks - 1, 512)))
}

fn unit(state: UnitState) -> UnitEntry {
    UnitEntry {
        lun: 3,
        state,
        transfer_bytes: LIMIT,
        ..UnitEntry::EMPTY
    }
}

fn request(operation: Operation, blocks: u64, memory: &mut [u8]) -> RequestSlot {
    RequestSlot {
        state: RequestState::Waiting,
        operation,
        memory: Some(RawBuffer::of(memory)),
        blocks,
        ..RequestSlot::EMPTY
    }
}

fn flush() -> RequestSlot {
    RequestSlot {
        state: RequestState::Waiting,
        ..RequestSlot::EMPTY
    }
}

fn sense(key: u8, asc: u8, ascq: u8) -> Sense {
    Sense::parse(&[
        0xf0, 0, key, 0, 0, 0, 77, 10, 0, 0, 0, 0, asc, ascq, 0, 0, 0, 0,
    ])
}

fn good(moved: u32) -> Outcome {
    let status = Status::Good;
    Ok(Completion { status, moved })
}

fn check(sense: Sense) -> Outcome {
    let status = Status::Check(sense);
    Ok(Completion { status, moved: 0 })
}

/// How often a command that always ends so is issued, and how its request ends.
fn persistently(operation: Operation, outcome: Outcome) -> (u32, Result<(), BlockError>) {
    let mut memory = [0; 1024];
    let mut entry = disk(100);
    let mut slot = match operation {
        Operation::Flush => flush(),
        operation => request(operation, 2, &mut memory),
    };
    for issued in 1..100 {
        entry.command_for(&mut slot, &POLICY).unwrap();
        if let Some(result) = entry.request_ended(slot.piece, &mut slot, outcome) {
            return (issued, result);
        }
    }
    panic!("no end of {operation:?} with {outcome:?}");
}

mod a_request {
    use super::*;

    /// Two ways to the same answer: the short one of a unit that is ready, and what callers see.
    #[test]
    fn a_ready_unit_admits_what_its_geometry_says_and_nothing_else() {
        let unit = disk(100);
        let geometry = unit.geometry().unwrap();
        for lba in [0, 1, 99, 100, u64::MAX - 1, u64::MAX].map(Lba) {
            for length in [0, 1, 511, 512, 513, 1024, 100 * 512, 101 * 512, usize::MAX] {
                let admitted = unit.admit_move(Operation::Read(lba), lba, length);
                assert_eq!(admitted, geometry.extent(lba, length), "{lba:?}, {length}");
                let admitted = unit.admit_move(Operation::Write(lba), lba, length);
                assert_eq!(admitted, geometry.extent(lba, length), "{lba:?}, {length}");
            }
        }
    }

    /// Bridges are known that corrupt data in silence above their limit.
    #[test]
    fn is_cut_at_the_limit_and_every_piece_has_its_own_memory() {
        let mut memory = vec![0; 500 * 512];
        let start = memory.as_ptr() as usize;
        let mut entry = disk(1000);
        let mut slot = request(Operation::Read(Lba(100)), 500, &mut memory);
        let mut pieces = Vec::new();
        loop {
            let command = entry.command_for(&mut slot, &POLICY).unwrap();
            assert_eq!(command.lun, 3);
            assert_eq!(command.timeout, POLICY.read_write);
            let DataPlace::Caller(place) = command.data else {
                panic!("not the caller's memory")
            };
            let length = command.command.data.length();
            assert_eq!(place.length, length as usize);
            pieces.push((place.start.addr().get() - start, length));
            let lba = 100 + (place.start.addr().get() - start) / 512;
            let bytes = command.command.cdb.to_bytes();
            assert_eq!(bytes[0], 0x28);
            assert_eq!(bytes[2..6], (lba as u32).to_be_bytes());
            if let Some(result) = entry.request_ended(slot.piece, &mut slot, good(length)) {
                assert_eq!(result, Ok(()));
                break;
            }
        }
        let expected = [(0, LIMIT), (240 * 512, LIMIT), (480 * 512, 20 * 512)];
        assert_eq!(pieces, expected);
    }

    #[test]
    fn of_blocks_longer_than_the_limit_goes_one_by_one() {
        let mut memory = vec![0; 2 * 65_536];
        let mut entry = unit(UnitState::Ready(found(9, 65_536)));
        entry.transfer_bytes = 4096;
        let mut slot = request(Operation::Write(Lba(1)), 2, &mut memory);
        for end in [None, Some(Ok(()))] {
            let command = entry.command_for(&mut slot, &POLICY).unwrap();
            assert_eq!(command.command.data, DataPhase::Out(65_536));
            assert_eq!(
                entry.request_ended(slot.piece, &mut slot, good(65_536)),
                end
            );
        }
    }

    /// Bridges are known that wrap at 2 TiB: nothing is sent in the short form that does not fit in it.
    #[test]
    fn beyond_32_bits_is_issued_with_16_bytes_and_the_block_before_with_10() {
        let mut memory = [0; 512];
        let mut entry = disk(1 << 33);
        for (lba, code) in [(0xffff_ffff, 0x28), (0x1_0000_0000, 0x88)] {
            let mut slot = request(Operation::Read(Lba(lba)), 1, &mut memory);
            let command = entry.command_for(&mut slot, &POLICY).unwrap();
            assert_eq!(command.command.cdb.operation_code(), code, "{lba:x}");
        }
    }

    #[test]
    fn whose_memory_is_too_short_is_never_issued() {
        let mut memory = [0; 512];
        let mut entry = disk(100);
        let mut slot = request(Operation::Read(Lba(0)), 2, &mut memory);
        assert!(entry.command_for(&mut slot, &POLICY).is_err());
        slot.memory = None;
        assert!(entry.command_for(&mut slot, &POLICY).is_err());
    }

    #[test]
    fn gets_no_command_where_the_unit_is_no_disk() {
        let inquiry = found(9, 512).inquiry;
        let bring_up = UnitState::BringUp(BringUp::new(Instant::NEVER), Next::Ended);
        let table = [
            (UnitState::Free, BlockError::Disconnected),
            (bring_up, BlockError::NotReady),
            (UnitState::Empty(inquiry), BlockError::NoMedium),
            (
                UnitState::Failed(BringUpError::NoInquiryData),
                BlockError::NotReady,
            ),
        ];
        for (state, error) in table {
            let mut entry = unit(state);
            let refused = entry.command_for(&mut flush(), &POLICY);
            assert_eq!(refused.err(), Some(error));
            assert_eq!(entry.geometry(), Err(error));
        }
    }
}

mod a_failed_command {
    use super::*;

    #[test]
    fn is_issued_again_as_its_sense_deserves() {
        let device = |key, asc, ascq| BlockError::Device(SenseCode { key, asc, ascq });
        let medium = |key, asc, ascq| BlockError::Medium {
            lba: Some(Lba(77)),
            sense: SenseCode { key, asc, ascq },
        };
        let table = [
            (sense(6, 0x29, 0), 4, device(6, 0x29, 0)),
            (sense(6, 0x2a, 1), 4, device(6, 0x2a, 1)),
            (sense(6, 0x2a, 9), 4, device(6, 0x2a, 9)),
            (sense(0xb, 0, 0), 4, device(0xb, 0, 0)),
            (sense(2, 4, 1), 4, device(2, 4, 1)),
            (sense(2, 4, 2), 4, device(2, 4, 2)),
            (sense(4, 0x44, 0), 4, device(4, 0x44, 0)),
            (sense(3, 0x11, 0), 4, medium(3, 0x11, 0)),
            (sense(0, 0, 0), 2, device(0, 0, 0)),
            (sense(6, 0x28, 0), 1, BlockError::MediumChanged),
            (sense(2, 0x3a, 0), 1, BlockError::NoMedium),
            (sense(7, 0x27, 0), 1, BlockError::WriteProtected),
            (sense(5, 0x21, 0), 1, device(5, 0x21, 0)),
            (sense(5, 0x24, 0), 1, device(5, 0x24, 0)),
            (sense(5, 0x25, 0), 1, device(5, 0x25, 0)),
            (sense(2, 4, 3), 1, device(2, 4, 3)),
            (sense(8, 0, 0), 1, device(8, 0, 0)),
        ];
        for (sense, issued, error) in table {
            for operation in [Operation::Read(Lba(0)), Operation::Write(Lba(0))] {
                let end = persistently(operation, check(sense));
                assert_eq!(end, (issued, Err(error)), "{sense}");
            }
        }
    }

    #[test]
    fn counts_as_done_when_the_disk_recovered() {
        let status = Status::Check(sense(1, 0x17, 1));
        let whole = Ok(Completion {
            status,
            moved: 1024,
        });
        let end = persistently(Operation::Read(Lba(0)), whole);
        assert_eq!(end, (1, Ok(())));
        let part = Ok(Completion { status, moved: 512 });
        let end = persistently(Operation::Read(Lba(0)), part);
        assert_eq!(end, (2, Err(BlockError::Short { moved: 512 })));
    }

    #[test]
    fn has_its_tries_anew_for_each_piece() {
        let mut memory = vec![0; 480 * 512];
        let mut entry = disk(1000);
        let mut slot = request(Operation::Write(Lba(0)), 480, &mut memory);
        for end in [None, Some(Ok(()))] {
            for _ in 0..3 {
                entry.command_for(&mut slot, &POLICY).unwrap();
                let failed = entry.request_ended(slot.piece, &mut slot, check(sense(0xb, 0, 0)));
                assert_eq!(failed, None);
            }
            entry.command_for(&mut slot, &POLICY).unwrap();
            assert_eq!(entry.request_ended(slot.piece, &mut slot, good(LIMIT)), end);
        }
    }

    #[test]
    fn is_issued_again_for_the_same_blocks() {
        let mut memory = vec![0; 480 * 512];
        let mut entry = disk(1000);
        let mut slot = request(Operation::Write(Lba(7)), 480, &mut memory);
        entry.command_for(&mut slot, &POLICY).unwrap();
        entry.request_ended(slot.piece, &mut slot, good(LIMIT));
        let first = entry.command_for(&mut slot, &POLICY).unwrap();
        entry.request_ended(slot.piece, &mut slot, check(sense(6, 0x29, 0)));
        let again = entry.command_for(&mut slot, &POLICY).unwrap();
        assert_eq!(first.command, again.command);
    }
}

#[test]
fn a_command_that_moved_too_little_is_issued_once_more_and_never_called_done() {
    for moved in [0, 512, 1023] {
        let end = persistently(Operation::Read(Lba(0)), good(moved));
        assert_eq!(end, (2, Err(BlockError::Short { moved })));
    }
}

#[test]
fn a_transport_that_fails_ends_the_request_since_the_ladder_has_done_what_it_could() {
    let table = [
        (TransportError::Timeout, 1, BlockError::Timeout),
        (
            TransportError::Protocol(Fault::BadStatus),
            1,
            BlockError::Protocol,
        ),
        (
            TransportError::Broken(Fault::Timeout),
            1,
            BlockError::Broken,
        ),
        (TransportError::Disconnected, 1, BlockError::Disconnected),
        (TransportError::Refused, 1, BlockError::Refused),
        (
            TransportError::Memory(MapError::NoBounce),
            1,
            BlockError::Memory(MapError::NoBounce),
        ),
    ];
    for (error, issued, result) in table {
        for operation in [
            Operation::Read(Lba(0)),
            Operation::Write(Lba(0)),
            Operation::Flush,
        ] {
            let end = persistently(operation, Err(error));
            assert_eq!(end, (issued, Err(result)), "{operation:?}");
        }
    }
}

mod a_flush {
    use super::*;

    #[test]
    fn has_no_data_and_a_minute() {
        let command = disk(100).command_for(&mut flush(), &POLICY).unwrap();
        assert_eq!(command.command.cdb.operation_code(), 0x35);
        assert_eq!(command.command.data, DataPhase::None);
        assert_eq!(command.timeout, Duration::from_secs(60));
    }

    #[test]
    fn ends_when_the_disk_says_so() {
        assert_eq!(persistently(Operation::Flush, good(0)), (1, Ok(())));
    }

    #[test]
    fn that_the_disk_does_not_know_is_no_error_and_shows_in_the_geometry() {
        for refusal in [sense(5, 0x20, 0), sense(5, 0x24, 0)] {
            let mut entry = disk(100);
            assert_eq!(entry.geometry().unwrap().flush, FlushSupport::Command);
            let mut slot = flush();
            entry.command_for(&mut slot, &POLICY).unwrap();
            let end = entry.request_ended(slot.piece, &mut slot, check(refusal));
            assert_eq!(end, Some(Ok(())));
            let support = entry.geometry().unwrap().flush;
            assert_eq!(support, FlushSupport::NoFlushCommand);
        }
    }

    /// What it holds now is not on the medium, whatever it says.
    #[test]
    fn that_the_disk_has_carried_out_before_is_not_unknown_to_it_later() {
        for refusal in [sense(5, 0x20, 0), sense(5, 0x24, 0)] {
            let mut entry = disk(100);
            let mut slot = flush();
            entry.command_for(&mut slot, &POLICY).unwrap();
            let end = entry.request_ended(slot.piece, &mut slot, good(0));
            assert_eq!(end, Some(Ok(())));
            let mut slot = flush();
            entry.command_for(&mut slot, &POLICY).unwrap();
            let end = entry.request_ended(slot.piece, &mut slot, check(refusal));
            let said = SenseCode::from(&refusal);
            assert_eq!(end, Some(Err(BlockError::Device(said))));
            assert_eq!(entry.geometry().unwrap().flush, FlushSupport::Command);
        }
    }

    /// A device that knows the command may mind other things: what it holds is not on the medium.
    #[test]
    fn that_the_disk_minds_for_another_reason_is_an_error_and_leaves_it_dirty() {
        for (asc, ascq) in [
            (0x00, 0),
            (0x20, 2),
            (0x24, 1),
            (0x26, 0),
            (0x2c, 0),
            (0x49, 0),
            (0x55, 3),
        ] {
            let mut entry = disk(100);
            entry.durability.write_begins();
            let mut slot = flush();
            entry.command_for(&mut slot, &POLICY).unwrap();
            let end = entry.request_ended(slot.piece, &mut slot, check(sense(5, asc, ascq)));
            let failed = BlockError::Device(SenseCode { key: 5, asc, ascq });
            assert_eq!(end, Some(Err(failed)));
            let support = entry.geometry().unwrap().flush;
            assert_eq!(support, FlushSupport::Command, "5/{asc:02x}/{ascq:02x}");
            assert!(entry.durability.is_dirty());
        }
    }

    #[test]
    fn that_fails_is_an_error() {
        let (issued, end) = persistently(Operation::Flush, check(sense(3, 0x0c, 0)));
        assert_eq!(issued, 4);
        assert!(matches!(end, Err(BlockError::Medium { .. })), "{end:?}");
        let (issued, end) = persistently(Operation::Flush, check(sense(4, 0, 0)));
        assert_eq!(issued, 4);
        assert!(matches!(end, Err(BlockError::Device(_))), "{end:?}");
    }
}

#[test]
fn a_write_that_is_the_only_one_since_the_last_flush_has_none_beside_it() {
    let (read, write) = (Operation::Read(Lba(0)), Operation::Write(Lba(0)));
    let mut entry = disk(100);
    for operation in [None, Some(read), Some(write), Some(Operation::Flush)] {
        assert!(!entry.has_unflushed_beside(operation), "it is clean");
    }
    entry.durability.write_begins();
    assert!(!entry.has_unflushed_beside(Some(write)));
    for operation in [None, Some(read), Some(Operation::Flush)] {
        assert!(entry.has_unflushed_beside(operation), "{operation:?}");
    }
    entry.durability.write_begins();
    assert!(entry.has_unflushed_beside(Some(write)));
    // What was under way at a loss is not counted any more, and may be the one that has ended now.
    entry.durability.interrupted();
    assert!(!entry.has_unflushed_beside(Some(write)), "it is clean");
    entry.durability.write_begins();
    assert!(entry.has_unflushed_beside(Some(write)));
}

#[test]
fn the_geometry_is_what_the_disk_said() {
    let found = Found {
        write_protected: true,
        ..found(999, 4096)
    };
    let geometry = unit(UnitState::Ready(found)).geometry().unwrap();
    assert_eq!(geometry.blocks, 1000);
    assert_eq!(geometry.block_bytes, 4096);
    assert!(!geometry.writable);
    assert!(geometry.removable);
    assert_eq!(geometry.transfer_blocks, 30);
}
