//! Tests of the bus: enumeration.

use super::*;

/// Devices that do not come up at first are common: many take more time than the specification gives.
#[test]
fn is_tried_three_times_each_with_a_reset_and_a_disabled_port_after_it() {
    let (mut bus, fakes) = running(1);
    let fake = &fakes[0];
    fake.state().mute = true;
    fake.state().connect(0, true);
    assert_eq!(run(&mut bus, START, START + WHILE), []);
    assert_eq!(fake.state().count(Call::Reset(RootPort(0))), 3);
    assert_eq!(fake.state().count(Call::Close), 3);
    assert_eq!(fake.state().count(Call::Disable(RootPort(0))), 3);
    let failed = PortState::Failed(UsbError::Timeout);
    assert_eq!(port_state(&bus, 0), failed);
    assert_eq!(bus.devices().count(), 0);
}

#[test]
fn of_a_dead_device_lets_a_neighbour_pass() {
    let (mut bus, fakes) = running(1);
    let fake = &fakes[0];
    fake.state().silent.push(Call::Reset(RootPort(0)));
    fake.state().connect(0, true);
    fake.state().connect(1, true);
    let soon = START + Duration::from_millis(1_500);
    let events = run(&mut bus, START, soon);
    assert!(matches!(events[..], [BusEvent::Described(_)]));
    assert!(matches!(port_state(&bus, 1), PortState::Occupied(_)));
}

/// The walk over the timers must not forget what it has put off.
#[test]
fn goes_on_when_the_controller_knows_its_device_no_more() {
    let (mut bus, fakes) = running(1);
    let fake = &fakes[0];
    fake.state().mute = true;
    fake.state().refused.push((Call::Close, HostError::Stale));
    fake.state().refused.push((Call::Quiesce, HostError::Stale));
    fake.state().connect(0, true);
    run(&mut bus, START, START + WHILE);
    assert_eq!(fake.state().count(Call::Reset(RootPort(0))), 3);
    assert!(matches!(port_state(&bus, 0), PortState::Failed(_)));
}

#[test]
fn that_waits_for_its_turn_does_not_keep_the_cpu_awake() {
    let (mut bus, fakes) = running(1);
    let fake = &fakes[0];
    fake.state().silent.push(Call::Open);
    fake.state().connect(0, true);
    fake.state().connect(1, true);
    let now = START + Duration::from_secs(2);
    run(&mut bus, START, now);
    assert!(matches!(port_state(&bus, 1), PortState::Waiting(..)));
    poll(&mut bus, now);
    assert!(bus.next_wake() > now);
}

#[test]
fn ends_quietly_when_the_device_is_pulled_at_any_moment() {
    for milliseconds in (0..400).step_by(3) {
        let (mut bus, fakes) = running(1);
        let fake = &fakes[0];
        fake.state().connect(0, true);
        let moment = START + Duration::from_millis(milliseconds);
        let mut events = run(&mut bus, START, moment);
        fake.state().connect(0, false);
        events.extend(run(&mut bus, moment, moment + WHILE));
        let is_even = match events[..] {
            [] => true,
            [
                BusEvent::Described(a),
                BusEvent::Gone(b),
                BusEvent::Closed(c, Fate::Gone),
            ] => a == b && b == c,
            _ => false,
        };
        assert!(is_even, "{milliseconds}: {events:?}");
        assert_eq!(port_state(&bus, 0), PortState::Empty);
        assert_eq!(bus.devices().count(), 0, "{milliseconds}");
        fake.state().connect(0, true);
        let later = moment + WHILE;
        let events = run(&mut bus, later, later + WHILE);
        assert!(matches!(events[..], [BusEvent::Described(_)]));
    }
}
