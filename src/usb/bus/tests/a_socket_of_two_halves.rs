//! Tests of the bus: a socket of two halves.

use super::*;

/// A device on the USB 2 half is cycled, on a controller whose SuperSpeed ports begin there.
fn cycled(super_speed_from: u8) -> (Bus<'static, Fake>, Fake) {
    let (mut bus, fake, device, now) = with_device();
    fake.state().super_speed_from = super_speed_from;
    bus.cycle_power(device, now);
    for _ in 0..4 {
        poll(&mut bus, now);
        fake.state().finish_close();
    }
    poll(&mut bus, now);
    (bus, fake)
}

fn is_off(bus: &Bus<'_, Fake>, port: u8) -> bool {
    matches!(port_state(bus, port), PortState::Unpowered(_))
}

#[test]
fn loses_its_power_on_both() {
    let (mut bus, fake) = cycled(1);
    assert!(is_off(&bus, 0) && is_off(&bus, 1));
    fake.state().connect(0, false);
    let now = START + WHILE;
    run(&mut bus, now, now + WHILE);
    assert_eq!(port_state(&bus, 0), PortState::Empty);
    assert_eq!(port_state(&bus, 1), PortState::Empty, "it has power again");
}

#[test]
fn is_not_known_where_one_kind_has_more_ports() {
    let (bus, _) = cycled(u8::MAX);
    assert!(is_off(&bus, 0) && !is_off(&bus, 1));
}
