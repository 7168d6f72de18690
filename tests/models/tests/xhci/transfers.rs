//! Transfers as they go: events, short packets, halts, timing, faults.

use rootport_models::controller::xhci::{AfterShort, CompletionFault, Death, Faults, Traits};
use rootport_models::device::base::{Answer, Request};
use rootport_models::device::{MILLISECOND, Script};

use crate::raw::{CHAIN, DATA, IN, IOC, ISP, NORMAL, Raw, STATUS, configured, machine, with_disks};

const GET_DESCRIPTOR_255: [u8; 8] = [0x80, 6, 0, 1, 0, 0, 255, 0];

#[test]
fn a_short_data_stage_makes_two_events() {
    let (mut raw, slot) = configured(0);
    let (events, data) = raw.control_in(slot, GET_DESCRIPTOR_255);
    let codes: Vec<_> = events
        .iter()
        .map(|event| (event.code(), event.length()))
        .collect();
    assert_eq!(codes, [(13, 255 - 18), (1, 0)]);
    assert_eq!(raw.bytes(data, 2), [18, 1]);
}

fn with_script(traits: Traits, script: Script) -> Raw {
    let machine = machine();
    let controller = machine.add_xhci(traits);
    machine.plug(controller, 0, script.build());
    let mut raw = Raw::probe(&machine, controller);
    raw.bring_up();
    raw
}

#[test]
fn a_stall_halts_until_reset_endpoint_and_a_new_dequeue_pointer() {
    let request = Request::GET_MAX_LUN;
    let mut raw = with_script(
        Traits::default(),
        Script::new().control(request, Answer::Stall),
    );
    let slot = raw.address(0);
    raw.configure_bulk(slot, 0);
    let data = raw.machine.coherent(64);
    raw.push_setup(slot, [0xa1, 0xfe, 0, 0, 0, 0, 1, 0], 3);
    let at = raw.push(slot, 1, [data as u32, 0, 1, IN | DATA << 10 | ISP]);
    raw.push(slot, 1, [0, 0, 0, STATUS << 10 | IOC]);
    raw.kick(slot, 1);
    let event = raw.event_of(32);
    assert_eq!((event.code(), event.pointer(), event.length()), (6, at, 1));
    assert_eq!(raw.output(slot, 1)[0] & 7, 2, "Halted");
    raw.kick(slot, 1);
    assert_eq!(
        raw.event_within(10 * MILLISECOND),
        None,
        "a doorbell does not help"
    );
    assert_eq!(
        raw.command([0, 0, 0, slot << 24 | 1 << 16 | 14 << 10])
            .code(),
        1
    );
    assert_eq!(raw.output(slot, 1)[0] & 7, 3, "Stopped");
    let next = raw.rings[&(slot, 1)].place() | 1;
    let words = [
        next as u32,
        (next >> 32) as u32,
        0,
        slot << 24 | 1 << 16 | 16 << 10,
    ];
    assert_eq!(raw.command(words).code(), 1);
    raw.control_in(slot, [0x80, 6, 0, 1, 0, 0, 18, 0]);
}

/// A read of 1 KiB into TRBs of 512, 512 and 512 bytes: the events behind the wrapper's.
fn read_into_three(after_short: AfterShort, flags: [u32; 3]) -> Vec<(u32, u64, u32)> {
    let mut raw = with_script(
        Traits {
            after_short,
            ..Traits::default()
        },
        Script::new().control(Request::GET_MAX_LUN, Answer::Stall),
    );
    let slot = raw.address(0);
    raw.configure_bulk(slot, 0);
    let status = raw.machine.coherent(2048);
    let base = raw.rings[&(slot, 3)].base;
    // INQUIRY of 255 bytes: the device has fewer.
    let wrapper = raw.wrapper(1536, &[0x12, 0, 0, 0, 255, 0]);
    assert_eq!(raw.bulk(slot, 4, wrapper, 31).code(), 1);
    let low = status as u32;
    for (index, size) in [(1, 1), (2, 0)] {
        let at = base + 16 * index;
        let chain = if index == 1 { CHAIN } else { 0 };
        let control = NORMAL << 10 | flags[index as usize] | chain | 1;
        raw.machine.store(
            at,
            &[low + 512 * index as u32, 0, 512 | size << 17, control],
        );
    }
    raw.machine.store(base, &[low, 0, 512 | 2 << 17]);
    raw.machine.release();
    raw.machine
        .store(base + 12, &[NORMAL << 10 | CHAIN | flags[0] | 1]);
    raw.machine.release();
    raw.kick(slot, 3);
    let mut events = Vec::new();
    while let Some(event) = raw.event_within(MILLISECOND) {
        events.push((event.code(), (event.pointer() - base) / 16, event.length()));
    }
    events
}

