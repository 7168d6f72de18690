//! The driver as a whole, against the walker.

use super::testing::{Answer, Bell, FakeBus, PORTSC, Seen, Walker};
use super::*;
use crate::dma::testing::{TestMemory, segment};
use crate::dma::{Class, Owner, Pool, PoolRecord, Rules, Segment};
use crate::host::{
    Addressing, Attachment, DeviceHandle, Devices, EndpointConfig, EndpointHandle, EndpointKind,
    Endpoints, Event, HostController, HostError, Hubs, Outcome, Report, RootPort, RootPorts,
    Sequence, Token, Transfer, Translator,
};
use crate::time::Duration;
use crate::usb::setup::{Direction, SetupPacket};
use crate::usb::speed::Speed;

const BUS: u64 = 0x4000_0000;
const OUT: u8 = 0;
const IN: u8 = 1;
const SETUP: u8 = 2;

const HIGH: Attachment = Attachment {
    root_port: RootPort(0),
    route: 0,
    speed: Speed::High,
    max_packet0: 64,
    translator: None,
};

/// A controller, its pool, its walker and a clock.
struct Bench<'s> {
    ehci: Ehci<'s, FakeBus>,
    pool: Pool<'s>,
    walker: Walker,
    bus: FakeBus,
    now: Instant,
}

/// Runs `test` with a controller that runs.
fn bench(test: impl FnOnce(&mut Bench<'_>)) {
    with_options(Options::default(), |bench| {
        bench.start();
        test(bench);
    });
}

fn with_options(options: Options, test: impl FnOnce(&mut Bench<'_>)) {
    let memory = TestMemory::new(BUS, 0x8000);
    let mut records = [PoolRecord::EMPTY; 16];
    let mut storage = EhciMemory::<3, 8, 16>::new();
    let bus = FakeBus::controller();
    let ehci = Ehci::new(bus.clone(), 1, storage.slices(), options).unwrap();
    test(&mut Bench {
        ehci,
        pool: Pool::new(memory.region(), &mut records),
        walker: Walker {
            memory,
            bus: bus.clone(),
            seen: Vec::new(),
        },
        bus,
        now: Instant::from_micros(1_000),
    });
}

impl Bench<'_> {
    fn start(&mut self) {
        self.ehci.start(&mut self.pool, self.now);
        assert_eq!(self.until_event(), Event::Started(Ok(())));
    }

    fn poll(&mut self) -> Option<Event> {
        self.ehci.poll(&mut self.pool, self.now)
    }

    /// Polls at the driver's own deadlines until something happens.
    fn until_event(&mut self) -> Event {
        let end = self.now + Duration::from_secs(2);
        loop {
            if let Some(event) = self.poll() {
                return event;
            }
            self.now = self.ehci.next_deadline().max(self.now);
            assert!(self.now < end, "nothing happens");
        }
    }

    fn open(&mut self) -> DeviceHandle {
        let device = self.ehci.open_device(&mut self.pool, &HIGH, self.now);
        let device = device.unwrap();
        self.settled(device);
        device
    }

    fn settled(&mut self, device: DeviceHandle) {
        let result = Ok(());
        assert_eq!(self.until_event(), Event::Device { device, result });
    }

    fn stopped(&mut self, endpoint: EndpointHandle) {
        let result = Ok(());
        assert_eq!(self.until_event(), Event::Endpoint { endpoint, result });
    }

    /// A device with a bulk pair.
    fn disk(&mut self) -> (DeviceHandle, EndpointHandle, EndpointHandle) {
        let device = self.open();
        let bulk_in = self.endpoint(device, &bulk(1, Direction::In));
        let bulk_out = self.endpoint(device, &bulk(2, Direction::Out));
        self.ehci.configure(device, self.now).unwrap();
        self.settled(device);
        (device, bulk_in, bulk_out)
    }

    fn endpoint(&mut self, device: DeviceHandle, config: &EndpointConfig) -> EndpointHandle {
        self.ehci
            .open_endpoint(&mut self.pool, device, config)
            .unwrap()
    }

    fn submit(&mut self, endpoint: EndpointHandle, transfer: &Transfer<'_>) {
        self.ehci.submit(endpoint, transfer).unwrap();
        self.ehci.kick(endpoint, 0);
    }

    fn quiesce(&mut self, endpoint: EndpointHandle) {
        self.ehci.quiesce(endpoint, self.now).unwrap();
    }

    fn restart(&mut self, endpoint: EndpointHandle, sequence: Sequence) {
        self.ehci.restart(endpoint, sequence, self.now).unwrap();
        self.stopped(endpoint);
    }
}

fn bulk(number: u8, direction: Direction) -> EndpointConfig {
    EndpointConfig {
        number,
        direction,
        kind: EndpointKind::Bulk,
        max_packet: 512,
        max_burst: 0,
        interval: 0,
        transfers: 3,
        longest: 64 * 1024,
        streams: 0,
    }
}

fn transfer(token: u32, direction: Direction, segments: &[Segment]) -> Transfer<'_> {
    Transfer {
        token: Token(token),
        setup: None,
        direction,
        segments,
        report: Report::Always,
        stream: 0,
    }
}

