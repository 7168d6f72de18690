//! The bus on fake controllers: what is found, what goes, and what must never stand still.

use super::testing::{Call, Fake, fake_bus, poll, run};
use super::*;
use crate::host::{PortProtocol, RootPort};
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

mod a_device {
    use super::*;

    #[test]
    fn is_found_and_sits_on_its_port() {
        let (bus, _, device, _) = with_device();
        assert_eq!(port_state(&bus, 0), PortState::Occupied(device));
        assert_eq!(port_state(&bus, 1), PortState::Empty);
        assert_eq!(bus.devices().count(), 1);
    }

    #[test]
    fn whose_controller_does_not_end_what_it_has_begun_is_closed_with_the_controller() {
        let (mut bus, fake, device, now) = with_device();
        fake.state().silent.push(Call::Close);
        fake.state().connect(0, false);
        let events = run(&mut bus, now, now + WHILE);
        let closed = BusEvent::Closed(device, Fate::Gone);
        assert_eq!(events, [BusEvent::Gone(device), closed]);
        assert_eq!(
            fake.state()
                .calls
                .iter()
                .filter(|call| **call == Call::Stop)
                .count(),
            1
        );
        assert_eq!(
            state(&bus, 0),
            ControllerState::Running,
            "it was started again"
        );
    }

    #[test]
    fn that_is_pulled_has_gone_first_and_is_closed_later() {
        let (mut bus, fake, device, now) = with_device();
        fake.state().silent.push(Call::Close);
        fake.state().connect(0, false);
        let events = run(&mut bus, now, now + Duration::from_secs(14));
        assert_eq!(events, [BusEvent::Gone(device)]);
        assert_eq!(port_state(&bus, 0), PortState::Empty);
        let handle = bus.device(device).unwrap().handle;
        let result = Ok(());
        let closed = Event::Device {
            device: handle,
            result,
        };
        fake.state().events.push_back(closed);
        let events = run(&mut bus, now, now + WHILE);
        assert_eq!(events, [BusEvent::Closed(device, Fate::Gone)]);
        assert!(bus.info(device).is_none());
    }

    #[test]
    fn that_is_replaced_between_two_looks_at_its_port_has_gone_too() {
        let (mut bus, fake, device, now) = with_device();
        fake.state().connect(0, true);
        let events = run(&mut bus, now, now + WHILE);
        let [
            BusEvent::Gone(gone),
            BusEvent::Closed(closed, _),
            BusEvent::Described(other),
        ] = events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!((gone, closed), (device, device));
        assert_ne!(other, device);
        assert!(bus.info(device).is_none());
    }

    #[test]
    fn that_is_given_up_is_closed_and_its_port_is_left_alone_until_it_is_pulled() {
        let (mut bus, fake, device, now) = with_device();
        bus.give_up(device, now);
        let events = run(&mut bus, now, now + WHILE);
        assert_eq!(events, [BusEvent::Closed(device, Fate::Gone)]);
        assert!(matches!(port_state(&bus, 0), PortState::Failed(_)));
        fake.state().connect(0, false);
        assert_eq!(run(&mut bus, now, now + WHILE), []);
        fake.state().connect(0, true);
        let events = run(&mut bus, now, now + WHILE);
        assert!(matches!(events[..], [BusEvent::Described(_)]));
    }
}

mod enumeration {
    use super::*;

    /// Field case 28.
    #[test]
    fn is_tried_three_times_each_with_a_reset_and_a_disabled_port_after_it() {
        let (mut bus, fakes) = running(1);
        let fake = &fakes[0];
        fake.state().mute = true;
        fake.state().connect(0, true);
        assert_eq!(run(&mut bus, START, START + WHILE), []);
        assert_eq!(fake.state().count(Call::Reset(RootPort(0))), 3);
        assert_eq!(fake.state().count(Call::Close), 3);
        assert_eq!(fake.state().count(Call::Disable(RootPort(0))), 3);
        let failed = PortState::Failed(UsbError::Timeout);
        assert_eq!(port_state(&bus, 0), failed);
        assert_eq!(bus.devices().count(), 0);
    }

    #[test]
    fn of_a_dead_device_lets_a_neighbour_pass() {
        let (mut bus, fakes) = running(1);
        let fake = &fakes[0];
        fake.state().silent.push(Call::Reset(RootPort(0)));
        fake.state().connect(0, true);
        fake.state().connect(1, true);
        let soon = START + Duration::from_millis(1_500);
        let events = run(&mut bus, START, soon);
        assert!(matches!(events[..], [BusEvent::Described(_)]));
        assert!(matches!(port_state(&bus, 1), PortState::Occupied(_)));
    }

