//! Split transactions of full- and low-speed endpoints behind a high-speed hub (EHCI 1.0 §4.12).
//!
//! The probe stands for the device behind the hub: what reaches it came through the translator.

use rootport_models::controller::ehci::Traits;
use rootport_models::device::{Link, MILLISECOND, Reply};

use crate::probe::{Habit, Probe, Seen};
use crate::raw::*;

const HUB: u32 = 3 << 16 | 1 << 23;
const FULL: u32 = 0;
const LOW: u32 = 1 << 12;
const CONTROL: u32 = 1 << 14 | 1 << 27;
const MICROFRAME: u64 = 125_000;

fn slow_control(speed: u32, packet: u32) -> [u32; 2] {
    [packet << 16 | CONTROL | speed, 1 << 30 | HUB]
}

fn slow_bulk(endpoint: u32) -> [u32; 2] {
    [64 << 16 | FULL | endpoint << 8, 1 << 30 | HUB]
}

/// An interrupt IN endpoint 3 at low speed.
fn slow_interrupt(start: u32, complete: u32) -> [u32; 2] {
    [
        8 << 16 | LOW | 3 << 8,
        1 << 30 | HUB | complete << 8 | start,
    ]
}

fn device() -> (Raw, Probe) {
    let probe = Probe::new(Link::High);
    let raw = Raw::with_device(probe.clone());
    probe.state().packet = 64;
    (raw, probe)
}

fn link(raw: &Raw, queue: Queue) {
    raw.machine.store(raw.frames, &[queue.at as u32 | 2; 1024]);
    raw.machine.release();
}

#[test]
fn a_control_transfer_goes_through_the_translator() {
    for (speed, packet) in [(FULL, 64), (LOW, 8)] {
        let (raw, probe) = device();
        let mut queue = raw.linked(slow_control(speed, packet));
        let toggles = (0..18_usize.div_ceil(packet as usize)).map(|index| {
            let length = (packet as usize).min(18 - index * packet as usize);
            Reply::data(vec![index as u8; length], (index as u8 + 1) % 2)
        });
        probe.answer(0x80, toggles);
        let bytes = raw.control(&mut queue, [0x80, 6, 0, 1, 0, 0, 18, 0]);
        assert_eq!(bytes.len(), 18);
        assert_eq!(probe.seen(0)[0], Seen::Setup([0x80, 6, 0, 1, 0, 0, 18, 0]));
    }
}

#[test]
fn full_speed_bulk_is_bound_by_its_slow_bus() {
    let (raw, probe) = device();
    let mut queue = raw.linked(slow_bulk(2));
    let buffer = raw.machine.coherent(5 * 4096);
    let begun = raw.machine.now();
    let sent = raw.submit(&mut queue, OUT, buffer, 64 * 100);
    assert_eq!(raw.wait(sent) & STOPPED, 0);
    let span = raw.machine.now() - begun;
    assert_eq!(probe.seen(2).len(), 100);
    // 19 packets a frame at the most; one endpoint alone does not reach that.
    assert!(
        span > 5 * MILLISECOND && span < 15 * MILLISECOND,
        "{span} ns"
    );
}

#[test]
fn a_nak_below_the_hub_leaves_the_queue_active() {
    let (raw, probe) = device();
    probe.answer(0x81, vec![Reply::Nak; 5]);
    let mut queue = raw.linked(slow_bulk(1));
    let buffer = raw.machine.coherent(4096);
    let read = raw.submit(&mut queue, IN, buffer, 64);
    assert_eq!(raw.wait(read) & 0xff, 0);
    assert_eq!(probe.seen(0x81).len(), 6);
}

#[test]
fn a_silent_device_below_the_hub_is_tried_three_times_and_halts() {
    let (raw, probe) = device();
    probe.habit(0x81, Habit::Silent);
    let mut queue = raw.linked(slow_bulk(1));
    let buffer = raw.machine.coherent(4096);
    let read = raw.submit(&mut queue, IN, buffer, 64);
    assert_eq!(raw.wait(read) & 0xff, STOPPED);
    assert_eq!(probe.seen(0x81).len(), 3);
}

#[test]
fn more_endpoints_than_the_translator_has_buffers_take_turns() {
    let (raw, probe) = device();
    let mut queues = [1, 2, 3, 4].map(|endpoint| raw.linked(slow_bulk(endpoint)));
    let buffer = raw.machine.coherent(4096);
    let last = queues
        .each_mut()
        .map(|queue| raw.submit(queue, OUT, buffer, 640));
    for descriptor in last {
        assert_eq!(raw.wait(descriptor) & 0xff, 0);
    }
    for endpoint in 1..5 {
        assert_eq!(probe.seen(endpoint).len(), 10);
    }
}

