//! Tests of the bus: a super speed port.

use super::*;

/// A SuperSpeed device that has connected but not trained.
fn untrained() -> (Bus<'static, Fake>, Fake) {
    let (mut bus, fakes) = fake_bus(1, PortProtocol::Usb3);
    run(&mut bus, START, START);
    let fake = fakes[0].clone();
    fake.state().silent.push(Call::Reset(RootPort(0)));
    fake.state().connect(0, true);
    (bus, fake)
}

#[test]
fn may_show_no_connection_while_it_is_reset_and_trained_again() {
    let (mut bus, fake) = untrained();
    let reset = START + Duration::from_millis(450);
    run(&mut bus, START, reset);
    assert_eq!(fake.state().count(Call::Reset(RootPort(0))), 1);
    fake.state().connect(0, false);
    let training = START + Duration::from_millis(500);
    run(&mut bus, reset, training);
    assert_eq!(port_state(&bus, 0), PortState::Enumerating);
    fake.state().connect(0, true);
    fake.state().ports[0].enabled = true;
    fake.state().ports[0].speed = Some(Speed::Super);
    let events = run(&mut bus, training, training + WHILE);
    assert!(matches!(events[..], [BusEvent::Described(_)]), "{events:?}");
    assert_eq!(fake.state().count(Call::Reset(RootPort(0))), 1);
}

#[test]
fn that_failed_is_not_disabled_and_not_tried_for_ever() {
    let (mut bus, fake) = untrained();
    run(&mut bus, START, START + WHILE);
    let failed = PortState::Failed(UsbError::PortReset);
    assert_eq!(port_state(&bus, 0), failed);
    assert_eq!(fake.state().count(Call::Disable(RootPort(0))), 0);
    fake.state().connect(0, false);
    run(&mut bus, START + WHILE, START + WHILE);
    assert_eq!(port_state(&bus, 0), PortState::Empty);
}
