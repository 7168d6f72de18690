//! Commands: what they answer, and what no driver may send.

use rootport_models::controller::xhci::{CompletionFault, Faults, IdleStop, Traits};
use rootport_models::device::{Link, MILLISECOND};

use crate::raw::{IOC, ISP, Raw, breaks, configured, disk, machine, with_disks};

const STOP_ENDPOINT: u32 = 15 << 10;
const RESET_ENDPOINT: u32 = 14 << 10;
const SET_DEQUEUE: u32 = 16 << 10;

fn stop(slot: u32, index: u32) -> [u32; 4] {
    [0, 0, 0, slot << 24 | index << 16 | STOP_ENDPOINT]
}

fn set_dequeue(slot: u32, index: u32, at: u64) -> [u32; 4] {
    [
        at as u32,
        (at >> 32) as u32,
        0,
        slot << 24 | index << 16 | SET_DEQUEUE,
    ]
}

#[test]
fn slots_run_out_with_code_9() {
    let mut raw = Raw::running(Traits {
        slots: 3,
        ..Traits::default()
    });
    let slots: Vec<u32> = (0..3).map(|_| raw.enable_slot()).collect();
    assert_eq!(slots, [1, 2, 3]);
    assert_eq!(raw.command([0, 0, 0, 9 << 10]).code(), 9);
    assert_eq!(raw.command([0, 0, 0, 2 << 24 | 10 << 10]).code(), 1);
    assert_eq!(raw.enable_slot(), 2);
}

#[test]
fn a_slot_type_that_no_port_has_is_refused() {
    let mut raw = Raw::running(Traits::default());
    breaks("xHCI 1.2 §4.6.3", || {
        raw.command([0, 0, 0, 9 << 10 | 7 << 16])
    });
}

#[test]
fn a_slot_of_the_other_type_does_not_fit_the_port() {
    let traits = Traits {
        slot_types: [0, 3],
        ..Traits::default()
    };
    let mut raw = with_disks(traits, Faults::none());
    let speed = raw.reset_port(2);
    let slot = raw.enable_slot();
    raw.prepare_address(slot, 2, speed);
    breaks("xHCI 1.2 §4.6.3", || raw.command_with_input(11, slot));
}

#[test]
fn a_command_for_a_slot_that_was_not_enabled_is_a_mistake() {
    let mut raw = Raw::running(Traits::default());
    breaks("xHCI 1.2 §4.5.3", || raw.command(stop(1, 1)));
}

#[test]
fn a_command_for_a_disabled_endpoint_is_a_mistake() {
    let (mut raw, slot) = configured(0);
    breaks("xHCI 1.2 §4.6", || raw.command(stop(slot, 5)));
}

#[test]
fn address_device_twice_is_a_context_state_error() {
    let (mut raw, slot) = configured(0);
    let [low, high] = raw.machine.load(raw.contexts + 8 * u64::from(slot));
    raw.prepare_address(slot, 0, 3);
    raw.machine
        .store(raw.contexts + 8 * u64::from(slot), &[low, high]);
    raw.machine.release();
    assert_eq!(raw.command_with_input(11, slot).code(), 19);
}

#[test]
fn address_device_can_leave_the_request_out() {
    let mut raw = with_disks(Traits::default(), Faults::none());
    let speed = raw.reset_port(0);
    let slot = raw.enable_slot();
    raw.prepare_address(slot, 0, speed);
    let (low, high) = (raw.input as u32, (raw.input >> 32) as u32);
    let event = raw.command([low, high, 0, slot << 24 | 11 << 10 | 1 << 9]);
    assert_eq!(event.code(), 1);
    assert_eq!(raw.slot_context(slot)[3], 1 << 27, "Default, at address 0");
    let (events, data) = raw.control_in(slot, [0x80, 6, 0, 1, 0, 0, 8, 0]);
    assert_eq!((events[0].code(), raw.bytes(data, 1)), (1, vec![18]));
    let [low, high] = [raw.input as u32, (raw.input >> 32) as u32];
    raw.store_input(2, &{
        let mut context = raw.output(slot, 1);
        context[0] = 0;
        let place = raw.rings[&(slot, 1)].place();
        (context[2], context[3]) = (place as u32 | 1, (place >> 32) as u32);
        context
    });
    raw.machine.release();
    assert_eq!(raw.command([low, high, 0, slot << 24 | 11 << 10]).code(), 1);
    assert_eq!(raw.slot_context(slot)[3], 2 << 27 | 1, "Addressed");
}

