//! Width, order and reserved bits of registers; what must be in place before Run/Stop.

use rootport_models::controller::xhci::{Faults, Firmware, Traits};
use rootport_models::device::MILLISECOND;

use crate::raw::{Raw, breaks, machine, with_disks};

fn fresh(traits: Traits) -> Raw {
    let machine = machine();
    let controller = machine.add_xhci(traits);
    Raw::probe(&machine, controller)
}

fn after_reset() -> Raw {
    let raw = fresh(Traits::default());
    raw.reset();
    raw
}

#[test]
fn a_register_is_accessed_in_its_own_width() {
    let raw = after_reset();
    let machine = &raw.machine;
    assert_eq!(machine.read(0, 2, 2), 0x0110, "HCIVERSION");
    breaks("xHCI 1.2 §5.1", || machine.read(0, raw.operational, 1));
}

#[test]
fn a_narrow_write_is_refused() {
    let raw = after_reset();
    breaks("xHCI 1.2 §5.1", || {
        raw.machine.write(0, raw.operational + 0x38, 1, 8)
    });
}

#[test]
fn nothing_is_written_before_the_controller_is_ready_after_its_power_on() {
    let raw = fresh(Traits {
        not_ready_at_start: MILLISECOND,
        ..Traits::default()
    });
    let command = raw.read(raw.operational);
    breaks("xHCI 1.2 §5.4.2", || {
        raw.write(raw.operational, command & !1)
    });
}

#[test]
fn a_low_half_wants_its_high_half_next() {
    let raw = after_reset();
    raw.write(raw.operational + 0x30, 0x4800_0000);
    breaks("xHCI 1.2 §5.1", || {
        raw.write(raw.operational + 0x18, 0x4800_0000)
    });
}

#[test]
fn a_high_half_does_not_come_first() {
    let raw = after_reset();
    breaks("xHCI 1.2 §5.1", || raw.write(raw.operational + 0x34, 0));
}

#[test]
fn an_interrupt_may_be_acknowledged_between_two_halves() {
    let mut raw = fresh(Traits::default());
    raw.bring_up();
    raw.write(raw.interrupter(0x18), raw.events as u32 | 8);
    raw.write(raw.operational + 4, 8);
    raw.write(raw.interrupter(0), 3);
    raw.write(raw.interrupter(0x1c), (raw.events >> 32) as u32);
}

#[test]
fn an_address_beyond_32_bits_is_refused_without_ac64() {
    let raw = fresh(Traits::addresses_32());
    raw.reset();
    raw.write(raw.operational + 0x30, 0x4800_0000);
    breaks("xHCI 1.2 §5.1", || raw.write(raw.operational + 0x34, 1));
}

#[test]
fn capability_registers_are_not_written() {
    let raw = after_reset();
    breaks("xHCI 1.2 §5.3", || raw.write(4, 0));
}

#[test]
fn a_place_without_a_register_is_not_written() {
    let raw = after_reset();
    breaks("xHCI 1.2 §5", || raw.write(raw.operational + 0x20, 0));
}

#[test]
fn nothing_is_written_before_hcrst_has_cleared() {
    let raw = fresh(Traits::default());
    raw.write(raw.operational, raw.read(raw.operational) | 2);
    breaks("xHCI 1.2 §5.4.1", || raw.write(raw.interrupter(4), 0));
}

#[test]
fn only_usbsts_is_written_while_the_controller_is_not_ready() {
    let raw = fresh(Traits::default());
    raw.write(raw.operational, raw.read(raw.operational) | 2);
    raw.until(raw.operational, |command| command & 2 == 0);
    raw.write(raw.operational + 4, 8);
    breaks("xHCI 1.2 §5.4.2", || {
        raw.write(raw.operational + 0x38, 1 << 16 | 8)
    });
}

#[test]
fn hcrst_wants_a_halted_controller() {
    let raw = Raw::running(Traits::default());
    breaks("xHCI 1.2 §5.4.1", || {
        raw.write(raw.operational, raw.read(raw.operational) | 2)
    });
}

#[test]
fn run_waits_for_the_halt_that_was_asked_for() {
    let raw = Raw::running(Traits::default());
    let command = raw.read(raw.operational);
    raw.write(raw.operational, command & !1);
    breaks("xHCI 1.2 §5.4.1", || raw.write(raw.operational, command));
}

#[test]
fn reserved_bits_of_usbcmd_are_preserved() {
    let raw = after_reset();
    breaks("xHCI 1.2 §5.4.1", || raw.write(raw.operational, 4));
}

#[test]
fn reserved_bits_of_usbsts_are_written_as_zero() {
    let raw = after_reset();
    breaks("xHCI 1.2 §5.4.2", || {
        raw.write(raw.operational + 4, 0xffff_ffff)
    });
}

