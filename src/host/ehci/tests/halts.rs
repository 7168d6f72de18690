//! Queues that halt, transfers that are taken back, and what the next one begins with.

use super::*;

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
