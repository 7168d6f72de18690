//! Rings: who owns a TRB when, links, boundaries.

use rootport_models::controller::xhci::Traits;
use rootport_models::device::MILLISECOND;

use crate::raw::{CHAIN, IOC, LINK, NORMAL, Raw, Ring, breaks, configured, machine};

const NO_OP: u32 = 23 << 10;

#[test]
fn a_ring_wraps_through_its_link() {
    let mut raw = Raw::running(Traits::default());
    for _ in 0..200 {
        assert_eq!(raw.command([0, 0, 0, NO_OP]).code(), 1);
    }
}

#[test]
fn a_trb_whose_cycle_bit_is_not_ours_yet_waits() {
    let raw = Raw::running(Traits::default());
    raw.machine.store(raw.commands.base, &[0, 0, 0, NO_OP]);
    raw.machine.release();
    raw.write(raw.doorbells, 0);
    raw.machine.advance(MILLISECOND);
    let [word] = raw.machine.load(raw.events + 12);
    assert_eq!(word, 0, "nothing was executed");
}

#[test]
fn the_cycle_bit_is_written_last() {
    let (raw, slot) = configured(0);
    let at = raw.rings[&(slot, 3)].place();
    breaks("xHCI 1.2 §4.9.2", || {
        raw.machine.store(at + 12, &[NORMAL << 10 | IOC | 1]);
        raw.machine
            .store(at, &[raw.input as u32, (raw.input >> 32) as u32, 512]);
        raw.machine.release();
        raw.kick(slot, 3);
        raw.machine.advance(MILLISECOND);
    });
}

#[test]
fn a_trb_is_released_before_its_cycle_bit() {
    let (raw, slot) = configured(0);
    let at = raw.rings[&(slot, 3)].place();
    breaks("Policy: release before the cycle bit", || {
        raw.machine
            .store(at, &[raw.input as u32, (raw.input >> 32) as u32, 512]);
        raw.machine.store(at + 12, &[NORMAL << 10 | IOC | 1]);
    });
}

#[test]
fn a_trb_is_released_before_the_doorbell() {
    let (raw, slot) = configured(0);
    let at = raw.rings[&(slot, 3)].place();
    raw.machine
        .store(at, &[raw.input as u32, (raw.input >> 32) as u32, 512]);
    raw.machine.release();
    raw.machine.store(at + 12, &[NORMAL << 10 | IOC | 1]);
    breaks("Policy: release before the doorbell", || raw.kick(slot, 3));
}

#[test]
fn the_first_trb_of_a_td_is_handed_over_last() {
    let (raw, slot) = configured(0);
    let at = raw.rings[&(slot, 3)].place();
    raw.machine.store(
        at,
        &[raw.input as u32, (raw.input >> 32) as u32, 512 | 1 << 17],
    );
    raw.machine.release();
    breaks("xHCI 1.2 §4.9.2", || {
        raw.machine.store(at + 12, &[NORMAL << 10 | CHAIN | 1])
    });
}

#[test]
fn a_trb_that_was_handed_over_does_not_change() {
    let (mut raw, slot) = configured(0);
    let data = raw.machine.coherent(1024);
    let at = raw.push_normal(slot, 3, data, 512, IOC);
    raw.machine.store(at + 8, &[256]);
    raw.machine.release();
    raw.kick(slot, 3);
    breaks("xHCI 1.2 §4.9.2", || raw.machine.advance(MILLISECOND));
}

#[test]
fn a_stopped_ring_may_be_changed() {
    let (mut raw, slot) = configured(0);
    let data = raw.machine.coherent(1024);
    let at = raw.push_normal(slot, 3, data, 512, IOC);
    raw.kick(slot, 3);
    raw.machine.advance(MILLISECOND);
    assert_eq!(
        raw.command([0, 0, 0, slot << 24 | 3 << 16 | 15 << 10])
            .code(),
        1
    );
    raw.machine.store(at, &[0, 0, 0, 8 << 10 | IOC | 1]);
    raw.machine.release();
    raw.kick(slot, 3);
    let event = raw.event_of(32);
    assert_eq!(
        (event.code(), event.pointer()),
        (1, at),
        "the no-op took its place"
    );
}

#[test]
fn a_segment_does_not_cross_64_kib() {
    let mut raw = Raw::running(Traits::default());
    let memory = raw.machine.coherent(0x2_0000);
    let boundary = (memory + 64).next_multiple_of(0x1_0000);
    raw.commands = Ring {
        base: boundary - 64,
        trbs: 16,
        index: 0,
        cycle: 1,
    };
    raw.program_commands();
    breaks("xHCI 1.2 table 6-1", || {
        for _ in 0..5 {
            raw.command([0, 0, 0, NO_OP]);
        }
    });
}

#[test]
fn one_trb_of_a_ring_stays_free() {
    let machine = machine();
    let controller = machine.add_xhci(Traits::default());
    let mut raw = Raw::probe(&machine, controller);
    let base = raw.commands.base;
    for index in 0..63 {
        machine.store(base + 16 * index + 12, &[NO_OP | 1]);
    }
    machine.store(base + 16 * 63, &[base as u32, 0, 0, LINK << 10 | 1]);
    machine.release();
    raw.bring_up();
    breaks("xHCI 1.2 §4.9.2", || raw.write(raw.doorbells, 0));
}

