//! Tests of the bus: over current.

use super::*;

fn set(fake: &Fake, over_current: bool) {
    let mut state = fake.state();
    state.ports[0].over_current = over_current;
    state.connect(0, false);
}

#[test]
fn takes_the_device_away_and_is_told_of_once() {
    let (mut bus, fake, device, now) = with_device();
    set(&fake, true);
    let events = run(&mut bus, now, now + WHILE);
    assert_eq!(events.first(), Some(&BusEvent::Gone(device)));
    let failed = PortState::Failed(UsbError::OverCurrent);
    assert_eq!(port_state(&bus, 0), failed);
    let surge = Some((ControllerId(0), RootPort(0)));
    assert_eq!((bus.take_surge(), bus.take_surge()), (surge, None));
}

#[test]
fn that_is_over_gives_the_port_its_power_back_a_few_times() {
    let (mut bus, fake, _, mut now) = with_device();
    for round in 0..=POWER_RETURNS {
        set(&fake, true);
        set(&fake, false);
        fake.state().ports[0].over_current = true;
        run(&mut bus, now, now + WHILE);
        fake.state().ports[0].over_current = false;
        fake.state().events.push_back(Event::Port(RootPort(0)));
        now = now + WHILE + WHILE;
        run(&mut bus, now, now + WHILE);
        let expected = if round < POWER_RETURNS {
            PortState::Empty
        } else {
            PortState::Failed(UsbError::OverCurrent)
        };
        assert_eq!(port_state(&bus, 0), expected, "round {round}");
        now = now + WHILE + WHILE;
    }
}
