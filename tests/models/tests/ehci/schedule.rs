//! The asynchronous schedule: order, time on the bus, NAKs, park mode, empty lists (EHCI 1.0 §4.8,
//! §4.9, §4.10.3.2), and what stops it.

use rootport_models::controller::ehci::{Death, Faults, Traits};
use rootport_models::device::{Link, MILLISECOND};

use crate::probe::{Habit, Probe};
use crate::raw::*;

const HOST_SYSTEM_ERROR: u32 = 1 << 4;
const RECLAMATION: u32 = 1 << 13;

fn with(traits: Traits) -> (Raw, Probe) {
    let probe = Probe::new(Link::High);
    let raw = Raw::running(traits);
    raw.plug(probe.clone());
    (raw, probe)
}

fn exact() -> Traits {
    Traits {
        exact_polls: true,
        ..Traits::default()
    }
}

#[test]
fn thirteen_bulk_packets_go_in_a_microframe() {
    let (raw, probe) = with(Traits::default());
    let mut queue = raw.linked(bulk(0, 1));
    let buffer = raw.machine.coherent(5 * 4096);
    let read = raw.submit(&mut queue, IN, buffer, 0x5000);
    raw.wait(read);
    let times = probe.times(0x81);
    let begun = times[0] / 125_000 + 1;
    let whole = times.iter().filter(|&&at| at / 125_000 == begun).count();
    assert_eq!(whole, 13);
}

#[test]
fn one_packet_of_each_queue_head_goes_in_the_order_of_the_list() {
    let (raw, probe) = with(Traits::default());
    let mut queues = [1, 2, 3].map(|endpoint| raw.linked(bulk(0, endpoint)));
    let buffer = raw.machine.coherent(4096);
    let last = queues
        .each_mut()
        .map(|queue| raw.submit(queue, OUT, buffer, 4096));
    for descriptor in last {
        raw.wait(descriptor);
    }
    let all = probe
        .state()
        .seen
        .iter()
        .map(|(_, endpoint, _)| *endpoint)
        .collect::<Vec<_>>();
    // The last one linked stands first behind the head. Twice the controller may see a link late.
    let round = all[9..21]
        .chunks(3)
        .filter(|round| *round == [3, 2, 1])
        .count();
    assert!(round >= 1, "{all:?}");
    assert!((1..4).all(|endpoint| all.iter().filter(|&&seen| seen == endpoint).count() == 8));
    assert!(all.windows(3).all(|three| three != [three[0]; 3]));
}

#[test]
fn park_mode_stays_for_three_packets() {
    let traits = Traits {
        park: true,
        ..Traits::default()
    };
    let (raw, probe) = with(traits);
    let mut queues = [1, 2].map(|endpoint| raw.linked(bulk(0, endpoint)));
    let buffer = raw.machine.coherent(4096);
    let last = queues
        .each_mut()
        .map(|queue| raw.submit(queue, OUT, buffer, 4096));
    for descriptor in last {
        raw.wait(descriptor);
    }
    let all = probe
        .state()
        .seen
        .iter()
        .map(|(_, endpoint, _)| *endpoint)
        .collect::<Vec<_>>();
    assert!(all.windows(3).any(|three| three == [1, 1, 1]), "{all:?}");
}

#[test]
fn a_nak_counter_of_four_allows_four_polls_a_start_event() {
    let (raw, probe) = with(exact());
    probe.habit(0x81, Habit::Nak(None));
    let mut queue = raw.linked(bulk(0, 1));
    let buffer = raw.machine.coherent(4096);
    raw.submit(&mut queue, IN, buffer, 512);
    raw.machine.advance(20_000_000);
    let times = probe.times(0x81);
    let mut bursts = vec![1];
    for pair in times[8..].windows(2) {
        match (pair[1] - pair[0] < 5_000, bursts.last_mut()) {
            (true, Some(count)) => *count += 1,
            _ => bursts.push(1),
        }
    }
    // The first and the last may be cut off.
    assert!(
        bursts[1..bursts.len() - 1].iter().all(|&count| count == 4),
        "{bursts:?}"
    );
}

