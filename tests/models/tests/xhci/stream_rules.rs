//! Streams: what no driver may do.

use rootport_models::controller::xhci::{Faults, Traits};
use rootport_models::device::MILLISECOND;

use crate::raw::{breaks, configured};
use crate::streamed::{
    COMMAND, DATA_IN, ENTRIES, EXPONENT, PRIMARY, STATUS, STREAMS, Streamed, lane, script,
};

/// Configure Endpoint with one word of an endpoint's context changed.
#[track_caller]
fn configure_breaks(section: &str, traits: Traits, index: u32, word: u64, value: u32) {
    let mut streamed = Streamed::prepared(traits, Faults::none(), script());
    let raw = &mut streamed.raw;
    let at = raw.input + raw.context * (u64::from(index) + 1) + 4 * word;
    raw.machine.store(at, &[value]);
    raw.machine.release();
    breaks(section, || raw.command_with_input(12, streamed.slot));
}

const LINEAR: u32 = 1 << 15;
const SHAPE: u32 = 1024 << 16 | 15 << 8 | 6 << 3 | 3 << 1;

#[test]
fn an_array_is_no_larger_than_the_controller_allows() {
    let traits = |exponent| Traits {
        stream_array_size: exponent,
        ..Traits::default()
    };
    let words = LINEAR | EXPONENT << 10;
    configure_breaks("xHCI 1.2 §5.3.6", traits(2), DATA_IN, 0, words);
    configure_breaks("xHCI 1.2 §5.3.6", traits(0), DATA_IN, 0, words);
    let larger = LINEAR | 8 << 10;
    configure_breaks("xHCI 1.2 §5.3.6", Traits::default(), DATA_IN, 0, larger);
}

#[test]
fn an_array_is_memory_at_a_multiple_of_16_and_its_pointer_has_no_cycle_bit() {
    let traits = Traits::default;
    configure_breaks("xHCI 1.2 §6.2.4", traits(), DATA_IN, 2, 0x7654_0000);
    configure_breaks("xHCI 1.2 table 6-1", traits(), DATA_IN, 2, 0);
    let mut streamed = Streamed::prepared(traits(), Faults::none(), script());
    let raw = &mut streamed.raw;
    let at = raw.input + raw.context * (u64::from(DATA_IN) + 1) + 8;
    let [word] = raw.machine.load(at);
    raw.machine.store(at, &[word | 1]);
    raw.machine.release();
    breaks("xHCI 1.2 §6.2.3", || {
        raw.command_with_input(12, streamed.slot)
    });
}

#[test]
fn streams_are_for_bulk_endpoints_at_superspeed() {
    let traits = Traits::default;
    let interrupt = 1024 << 16 | 15 << 8 | 7 << 3 | 3 << 1;
    configure_breaks("xHCI 1.2 §6.2.3", traits(), STATUS, 1, interrupt);
    let (mut raw, slot) = configured(0);
    raw.command([0, 0, 0, slot << 24 | 12 << 10 | 1 << 9]);
    raw.prepare_bulk(slot, 0);
    raw.store_input(4, &[LINEAR | 1 << 10]);
    raw.machine.release();
    breaks("xHCI 1.2 §6.2.3", || raw.command_with_input(12, slot));
}

#[test]
fn the_fields_of_streams_go_together() {
    let traits = Traits::default;
    configure_breaks("xHCI 1.2 §6.2.3", traits(), COMMAND, 0, LINEAR);
    let out = 1024 << 16 | 2 << 3 | 3 << 1;
    configure_breaks("xHCI 1.2 §6.2.3", traits(), COMMAND, 1, out | 1 << 7);
    configure_breaks("model", traits(), DATA_IN, 0, EXPONENT << 10);
    configure_breaks("xHCI 1.2 §6.2.3", traits(), DATA_IN, 1, SHAPE | 1 << 6);
}

#[test]
fn a_doorbell_of_an_endpoint_with_streams_names_one_that_it_has() {
    for stream in [0, ENTRIES, 0xfffe, 0xffff] {
        let streamed = Streamed::new();
        breaks("xHCI 1.2 §5.6", || streamed.kick(DATA_IN, stream));
    }
    let streamed = Streamed::new();
    breaks("xHCI 1.2 §5.6", || streamed.kick(COMMAND, 1));
}

