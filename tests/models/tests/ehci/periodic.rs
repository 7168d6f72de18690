//! The periodic schedule: frame list, masks, unlinking (EHCI 1.0 §3.6, §4.6, §4.10.7).

use rootport_models::controller::ehci::Traits;
use rootport_models::device::{Link, MILLISECOND, Reply};

use crate::probe::{Habit, Probe};
use crate::raw::*;

const FRAME: u64 = MILLISECOND;
const MICROFRAME: u64 = 125_000;

/// The static words of an interrupt IN endpoint at high speed, endpoint 3.
fn interrupt(start_mask: u32) -> [u32; 2] {
    [64 << 16 | 2 << 12 | 3 << 8, 1 << 30 | start_mask]
}

fn device() -> (Raw, Probe) {
    let probe = Probe::new(Link::High);
    let raw = Raw::with_device(probe.clone());
    probe.state().packet = 8;
    raw.start_periodic();
    (raw, probe)
}

/// Links a queue head into every `interval`-th frame.
fn link(raw: &Raw, queue: Queue, interval: usize) {
    for frame in (0..1024).step_by(interval) {
        raw.machine
            .store(raw.frames + 4 * frame as u64, &[queue.at as u32 | 2]);
    }
    raw.machine.release();
}

fn unlink(raw: &Raw) {
    raw.machine.store(raw.frames, &[END; 1024]);
    raw.machine.release();
}

#[test]
fn an_interrupt_endpoint_is_polled_in_the_microframe_of_its_mask() {
    let (raw, probe) = device();
    probe.habit(0x83, Habit::Nak(None));
    let mut queue = raw.queue(interrupt(0b100));
    link(&raw, queue, 4);
    let buffer = raw.machine.coherent(4096);
    raw.submit(&mut queue, IN, buffer, 8);
    raw.machine.advance(40 * FRAME);
    let times = probe.times(0x83);
    assert!((9..=11).contains(&times.len()), "{times:?}");
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 4 * FRAME));
    let index = u64::from(raw.read(FRINDEX));
    let now = raw.machine.now() / MICROFRAME;
    let polled = (index + times[0] / MICROFRAME).wrapping_sub(now) & 7;
    assert_eq!(polled, 2);
}

#[test]
fn an_answer_retires_the_qtd_and_the_next_one_waits_for_its_interval() {
    let (raw, probe) = device();
    let mut queue = raw.queue(interrupt(1));
    link(&raw, queue, 8);
    let buffer = raw.machine.coherent(4096);
    let [first, second] = [(); 2].map(|()| raw.submit(&mut queue, IN | IOC, buffer, 8));
    assert_eq!(raw.wait(first) & STOPPED, 0);
    assert_eq!(raw.wait(second) & STOPPED, 0);
    let times = probe.times(0x83);
    assert_eq!(times[1] - times[0], 8 * FRAME);
    raw.machine.advance(MICROFRAME);
    assert_ne!(raw.read(USBSTS) & 1, 0);
}

#[test]
fn mult_allows_several_transactions_in_a_microframe() {
    let (raw, probe) = device();
    probe.state().packet = 64;
    let [one, two] = interrupt(1);
    let mut queue = raw.queue([one, two & !(3 << 30) | 3 << 30]);
    link(&raw, queue, 1);
    let buffer = raw.machine.coherent(4096);
    let read = raw.submit(&mut queue, IN, buffer, 64 * 6);
    raw.wait(read);
    let times = probe.times(0x83);
    let whole = |part: &[u64]| part[2] - part[0] < MICROFRAME;
    assert!(
        times.len() == 6 && whole(&times[..3]) && whole(&times[3..]),
        "{times:?}"
    );
}

#[test]
fn a_hint_is_leapt_to_and_the_answer_is_not_late() {
    let (raw, probe) = device();
    let ready = raw.machine.now() + 50 * FRAME;
    probe.habit(0x83, Habit::Nak(Some(ready)));
    let mut queue = raw.queue(interrupt(1));
    link(&raw, queue, 1);
    let buffer = raw.machine.coherent(4096);
    let read = raw.submit(&mut queue, IN, buffer, 8);
    raw.machine.advance(49 * FRAME);
    probe.habit(0x83, Habit::Stream);
    assert!(raw.wait_within(read, 3 * FRAME).is_some());
}

