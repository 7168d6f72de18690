//! The model's own rules, each tripped by an access of its own.

use rootport_models::board::allwinner::{Before, Board, Plug, Power};

use super::rig::breaks;

const GATES: u32 = 0x01c2_0060;
const PIN_GATE: u32 = 0x01c2_0068;
const USB_CLOCK: u32 = 0x01c2_00cc;
const RESETS: u32 = 0x01c2_02c0;
const SERIAL: u32 = 0x01c1_9410;
const ROUTE: u32 = 0x01c1_9420;
const PMU_1: u32 = 0x01c1_b800;
const PL_FUNCTION: u32 = 0x01f0_2c00;
const PL_LEVEL: u32 = 0x01f0_2c10;
const PRCM_GATE: u32 = 0x01f0_1428;
const PG_LEVEL: u32 = 0x01c2_08e8;

fn board(power: Power) -> Board {
    Board::new(Before::UsbStart(&[1]), power)
}

#[track_caller]
fn refused(power: Power, writes: &[(u32, usize, u32)], words: &str) {
    let board = board(power);
    let (last, first) = writes.split_last().unwrap();
    for &(address, width, value) in first {
        board.write(address, width, value);
    }
    let text = breaks(|| board.write(last.0, last.1, last.2));
    assert!(text.contains(words), "{text}");
}

/// What a register reads as, with a change.
fn changed(address: u32, change: u32) -> (u32, usize, u32) {
    (address, 4, board(Power::Wired).read(address, 4) ^ change)
}

#[test]
fn registers_take_whole_aligned_words_only() {
    refused(Power::Wired, &[(GATES, 2, 0)], "2 bytes");
    refused(Power::Wired, &[(GATES, 1, 0)], "1 bytes");
    refused(Power::Wired, &[(SERIAL + 2, 4, 0)], "4 bytes");
}

#[test]
fn bits_of_others_stay() {
    let others = [
        changed(GATES, 1 << 8),
        changed(PIN_GATE, 1 << 12),
        changed(USB_CLOCK, 1 << 20),
        changed(RESETS, 1 << 8),
        changed(PRCM_GATE, 1 << 1),
    ];
    for write in others {
        refused(Power::Wired, &[write], "belongs to others");
    }
    let unknown = [changed(PMU_1, 1 << 31), changed(PMU_1 + 0x10, 1 << 8)];
    for write in unknown {
        refused(Power::Wired, &[write], "not known");
    }
    refused(Power::Wired, &[(ROUTE, 4, 2)], "only bit 0");
}

#[test]
fn nothing_else_is_touched() {
    let elsewhere = [
        (0x01c2_0000, "not USB's"),
        (0x01f0_1400, "not ours"),
        (0x01c1_9404, "PHY control"),
        (PMU_1 + 4, "not known"),
        (0x01c1_9000, "nothing of USB"),
    ];
    for (address, words) in elsewhere {
        refused(Power::Wired, &[(address, 4, 0)], words);
    }
}

#[test]
fn a_setting_holds_still_under_its_strobe_and_starts_from_zero() {
    let strobed = [(SERIAL, 4, 0), (SERIAL, 4, 0x2000), (SERIAL, 1, 0x04)];
    let moved = [strobed.as_slice(), &[(SERIAL, 1, 0x84)]].concat();
    refused(Power::Wired, &moved, "while the strobe of PHY 1 is high");
    let dirty = [(SERIAL, 4, 0xdead_2000), (SERIAL, 1, 0x04)];
    refused(Power::Wired, &dirty, "not cleared");
}

#[test]
fn a_clock_is_not_taken_from_a_controller_out_of_reset() {
    let gates_off = changed(GATES, 1 << 25);
    refused(Power::Wired, &[gates_off], "\"bus gates\"");
}

#[test]
fn pins_are_left_alone_on_a_board_without_a_switch() {
    refused(Power::Wired, &[(PG_LEVEL, 4, 0)], "no pin of this board");
    let gate = changed(PRCM_GATE, 1);
    let writes = [gate, (PL_LEVEL, 4, 0)];
    refused(Power::Wired, &writes, "no pin of this board");
}

#[test]
fn other_pins_stay_and_the_id_pin_is_not_written() {
    let power = Power::Switched(Plug::Host);
    let gate = changed(PRCM_GATE, 1);
    refused(power, &[gate, (PL_FUNCTION, 4, 0)], "changes other pins");
    refused(power, &[gate, (PL_LEVEL + 4, 4, 0)], "not USB's");
    refused(power, &[(PG_LEVEL, 4, 0)], "is not written");
    refused(power, &[(PG_LEVEL + 4, 4, 0)], "not USB's");
}

#[test]
fn vbus_stays_off_without_a_hosts_plug() {
    let power = Power::Switched(Plug::Open);
    let writes = [
        changed(PRCM_GATE, 1),
        (PL_LEVEL, 4, 1 << 10 | 1 << 2),
        (PL_FUNCTION, 4, 0x7777_7122),
    ];
    refused(power, &writes, "without a host's plug");
}