#[test]
fn a_short_packet_ends_the_td_with_one_or_two_events() {
    let moved = read_into_three(AfterShort::Nothing, [ISP, ISP, ISP | IOC])[0];
    let left = moved.2;
    assert_eq!((moved.0, moved.1), (13, 0));
    let events = read_into_three(AfterShort::ShortAgain, [ISP, ISP, ISP | IOC]);
    assert_eq!(events, [(13, 0, left), (13, 2, 512)]);
    let events = read_into_three(AfterShort::Success, [ISP, ISP, ISP | IOC]);
    assert_eq!(events, [(13, 0, left), (1, 2, 512)]);
    let events = read_into_three(AfterShort::Nothing, [0, 0, IOC]);
    assert_eq!(
        events,
        [(13, 2, 512)],
        "without ISP only the last TRB speaks"
    );
}

#[test]
fn a_td_can_be_made_to_end_with_any_code() {
    for code in [2, 3, 4, 6, 36] {
        let faults = Faults {
            transfers: [((0x02, 0), CompletionFault::Code(code))].into(),
            ..Faults::none()
        };
        let mut raw = with_disks(Traits::default(), faults);
        let slot = raw.address(0);
        raw.configure_bulk(slot, 0);
        let data = raw.machine.coherent(512);
        let event = raw.bulk(slot, 4, data, 31);
        assert_eq!(
            (event.code(), event.endpoint(), event.slot()),
            (u32::from(code), 4, slot)
        );
        assert_eq!(raw.output(slot, 4)[0] & 7, 2);
    }
}

#[test]
fn a_td_can_be_made_to_end_never() {
    let faults = Faults {
        transfers: [((0x02, 0), CompletionFault::Never)].into(),
        ..Faults::none()
    };
    let mut raw = with_disks(Traits::default(), faults);
    let slot = raw.address(0);
    raw.configure_bulk(slot, 0);
    let data = raw.machine.coherent(512);
    raw.push_normal(slot, 4, data, 31, IOC);
    raw.kick(slot, 4);
    assert_eq!(raw.event_within(20_000 * MILLISECOND), None);
}

#[test]
fn three_lost_transactions_halt_and_two_do_not() {
    for (lost, code) in [(2, 1), (3, 4)] {
        let faults = Faults {
            lost_transactions: (6..6 + lost).map(|count| (0, count)).collect(),
            ..Faults::none()
        };
        let mut raw = with_disks(Traits::default(), faults);
        let slot = raw.address(0);
        raw.configure_bulk(slot, 0);
        let data = raw.machine.coherent(512);
        raw.push_setup(slot, [0x80, 6, 0, 1, 0, 0, 18, 0], 3);
        raw.push(slot, 1, [data as u32, 0, 18, IN | DATA << 10 | ISP]);
        raw.push(slot, 1, [0, 0, 0, STATUS << 10 | IOC]);
        raw.kick(slot, 1);
        assert_eq!(raw.event_of(32).code(), code);
    }
}

#[test]
fn a_device_pulled_at_a_transaction_is_an_error_and_a_connect_change() {
    let faults = Faults {
        unplug_at: [(0, 6)].into(),
        ..Faults::none()
    };
    let mut raw = with_disks(Traits::default(), faults);
    let slot = raw.address(0);
    raw.configure_bulk(slot, 0);
    let data = raw.machine.coherent(512);
    raw.push_normal(slot, 3, data, 512, IOC | ISP);
    raw.kick(slot, 3);
    assert_eq!(raw.event_of(34).0[0] >> 24, 1);
    assert_eq!(raw.event_of(32).code(), 4);
}

#[test]
fn an_event_can_come_out_of_nowhere() {
    let words = [0, 0, 4 << 24, 9 << 24 | 3 << 16 | 32 << 10];
    let faults = Faults {
        stray_events: vec![(400 * MILLISECOND, words)],
        ..Faults::none()
    };
    let mut raw = with_disks(Traits::default(), faults);
    let event = raw.event_of(32);
    assert_eq!((event.pointer(), event.code(), event.slot()), (0, 4, 9));
}

