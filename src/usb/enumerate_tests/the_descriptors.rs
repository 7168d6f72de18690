//! Tests of enumeration: the descriptors.

use super::*;

/// A device that was just asked for the first bytes of its configuration.
fn described() -> Enumeration {
    let mut machine = asked(Speed::High, 0);
    let bytes = device(64);
    let script = [
        (Input::Request(Ok(&bytes[..8])), ask_device()),
        (Input::Request(Ok(&bytes)), ask_configuration(9)),
    ];
    follow(&mut machine, &script);
    machine
}

#[test]
fn are_read_first_in_part_then_whole() {
    let mut machine = described();
    let mut bytes = [0; 32];
    bytes[..9].copy_from_slice(&configuration(32));
    let whole = Description {
        device: Device::parse(&device(64)).unwrap(),
        configuration_length: 32,
        power: PowerDraw {
            milliamperes: 100,
            is_self_powered: false,
            port_milliamperes: 500,
        },
        strings: DeviceStrings::NONE,
    };
    let script = [
        (Input::Request(Ok(&bytes[..9])), ask_configuration(32)),
        (Input::Request(Ok(&bytes)), Action::Done),
    ];
    follow(&mut machine, &script);
    assert_eq!(machine.description(), Some(whole));
}

/// Devices are known that announce one length and send another.
#[test]
fn may_be_shorter_than_announced_but_not_than_their_head() {
    for came in [9, 10, 31] {
        let mut machine = described();
        let mut bytes = [0; 32];
        bytes[..9].copy_from_slice(&configuration(32));
        machine.step(Input::Request(Ok(&bytes[..9])), NOW);
        let end = machine.step(Input::Request(Ok(&bytes[..came])), NOW);
        assert_eq!(end, Action::Done, "{came}");
        let found = machine.description().unwrap();
        assert_eq!(usize::from(found.configuration_length), came);
    }
    let mut machine = described();
    machine.step(Input::Request(Ok(&configuration(32))), NOW);
    let end = machine.step(Input::Request(Ok(&configuration(32)[..8])), NOW);
    let is_fault = matches!(end, Action::Fail(UsbError::Descriptor(_)));
    assert!(is_fault, "{end:?}");
}

#[test]
fn are_asked_for_within_9_and_1024_bytes_whatever_is_announced() {
    let table = [
        (0, 9),
        (8, 9),
        (9, 9),
        (1024, 1024),
        (1025, 1024),
        (0xffff, 1024),
    ];
    for (announced, asked_for) in table {
        let mut machine = described();
        let head = configuration(announced);
        let came = Input::Request(Ok(&head));
        follow(&mut machine, &[(came, ask_configuration(asked_for))]);
    }
}

#[test]
fn that_cannot_be_had_fail_the_attempt() {
    for error in [UsbError::Stall, UsbError::Timeout, UsbError::NoAnswer] {
        let mut machine = described();
        let wrong = Input::Request(Err(error));
        follow(&mut machine, &[(wrong, Action::Fail(error))]);
    }
}

#[test]
fn of_another_kind_fail_the_attempt() {
    let mut machine = described();
    let end = machine.step(Input::Request(Ok(&device(64))), NOW);
    let is_fault = matches!(end, Action::Fail(UsbError::Descriptor(_)));
    assert!(is_fault, "{end:?}");
}
