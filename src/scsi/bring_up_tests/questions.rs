//! Tests of bring-up: questions.

use super::*;
use crate::storage::quirks::Quirks;

const MODE_SENSE_10: u8 = 0x5a;

/// A disk of SPC-4 that stays in its place.
fn fixed(command: &Command) -> Answer {
    match operation(command) {
        INQUIRY if command.cdb.to_bytes()[1] == 0 => {
            good(b"\x00\x00\x06\x02\x1f\x00\x00\x00Maker   Disk            1.00")
        }
        INQUIRY => match command.cdb.to_bytes()[2] {
            0x00 => good(&[0, 0, 0, 2, 0, 0x80]),
            _ => good(b"\x00\x80\x00\x04S123"),
        },
        READ_CAPACITY_16 => good(&capacity_16(999, 512)),
        MODE_SENSE_10 => good(&[0, 6, 0, 0x80, 0, 0, 0, 0]),
        _ => healthy(command),
    }
}

fn minding(
    quirks: Quirks,
    mode_form: ModeForm,
    mut device: impl FnMut(&Command) -> Answer,
) -> Ended {
    let mut machine = BringUp::new(Instant::NEVER);
    machine.mind(quirks, mode_form);
    let mut commands = Vec::new();
    let mut action = machine.step(Input::Begin, Instant::default());
    while let Action::Issue(command) = action {
        commands.push(operation(&command));
        assert!(commands.len() < ENDLESS);
        let answer = device(&command);
        let ended = Input::Ended(answer.outcome, &answer.data);
        action = machine.step(ended, Instant::default());
    }
    Ended {
        action,
        commands,
        took: Duration::ZERO,
    }
}

fn of_a_fixed_disk(quirks: Quirks) -> Ended {
    minding(quirks, ModeForm::Six, fixed)
}

#[test]
fn a_fixed_disk_tells_its_details_and_a_stick_is_not_asked() {
    let ended = of_a_fixed_disk(Quirks::empty());
    let order = [
        INQUIRY,
        TEST_UNIT_READY,
        READ_CAPACITY_10,
        READ_CAPACITY_16,
        READ_10,
        MODE_SENSE_6,
        INQUIRY,
        INQUIRY,
    ];
    assert_eq!(ended.commands, order);
    let serial = ended.found().details.serial;
    assert_eq!(serial.unwrap().as_str(), "S123");
    let ended = minding(Quirks::empty(), ModeForm::Six, healthy);
    assert_eq!(
        (ended.count(INQUIRY), ended.count(READ_CAPACITY_16)),
        (1, 0)
    );
}

#[test]
fn what_harms_a_device_is_not_asked() {
    for (quirk, command) in [
        (Quirks::NO_WP_DETECT, MODE_SENSE_6),
        (Quirks::ALWAYS_SYNC, MODE_SENSE_6),
        (Quirks::NO_READ_CAPACITY_16, READ_CAPACITY_16),
    ] {
        let ended = of_a_fixed_disk(quirk);
        assert_eq!(ended.count(command), 0, "{quirk:?}");
        assert_eq!(ended.found().capacity.blocks(), 1000);
    }
    let ended = minding(Quirks::FIX_INQUIRY, ModeForm::Six, healthy);
    assert_eq!(ended.count(INQUIRY), 0);
    assert!(ended.found().inquiry.removable);
}

#[test]
fn capacities_are_corrected_as_the_policies_say() {
    let blocks = |quirks, last| {
        let device = |command: &Command| match operation(command) {
            READ_CAPACITY_10 => good(&capacity_10(last, 512)),
            _ => healthy(command),
        };
        minding(quirks, ModeForm::Six, device)
            .found()
            .capacity
            .blocks()
    };
    assert_eq!(blocks(Quirks::FIX_CAPACITY, 1000), 1000);
    assert_eq!(blocks(Quirks::CAPACITY_HEURISTICS, 1000), 1000);
    assert_eq!(blocks(Quirks::CAPACITY_HEURISTICS, 999), 1000);
    assert_eq!(blocks(Quirks::empty(), 1000), 1001);
}

