//! Transfers on a running queue: in order, found at once, without a register.

use super::*;

#[test]
fn a_bulk_only_command_touches_no_register() {
    bench(|bench| {
        let (_, bulk_in, bulk_out) = bench.disk();
        let (wrapper, data) = ([segment(0x1000, 31)], [segment(0x2000, 4096)]);
        let status = [segment(0x3000, 13)];
        while bench.poll().is_some() {}
        bench.bus.accesses();
        for round in 0..50 {
            bench.submit(bulk_out, &quiet(transfer(0, Direction::Out, &wrapper)));
            bench.submit(bulk_in, &quiet(transfer(1, Direction::In, &data)));
            bench.submit(bulk_in, &transfer(2, Direction::In, &status));
            assert_eq!(bench.poll(), None);
            let answers = [
                (2, OUT, Answer::All),
                (1, IN, Answer::All),
                (1, IN, Answer::All),
            ];
            bench.walker.walk(&answers);
            let done = ended(bulk_in, 2, Outcome::Complete, 13);
            assert_eq!(bench.poll(), Some(done), "round {round}");
            bench.ehci.retire(bulk_out);
            assert_eq!(bench.poll(), None);
            assert!(bench.ehci.active.set().is_empty(), "nothing to look at");
            bench.ehci.acknowledge_events();
        }
        assert_eq!(bench.bus.accesses(), 0);
        let outs: Vec<_> = bench
            .walker
            .seen
            .iter()
            .filter(|seen| seen.pid == OUT)
            .collect();
        let toggles: Vec<u32> = outs.iter().map(|seen| seen.toggle).collect();
        assert_eq!(toggles[..4], [0, 1, 0, 1], "the overlay keeps the toggle");
    });
}

#[test]
fn a_short_data_stage_leads_straight_to_the_status_behind_it() {
    bench(|bench| {
        let (_, bulk_in, _) = bench.disk();
        let (data, status) = ([segment(0x2000, 0xf000)], [segment(0x3000, 13)]);
        for round in 0..10 {
            bench.submit(bulk_in, &quiet(transfer(1, Direction::In, &data)));
            bench.submit(bulk_in, &transfer(2, Direction::In, &status));
            let answers = [
                (1, IN, Answer::All),
                (1, IN, Answer::Short(700)),
                (1, IN, Answer::All),
            ];
            bench.walker.walk(&answers);
            let short = ended(bulk_in, 1, Outcome::Short, 0x5000 + 700);
            assert_eq!(bench.poll(), Some(short), "round {round}");
            let done = ended(bulk_in, 2, Outcome::Complete, 13);
            assert_eq!(bench.poll(), Some(done));
            assert_eq!(bench.poll(), None);
        }
    });
}

/// What a descriptor was made for is written down beside it, where a bad controller reaches it.
#[test]
fn a_controller_that_spoils_all_of_its_descriptors_moves_no_more_than_was_asked_for() {
    bench(|bench| {
        let device = bench.open();
        let bulk_in = bench.endpoint(device, &bulk(1, Direction::In));
        bench.ehci.configure(device, bench.now).unwrap();
        bench.settled(device);
        let data = [segment(0x2000, 0xf000)];
        bench.submit(bulk_in, &transfer(1, Direction::In, &data));
        bench
            .walker
            .walk(&[(1, IN, Answer::All), (1, IN, Answer::All)]);
        let first = bench.walker.first() + 0x80;
        for descriptor in (first..).step_by(64).take(4) {
            bench.walker.memory.write32(descriptor + 0x3c, u32::MAX);
        }
        bench.walker.walk(&[(1, IN, Answer::Short(3))]);
        let Some(Event::Transfer { actual, .. }) = bench.poll() else {
            panic!("it has ended");
        };
        assert_eq!(actual, 0xf000);
    });
}

#[test]
fn a_transfer_appended_after_a_short_one_is_found() {
    bench(|bench| {
        let (_, bulk_in, _) = bench.disk();
        let data = [segment(0x2000, 0xf000)];
        for token in 0..20 {
            bench.submit(bulk_in, &transfer(token, Direction::In, &data));
            bench.walker.walk(&[(1, IN, Answer::Short(3))]);
            let short = ended(bulk_in, token, Outcome::Short, 3);
            assert_eq!(bench.poll(), Some(short));
            bench.walker.assert_idle();
            // Each time at another place of the circle, next to what was passed over.
            for small in [100, 101] {
                let data = [segment(0x2000, 13)];
                bench.submit(bulk_in, &transfer(small, Direction::In, &data));
                bench.walker.walk(&[(1, IN, Answer::All)]);
                let done = ended(bulk_in, small, Outcome::Complete, 13);
                assert_eq!(bench.poll(), Some(done));
                bench.walker.assert_idle();
            }
        }
    });
}