    /// The walk over the timers must not forget what it has put off.
    #[test]
    fn goes_on_when_the_controller_knows_its_device_no_more() {
        let (mut bus, fakes) = running(1);
        let fake = &fakes[0];
        fake.state().mute = true;
        fake.state().refused.push((Call::Close, HostError::Stale));
        fake.state().refused.push((Call::Quiesce, HostError::Stale));
        fake.state().connect(0, true);
        run(&mut bus, START, START + WHILE);
        assert_eq!(fake.state().count(Call::Reset(RootPort(0))), 3);
        assert!(matches!(port_state(&bus, 0), PortState::Failed(_)));
    }

    #[test]
    fn that_waits_for_its_turn_does_not_keep_the_cpu_awake() {
        let (mut bus, fakes) = running(1);
        let fake = &fakes[0];
        fake.state().silent.push(Call::Open);
        fake.state().connect(0, true);
        fake.state().connect(1, true);
        let now = START + Duration::from_secs(2);
        run(&mut bus, START, now);
        assert!(matches!(port_state(&bus, 1), PortState::Waiting(..)));
        poll(&mut bus, now);
        assert!(bus.next_wake() > now);
    }

    #[test]
    fn ends_quietly_when_the_device_is_pulled_at_any_moment() {
        for milliseconds in (0..400).step_by(3) {
            let (mut bus, fakes) = running(1);
            let fake = &fakes[0];
            fake.state().connect(0, true);
            let moment = START + Duration::from_millis(milliseconds);
            let mut events = run(&mut bus, START, moment);
            fake.state().connect(0, false);
            events.extend(run(&mut bus, moment, moment + WHILE));
            let is_even = match events[..] {
                [] => true,
                [
                    BusEvent::Described(a),
                    BusEvent::Gone(b),
                    BusEvent::Closed(c, Fate::Gone),
                ] => a == b && b == c,
                _ => false,
            };
            assert!(is_even, "{milliseconds}: {events:?}");
            assert_eq!(port_state(&bus, 0), PortState::Empty);
            assert_eq!(bus.devices().count(), 0, "{milliseconds}");
            fake.state().connect(0, true);
            let later = moment + WHILE;
            let events = run(&mut bus, later, later + WHILE);
            assert!(matches!(events[..], [BusEvent::Described(_)]));
        }
    }
}

mod a_super_speed_port {
    use super::*;

    /// A SuperSpeed device that has connected but not trained.
    fn untrained() -> (Bus<'static, Fake>, Fake) {
        let (mut bus, fakes) = fake_bus(1, PortProtocol::Usb3);
        run(&mut bus, START, START);
        let fake = fakes[0].clone();
        fake.state().silent.push(Call::Reset(RootPort(0)));
        fake.state().connect(0, true);
        (bus, fake)
    }

    #[test]
    fn may_show_no_connection_while_it_is_reset_and_trained_again() {
        let (mut bus, fake) = untrained();
        let reset = START + Duration::from_millis(450);
        run(&mut bus, START, reset);
        assert_eq!(fake.state().count(Call::Reset(RootPort(0))), 1);
        fake.state().connect(0, false);
        let training = START + Duration::from_millis(500);
        run(&mut bus, reset, training);
        assert_eq!(port_state(&bus, 0), PortState::Enumerating);
        fake.state().connect(0, true);
        fake.state().ports[0].enabled = true;
        fake.state().ports[0].speed = Some(Speed::Super);
        let events = run(&mut bus, training, training + WHILE);
        assert!(matches!(events[..], [BusEvent::Described(_)]), "{events:?}");
        assert_eq!(fake.state().count(Call::Reset(RootPort(0))), 1);
    }

    #[test]
    fn that_failed_is_not_disabled_and_not_tried_for_ever() {
        let (mut bus, fake) = untrained();
        run(&mut bus, START, START + WHILE);
        let failed = PortState::Failed(UsbError::PortReset);
        assert_eq!(port_state(&bus, 0), failed);
        assert_eq!(fake.state().count(Call::Disable(RootPort(0))), 0);
        fake.state().connect(0, false);
        run(&mut bus, START + WHILE, START + WHILE);
        assert_eq!(port_state(&bus, 0), PortState::Empty);
    }
}

mod a_controller {
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
        bus.confirm_cut(ControllerId(0), now);
        let events = run(&mut bus, now, now + WHILE);
        assert_eq!(events, [BusEvent::Closed(device, Fate::Gone)]);
        assert_eq!(state(&bus, 0), ControllerState::Failed(fault));
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
}

mod a_controller_that_starts_again {
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

mod one_poll {
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
}

mod configuration {
    use super::*;

