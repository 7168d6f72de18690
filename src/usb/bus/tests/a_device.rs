//! Tests of the bus: a device.

use super::*;

#[test]
fn is_found_and_sits_on_its_port() {
    let (bus, _, device, _) = with_device();
    assert_eq!(port_state(&bus, 0), PortState::Occupied(device));
    assert_eq!(port_state(&bus, 1), PortState::Empty);
    assert_eq!(bus.devices().count(), 1);
}

#[test]
fn whose_controller_does_not_end_what_it_has_begun_is_closed_with_the_controller() {
    let (mut bus, fake, device, now) = with_device();
    fake.state().silent.push(Call::Close);
    fake.state().connect(0, false);
    let events = run(&mut bus, now, now + WHILE);
    let closed = BusEvent::Closed(device, Fate::Gone);
    assert_eq!(events, [BusEvent::Gone(device), closed]);
    assert_eq!(
        fake.state()
            .calls
            .iter()
            .filter(|call| **call == Call::Stop)
            .count(),
        1
    );
    assert_eq!(
        state(&bus, 0),
        ControllerState::Running,
        "it was started again"
    );
}

#[test]
fn that_is_pulled_has_gone_first_and_is_closed_later() {
    let (mut bus, fake, device, now) = with_device();
    fake.state().silent.push(Call::Close);
    fake.state().connect(0, false);
    let events = run(&mut bus, now, now + Duration::from_secs(14));
    assert_eq!(events, [BusEvent::Gone(device)]);
    assert_eq!(port_state(&bus, 0), PortState::Empty);
    let handle = bus.device(device).unwrap().handle;
    let result = Ok(());
    let closed = Event::Device {
        device: handle,
        result,
    };
    fake.state().events.push_back(closed);
    let events = run(&mut bus, now, now + WHILE);
    assert_eq!(events, [BusEvent::Closed(device, Fate::Gone)]);
    assert!(bus.info(device).is_none());
}

#[test]
fn that_is_replaced_between_two_looks_at_its_port_has_gone_too() {
    let (mut bus, fake, device, now) = with_device();
    fake.state().connect(0, true);
    let events = run(&mut bus, now, now + WHILE);
    let [
        BusEvent::Gone(gone),
        BusEvent::Closed(closed, _),
        BusEvent::Described(other),
    ] = events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((gone, closed), (device, device));
    assert_ne!(other, device);
    assert!(bus.info(device).is_none());
}

#[test]
fn that_is_given_up_is_closed_and_its_port_is_left_alone_until_it_is_pulled() {
    let (mut bus, fake, device, now) = with_device();
    bus.give_up(device, now);
    let events = run(&mut bus, now, now + WHILE);
    assert_eq!(events, [BusEvent::Closed(device, Fate::Gone)]);
    assert!(matches!(port_state(&bus, 0), PortState::Failed(_)));
    fake.state().connect(0, false);
    assert_eq!(run(&mut bus, now, now + WHILE), []);
    fake.state().connect(0, true);
    let events = run(&mut bus, now, now + WHILE);
    assert!(matches!(events[..], [BusEvent::Described(_)]));
}
