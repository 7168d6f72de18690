//! Tests of the bus: a controller.

use super::*;

#[test]
fn that_died_is_stopped_its_devices_are_closed_and_it_starts_again() {
    let (mut bus, fake, device, now) = with_device();
    fake.state().events.push_back(DIED);
    let events = run(&mut bus, now, now + WHILE);
    let [BusEvent::Closed(closed, _), BusEvent::Described(again)] = events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(closed, device);
    assert_ne!(again, device);
    assert_eq!(fake.state().count(Call::Start), 2);
    assert_eq!(state(&bus, 0), ControllerState::Running);
}

#[test]
fn that_dies_again_and_again_is_left_alone_in_the_end() {
    let (mut bus, fake, _, mut now) = with_device();
    for _ in 0..5 {
        fake.state().events.push_back(DIED);
        now = now + WHILE;
        run(&mut bus, now, now + WHILE);
    }
    let fault = ControllerFault::HostSystemError;
    assert_eq!(state(&bus, 0), ControllerState::Failed(fault));
    assert_eq!(fake.state().count(Call::Start), 3);
}

/// It may know a device no more, and still reach its memory.
#[test]
fn that_is_being_stopped_has_not_let_go_of_its_devices() {
    for error in [HostError::Stale, HostError::Dead] {
        let (mut bus, fake, device, now) = with_device();
        fake.state().silent.push(Call::Stop);
        fake.state().refused.push((Call::Close, error));
        fake.state().events.push_back(DIED);
        run(&mut bus, now, now + WHILE);
        bus.give_up(device, now);
        assert_eq!(run(&mut bus, now, now + WHILE), []);
        fake.state().events.push_back(Event::Stopped(Ok(())));
        let events = run(&mut bus, now, now + WHILE);
        let is_closed = matches!(events[0], BusEvent::Closed(closed, _) if closed == device);
        assert!(is_closed, "{error:?}: {events:?}");
    }
}

#[test]
fn that_dies_while_the_user_stops_it_stays_stopped() {
    let (mut bus, fake, device, now) = with_device();
    fake.state().silent.push(Call::Stop);
    bus.stop(now);
    fake.state().events.push_back(DIED);
    fake.state().events.push_back(Event::Stopped(Ok(())));
    let events = run(&mut bus, now, now + WHILE);
    assert_eq!(events, [BusEvent::Closed(device, Fate::Gone)]);
    assert_eq!(state(&bus, 0), ControllerState::Stopped);
    assert_eq!(fake.state().count(Call::Start), 1);
}

#[test]
fn that_is_stopped_while_it_starts_does_not_run() {
    let (mut bus, fakes) = fake_bus(1, PortProtocol::Usb2);
    fakes[0].state().silent.push(Call::Stop);
    fakes[0].state().connect(0, true);
    bus.stop(START);
    assert_eq!(run(&mut bus, START, START + WHILE), []);
    assert_eq!(state(&bus, 0), ControllerState::Stopping);
}

#[test]
fn that_does_not_run_has_no_port_reset() {
    let (mut bus, fakes) = running(1);
    let fake = &fakes[0];
    fake.state().silent.push(Call::Stop);
    fake.state().connect(0, true);
    run(&mut bus, START, START + Duration::from_millis(50));
    fake.state().events.push_back(DIED);
    let now = START + WHILE;
    run(&mut bus, START, now);
    assert_eq!(fake.state().count(Call::Reset(RootPort(0))), 0);
    poll(&mut bus, now);
    assert!(bus.next_wake() > now);
}

