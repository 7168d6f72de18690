//! Tests of enumeration: the address.

use super::*;

#[test]
fn that_the_core_sets_is_adopted_when_the_device_has_taken_it() {
    let mut machine = attempt(PortProtocol::Usb2, 0);
    machine.step(Input::Begin, NOW);
    let port = enabled(Speed::High);
    let set = request(SetupPacket::set_address(9), Duration::from_secs(1));
    let script = [
        (Input::Time(port), Action::Wait(later(50))),
        (Input::Time(port), Action::Open(Speed::High)),
        (DONE, Action::Address),
        (Input::SoftwareAddress(9), set),
        (Input::Request(Ok(&[])), Action::Adopt(9, later(10))),
        (Input::Time(port), ask_head(64)),
    ];
    follow(&mut machine, &script);
}

#[test]
fn is_given_behind_a_look_at_the_descriptor_at_the_second_attempt() {
    let controller: (_, &[_]) = (DONE, &[]);
    let software = (Input::SoftwareAddress(0), &[Input::SoftwareAddress(9)][..]);
    for (reached, addressed) in [controller, software] {
        let mut machine = attempt(PortProtocol::Usb2, 1);
        machine.step(Input::Begin, NOW);
        let port = enabled(Speed::High);
        let script = [
            (Input::Time(port), Action::Wait(later(150))),
            (Input::Time(port), Action::Open(Speed::High)),
            (DONE, Action::ReachAtZero),
            (reached, ask_head(64)),
            (
                Input::Request(Ok(&[18, 1, 0, 2, 0, 0, 0, 64])),
                Action::Address,
            ),
        ];
        follow(&mut machine, &script);
        for input in addressed {
            let set = request(SetupPacket::set_address(9), Duration::from_secs(1));
            assert_eq!(machine.step(*input, NOW), set);
        }
    }
}

#[test]
fn that_is_refused_is_not_adopted() {
    let mut machine = attempt(PortProtocol::Usb2, 0);
    machine.step(Input::Begin, NOW);
    let port = enabled(Speed::High);
    machine.step(Input::Time(port), NOW);
    machine.step(Input::Time(port), NOW);
    machine.step(DONE, NOW);
    machine.step(Input::SoftwareAddress(9), NOW);
    let stalled = Input::Request(Err(UsbError::Stall));
    follow(&mut machine, &[(stalled, Action::Fail(UsbError::Stall))]);
}

#[test]
fn that_the_controller_cannot_give_fails_the_attempt() {
    for error in [
        UsbError::NoAnswer,
        UsbError::Timeout,
        UsbError::Controller(HostError::Resources),
    ] {
        let failed = Input::Controller(Err(error));
        let mut machine = attempt(PortProtocol::Usb2, 0);
        machine.step(Input::Begin, NOW);
        machine.step(Input::Time(enabled(Speed::High)), NOW);
        machine.step(Input::Time(enabled(Speed::High)), NOW);
        let mut opened = machine;
        follow(&mut machine, &[(failed, Action::Fail(error))]);
        opened.step(DONE, NOW);
        follow(&mut opened, &[(failed, Action::Fail(error))]);
    }
}
