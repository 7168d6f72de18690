//! Tests of the bus: a controller that starts again.

use super::*;

/// A controller that died and stops when it is told a second time.
fn stopping(before: impl FnOnce(&mut Bus<'static, Fake>, DeviceId, Instant)) -> BusEvent {
    let (mut bus, fake, device, now) = with_device();
    fake.state().silent.extend([Call::Stop, Call::Close]);
    before(&mut bus, device, now);
    run(&mut bus, now, now + WHILE);
    fake.state().events.push_back(DIED);
    run(&mut bus, now, now + WHILE);
    fake.state().events.push_back(Event::Stopped(Ok(())));
    let events = run(&mut bus, now, now + WHILE);
    assert!(!bus.is_kept(device));
    events[0]
}

#[test]
fn brings_a_device_back_that_was_in_use_or_being_reset() {
    let in_use = stopping(|_, _, _| {});
    assert!(matches!(in_use, BusEvent::Closed(_, Fate::Returning)));
    let in_reset = stopping(|bus, device, now| bus.reset_device(device, now));
    assert!(matches!(in_reset, BusEvent::Closed(_, Fate::Returning)));
}

#[test]
fn does_not_bring_back_what_was_given_up() {
    let given_up = stopping(|bus, device, now| bus.give_up(device, now));
    assert!(matches!(given_up, BusEvent::Closed(_, Fate::Gone)));
}

#[test]
fn finds_the_device_gone_and_takes_what_comes_next_for_another_one() {
    let (mut bus, fake, _, now) = with_device();
    fake.state().silent.push(Call::Stop);
    fake.state().events.push_back(DIED);
    run(&mut bus, now, now + WHILE);
    // Pulled while nobody looked: the controller's reset has cleared the change.
    fake.state().ports[0].connected = false;
    fake.state().events.push_back(Event::Stopped(Ok(())));
    run(&mut bus, now, now + WHILE);
    fake.state().connect(0, true);
    let events = run(&mut bus, now, now + WHILE);
    let [BusEvent::Described(other)] = events[..] else {
        panic!("{events:?}")
    };
    assert!(!bus.is_kept(other));
}

#[test]
fn knows_a_device_again_that_shows_itself_within_three_seconds() {
    let (mut bus, fake, _, now) = with_device();
    fake.state().silent.push(Call::Stop);
    fake.state().events.push_back(DIED);
    run(&mut bus, now, now + WHILE);
    fake.state().ports[0].connected = false;
    fake.state().events.push_back(Event::Stopped(Ok(())));
    let later = now + WHILE + Duration::from_millis(2_500);
    run(&mut bus, now + WHILE, later);
    fake.state().connect(0, true);
    let events = run(&mut bus, later, later + Duration::from_secs(1));
    let [BusEvent::Described(again)] = events[..] else {
        panic!("{events:?}")
    };
    assert!(bus.is_kept(again));
}

#[test]
fn takes_what_was_plugged_into_an_empty_port_meanwhile_for_another_device() {
    let (mut bus, fake, device, now) = with_device();
    fake.state().silent.extend([Call::Stop, Call::Close]);
    fake.state().connect(0, false);
    let events = run(&mut bus, now, now + WHILE);
    assert_eq!(events, [BusEvent::Gone(device)]);
    fake.state().events.push_back(DIED);
    run(&mut bus, now, now + WHILE);
    fake.state().connect(0, true);
    fake.state().events.push_back(Event::Stopped(Ok(())));
    let events = run(&mut bus, now, now + WHILE);
    let [
        BusEvent::Closed(closed, Fate::Gone),
        BusEvent::Described(other),
    ] = events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(closed, device);
    assert!(!bus.is_kept(other));
}

/// Its device was closed for a reset of its port, and did not show itself again.
#[test]
fn knows_a_device_again_that_was_away_for_a_reset() {
    let (mut bus, fake, device, now) = with_device();
    bus.reset_device(device, now);
    fake.state().silent.push(Call::Reset(RootPort(0)));
    let events = run(&mut bus, now, now + Duration::from_millis(100));
    assert_eq!(events, [BusEvent::Closed(device, Fate::Returning)]);
    fake.state().silent.clear();
    bus.restart_controller(ControllerId(0), now + Duration::from_millis(100));
    let events = run(&mut bus, now + Duration::from_millis(100), now + WHILE);
    let [BusEvent::Described(again)] = events[..] else {
        panic!("{events:?}")
    };
    assert!(bus.is_kept(again));
}