#[test]
fn case_18_sixteen_is_asked_first_where_ten_is_known_to_lie() {
    let device = |command: &Command| match operation(command) {
        READ_CAPACITY_16 => good(&capacity_16(5_860_533_167, 512)),
        _ => healthy(command),
    };
    let ended = minding(Quirks::NEEDS_CAP16, ModeForm::Six, device);
    assert_eq!(ended.found().capacity.blocks(), 5_860_533_168);
    assert_eq!(ended.count(READ_CAPACITY_10), 0);
    // One that does not know it is asked as any other.
    let ended = minding(Quirks::NEEDS_CAP16, ModeForm::Six, healthy);
    assert_eq!(ended.found().capacity.blocks(), 1000);
}

#[test]
fn case_18_a_fixed_disk_whose_ten_was_cut_is_known_by_its_sixteen() {
    let wrong = |last_10, last_16| {
        let device = move |command: &Command| match operation(command) {
            READ_CAPACITY_10 => good(&capacity_10(last_10, 512)),
            READ_CAPACITY_16 => good(&capacity_16(last_16, 512)),
            _ => fixed(command),
        };
        let ended = minding(Quirks::empty(), ModeForm::Six, device);
        ended.found().capacity.blocks()
    };
    assert_eq!(wrong(0x5d50_a3af, 0x1_5d50_a3af), 0x1_5d50_a3b0);
    assert_eq!(wrong(999, 77), 1000, "smaller: not the same disk");
    assert_eq!(
        wrong(999, 0x1_0000_0000),
        1000,
        "another end: not the same disk"
    );
}

#[test]
fn case_18_a_disk_that_must_not_be_asked_sixteen_is_used_as_far_as_ten_can_say() {
    let device = |command: &Command| match operation(command) {
        READ_CAPACITY_10 => good(&capacity_10(u32::MAX, 512)),
        READ_CAPACITY_16 => dies(TransportError::Timeout),
        _ => healthy(command),
    };
    let ended = minding(Quirks::NO_READ_CAPACITY_16, ModeForm::Six, device);
    assert_eq!(ended.found().capacity.blocks(), 1 << 32);
    assert_eq!(ended.count(READ_CAPACITY_16), 0);
}

#[test]
fn case_8_the_long_form_is_for_what_announces_no_scsi() {
    let ended = minding(Quirks::empty(), ModeForm::Ten, fixed);
    assert_eq!(
        (ended.count(MODE_SENSE_6), ended.count(MODE_SENSE_10)),
        (0, 1)
    );
    assert!(ended.found().write_protected);
}

#[test]
fn case_22_a_first_read_that_fails_is_repeated_once_and_costs_nothing() {
    let failing = |times: usize| {
        let mut left = times;
        let device = |command: &Command| match operation(command) {
            READ_10 if left > 0 => {
                left -= 1;
                fails(sense(5, 0x21, 0))
            }
            _ => healthy(command),
        };
        let ended = minding(Quirks::empty(), ModeForm::Six, device);
        ended.found();
        ended.count(READ_10)
    };
    assert_eq!([failing(0), failing(1), failing(9)], [1, 2, 2]);
}

#[test]
fn case_22_a_new_medium_at_the_first_read_is_measured_again() {
    let mut told = false;
    let device = |command: &Command| match operation(command) {
        READ_10 if !core::mem::replace(&mut told, true) => fails(sense(6, 0x28, 0)),
        _ => healthy(command),
    };
    let ended = minding(Quirks::empty(), ModeForm::Six, device);
    ended.found();
    assert_eq!(ended.count(READ_CAPACITY_10), 2);
}

#[test]
fn a_question_that_upsets_the_transport_costs_the_answer_alone() {
    for (code, most) in [(READ_CAPACITY_16, 1), (READ_10, 1), (MODE_SENSE_6, 1)] {
        let device = |command: &Command| match operation(command) {
            operation if operation == code => dies(TransportError::Timeout),
            _ => fixed(command),
        };
        let ended = minding(Quirks::empty(), ModeForm::Six, device);
        assert_eq!(ended.found().capacity.blocks(), 1000);
        assert_eq!(ended.count(code), most);
    }
    let device = |command: &Command| match &*command.cdb.to_bytes() {
        [INQUIRY, 1, ..] => dies(TransportError::Timeout),
        _ => fixed(command),
    };
    let ended = minding(Quirks::empty(), ModeForm::Six, device);
    assert_eq!(
        (ended.count(INQUIRY), ended.found().details.serial),
        (2, None)
    );
}