#[test]
fn a_device_that_has_gone_is_a_transaction_error() {
    let mut raw = with_disks(Traits::default(), Faults::none());
    let speed = raw.reset_port(0);
    let slot = raw.enable_slot();
    raw.prepare_address(slot, 0, speed);
    drop(raw.machine.unplug(0, 0));
    assert_eq!(raw.command_with_input(11, slot).code(), 4);
}

#[test]
fn configure_endpoint_of_a_slot_without_address_is_a_context_state_error() {
    let mut raw = with_disks(Traits::default(), Faults::none());
    let slot = raw.enable_slot();
    assert_eq!(raw.command_with_input(12, slot).code(), 19);
}

#[test]
fn deconfiguring_takes_all_endpoints_away() {
    let (mut raw, slot) = configured(0);
    assert_eq!(
        raw.command([0, 0, 0, slot << 24 | 12 << 10 | 1 << 9])
            .code(),
        1
    );
    assert_eq!(raw.slot_context(slot)[3] >> 27, 2);
    breaks("xHCI 1.2 §4.7", || raw.kick(slot, 3));
}

#[test]
fn an_endpoint_under_way_is_not_dropped() {
    let (mut raw, slot) = configured(0);
    let data = raw.machine.coherent(512);
    raw.push_normal(slot, 3, data, 512, IOC | ISP);
    raw.kick(slot, 3);
    raw.machine.advance(MILLISECOND);
    raw.prepare_bulk(slot, 0);
    raw.store_input(0, &[0b1_1000]);
    raw.machine.release();
    breaks("xHCI 1.2 §4.6.6", || raw.command_with_input(12, slot));
}

#[test]
fn the_packet_size_of_endpoint_0_is_evaluated() {
    let machine = machine();
    let controller = machine.add_xhci(Traits::default());
    machine.plug(controller, 0, disk(Link::Full));
    let mut raw = Raw::probe(&machine, controller);
    raw.bring_up();
    let slot = raw.address(0);
    let (_, data) = raw.control_in(slot, [0x80, 6, 0, 1, 0, 0, 8, 0]);
    let packet = u32::from(raw.bytes(data, 8)[7]);
    let mut context = raw.output(slot, 1);
    context[1] = context[1] & 0xffff | packet << 16;
    raw.clear_input();
    raw.store_input(0, &[0, 0b10]);
    raw.store_input(2, &context);
    raw.machine.release();
    assert_eq!(raw.command_with_input(13, slot).code(), 1);
    assert_eq!(raw.output(slot, 1)[1] >> 16, packet);
    let (events, _) = raw.control_in(slot, [0x80, 6, 0, 1, 0, 0, 18, 0]);
    assert_eq!(events[0].code(), 1);
}

#[test]
fn reset_device_goes_back_to_default() {
    let (mut raw, slot) = configured(0);
    assert_eq!(raw.command([0, 0, 0, slot << 24 | 17 << 10]).code(), 1);
    assert_eq!(raw.slot_context(slot)[3] >> 27, 1);
    assert_eq!(raw.slot_context(slot)[0] >> 27, 1, "one context entry");
    assert_eq!(raw.command([0, 0, 0, slot << 24 | 17 << 10]).code(), 19);
}

#[test]
fn stopping_twice_is_a_context_state_error() {
    let (mut raw, slot) = configured(0);
    assert_eq!(raw.command(stop(slot, 3)).code(), 1);
    assert_eq!(raw.command(stop(slot, 3)).code(), 19);
}

