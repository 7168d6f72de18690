//! Streams as they go: who starts them, what stops them, what their errors look like.

use rootport_models::controller::xhci::{CompletionFault, Faults, IdleStop, StreamStop, Traits};
use rootport_models::device::MILLISECOND;
use rootport_models::device::scsi::pattern;
use rootport_models::device::uas::{Manners, PrimeManner, What, on};

use crate::raw::Event;
use crate::streamed::{
    COMMAND, DATA_IN, DATA_OUT, PRIMARY, STATUS, STREAMS, Streamed, lane, script,
};

const READ: u8 = 0x28;

fn quiet(stream_stop: StreamStop) -> Traits {
    Traits {
        idle_stop: IdleStop::Silent,
        stream_stop,
        ..Traits::default()
    }
}

/// The events of so many transfers, as (endpoint, code), sorted.
fn outcomes(streamed: &mut Streamed, count: usize) -> Vec<(u32, u32)> {
    let mut seen: Vec<_> = (0..count)
        .map(|_| {
            let event = streamed.event();
            (event.endpoint(), event.code())
        })
        .collect();
    seen.sort_unstable();
    seen
}

#[test]
fn each_command_moves_its_data_and_its_status_on_its_own_stream() {
    for seed in 1..6 {
        let manners = Manners {
            seed,
            ..Manners::default()
        };
        let traits = Traits::default();
        let mut streamed = Streamed::with(traits, Faults::none(), script().manners(manners));
        streamed.settle();
        let sent: Vec<_> = (1..=STREAMS)
            .map(|tag| (tag, streamed.send_read(tag, tag as u8 * 10, 8)))
            .collect();
        let seen = outcomes(&mut streamed, 2 * STREAMS as usize);
        let expected = [vec![(STATUS, 13); 8], vec![(DATA_IN, 1); 8]].concat();
        assert_eq!(seen, expected, "a status is shorter than its buffer");
        for (tag, [status, data]) in sent {
            let unit = streamed.raw.bytes(status, 16);
            assert_eq!((unit[0], u32::from(unit[3]), unit[6]), (3, tag, 0));
            let lba = u64::from(tag) * 10;
            assert_eq!(streamed.raw.bytes(data, 512), pattern(lba, 512));
        }
    }
}

#[test]
fn the_device_chooses_which_stream_comes_first() {
    let mut orders = std::collections::BTreeSet::new();
    for seed in 1..10 {
        let manners = Manners {
            seed,
            ..Manners::default()
        };
        let mut streamed =
            Streamed::with(Traits::default(), Faults::none(), script().manners(manners));
        streamed.settle();
        for tag in 1..=4 {
            streamed.send_read(tag, 0, 64);
        }
        let order: Vec<u64> = (0..8).map(|_| streamed.event().pointer()).collect();
        orders.insert(order);
    }
    assert!(orders.len() > 3, "{} orders", orders.len());
}

#[test]
fn a_write_moves_out_on_its_stream() {
    let mut streamed = Streamed::new();
    streamed.settle();
    let block = [0x2a, 0, 0, 0, 0, 7, 0, 0, 4, 0];
    let [_, data] = streamed.send(3, block, None);
    streamed.raw.machine.store(data, &[0x5a5a_5a5a; 512]);
    streamed.raw.machine.release();
    streamed.queue(DATA_OUT, 3, data, 2048);
    streamed.kick(DATA_OUT, 3);
    assert_eq!(outcomes(&mut streamed, 2), [(STATUS, 13), (DATA_OUT, 1)]);
    assert_eq!(streamed.disk.block(10), [0x5a; 512]);
}