#[test]
fn that_cannot_be_stopped_is_a_runaway_until_its_dma_is_cut() {
    let (mut bus, fake, device, now) = with_device();
    fake.state().refused.push((Call::Stop, HostError::Timeout));
    fake.state().events.push_back(DIED);
    let events = run(&mut bus, now, now + WHILE);
    let fault = ControllerFault::HaltTimeout;
    assert_eq!(events, [BusEvent::Runaway(ControllerId(0), fault)]);
    assert!(!bus.is_quiet());
    bus.confirm_cut(ControllerId(0), now);
    assert!(bus.is_quiet());
    let events = run(&mut bus, now, now + WHILE);
    assert_eq!(events, [BusEvent::Closed(device, Fate::Gone)]);
    assert_eq!(state(&bus, 0), ControllerState::Failed(fault));
}

/// Its reset line may be low, or its clock off: there is no register to be touched.
#[test]
fn that_was_cut_off_is_not_told_to_stop_once_more_and_not_to_start() {
    let (mut bus, fake, _, now) = with_device();
    fake.state().refused.push((Call::Stop, HostError::Timeout));
    fake.state().events.push_back(DIED);
    run(&mut bus, now, now + WHILE);
    bus.confirm_cut(ControllerId(0), now);
    run(&mut bus, now, now + WHILE);
    let calls = fake.state().calls.len();
    bus.stop(now);
    run(&mut bus, now, now + WHILE);
    bus.start(now);
    run(&mut bus, now, now + WHILE);
    assert_eq!(fake.state().calls.len(), calls);
}

/// A call that had lent it memory was left by a panic: it has done nothing wrong, and is let go of all the same.
#[test]
fn that_was_cut_off_while_it_ran_is_let_go_of_without_another_word_to_it() {
    let (mut bus, fake, device, now) = with_device();
    bus.confirm_cut(ControllerId(0), now);
    assert_eq!(fake.state().calls.last(), Some(&Call::Abandon));
    let calls = fake.state().calls.len();
    let events = run(&mut bus, now, now + WHILE);
    assert_eq!(events, [BusEvent::Closed(device, Fate::Gone)]);
    let cut = ControllerState::Failed(ControllerFault::CutOff);
    assert_eq!(state(&bus, 0), cut);
    assert!(bus.is_quiet());
    bus.stop(now);
    run(&mut bus, now, now + WHILE);
    assert_eq!(fake.state().calls.len(), calls);
}

/// It may have been left running by whoever had it before, or run later.
#[test]
fn that_does_not_start_is_stopped_and_shown_with_its_reason() {
    let (mut bus, fakes) = fake_bus(1, PortProtocol::Usb2);
    fakes[0].state().events.clear();
    let fault = ControllerFault::RunTimeout;
    let started = Event::Started(Err(fault));
    fakes[0].state().events.push_back(started);
    assert!(!bus.is_quiet());
    assert_eq!(run(&mut bus, START, START + WHILE), []);
    assert_eq!(fakes[0].state().count(Call::Stop), 1);
    assert_eq!(state(&bus, 0), ControllerState::Failed(fault));
    assert!(bus.is_quiet());
}

#[test]
fn that_neither_starts_nor_stops_is_a_runaway() {
    let (mut bus, fakes) = fake_bus(1, PortProtocol::Usb2);
    fakes[0].state().events.clear();
    let fault = ControllerFault::RunTimeout;
    let refused = (Call::Stop, HostError::Timeout);
    fakes[0].state().refused.push(refused);
    let started = Event::Started(Err(fault));
    fakes[0].state().events.push_back(started);
    let halt = ControllerFault::HaltTimeout;
    let runaway = BusEvent::Runaway(ControllerId(0), halt);
    assert_eq!(run(&mut bus, START, START + WHILE), [runaway]);
    assert_eq!(state(&bus, 0), ControllerState::Failed(fault));
    assert!(!bus.is_quiet());
}

#[test]
fn whose_reset_does_not_end_is_a_runaway_without_a_stop() {
    let (mut bus, fakes) = fake_bus(1, PortProtocol::Usb2);
    fakes[0].state().events.clear();
    let fault = ControllerFault::ResetTimeout;
    let started = Event::Started(Err(fault));
    fakes[0].state().events.push_back(started);
    let runaway = BusEvent::Runaway(ControllerId(0), fault);
    assert_eq!(run(&mut bus, START, START + WHILE), [runaway]);
    assert_eq!(fakes[0].state().count(Call::Stop), 0);
    assert!(!bus.is_quiet());
}