#[test]
fn interrupts_go_before_bulk_in_their_microframe() {
    let (raw, probe) = device();
    let mut bulk_queue = raw.linked(bulk(0, 2));
    let mut queue = raw.queue(interrupt(1));
    link(&raw, queue, 1);
    let buffer = raw.machine.coherent(5 * 4096);
    for _ in 0..8 {
        raw.submit(&mut bulk_queue, OUT, buffer, 0x5000);
    }
    let read = raw.submit(&mut queue, IN, buffer, 8);
    raw.wait(read);
    raw.machine.advance(MICROFRAME);
    let times = probe.times(0x83);
    assert_eq!(times[0] % MICROFRAME, 0);
    assert!(probe.times(2).iter().any(|&at| at > times[0]));
}

#[test]
fn a_stall_halts_an_interrupt_queue() {
    let (raw, probe) = device();
    probe.answer(0x83, [Reply::Stall]);
    let mut queue = raw.queue(interrupt(1));
    link(&raw, queue, 1);
    let buffer = raw.machine.coherent(4096);
    let read = raw.submit(&mut queue, IN, buffer, 8);
    assert_eq!(raw.wait(read) & 0xff, STOPPED);
    raw.machine.advance(5 * FRAME);
    assert_eq!(probe.times(0x83).len(), 1);
}

#[test]
fn an_idle_periodic_schedule_costs_no_time() {
    let (raw, _probe) = device();
    let queue = raw.queue(interrupt(1));
    link(&raw, queue, 1);
    raw.machine.advance(3_600_000 * MILLISECOND);
}

#[test]
fn a_shorter_frame_list_is_gone_through_more_often() {
    let raw = Raw::running(Traits::odd());
    raw.stop();
    raw.set(USBCMD, 2 << 2);
    raw.run();
    raw.change_port(1, 0, 1 << 12);
    let probe = Probe::new(Link::High);
    raw.machine.plug(raw.controller, 1, probe.clone());
    raw.enable_port(1);
    raw.start_periodic();
    probe.habit(0x83, Habit::Nak(None));
    let mut queue = raw.queue(interrupt(1));
    link(&raw, queue, 256);
    let buffer = raw.machine.coherent(4096);
    raw.submit(&mut queue, IN, buffer, 8);
    raw.machine.advance(1024 * FRAME);
    assert_eq!(probe.times(0x83).len(), 4);
}

#[test]
fn a_frame_after_its_unlinking_a_queue_head_is_softwares_again() {
    let (raw, probe) = device();
    probe.habit(0x83, Habit::Nak(None));
    let mut queue = raw.queue(interrupt(1));
    link(&raw, queue, 1);
    let buffer = raw.machine.coherent(4096);
    raw.submit(&mut queue, IN, buffer, 8);
    raw.machine.advance(5 * FRAME);
    unlink(&raw);
    raw.machine.advance(FRAME);
    raw.machine.store(queue.at, &[0; 12]);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.2.4")]
fn a_queue_head_is_not_reused_in_the_frame_of_its_unlinking() {
    let (raw, _probe) = device();
    let queue = raw.queue(interrupt(1));
    link(&raw, queue, 1);
    unlink(&raw);
    raw.machine.store(queue.at + 4, &[0]);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §4.8.2: word 2 of the queue head")]
fn the_masks_of_a_linked_queue_head_stay() {
    let (raw, _probe) = device();
    let queue = raw.queue(interrupt(1));
    link(&raw, queue, 1);
    raw.machine.store(queue.at + 8, &[interrupt(2)[1]]);
}

fn links(statics: [u32; 2]) {
    let (raw, _probe) = device();
    let queue = raw.queue(statics);
    link(&raw, queue, 1);
}

#[test]
#[should_panic(expected = "in the periodic schedule has no S-mask")]
fn a_periodic_queue_head_has_an_s_mask() {
    links(interrupt(0));
}

#[test]
#[should_panic(expected = "in the periodic schedule has its H bit set")]
fn a_periodic_queue_head_is_no_list_head() {
    let [one, two] = interrupt(1);
    links([one | 1 << 15, two]);
}

#[test]
#[should_panic(expected = "reloads a NAK counter")]
fn a_periodic_queue_head_has_no_nak_counter() {
    let [one, two] = interrupt(1);
    links([one | 4 << 28, two]);
}

#[test]
#[should_panic(expected = "model: the link")]
fn isochronous_descriptors_are_not_modelled() {
    let (raw, _probe) = device();
    raw.machine.store(raw.frames, &[raw.head as u32]);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §3.1")]
fn reserved_bits_of_a_frame_list_element_are_zero() {
    let (raw, _probe) = device();
    raw.machine.store(raw.frames, &[raw.head as u32 | 0x12]);
}

#[test]
#[should_panic(expected = "has no end")]
fn a_frames_list_ends() {
    let (raw, _probe) = device();
    let queue = raw.queue(interrupt(1));
    raw.machine.store(queue.at, &[queue.at as u32 | 2]);
    raw.machine.release();
    link(&raw, queue, 1);
}
