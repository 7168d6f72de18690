//! The bus on fake controllers: what is found, what goes, and what must never stand still.

mod a_controller;
mod a_controller_that_starts_again;
mod a_device;
mod a_socket_of_two_halves;
mod a_super_speed_port;
mod configuration;
mod enumeration;
mod one_poll;
mod over_current;

use super::testing::{Call, Fake, fake_bus, poll, run};
use super::*;
use crate::host::{Outcome, PortProtocol, RootPort};
use crate::time::Duration;
use crate::usb::port::{POWER_RETURNS, PortState};
use crate::usb::setup::SetupPacket;
use crate::usb::speed::Speed;

const START: Instant = Instant::from_micros(1_000);

/// Long enough for any enumeration, and for every attempt at it.
const WHILE: Duration = Duration::from_secs(30);

const DIED: Event = Event::Died(ControllerFault::HostSystemError);

/// A bus whose controllers run.
fn running(controllers: usize) -> (Bus<'static, Fake>, Vec<Fake>) {
    let (mut bus, fakes) = fake_bus(controllers, PortProtocol::Usb2);
    run(&mut bus, START, START);
    (bus, fakes)
}

/// A bus whose one controller runs, and a device that was found on its port 0.
fn with_device() -> (Bus<'static, Fake>, Fake, DeviceId, Instant) {
    let (mut bus, fakes) = running(1);
    fakes[0].state().connect(0, true);
    let now = START + WHILE;
    let events = run(&mut bus, START, now);
    let [BusEvent::Described(device)] = events[..] else {
        panic!("{events:?}")
    };
    (bus, fakes[0].clone(), device, now)
}

fn port_state(bus: &Bus<'_, Fake>, port: u8) -> PortState {
    let mut ports = bus.ports();
    let entry = ports.find(|entry| entry.port() == RootPort(port));
    entry.unwrap().state()
}

fn state(bus: &Bus<'_, Fake>, controller: u8) -> ControllerState {
    bus.controller_state(ControllerId(controller)).unwrap()
}

/// The change that was acknowledged stood for both.
#[test]
fn a_contact_that_closes_between_the_look_and_its_acknowledgement_is_seen() {
    let (mut bus, fakes) = running(1);
    fakes[0].state().bounces = true;
    fakes[0].state().connect(0, false);
    let events = run(&mut bus, START, START + WHILE);
    assert!(matches!(events[..], [BusEvent::Described(_)]), "{events:?}");
}

/// A number that wraps would name another device.
#[test]
fn a_table_longer_than_its_numbers_is_used_as_far_as_they_count() {
    let mut ports = vec![PortEntry::EMPTY; 700];
    assert_eq!(countable(&mut ports).len(), 255);
    assert_eq!(countable(&mut ports[..2]).len(), 2);
    let (region, _) = super::testing::region();
    let storage = BusStorage {
        controllers: vec![ControllerSlot::<Fake>::EMPTY].leak(),
        ports: ports.leak(),
        devices: (0..700)
            .map(|_| DeviceEntry::EMPTY)
            .collect::<Vec<_>>()
            .leak(),
    };
    let bus = Bus::new(storage, Pool::new(region, &mut []));
    assert_eq!(bus.devices().count(), 0);
    assert_eq!((bus.ports.len(), bus.devices.len()), (255, 255));
}