#[test]
fn an_end_is_seen_although_its_neighbours_place_was_taken_again() {
    bench(|bench| {
        let device = bench.open();
        let config = EndpointConfig {
            transfers: 2,
            longest: 512,
            ..bulk(1, Direction::In)
        };
        let bulk_in = bench.endpoint(device, &config);
        bench.ehci.configure(device, bench.now).unwrap();
        bench.settled(device);
        let data = [segment(0x2000, 512)];
        bench.submit(bulk_in, &transfer(0, Direction::In, &data));
        for token in 0..10 {
            bench.submit(bulk_in, &transfer(token + 1, Direction::In, &data));
            bench.walker.walk(&[(1, IN, Answer::All)]);
            let done = ended(bulk_in, token, Outcome::Complete, 512);
            assert_eq!(bench.poll(), Some(done));
        }
    });
}

#[test]
fn a_long_transfer_is_reported_once_all_of_it_has_moved() {
    bench(|bench| {
        let (_, bulk_in, _) = bench.disk();
        let data = [segment(0x2345, 0xf000)];
        bench.submit(bulk_in, &transfer(1, Direction::In, &data));
        bench
            .walker
            .walk(&[(1, IN, Answer::All), (1, IN, Answer::All)]);
        assert_eq!(bench.poll(), None, "one qTD is left");
        bench
            .walker
            .walk(&[(1, IN, Answer::All), (1, IN, Answer::All)]);
        let done = ended(bulk_in, 1, Outcome::Complete, 0xf000);
        assert_eq!(bench.poll(), Some(done));
    });
}

#[test]
fn several_transfers_in_flight_end_in_order() {
    bench(|bench| {
        let (_, bulk_in, _) = bench.disk();
        let data = [segment(0x2000, 512)];
        for token in 0..3 {
            bench.submit(bulk_in, &transfer(token, Direction::In, &data));
        }
        let full = bench
            .ehci
            .submit(bulk_in, &transfer(9, Direction::In, &data));
        assert_eq!(full, Err(HostError::QueueFull));
        bench
            .walker
            .walk(&[(1, IN, Answer::All), (1, IN, Answer::All)]);
        for token in 0..2 {
            let done = ended(bulk_in, token, Outcome::Complete, 512);
            assert_eq!(bench.poll(), Some(done));
        }
        assert_eq!(bench.poll(), None);
        bench.submit(bulk_in, &transfer(3, Direction::In, &data));
        bench
            .walker
            .walk(&[(1, IN, Answer::All), (1, IN, Answer::All)]);
        for token in 2..4 {
            let done = ended(bulk_in, token, Outcome::Complete, 512);
            assert_eq!(bench.poll(), Some(done));
        }
        assert_eq!(toggles(&bench.walker.seen), [0, 1, 0, 1]);
    });
}

#[test]
fn each_end_is_seen_at_once_however_often_the_circle_has_gone_round() {
    bench(|bench| {
        let (_, bulk_in, _) = bench.disk();
        let data = [segment(0x2000, 0x7000)];
        bench.submit(bulk_in, &transfer(0, Direction::In, &data));
        for token in 0..40 {
            bench.submit(bulk_in, &transfer(token + 1, Direction::In, &data));
            bench.walker.walk(&[(1, IN, Answer::All)]);
            assert_eq!(bench.poll(), None, "half of it");
            bench.walker.walk(&[(1, IN, Answer::All)]);
            let done = ended(bulk_in, token, Outcome::Complete, 0x7000);
            assert_eq!(bench.poll(), Some(done));
        }
    });
}

#[test]
fn quiet_transfers_make_room_without_a_word() {
    bench(|bench| {
        let (_, _, bulk_out) = bench.disk();
        let wrapper = [segment(0x1000, 31)];
        for _ in 0..10 {
            bench.submit(bulk_out, &quiet(transfer(0, Direction::Out, &wrapper)));
            bench.walker.walk(&[(2, OUT, Answer::All)]);
        }
        assert_eq!(bench.poll(), None);
    });
}

#[test]
fn retire_does_not_take_back_what_the_controller_still_works_on() {
    bench(|bench| {
        let (_, _, bulk_out) = bench.disk();
        let wrapper = [segment(0x1000, 31)];
        bench.submit(bulk_out, &quiet(transfer(7, Direction::Out, &wrapper)));
        bench.ehci.retire(bulk_out);
        bench.walker.walk(&[(2, OUT, Answer::Stall)]);
        assert_eq!(bench.poll(), Some(ended(bulk_out, 7, Outcome::Stall, 0)));
    });
}

#[test]
fn work_after_a_pause_wakes_a_controller_that_backs_off() {
    let options = Options {
        quirks: Quirks::IDLE_SCHEDULE_BACKS_OFF,
        ..Options::default()
    };
    with_options(options, |bench| {
        bench.start();
        let (_, bulk_in, _) = bench.disk();
        let data = [segment(0x2000, 512)];
        bench.now = bench.now + Duration::from_millis(50);
        while bench.poll().is_some() {}
        bench.bus.written();
        bench.submit(bulk_in, &transfer(1, Direction::In, &data));
        assert!(bench.bus.written().contains(&(0x20, 0x0001_0061)));
        bench.walker.walk(&[(1, IN, Answer::All)]);
        assert!(matches!(bench.until_event(), Event::Transfer { .. }));
        assert_eq!(bench.poll(), None);
        bench.bus.written();
        bench.submit(bulk_in, &transfer(2, Direction::In, &data));
        assert_eq!(bench.bus.written(), [], "no pause, no doorbell");
    });
}
