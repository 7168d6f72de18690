//! What enumeration does with ports and devices of every kind, step by step.
//!
//! A test is a script of inputs and the answers that they must get. Time stands still within a
//! script: the answers say until when to wait.

use super::*;
use crate::host::HostError;
use crate::usb::descriptor::DescriptorFault;

const NOW: Instant = Instant::from_micros(7_000_000);

/// How long the tests' core holds a reset, where it must.
const HOLD: Duration = Duration::from_millis(50);

const DONE: Input<'static> = Input::Controller(Ok(()));

const GONE: PortStatus = PortStatus {
    connected: false,
    enabled: false,
    resetting: false,
    powered: true,
    over_current: false,
    needs_warm_reset: false,
    speed: None,
    connect_changed: false,
    reset_changed: false,
    handed_over: false,
};

const CONNECTED: PortStatus = PortStatus {
    connected: true,
    ..GONE
};

const RESETTING: PortStatus = PortStatus {
    resetting: true,
    ..CONNECTED
};

const fn enabled(speed: Speed) -> PortStatus {
    PortStatus {
        enabled: true,
        speed: Some(speed),
        ..CONNECTED
    }
}

const fn later(milliseconds: u64) -> Instant {
    Instant::from_micros(NOW.as_micros() + milliseconds * 1000)
}

/// A device descriptor with this packet size for endpoint 0.
const fn device(size: u8) -> [u8; 18] {
    [
        18, 1, 0x00, 0x02, 0, 0, 0, size, 0xf4, 0x46, 1, 0, 0x14, 0x01, 0, 0, 0, 1,
    ]
}

/// The head of a configuration that announces `length` bytes in all.
const fn configuration(length: u16) -> [u8; 9] {
    let [low, high] = length.to_le_bytes();
    [9, 2, low, high, 1, 7, 0, 0x80, 50]
}

fn request(setup: SetupPacket, timeout: Duration) -> Action {
    Action::Request(setup, NOW + timeout)
}

/// The first request of a device that has its address.
fn ask_head(length: u16) -> Action {
    let setup = SetupPacket::device_descriptor(length);
    request(setup, Duration::from_secs(1))
}

fn ask_device() -> Action {
    let setup = SetupPacket::device_descriptor(18);
    request(setup, Duration::from_secs(5))
}

fn ask_configuration(length: u16) -> Action {
    let setup = SetupPacket::configuration_descriptor(0, length);
    request(setup, Duration::from_secs(5))
}

#[track_caller]
fn follow(machine: &mut Enumeration, script: &[(Input<'_>, Action)]) {
    for (place, (input, answer)) in script.iter().enumerate() {
        let found = machine.step(*input, NOW);
        assert_eq!(found, *answer, "step {place}: {input:?}");
    }
}

/// An attempt on a port whose controller ends resets by itself.
fn attempt(protocol: PortProtocol, attempt: u8) -> Enumeration {
    Enumeration::new(protocol, None, attempt)
}

/// From a port in reset to a device that has its address, opened with the packet size that its
/// speed has at first.
fn address(machine: &mut Enumeration, speed: Speed) {
    let port = enabled(speed);
    let script = [
        (Input::Time(port), Action::Wait(later(50))),
        (Input::Time(port), Action::Open(speed)),
    ];
    follow(machine, &script);
    if machine.asks_at_zero() {
        let head = Input::Request(Ok(&[18, 1, 0, 2, 0, 0, 0, 64]));
        let script = [
            (DONE, Action::ReachAtZero),
            (DONE, ask_head(64)),
            (head, Action::Address),
        ];
        follow(machine, &script);
    } else {
        follow(machine, &[(DONE, Action::Address)]);
    }
    follow(machine, &[(DONE, Action::Wait(later(10)))]);
    let initial = crate::usb::descriptor::initial_control_packet_size(speed);
    machine.opened_with(initial);
}

/// A device that was just asked for the head of its device descriptor.
fn asked(speed: Speed, number: u8) -> Enumeration {
    let mut machine = attempt(PortProtocol::Usb2, number);
    machine.step(Input::Begin, NOW);
    address(&mut machine, speed);
    let length = if number < 2 { 64 } else { 8 };
    follow(
        &mut machine,
        &[(Input::Time(enabled(speed)), ask_head(length))],
    );
    machine
}

mod a_usb_2_port {
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

    /// Field case 28: 10 ms are too short for some, and 2 ms after the address for others.
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
}

mod a_super_speed_port {
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
}

mod the_address {
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
                (Input::Time(port), Action::Wait(later(50))),
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
}

/// Field case 29.
mod the_first_read {
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
}

mod the_descriptors {
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

    /// Field case 27: what is announced is not what comes.
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
}

#[test]
fn only_training_and_reset_count_as_resetting() {
    let mut machine = attempt(PortProtocol::Usb2, 0);
    machine.step(Input::Begin, NOW);
    assert!(machine.is_resetting());
    machine.step(Input::Time(enabled(Speed::High)), NOW);
    assert!(!machine.is_resetting());
    let mut machine = attempt(PortProtocol::Usb3, 0);
    machine.step(Input::Begin, NOW);
    assert!(machine.is_resetting());
}

#[test]
fn what_comes_too_late_moves_nothing() {
    let late = [
        DONE,
        Input::Request(Ok(&[0; 18])),
        Input::SoftwareAddress(3),
    ];
    let mut machine = attempt(PortProtocol::Usb2, 0);
    machine.step(Input::Begin, NOW);
    for input in late {
        assert_eq!(machine.step(input, NOW), Action::Ignore, "{input:?}");
    }
    address(&mut machine, Speed::High);
    for input in late {
        assert_eq!(machine.step(input, NOW), Action::Ignore, "{input:?}");
    }
    follow(
        &mut machine,
        &[(Input::Time(enabled(Speed::High)), ask_head(64))],
    );
}
