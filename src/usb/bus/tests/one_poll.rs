//! Tests of the bus: one poll.

use super::*;

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