#[test]
fn that_its_firmware_keeps_is_left_to_it_until_the_host_leaves() {
    let (mut bus, fakes) = fake_bus(1, PortProtocol::Usb2);
    fakes[0].state().events.clear();
    let fault = ControllerFault::FirmwareHolds;
    let started = Event::Started(Err(fault));
    fakes[0].state().events.push_back(started);
    run(&mut bus, START, START + WHILE);
    assert_eq!(state(&bus, 0), ControllerState::Failed(fault));
    assert_eq!(fakes[0].state().count(Call::Stop), 0);
    assert!(!bus.is_quiet());
    bus.stop(START + WHILE);
    run(&mut bus, START + WHILE, START + WHILE);
    assert_eq!(fakes[0].state().count(Call::Stop), 1);
    assert!(bus.is_quiet());
}

#[test]
fn beside_another_starts_again_after_both_have_died_at_once() {
    let (mut bus, fakes) = running(2);
    for fake in &fakes {
        fake.state().events.push_back(DIED);
    }
    run(&mut bus, START, START + WHILE);
    assert_eq!(state(&bus, 0), ControllerState::Running);
    assert_eq!(state(&bus, 1), ControllerState::Running);
}

#[test]
fn that_is_started_again_for_a_device_stops_first_and_brings_all_its_devices_back() {
    let (mut bus, fake, device, now) = with_device();
    bus.restart_controller(ControllerId(0), now);
    assert_eq!(state(&bus, 0), ControllerState::Renewing);
    assert!(!bus.may_restart(ControllerId(0)), "once at a time");
    let events = run(&mut bus, now, now + WHILE);
    let closed = BusEvent::Closed(device, Fate::Returning);
    let [first, BusEvent::Described(again)] = events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(first, closed);
    assert!(bus.is_kept(again));
    assert_eq!(fake.state().count(Call::Stop), 1);
    assert_eq!(fake.state().count(Call::Start), 2);
}

#[test]
fn is_started_again_for_a_device_twice_at_most_and_for_its_own_death_all_the_same() {
    let (mut bus, fake, _, mut now) = with_device();
    for starts in [2, 3, 3] {
        bus.restart_controller(ControllerId(0), now);
        run(&mut bus, now, now + WHILE);
        now = now + WHILE;
        assert_eq!(fake.state().count(Call::Start), starts);
    }
    assert_eq!(state(&bus, 0), ControllerState::Running);
    fake.state().events.push_back(DIED);
    run(&mut bus, now, now + WHILE);
    assert_eq!(fake.state().count(Call::Start), 4);
    assert_eq!(state(&bus, 0), ControllerState::Running);
}

/// It may hold memory of its devices for ever.
#[test]
fn that_does_not_even_stop_for_a_device_is_a_runaway() {
    let (mut bus, fake, _, now) = with_device();
    fake.state().silent.push(Call::Stop);
    bus.restart_controller(ControllerId(0), now);
    run(&mut bus, now, now + WHILE);
    let fault = ControllerFault::HaltTimeout;
    fake.state().events.push_back(Event::Stopped(Err(fault)));
    let events = run(&mut bus, now, now + WHILE);
    assert_eq!(events, [BusEvent::Runaway(ControllerId(0), fault)]);
    assert_eq!(state(&bus, 0), ControllerState::Failed(fault));
}

/// The pool's ledger knows a controller by its number: two of the same would free each other's memory.
#[test]
fn that_was_made_for_another_place_is_not_added() {
    let (mut bus, fakes) = running(1);
    assert_eq!(bus.add(fakes[0].clone()), Err(UsbError::WrongNumber));
}
