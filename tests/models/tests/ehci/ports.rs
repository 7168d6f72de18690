//! Root ports: connection, reset, companions, power (EHCI 1.0 §2.3.9, §4.2).

use rootport_models::controller::ehci::{Faults, Traits};
use rootport_models::device::{Link, MILLISECOND};
use rootport_models::machine::Machine;

use crate::probe::Probe;
use crate::raw::*;

const LINE_K: u32 = 1 << 10;
const LINE_J: u32 = 1 << 11;
const POWER: u32 = 1 << 12;
const PORT_CHANGE: u32 = 1 << 2;

/// A running controller with a device that nobody has reset yet in port 0.
fn connected(link: Link) -> (Raw, Probe) {
    let raw = Raw::running(Traits::default());
    let probe = Probe::new(link);
    raw.machine.plug(raw.controller, 0, probe.clone());
    raw.change_port(0, 0, CONNECT_CHANGE);
    (raw, probe)
}

fn port(raw: &Raw) -> u32 {
    raw.read(raw.port(0))
}

#[test]
fn a_connection_sets_its_change_and_the_port_change_interrupt() {
    let raw = Raw::running(Traits::default());
    let before = raw.machine.statistics(raw.controller).interrupts;
    raw.machine.plug(raw.controller, 0, Probe::new(Link::High));
    assert_eq!(port(&raw), POWER | LINE_J | CONNECT_CHANGE | CONNECTED);
    assert_ne!(raw.read(USBSTS) & PORT_CHANGE, 0);
    assert!(raw.machine.interrupt_line(raw.controller));
    assert_eq!(
        raw.machine.statistics(raw.controller).interrupts,
        before + 1
    );
    raw.change_port(0, 0, CONNECT_CHANGE);
    raw.write(USBSTS, PORT_CHANGE);
    assert!(!raw.machine.interrupt_line(raw.controller));
    assert_eq!(port(&raw), POWER | LINE_J | CONNECTED);
}

#[test]
fn a_high_speed_device_leaves_its_reset_enabled() {
    let (raw, probe) = connected(Link::High);
    raw.enable_port(0);
    assert_eq!(port(&raw), POWER | ENABLED | CONNECTED);
    assert_eq!(probe.state().resets[0].1, Link::High);
}

#[test]
fn a_superspeed_device_runs_at_high_speed_here() {
    let (raw, probe) = connected(Link::Super);
    raw.enable_port(0);
    assert_ne!(port(&raw) & ENABLED, 0);
    assert_eq!(probe.state().resets[0].1, Link::High);
}

#[test]
fn a_full_speed_device_leaves_its_reset_disabled_and_goes_to_the_companion() {
    let (raw, _probe) = connected(Link::Full);
    raw.enable_port(0);
    assert_eq!(port(&raw), POWER | LINE_J | CONNECTED);
    raw.change_port(0, 0, OWNER);
    assert_eq!(port(&raw), POWER | OWNER | CONNECT_CHANGE);
}

#[test]
fn a_low_speed_device_shows_the_k_state_before_any_reset() {
    let (raw, _probe) = connected(Link::Low);
    assert_eq!(port(&raw) & (LINE_J | LINE_K), LINE_K);
}

#[test]
fn pulling_the_plug_gives_a_companions_port_back() {
    let (raw, _probe) = connected(Link::Low);
    raw.change_port(0, 0, OWNER);
    raw.machine.unplug(raw.controller, 0);
    assert_eq!(port(&raw) & (OWNER | CONNECTED), 0);
}

#[test]
fn pulling_the_plug_disables_the_port_without_an_enable_change() {
    let (raw, probe) = connected(Link::High);
    raw.enable_port(0);
    raw.machine.unplug(raw.controller, 0);
    assert_eq!(port(&raw), POWER | CONNECT_CHANGE);
    assert!(!probe.state().powered);
}