#[test]
fn a_stream_whose_buffer_comes_late_waits_and_the_others_go_on() {
    let mut streamed = Streamed::new();
    streamed.settle();
    let [_, late] = streamed.send(1, [READ, 0, 0, 0, 0, 1, 0, 0, 1, 0], None);
    streamed.send_read(2, 2, 1);
    assert_eq!(outcomes(&mut streamed, 2), [(STATUS, 13), (DATA_IN, 1)]);
    assert_eq!(streamed.raw.event_within(10 * MILLISECOND), None);
    streamed.queue(DATA_IN, 1, late, 512);
    streamed.kick(DATA_IN, 1);
    assert_eq!(outcomes(&mut streamed, 2), [(STATUS, 13), (DATA_IN, 1)]);
    assert_eq!(streamed.raw.bytes(late, 512), pattern(1, 512));
}

#[test]
fn the_pieces_of_a_transfer_on_a_stream_follow_each_other() {
    let mut streamed = Streamed::new();
    streamed.settle();
    let [_, data] = streamed.send(1, [READ, 0, 0, 0, 0, 20, 0, 0, 8, 0], None);
    for piece in 0..4 {
        streamed.queue(DATA_IN, 1, data + 1024 * piece, 1024);
    }
    streamed.kick(DATA_IN, 1);
    let expected = [vec![(STATUS, 13)], vec![(DATA_IN, 1); 4]].concat();
    assert_eq!(outcomes(&mut streamed, 5), expected);
    assert_eq!(streamed.raw.bytes(data + 3584, 512), pattern(27, 512));
}

#[test]
fn only_the_device_starts_streams_if_the_host_is_told_so() {
    let mut streamed = Streamed::prepared(Traits::default(), Faults::none(), script());
    for index in [STATUS, DATA_IN, DATA_OUT] {
        let at = streamed.raw.input + streamed.raw.context * (u64::from(index) + 1) + 4;
        let [word] = streamed.raw.machine.load(at);
        streamed.raw.machine.store(at, &[word | 1 << 7]);
    }
    streamed.raw.machine.release();
    assert_eq!(streamed.raw.command_with_input(12, streamed.slot).code(), 1);
    streamed
        .raw
        .control_out(streamed.slot, [0, 9, 1, 0, 0, 0, 0, 0]);
    streamed.settle();
    streamed.send_read(5, 5, 4);
    assert_eq!(outcomes(&mut streamed, 2), [(STATUS, 13), (DATA_IN, 1)]);
}

/// Stops a pipe with commands that hang on streams 1 to 3.
fn stopped(traits: Traits) -> (Streamed, [u64; 3], Vec<Event>) {
    let script = script().fault(on(READ, What::Hang));
    let mut streamed = Streamed::with(traits, Faults::none(), script);
    streamed.settle();
    let places = [1, 2, 3].map(|tag| {
        let at = streamed.raw.rings[&(streamed.slot, lane(DATA_IN, tag))].place();
        streamed.send_read(tag, 0, 1);
        at
    });
    streamed.raw.machine.advance(5 * MILLISECOND);
    let events = streamed.stop(DATA_IN);
    (streamed, places, events)
}

#[test]
fn a_stop_reports_the_stream_that_moved_or_each_with_work_or_none_by_name() {
    let (_, _, events) = stopped(quiet(StreamStop::Moving));
    assert_eq!(events, [], "none moved");
    let (_, places, events) = stopped(quiet(StreamStop::EachWithWork));
    let shown: Vec<_> = events.iter().map(|one| one.pointer()).collect();
    assert_eq!(shown, places);
    let (_, _, events) = stopped(quiet(StreamStop::NullPointers));
    let shown: Vec<_> = events
        .iter()
        .map(|one| (one.pointer(), one.code()))
        .collect();
    assert_eq!(shown, [(0, 27); 3]);
}

#[test]
fn a_stop_leaves_in_the_contexts_where_each_stream_goes_on() {
    let (streamed, places, _) = stopped(Traits::default());
    for (place, stream) in places.into_iter().zip(1..) {
        let words = streamed.stream_context(DATA_IN, stream);
        assert_eq!(
            words,
            [place as u32 | PRIMARY | 1, (place >> 32) as u32, 0, 0]
        );
    }
    assert_eq!(streamed.raw.output(streamed.slot, 7)[0] & 7, 3, "Stopped");
    let array = streamed.context_at(DATA_IN, 0);
    assert_eq!(streamed.raw.output(streamed.slot, 7)[2], array as u32);
}