#[test]
fn an_interrupt_split_completes_two_microframes_later() {
    let (raw, probe) = device();
    raw.start_periodic();
    let [early, late] = [Reply::Nak, Reply::data(vec![7; 8], 0)];
    probe.answer(0x83, [early, late]);
    let mut queue = raw.queue(slow_interrupt(1, 0x1c));
    link(&raw, queue);
    let buffer = raw.machine.coherent(4096);
    let read = raw.submit(&mut queue, IN, buffer, 8);
    assert_eq!(raw.wait(read) & 0xff, 0);
    assert_eq!(raw.bytes(buffer, 8), [7; 8]);
    let times = probe.times(0x83);
    assert_eq!(times[1] - times[0], MILLISECOND);
    let index = u64::from(raw.read(FRINDEX));
    let now = raw.machine.now() / MICROFRAME;
    assert_eq!((index + times[0] / MICROFRAME).wrapping_sub(now) & 7, 2);
}

#[test]
fn errors_below_the_hub_count_down_and_halt_an_interrupt_endpoint() {
    let (raw, probe) = device();
    raw.start_periodic();
    probe.habit(0x83, Habit::Silent);
    let mut queue = raw.queue(slow_interrupt(1, 0x1c));
    link(&raw, queue);
    let buffer = raw.machine.coherent(4096);
    let read = raw.submit(&mut queue, IN, buffer, 8);
    let token = raw.wait(read);
    assert_eq!((token & 0xc0, token >> 10 & 3), (STOPPED, 0));
    assert_eq!(probe.seen(0x83).len(), 3);
}

fn executes(statics: [u32; 2]) {
    let (raw, _probe) = device();
    let mut queue = raw.linked(statics);
    let buffer = raw.machine.coherent(4096);
    let read = raw.submit(&mut queue, IN, buffer, 8);
    raw.wait(read);
}

#[test]
#[should_panic(expected = "and names no hub")]
fn a_slow_endpoint_names_its_hub() {
    executes([slow_bulk(1)[0], 1 << 30]);
}

#[test]
#[should_panic(expected = "without its C bit")]
fn a_slow_control_endpoint_has_its_c_bit() {
    let [one, two] = slow_control(FULL, 64);
    executes([one & !(1 << 27), two]);
}

#[test]
#[should_panic(expected = "a maximum packet of 512 bytes at Full speed")]
fn a_full_speed_packet_has_at_most_64_bytes() {
    let [one, two] = slow_bulk(1);
    executes([one & !(0x7ff << 16) | 512 << 16, two]);
}

fn executes_interrupt(start: u32, complete: u32) {
    let (raw, _probe) = device();
    raw.start_periodic();
    let mut queue = raw.queue(slow_interrupt(start, complete));
    link(&raw, queue);
    let buffer = raw.machine.coherent(4096);
    let read = raw.submit(&mut queue, IN, buffer, 8);
    raw.wait(read);
}

#[test]
#[should_panic(expected = "has the S-mask 0x11")]
fn a_split_starts_once_a_frame() {
    executes_interrupt(0x11, 0x4);
}

#[test]
#[should_panic(expected = "not from two microframes later on in the same frame")]
fn a_split_completes_two_microframes_after_its_start() {
    executes_interrupt(0x1, 0x6);
}

#[test]
#[should_panic(expected = "not from two microframes later on in the same frame")]
fn a_split_ends_in_the_frame_of_its_start() {
    executes_interrupt(0x40, 0x5);
}

/// A split to hub 3, port 1, where the device is behind another one.
fn executes_behind(hub: u8, port: u8) {
    let probe = Probe::new(Link::High);
    probe.state().packet = 64;
    let raw = Raw::running(Traits {
        translators: vec![(hub, port)],
        ..Traits::default()
    });
    raw.plug(probe);
    let mut queue = raw.linked(slow_bulk(1));
    let buffer = raw.machine.coherent(4096);
    let read = raw.submit(&mut queue, IN, buffer, 64);
    raw.wait(read);
}

#[test]
fn a_split_to_the_port_that_the_device_is_behind_is_made() {
    executes_behind(3, 1);
}

#[test]
#[should_panic(expected = "a split goes to port 1 of the hub 3")]
fn a_split_to_another_hub_is_caught() {
    executes_behind(4, 1);
}

#[test]
#[should_panic(expected = "a split goes to port 1 of the hub 3")]
fn a_split_to_another_port_is_caught() {
    executes_behind(3, 2);
}