fn quiet<'t>(transfer: Transfer<'t>) -> Transfer<'t> {
    Transfer {
        report: Report::Unexpected,
        ..transfer
    }
}

fn ended(endpoint: EndpointHandle, token: u32, outcome: Outcome, actual: u32) -> Event {
    Event::Transfer {
        endpoint,
        token: Token(token),
        outcome,
        actual,
    }
}

fn toggles(seen: &[Seen]) -> Vec<u32> {
    seen.iter().map(|seen| seen.toggle).collect()
}

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
            assert!(bench.ehci.active.is_empty(), "nothing to look at");
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
fn a_halt_in_the_middle_of_appended_work_gives_the_rest_back() {
    bench(|bench| {
        let (_, bulk_in, _) = bench.disk();
        let (data, status) = ([segment(0x2000, 0xf000)], [segment(0x3000, 13)]);
        bench.submit(bulk_in, &transfer(1, Direction::In, &data));
        bench.submit(bulk_in, &transfer(2, Direction::In, &status));
        bench
            .walker
            .walk(&[(1, IN, Answer::All), (1, IN, Answer::Stall)]);
        let stall = ended(bulk_in, 1, Outcome::Stall, 0x5000);
        assert_eq!(bench.poll(), Some(stall));
        assert_eq!(bench.poll(), None);
        let refused = bench
            .ehci
            .submit(bulk_in, &transfer(3, Direction::In, &status));
        assert_eq!(refused, Err(HostError::Halted));
        bench.quiesce(bulk_in);
        let rest = ended(bulk_in, 2, Outcome::Cancelled, 0);
        assert_eq!(bench.until_event(), rest);
        bench.stopped(bulk_in);
        bench.restart(bulk_in, Sequence::Reset);
        bench.walker.seen.clear();
        bench.submit(bulk_in, &transfer(4, Direction::In, &status));
        bench.walker.walk(&[(1, IN, Answer::All)]);
        let done = ended(bulk_in, 4, Outcome::Complete, 13);
        assert_eq!(bench.until_event(), done);
        assert_eq!(toggles(&bench.walker.seen), [0]);
    });
}

#[test]
fn a_restart_keeps_the_toggle_where_the_device_does() {
    for (sequence, expected) in [(Sequence::Keep, 1), (Sequence::Reset, 0)] {
        bench(|bench| {
            let (_, bulk_in, _) = bench.disk();
            let data = [segment(0x2000, 512)];
            bench.submit(bulk_in, &transfer(1, Direction::In, &data));
            bench.walker.walk(&[(1, IN, Answer::All)]);
            assert!(bench.poll().is_some());
            bench.quiesce(bulk_in);
            bench.stopped(bulk_in);
            bench.restart(bulk_in, sequence);
            bench.submit(bulk_in, &transfer(2, Direction::In, &data));
            bench.walker.walk(&[(1, IN, Answer::All)]);
            assert_eq!(toggles(&bench.walker.seen), [0, expected]);
        });
    }
}

#[test]
fn a_cancelled_transfer_tells_how_far_it_came() {
    bench(|bench| {
        let (_, bulk_in, _) = bench.disk();
        let data = [segment(0x2000, 0xf000)];
        bench.submit(bulk_in, &transfer(1, Direction::In, &data));
        bench.submit(bulk_in, &transfer(2, Direction::In, &data));
        bench
            .walker
            .walk(&[(1, IN, Answer::All), (1, IN, Answer::Pause(1024))]);
        bench.quiesce(bulk_in);
        let first = ended(bulk_in, 1, Outcome::Cancelled, 0x5000 + 1024);
        assert_eq!(bench.until_event(), first);
        let second = ended(bulk_in, 2, Outcome::Cancelled, 0);
        assert_eq!(bench.until_event(), second);
        bench.stopped(bulk_in);
    });
}

