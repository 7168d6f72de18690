//! The information units against the tables of UAS §6.2, and against devices that send anything.

use super::*;
use crate::scsi::cdb;
use crate::scsi::sense::SenseKey;

fn tag(number: u16) -> Tag {
    Tag::new(number).unwrap()
}

fn sense_unit(status: u8, announced: u16, data: &[u8]) -> std::vec::Vec<u8> {
    let mut bytes = std::vec![0; 16];
    bytes[0] = 0x03;
    bytes[2..4].copy_from_slice(&0x0102_u16.to_be_bytes());
    bytes[6] = status;
    bytes[14..16].copy_from_slice(&announced.to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

#[test]
fn a_command_unit_has_the_bytes_of_its_table() {
    let unit = CommandUnit {
        tag: tag(0x0102),
        lun: 3,
        attribute: Attribute::Simple,
        priority: 0,
        cdb: cdb::inquiry().cdb,
    };
    let expected = [
        0x01, 0, 1, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0x12, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0,
    ];
    assert_eq!(unit.to_bytes(), expected);
}

#[test]
fn the_attribute_stands_in_the_low_bits_of_byte_4() {
    let codes = [
        (Attribute::Simple, 0),
        (Attribute::HeadOfQueue, 1),
        (Attribute::Ordered, 2),
        (Attribute::Aca, 4),
    ];
    for (attribute, code) in codes {
        let unit = CommandUnit {
            tag: tag(1),
            lun: 0,
            attribute,
            priority: 0,
            cdb: cdb::test_unit_ready().cdb,
        };
        assert_eq!(unit.to_bytes()[4], code);
    }
}

#[test]
fn the_priority_stands_in_the_four_bits_above_the_attribute() {
    for (priority, byte) in [(0, 0x02), (1, 0x0a), (15, 0x7a), (0xf3, 0x1a)] {
        let unit = CommandUnit {
            tag: tag(1),
            lun: 0,
            attribute: Attribute::Ordered,
            priority,
            cdb: cdb::test_unit_ready().cdb,
        };
        assert_eq!(unit.to_bytes()[4], byte, "{priority:#04x}");
    }
}

#[test]
fn a_task_management_unit_names_itself_and_its_target() {
    let abort = TaskUnit {
        tag: tag(15),
        function: TaskFunction::AbortTask(tag(0x0a0b)),
        lun: 2,
    };
    let expected = [0x05, 0, 0, 15, 0x01, 0, 0x0a, 0x0b, 0, 2, 0, 0, 0, 0, 0, 0];
    assert_eq!(abort.to_bytes(), expected);
    let reset = TaskUnit {
        tag: tag(16),
        function: TaskFunction::LogicalUnitReset,
        lun: 0,
    };
    assert_eq!(reset.to_bytes()[4..8], [0x08, 0, 0, 0]);
}

#[test]
fn a_good_status_is_sixteen_bytes_without_sense() {
    assert_eq!(
        StatusUnit::parse(&sense_unit(0, 0, &[])),
        Ok(StatusUnit::Sense {
            tag: tag(0x0102),
            status: ScsiStatus::Good,
            sense: Sense::NONE
        })
    );
}

#[test]
fn the_short_look_says_the_same_as_the_long_one_or_nothing() {
    let mut known = Vec::new();
    for (identifier, status) in [(3, 0), (3, 2), (3, 8), (4, 0), (6, 0), (7, 0), (0, 0)] {
        let mut bytes = sense_unit(status, 0, &[]);
        bytes[0] = identifier;
        let (words, _) = bytes.as_chunks::<4>();
        let head = [words[0], words[1]].map(u32::from_le_bytes);
        for length in 0..=bytes.len() {
            if let Some(unit) = StatusUnit::usual(head, length) {
                assert_eq!(Ok(unit), StatusUnit::parse(&bytes[..length]));
                known.push((identifier, status));
            }
        }
    }
    known.dedup();
    assert_eq!(known, [(3, 0), (6, 0), (7, 0)], "the usual ones are known");
    for identifier in [3, 6, 7] {
        let unit = StatusUnit::usual([identifier, 0], 16);
        assert_eq!(unit, None, "a tag of 0 names nothing");
    }
}

#[test]
fn a_check_condition_brings_its_sense_along_whatever_length_it_claims() {
    let data = [0x70, 0, 3, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x11, 4, 0, 0, 0, 0];
    for announced in [18, 96, 252, u16::MAX] {
        let Ok(StatusUnit::Sense { status, sense, .. }) =
            StatusUnit::parse(&sense_unit(2, announced, &data))
        else {
            panic!("not a SENSE unit");
        };
        assert_eq!(status, ScsiStatus::CheckCondition);
        assert_eq!(sense.key, SenseKey::MediumError);
        assert_eq!((sense.asc, sense.ascq), (0x11, 4));
    }
}

#[test]
fn sense_that_is_shorter_than_the_unit_is_cut_where_it_ends() {
    let data = [0x70, 0, 3, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x11, 4, 0, 0, 0, 0];
    let Ok(StatusUnit::Sense { sense, .. }) = StatusUnit::parse(&sense_unit(2, 3, &data)) else {
        panic!("not a SENSE unit");
    };
    assert_eq!((sense.key, sense.asc), (SenseKey::MediumError, 0));
}

#[test]
fn sense_data_count_with_a_check_condition_only() {
    let data = [0x70, 0, 3, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x11, 4, 0, 0, 0, 0];
    for (code, expected) in [
        (0x00, ScsiStatus::Good),
        (0x08, ScsiStatus::Busy),
        (0x18, ScsiStatus::ReservationConflict),
        (0x28, ScsiStatus::TaskSetFull),
        (0x40, ScsiStatus::TaskAborted),
        (0x99, ScsiStatus::Other(0x99)),
    ] {
        let Ok(StatusUnit::Sense { status, sense, .. }) =
            StatusUnit::parse(&sense_unit(code, 18, &data))
        else {
            panic!("not a SENSE unit");
        };
        assert_eq!((status, sense), (expected, Sense::NONE));
    }
}

#[test]
fn responses_and_ready_units_are_told_apart() {
    let codes = [
        (0x00, ResponseCode::Complete),
        (0x02, ResponseCode::InvalidUnit),
        (0x04, ResponseCode::NotSupported),
        (0x05, ResponseCode::Failed),
        (0x08, ResponseCode::Succeeded),
        (0x09, ResponseCode::IncorrectLun),
        (0x0a, ResponseCode::OverlappedTag),
        (0x77, ResponseCode::Other(0x77)),
    ];
    for (byte, code) in codes {
        assert_eq!(
            StatusUnit::parse(&[0x04, 0, 0, 9, 0, 0, 0, byte]),
            Ok(StatusUnit::Response { tag: tag(9), code })
        );
        assert_eq!(code.is_done(), matches!(byte, 0 | 8));
    }
    let ready = |identifier| StatusUnit::parse(&[identifier, 0, 0, 5]);
    assert_eq!(ready(0x06), Ok(StatusUnit::ReadReady(tag(5))));
    assert_eq!(ready(0x07), Ok(StatusUnit::WriteReady(tag(5))));
}

#[test]
fn a_unit_that_is_cut_off_is_not_believed() {
    let whole = [
        (16_u16, sense_unit(0, 0, &[])),
        (8, std::vec![0x04, 0, 0, 9, 0, 0, 0, 0]),
        (4, std::vec![0x06, 0, 0, 5]),
        (4, std::vec![0x07, 0, 0, 5]),
    ];
    for (length, bytes) in whole {
        for found in 0..length {
            assert_eq!(
                StatusUnit::parse(&bytes[..usize::from(found)]),
                Err(UnitFault::TooShort { found })
            );
        }
    }
}

#[test]
fn case_0984_0301_bulk_only_status_words_are_known_as_such() {
    let wrapper = b"USBSUSBSUSBS\0\0\0\0";
    assert_eq!(StatusUnit::parse(wrapper), Err(UnitFault::BulkOnlyStatus));
}

#[test]
fn no_other_first_byte_opens_a_unit_and_no_tag_is_zero() {
    for identifier in (0..=u8::MAX).filter(|byte| !matches!(byte, 3 | 4 | 6 | 7)) {
        let mut bytes = sense_unit(0, 0, &[]);
        bytes[0] = identifier;
        assert_eq!(
            StatusUnit::parse(&bytes),
            Err(UnitFault::WrongIdentifier { found: identifier })
        );
    }
    for identifier in [3, 4, 6, 7] {
        let mut bytes = sense_unit(0, 0, &[]);
        bytes[0] = identifier;
        bytes[2..4].fill(0);
        assert_eq!(StatusUnit::parse(&bytes), Err(UnitFault::NoTag));
    }
}
