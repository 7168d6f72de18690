//! What rare requests are refused, how they are cut, and what their ends mean.

use core::num::{NonZeroU32, NonZeroU64};

use super::*;
use crate::block::ata::AtaCommand;
use crate::block::queue::RequestState;
use crate::dma::RawBuffer;
use crate::scsi::capacity::Capacity;
use crate::scsi::cdb::DataPhase;
use crate::scsi::details::Details;
use crate::scsi::inquiry::Inquiry;
use crate::scsi::transport::{Completion, Outcome, Request, Status};
use crate::scsi::vpd::{Provisioning, ProvisioningType};

const POLICY: Policy = Policy::DEFAULT;
const UNKNOWN: BlockError = BlockError::Unsupported(SenseCode::UNKNOWN_COMMAND);
const BAD_FIELD: BlockError = BlockError::Unsupported(SenseCode::BAD_FIELD);

/// A trusted disk of 1000 blocks of 512 bytes that has everything, without limits that matter.
fn details() -> Details {
    Details {
        provisioning: Some(Provisioning {
            unmap: true,
            write_same_16: false,
            write_same_10: false,
            reads_zero: true,
            kind: ProvisioningType::Thin,
        }),
        limits: BlockLimits {
            maximum_unmap: NonZeroU32::new(u32::MAX),
            maximum_unmap_ranges: NonZeroU32::new(1),
            ..BlockLimits::default()
        },
        takes_forced_writes: true,
        ..Details::default()
    }
}

fn disk(details: Details) -> UnitEntry {
    UnitEntry {
        state: UnitState::Ready(Found {
            inquiry: Inquiry::parse(&[0, 0, 6, 2, 31]).unwrap(),
            capacity: Capacity::new(999, 512).unwrap(),
            write_protected: false,
            details,
        }),
        transfer_bytes: 240 * 512,
        manner: Manner::Free,
        ..UnitEntry::EMPTY
    }
}

fn admit(unit: &UnitEntry, operation: Operation, length: usize) -> Result<u64, BlockError> {
    unit.admit(operation, &unit.geometry().unwrap(), length)
}

fn unmap_of(lba: u64, blocks: u32) -> Operation {
    Operation::Unmap {
        lba: Lba(lba),
        blocks,
    }
}

fn write_same_of(lba: u64, blocks: u32) -> Operation {
    Operation::WriteSame {
        lba: Lba(lba),
        blocks,
    }
}

const IDENTIFY: Operation = Operation::Ata(AtaCommand::IDENTIFY_DEVICE);

fn slot(operation: Operation, blocks: u64, memory: &mut [u8]) -> RequestSlot {
    RequestSlot {
        state: RequestState::Waiting,
        operation,
        memory: Some(RawBuffer::of(memory)),
        blocks,
        ..RequestSlot::EMPTY
    }
}

fn good(moved: u32) -> Outcome {
    let status = Status::Good;
    Ok(Completion { status, moved })
}

fn check(key: u8, asc: u8, ascq: u8) -> Outcome {
    let sense = Sense::parse(&[
        0x70, 0, key, 0, 0x50, 0, 0, 10, 0, 0, 0x4f, 0xc2, asc, ascq, 0, 0, 0, 0,
    ]);
    let status = Status::Check(sense);
    Ok(Completion { status, moved: 0 })
}