#[test]
fn a_doorbell_of_a_stream_without_a_ring_is_a_mistake() {
    let streamed = Streamed::new();
    breaks("xHCI 1.2 §4.12.2", || streamed.kick(DATA_IN, STREAMS + 1));
}

/// A doorbell after a word of the stream's context was changed.
#[track_caller]
fn context_breaks(section: &str, word: u64, change: impl FnOnce(u32) -> u32) {
    let streamed = Streamed::new();
    let at = streamed.context_at(DATA_IN, 3) + 4 * word;
    let [old] = streamed.raw.machine.load(at);
    streamed.raw.machine.store(at, &[change(old)]);
    streamed.raw.machine.release();
    breaks(section, || streamed.kick(DATA_IN, 3));
}

#[test]
fn a_stream_context_is_that_of_a_ring_in_a_primary_array() {
    context_breaks("xHCI 1.2 §6.2.4.1", 0, |word| word & !0xe);
    context_breaks("xHCI 1.2 §6.2.4.1", 0, |word| word | 0xe);
    context_breaks("xHCI 1.2 §6.2.4.1", 2, |_| 1);
    context_breaks("xHCI 1.2 §6.2.4.1", 3, |_| 1);
}

#[test]
fn a_stream_context_that_was_read_is_the_controller_s() {
    let mut streamed = Streamed::new();
    streamed.settle();
    streamed
        .raw
        .machine
        .store(streamed.context_at(STATUS, 1), &[PRIMARY]);
    streamed.raw.machine.release();
    breaks("xHCI 1.2 §4.12.2", || streamed.kick(STATUS, 2));
    let mut streamed = Streamed::new();
    streamed.settle();
    streamed
        .raw
        .machine
        .store(streamed.context_at(STATUS, 1), &[PRIMARY]);
    streamed.raw.machine.release();
    breaks("xHCI 1.2 §4.12.2", || streamed.stop(STATUS));
}

#[test]
fn a_dequeue_pointer_names_a_stream_that_there_is_and_its_type() {
    let moved = |stream: u32, kind: u32| {
        let mut streamed = Streamed::new();
        streamed.settle();
        streamed.stop(STATUS);
        let at = streamed.raw.rings[&(streamed.slot, lane(STATUS, 1))].place();
        streamed.set_dequeue(STATUS, stream, at | u64::from(kind << 1) | 1)
    };
    breaks("xHCI 1.2 §4.6.10", || moved(0, 1));
    breaks("xHCI 1.2 §4.6.10", || moved(ENTRIES, 1));
    breaks("xHCI 1.2 §4.6.10", || moved(1, 0));
    breaks("xHCI 1.2 §4.6.10", || moved(1, 2));
    assert_eq!(moved(1, 1), 1);
}

#[test]
fn a_pipe_whose_stream_moves_is_not_dropped() {
    let mut streamed = Streamed::new();
    streamed.settle();
    streamed.send_read(1, 0, 64);
    streamed.raw.machine.advance(40_000);
    streamed.raw.store_input(0, &[1 << DATA_IN, 1]);
    streamed.raw.machine.release();
    breaks("xHCI 1.2 §4.6.6", || {
        streamed.raw.command_with_input(12, streamed.slot)
    });
}

#[test]
fn a_trb_that_was_handed_over_on_a_stream_does_not_change() {
    let mut streamed = Streamed::new();
    streamed.settle();
    let data = streamed.raw.machine.coherent(4096);
    streamed.queue(DATA_IN, 1, data, 1024);
    let second = streamed.queue(DATA_IN, 1, data + 1024, 1024);
    streamed.kick(DATA_IN, 1);
    streamed.raw.machine.advance(MILLISECOND);
    streamed.raw.machine.store(second + 8, &[2048]);
    streamed.raw.machine.release();
    streamed.send(1, [0x28, 0, 0, 0, 0, 0, 0, 0, 4, 0], None);
    breaks("xHCI 1.2 §4.9.2", || {
        streamed.raw.machine.advance(10 * MILLISECOND)
    });
}