#[test]
fn a_transfer_that_ended_before_the_doorbell_is_reported_as_it_ended() {
    bench(|bench| {
        let (_, bulk_in, _) = bench.disk();
        let data = [segment(0x2000, 512)];
        bench.submit(bulk_in, &transfer(1, Direction::In, &data));
        bench.walker.walk(&[(1, IN, Answer::All)]);
        bench.quiesce(bulk_in);
        let done = ended(bulk_in, 1, Outcome::Complete, 512);
        assert_eq!(bench.until_event(), done);
        bench.stopped(bulk_in);
    });
}

#[test]
fn a_dead_device_is_a_transaction_error() {
    bench(|bench| {
        let (_, bulk_in, _) = bench.disk();
        let data = [segment(0x2000, 512)];
        bench.submit(bulk_in, &transfer(1, Direction::In, &data));
        bench.walker.walk(&[(1, IN, Answer::Nothing)]);
        let error = ended(bulk_in, 1, Outcome::TransactionError, 0);
        assert_eq!(bench.poll(), Some(error));
    });
}

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

#[test]
fn a_lost_answer_is_found_in_the_command_register() {
    bench(|bench| {
        let (_, bulk_in, _) = bench.disk();
        bench.bus.set_bell(Bell::LosesStatus);
        let rung = bench.now;
        bench.quiesce(bulk_in);
        bench.stopped(bulk_in);
        assert!(bench.now.since(rung) >= Duration::from_millis(10));
        assert_eq!(bench.ehci.missed_doorbells(), 0);
    });
}

#[test]
fn a_deaf_doorbell_costs_a_pause_and_nothing_else() {
    bench(|bench| {
        let (device, bulk_in, bulk_out) = bench.disk();
        bench.bus.set_bell(Bell::Deaf);
        let wrapper = [segment(0x1000, 31)];
        bench.submit(bulk_out, &transfer(1, Direction::Out, &wrapper));
        bench.quiesce(bulk_in);
        bench.stopped(bulk_in);
        assert_eq!(bench.ehci.missed_doorbells(), 1);
        bench.walker.walk(&[(2, OUT, Answer::All)]);
        let done = ended(bulk_out, 1, Outcome::Complete, 31);
        assert_eq!(bench.until_event(), done, "the neighbour goes on");
        let control = bench.ehci.endpoint0(device).unwrap();
        let request = Transfer {
            setup: Some(SetupPacket::set_configuration(1)),
            ..transfer(2, Direction::Out, &[])
        };
        bench.submit(control, &request);
        let answers = [(0, SETUP, Answer::All), (0, IN, Answer::All)];
        bench.walker.walk(&answers);
        let done = ended(control, 2, Outcome::Complete, 0);
        assert_eq!(bench.until_event(), done, "and the one behind it");
    });
}

#[test]
fn a_schedule_that_cannot_be_stopped_ends_the_controller() {
    bench(|bench| {
        let (device, bulk_in, _) = bench.disk();
        bench.bus.set_bell(Bell::Deaf);
        bench.bus.set_stuck();
        bench.quiesce(bulk_in);
        let died = Event::Died(ControllerFault::HaltTimeout);
        assert_eq!(bench.until_event(), died);
        assert!(bench.ehci.endpoint0(device).is_none());
        let refused = bench.ehci.open_device(&mut bench.pool, &HIGH, bench.now);
        assert_eq!(refused, Err(HostError::Dead));
    });
}