#[test]
fn without_a_nak_counter_a_waiting_read_eats_the_bus() {
    let polls = |reload: u32| {
        let (raw, probe) = with(exact());
        probe.habit(0x81, Habit::Nak(None));
        let [one, two] = bulk(0, 1);
        let mut input = raw.linked([one & !(0xf << 28) | reload << 28, two]);
        let mut output = raw.linked(bulk(0, 2));
        let buffer = raw.machine.coherent(5 * 4096);
        raw.submit(&mut input, IN, buffer, 512);
        let begun = raw.machine.now();
        let sent = raw.submit(&mut output, OUT, buffer, 0x5000);
        raw.wait(sent);
        let count = probe.times(0x81).iter().filter(|&&at| at >= begun).count();
        (count, raw.machine.now() - begun)
    };
    let (with_count, with_time) = polls(4);
    let (without_count, without_time) = polls(0);
    assert!(without_count > with_count, "{without_count} {with_count}");
    assert!(without_time > with_time, "{without_time} {with_time}");
}

#[test]
fn an_endpoint_with_a_hint_is_read_as_soon_as_it_is_ready() {
    let (raw, probe) = with(Traits::default());
    let ready = raw.machine.now() + 700_000;
    probe.habit(0x81, Habit::Nak(Some(ready)));
    let mut queue = raw.linked(bulk(0, 1));
    let buffer = raw.machine.coherent(4096);
    let read = raw.submit(&mut queue, IN, buffer, 512);
    raw.machine.advance(690_000);
    let polls = probe.times(0x81).len();
    assert!(polls < 20, "{polls} polls");
    probe.habit(0x81, Habit::Stream);
    assert_eq!(
        raw.wait_within(read, 40_000).map(|token| token & STOPPED),
        Some(0)
    );
}

#[test]
fn an_idle_schedule_plans_nothing_and_costs_no_time() {
    let (raw, _probe) = with(Traits::default());
    raw.linked(bulk(0, 1));
    // An hour: were each microframe an event, this would take minutes.
    raw.machine.advance(3_600_000 * MILLISECOND);
    assert_eq!(raw.read(USBSTS) & RECLAMATION, 0);
}

#[test]
fn an_append_to_an_idle_queue_needs_no_register() {
    let (raw, _probe) = with(Traits::default());
    let mut queue = raw.linked(bulk(0, 2));
    let buffer = raw.machine.coherent(4096);
    raw.machine.advance(5 * MILLISECOND);
    let before = raw.machine.statistics(raw.controller);
    for _ in 0..50 {
        let sent = raw.submit(&mut queue, OUT, buffer, 512);
        raw.wait(sent);
    }
    let after = raw.machine.statistics(raw.controller);
    assert_eq!((before.reads, before.writes), (after.reads, after.writes));
}

/// A controller that met an error of the system's bus.
fn after_a_system_error() -> Raw {
    let faults = Faults {
        host_system_error_at: Some(60),
        ..Faults::none()
    };
    let raw = Raw::running_with(Traits::default(), faults);
    raw.plug(Probe::new(Link::High));
    let mut queue = raw.linked(bulk(0, 2));
    let buffer = raw.machine.coherent(5 * 4096);
    for _ in 0..4 {
        raw.submit(&mut queue, OUT, buffer, 0x5000);
    }
    raw.machine.advance(10 * MILLISECOND);
    raw
}

#[test]
fn a_system_error_halts_the_controller_and_wants_a_reset() {
    let raw = after_a_system_error();
    assert_eq!(
        raw.read(USBSTS) & (HOST_SYSTEM_ERROR | HALTED),
        HOST_SYSTEM_ERROR | HALTED
    );
    assert_eq!(raw.read(USBCMD) & RUN, 0);
    assert!(raw.machine.interrupt_line(raw.controller));
    raw.bring_up();
}