#[test]
fn reserved_bits_of_config_are_preserved() {
    let raw = after_reset();
    breaks("xHCI 1.2 §5.4.7", || raw.write(raw.operational + 0x38, 8));
}

#[test]
fn config_and_dcbaap_stay_while_the_controller_runs() {
    let raw = Raw::running(Traits::default());
    breaks("xHCI 1.2 §5.4.7", || raw.program_slots());
    let raw = Raw::running(Traits::default());
    breaks("xHCI 1.2 §5.4.6", || {
        raw.write64(raw.operational + 0x30, raw.contexts)
    });
}

#[test]
fn dcbaap_is_a_multiple_of_64() {
    let raw = after_reset();
    breaks("xHCI 1.2 §5.4.6", || {
        raw.write64(raw.operational + 0x30, raw.contexts + 16)
    });
}

#[test]
fn the_base_address_array_does_not_cross_a_page() {
    let mut raw = after_reset();
    raw.contexts = raw.machine.coherent(8192) + 4096 - 64;
    raw.program_slots();
    raw.program_contexts();
    raw.program_commands();
    raw.program_events();
    breaks("xHCI 1.2 table 6-1", || raw.run());
}

#[test]
fn run_wants_slots() {
    let raw = after_reset();
    raw.program_contexts();
    raw.program_commands();
    raw.program_events();
    breaks("xHCI 1.2 §5.4.7", || raw.run());
}

#[test]
fn run_wants_a_base_address_array() {
    let raw = after_reset();
    raw.program_slots();
    raw.program_commands();
    raw.program_events();
    breaks("xHCI 1.2 §4.2", || raw.run());
}

#[test]
fn run_wants_a_command_ring() {
    let raw = after_reset();
    raw.program_slots();
    raw.program_contexts();
    raw.program_events();
    breaks("xHCI 1.2 §4.2", || raw.run());
}

#[test]
fn run_wants_an_event_ring() {
    let raw = after_reset();
    raw.program_slots();
    raw.program_contexts();
    raw.program_commands();
    breaks("xHCI 1.2 §4.2", || raw.run());
}

#[test]
fn run_wants_the_memory_to_be_released() {
    let raw = after_reset();
    raw.program_slots();
    raw.program_contexts();
    raw.program_commands();
    raw.program_events();
    raw.machine.store(raw.input, &[1]);
    breaks("Policy: release before the doorbell", || raw.run());
}

#[test]
fn scratchpads_are_provided() {
    let raw = after_reset();
    raw.program_slots();
    raw.write64(raw.operational + 0x30, raw.contexts);
    raw.program_commands();
    raw.program_events();
    breaks("xHCI 1.2 §4.20", || raw.run());
}

#[test]
fn scratchpads_are_whole_pages() {
    let raw = after_reset();
    raw.program_slots();
    let array = raw.machine.coherent(64);
    raw.machine
        .store(array, &[raw.input as u32 + 64, 0, raw.input as u32, 0]);
    raw.machine.store(raw.contexts, &[array as u32, 0]);
    raw.machine.release();
    raw.write64(raw.operational + 0x30, raw.contexts);
    raw.program_commands();
    raw.program_events();
    breaks("xHCI 1.2 §6.6", || raw.run());
}

#[test]
fn scratchpads_are_cleared() {
    let raw = after_reset();
    raw.program_slots();
    raw.program_contexts();
    let [low, _] = raw.machine.load(raw.contexts);
    let [page, _] = raw.machine.load(u64::from(low));
    raw.machine.store(u64::from(page) + 8, &[7]);
    raw.machine.release();
    raw.program_commands();
    raw.program_events();
    breaks("xHCI 1.2 §4.20", || raw.run());
}

#[test]
fn without_scratchpads_the_first_entry_is_null() {
    let raw = fresh(Traits {
        scratchpads: 0,
        ..Traits::default()
    });
    raw.reset();
    raw.program_slots();
    raw.machine.store(raw.contexts, &[raw.input as u32, 0]);
    raw.machine.release();
    raw.program_contexts();
    raw.program_commands();
    raw.program_events();
    breaks("xHCI 1.2 §6.1", || raw.run());
}

#[test]
fn the_number_of_scratchpads_is_split_over_two_fields() {
    let raw = fresh(Traits {
        scratchpads: 40,
        ..Traits::default()
    });
    let parameters = raw.read(8);
    assert_eq!((parameters >> 21 & 0x1f, parameters >> 27), (1, 8));
}

#[test]
fn the_command_ring_is_not_null() {
    let raw = after_reset();
    breaks("xHCI 1.2 table 6-1", || {
        raw.write64(raw.operational + 0x18, 1)
    });
}