#[test]
fn stopping_under_way_reports_what_is_left() {
    let (mut raw, slot) = configured(0);
    let data = raw.machine.coherent(2048);
    let at = raw.push_normal(slot, 3, data, 2048, IOC | ISP);
    raw.kick(slot, 3);
    raw.machine.advance(MILLISECOND);
    raw.queue_command(stop(slot, 3));
    raw.write(raw.doorbells, 0);
    let event = raw.event_of(32);
    assert_eq!(
        (event.code(), event.pointer(), event.length()),
        (26, at, 2048)
    );
    assert_eq!(raw.event_of(33).code(), 1);
    let context = raw.output(slot, 3);
    assert_eq!((context[0] & 7, context[2]), (3, at as u32 | 1));
}

#[test]
fn stopping_idle_reports_or_not_as_the_controller_likes() {
    for (habit, count) in [(IdleStop::Event, 1), (IdleStop::Silent, 0)] {
        let machine = machine();
        let controller = machine.add_xhci(Traits {
            idle_stop: habit,
            ..Traits::default()
        });
        machine.plug(controller, 0, disk(Link::High));
        let mut raw = Raw::probe(&machine, controller);
        raw.bring_up();
        let slot = raw.address(0);
        raw.configure_bulk(slot, 0);
        raw.queue_command(stop(slot, 3));
        raw.write(raw.doorbells, 0);
        let mut codes = Vec::new();
        loop {
            let event = raw.event();
            if event.kind() == 33 {
                break;
            }
            codes.push(event.code());
        }
        assert_eq!(codes, vec![27; count]);
    }
}

#[test]
fn the_dequeue_pointer_of_a_running_endpoint_stays() {
    let (mut raw, slot) = configured(0);
    let at = raw.rings[&(slot, 3)].place();
    assert_eq!(raw.command(set_dequeue(slot, 3, at | 1)).code(), 19);
    raw.command(stop(slot, 3));
    assert_eq!(raw.command(set_dequeue(slot, 3, at | 1)).code(), 1);
}

#[test]
fn streams_are_not_named_without_streams() {
    let (mut raw, slot) = configured(0);
    let at = raw.rings[&(slot, 3)].place();
    raw.command(stop(slot, 3));
    breaks("xHCI 1.2 §4.6.10", || {
        raw.command(set_dequeue(slot, 3, at | 3))
    });
}

#[test]
fn a_controller_may_not_bear_a_dequeue_pointer_at_a_link() {
    let machine = machine();
    let controller = machine.add_xhci(Traits {
        no_dequeue_at_link: true,
        ..Traits::default()
    });
    machine.plug(controller, 0, disk(Link::High));
    let mut raw = Raw::probe(&machine, controller);
    raw.bring_up();
    let slot = raw.address(0);
    raw.configure_bulk(slot, 0);
    let at = raw.rings[&(slot, 3)].base;
    raw.command(stop(slot, 3));
    machine.store(at, &[at as u32, 0, 0, 6 << 10 | 2]);
    machine.release();
    breaks("Policy: no dequeue pointer at a link", || {
        raw.command(set_dequeue(slot, 3, at | 1));
    });
}

#[test]
fn reset_endpoint_wants_a_halted_endpoint() {
    let (mut raw, slot) = configured(0);
    let words = [0, 0, 0, slot << 24 | 3 << 16 | RESET_ENDPOINT];
    assert_eq!(raw.command(words).code(), 19);
}

#[test]
fn an_aborted_command_ends_with_25_and_the_ring_with_24() {
    let faults = Faults {
        commands: [(0, CompletionFault::Never)].into(),
        ..Faults::none()
    };
    let mut raw = with_disks(Traits::default(), faults);
    let at = raw.queue_command([0, 0, 0, 23 << 10]);
    raw.write(raw.doorbells, 0);
    raw.machine.advance(5_000 * MILLISECOND);
    let control = raw.operational + 0x18;
    assert_eq!(raw.read(control), 8, "CRR");
    raw.write(control, 4);
    let aborted = raw.event_of(33);
    assert_eq!((aborted.code(), aborted.pointer()), (25, at));
    let stopped = raw.event_of(33);
    assert_eq!((stopped.code(), stopped.pointer()), (24, at + 16));
    assert_eq!(raw.read(control), 0);
    assert_eq!(
        raw.command([0, 0, 0, 23 << 10]).code(),
        1,
        "it goes on behind"
    );
}