/// The ranges of all commands of a request whose every command ends well.
fn ranges(unit: &mut UnitEntry, operation: Operation, blocks: u64) -> Vec<(u64, u64)> {
    let mut memory = [0; 512];
    let mut slot = slot(operation, blocks, &mut memory);
    let mut all = Vec::new();
    loop {
        let request = unit.command_for(&mut slot, &POLICY).unwrap();
        all.push(range_of(&request));
        let moved = request.command.data.length();
        if let Some(result) = unit.request_ended(slot.piece, &mut slot, good(moved)) {
            assert_eq!(result, Ok(()));
            return all;
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn range_of(request: &Request) -> (u64, u64) {
    let cdb = request.command.cdb.to_bytes();
    match request.data {
        DataPlace::List(list) if cdb[0] == 0x42 => (number(&list[8..16]), number(&list[16..20])),
        _ => (number(&cdb[2..10]), number(&cdb[10..14])),
    }
}

mod what_a_disk_does_not_have {
    use super::*;

    #[test]
    fn unmap_needs_its_flag_and_both_limits() {
        let admitted = |change: &dyn Fn(&mut Details)| {
            let mut details = details();
            change(&mut details);
            admit(&disk(details), unmap_of(1, 2), 0)
        };
        assert_eq!(admitted(&|_| {}), Ok(2));
        assert_eq!(admitted(&|it| it.provisioning = None), Err(UNKNOWN));
        assert_eq!(admitted(&|it| it.limits.maximum_unmap = None), Err(UNKNOWN));
        assert_eq!(
            admitted(&|it| it.limits.maximum_unmap_ranges = None),
            Err(UNKNOWN)
        );
    }

    #[test]
    fn a_disk_that_can_give_back_by_write_same_alone_needs_what_that_needs() {
        let provisioning = details().provisioning.map(|it| Provisioning {
            unmap: false,
            write_same_16: true,
            ..it
        });
        let mut unit = disk(Details {
            provisioning,
            limits: BlockLimits {
                maximum_write_same: NonZeroU64::new(100),
                unmap_granularity: NonZeroU32::new(8),
                ..BlockLimits::default()
            },
            ..details()
        });
        assert_eq!(admit(&unit, unmap_of(1, 2), 0), Ok(2));
        let cut = ranges(&mut unit, unmap_of(4, 250), 250);
        assert_eq!(cut, [(4, 100), (104, 96), (200, 54)]);
        unit.quirks = Quirks::NO_SAME;
        assert_eq!(admit(&unit, unmap_of(1, 2), 0), Err(UNKNOWN));
        unit.quirks = Quirks::empty();
        unit.manner = Manner::Cautious;
        assert_eq!(admit(&unit, unmap_of(1, 2), 0), Err(UNKNOWN));
    }

    /// It has the time of a flush for what may be a terabyte.
    #[test]
    fn what_one_write_same_writes_can_be_written_in_its_time_whatever_the_disk_says() {
        let mut unit = disk(Details {
            limits: BlockLimits {
                maximum_write_same: NonZeroU64::new(u32::MAX.into()),
                ..BlockLimits::default()
            },
            ..Details::default()
        });
        let blocks = 1 << 22;
        let cut = ranges(&mut unit, write_same_of(0, blocks), blocks.into());
        assert_eq!(cut, [(0, 1 << 21), (1 << 21, 1 << 21)]);
    }

    #[test]
    fn write_same_goes_to_those_that_say_that_they_have_it_or_to_all_that_are_trusted() {
        let says_so = |unmap: bool, limit: u64| {
            let provisioning = details().provisioning.map(|it| Provisioning {
                write_same_16: unmap,
                ..it
            });
            let limits = BlockLimits {
                maximum_write_same: NonZeroU64::new(limit),
                ..BlockLimits::default()
            };
            disk(Details {
                provisioning,
                limits,
                ..Details::default()
            })
        };
        let result = |unit: &UnitEntry| admit(unit, write_same_of(1, 2), 512);
        let mut silent = says_so(false, 0);
        assert_eq!(result(&silent), Err(UNKNOWN));
        assert_eq!(result(&says_so(true, 0)), Ok(2));
        assert_eq!(result(&says_so(false, 64)), Ok(2));
        silent.is_trusted = true;
        assert_eq!(result(&silent), Ok(2));
        silent.lacks_write_same = true;
        assert_eq!(result(&silent), Err(UNKNOWN));
    }

    #[test]
    fn write_same_needs_trust_and_no_policy_against_it() {
        let mut unit = disk(details());
        unit.is_trusted = true;
        assert_eq!(admit(&unit, write_same_of(1, 2), 512), Ok(2));
        unit.quirks = Quirks::NO_SAME;
        assert_eq!(admit(&unit, write_same_of(1, 2), 512), Err(UNKNOWN));
        unit.quirks = Quirks::all().difference(Quirks::NO_SAME);
        assert_eq!(admit(&unit, write_same_of(1, 2), 512), Ok(2));
        unit.manner = Manner::Cautious;
        assert_eq!(admit(&unit, write_same_of(1, 2), 512), Err(UNKNOWN));
    }

    #[test]
    fn a_forced_write_needs_a_disk_that_takes_it() {
        let forced = Operation::WriteForced(Lba(1));
        assert_eq!(admit(&disk(details()), forced, 1024), Ok(2));
        assert_eq!(
            admit(&disk(Details::default()), forced, 1024),
            Err(BAD_FIELD)
        );
    }

    #[test]
    fn ata_commands_end_as_linux_ends_them_where_a_policy_forbids_them() {
        let mut unit = disk(details());
        assert_eq!(admit(&unit, IDENTIFY, 512), Ok(0));
        unit.quirks = Quirks::NO_ATA_1X;
        assert_eq!(admit(&unit, IDENTIFY, 512), Err(BAD_FIELD));
        unit.quirks = Quirks::all().difference(Quirks::NO_ATA_1X);
        assert_eq!(admit(&unit, IDENTIFY, 512), Ok(0));
    }

    #[test]
    fn a_device_that_had_to_be_reset_for_an_ata_command_gets_no_other() {
        let mut unit = disk(details());
        unit.note_harm(Operation::Read(Lba(0)));
        assert_eq!(admit(&unit, IDENTIFY, 512), Ok(0));
        unit.note_harm(IDENTIFY);
        assert_eq!(admit(&unit, IDENTIFY, 512), Err(BAD_FIELD));
    }

    #[test]
    fn an_ata_command_is_not_issued_again_after_a_reset() {
        let mut memory = [0; 512];
        let mut unit = disk(details());
        let mut slot = slot(IDENTIFY, 0, &mut memory);
        unit.command_for(&mut slot, &POLICY).unwrap();
        unit.note_harm(IDENTIFY);
        let again = unit.command_for(&mut slot, &POLICY);
        assert!(matches!(again, Err(BlockError::Timeout)));
    }

    #[test]
    fn an_optical_drive_gets_no_ata_command() {
        let mut unit = disk(details());
        let UnitState::Ready(found) = &mut unit.state else {
            unreachable!()
        };
        found.inquiry = Inquiry::parse(&[5, 0x80, 6, 2, 31]).unwrap();
        assert_eq!(admit(&unit, IDENTIFY, 512), Err(UNKNOWN));
    }

    #[test]
    fn a_write_protected_disk_is_left_alone() {
        let mut unit = disk(details());
        let UnitState::Ready(found) = &mut unit.state else {
            unreachable!()
        };
        found.write_protected = true;
        for operation in [
            unmap_of(1, 2),
            write_same_of(1, 2),
            Operation::WriteForced(Lba(1)),
        ] {
            let refused = admit(&unit, operation, 512);
            assert_eq!(refused, Err(BlockError::WriteProtected));
        }
        assert_eq!(admit(&unit, IDENTIFY, 512), Ok(0));
    }

    #[test]
    fn ranges_and_buffers_that_do_not_fit_are_refused() {
        let unit = disk(details());
        for operation in [unmap_of(999, 2), unmap_of(5, 0), write_same_of(1000, 1)] {
            let refused = admit(&unit, operation, 512);
            assert!(
                matches!(refused, Err(BlockError::OutOfRange { .. })),
                "{refused:?}"
            );
        }
        for (operation, length) in [
            (write_same_of(1, 2), 1024),
            (write_same_of(1, 2), 0),
            (IDENTIFY, 511),
        ] {
            let refused = admit(&unit, operation, length);
            assert!(matches!(refused, Err(BlockError::BufferLength { .. })));
        }
    }
}

mod ranges {
    use super::*;

    #[test]
    fn unmap_is_cut_at_its_limit() {
        let mut unit = disk(Details {
            limits: BlockLimits {
                maximum_unmap: NonZeroU32::new(100),
                ..details().limits
            },
            ..details()
        });
        let cut = ranges(&mut unit, unmap_of(7, 250), 250);
        assert_eq!(cut, [(7, 100), (107, 100), (207, 50)]);
    }

    #[test]
    fn unmap_is_cut_at_the_edges_of_granules() {
        let mut unit = disk(Details {
            limits: BlockLimits {
                maximum_unmap: NonZeroU32::new(100),
                unmap_granularity: NonZeroU32::new(8),
                unmap_alignment: Some(3),
                ..details().limits
            },
            ..details()
        });
        let cut = ranges(&mut unit, unmap_of(10, 230), 230);
        assert_eq!(cut, [(10, 97), (107, 96), (203, 37)]);
        for (lba, _) in &cut[1..] {
            assert_eq!((lba - 3) % 8, 0);
        }
    }

    #[test]
    fn a_limit_below_a_granule_does_not_stop_it() {
        let limits = BlockLimits {
            unmap_granularity: NonZeroU32::new(64),
            ..BlockLimits::default()
        };
        assert_eq!(whole_granules(&limits, 1, 100, 16), 16);
    }

    #[test]
    fn write_same_is_cut_at_its_limit_or_at_the_usual_one() {
        let mut limited = disk(Details {
            limits: BlockLimits {
                maximum_write_same: NonZeroU64::new(64),
                ..BlockLimits::default()
            },
            ..Details::default()
        });
        let cut = ranges(&mut limited, write_same_of(3, 130), 130);
        assert_eq!(cut, [(3, 64), (67, 64), (131, 2)]);
        assert_eq!(write_same_limit(&BlockLimits::default()), 65_535);
    }

    #[test]
    fn every_piece_makes_the_disk_dirty() {
        for operation in [unmap_of(3, 4), write_same_of(3, 4)] {
            let mut unit = disk(details());
            ranges(&mut unit, operation, 4);
            assert!(unit.durability.is_dirty());
        }
    }
}

mod forced_writes {
    use super::*;

    #[test]
    fn carry_their_bit_and_leave_a_clean_disk_clean() {
        let mut memory = [0; 1024];
        let mut unit = disk(details());
        let mut slot = slot(Operation::WriteForced(Lba(9)), 2, &mut memory);
        let request = unit.command_for(&mut slot, &POLICY).unwrap();
        assert_eq!(request.command.cdb.to_bytes()[..2], [0x2a, 0x08]);
        let ended = unit.request_ended(slot.piece, &mut slot, good(1024));
        assert_eq!(ended, Some(Ok(())));
        assert!(!unit.durability.is_dirty());
    }

    #[test]
    fn are_not_tried_again_on_a_disk_that_minds_them() {
        let mut memory = [0; 512];
        let mut unit = disk(details());
        let forced = Operation::WriteForced(Lba(9));
        let mut slot = slot(forced, 1, &mut memory);
        unit.command_for(&mut slot, &POLICY).unwrap();
        let ended = unit.request_ended(slot.piece, &mut slot, check(5, 0x24, 0));
        assert_eq!(ended, Some(Err(BAD_FIELD)));
        assert_eq!(admit(&unit, forced, 512), Err(BAD_FIELD));
    }
}

mod ata_commands {
    use super::*;

    /// Carries out a command with these ends, until its request has ended: the operation codes, and
    /// the end.
    fn run(
        unit: &mut UnitEntry,
        command: AtaCommand,
        ends: &[Outcome],
    ) -> (Vec<u8>, Result<(), BlockError>) {
        let mut memory = [0; 512];
        let mut slot = slot(Operation::Ata(command), 0, &mut memory);
        let mut codes = Vec::new();
        for end in ends {
            let request = unit.command_for(&mut slot, &POLICY).unwrap();
            codes.push(request.command.cdb.operation_code());
            if let Some(result) = unit.request_ended(slot.piece, &mut slot, *end) {
                return (codes, result);
            }
        }
        panic!("no end after {codes:x?}");
    }

    const UNKNOWN_OPCODE: (u8, u8, u8) = (5, 0x20, 0);

    fn fails((key, asc, ascq): (u8, u8, u8)) -> Outcome {
        check(key, asc, ascq)
    }

    #[test]
    fn the_short_form_is_tried_when_the_long_one_is_unknown_and_kept_when_it_works() {
        let mut unit = disk(details());
        let ends = [fails(UNKNOWN_OPCODE), good(512)];
        let (codes, result) = run(&mut unit, AtaCommand::IDENTIFY_DEVICE, &ends);
        assert_eq!((codes, result), (vec![0x85, 0xa1], Ok(())));
        let (codes, _) = run(&mut unit, AtaCommand::IDENTIFY_DEVICE, &[good(512)]);
        assert_eq!(codes, [0xa1]);
    }

    #[test]
    fn a_bridge_that_knows_neither_form_has_none_of_this() {
        let mut unit = disk(details());
        let ends = [fails(UNKNOWN_OPCODE); 2];
        let (codes, result) = run(&mut unit, AtaCommand::IDENTIFY_DEVICE, &ends);
        assert_eq!((codes, result), (vec![0x85, 0xa1], Err(UNKNOWN)));
    }

    #[test]
    fn a_bridge_that_has_carried_one_out_minds_just_the_command() {
        let mut unit = disk(details());
        let (_, result) = run(&mut unit, AtaCommand::IDENTIFY_DEVICE, &[good(512)]);
        assert_eq!(result, Ok(()));
        let refused = run(&mut unit, AtaCommand::SMART_READ_DATA, &[check(5, 0x24, 0)]);
        assert_eq!(refused, (vec![0x85], Err(BAD_FIELD)));
    }

    #[test]
    fn registers_are_kept_and_forgotten_with_the_next_command() {
        let mut unit = disk(details());
        let status = AtaCommand::SMART_RETURN_STATUS;
        let (_, result) = run(&mut unit, status, &[check(1, 0x00, 0x1d)]);
        assert_eq!(result, Ok(()));
        assert_eq!(unit.ata.registers.unwrap().lba, [0, 0x4f, 0xc2]);
        let (_, result) = run(&mut unit, status, &[good(0)]);
        assert_eq!((result, unit.ata.registers), (Ok(()), None));
    }

    #[test]
    fn half_a_sector_is_none() {
        let mut unit = disk(details());
        let (_, result) = run(&mut unit, AtaCommand::SMART_READ_DATA, &[good(256)]);
        assert_eq!(result, Err(BlockError::Short { moved: 256 }));
    }

    #[test]
    fn an_attention_is_no_answer() {
        let mut unit = disk(details());
        let ends = [check(6, 0x29, 0), good(512)];
        let (codes, result) = run(&mut unit, AtaCommand::IDENTIFY_DEVICE, &ends);
        assert_eq!((codes, result), (vec![0x85, 0x85], Ok(())));
    }

    #[test]
    fn a_command_without_data_needs_no_memory() {
        let mut unit = disk(details());
        let mut slot = RequestSlot {
            operation: Operation::Ata(AtaCommand::SMART_RETURN_STATUS),
            ..RequestSlot::EMPTY
        };
        let request = unit.command_for(&mut slot, &POLICY).unwrap();
        assert_eq!(request.command.data, DataPhase::None);
    }
}
