//! Input contexts, field by field.

use rootport_models::controller::xhci::{Faults, Traits};

use crate::raw::{Raw, breaks, configured, with_disks};

/// Address Device with one word of the input context changed: context index, word, new value.
fn address_with(index: u64, word: u64, value: u32) -> (Raw, u32) {
    let mut raw = with_disks(Traits::default(), Faults::none());
    let speed = raw.reset_port(0);
    let slot = raw.enable_slot();
    raw.prepare_address(slot, 0, speed);
    raw.machine
        .store(raw.input + raw.context * index + 4 * word, &[value]);
    raw.machine.release();
    (raw, slot)
}

#[track_caller]
fn address_breaks(section: &str, index: u64, word: u64, value: u32) {
    let (mut raw, slot) = address_with(index, word, value);
    breaks(section, || raw.command_with_input(11, slot));
}

#[test]
fn address_device_wants_a0_and_a1() {
    address_breaks("xHCI 1.2 §4.6.5", 0, 1, 0b10);
    address_breaks("xHCI 1.2 §4.6.5", 0, 1, 0b111);
    address_breaks("xHCI 1.2 §4.6.5", 0, 0, 0b100);
}

#[test]
fn reserved_words_are_zero() {
    address_breaks("xHCI 1.2 §6.2.5.1", 0, 5, 1);
    address_breaks("xHCI 1.2 §6.2", 1, 4, 1);
    address_breaks("xHCI 1.2 §6.2", 2, 5, 1);
}

#[test]
fn reserved_words_of_64_byte_contexts_are_zero() {
    let mut raw = with_disks(
        Traits {
            large_contexts: true,
            ..Traits::default()
        },
        Faults::none(),
    );
    let speed = raw.reset_port(0);
    let slot = raw.enable_slot();
    raw.prepare_address(slot, 0, speed);
    raw.machine.store(raw.input + 64 + 32, &[1]);
    raw.machine.release();
    breaks("xHCI 1.2 §6.2", || raw.command_with_input(11, slot));
}

#[test]
fn contexts_of_the_wrong_size_are_noticed() {
    let mut raw = with_disks(
        Traits {
            large_contexts: true,
            ..Traits::default()
        },
        Faults::none(),
    );
    let speed = raw.reset_port(0);
    let slot = raw.enable_slot();
    raw.context = 32;
    raw.prepare_address(slot, 0, speed);
    breaks("xHCI 1.2 §6.2", || raw.command_with_input(11, slot));
}

#[test]
fn the_slot_context_fits_the_port() {
    let speed_high = 3 << 20 | 1 << 27;
    address_breaks("xHCI 1.2 §4.3.3", 1, 0, 3 << 20 | 2 << 27);
    address_breaks("xHCI 1.2 §6.2.2", 1, 0, 1 << 20 | 1 << 27);
    address_breaks("xHCI 1.2 §6.2.2", 1, 0, 4 << 20 | 1 << 27);
    address_breaks("xHCI 1.2 §6.2.2", 1, 0, 1 << 27);
    address_breaks("xHCI 1.2 §6.2.2", 1, 0, speed_high | 1 << 24);
    address_breaks("xHCI 1.2 §6.2.2", 1, 1, 0);
    address_breaks("xHCI 1.2 §6.2.2", 1, 1, 5 << 16);
    address_breaks("xHCI 1.2 §6.2.2", 1, 2, 8 << 22);
    address_breaks("xHCI 1.2 §6.2.2", 1, 2, 1 << 8);
    address_breaks("xHCI 1.2 §6.2.2", 1, 2, 1);
    address_breaks("xHCI 1.2 §6.2.2", 1, 3, 2 << 27);
}

