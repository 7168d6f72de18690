//! Tests of enumeration: a usb 2 port.

use super::*;

#[test]
fn is_reset_waited_for_opened_and_its_device_addressed() {
    let mut machine = attempt(PortProtocol::Usb2, 0);
    let script = [
        (Input::Begin, Action::Reset(later(1))),
        (Input::Time(RESETTING), Action::Wait(later(1))),
        (Input::Time(RESETTING), Action::Wait(later(1))),
    ];
    follow(&mut machine, &script);
    address(&mut machine, Speed::High);
}

/// 10 ms are too short for some devices, and 2 ms after the address for others.
#[test]
fn has_its_recovery_times() {
    assert_eq!(RESET_RECOVERY, Duration::from_millis(50));
    assert_eq!(ADDRESS_RECOVERY, Duration::from_millis(10));
}

#[test]
fn that_the_core_holds_in_reset_is_let_go_after_that_time() {
    let mut machine = Enumeration::new(PortProtocol::Usb2, Some(HOLD), 0);
    let script = [
        (Input::Begin, Action::Reset(later(50))),
        (Input::Time(RESETTING), Action::EndReset(later(1))),
        (Input::Time(RESETTING), Action::Wait(later(1))),
    ];
    follow(&mut machine, &script);
    address(&mut machine, Speed::High);
}

#[test]
fn that_is_not_enabled_by_a_held_reset_is_for_the_companion() {
    let mut machine = Enumeration::new(PortProtocol::Usb2, Some(HOLD), 0);
    let script = [
        (Input::Begin, Action::Reset(later(50))),
        (Input::Time(RESETTING), Action::EndReset(later(1))),
        (
            Input::Time(CONNECTED),
            Action::Fail(UsbError::NeedsCompanion),
        ),
    ];
    follow(&mut machine, &script);
}

#[test]
fn that_stays_in_reset_is_given_up_after_half_a_second() {
    for stuck in [RESETTING, CONNECTED] {
        let mut machine = attempt(PortProtocol::Usb2, 0);
        machine.step(Input::Begin, NOW);
        let just_before = later(499);
        let waits = machine.step(Input::Time(stuck), just_before);
        assert_eq!(waits, Action::Wait(later(500)));
        let fails = machine.step(Input::Time(stuck), later(500));
        assert_eq!(fails, Action::Fail(UsbError::PortReset));
    }
}

#[test]
fn that_is_emptied_in_its_reset_fails_as_disconnected() {
    for hold in [None, Some(HOLD)] {
        let mut machine = Enumeration::new(PortProtocol::Usb2, hold, 0);
        machine.step(Input::Begin, NOW);
        if hold.is_some() {
            machine.step(Input::Time(RESETTING), NOW);
        }
        let fails = machine.step(Input::Time(GONE), NOW);
        assert_eq!(fails, Action::Fail(UsbError::Disconnected));
    }
}

#[test]
fn that_was_enabled_but_is_not_after_the_recovery_fails() {
    let mut machine = attempt(PortProtocol::Usb2, 0);
    let script = [
        (Input::Begin, Action::Reset(later(1))),
        (Input::Time(enabled(Speed::High)), Action::Wait(later(50))),
        (Input::Time(CONNECTED), Action::Fail(UsbError::PortReset)),
    ];
    follow(&mut machine, &script);
}

#[test]
fn is_reset_anew_at_each_attempt() {
    for number in 0..3 {
        let mut machine = attempt(PortProtocol::Usb2, number);
        let begun = machine.step(Input::Begin, NOW);
        assert_eq!(begun, Action::Reset(later(1)));
        assert!(machine.is_resetting());
    }
}