#[test]
fn one_doorbell_serves_all_endpoints_of_a_device() {
    bench(|bench| {
        let (device, bulk_in, bulk_out) = bench.disk();
        let data = [segment(0x2000, 512)];
        bench.submit(bulk_in, &transfer(1, Direction::In, &data));
        bench.submit(bulk_out, &quiet(transfer(2, Direction::Out, &data)));
        while bench.poll().is_some() {}
        bench.bus.written();
        let owner = Owner::Device(1, 0);
        let rules = Rules::aligned(8);
        let control = bench.pool.allocate(owner, Class::Command, 8, rules);
        assert!(control.is_ok(), "what the core holds in the device's name");
        bench.ehci.close_device(device, bench.now).unwrap();
        let mut cancelled = Vec::new();
        loop {
            match bench.until_event() {
                Event::Transfer { token, outcome, .. } => {
                    assert_eq!(outcome, Outcome::Cancelled);
                    cancelled.push(token);
                }
                event => {
                    let result = Ok(());
                    assert_eq!(event, Event::Device { device, result });
                    break;
                }
            }
        }
        assert_eq!(cancelled, [Token(1), Token(2)]);
        assert_eq!(bench.pool.held_by(Owner::Device(1, 0)), 0);
        let stale = bench
            .ehci
            .submit(bulk_in, &transfer(3, Direction::In, &data));
        assert_eq!(stale, Err(HostError::Stale));
        let rings = bench.bus.written();
        let rings = rings.iter().filter(|write| write.0 == 0x20).count();
        assert!(rings <= 2, "the first endpoint's, and the others'");
        bench.walker.walk(&[]);
    });
}

#[test]
fn the_address_of_a_closed_device_is_free_again() {
    bench(|bench| {
        for round in 0..200 {
            let device = bench.open();
            let addressing = bench.ehci.address_device(device, bench.now);
            assert_eq!(addressing, Ok(Addressing::Software(round % 127 + 1)));
            bench.ehci.close_device(device, bench.now).unwrap();
            bench.settled(device);
        }
    });
}

#[test]
fn an_endpoint_that_is_closed_gives_its_memory_back() {
    bench(|bench| {
        let (device, bulk_in, bulk_out) = bench.disk();
        let before = bench.pool.held_by(Owner::Device(1, 0));
        bench.ehci.close_endpoint(bulk_in).unwrap();
        bench.ehci.close_endpoint(bulk_out).unwrap();
        let mut again = bench.endpoint(device, &bulk(1, Direction::In));
        for _ in 0..10 {
            bench.ehci.configure(device, bench.now).unwrap();
            bench.settled(device);
            bench.ehci.close_endpoint(again).unwrap();
            again = bench.endpoint(device, &bulk(1, Direction::In));
        }
        bench.ehci.configure(device, bench.now).unwrap();
        bench.settled(device);
        assert!(bench.pool.held_by(Owner::Device(1, 0)) < before);
        let data = [segment(0x2000, 512)];
        let stale = bench
            .ehci
            .submit(bulk_out, &transfer(1, Direction::Out, &data));
        assert_eq!(stale, Err(HostError::Stale));
        bench.submit(again, &transfer(2, Direction::In, &data));
        bench.walker.walk(&[(1, IN, Answer::All)]);
        let done = ended(again, 2, Outcome::Complete, 512);
        assert_eq!(bench.until_event(), done);
    });
}

#[test]
fn an_endpoint_is_not_reached_before_it_is_configured() {
    bench(|bench| {
        let device = bench.open();
        let bulk_in = bench.endpoint(device, &bulk(1, Direction::In));
        let data = [segment(0x2000, 512)];
        let early = bench
            .ehci
            .submit(bulk_in, &transfer(1, Direction::In, &data));
        assert_eq!(early, Err(HostError::Stale));
    });
}

#[test]
fn full_storage_and_a_full_pool_are_typed_errors_that_leak_nothing() {
    bench(|bench| {
        let devices: Vec<_> = (0..3).map(|_| bench.open()).collect();
        let fourth = bench.ehci.open_device(&mut bench.pool, &HIGH, bench.now);
        assert_eq!(fourth, Err(HostError::StorageFull));
        let used = bench.pool.usage().used;
        let greedy = EndpointConfig {
            longest: 4 << 20,
            ..bulk(1, Direction::In)
        };
        for _ in 0..20 {
            let refused = bench
                .ehci
                .open_endpoint(&mut bench.pool, devices[0], &greedy);
            assert!(matches!(refused, Err(HostError::Pool(_))));
        }
        let many = EndpointConfig {
            transfers: 11,
            ..bulk(1, Direction::In)
        };
        let refused = bench.ehci.open_endpoint(&mut bench.pool, devices[0], &many);
        assert_eq!(refused, Err(HostError::StorageFull), "16 records, 6 taken");
        assert_eq!(bench.pool.usage().used, used);
        bench.endpoint(devices[0], &bulk(1, Direction::In));
    });
}