/// A controller whose command ring runs, which it does from its first doorbell on, and where its
/// next TRB goes. Before that the ring is the driver's to change (xHCI 1.2 §4.6.1.2).
fn with_running_command_ring() -> (Raw, u64) {
    let mut raw = Raw::running(Traits::default());
    raw.command([0, 0, 0, NO_OP]);
    let next = raw.commands.base + 16;
    (raw, next)
}

#[test]
fn a_link_asks_for_no_event() {
    let (raw, next) = with_running_command_ring();
    let base = raw.commands.base;
    breaks("Policy: no IOC on a link", || {
        raw.machine.store(next, &[base as u32, 0, 0]);
        raw.machine.release();
        raw.machine.store(next + 12, &[LINK << 10 | IOC | 2 | 1]);
    });
}

#[test]
fn a_link_on_the_command_ring_is_not_chained() {
    let (raw, next) = with_running_command_ring();
    let base = raw.commands.base;
    breaks("xHCI 1.2 §6.4.4.1", || {
        raw.machine.store(next, &[base as u32, 0, 0]);
        raw.machine.release();
        raw.machine.store(next + 12, &[LINK << 10 | CHAIN | 2 | 1]);
    });
}

#[test]
fn a_link_leads_to_a_multiple_of_16() {
    let (raw, next) = with_running_command_ring();
    let base = raw.commands.base;
    breaks("xHCI 1.2 §6.4.4.1", || {
        raw.machine.store(next, &[base as u32 + 8, 0, 0]);
        raw.machine.release();
        raw.machine.store(next + 12, &[LINK << 10 | 2 | 1]);
    });
}

#[test]
fn a_ring_stays_in_memory() {
    let (raw, next) = with_running_command_ring();
    breaks("xHCI 1.2 §4.9.2", || {
        raw.machine.store(next, &[0x1000, 0, 0]);
        raw.machine.release();
        raw.machine.store(next + 12, &[LINK << 10 | 2 | 1]);
    });
}

#[test]
fn a_transfer_trb_does_not_belong_on_the_command_ring() {
    let mut raw = Raw::running(Traits::default());
    breaks("xHCI 1.2 §6.4.6", || raw.command([0, 0, 0, NORMAL << 10]));
}

#[test]
fn a_command_does_not_belong_on_a_transfer_ring() {
    let (mut raw, slot) = configured(0);
    breaks("xHCI 1.2 §6.4.6", || raw.push(slot, 3, [0, 0, 0, NO_OP]));
}

#[test]
fn a_setup_stage_does_not_belong_on_a_bulk_ring() {
    let (mut raw, slot) = configured(0);
    breaks("xHCI 1.2 §6.4.6", || {
        raw.push(slot, 3, [0, 0, 8, 2 << 10 | 1 << 6])
    });
}

#[test]
fn reserved_bits_of_each_type_are_zero() {
    let breaks_as = |section: &str, words: [u32; 4]| {
        let (mut raw, _) = with_running_command_ring();
        breaks(section, || raw.queue_command(words));
    };
    breaks_as("xHCI 1.2 §6.4.3.1", [0, 0, 1, NO_OP]);
    breaks_as("xHCI 1.2 §6.4.3.2", [0, 0, 0, 9 << 10 | 1 << 24]);
    breaks_as("xHCI 1.2 §6.4.3.3", [0, 0, 0, 10 << 10 | 1 << 16]);
    breaks_as("xHCI 1.2 §6.4.3.4", [8, 0, 0, 11 << 10]);
    breaks_as("xHCI 1.2 §6.4.3.5", [0, 0, 0, 12 << 10 | 1 << 8]);
    breaks_as("xHCI 1.2 §6.4.3.6", [0, 0, 0, 13 << 10 | 1 << 9]);
    breaks_as("xHCI 1.2 §6.4.3.7", [1, 0, 0, 14 << 10]);
    breaks_as("xHCI 1.2 §6.4.3.8", [0, 0, 0, 15 << 10 | 1 << 9]);
    breaks_as("xHCI 1.2 §6.4.3.9", [0, 0, 1, 16 << 10]);
    breaks_as("xHCI 1.2 §6.4.3.10", [0, 0, 0, 17 << 10 | 1 << 16]);
    let breaks_bulk = |section: &str, words: [u32; 4]| {
        let (mut raw, slot) = configured(0);
        breaks(section, || raw.push(slot, 3, words));
    };
    breaks_bulk("xHCI 1.2 §6.4.1.1", [0, 0, 0, NORMAL << 10 | 1 << 16]);
    breaks_bulk("xHCI 1.2 §6.4.1.4", [1, 0, 0, 8 << 10]);
    breaks_bulk("xHCI 1.2 §6.4.4.1", [0, 0, 1, LINK << 10]);
    let breaks_control = |section: &str, words: [u32; 4]| {
        let (mut raw, slot) = configured(0);
        breaks(section, || raw.push(slot, 1, words));
    };
    breaks_control("xHCI 1.2 §6.4.1.2.1", [0, 0, 8, 2 << 10 | 1 << 6 | CHAIN]);
    breaks_control("xHCI 1.2 §6.4.1.2.2", [0, 0, 0, 3 << 10 | 1 << 17]);
    breaks_control("xHCI 1.2 §6.4.1.2.3", [0, 0, 8, 4 << 10]);
}
