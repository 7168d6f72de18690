//! Event rings, their acknowledgement, interrupts.

use rootport_models::controller::xhci::{Faults, Signal, Traits};
use rootport_models::device::MILLISECOND;

use crate::raw::{Raw, breaks, machine};

fn before_events(traits: Traits) -> Raw {
    let machine = machine();
    let controller = machine.add_xhci(traits);
    let raw = Raw::probe(&machine, controller);
    raw.reset();
    raw
}

/// Describes a segment in the table, with ERSTSZ written.
fn describe(raw: &Raw, base: u64, trbs: u32) {
    raw.machine
        .store(raw.table, &[base as u32, (base >> 32) as u32, trbs, 0]);
    raw.machine.release();
    raw.write(raw.interrupter(8), 1);
}

#[test]
fn the_segment_table_has_at_most_erst_max_entries() {
    let raw = before_events(Traits::default());
    raw.write(raw.interrupter(8), 2);
    breaks("xHCI 1.2 §5.5.2.3.1", || raw.write(raw.interrupter(8), 3));
}

#[test]
fn the_primary_event_ring_is_not_disabled() {
    let raw = before_events(Traits::default());
    breaks("xHCI 1.2 §5.5.2.3.1", || raw.write(raw.interrupter(8), 0));
}

#[test]
fn the_table_size_comes_before_the_table() {
    let raw = before_events(Traits::default());
    breaks("xHCI 1.2 §4.9.4", || {
        raw.write64(raw.interrupter(0x10), raw.table)
    });
}

#[test]
fn the_table_is_at_a_multiple_of_64() {
    let raw = before_events(Traits::default());
    describe(&raw, raw.events, 64);
    breaks("xHCI 1.2 §5.5.2.3.2", || {
        raw.write64(raw.interrupter(0x10), raw.table + 16)
    });
}

#[test]
fn a_segment_is_at_a_multiple_of_64() {
    let raw = before_events(Traits::default());
    describe(&raw, raw.events + 16, 32);
    breaks("xHCI 1.2 §6.5", || {
        raw.write64(raw.interrupter(0x10), raw.table)
    });
}

#[test]
fn a_segment_has_at_least_16_trbs() {
    let raw = before_events(Traits::default());
    describe(&raw, raw.events, 15);
    breaks("xHCI 1.2 §6.5", || {
        raw.write64(raw.interrupter(0x10), raw.table)
    });
}

#[test]
fn a_segment_does_not_cross_64_kib() {
    let raw = before_events(Traits::default());
    let memory = raw.machine.coherent(0x2_0000);
    let boundary = (memory + 512).next_multiple_of(0x1_0000);
    describe(&raw, boundary - 512, 64);
    breaks("xHCI 1.2 table 6-1", || {
        raw.write64(raw.interrupter(0x10), raw.table)
    });
}

#[test]
fn a_segment_is_cleared() {
    let raw = before_events(Traits::default());
    raw.machine.store(raw.events + 12, &[1]);
    describe(&raw, raw.events, 64);
    breaks("xHCI 1.2 §4.9.4", || {
        raw.write64(raw.interrupter(0x10), raw.table)
    });
}

#[test]
fn reserved_words_of_the_table_are_zero() {
    let raw = before_events(Traits::default());
    describe(&raw, raw.events, 64);
    raw.machine.store(raw.table + 12, &[1]);
    raw.machine.release();
    breaks("xHCI 1.2 §6.5", || {
        raw.write64(raw.interrupter(0x10), raw.table)
    });
}

#[test]
fn the_table_is_released_before_it_is_named() {
    let raw = before_events(Traits::default());
    describe(&raw, raw.events, 64);
    raw.machine.store(raw.input, &[1]);
    breaks("Policy: release before the doorbell", || {
        raw.write64(raw.interrupter(0x10), raw.table);
    });
}

#[test]
fn erdp_is_programmed_before_run() {
    let raw = before_events(Traits::default());
    raw.program_slots();
    raw.program_contexts();
    raw.program_commands();
    describe(&raw, raw.events, 64);
    raw.write64(raw.interrupter(0x10), raw.table);
    breaks("xHCI 1.2 §4.2", || raw.run());
}