#[test]
fn endpoint_0_is_a_control_endpoint_of_the_speed() {
    let good = 64 << 16 | 4 << 3 | 3 << 1;
    address_breaks("xHCI 1.2 §6.2.3", 2, 1, 64 << 16 | 6 << 3 | 3 << 1);
    address_breaks("xHCI 1.2 §6.2.3.1", 2, 1, 8 << 16 | 4 << 3 | 3 << 1);
    address_breaks("xHCI 1.2 §6.2.3.4", 2, 1, good | 1 << 8);
    address_breaks("xHCI 1.2 §6.2.3", 2, 1, good | 1);
    address_breaks("Policy: three errors", 2, 1, 64 << 16 | 4 << 3);
    address_breaks("xHCI 1.2 §4.14.1.1", 2, 4, 0);
    address_breaks("xHCI 1.2 §6.2.3", 2, 4, 8 | 64 << 16);
    address_breaks("xHCI 1.2 §6.2.3", 2, 0, 1);
    address_breaks("xHCI 1.2 §6.2.3", 2, 0, 1 << 8);
    address_breaks("xHCI 1.2 §6.2.3.6", 2, 0, 16 << 16);
    address_breaks("xHCI 1.2 table 6-1", 2, 2, 0);
    address_breaks("xHCI 1.2 §6.2.3", 2, 0, 1 << 10);
    address_breaks("xHCI 1.2 §6.2.3", 2, 0, 1 << 15);
    address_breaks("xHCI 1.2 §6.2.3", 2, 1, good | 1 << 7);
}

#[test]
fn the_input_context_does_not_cross_a_page() {
    let (mut raw, slot) = address_with(1, 2, 0);
    raw.input = raw.machine.coherent(8192) + 4096 - 512;
    breaks("xHCI 1.2 table 6-1", || raw.command_with_input(11, slot));
}

#[test]
fn the_output_context_is_named_before_address_device() {
    let (mut raw, slot) = address_with(1, 2, 0);
    raw.machine
        .store(raw.contexts + 8 * u64::from(slot), &[0, 0]);
    raw.machine.release();
    breaks("xHCI 1.2 §4.3.3", || raw.command_with_input(11, slot));
}

#[test]
fn the_output_context_is_at_a_multiple_of_64_in_one_page_and_cleared() {
    let name = |raw: &Raw, slot: u32, at: u64| {
        raw.machine.store(
            raw.contexts + 8 * u64::from(slot),
            &[at as u32, (at >> 32) as u32],
        );
        raw.machine.release();
    };
    let (mut raw, slot) = address_with(1, 2, 0);
    let memory = raw.machine.coherent(8192);
    name(&raw, slot, memory + 32);
    breaks("xHCI 1.2 §6.1", || raw.command_with_input(11, slot));
    let (mut raw, slot) = address_with(1, 2, 0);
    let memory = raw.machine.coherent(8192);
    name(&raw, slot, memory + 4096 - 64);
    breaks("xHCI 1.2 table 6-1", || raw.command_with_input(11, slot));
    let (mut raw, slot) = address_with(1, 2, 0);
    let memory = raw.machine.coherent(8192);
    raw.machine.store(memory + 64, &[1]);
    name(&raw, slot, memory);
    breaks("xHCI 1.2 §4.3.3", || raw.command_with_input(11, slot));
}

#[test]
fn the_output_context_is_not_written_by_the_driver() {
    let (mut raw, slot) = configured(0);
    let [low, high] = raw.machine.load(raw.contexts + 8 * u64::from(slot));
    let contexts = u64::from(high) << 32 | u64::from(low);
    raw.machine.store(contexts + 12, &[0]);
    raw.machine.release();
    breaks("xHCI 1.2 §4.5.2", || {
        raw.command([0, 0, 0, slot << 24 | 3 << 16 | 15 << 10]);
    });
}

/// Configure Endpoint with one word of the input context changed.
#[track_caller]
fn configure_breaks(section: &str, port: usize, index: u64, word: u64, value: u32) {
    let mut raw = with_disks(Traits::default(), Faults::none());
    let slot = raw.address(port);
    raw.prepare_bulk(slot, 0);
    raw.machine
        .store(raw.input + raw.context * index + 4 * word, &[value]);
    raw.machine.release();
    breaks(section, || raw.command_with_input(12, slot));
}