#[test]
#[should_panic(expected = "EHCI 1.0 §4.15.2.4")]
fn after_a_system_error_comes_a_reset() {
    after_a_system_error().set(USBCMD, RUN);
}

#[test]
fn a_controller_that_has_left_the_bus_reads_as_ones() {
    let faults = Faults {
        death: Some((MILLISECOND, Death::AllOnes)),
        ..Faults::none()
    };
    let raw = Raw::running_with(Traits::default(), faults);
    raw.machine.advance(2 * MILLISECOND);
    assert_eq!(raw.read(USBSTS), u32::MAX);
    raw.write(USBCMD, 0);
}

#[test]
fn a_silent_controller_looks_well_and_does_nothing() {
    let faults = Faults {
        death: Some((500 * MILLISECOND, Death::Silent)),
        ..Faults::none()
    };
    let probe = Probe::new(Link::High);
    let raw = Raw::running_with(Traits::default(), faults);
    raw.plug(probe.clone());
    raw.machine.advance(500 * MILLISECOND);
    let mut queue = raw.linked(bulk(0, 2));
    let sent = raw.submit(&mut queue, OUT, raw.head, 0);
    assert_eq!(raw.wait_within(sent, 20 * MILLISECOND), None);
    assert_eq!(raw.read(USBSTS) & (HALTED | ASYNC_STATUS), ASYNC_STATUS);
}

#[test]
fn lost_interrupts_set_their_status_and_leave_the_line_alone() {
    let faults = Faults {
        lost_interrupts: 1,
        ..Faults::none()
    };
    let raw = Raw::running_with(Traits::default(), faults);
    raw.machine.plug(raw.controller, 0, Probe::new(Link::High));
    assert_ne!(raw.read(USBSTS) & 1 << 2, 0);
    assert!(!raw.machine.interrupt_line(raw.controller));
    raw.change_port(0, 0, CONNECT_CHANGE);
    raw.write(USBSTS, 1 << 2);
    raw.machine.unplug(raw.controller, 0);
    assert!(raw.machine.interrupt_line(raw.controller));
}

#[test]
fn a_cut_controller_executes_nothing_any_more() {
    let (raw, probe) = with(Traits::default());
    let mut queue = raw.linked(bulk(0, 2));
    let buffer = raw.machine.coherent(4096);
    assert!(raw.machine.cut_dma(raw.controller));
    let sent = raw.submit(&mut queue, OUT, buffer, 512);
    assert_eq!(raw.wait_within(sent, 20 * MILLISECOND), None);
    assert_eq!(probe.seen(2), []);
}

#[test]
fn stuck_parts_of_the_controller_stay_as_they_are() {
    let stuck = |faults: Faults| {
        let machine = rootport_models::machine::Machine::default();
        let controller = machine.add_faulty_ehci(Traits::default(), faults);
        Raw::probe(&machine, controller)
    };
    let none = Faults::none;
    let raw = stuck(Faults {
        reset_hangs: true,
        ..none()
    });
    raw.set(USBCMD, RESET);
    raw.machine.advance(1_000 * MILLISECOND);
    assert_ne!(raw.read(USBCMD) & RESET, 0);
    let raw = stuck(Faults {
        never_runs: true,
        ..none()
    });
    raw.program();
    raw.set(USBCMD, RUN);
    raw.machine.advance(1_000 * MILLISECOND);
    assert_ne!(raw.read(USBSTS) & HALTED, 0);
    let raw = stuck(Faults {
        never_halts: true,
        ..none()
    });
    raw.bring_up();
    raw.clear(USBCMD, RUN);
    raw.machine.advance(1_000 * MILLISECOND);
    assert_eq!(raw.read(USBSTS) & HALTED, 0);
    let raw = stuck(Faults {
        schedules_stuck: true,
        ..none()
    });
    raw.program();
    raw.set(USBCMD, RUN);
    raw.set(USBCMD, ASE);
    raw.machine.advance(1_000 * MILLISECOND);
    assert_eq!(raw.read(USBSTS) & ASYNC_STATUS, 0);
}