#[test]
fn a_stopped_stream_goes_on_when_its_own_doorbell_rings() {
    let mut streamed = Streamed::new();
    streamed.settle();
    streamed.stop(DATA_IN);
    let [_, first] = streamed.send(1, [READ, 0, 0, 0, 0, 1, 0, 0, 1, 0], None);
    streamed.send(2, [READ, 0, 0, 0, 0, 2, 0, 0, 1, 0], None);
    streamed.queue(DATA_IN, 1, first, 512);
    streamed.queue(DATA_IN, 2, first + 512, 512);
    streamed.kick(DATA_IN, 2);
    assert_eq!(outcomes(&mut streamed, 2), [(STATUS, 13), (DATA_IN, 1)]);
    assert_eq!(streamed.raw.event_within(10 * MILLISECOND), None);
    streamed.kick(DATA_IN, 1);
    assert_eq!(outcomes(&mut streamed, 2), [(STATUS, 13), (DATA_IN, 1)]);
}

#[test]
fn a_stream_that_is_stopped_in_the_middle_of_its_data_goes_on_there() {
    let mut streamed = Streamed::new();
    streamed.settle();
    let [_, data] = streamed.send_read(1, 0, 64);
    streamed.raw.machine.advance(40_000);
    let events = streamed.stop(DATA_IN);
    let [stopped] = events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(stopped.code(), 26);
    assert!((1..64 * 512).contains(&stopped.length()), "{stopped:?}");
    streamed.kick(DATA_IN, 1);
    assert_eq!(outcomes(&mut streamed, 2), [(STATUS, 13), (DATA_IN, 1)]);
    assert_eq!(streamed.raw.bytes(data + 63 * 512, 512), pattern(63, 512));
}

#[test]
fn the_dequeue_pointer_of_one_stream_moves_and_the_others_stay() {
    let (mut streamed, places, _) = stopped(Traits::default());
    let ring = &streamed.raw.rings[&(streamed.slot, lane(DATA_IN, 2))];
    let next = ring.place();
    assert_eq!(
        streamed.set_dequeue(DATA_IN, 2, next | u64::from(PRIMARY) | 1),
        1
    );
    assert_eq!(
        streamed.stream_context(DATA_IN, 2)[0],
        next as u32 | PRIMARY | 1
    );
    assert_eq!(
        streamed.stream_context(DATA_IN, 3)[0],
        places[2] as u32 | PRIMARY | 1
    );
    assert_eq!(streamed.raw.output(streamed.slot, 7)[0] & 7, 3, "Stopped");
}

#[test]
fn a_stall_halts_all_streams_and_names_the_trb_of_one() {
    let script = script().fault(on(READ, What::HaltData).times(1));
    let mut streamed = Streamed::with(Traits::default(), Faults::none(), script);
    streamed.settle();
    let at = streamed.raw.rings[&(streamed.slot, lane(DATA_IN, 4))].place();
    streamed.send_read(4, 0, 1);
    let event = streamed.event();
    assert_eq!(
        (event.endpoint(), event.code(), event.pointer()),
        (DATA_IN, 6, at)
    );
    assert_eq!(streamed.event().endpoint(), STATUS);
    assert_eq!(streamed.raw.output(streamed.slot, 7)[0] & 7, 2, "Halted");
    streamed.kick(DATA_IN, 1);
    assert_eq!(streamed.raw.event_within(10 * MILLISECOND), None);
}