#[test]
fn an_abort_leaves_the_next_command_alone() {
    let faults = Faults {
        commands: [(0, CompletionFault::Never)].into(),
        ..Faults::none()
    };
    let mut raw = with_disks(Traits::default(), faults);
    raw.queue_command([0, 0, 0, 23 << 10]);
    let next = raw.queue_command([0, 0, 0, 9 << 10]);
    raw.write(raw.doorbells, 0);
    raw.write(raw.operational + 0x18, 4);
    assert_eq!(raw.event_of(33).code(), 25);
    let stopped = raw.event_of(33);
    assert_eq!((stopped.code(), stopped.pointer()), (24, next));
    raw.machine.advance(MILLISECOND);
    raw.write(raw.doorbells, 0);
    let event = raw.event_of(33);
    assert_eq!((event.code(), event.pointer(), event.slot()), (1, next, 1));
}

#[test]
fn an_abort_may_hang() {
    let faults = Faults {
        commands: [(0, CompletionFault::Never)].into(),
        abort_hangs: true,
        ..Faults::none()
    };
    let mut raw = with_disks(Traits::default(), faults);
    raw.queue_command([0, 0, 0, 23 << 10]);
    raw.write(raw.doorbells, 0);
    raw.write(raw.operational + 0x18, 4);
    raw.machine.advance(5_000 * MILLISECOND);
    assert_eq!(raw.read(raw.operational + 0x18), 8);
}

#[test]
fn a_stop_that_comes_too_late_overwrites_the_pointer() {
    let raw = Raw::running(Traits::default());
    raw.write(raw.operational + 0x18, 4);
    breaks("xHCI 1.2 §5.4.5", || raw.write(raw.doorbells, 0));
}

#[test]
fn the_ring_pointer_is_not_written_while_the_ring_runs() {
    let faults = Faults {
        commands: [(0, CompletionFault::Never)].into(),
        ..Faults::none()
    };
    let mut raw = with_disks(Traits::default(), faults);
    raw.queue_command([0, 0, 0, 23 << 10]);
    raw.write(raw.doorbells, 0);
    breaks("xHCI 1.2 §5.4.5", || raw.program_commands());
}

#[test]
fn a_command_can_be_made_to_end_with_any_code() {
    for code in [5, 7, 8, 17, 19] {
        let faults = Faults {
            commands: [(0, CompletionFault::Code(code))].into(),
            ..Faults::none()
        };
        let mut raw = with_disks(Traits::default(), faults);
        assert_eq!(raw.command([0, 0, 0, 9 << 10]).code(), u32::from(code));
    }
}

#[test]
fn doorbell_0_has_target_0() {
    let raw = Raw::running(Traits::default());
    breaks("xHCI 1.2 §5.6", || raw.write(raw.doorbells, 1));
}

#[test]
fn a_halted_controller_has_no_doorbells() {
    let raw = Raw::running(Traits::default());
    raw.write(raw.operational, raw.read(raw.operational) & !1);
    raw.until(raw.operational + 4, |status| status & 1 != 0);
    breaks("xHCI 1.2 §4.7", || raw.write(raw.doorbells, 0));
}

#[test]
fn an_input_context_is_not_changed_under_way() {
    let mut raw = with_disks(Traits::default(), Faults::none());
    let speed = raw.reset_port(0);
    let slot = raw.enable_slot();
    raw.prepare_address(slot, 0, speed);
    let (low, high) = (raw.input as u32, (raw.input >> 32) as u32);
    raw.queue_command([low, high, 0, slot << 24 | 11 << 10]);
    raw.write(raw.doorbells, 0);
    raw.clear_input();
    raw.machine.release();
    breaks("xHCI 1.2 §4.6", || raw.machine.advance(MILLISECOND));
}