#[test]
fn configure_endpoint_wants_a0_and_neither_a1_nor_d0_nor_d1() {
    configure_breaks("xHCI 1.2 §4.6.6", 0, 0, 1, 0b1_1000);
    configure_breaks("xHCI 1.2 §4.6.6", 0, 0, 1, 0b1_1011);
    configure_breaks("xHCI 1.2 §4.6.6", 0, 0, 0, 0b01);
    configure_breaks("xHCI 1.2 §4.6.6", 0, 0, 0, 0b10);
}

#[test]
fn context_entries_is_the_last_valid_context() {
    configure_breaks("xHCI 1.2 §6.2.2.2", 0, 1, 0, 3 << 20 | 3 << 27);
    configure_breaks("xHCI 1.2 §6.2.2.2", 0, 1, 0, 3 << 20 | 5 << 27);
}

#[test]
fn a_bulk_endpoint_has_the_packets_of_its_speed() {
    let shape = |packet: u32, burst: u32, kind: u32| packet << 16 | burst << 8 | kind << 3 | 3 << 1;
    configure_breaks("xHCI 1.2 §6.2.3.1", 0, 4, 1, shape(64, 0, 6));
    configure_breaks("xHCI 1.2 §6.2.3.1", 2, 4, 1, shape(512, 0, 6));
    configure_breaks("xHCI 1.2 §6.2.3.4", 0, 4, 1, shape(512, 1, 6));
    configure_breaks("xHCI 1.2 §6.2.3.4", 2, 4, 1, shape(1024, 16, 6));
    configure_breaks("xHCI 1.2 §6.2.3", 0, 4, 1, shape(512, 0, 2));
    configure_breaks("xHCI 1.2 §6.2.3", 0, 4, 1, shape(512, 0, 0));
}

#[test]
fn an_interrupt_endpoint_says_what_it_moves_in_an_interval() {
    let interrupt = 64 << 16 | 7 << 3 | 3 << 1;
    configure_breaks("xHCI 1.2 §6.2.3.8", 0, 4, 1, interrupt);
}

#[test]
fn a_bulk_in_endpoint_has_no_interval() {
    configure_breaks("xHCI 1.2 §6.2.3.6", 0, 4, 0, 3 << 16);
}

#[test]
fn an_endpoint_is_not_added_twice() {
    let (mut raw, slot) = configured(0);
    raw.prepare_bulk(slot, 0);
    breaks("xHCI 1.2 §4.6.6", || raw.command_with_input(12, slot));
}

#[test]
fn evaluate_context_wants_a0_or_a1() {
    let (mut raw, slot) = configured(0);
    breaks("xHCI 1.2 §4.6.7", || raw.command_with_input(13, slot));
}

#[test]
fn evaluate_context_wants_a_valid_endpoint_type() {
    let (mut raw, slot) = configured(0);
    raw.clear_input();
    raw.store_input(0, &[0, 0b10]);
    raw.store_input(2, &[0, 64 << 16]);
    raw.machine.release();
    breaks("xHCI 1.2 §6.2.3", || raw.command_with_input(13, slot));
}

#[test]
fn configure_endpoint_does_not_move_the_device() {
    configure_breaks("xHCI 1.2 §6.2.2", 0, 1, 1, 2 << 16);
    configure_breaks("xHCI 1.2 §6.2.2", 0, 1, 0, 5 | 3 << 20 | 4 << 27);
}

#[test]
fn an_input_context_is_somewhere() {
    let (mut raw, slot) = address_with(1, 2, 0);
    raw.input = 0;
    breaks("xHCI 1.2 §6.2.5", || raw.command_with_input(11, slot));
}

#[test]
fn the_entry_of_an_enabled_slot_stays() {
    let (mut raw, slot) = configured(0);
    raw.machine.store(raw.contexts + 8 * u64::from(slot), &[0]);
    raw.machine.release();
    breaks("xHCI 1.2 §6.1", || {
        raw.command([0, 0, 0, slot << 24 | 3 << 16 | 15 << 10])
    });
}