#[test]
fn before_the_configure_flag_all_ports_are_the_companions() {
    let machine = Machine::default();
    let controller = machine.add_ehci(Traits::default());
    let raw = Raw::probe(&machine, controller);
    machine.plug(controller, 0, Probe::new(Link::High));
    assert_eq!(port(&raw), POWER | OWNER);
    raw.bring_up();
    assert_eq!(port(&raw), POWER | LINE_J | CONNECT_CHANGE | CONNECTED);
}

#[test]
fn a_companion_that_never_takes_the_port_leaves_the_owner_bit_clear() {
    let faults = Faults {
        companion_refuses: true,
        ..Faults::none()
    };
    let raw = Raw::running_with(Traits::default(), faults);
    raw.machine.plug(raw.controller, 0, Probe::new(Link::Full));
    raw.change_port(0, 0, CONNECT_CHANGE);
    raw.change_port(0, 0, OWNER);
    assert_eq!(port(&raw) & (OWNER | CONNECTED), CONNECTED);
}

#[test]
fn a_reset_that_never_ends_leaves_its_bit_set() {
    let faults = Faults {
        port_reset_hangs: true,
        ..Faults::none()
    };
    let raw = Raw::running_with(Traits::default(), faults);
    raw.machine.plug(raw.controller, 0, Probe::new(Link::High));
    raw.change_port(0, 0, CONNECT_CHANGE);
    raw.change_port(0, 0, PORT_RESET);
    raw.machine.advance(60 * MILLISECOND);
    raw.change_port(0, PORT_RESET, 0);
    raw.machine.advance(1_000 * MILLISECOND);
    assert_eq!(port(&raw) & (PORT_RESET | ENABLED), PORT_RESET);
}

#[test]
fn a_port_without_a_phy_never_connects_and_takes_a_reset() {
    let raw = Raw::running(Traits::allwinner());
    assert_eq!(raw.read(raw.port(3)), POWER);
    raw.change_port(3, 0, PORT_RESET);
    raw.machine.advance(50 * MILLISECOND);
    raw.change_port(3, PORT_RESET, 0);
    raw.machine.advance(2 * MILLISECOND);
    assert_eq!(raw.read(raw.port(3)), POWER);
}

#[test]
fn switched_power_decides_what_a_port_sees() {
    let raw = Raw::running(Traits::odd());
    let probe = Probe::new(Link::High);
    raw.machine.plug(raw.controller, 1, probe.clone());
    let port = || raw.read(raw.port(1));
    assert_eq!((port(), probe.state().powered), (0, false));
    raw.change_port(1, 0, POWER);
    assert_eq!(port() & CONNECTED, CONNECTED);
    assert!(probe.state().powered);
    raw.change_port(1, POWER, 0);
    assert_eq!(port(), CONNECT_CHANGE);
}

#[test]
fn too_much_current_disables_the_port_and_switches_it_off_where_it_can() {
    let over = vec![(1, 500 * MILLISECOND, 900 * MILLISECOND)];
    let faults = Faults {
        over_current: over,
        ..Faults::none()
    };
    let raw = Raw::running_with(Traits::odd(), faults);
    raw.change_port(1, 0, POWER);
    raw.machine.plug(raw.controller, 1, Probe::new(Link::High));
    raw.enable_port(1);
    raw.machine.advance(500 * MILLISECOND);
    let enable_change = 1 << 3;
    let (active, change) = (1 << 4, 1 << 5);
    assert_eq!(
        raw.read(raw.port(1)),
        change | active | enable_change | CONNECT_CHANGE
    );
    raw.machine.advance(400 * MILLISECOND);
    assert_eq!(raw.read(raw.port(1)) & active, 0);
}

#[test]
fn hcreset_takes_everything_from_the_ports() {
    let (raw, _probe) = connected(Link::High);
    raw.enable_port(0);
    raw.stop();
    raw.reset();
    assert_eq!(port(&raw), POWER | OWNER);
}