#[test]
fn a_stream_that_the_array_does_not_have_is_code_34_and_one_without_a_ring_code_33() {
    for (stream, code) in [(100, 34), (0, 34), (STREAMS as u16 + 2, 33)] {
        let script = script().fault(on(READ, What::WrongStream(stream)).times(1));
        let mut streamed = Streamed::with(Traits::default(), Faults::none(), script);
        streamed.settle();
        streamed.send_read(1, 0, 1);
        let event = streamed.event();
        assert_eq!(
            (event.code(), event.pointer()),
            (code, 0),
            "stream {stream}"
        );
        assert_eq!(streamed.raw.output(streamed.slot, 7)[0] & 7, 2, "Halted");
    }
}

#[test]
fn a_stream_that_is_open_but_not_the_command_s_takes_what_comes_on_it() {
    let script = script().fault(on(READ, What::WrongStream(2)).times(1));
    let mut streamed = Streamed::with(Traits::default(), Faults::none(), script);
    streamed.settle();
    let [_, first] = streamed.send_read(1, 33, 1);
    assert_eq!(
        streamed.raw.event_within(10 * MILLISECOND),
        None,
        "rejected"
    );
    let second = streamed.raw.machine.coherent(512);
    streamed.queue(DATA_IN, 2, second, 512);
    streamed.kick(DATA_IN, 2);
    assert_eq!(streamed.event().endpoint(), DATA_IN);
    assert_eq!(streamed.raw.bytes(second, 512), pattern(33, 512));
    assert_eq!(streamed.raw.bytes(first, 512), [0; 512]);
}

#[test]
fn a_device_that_refuses_streams_halts_the_pipe_or_never_starts_one() {
    for (prime, code) in [(PrimeManner::Halts, Some(6)), (PrimeManner::Ignores, None)] {
        let manners = Manners {
            prime,
            ..Manners::default()
        };
        let mut streamed =
            Streamed::with(Traits::default(), Faults::none(), script().manners(manners));
        streamed.send(1, [0; 10], None);
        let event = streamed.raw.event_within(10 * MILLISECOND);
        assert_eq!(event.map(Event::code), code);
    }
}

#[test]
fn a_device_with_fewer_streams_than_it_says_serves_only_those() {
    let manners = Manners {
        streams_served: 2,
        ..Manners::default()
    };
    let mut streamed = Streamed::with(Traits::default(), Faults::none(), script().manners(manners));
    streamed.settle();
    streamed.send_read(3, 0, 1);
    streamed.send_read(2, 0, 1);
    assert_eq!(outcomes(&mut streamed, 2), [(STATUS, 13), (DATA_IN, 1)]);
    assert_eq!(streamed.raw.event_within(10 * MILLISECOND), None);
}

#[test]
fn a_stream_can_be_lost_while_the_others_go_on() {
    let faults = Faults {
        transfers: [((0x83, 1), CompletionFault::Never)].into(),
        ..Faults::none()
    };
    let mut streamed = Streamed::with(Traits::default(), faults, script());
    streamed.settle();
    for tag in 1..=3 {
        streamed.send_read(tag, 0, 1);
    }
    let expected = [(STATUS, 13), (STATUS, 13), (DATA_IN, 1), (DATA_IN, 1)];
    assert_eq!(outcomes(&mut streamed, 4), expected);
    assert_eq!(streamed.raw.event_within(10 * MILLISECOND), None);
}

#[test]
fn a_pulled_disk_ends_what_moved_and_is_told_of() {
    let mut streamed = Streamed::new();
    streamed.settle();
    streamed.send_read(1, 0, 64);
    streamed.raw.machine.advance(40_000);
    drop(streamed.raw.machine.unplug(0, 2));
    let mut kinds = Vec::new();
    while let Some(event) = streamed.raw.event_within(10 * MILLISECOND) {
        kinds.push((event.kind(), event.code()));
    }
    assert!(kinds.contains(&(34, 1)), "{kinds:?}");
    assert!(kinds.contains(&(32, 4)), "{kinds:?}");
    assert_eq!(
        streamed.raw.output(streamed.slot, u64::from(COMMAND))[0] & 7,
        1
    );
}
