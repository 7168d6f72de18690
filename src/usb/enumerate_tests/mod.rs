//! What enumeration does with ports and devices of every kind, step by step.
//!
//! A test is a script of inputs and the answers that they must get. Time stands still within a
//! script: the answers say until when to wait.

mod a_super_speed_port;
mod a_usb_2_port;
mod the_address;
mod the_descriptors;
/// As devices are known to answer it: short, long, not at all, and with packets of any size.
mod the_first_read;

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
    let recovery = [50, 150, 450][usize::from(machine.attempt)];
    let script = [
        (Input::Time(port), Action::Wait(later(recovery))),
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
