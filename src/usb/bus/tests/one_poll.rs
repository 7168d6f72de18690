//! Tests of the bus: one poll.

use super::*;
use crate::usb::bus::turns::{POSTPONED, SHARE};
use crate::usb::device::Requester;
use crate::usb::operation::Operation;

#[test]
fn takes_an_end_also_with_a_controller_that_always_has_something_to_say() {
    let (mut bus, fakes) = running(2);
    let stale = Event::Transfer {
        endpoint: EndpointHandle {
            index: 0,
            generation: 0,
        },
        token: crate::host::Token(0),
        outcome: Outcome::Complete,
        actual: 0,
    };
    let storm = 100_000;
    fakes[0].state().events.extend(vec![stale; storm]);
    fakes[1].state().connect(0, true);
    assert_eq!(poll(&mut bus, START), []);
    assert!(fakes[0].state().events.len() > storm / 2);
    assert!(fakes[1].state().events.is_empty(), "the other has its turn");
    assert!(bus.next_wake() <= START, "the rest is not forgotten");
    run_out(&mut bus, &fakes[0]);
}

fn run_out(bus: &mut Bus<'_, Fake>, fake: &Fake) {
    for _ in 0..10_000 {
        poll(bus, START);
        if fake.state().events.is_empty() {
            return;
        }
    }
    panic!("events are left");
}

/// The other controller is asked although the first has news at every poll.
#[test]
fn gives_each_controller_its_turn() {
    let (mut bus, fakes) = running(2);
    let function = super::super::token::function(1, 7);
    let news = Event::Transfer {
        endpoint: EndpointHandle {
            index: 1,
            generation: 0,
        },
        token: function,
        outcome: Outcome::Complete,
        actual: 0,
    };
    fakes[1].state().events.push_back(news);
    for _ in 0..1_000 {
        fakes[0].state().events.push_back(news);
        bus.poll(START);
        if fakes[1].state().events.is_empty() {
            return;
        }
    }
    panic!("the second controller had no turn");
}

/// Whoever was away for long finds the ends first, however many there are.
#[test]
fn finds_no_request_late_whose_end_waits_behind_other_events() {
    let (mut bus, fake, device, now) = with_device();
    fake.state().mute = true;
    let operation = Operation::Request(SetupPacket::bulk_only_reset(0), Duration::from_secs(1));
    bus.begin(device, Requester::Function, operation, now)
        .unwrap();
    let count = bus.device(device).unwrap().control_count;
    let event = |token| Event::Transfer {
        endpoint: EndpointHandle {
            index: 0,
            generation: 0,
        },
        token,
        outcome: Outcome::Complete,
        actual: 0,
    };
    let end = event(super::super::token::control(device.index, count));
    let stale = event(crate::host::Token(0));
    let before = usize::from(SHARE) * 3;
    fake.state().events.extend(vec![stale; before]);
    fake.state().events.push_back(end);
    let late = now + Duration::from_secs(60);
    let ends: Vec<_> = (0..5).flat_map(|_| poll(&mut bus, late)).collect();
    assert_eq!(ends, [BusEvent::Operated(device, Ok(0))]);
}

/// A controller that always has something to say holds nobody's deadline up for long.
#[test]
fn finds_a_request_late_that_waits_behind_events_without_end() {
    let (mut bus, fake, device, now) = with_device();
    fake.state().mute = true;
    let operation = Operation::Request(SetupPacket::bulk_only_reset(0), Duration::from_secs(1));
    bus.begin(device, Requester::Function, operation, now)
        .unwrap();
    let stale = Event::Transfer {
        endpoint: EndpointHandle {
            index: 0,
            generation: 0,
        },
        token: crate::host::Token(0),
        outcome: Outcome::Complete,
        actual: 0,
    };
    let late = now + Duration::from_secs(60);
    fake.state().calls.clear();
    for _ in 0..2 * POSTPONED {
        fake.state().events.extend(vec![stale; 1000]);
        poll(&mut bus, late);
    }
    let calls = &fake.state().calls;
    assert!(!calls.is_empty(), "its endpoint is to be made quiet");
}
