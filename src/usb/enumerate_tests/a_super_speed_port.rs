//! Tests of enumeration: a super speed port.

use super::*;

#[test]
fn that_has_trained_is_not_reset() {
    let mut machine = attempt(PortProtocol::Usb3, 0);
    follow(&mut machine, &[(Input::Begin, Action::Wait(NOW))]);
    address(&mut machine, Speed::Super);
}

#[test]
fn that_trains_is_waited_for() {
    let mut machine = attempt(PortProtocol::Usb3, 0);
    let script = [
        (Input::Begin, Action::Wait(NOW)),
        (Input::Time(CONNECTED), Action::Wait(later(1))),
    ];
    follow(&mut machine, &script);
    address(&mut machine, Speed::Super);
}

#[test]
fn that_does_not_train_gets_a_warm_reset_and_is_then_given_up() {
    let mut machine = attempt(PortProtocol::Usb3, 0);
    machine.step(Input::Begin, NOW);
    let warm = machine.step(Input::Time(CONNECTED), later(400));
    assert_eq!(warm, Action::WarmReset(later(401)));
    let waits = machine.step(Input::Time(GONE), later(899));
    assert_eq!(waits, Action::Wait(later(900)));
    let fails = machine.step(Input::Time(CONNECTED), later(900));
    assert_eq!(fails, Action::Fail(UsbError::PortReset));
}

#[test]
fn that_is_inactive_gets_a_warm_reset_at_once() {
    let inactive = PortStatus {
        needs_warm_reset: true,
        ..CONNECTED
    };
    let mut machine = attempt(PortProtocol::Usb3, 0);
    let script = [
        (Input::Begin, Action::Wait(NOW)),
        (Input::Time(inactive), Action::WarmReset(later(1))),
        (Input::Time(RESETTING), Action::Wait(later(1))),
    ];
    follow(&mut machine, &script);
    address(&mut machine, Speed::Super);
}

#[test]
fn gets_a_hot_reset_at_the_second_attempt_which_may_turn_into_a_warm_one() {
    let mut machine = attempt(PortProtocol::Usb3, 1);
    let begun = machine.step(Input::Begin, NOW);
    assert_eq!(begun, Action::Reset(later(1)));
    let warm = machine.step(Input::Time(CONNECTED), later(500));
    assert_eq!(warm, Action::WarmReset(later(501)));
}

#[test]
fn gets_a_warm_reset_at_the_last_attempt() {
    let mut machine = attempt(PortProtocol::Usb3, 2);
    let begun = machine.step(Input::Begin, NOW);
    assert_eq!(begun, Action::WarmReset(later(1)));
}