#[test]
fn a_dead_controller_is_dead_in_its_own_way() {
    let dead = |death| {
        let faults = Faults {
            death: Some((MILLISECOND * 500, death)),
            ..Faults::none()
        };
        let raw = with_disks(Traits::default(), faults);
        raw.machine.advance(600 * MILLISECOND);
        raw
    };
    assert_eq!(dead(Death::AllOnes).read(4), u32::MAX);
    let raw = dead(Death::HostSystemError);
    assert_eq!(raw.read(raw.operational + 4) & 0b101, 0b101);
    let raw = dead(Death::ControllerError);
    assert_eq!(raw.read(raw.operational + 4) >> 12 & 1, 1);
    let raw = dead(Death::Silent);
    assert_eq!(raw.read(raw.operational + 4) & 1, 0);
    raw.write(raw.doorbells, 0);
}

/// MB/s of a read of 64 KiB, wrappers included.
fn rate(port: usize, max_burst: u32) -> f64 {
    let mut raw = with_disks(Traits::default(), Faults::none());
    let slot = raw.address(port);
    raw.configure_bulk(slot, max_burst);
    raw.read_blocks(slot, 0, 2);
    let begin = raw.machine.now();
    let blocks = 128;
    raw.read_blocks(slot, 0, blocks);
    let span = raw.machine.now() - begin;
    f64::from(blocks) * 512.0 * 1000.0 / span as f64
}

/// MB/s of the data of one TD of 480 KiB, from its doorbell to its event.
fn data_rate(port: usize, max_burst: u32) -> f64 {
    const PIECES: u32 = 8;
    const LENGTH: u32 = PIECES * 60 * 1024;
    let mut raw = with_disks(Traits::default(), Faults::none());
    let slot = raw.address(port);
    raw.configure_bulk(slot, max_burst);
    let packet = if port == 0 { 512 } else { 1024 };
    let blocks = (LENGTH / 512).to_be_bytes();
    let wrapper = raw.wrapper(LENGTH, &[0x28, 0, 0, 0, 0, 0, 0, blocks[2], blocks[3], 0]);
    assert_eq!(raw.bulk(slot, 4, wrapper, 31).code(), 1);
    // Until the disk has its data, the endpoint only waits.
    raw.machine.advance(100 * MILLISECOND);
    let base = raw.rings[&(slot, 3)].base;
    for piece in (0..PIECES).rev() {
        let data = raw.machine.coherent(0x2_0000).next_multiple_of(0x1_0000);
        let left = LENGTH - (piece + 1) * 60 * 1024;
        let size = (left / packet).min(31);
        let at = base + 16 * u64::from(piece);
        raw.machine
            .store(at, &[data as u32, 0, (60 * 1024) | (size << 17)]);
        raw.machine.release();
        let flags = if left == 0 { IOC | ISP } else { CHAIN | ISP };
        raw.machine.store(at + 12, &[NORMAL << 10 | flags | 1]);
        raw.machine.release();
    }
    let begin = raw.machine.now();
    raw.kick(slot, 3);
    assert_eq!(raw.event_of(32).code(), 1);
    f64::from(LENGTH) * 1000.0 / (raw.machine.now() - begin) as f64
}

#[test]
fn the_data_of_a_long_td_moves_at_the_speed_of_its_bus() {
    let high = data_rate(0, 0);
    assert!((52.0..53.3).contains(&high), "{high} MB/s of 53.248");
    let bursts = data_rate(2, 15);
    assert!((460.0..475.0).contains(&bursts), "{bursts} MB/s of 474");
    let alone = data_rate(2, 0);
    assert!(
        (250.0..300.0).contains(&alone),
        "{alone} MB/s without bursts"
    );
}

#[test]
fn high_speed_data_comes_near_53_megabytes_a_second() {
    let rate = rate(0, 0);
    assert!((40.0..53.3).contains(&rate), "{rate} MB/s");
}

#[test]
fn bursts_make_superspeed_fast() {
    let (alone, bursts) = (rate(2, 0), rate(2, 15));
    assert!(bursts > 1.4 * alone, "{alone} and {bursts} MB/s");
}

#[test]
fn a_block_event_interrupt_is_an_event_without_an_interrupt() {
    let (mut raw, slot) = configured(0);
    while raw.event_within(MILLISECOND).is_some() {}
    raw.write(raw.operational + 4, 8);
    raw.write(raw.interrupter(0), 3);
    let before = raw.machine.statistics(0).interrupts;
    let wrapper = raw.wrapper(0, &[0; 6]);
    let at = raw.push_normal(slot, 4, wrapper, 31, IOC | 1 << 9);
    raw.kick(slot, 4);
    assert_eq!(raw.event().pointer(), at);
    assert_eq!(raw.machine.statistics(0).interrupts, before);
}