    const CONFIG: FunctionConfig = FunctionConfig {
        configuration: 1,
        interface: 0,
        alternate: 0,
    };

    #[test]
    fn opens_the_endpoints_before_the_device_is_told() {
        let (mut bus, fake, device, now) = with_device();
        fake.state().calls.clear();
        bus.configure(device, CONFIG, now).unwrap();
        let events = run(&mut bus, now, now + WHILE);
        assert_eq!(events, [BusEvent::Configured(device, Ok(()))]);
        let told = Call::Control(SetupPacket::set_configuration(1));
        assert_eq!(fake.state().calls, [Call::Configure, told]);
        let info = bus.info(device).unwrap();
        assert_eq!(info.state, DeviceState::Configured);
    }

    #[test]
    fn that_the_controller_refuses_shows_in_the_tree() {
        let (mut bus, fake, device, now) = with_device();
        let refusal = (Call::Configure, HostError::Resources);
        fake.state().refused.push(refusal);
        let error = UsbError::Controller(HostError::Resources);
        assert_eq!(bus.configure(device, CONFIG, now), Err(error));
        let info = bus.info(device).unwrap();
        assert_eq!(info.state, DeviceState::Failed(error));
    }

    #[test]
    fn that_the_device_does_not_answer_ends_in_time() {
        let (mut bus, fake, device, now) = with_device();
        fake.state().mute = true;
        bus.configure(device, CONFIG, now).unwrap();
        let events = run(&mut bus, now, now + Duration::from_secs(6));
        let timeout = Err(UsbError::Timeout);
        assert_eq!(events, [BusEvent::Configured(device, timeout)]);
    }
}

mod over_current {
    use super::*;

    fn set(fake: &Fake, over_current: bool) {
        let mut state = fake.state();
        state.ports[0].over_current = over_current;
        state.connect(0, false);
    }

    #[test]
    fn takes_the_device_away_and_is_told_of_once() {
        let (mut bus, fake, device, now) = with_device();
        set(&fake, true);
        let events = run(&mut bus, now, now + WHILE);
        assert_eq!(events.first(), Some(&BusEvent::Gone(device)));
        let failed = PortState::Failed(UsbError::OverCurrent);
        assert_eq!(port_state(&bus, 0), failed);
        let surge = Some((ControllerId(0), RootPort(0)));
        assert_eq!((bus.take_surge(), bus.take_surge()), (surge, None));
    }

    #[test]
    fn that_is_over_gives_the_port_its_power_back_a_few_times() {
        let (mut bus, fake, _, mut now) = with_device();
        for round in 0..=POWER_RETURNS {
            set(&fake, true);
            set(&fake, false);
            fake.state().ports[0].over_current = true;
            run(&mut bus, now, now + WHILE);
            fake.state().ports[0].over_current = false;
            fake.state().events.push_back(Event::Port(RootPort(0)));
            now = now + WHILE + WHILE;
            run(&mut bus, now, now + WHILE);
            let expected = if round < POWER_RETURNS {
                PortState::Empty
            } else {
                PortState::Failed(UsbError::OverCurrent)
            };
            assert_eq!(port_state(&bus, 0), expected, "round {round}");
            now = now + WHILE + WHILE;
        }
    }
}

mod a_socket_of_two_halves {
    use super::*;

    /// A device on the USB 2 half is cycled, on a controller whose SuperSpeed ports begin there.
    fn cycled(super_speed_from: u8) -> (Bus<'static, Fake>, Fake) {
        let (mut bus, fake, device, now) = with_device();
        fake.state().super_speed_from = super_speed_from;
        bus.cycle_power(device, now);
        for _ in 0..4 {
            poll(&mut bus, now);
            fake.state().finish_close();
        }
        poll(&mut bus, now);
        (bus, fake)
    }

    fn is_off(bus: &Bus<'_, Fake>, port: u8) -> bool {
        matches!(port_state(bus, port), PortState::Unpowered(_))
    }

    #[test]
    fn loses_its_power_on_both() {
        let (mut bus, fake) = cycled(1);
        assert!(is_off(&bus, 0) && is_off(&bus, 1));
        fake.state().connect(0, false);
        let now = START + WHILE;
        run(&mut bus, now, now + WHILE);
        assert_eq!(port_state(&bus, 0), PortState::Empty);
        assert_eq!(port_state(&bus, 1), PortState::Empty, "it has power again");
    }

    #[test]
    fn is_not_known_where_one_kind_has_more_ports() {
        let (bus, _) = cycled(u8::MAX);
        assert!(is_off(&bus, 0) && !is_off(&bus, 1));
    }
}
