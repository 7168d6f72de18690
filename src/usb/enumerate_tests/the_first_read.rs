//! Tests of enumeration: the first read.

use super::*;

#[test]
fn asks_for_64_bytes_twice_and_for_8_at_the_last_attempt() {
    for number in 0..3 {
        asked(Speed::High, number);
    }
}

#[test]
fn takes_8_18_or_64_bytes() {
    let mut bytes = [0; 64];
    bytes[..18].copy_from_slice(&device(64));
    for length in [8, 18, 64] {
        let mut machine = asked(Speed::High, 0);
        let came = Input::Request(Ok(&bytes[..length]));
        follow(&mut machine, &[(came, ask_device())]);
    }
}

#[test]
fn of_fewer_than_8_bytes_fails_the_attempt() {
    let bytes = device(64);
    for length in [0, 1, 7] {
        let mut machine = asked(Speed::High, 0);
        let fails = machine.step(Input::Request(Ok(&bytes[..length])), NOW);
        let is_short = matches!(
            fails,
            Action::Fail(UsbError::Descriptor(DescriptorFault::TooShort { .. }))
        );
        assert!(is_short, "{length}: {fails:?}");
    }
}

#[test]
fn changes_endpoint_0_to_the_size_that_it_names_before_the_next_request() {
    for size in [8, 16, 32] {
        let mut machine = asked(Speed::Full, 0);
        let bytes = device(size);
        let script = [
            (
                Input::Request(Ok(&bytes[..8])),
                Action::MaxPacket(u16::from(size)),
            ),
            (DONE, ask_device()),
        ];
        follow(&mut machine, &script);
    }
}

#[test]
fn changes_nothing_where_the_size_is_known_by_the_speed() {
    for (speed, size) in [
        (Speed::Low, 8),
        (Speed::Full, 64),
        (Speed::High, 64),
        (Speed::Super, 9),
        (Speed::Super, 77),
    ] {
        let mut machine = asked(speed, 0);
        let bytes = device(size);
        let came = Input::Request(Ok(&bytes[..8]));
        follow(&mut machine, &[(came, ask_device())]);
    }
}

#[test]
fn of_an_impossible_size_fails_the_attempt() {
    for size in [0, 7, 9, 63, 65, 255] {
        let mut machine = asked(Speed::Full, 0);
        let bytes = device(size);
        let fault = DescriptorFault::ControlPacketSize(size);
        let script = [(
            Input::Request(Ok(&bytes[..])),
            Action::Fail(UsbError::Descriptor(fault)),
        )];
        follow(&mut machine, &script);
    }
}

#[test]
fn of_rubbish_fails_the_attempt() {
    let mut machine = asked(Speed::High, 0);
    let fails = machine.step(Input::Request(Ok(&[0; 64])), NOW);
    let is_fault = matches!(fails, Action::Fail(UsbError::Descriptor(_)));
    assert!(is_fault, "{fails:?}");
}

#[test]
fn that_goes_wrong_fails_the_attempt() {
    for error in [
        UsbError::Stall,
        UsbError::Timeout,
        UsbError::Babble,
        UsbError::NoAnswer,
    ] {
        let mut machine = asked(Speed::High, 0);
        let wrong = Input::Request(Err(error));
        follow(&mut machine, &[(wrong, Action::Fail(error))]);
    }
}