#[test]
fn the_event_ring_is_not_redefined_while_the_controller_runs() {
    let raw = Raw::running(Traits::default());
    breaks("xHCI 1.2 §5.5.2.3.2", || raw.write(raw.interrupter(8), 1));
}

#[test]
fn erdp_points_into_the_ring() {
    let raw = Raw::running(Traits::default());
    breaks("xHCI 1.2 §5.5.2.3.3", || {
        raw.write64(raw.interrupter(0x18), raw.events + 16 * 64);
    });
}

#[test]
fn erdp_names_its_segment() {
    let raw = Raw::running(Traits::default());
    breaks("xHCI 1.2 §5.5.2.3.3", || {
        raw.write64(raw.interrupter(0x18), raw.events | 1)
    });
}

#[test]
fn erdp_does_not_run_ahead_of_the_events() {
    let raw = Raw::running(Traits::default());
    breaks("xHCI 1.2 §4.9.4", || {
        raw.write64(raw.interrupter(0x18), (raw.events + 16) | 8)
    });
}

#[test]
fn a_drained_ring_is_acknowledged_with_its_busy_bit() {
    let mut raw = Raw::running(Traits::default());
    raw.queue_command([0, 0, 0, 23 << 10]);
    raw.write(raw.doorbells, 0);
    raw.machine.advance(MILLISECOND);
    breaks("xHCI 1.2 §4.17.2", || {
        raw.write64(raw.interrupter(0x18), raw.events + 16)
    });
}

#[test]
fn reserved_bits_of_iman_are_zero() {
    let raw = Raw::running(Traits::default());
    breaks("xHCI 1.2 §5.5.2.1", || raw.write(raw.interrupter(0), 4));
}

#[test]
fn eint_is_cleared_before_ip() {
    let mut raw = Raw::running(Traits::default());
    raw.queue_command([0, 0, 0, 23 << 10]);
    raw.write(raw.doorbells, 0);
    raw.machine.advance(MILLISECOND);
    assert!(raw.machine.interrupt_line(0));
    breaks("xHCI 1.2 §5.4.2", || raw.write(raw.interrupter(0), 3));
}

#[test]
fn an_acknowledged_interrupt_falls_and_the_next_event_raises_it_again() {
    let mut raw = Raw::running(Traits::default());
    for round in 1..=3 {
        let event = raw.command([0, 0, 0, 23 << 10]);
        assert_eq!(event.code(), 1);
        assert!(raw.machine.interrupt_line(0));
        raw.write(raw.operational + 4, 8);
        raw.write(raw.interrupter(0), 3);
        assert!(!raw.machine.interrupt_line(0));
        assert_eq!(raw.machine.statistics(0).interrupts, round);
    }
}

#[test]
fn a_busy_handler_gets_no_second_interrupt_until_it_says_so() {
    let mut raw = Raw::running(Traits::default());
    raw.queue_command([0, 0, 0, 23 << 10]);
    raw.write(raw.doorbells, 0);
    raw.machine.advance(MILLISECOND);
    raw.write(raw.operational + 4, 8);
    raw.write(raw.interrupter(0), 3);
    raw.queue_command([0, 0, 0, 23 << 10]);
    raw.write(raw.doorbells, 0);
    raw.machine.advance(MILLISECOND);
    assert!(!raw.machine.interrupt_line(0));
    raw.write64(raw.interrupter(0x18), (raw.events + 16) | 8);
    assert!(raw.machine.interrupt_line(0));
}

#[test]
fn a_ring_that_was_emptied_meanwhile_does_not_interrupt() {
    let mut raw = Raw::running(Traits::default());
    raw.queue_command([0, 0, 0, 23 << 10]);
    raw.queue_command([0, 0, 0, 23 << 10]);
    raw.write(raw.doorbells, 0);
    raw.machine.advance(MILLISECOND);
    raw.write(raw.operational + 4, 8);
    raw.write(raw.interrupter(0), 3);
    raw.write64(raw.interrupter(0x18), (raw.events + 32) | 8);
    assert!(!raw.machine.interrupt_line(0));
    assert_eq!(raw.machine.statistics(0).interrupts, 1);
}

