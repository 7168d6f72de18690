//! The target without any transport.

use super::super::{SECOND, Violations};
use super::*;

fn target(unit: LogicalUnit) -> Target {
    let mut target = Target::new(vec![unit], Violations::new());
    target.power_on(0);
    target
}

/// A disk whose attention after power-on was already told.
fn quiet(unit: LogicalUnit) -> Target {
    let mut target = target(unit);
    let _attention = target.execute(0, 0, &TEST);
    target
}

const TEST: [u8; 6] = [0; 6];
const SENSE: [u8; 6] = [0x03, 0, 0, 0, 18, 0];
const CAPACITY: [u8; 10] = [0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn read(lba: u32, blocks: u16) -> [u8; 10] {
    let ([a, b, c, d], [n0, n1]) = (lba.to_be_bytes(), blocks.to_be_bytes());
    [0x28, 0, a, b, c, d, 0, n0, n1, 0]
}

fn data(execution: Execution) -> Vec<u8> {
    match execution {
        Execution {
            intent: Intent::In(bytes),
            failure: None,
            ..
        } => bytes,
        other => panic!("expected data, got {other:?}"),
    }
}

fn failure(execution: &Execution) -> Option<Sense> {
    execution.failure
}

#[test]
fn a_disk_tells_who_it_is_in_36_bytes() {
    let mut target = quiet(LogicalUnit::disk(2048, 512));
    let bytes = data(target.execute(0, 0, &[0x12, 0, 0, 0, 36, 0]));
    assert_eq!(bytes.len(), 36);
    assert_eq!(bytes[..8], [0, 0, 6, 2, 31, 0, 0, 0]);
    assert_eq!(&bytes[8..16], b"ROOTPORT");
    assert_eq!(&bytes[16..32], b"Model disk      ");
}

#[test]
fn power_on_is_told_once_and_inquiry_does_not_wait_for_it() {
    let mut target = target(LogicalUnit::disk(2048, 512));
    assert_eq!(
        failure(&target.execute(0, 0, &[0x12, 0, 0, 0, 36, 0])),
        None
    );
    assert_eq!(failure(&target.execute(0, 0, &TEST)), Some(Sense::RESET));
    assert_eq!(failure(&target.execute(0, 0, &TEST)), None);
}

#[test]
fn an_attention_may_stay_until_request_sense() {
    let unit = LogicalUnit {
        attention: Attention::UntilSense,
        ..LogicalUnit::stick(64)
    };
    let mut target = target(unit);
    target.units[0].raise(Sense::MEDIUM_CHANGED);
    for _ in 0..3 {
        let execution = target.execute(0, 0, &TEST);
        assert_eq!(failure(&execution), Some(Sense::MEDIUM_CHANGED));
        target.keep_sense(0, execution.failure);
    }
    let sense = data(target.execute(0, 0, &SENSE));
    assert_eq!((sense[2], sense[12]), (6, 0x28));
    assert_eq!(failure(&target.execute(0, 0, &TEST)), None);
}

#[test]
fn kept_sense_is_given_once() {
    let mut target = quiet(LogicalUnit::empty_slot());
    let failed = target.execute(0, 0, &CAPACITY);
    assert_eq!(failed.failure, Some(Sense::NO_MEDIUM));
    target.keep_sense(0, Some(Sense::BAD_FIELD));
    assert_eq!(data(target.execute(0, 0, &SENSE))[12], 0x24);
    assert_eq!(data(target.execute(0, 0, &SENSE))[12], 0x3a);
}

#[test]
fn capacity_beyond_32_bits_needs_the_long_command() {
    let mut target = quiet(LogicalUnit::disk(0x1_2345_6789, 4096));
    assert_eq!(
        data(target.execute(0, 0, &CAPACITY)),
        [255, 255, 255, 255, 0, 0, 16, 0]
    );
    let long = data(target.execute(
        0,
        0,
        &[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0],
    ));
    assert_eq!(long.len(), 32);
    assert_eq!(
        long[..12],
        [0, 0, 0, 1, 0x23, 0x45, 0x67, 0x88, 0, 0, 16, 0]
    );
}

#[test]
fn what_was_written_is_read_at_any_block_size() {
    for block_size in [512, 4096, 65536] {
        let mut target = quiet(LogicalUnit::disk(1 << 40, block_size));
        let cdb = [0x8a, 0, 0, 0, 0, 0xff, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0];
        let bytes = vec![0xa5; 2 * block_size];
        assert_eq!(target.execute(0, 0, &cdb).intent, Intent::Out(bytes.len()));
        assert_eq!(target.write(0, 0, &cdb, &bytes).failure, None);
        let mut reading = cdb;
        reading[0] = 0x88;
        assert_eq!(data(target.execute(0, 0, &reading)), bytes);
    }
}

#[test]
fn a_reserved_bit_is_refused_and_recorded() {
    let mut target = quiet(LogicalUnit::disk(2048, 512));
    let mut cdb = read(0, 1);
    cdb[9] = 1;
    assert_eq!(failure(&target.execute(0, 0, &cdb)), Some(Sense::BAD_FIELD));
    target.violations.expect_only("SPC-4 §4.2");
}

#[test]
fn a_command_of_the_wrong_length_is_refused_and_recorded() {
    let mut target = quiet(LogicalUnit::disk(2048, 512));
    assert_eq!(
        failure(&target.execute(0, 0, &[0; 12])),
        Some(Sense::BAD_FIELD)
    );
    target.violations.expect_only("SPC-4 §4.2");
}

#[test]
fn an_unknown_command_is_no_fault_of_the_host() {
    let mut target = quiet(LogicalUnit::stick(2048));
    for opcode in [0xa2, 0x9e, 0x42] {
        assert_eq!(
            failure(&target.execute(0, 0, &[opcode; 6])),
            Some(Sense::UNKNOWN_COMMAND)
        );
    }
}

#[test]
fn an_address_beyond_the_told_capacity_is_the_hosts_fault() {
    let mut target = quiet(LogicalUnit::disk(2048, 512));
    let _told = target.execute(0, 0, &CAPACITY);
    assert_eq!(
        failure(&target.execute(0, 0, &read(2047, 2))),
        Some(Sense::OUT_OF_RANGE)
    );
    target.violations.expect_only("SBC-3 §4.5");
}

#[test]
fn an_address_beyond_a_lying_capacity_is_the_disks_fault() {
    let lie = Scripted::Data(vec![0, 0, 8, 0, 0, 0, 2, 0]); // the count in place of the last block
    let mut target = quiet(LogicalUnit::disk(2048, 512).script(0x25, lie));
    let _told = target.execute(0, 0, &CAPACITY);
    assert_eq!(
        failure(&target.execute(0, 0, &read(2048, 1))),
        Some(Sense::OUT_OF_RANGE)
    );
}

#[test]
fn a_command_over_the_told_limit_is_refused_and_recorded() {
    let unit = LogicalUnit {
        maximum_blocks: 240,
        ..LogicalUnit::disk(2048, 512)
    };
    let mut target = quiet(unit);
    let page = data(target.execute(0, 0, &[0x12, 1, 0xb0, 0, 64, 0]));
    assert_eq!(page[8..12], [0, 0, 0, 240]);
    assert_eq!(
        failure(&target.execute(0, 0, &read(0, 241))),
        Some(Sense::BAD_FIELD)
    );
    target.violations.expect_only("SBC-3 §6.6.3");
}

#[test]
fn a_bad_block_ends_a_read_after_the_good_ones() {
    let mut target = quiet(LogicalUnit::disk(2048, 512).bad_blocks(12..13));
    let execution = target.execute(0, 0, &read(10, 4));
    assert_eq!(execution.failure, Some(Sense::READ_ERROR.at(12)));
    assert_eq!(execution.wanted, 2048);
    assert_eq!(
        execution.intent,
        Intent::In([pattern(10, 512), pattern(11, 512)].concat())
    );
}

#[test]
fn a_bad_block_ends_a_write_after_the_good_ones() {
    let mut target = quiet(LogicalUnit::disk(2048, 512).bad_blocks(1..2));
    let cdb = [0x2a, 0, 0, 0, 0, 0, 0, 0, 2, 0];
    let outcome = target.write(0, 0, &cdb, &[7; 1024]);
    assert_eq!(outcome.failure, Some(Sense::WRITE_ERROR.at(1)));
    assert_eq!(
        (
            target.units[0].image.block(0)[0],
            target.units[0].image.block(1)[7]
        ),
        (7, 255)
    );
}

#[test]
fn readiness_comes_with_time_and_with_start() {
    let mut slow = target(LogicalUnit::stick(64).ready_after(8 * SECOND));
    assert_eq!(
        failure(&slow.execute(7 * SECOND, 0, &TEST)),
        Some(Sense::BECOMING_READY)
    );
    assert_eq!(failure(&slow.execute(8 * SECOND, 0, &TEST)), None);
    let mut asleep = target(LogicalUnit::stick(64).needs_start());
    assert_eq!(
        failure(&asleep.execute(0, 0, &TEST)),
        Some(Sense::NEEDS_START)
    );
    assert_eq!(failure(&asleep.execute(0, 0, &[0x1b, 0, 0, 0, 1, 0])), None);
    assert_eq!(failure(&asleep.execute(0, 0, &TEST)), None);
}

#[test]
fn a_read_only_disk_says_so_and_refuses_writes() {
    let mut target = quiet(LogicalUnit::disk(2048, 512).read_only());
    let mode = data(target.execute(0, 0, &[0x1a, 0, 0x3f, 0, 192, 0]));
    assert_eq!((usize::from(mode[0]), mode[2]), (mode.len() - 1, 0x80));
    let write = [0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    assert_eq!(
        failure(&target.execute(0, 0, &write)),
        Some(Sense::WRITE_PROTECTED)
    );
}

#[test]
fn both_mode_senses_show_the_write_cache() {
    let mut target = quiet(LogicalUnit::disk(2048, 512).write_cache(CacheLoss::PowerCycle));
    let short = data(target.execute(0, 0, &[0x1a, 8, 0x08, 0, 192, 0]));
    assert_eq!(short[..7], [23, 0, 0x10, 0, 0x08, 0x12, 0x04]);
    let long = data(target.execute(0, 0, &[0x5a, 0, 0x08, 0, 0, 0, 0, 0, 192, 0]));
    assert_eq!((long[1], long[7], long[18]), (34, 8, 0x04));
    assert_eq!(long[8..16], [0, 0, 8, 0, 0, 0, 2, 0]);
}

#[test]
fn a_flushed_block_survives_a_power_cut_and_others_do_not() {
    let mut target = quiet(LogicalUnit::disk(2048, 512).write_cache(CacheLoss::PowerCycle));
    for (lba, byte) in [(5, 1), (6, 2)] {
        let cdb = [0x2a, 0, 0, 0, 0, lba, 0, 0, 1, 0];
        assert_eq!(target.write(0, 0, &cdb, &[byte; 512]).failure, None);
        if lba == 5 {
            let _flushed = target.execute(0, 0, &[0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        }
    }
    target.power_off();
    target.power_on(SECOND);
    assert_eq!(target.units[0].image.block(5)[0], 1);
    assert_eq!(target.units[0].image.block(6), pattern(6, 512));
    assert_eq!(
        failure(&target.execute(SECOND, 0, &TEST)),
        Some(Sense::RESET)
    );
}

#[test]
fn a_bridge_may_lose_its_cache_already_at_a_bus_reset_and_says_so() {
    let stick = LogicalUnit::stick(64).write_cache(CacheLoss::BusReset);
    let mut target = target(stick);
    assert_eq!(
        target
            .write(0, 0, &[0x2a, 0, 0, 0, 0, 6, 0, 0, 1, 0], &[2; 512])
            .failure,
        None
    );
    target.bus_reset();
    assert_eq!(target.units[0].image.lost(), 1);
    assert_eq!(failure(&target.execute(0, 0, &TEST)), Some(Sense::RESET));
}

#[test]
fn a_bridge_may_lose_its_cache_at_a_reset_of_its_unit_alone() {
    for (loss, lost) in [(CacheLoss::UnitReset, 1), (CacheLoss::BusReset, 0)] {
        let mut target = quiet(LogicalUnit::disk(64, 512).write_cache(loss));
        let cdb = [0x2a, 0, 0, 0, 0, 6, 0, 0, 1, 0];
        assert_eq!(target.write(0, 0, &cdb, &[2; 512]).failure, None);
        target.units[0].unit_reset();
        assert_eq!(target.units[0].image.lost(), lost, "{loss:?}");
        assert_eq!(failure(&target.execute(0, 0, &TEST)), None);
    }
}

#[test]
fn vital_pages_are_listed_and_each_listed_page_exists() {
    let mut target = quiet(LogicalUnit::disk(2048, 512));
    let list = data(target.execute(0, 0, &[0x12, 1, 0, 0, 255, 0]));
    assert_eq!(usize::from(list[3]), list.len() - 4);
    for page in &list[4..] {
        let bytes = data(target.execute(0, 0, &[0x12, 1, *page, 0, 255, 0]));
        assert_eq!((bytes[1], usize::from(bytes[3])), (*page, bytes.len() - 4));
    }
    let missing = target.execute(0, 0, &[0x12, 1, 0xc1, 0, 255, 0]);
    assert_eq!(failure(&missing), Some(Sense::BAD_FIELD));
}

#[test]
fn a_unit_that_does_not_exist_answers_inquiry_and_nothing_else() {
    let mut target = quiet(LogicalUnit::disk(2048, 512));
    assert_eq!(data(target.execute(0, 1, &[0x12, 0, 0, 0, 36, 0]))[0], 0x7f);
    assert_eq!(
        failure(&target.execute(0, 1, &TEST)),
        Some(Sense::NO_SUCH_UNIT)
    );
}

#[test]
fn units_are_listed_and_independent() {
    let units = vec![LogicalUnit::empty_slot(), LogicalUnit::stick(64)];
    let mut target = Target::new(units, Violations::new());
    target.power_on(0);
    let list = data(target.execute(0, 0, &[0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0]));
    assert_eq!((list.len(), list[3], list[9], list[17]), (24, 16, 0, 1));
    assert_eq!(
        failure(&target.execute(0, 0, &TEST)),
        Some(Sense::NO_MEDIUM)
    );
    assert_eq!(failure(&target.execute(0, 1, &TEST)), None);
}

#[test]
fn a_changed_card_is_told_before_anything_else() {
    let mut target = target(LogicalUnit::stick(64));
    target.units[0].eject();
    assert_eq!(
        failure(&target.execute(0, 0, &TEST)),
        Some(Sense::NO_MEDIUM)
    );
    target.units[0].insert(Image::new(512), 128);
    assert_eq!(
        failure(&target.execute(0, 0, &TEST)),
        Some(Sense::MEDIUM_CHANGED)
    );
    assert_eq!(data(target.execute(0, 0, &CAPACITY))[3], 127);
}

#[test]
fn every_command_is_listed_with_its_failure() {
    let mut target = quiet(LogicalUnit::disk(2048, 512));
    let _read = target.execute(7, 0, &read(16, 2));
    let last = target.commands.last().expect("listed");
    assert_eq!((last.at, last.opcode(), last.failure), (7, 0x28, None));
    assert_eq!(last.extent(), Some(Extent { lba: 16, blocks: 2 }));
    assert_eq!(target.commands[0].failure, Some(Sense::RESET));
}

#[test]
fn a_forced_write_is_durable_and_a_plain_one_is_not() {
    let mut target = quiet(LogicalUnit::disk(2048, 512).write_cache(CacheLoss::PowerCycle));
    let mut cdb = [0x2a, 0, 0, 0, 0, 5, 0, 0, 1, 0];
    assert_eq!(target.write(0, 0, &cdb, &[1; 512]).failure, None);
    assert_eq!(target.units[0].image.unflushed(), 1);
    (cdb[1], cdb[5]) = (0x08, 6);
    assert_eq!(target.write(0, 0, &cdb, &[2; 512]).failure, None);
    assert_eq!(target.units[0].image.durable(6)[0], 2);
    assert_eq!(target.units[0].image.unflushed(), 1);
}

#[test]
fn saved_mode_pages_do_not_exist() {
    let mut target = quiet(LogicalUnit::disk(2048, 512));
    let saved = target.execute(0, 0, &[0x1a, 0, 0xc8, 0, 192, 0]);
    assert_eq!(failure(&saved), Some(Sense::new(5, 0x39, 0)));
}

#[test]
fn of_two_capacities_that_were_told_the_larger_one_counts() {
    let wrapped = Scripted::Data(vec![0, 0, 0, 7, 0, 0, 2, 0]);
    let mut target = quiet(LogicalUnit::disk(2048, 512).script(0x25, wrapped));
    for cdb in [
        &[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0][..],
        &CAPACITY,
    ] {
        assert_eq!(failure(&target.execute(0, 0, cdb)), None);
    }
    assert_eq!(failure(&target.execute(0, 0, &read(2047, 1))), None);
}

#[test]
fn a_stick_that_is_told_to_eject_loses_its_medium() {
    let mut target = quiet(LogicalUnit::stick(64));
    assert_eq!(failure(&target.execute(0, 0, &[0x1b, 0, 0, 0, 2, 0])), None);
    assert_eq!(
        failure(&target.execute(0, 0, &TEST)),
        Some(Sense::NO_MEDIUM)
    );
}

#[test]
fn a_stopped_disk_has_flushed_and_needs_start() {
    let mut target = quiet(LogicalUnit::disk(64, 512).write_cache(CacheLoss::PowerCycle));
    assert_eq!(
        target
            .write(0, 0, &[0x2a, 0, 0, 0, 0, 5, 0, 0, 1, 0], &[1; 512])
            .failure,
        None
    );
    assert_eq!(failure(&target.execute(0, 0, &[0x1b, 0, 0, 0, 0, 0])), None);
    assert_eq!(target.units[0].image.durable(5)[0], 1);
    assert_eq!(
        failure(&target.execute(0, 0, &TEST)),
        Some(Sense::NEEDS_START)
    );
}
