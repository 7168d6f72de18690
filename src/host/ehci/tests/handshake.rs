//! The doorbell: one for many, lost, deaf, and a schedule that cannot be stopped.

use super::*;

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

/// Nobody knows what it still does in memory, where its registers cannot be seen.
#[test]
fn registers_that_read_as_zeros_answer_no_doorbell() {
    for bell in [Bell::Answers, Bell::Deaf] {
        bench(|bench| {
            let (_, bulk_in, _) = bench.disk();
            let data = [segment(0x2000, 512)];
            bench.submit(bulk_in, &transfer(1, Direction::In, &data));
            bench.bus.set_bell(bell);
            bench.quiesce(bulk_in);
            if bell == Bell::Deaf {
                // The schedule has just been told to stop instead.
                while bench.ehci.missed_doorbells() == 0 {
                    assert_eq!(bench.poll(), None);
                    bench.now = bench.ehci.next_deadline().max(bench.now);
                }
            }
            bench.bus.set_unclocked();
            let died = Event::Died(ControllerFault::Absent);
            assert_eq!(bench.until_event(), died, "{bell:?}");
        });
    }
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