#[test]
fn a_hub_status_endpoint_is_met_in_its_frames_until_it_is_closed() {
    bench(|bench| {
        let hub = bench.open();
        let config = EndpointConfig {
            kind: EndpointKind::Interrupt,
            max_packet: 1,
            interval: 12,
            transfers: 1,
            longest: 1,
            ..bulk(1, Direction::In)
        };
        let status = bench.endpoint(hub, &config);
        bench.ehci.configure(hub, bench.now).unwrap();
        bench.settled(hub);
        let met: Vec<u32> = (0..1024)
            .filter(|frame| !bench.walker.frame(*frame).is_empty())
            .collect();
        assert_eq!(met.len(), 32, "every 32nd frame");
        let change = [segment(0x2000, 1)];
        bench.submit(status, &transfer(1, Direction::In, &change));
        let head = bench.walker.frame(met[0])[0];
        let mut script = [(1, IN, Answer::All)].into();
        bench.walker.queue_head(head, &mut script);
        let done = ended(status, 1, Outcome::Complete, 1);
        assert_eq!(bench.until_event(), done);
        bench.ehci.close_endpoint(status).unwrap();
        let begun = bench.now;
        bench.ehci.configure(hub, bench.now).unwrap();
        bench.settled(hub);
        assert!(bench.now.since(begun) >= Duration::from_millis(2));
        assert!((0..1024).all(|frame| bench.walker.frame(frame).is_empty()));
    });
}

#[test]
fn a_full_speed_device_needs_a_translator() {
    bench(|bench| {
        let direct = Attachment {
            speed: Speed::Full,
            ..HIGH
        };
        let refused = bench.ehci.open_device(&mut bench.pool, &direct, bench.now);
        assert_eq!(refused, Err(HostError::Unsupported));
        let hub = bench.open();
        bench
            .ehci
            .update_hub(
                hub,
                &crate::host::HubInfo {
                    ports: 4,
                    multi_translator: false,
                    think_time: 0,
                },
                bench.now,
            )
            .unwrap();
        bench.settled(hub);
        let behind = Attachment {
            translator: Some(Translator {
                hub,
                hub_address: 9,
                port: 2,
                multi: false,
            }),
            ..direct
        };
        let device = bench.ehci.open_device(&mut bench.pool, &behind, bench.now);
        bench.settled(device.unwrap());
    });
}

#[test]
fn a_boot_loaders_running_schedules_are_stopped_before_the_reset() {
    with_options(Options::default(), |bench| {
        bench.bus.set(0x20, 0x0008_0031);
        bench.bus.set(0x24, 0xc000);
        bench.bus.set(0x30, 7);
        bench.start();
        assert_eq!(bench.bus.get(0x30), 0, "CTRLDSSEGMENT");
        let commands: Vec<u32> = bench
            .bus
            .written()
            .into_iter()
            .filter(|(offset, _)| *offset == 0x20)
            .map(|(_, value)| value)
            .collect();
        assert_eq!(
            commands,
            [
                0x0008_0001,
                0x0008_0000,
                0x0000_0002,
                0x0001_0001,
                0x0001_0021
            ]
        );
        assert_eq!(bench.bus.get(0x20 + 0x40), 1, "ports are ours");
    });
}

#[test]
fn a_reset_that_does_not_end_is_a_typed_fault() {
    with_options(Options::default(), |bench| {
        bench.bus.set_endless_reset();
        let begun = bench.now;
        bench.ehci.start(&mut bench.pool, bench.now);
        let fault = Event::Started(Err(ControllerFault::ResetTimeout));
        assert_eq!(bench.until_event(), fault);
        assert!(bench.now.since(begun) < Duration::from_millis(300));
        assert_eq!(bench.pool.usage().used, 0);
    });
}

#[test]
fn stop_and_start_leave_no_handle_and_no_memory_behind() {
    bench(|bench| {
        let (device, bulk_in, _) = bench.disk();
        bench.ehci.stop(bench.now);
        assert_eq!(bench.until_event(), Event::Stopped(Ok(())));
        assert_eq!(bench.bus.get(0x24) & 0x1000, 0x1000, "halted");
        assert_eq!(bench.ehci.next_deadline(), Instant::default());
        assert_eq!(bench.poll(), None);
        assert_eq!(bench.ehci.next_deadline(), Instant::NEVER);
        bench.start();
        assert_eq!(bench.pool.held_by(Owner::Device(1, 0)), 0);
        assert!(bench.ehci.endpoint0(device).is_none());
        let data = [segment(0x2000, 512)];
        let stale = bench
            .ehci
            .submit(bulk_in, &transfer(1, Direction::In, &data));
        assert_eq!(stale, Err(HostError::Stale));
        bench.disk();
    });
}