#[test]
fn moderation_spaces_interrupts() {
    let mut raw = Raw::running(Traits::default());
    raw.write(raw.interrupter(4), 4000);
    for _ in 0..10 {
        raw.command([0, 0, 0, 23 << 10]);
        raw.write(raw.operational + 4, 8);
        raw.write(raw.interrupter(0), 3);
    }
    assert_eq!(raw.machine.statistics(0).interrupts, 1);
    raw.queue_command([0, 0, 0, 23 << 10]);
    raw.write(raw.doorbells, 0);
    raw.machine.advance(MILLISECOND);
    assert!(
        raw.machine.interrupt_line(0),
        "the events of meanwhile come late, not never"
    );
}

#[test]
fn messages_need_no_clearing() {
    let mut raw = Raw::running(Traits {
        signal: Signal::Message,
        ..Traits::default()
    });
    for round in 1..=3 {
        raw.command([0, 0, 0, 23 << 10]);
        assert_eq!(raw.machine.statistics(0).interrupts, round);
        assert!(!raw.machine.interrupt_line(0));
    }
}

#[test]
fn a_lost_interrupt_leaves_its_event() {
    let machine = machine();
    let faults = Faults {
        lost_interrupts: 1,
        ..Faults::none()
    };
    let controller = machine.add_faulty_xhci(Traits::default(), faults);
    let mut raw = Raw::probe(&machine, controller);
    raw.bring_up();
    assert_eq!(raw.command([0, 0, 0, 23 << 10]).code(), 1);
    assert_eq!(raw.machine.statistics(0).interrupts, 0);
}

#[test]
fn a_full_event_ring_says_so_and_loses_nothing() {
    let machine = machine();
    let controller = machine.add_xhci(Traits::default());
    let mut raw = Raw::probe(&machine, controller);
    raw.event_trbs = 16;
    raw.bring_up();
    for _ in 0..30 {
        raw.queue_command([0, 0, 0, 23 << 10]);
    }
    raw.write(raw.doorbells, 0);
    raw.machine.advance(10 * MILLISECOND);
    let mut kinds = Vec::new();
    while let Some(event) = raw.event_within(MILLISECOND) {
        kinds.push((event.kind(), event.code()));
    }
    assert_eq!(kinds.iter().filter(|kind| **kind == (33, 1)).count(), 30);
    assert_eq!(kinds[14], (37, 21));
}

#[test]
fn several_segments_are_one_ring() {
    let machine = machine();
    let controller = machine.add_xhci(Traits::default());
    let mut raw = Raw::probe(&machine, controller);
    raw.reset();
    raw.program_slots();
    raw.program_contexts();
    raw.program_commands();
    let segments = [machine.coherent(256), machine.coherent(256)];
    let table: Vec<u32> = segments
        .iter()
        .flat_map(|&base| [base as u32, (base >> 32) as u32, 16, 0])
        .collect();
    machine.store(raw.table, &table);
    machine.release();
    raw.write(raw.interrupter(8), 2);
    raw.write64(raw.interrupter(0x18), segments[0]);
    raw.write64(raw.interrupter(0x10), raw.table);
    raw.run();
    for place in 0..40_u64 {
        raw.queue_command([0, 0, 0, 23 << 10]);
        raw.write(raw.doorbells, 0);
        machine.advance(MILLISECOND);
        let at = segments[(place / 16 % 2) as usize] + 16 * (place % 16);
        let words: [u32; 4] = machine.load(at);
        assert_eq!(
            u64::from(words[3] & 1),
            1 - place / 32 % 2,
            "cycle of event {place}"
        );
        assert_eq!(words[3] >> 10 & 0x3f, 33);
        let next = (place + 1) % 32;
        let pointer = segments[(next / 16) as usize] + 16 * (next % 16);
        raw.write64(raw.interrupter(0x18), pointer | 8 | (next / 16));
    }
}

#[test]
fn the_driver_does_not_write_to_the_event_ring() {
    let mut raw = Raw::running(Traits::default());
    raw.machine.store(raw.events + 16, &[1]);
    raw.machine.release();
    raw.command([0, 0, 0, 23 << 10]);
    breaks("xHCI 1.2 §4.9.4", || raw.command([0, 0, 0, 23 << 10]));
}
