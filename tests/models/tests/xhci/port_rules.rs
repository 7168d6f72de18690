//! PORTSC and what ports do.

use rootport_models::controller::xhci::{Faults, Traits};
use rootport_models::device::{Link, MILLISECOND};

use crate::raw::{PORT_CHANGES, PORT_POWER, PORT_RESET, breaks, disk, with_disks};

const ENABLED: u32 = 2;
const WARM_RESET: u32 = 1 << 31;

#[test]
fn a_usb_2_port_is_enabled_by_its_reset_only() {
    let mut raw = with_disks(Traits::default(), Faults::none());
    raw.machine.advance(300 * MILLISECOND);
    assert_eq!(raw.read(raw.port(0)) & 0b11, 1, "connected, not enabled");
    assert_eq!(raw.reset_port(0), 3, "high speed");
    assert_eq!(raw.read(raw.port(0)) & 0b11, 0b11);
}

#[test]
fn a_usb_3_port_trains_by_itself() {
    let raw = with_disks(Traits::default(), Faults::none());
    raw.machine.advance(300 * MILLISECOND);
    assert_eq!(raw.read(raw.port(2)) & 0b11, 0b11);
    assert_eq!(raw.read(raw.port(2)) >> 10 & 0xf, 4);
}

#[test]
fn the_speed_may_be_unknown_before_the_reset() {
    let traits = Traits {
        speed_after_reset: true,
        ..Traits::default()
    };
    let mut raw = with_disks(traits, Faults::none());
    raw.machine.advance(10 * MILLISECOND);
    assert_eq!(raw.read(raw.port(0)) >> 10 & 0xf, 0);
    assert_eq!(raw.reset_port(0), 3);
}

#[test]
fn a_change_is_an_event_only_if_none_was_pending() {
    let mut raw = with_disks(Traits::default(), Faults::none());
    raw.machine.advance(300 * MILLISECOND);
    while raw.event_within(MILLISECOND).is_some() {}
    raw.write(raw.port(0), PORT_POWER | PORT_RESET);
    assert_eq!(
        raw.event_within(100 * MILLISECOND),
        None,
        "CSC was never cleared"
    );
    raw.write(raw.port(0), PORT_POWER | PORT_CHANGES);
    raw.write(raw.port(0), PORT_POWER | PORT_RESET);
    let event = raw
        .event_within(100 * MILLISECOND)
        .expect("the reset's end");
    assert_eq!((event.kind(), event.0[0] >> 24), (34, 1));
}

#[test]
fn unplugging_is_a_connect_change() {
    let mut raw = with_disks(Traits::default(), Faults::none());
    raw.reset_port(0);
    while raw.event_within(MILLISECOND).is_some() {}
    drop(raw.machine.unplug(0, 0));
    assert_eq!(raw.event().kind(), 34);
    assert_eq!(raw.read(raw.port(0)) & (1 << 17 | 0b11), 1 << 17);
    raw.write(raw.port(0), PORT_POWER | PORT_CHANGES);
    raw.machine.plug(0, 0, disk(Link::High));
    assert_eq!(raw.read(raw.port(0)) & (1 << 17 | 0b11), 1 << 17 | 1);
}

#[test]
fn ped_written_by_the_way_is_an_accident() {
    let mut raw = with_disks(Traits::default(), Faults::none());
    raw.reset_port(0);
    let status = raw.read(raw.port(0));
    breaks("xHCI 1.2 §5.4.8", || {
        raw.write(raw.port(0), status | PORT_RESET)
    });
}

#[test]
fn ped_written_alone_disables() {
    let mut raw = with_disks(Traits::default(), Faults::none());
    raw.reset_port(0);
    raw.write(raw.port(0), PORT_POWER | ENABLED);
    assert_eq!(raw.read(raw.port(0)) & 0b11, 1);
}

#[test]
fn power_is_preserved() {
    let raw = with_disks(Traits::default(), Faults::none());
    breaks("xHCI 1.2 §5.4.8", || raw.write(raw.port(0), PORT_CHANGES));
}

#[test]
fn reserved_bits_of_portsc_are_zero() {
    let raw = with_disks(Traits::default(), Faults::none());
    breaks("xHCI 1.2 §5.4.8", || {
        raw.write(raw.port(0), PORT_POWER | 1 << 28)
    });
}