#[test]
fn a_host_system_error_is_found_within_the_look_interval() {
    bench(|bench| {
        bench.disk();
        bench.bus.set_status(0x1010);
        let begun = bench.now;
        let died = Event::Died(ControllerFault::HostSystemError);
        assert_eq!(bench.until_event(), died);
        assert!(bench.now.since(begun) <= Duration::from_millis(100));
        bench.start();
        bench.disk();
    });
}

#[test]
fn a_controller_that_vanishes_is_found_at_once_when_asked() {
    bench(|bench| {
        bench.bus.set_gone();
        assert_eq!(bench.poll(), None);
        assert!(!bench.ehci.check_alive());
        let died = Event::Died(ControllerFault::Absent);
        assert_eq!(bench.poll(), Some(died));
        bench.ehci.start(&mut bench.pool, bench.now);
        let absent = Event::Started(Err(ControllerFault::Absent));
        assert_eq!(bench.until_event(), absent);
    });
}

#[test]
fn an_interrupt_about_a_port_reaches_poll() {
    let options = Options {
        interrupts: Interrupts::Wired,
        ..Options::default()
    };
    with_options(options, |bench| {
        bench.start();
        assert_eq!(bench.poll(), None);
        let half = bench.ehci.interrupt_half();
        bench.bus.set(PORTSC, 0x1020);
        bench.bus.set(PORTSC + 4, 0x1003);
        bench.bus.set_status(4);
        assert!(half.acknowledge());
        assert_eq!(bench.poll(), Some(Event::Port(RootPort(0))));
        assert_eq!(bench.poll(), Some(Event::Port(RootPort(1))));
        assert_eq!(bench.poll(), None);
    });
}

#[test]
fn a_high_speed_device_is_enabled_by_its_reset() {
    bench(|bench| {
        let port = RootPort(0);
        bench.bus.set(PORTSC, 0x1803);
        let status = bench.ehci.read_port(port);
        assert!(status.connected && status.powered && status.connect_changed);
        assert_eq!(status.speed, None);
        bench.ehci.acknowledge(port, &status);
        assert!(!bench.ehci.read_port(port).connect_changed);
        bench.ehci.begin_reset(port);
        assert!(bench.ehci.read_port(port).resetting);
        bench.ehci.end_reset(port);
        assert_eq!(bench.until_event(), Event::Port(port));
        let status = bench.ehci.read_port(port);
        assert!(status.enabled && status.reset_changed && !status.resetting);
        assert_eq!(status.speed, Some(Speed::High));
        bench.bus.set(PORTSC, bench.bus.get(PORTSC) | 0x20);
        bench.ehci.acknowledge(port, &status);
        assert_eq!(bench.bus.get(PORTSC) & 0x20, 0);
        let status = bench.ehci.read_port(port);
        assert!(status.enabled, "clearing changes must not disable");
        assert!(!status.reset_changed);
        bench.bus.written();
        bench.ehci.begin_reset(port);
        assert_eq!(bench.bus.written(), [(PORTSC, 0x1100)], "disabled with it");
        bench.ehci.end_reset(port);
        assert_eq!(bench.until_event(), Event::Port(port));
        bench.ehci.disable_port(port);
        assert!(!bench.ehci.read_port(port).enabled);
    });
}

#[test]
fn full_and_low_speed_go_to_the_companion() {
    bench(|bench| {
        let port = RootPort(0);
        bench.bus.set(PORTSC, 0x1401);
        assert_eq!(bench.ehci.read_port(port).speed, Some(Speed::Low));
        bench.bus.set(PORTSC, 0x1801);
        bench.bus.set_full_speed();
        bench.ehci.begin_reset(port);
        bench.ehci.end_reset(port);
        assert_eq!(bench.until_event(), Event::Port(port));
        let status = bench.ehci.read_port(port);
        assert!(status.connected && !status.enabled && !status.resetting);
        assert_eq!(status.speed, Some(Speed::Full));
        assert!(bench.ehci.hand_over(port));
        assert!(!bench.ehci.read_port(port).connected, "it is not ours");
        assert!(!bench.ehci.hand_over(RootPort(2)), "no such port");
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