#[test]
#[should_panic(expected = "USB 2.0 §7.1.7.5: port 0 was in reset for 49")]
fn a_root_port_is_reset_for_50_milliseconds() {
    let (raw, _probe) = connected(Link::High);
    raw.change_port(0, 0, PORT_RESET);
    raw.machine.advance(49 * MILLISECOND);
    raw.change_port(0, PORT_RESET, 0);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.9: reset of port 0 while HCHalted is one")]
fn a_halted_controller_resets_no_port() {
    let (raw, _probe) = connected(Link::High);
    raw.stop();
    raw.change_port(0, 0, PORT_RESET);
}

#[test]
#[should_panic(expected = "without writing zero to Port Enabled")]
fn a_reset_writes_port_enabled_as_zero() {
    let (raw, _probe) = connected(Link::High);
    raw.enable_port(0);
    raw.change_port(0, 0, PORT_RESET);
}

#[test]
#[should_panic(expected = "software cannot enable a port")]
fn software_does_not_enable_a_port() {
    let (raw, _probe) = connected(Link::High);
    raw.change_port(0, 0, ENABLED);
}

#[test]
#[should_panic(expected = "acknowledges changes by the way")]
fn a_change_is_not_acknowledged_by_a_read_modify_write() {
    let raw = Raw::running(Traits::default());
    raw.machine.plug(raw.controller, 0, Probe::new(Link::High));
    raw.set(raw.port(0), PORT_RESET);
}

#[test]
#[should_panic(expected = "does not preserve the port's power")]
fn power_survives_an_acknowledgement() {
    let raw = Raw::running(Traits::odd());
    raw.change_port(1, 0, POWER);
    raw.machine.plug(raw.controller, 1, Probe::new(Link::High));
    raw.write(raw.port(1), CONNECT_CHANGE);
}

#[test]
#[should_panic(expected = "reserved bits are written as zero")]
fn reserved_bits_of_a_port_are_written_as_zero() {
    let (raw, _probe) = connected(Link::High);
    raw.change_port(0, 0, 1 << 9);
}

#[test]
#[should_panic(expected = "model: PORTSC")]
fn suspend_is_not_modelled() {
    let (raw, _probe) = connected(Link::High);
    raw.change_port(0, 0, 1 << 7);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.2.3: port 0 was given to a companion controller")]
fn no_port_is_handed_over_without_a_companion() {
    let raw = Raw::running(Traits::allwinner());
    raw.change_port(0, 0, OWNER);
}

#[test]
#[should_panic(expected = "which has no power or is a companion's")]
fn a_companions_port_is_not_reset() {
    let (raw, _probe) = connected(Link::Low);
    raw.change_port(0, 0, OWNER);
    raw.change_port(0, CONNECT_CHANGE, PORT_RESET);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §4.2.2")]
fn a_port_keeps_its_owner_during_a_reset() {
    let (raw, _probe) = connected(Link::Full);
    raw.change_port(0, 0, PORT_RESET);
    raw.change_port(0, 0, OWNER);
}

#[test]
#[should_panic(expected = "Port Owner of port 0 was cleared while CONFIGFLAG is zero")]
fn ports_are_not_taken_before_the_configure_flag() {
    let machine = Machine::default();
    let controller = machine.add_ehci(Traits::default());
    let raw = Raw::probe(&machine, controller);
    raw.change_port(0, OWNER, 0);
}

#[test]
#[should_panic(expected = "USB 2.0 §9.1.1.3: two devices answer at address 0")]
fn two_devices_are_not_reset_before_the_first_has_its_address() {
    let raw = Raw::with_device(Probe::new(Link::High));
    raw.machine.plug(raw.controller, 1, Probe::new(Link::High));
    raw.enable_port(1);
    let mut queue = raw.linked(control(0));
    raw.control(&mut queue, [0x80, 6, 0, 1, 0, 0, 18, 0]);
}