#[test]
fn reserved_bits_of_crcr_are_zero() {
    let raw = after_reset();
    breaks("xHCI 1.2 §5.4.5", || {
        raw.write64(raw.operational + 0x18, raw.commands.base | 0x11);
    });
}

#[test]
fn nothing_is_written_while_the_firmware_owns_the_controller() {
    let raw = fresh(Traits {
        firmware: Firmware::Releases(MILLISECOND),
        ..Traits::default()
    });
    breaks("xHCI 1.2 §4.22.1", || raw.write(raw.operational + 4, 8));
}

#[test]
fn firmware_that_keeps_the_controller_never_lets_go() {
    let raw = fresh(Traits {
        firmware: Firmware::Keeps,
        ..Traits::default()
    });
    let extended = raw.extended();
    raw.write(extended, raw.read(extended) | 1 << 24);
    raw.machine.advance(2_000 * MILLISECOND);
    assert_eq!(raw.read(extended) >> 16 & 0x101, 0x101);
}

#[test]
fn a_protocol_capability_is_read_only() {
    let raw = fresh(Traits::default());
    let extended = raw.extended();
    breaks("xHCI 1.2 §7", || raw.write(extended, 0));
}

#[test]
fn a_reset_that_hangs_stays_visible() {
    let raw = with_reset_fault(Faults {
        reset_hangs: true,
        ..Faults::none()
    });
    assert_eq!(raw.read(raw.operational) & 2, 2);
    let raw = with_reset_fault(Faults {
        never_ready: true,
        ..Faults::none()
    });
    assert_eq!(raw.read(raw.operational + 4) >> 11 & 1, 1);
}

fn with_reset_fault(faults: Faults) -> Raw {
    let machine = machine();
    let controller = machine.add_faulty_xhci(Traits::default(), faults);
    let raw = Raw::probe(&machine, controller);
    raw.write(raw.operational, raw.read(raw.operational) | 2);
    machine.advance(5_000 * MILLISECOND);
    raw
}

#[test]
fn a_broken_machine_is_silent_for_whoever_unwinds() {
    let raw = with_disks(Traits::default(), Faults::none());
    breaks("xHCI 1.2 §5.3", || raw.write(4, 0));
    raw.write(4, 0);
    assert_eq!(raw.read(4), u32::MAX);
}

#[test]
fn what_only_reads_is_not_written() {
    let raw = after_reset();
    breaks("xHCI 1.2 §5.5.1", || raw.write(raw.runtime, 0));
    let raw = after_reset();
    breaks("xHCI 1.2 §5.4.4", || {
        raw.write(raw.operational + 0x14, 1 << 16)
    });
    let raw = after_reset();
    breaks("xHCI 1.2 §5.5.2.3.1", || {
        raw.write(raw.interrupter(8), 1 << 16)
    });
}

#[test]
fn capabilities_that_are_not_there_are_not_enabled() {
    let raw = after_reset();
    breaks("xHCI 1.2 §5.4.7", || {
        raw.write(raw.operational + 0x38, 1 << 16 | 1 << 8)
    });
    let raw = after_reset();
    breaks("model", || {
        raw.write(raw.operational, raw.read(raw.operational) | 1 << 8)
    });
}

#[test]
fn the_base_address_array_is_memory() {
    let mut raw = after_reset();
    raw.contexts = 0x1000;
    raw.program_slots();
    raw.write64(raw.operational + 0x30, raw.contexts);
    raw.program_commands();
    raw.program_events();
    breaks("xHCI 1.2 §6.1", || raw.run());
}

#[test]
fn a_controller_is_given_back_halted() {
    let raw = fresh(Traits {
        firmware: Firmware::Releases(MILLISECOND),
        ..Traits::default()
    });
    raw.take_from_firmware();
    let mut raw = raw;
    raw.bring_up();
    breaks("xHCI 1.2 §7.1.1", || raw.write(raw.extended(), 0));
}

#[test]
fn a_controller_that_interrupts_its_firmware_is_not_started() {
    let mut raw = fresh(Traits {
        firmware: Firmware::Releases(MILLISECOND),
        ..Traits::default()
    });
    raw.take_from_firmware();
    raw.write(raw.extended() + 4, 1 << 13);
    breaks("xHCI 1.2 §7.1.2", || raw.bring_up());
}

#[test]
fn the_microframe_index_counts_while_the_controller_runs() {
    let raw = after_reset();
    assert_eq!(raw.read(raw.runtime), 0);
    let raw = Raw::running(Traits::default());
    let before = raw.read(raw.runtime);
    raw.machine.advance(MILLISECOND);
    assert_eq!((raw.read(raw.runtime) - before) & 0x3fff, 8);
}
