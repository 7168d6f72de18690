//! Endpoint 0: its stages, its address, its packet size.

use super::*;

#[test]
fn a_control_read_reports_its_data_once() {
    bench(|bench| {
        let device = bench.open();
        let control = bench.ehci.endpoint0(device).unwrap();
        let data = [segment(0x2000, 255)];
        let request = Transfer {
            setup: Some(SetupPacket::string_descriptor(1, 0x0409, 255)),
            ..transfer(5, Direction::In, &data)
        };
        bench.submit(control, &request);
        let answers = [
            (0, SETUP, Answer::All),
            (0, IN, Answer::Short(20)),
            (0, OUT, Answer::All),
        ];
        bench.walker.walk(&answers);
        let short = ended(control, 5, Outcome::Short, 20);
        assert_eq!(bench.poll(), Some(short));
        assert_eq!(toggles(&bench.walker.seen), [0, 1, 1]);
    });
}

#[test]
fn a_request_that_is_refused_in_its_status_stage_stalls_with_its_data() {
    bench(|bench| {
        let device = bench.open();
        let control = bench.ehci.endpoint0(device).unwrap();
        let data = [segment(0x2000, 64)];
        let request = Transfer {
            setup: Some(SetupPacket::string_descriptor(1, 0x0409, 64)),
            ..transfer(5, Direction::In, &data)
        };
        bench.submit(control, &request);
        let answers = [
            (0, SETUP, Answer::All),
            (0, IN, Answer::Short(20)),
            (0, OUT, Answer::Stall),
        ];
        bench.walker.walk(&answers);
        let stall = ended(control, 5, Outcome::Stall, 20);
        assert_eq!(bench.poll(), Some(stall));
    });
}

#[test]
fn the_adopted_address_is_used_only_after_the_doorbell() {
    bench(|bench| {
        let device = bench.open();
        let control = bench.ehci.endpoint0(device).unwrap();
        let addressing = bench.ehci.address_device(device, bench.now);
        assert_eq!(addressing, Ok(Addressing::Software(1)));
        bench.bus.set_bell(Bell::Deaf);
        let cached = bench.walker.first();
        bench.ehci.adopt_address(device, 1);
        let request = Transfer {
            setup: Some(SetupPacket::set_configuration(1)),
            ..transfer(6, Direction::Out, &[])
        };
        bench.submit(control, &request);
        assert_eq!(bench.poll(), None);
        // What the controller may hold a copy of is executed all the same.
        let mut script = [(0, SETUP, Answer::All)].into();
        bench.walker.queue_head(cached, &mut script);
        bench.walker.walk(&[]);
        assert_eq!(bench.walker.seen, []);
        for _ in 0..400 {
            bench.now = bench.ehci.next_deadline().max(bench.now);
            assert_eq!(bench.poll(), None);
        }
        let answers = [(0, SETUP, Answer::All), (0, IN, Answer::All)];
        bench.walker.walk(&answers);
        assert!(bench.walker.seen.iter().all(|seen| seen.address == 1));
        let done = ended(control, 6, Outcome::Complete, 0);
        assert_eq!(bench.until_event(), done);
    });
}

#[test]
fn a_held_request_can_be_taken_back() {
    bench(|bench| {
        let device = bench.open();
        let control = bench.ehci.endpoint0(device).unwrap();
        bench.ehci.adopt_address(device, 1);
        let request = Transfer {
            setup: Some(SetupPacket::set_configuration(1)),
            ..transfer(6, Direction::Out, &[])
        };
        bench.submit(control, &request);
        bench.quiesce(control);
        let taken = ended(control, 6, Outcome::Cancelled, 0);
        assert_eq!(bench.until_event(), taken);
        bench.stopped(control);
        bench.restart(control, Sequence::Keep);
        bench.submit(control, &request);
        bench
            .walker
            .walk(&[(0, SETUP, Answer::All), (0, IN, Answer::All)]);
        assert_eq!(bench.walker.seen[0].address, 1);
    });
}

#[test]
fn the_packet_size_of_endpoint_0_changes_while_it_is_out() {
    bench(|bench| {
        let device = bench.open();
        let control = bench.ehci.endpoint0(device).unwrap();
        let now = bench.now;
        let odd = bench.ehci.set_max_packet0(device, 48, now);
        assert_eq!(odd, Err(HostError::Unsupported));
        bench.ehci.set_max_packet0(device, 32, now).unwrap();
        let twice = bench.ehci.set_max_packet0(device, 32, now);
        assert_eq!(twice, Err(HostError::Busy));
        bench.settled(device);
        let data = [segment(0x2000, 33)];
        let request = Transfer {
            setup: Some(SetupPacket::device_descriptor(33)),
            ..transfer(6, Direction::In, &data)
        };
        bench.submit(control, &request);
        let answers = [(0, SETUP, Answer::All), (0, IN, Answer::Pause(32))];
        bench.walker.walk(&answers);
        bench.walker.walk(&[(0, IN, Answer::All)]);
        assert_eq!(toggles(&bench.walker.seen), [0, 1, 0], "one packet of 32");
    });
}
