//! Transactions of queue heads, packet by packet: toggles, short packets, PING, errors, pages
//! (EHCI 1.0 §3.5, §4.10, §4.11).

use rootport_models::controller::ehci::{Faults, Traits, TransferFault};
use rootport_models::device::{Link, Reply};

use crate::probe::{Habit, Probe, Seen};
use crate::raw::*;

const BABBLE: u32 = 0x10;
const DATA_BUFFER: u32 = 0x20;
const TRANSACTION: u32 = 0x08;
const BYTES: u32 = 0x7fff << 16;

fn device() -> (Raw, Probe) {
    let probe = Probe::new(Link::High);
    (Raw::with_device(probe.clone()), probe)
}

fn faulty(faults: Faults) -> (Raw, Probe) {
    let probe = Probe::new(Link::High);
    let raw = Raw::running_with(Traits::default(), faults);
    raw.plug(probe.clone());
    (raw, probe)
}

fn data(bytes: usize, toggle: u8) -> Reply {
    Reply::data(vec![0xa5; bytes], toggle)
}

#[test]
fn a_bulk_endpoint_keeps_its_toggle_from_transfer_to_transfer() {
    let (raw, probe) = device();
    let mut queue = raw.linked(bulk(0, 2));
    let buffer = raw.machine.coherent(4096);
    for length in [1536, 512, 31] {
        let sent = raw.submit(&mut queue, OUT, buffer, length);
        assert_eq!(raw.wait(sent) & (STOPPED | BYTES), 0);
    }
    let toggles: Vec<u8> = probe
        .seen(2)
        .iter()
        .map(|seen| match seen {
            Seen::Out(_, toggle) => *toggle,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(toggles, [0, 1, 0, 1, 0]);
}

#[test]
fn a_control_endpoint_takes_the_toggle_of_each_qtd() {
    let (raw, probe) = device();
    let mut queue = raw.linked(control(0));
    probe.answer(0x80, [Reply::data(vec![1; 18], 1)]);
    let bytes = raw.control(&mut queue, [0x80, 6, 0, 1, 0, 0, 18, 0]);
    assert_eq!(bytes, [1; 18]);
    assert_eq!(probe.seen(0)[0], Seen::Setup([0x80, 6, 0, 1, 0, 0, 18, 0]));
    assert_eq!(probe.seen(0x80), [Seen::In(1)]);
    assert_eq!(probe.seen(0)[1], Seen::Out(vec![], 1));
}

#[test]
fn a_short_packet_ends_a_qtd_and_interrupts_without_ioc() {
    let (raw, probe) = device();
    let mut queue = raw.linked(bulk(0, 1));
    let buffer = raw.machine.coherent(4096);
    probe.answer(0x81, [data(512, 0), data(100, 1)]);
    let read = raw.submit(&mut queue, IN, buffer, 2048);
    let token = raw.wait(read);
    assert_eq!((token & BYTES) >> 16, 2048 - 612);
    assert_eq!(token & (STOPPED | ACTIVE), 0);
    raw.machine.advance(125_000);
    assert_eq!(raw.read(USBSTS) & 3, 1);
    assert_eq!(raw.bytes(buffer + 608, 5), [0xa5, 0xa5, 0xa5, 0xa5, 0]);
}

#[test]
fn a_whole_read_interrupts_with_ioc_only_and_at_the_threshold_only() {
    let (raw, _probe) = device();
    let mut queue = raw.linked(bulk(0, 1));
    let buffer = raw.machine.coherent(4096);
    let quiet = raw.submit(&mut queue, IN, buffer, 512);
    raw.wait(quiet);
    raw.machine.advance(250_000);
    assert_eq!(raw.read(USBSTS) & 3, 0);
    raw.machine.advance(250_000 - raw.machine.now() % 125_000);
    let loud = raw.submit(&mut queue, IN | IOC, buffer, 512);
    raw.wait(loud);
    assert_eq!(raw.read(USBSTS) & 3, 0);
    raw.machine.advance(125_000);
    assert_eq!(raw.read(USBSTS) & 3, 1);
    assert!(raw.machine.interrupt_line(raw.controller));
    raw.write(USBSTS, 5);
    assert!(!raw.machine.interrupt_line(raw.controller));
}

#[test]
fn after_a_short_packet_the_alternate_pointer_skips_the_rest() {
    let (raw, probe) = device();
    let queue = raw.queue(bulk(0, 1));
    let buffer = raw.machine.coherent(4096);
    let [first, second, status] = [raw.descriptor(), raw.descriptor(), raw.descriptor()];
    let tail = raw.descriptor();
    raw.machine.store(tail, &[END, END, 0]);
    let store = |at, next, alternate: u64| {
        let mut words = raw.words(IN | ACTIVE, buffer, 1024, next);
        words[1] = alternate as u32;
        raw.machine.store(at, &words);
    };
    store(second, status as u32, status);
    store(status, tail as u32, u64::from(END));
    store(first, second as u32, status);
    let at = queue.at;
    raw.machine.store(at + 16, &[first as u32]);
    raw.machine.release();
    probe.answer(0x81, [data(10, 0), data(13, 1)]);
    raw.link(queue);
    assert_eq!((raw.wait(status) & BYTES) >> 16, 1024 - 13);
    let [skipped] = raw.machine.load(second + 8);
    assert_ne!(skipped & ACTIVE, 0);
    assert_eq!(probe.seen(0x81), [Seen::In(0), Seen::In(1)]);
    // What was skipped is software's again.
    raw.machine.store(second, &[0; 8]);
}

#[test]
fn data_goes_over_page_boundaries_at_any_offset() {
    for offset in [0, 1, 511, 3585, 4095] {
        let (raw, probe) = device();
        let buffer = raw.machine.coherent(5 * 4096);
        let length = if offset == 0 { 0x5000 } else { 0x4000 };
        let pattern = |index: usize| (index * 7 + index / 512) as u8;
        let packets = (0..length as usize / 512).map(|packet| {
            let bytes = (0..512)
                .map(|index| pattern(512 * packet + index))
                .collect();
            Reply::data(bytes, (packet % 2) as u8)
        });
        probe.answer(0x81, packets);
        let mut queue = raw.linked(bulk(0, 1));
        let read = raw.submit(&mut queue, IN, buffer + offset, length);
        assert_eq!(raw.wait(read) & (STOPPED | BYTES), 0);
        let all = raw.bytes(buffer, (offset + u64::from(length)) as usize);
        let came = &all[offset as usize..];
        assert!((0..length as usize).all(|index| came[index] == pattern(index)));
    }
}

#[test]
fn a_zero_length_qtd_is_one_empty_packet() {
    let (raw, probe) = device();
    let mut queue = raw.linked(bulk(0, 2));
    let sent = raw.submit(&mut queue, OUT, 0, 0);
    raw.wait(sent);
    assert_eq!(probe.seen(2), [Seen::Out(vec![], 0)]);
}

#[test]
fn a_repeated_packet_is_dropped_and_asked_for_again() {
    let (raw, probe) = device();
    let mut queue = raw.linked(bulk(0, 1));
    let buffer = raw.machine.coherent(4096);
    probe.answer(0x81, [data(512, 1), data(512, 0)]);
    let read = raw.submit(&mut queue, IN, buffer, 512);
    assert_eq!(raw.wait(read) & (STOPPED | BYTES), 0);
    assert_eq!(probe.seen(0x81), [Seen::In(0), Seen::In(0)]);
}

#[test]
fn nyet_makes_the_next_packet_begin_with_ping() {
    let (raw, probe) = device();
    let mut queue = raw.linked(bulk(0, 2));
    let buffer = raw.machine.coherent(4096);
    probe.answer(2, [Reply::Nyet, Reply::Nak, Reply::Ack, Reply::Ack]);
    let sent = raw.submit(&mut queue, OUT, buffer, 1024);
    assert_eq!(raw.wait(sent) & (STOPPED | BYTES), 0);
    let kinds: Vec<bool> = probe
        .seen(2)
        .iter()
        .map(|seen| *seen == Seen::Ping)
        .collect();
    assert_eq!(kinds, [false, true, true, false]);
}

#[test]
fn a_nak_to_out_makes_the_next_try_a_ping_over_the_end_of_a_qtd() {
    let (raw, probe) = device();
    let mut queue = raw.linked(bulk(0, 2));
    let buffer = raw.machine.coherent(4096);
    probe.answer(2, [Reply::Nyet, Reply::Ack, Reply::Ack]);
    let first = raw.submit(&mut queue, OUT, buffer, 31);
    raw.wait(first);
    let second = raw.submit(&mut queue, OUT, buffer, 31);
    raw.wait(second);
    assert_eq!(probe.seen(2)[1], Seen::Ping);
}

#[test]
fn a_stall_halts_the_queue_with_its_error_counter_untouched() {
    let (raw, probe) = device();
    let mut queue = raw.linked(bulk(0, 1));
    let buffer = raw.machine.coherent(4096);
    probe.answer(0x81, [Reply::Stall]);
    let read = raw.submit(&mut queue, IN, buffer, 512);
    let behind = raw.submit(&mut queue, IN, buffer, 512);
    assert_eq!(raw.wait(read) & 0xff, STOPPED);
    let [token] = raw.machine.load(read + 8);
    assert_eq!(token >> 10 & 3, 3);
    raw.machine.advance(1_000_000);
    assert_eq!(raw.read(USBSTS) & 3, 2);
    let [overlay, waiting] = [queue.at + 24, behind + 8].map(|at| raw.machine.load::<1>(at)[0]);
    assert_ne!(overlay & STOPPED, 0);
    assert_ne!(waiting & ACTIVE, 0);
    assert_eq!(probe.seen(0x81).len(), 1);
}

#[test]
fn three_errors_in_a_row_halt_and_fewer_do_not() {
    let (raw, probe) = device();
    let mut queue = raw.linked(bulk(0, 1));
    let buffer = raw.machine.coherent(4096);
    let twice = || [Reply::Silent, Reply::Corrupt];
    probe.answer(0x81, twice());
    probe.answer(0x81, [data(512, 0)]);
    probe.answer(0x81, twice());
    probe.answer(0x81, [data(512, 1)]);
    let read = raw.submit(&mut queue, IN, buffer, 1024);
    assert_eq!(raw.wait(read) & 0xff, TRANSACTION);
    probe.habit(0x81, Habit::Silent);
    let dead = raw.submit(&mut queue, IN, buffer, 512);
    let token = raw.wait(dead);
    assert_eq!(token & 0xff, STOPPED | TRANSACTION);
    assert_eq!(token >> 10 & 3, 0);
}

#[test]
fn more_data_than_was_asked_for_is_babble() {
    let (raw, probe) = device();
    let mut queue = raw.linked(bulk(0, 1));
    let buffer = raw.machine.coherent(4096);
    probe.answer(0x81, [data(14, 0)]);
    let read = raw.submit(&mut queue, IN, buffer, 13);
    assert_eq!(raw.wait(read) & 0xff, STOPPED | BABBLE);
    assert_eq!(raw.bytes(buffer, 13), [0; 13]);
}

#[test]
fn planned_faults_end_the_qtd_they_name() {
    let plan = [
        (TransferFault::Stall, STOPPED),
        (TransferFault::Babble, STOPPED | BABBLE),
        (TransferFault::Transaction, STOPPED | TRANSACTION),
        (TransferFault::DataBuffer, STOPPED | DATA_BUFFER),
    ];
    for (fault, status) in plan {
        let mut faults = Faults::none();
        faults.transfers.insert((0x81, 1), fault);
        let (raw, _probe) = faulty(faults);
        let mut queue = raw.linked(bulk(0, 1));
        let buffer = raw.machine.coherent(4096);
        let well = raw.submit(&mut queue, IN, buffer, 512);
        assert_eq!(raw.wait(well) & STOPPED, 0);
        let badly = raw.submit(&mut queue, IN, buffer, 512);
        assert_eq!(raw.wait(badly) & 0xff, status);
    }
}

#[test]
fn a_transfer_that_never_ends_stays_active_while_others_go_on() {
    let mut faults = Faults::none();
    faults.transfers.insert((0x81, 0), TransferFault::Never);
    let (raw, _probe) = faulty(faults);
    let (mut input, mut output) = (raw.linked(bulk(0, 1)), raw.linked(bulk(0, 2)));
    let buffer = raw.machine.coherent(4096);
    let never = raw.submit(&mut input, IN, buffer, 512);
    let sent = raw.submit(&mut output, OUT, buffer, 512);
    raw.wait(sent);
    assert_eq!(raw.wait_within(never, 100_000_000), None);
    raw.unlink(input);
    raw.handshake();
}

#[test]
fn a_device_that_is_pulled_at_a_packet_ends_in_transaction_errors() {
    let mut faults = Faults::none();
    faults.unplug_at.insert(0, 3);
    let (raw, probe) = faulty(faults);
    let mut queue = raw.linked(bulk(0, 1));
    let buffer = raw.machine.coherent(4096);
    let read = raw.submit(&mut queue, IN, buffer, 4096);
    assert_eq!(raw.wait(read) & 0xff, STOPPED | TRANSACTION);
    assert_eq!(probe.seen(0x81).len(), 3);
    assert_eq!(raw.read(raw.port(0)) & (CONNECTED | ENABLED), 0);
}

#[test]
fn a_lost_transaction_is_tried_again() {
    let mut faults = Faults::none();
    faults.lost_transactions.insert((0, 1));
    let (raw, probe) = faulty(faults);
    let mut queue = raw.linked(bulk(0, 2));
    let buffer = raw.machine.coherent(4096);
    let sent = raw.submit(&mut queue, OUT, buffer, 1024);
    assert_eq!(raw.wait(sent) & (STOPPED | BYTES), 0);
    // After the error the controller asks for room first.
    let kinds: Vec<bool> = probe
        .seen(2)
        .iter()
        .map(|seen| *seen == Seen::Ping)
        .collect();
    assert_eq!(kinds, [false, true, false]);
}

/// Hands over one qTD whose words a test has spoilt.
fn spoilt(spoil: impl FnOnce(&mut Vec<u32>)) {
    let (raw, _probe) = device();
    let queue = raw.linked(bulk(0, 1));
    let buffer = raw.machine.coherent(5 * 4096);
    let mut words = raw.words(IN | ACTIVE, buffer, 512, END);
    spoil(&mut words);
    raw.machine.store(queue.tail, &words[..2]);
    raw.machine.store(queue.tail + 12, &words[3..]);
    raw.machine.release();
    raw.machine.store(queue.tail + 8, &[words[2]]);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §3.5.3: the qTD at")]
fn a_qtd_moves_at_most_five_pages() {
    spoilt(|words| words[2] = words[2] & !BYTES | 0x5001 << 16);
}

#[test]
#[should_panic(expected = "beyond its fifth page")]
fn a_qtd_stays_inside_its_five_pages() {
    spoilt(|words| {
        words[2] = words[2] & !BYTES | 0x5000 << 16;
        words[3] |= 1;
    });
}

#[test]
#[should_panic(expected = "EHCI 1.0 §3.5.4: page pointer 2")]
fn only_the_first_page_pointer_has_an_offset() {
    spoilt(|words| words[5] |= 0x200);
}

#[test]
#[should_panic(expected = "are not all memory that a device may reach")]
fn a_qtds_pages_are_memory() {
    spoilt(|words| words[3] = 0x7000_0000);
}

#[test]
#[should_panic(expected = "the PID code")]
fn a_qtds_pid_is_not_the_reserved_one() {
    spoilt(|words| words[2] |= 3 << 8);
}

#[test]
#[should_panic(expected = "Policy: errors are counted")]
fn a_qtd_counts_its_errors() {
    spoilt(|words| words[2] &= !(3 << 10));
}

#[test]
#[should_panic(expected = "is active and has status 0x84")]
fn a_qtd_begins_with_a_clean_status() {
    spoilt(|words| words[2] |= 4);
}

#[test]
#[should_panic(expected = "USB 2.0 §8.5.3: the SETUP")]
fn a_setup_has_eight_bytes_and_data0() {
    spoilt(|words| words[2] = words[2] & !(3 << 8) | SETUP);
}

/// Executes a qTD on a queue head whose static words a test has spoilt.
fn executes_with(statics: [u32; 2]) {
    let (raw, _probe) = device();
    let mut queue = raw.linked(statics);
    let buffer = raw.machine.coherent(4096);
    let read = raw.submit(&mut queue, IN, buffer, 8);
    raw.wait(read);
}

#[test]
#[should_panic(expected = "USB 2.0 §5.8.3: the queue head")]
fn a_bulk_packet_has_at_most_512_bytes() {
    let [one, two] = bulk(0, 1);
    executes_with([one & !(0x7ff << 16) | 1024 << 16, two]);
}

#[test]
#[should_panic(expected = "Mult of the queue head")]
fn mult_is_not_zero() {
    executes_with([bulk(0, 1)[0], 0]);
}

#[test]
#[should_panic(expected = "is at high speed and has its C bit set")]
fn the_c_bit_is_not_for_high_speed() {
    executes_with([bulk(0, 1)[0] | 1 << 27, 1 << 30]);
}
