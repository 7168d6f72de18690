//! The register map and its rules (EHCI 1.0 §2.2, §2.3).

use rootport_models::controller::ehci::Traits;
use rootport_models::machine::Machine;

use crate::raw::*;

/// A controller after power-on, untouched.
fn fresh(traits: Traits) -> Raw {
    let machine = Machine::default();
    let controller = machine.add_ehci(traits);
    Raw::probe(&machine, controller)
}

fn running() -> Raw {
    Raw::running(Traits::default())
}

#[test]
fn capability_registers_read_in_their_own_widths_and_as_words() {
    let raw = fresh(Traits::odd());
    let read = |offset, bytes| raw.machine.read(raw.controller, offset, bytes);
    assert_eq!(read(0, 1), 0x40);
    assert_eq!(read(2, 2), 0x0110);
    assert_eq!(read(0, 4), 0x0110_0040);
    assert_eq!(read(4, 4), 0x3215);
    assert_eq!(read(8, 4), 0x77);
}

#[test]
fn defaults_after_power_on_are_those_of_the_tables() {
    let raw = fresh(Traits::default());
    assert_eq!(raw.read(USBCMD), 0x0008_0000);
    assert_eq!(raw.read(USBSTS), HALTED);
    assert_eq!(raw.read(raw.port(0)), 0x3000);
    let raw = fresh(Traits::odd());
    assert_eq!(raw.read(USBCMD), 0x0008_0b00);
    assert_eq!(raw.read(raw.port(0)), 0x2000);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.2: an access of 1 bytes")]
fn hciversion_is_not_read_by_bytes() {
    fresh(Traits::default()).machine.read(0, 2, 1);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3: an access of 1 bytes")]
fn operational_registers_are_not_read_by_bytes() {
    fresh(Traits::default()).machine.read(0, 0x20, 1);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.2: capability registers are read-only")]
fn capability_registers_are_not_written() {
    fresh(Traits::default()).machine.write(0, 4, 4, 0);
}

#[test]
#[should_panic(expected = "no register")]
fn what_is_no_register_is_not_written() {
    fresh(Traits::default()).write(0x20, 0);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.1: USBCMD")]
fn reserved_bits_of_the_command_are_written_as_zero() {
    fresh(Traits::default()).set(USBCMD, 1 << 24);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.1: HCRESET while HCHalted is zero")]
fn a_running_controller_is_not_reset() {
    running().set(USBCMD, RESET);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.1: a register was written before HCRESET had cleared")]
fn nothing_is_written_during_a_reset() {
    let raw = fresh(Traits::default());
    raw.set(USBCMD, RESET);
    raw.write(USBINTR, 0);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.1: Run/Stop was set while HCHalted is zero")]
fn a_controller_that_has_not_halted_yet_is_not_started() {
    let raw = running();
    raw.clear(USBCMD, RUN);
    raw.set(USBCMD, RUN);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §4.8: ASE")]
fn the_asynchronous_enable_waits_for_its_status() {
    let raw = running();
    raw.clear(USBCMD, ASE);
    raw.set(USBCMD, ASE);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §4.6: PSE")]
fn the_periodic_enable_waits_for_its_status() {
    let raw = running();
    raw.set(USBCMD, PSE);
    raw.clear(USBCMD, PSE);
}

#[test]
fn schedule_status_follows_the_enable_bit_in_its_own_time() {
    let raw = running();
    raw.set(USBCMD, PSE);
    assert_eq!(raw.read(USBSTS) & PERIODIC_STATUS, 0);
    raw.machine.advance(Traits::default().follow_time);
    assert_ne!(raw.read(USBSTS) & PERIODIC_STATUS, 0);
    raw.clear(USBCMD, RUN);
    raw.machine.advance(Traits::default().halt_time);
    assert_eq!(
        raw.read(USBSTS) & (HALTED | PERIODIC_STATUS | ASYNC_STATUS),
        HALTED
    );
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.1: an interrupt threshold of 3")]
fn only_listed_interrupt_thresholds_are_written() {
    let raw = fresh(Traits::default());
    raw.write(USBCMD, 3 << 16);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.1: the interrupt threshold was changed")]
fn the_interrupt_threshold_stays_while_the_controller_runs() {
    let raw = running();
    raw.write(USBCMD, raw.read(USBCMD) & !0xff_0000 | 8 << 16);
}

#[test]
#[should_panic(expected = "changes the frame list's size")]
fn the_frame_list_size_is_fixed_where_it_is_not_programmable() {
    fresh(Traits::default()).set(USBCMD, 1 << 2);
}

#[test]
#[should_panic(expected = "asks for park mode")]
fn park_mode_is_not_asked_of_a_controller_without_it() {
    fresh(Traits::default()).set(USBCMD, 1 << 11 | 3 << 8);
}

#[test]
#[should_panic(expected = "park mode with a count of zero")]
fn park_mode_has_a_count() {
    fresh(Traits::odd()).clear(USBCMD, 3 << 8);
}

#[test]
#[should_panic(expected = "model: the light host controller reset")]
fn the_light_reset_is_not_there() {
    fresh(Traits::default()).set(USBCMD, 1 << 7);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.2")]
fn reserved_bits_of_the_status_are_written_as_zero() {
    fresh(Traits::default()).write(USBSTS, 1 << 6);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.3")]
fn reserved_bits_of_the_interrupt_enables_are_written_as_zero() {
    fresh(Traits::default()).write(USBINTR, 1 << 6);
}

#[test]
#[should_panic(expected = "model: the interrupt of a frame list rollover")]
fn rollovers_do_not_interrupt() {
    fresh(Traits::default()).write(USBINTR, 1 << 3);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.4: FRINDEX was written while")]
fn the_frame_index_is_not_written_while_the_controller_runs() {
    running().write(FRINDEX, 0);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.4: FRINDEX = 0x4000")]
fn the_frame_index_has_14_bits() {
    fresh(Traits::default()).write(FRINDEX, 0x4000);
}

#[test]
fn the_frame_index_counts_microframes_and_wraps_with_a_rollover_status() {
    let raw = fresh(Traits::default());
    raw.write(FRINDEX, 0x3ff8);
    raw.program();
    raw.run();
    raw.machine.advance(2_000_000);
    assert!(raw.read(FRINDEX) < 32);
    assert_ne!(raw.read(USBSTS) & 1 << 3, 0);
    raw.write(USBSTS, 1 << 3);
    assert_eq!(raw.read(USBSTS) & 1 << 3, 0);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.5: CTRLDSSEGMENT was written, which")]
fn a_controller_of_32_bits_has_no_segment() {
    fresh(Traits::default()).write(CTRLDSSEGMENT, 0);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.5: CTRLDSSEGMENT was written while")]
fn the_segment_stays_while_the_controller_runs() {
    Raw::running(Traits::addresses_64()).write(CTRLDSSEGMENT, 0);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.6: PERIODICLISTBASE = 0x1800")]
fn the_frame_list_begins_at_a_page() {
    fresh(Traits::default()).write(PERIODICLISTBASE, 0x1800);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.6: PERIODICLISTBASE was written while")]
fn the_frame_list_stays_while_its_schedule_is_on() {
    let raw = running();
    raw.start_periodic();
    raw.write(PERIODICLISTBASE, raw.frames as u32);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §4.8: ASYNCLISTADDR")]
fn the_list_address_stays_while_its_schedule_is_on() {
    let raw = running();
    raw.write(ASYNCLISTADDR, raw.head as u32);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.7")]
fn the_list_address_is_a_multiple_of_32() {
    fresh(Traits::default()).write(ASYNCLISTADDR, 0x1010);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.8")]
fn reserved_bits_of_the_configure_flag_are_written_as_zero() {
    fresh(Traits::default()).write(CONFIGFLAG, 3);
}

#[test]
#[should_panic(expected = "Policy: release before the register: Run/Stop")]
fn stores_are_released_before_the_controller_is_started() {
    let raw = fresh(Traits::default());
    raw.program();
    raw.machine.store(raw.frames, &[END]);
    raw.set(USBCMD, RUN);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §4.6: the frame list at 0x1000 is no coherent memory")]
fn the_frame_list_is_memory() {
    let raw = fresh(Traits::default());
    raw.program();
    raw.write(PERIODICLISTBASE, 0x1000);
    raw.run();
    raw.start_periodic();
}

#[test]
#[should_panic(expected = "Policy: release before the register: a schedule's enable bit")]
fn stores_are_released_before_a_schedule_is_enabled() {
    let raw = running();
    raw.machine.store(raw.frames, &[END]);
    raw.set(USBCMD, PSE);
}