#[test]
fn a_usb_2_port_has_no_warm_reset() {
    let raw = with_disks(Traits::default(), Faults::none());
    breaks("xHCI 1.2 §5.4.8", || {
        raw.write(raw.port(0), PORT_POWER | WARM_RESET)
    });
}

#[test]
fn a_port_without_power_is_not_reset() {
    let traits = Traits {
        port_power_control: true,
        ..Traits::default()
    };
    let raw = with_disks(traits, Faults::none());
    assert_eq!(
        raw.read(raw.port(0)) & (PORT_POWER | 1),
        0,
        "off, and nothing seen"
    );
    breaks("xHCI 1.2 §4.19.5", || raw.write(raw.port(0), PORT_RESET));
}

#[test]
fn power_brings_the_device_up() {
    let traits = Traits {
        port_power_control: true,
        ..Traits::default()
    };
    let mut raw = with_disks(traits, Faults::none());
    raw.write(raw.port(0), PORT_POWER);
    raw.write(raw.port(2), PORT_POWER);
    raw.address(0);
    raw.address(2);
}

#[test]
fn a_link_that_does_not_train_wants_a_warm_reset() {
    let faults = Faults {
        training_fails: true,
        ..Faults::none()
    };
    let mut raw = with_disks(Traits::default(), faults);
    raw.machine.advance(300 * MILLISECOND);
    assert_eq!(raw.read(raw.port(2)) >> 5 & 0xf, 6, "Inactive");
    raw.write(raw.port(2), PORT_POWER | PORT_RESET);
    raw.machine.advance(300 * MILLISECOND);
    assert_eq!(raw.read(raw.port(2)) & 2, 0, "a hot reset does not help");
    raw.write(raw.port(2), PORT_POWER | WARM_RESET);
    raw.machine.advance(300 * MILLISECOND);
    assert_eq!(raw.read(raw.port(2)) & (1 << 19 | 2), 1 << 19 | 2);
    raw.address(2);
}

#[test]
fn a_port_reset_may_hang() {
    let faults = Faults {
        port_reset_hangs: true,
        ..Faults::none()
    };
    let raw = with_disks(Traits::default(), faults);
    raw.write(raw.port(0), PORT_POWER | PORT_RESET);
    raw.machine.advance(5_000 * MILLISECOND);
    assert_eq!(raw.read(raw.port(0)) & (PORT_RESET | 2), PORT_RESET);
}

#[test]
fn over_current_takes_the_port_down() {
    let faults = Faults {
        over_current: vec![(0, 400 * MILLISECOND, 600 * MILLISECOND)],
        ..Faults::none()
    };
    let mut raw = with_disks(Traits::default(), faults);
    raw.reset_port(0);
    raw.machine.advance(500 * MILLISECOND);
    let status = raw.read(raw.port(0));
    assert_eq!(status & (1 << 20 | 1 << 17), 1 << 20 | 1 << 17);
    assert_eq!(status & (PORT_POWER | 1 << 3 | 0b11), 1 << 3);
    // It is over, and the port stays down until it is told otherwise.
    raw.machine.advance(1_000 * MILLISECOND);
    assert_eq!(raw.read(raw.port(0)) & (PORT_POWER | 1 << 3 | 0b11), 0);
    raw.write(raw.port(0), PORT_POWER);
    raw.machine.advance(500 * MILLISECOND);
    assert_eq!(raw.read(raw.port(0)) & (PORT_POWER | 1), PORT_POWER | 1);
}

#[test]
fn link_states_beyond_rx_detect_are_not_modelled() {
    let raw = with_disks(Traits::default(), Faults::none());
    breaks("model", || {
        raw.write(raw.port(2), PORT_POWER | 1 << 16 | 3 << 5)
    });
    let raw = with_disks(Traits::default(), Faults::none());
    breaks("model", || raw.write(raw.port(2) + 4, 1));
}

#[test]
fn a_disabled_usb_3_port_trains_again_from_rx_detect() {
    let mut raw = with_disks(Traits::default(), Faults::none());
    raw.reset_port(2);
    raw.write(raw.port(2), PORT_POWER | ENABLED);
    assert_eq!(raw.read(raw.port(2)) & 0b11, 0);
    raw.write(raw.port(2), PORT_POWER | 1 << 16 | 5 << 5);
    raw.address(2);
}
