//! Transfers that are kept from the controller until what is in front of them has ended, and the short
//! way of the good ends.

use super::*;
use crate::host::{Handling, TransferEnd};

/// What the short way brings.
fn take_end(bench: &mut Bench<'_>) -> Option<TransferEnd> {
    let mut end = TransferEnd::NONE;
    bench.ehci.take_end(&mut end).then_some(end)
}

/// Data of 4 KiB, and a status kept back behind them.
fn read(bench: &mut Bench<'_>, bulk_in: EndpointHandle) {
    let (data, status) = ([segment(0x2000, 4096)], segment(0x3000, 13));
    bench.submit(bulk_in, &transfer(1, Direction::In, &data));
    let kept = bench.ehci.hold_segment(bulk_in, Token(2), status);
    assert_eq!(kept, Ok(()));
}

#[test]
fn a_kept_transfer_is_seen_when_the_data_have_come_and_tells_of_both() {
    bench(|bench| {
        let (_, bulk_in, _) = bench.disk();
        for _ in 0..5 {
            read(bench, bulk_in);
            bench.walker.seen.clear();
            bench.walker.walk(&[(1, IN, Answer::All)]);
            assert_eq!(bench.walker.seen.len(), 1, "the data alone");
            assert!(bench.ehci.has_events());
            assert_eq!(take_end(bench), None);
            assert_eq!(bench.poll(), None);
            assert!(!bench.ehci.has_events());
            bench.walker.walk(&[(1, IN, Answer::All)]);
            let end = TransferEnd {
                token: Token(2),
                actual: 13,
                outcome: Outcome::Complete,
            };
            assert_eq!(take_end(bench), Some(end));
            assert_eq!(bench.poll(), None);
        }
    });
}

#[test]
fn what_ends_behind_a_look_is_found_in_the_next_turn() {
    bench(|bench| {
        let (_, bulk_in, bulk_out) = bench.disk();
        let data = [segment(0x2000, 512)];
        bench.submit(bulk_in, &transfer(1, Direction::In, &data));
        bench.submit(bulk_out, &transfer(2, Direction::Out, &data));
        assert_eq!(take_end(bench), None);
        let ends = [(2, OUT, Answer::All), (1, IN, Answer::All)];
        bench.walker.walk(&ends);
        assert!(!bench.ehci.has_events(), "as of the look a moment ago");
        assert!(bench.ehci.has_events(), "as of now");
        assert_eq!(take_end(bench).map(|end| end.token), Some(Token(1)));
        // What was queued at the end of a round has its turn in the next, and keeps nobody from it.
        bench.submit(bulk_in, &transfer(3, Direction::In, &data));
        assert_eq!(take_end(bench).map(|end| end.token), Some(Token(2)));
        assert_eq!(take_end(bench), None);
        bench.submit(bulk_out, &transfer(4, Direction::Out, &data));
        bench.walker.walk(&[(1, IN, Answer::All)]);
        assert_eq!(take_end(bench).map(|end| end.token), Some(Token(3)));
        assert_eq!(take_end(bench), None);
        bench.walker.walk(&[(2, OUT, Answer::All)]);
        bench.ehci.acknowledge_events();
        assert!(bench.ehci.has_events(), "the turn is over");
        assert_eq!(
            bench.poll(),
            Some(ended(bulk_out, 4, Outcome::Complete, 512))
        );
    });
}

#[test]
fn short_data_are_told_of_and_the_kept_transfer_follows() {
    bench(|bench| {
        let (_, bulk_in, _) = bench.disk();
        read(bench, bulk_in);
        bench.walker.walk(&[(1, IN, Answer::Short(700))]);
        assert_eq!(bench.poll(), Some(ended(bulk_in, 1, Outcome::Short, 700)));
        bench.walker.walk(&[(1, IN, Answer::All)]);
        assert_eq!(bench.poll(), Some(ended(bulk_in, 2, Outcome::Complete, 13)));
    });
}

#[test]
fn a_transfer_kept_behind_data_of_several_qtds_waits_for_the_last() {
    bench(|bench| {
        let (_, bulk_in, _) = bench.disk();
        let (data, status) = ([segment(0x2000, 0xf000)], segment(0x3000, 13));
        bench.submit(bulk_in, &transfer(1, Direction::In, &data));
        assert_eq!(bench.ehci.hold_segment(bulk_in, Token(2), status), Ok(()));
        for _ in 0..3 {
            bench.walker.walk(&[(1, IN, Answer::All)]);
            assert_eq!(bench.poll(), None);
        }
        bench.walker.walk(&[(1, IN, Answer::All)]);
        assert_eq!(bench.poll(), Some(ended(bulk_in, 2, Outcome::Complete, 13)));
    });
}

#[test]
fn data_that_halt_leave_the_kept_transfer_unseen_until_it_is_taken_back() {
    bench(|bench| {
        let (_, bulk_in, _) = bench.disk();
        read(bench, bulk_in);
        bench.walker.walk(&[(1, IN, Answer::Stall)]);
        assert_eq!(take_end(bench), None, "no good end");
        assert_eq!(bench.poll(), Some(ended(bulk_in, 1, Outcome::Stall, 0)));
        bench.quiesce(bulk_in);
        let rest = ended(bulk_in, 2, Outcome::Cancelled, 0);
        assert_eq!(bench.until_event(), rest, "not taken for done");
        bench.stopped(bulk_in);
        bench.restart(bulk_in, Sequence::Reset);
        read(bench, bulk_in);
        bench.walker.walk(&[(1, IN, Answer::All)]);
        assert_eq!(bench.poll(), None);
        bench.walker.walk(&[(1, IN, Answer::All)]);
        assert_eq!(bench.poll(), Some(ended(bulk_in, 2, Outcome::Complete, 13)));
    });
}

#[test]
fn a_transfer_kept_behind_nothing_is_seen_at_once_and_a_second_one_is_refused() {
    bench(|bench| {
        let (_, bulk_in, _) = bench.disk();
        let status = segment(0x3000, 13);
        let hold =
            |bench: &mut Bench<'_>, token| bench.ehci.hold_segment(bulk_in, Token(token), status);
        assert_eq!(hold(bench, 1), Ok(()));
        bench.walker.walk(&[(1, IN, Answer::All)]);
        assert_eq!(bench.poll(), Some(ended(bulk_in, 1, Outcome::Complete, 13)));
        read(bench, bulk_in);
        assert_eq!(hold(bench, 3), Err(HostError::QueueFull));
        let behind = [status];
        let refused = bench
            .ehci
            .submit(bulk_in, &transfer(4, Direction::In, &behind));
        assert_eq!(refused, Err(HostError::QueueFull));
        bench.quiesce(bulk_in);
        let cancelled = ended(bulk_in, 1, Outcome::Cancelled, 0);
        assert_eq!(bench.until_event(), cancelled);
        assert_eq!(hold(bench, 5), Err(HostError::Halted));
    });
}

#[test]
fn one_piece_goes_as_any_transfer_does_and_may_be_full_or_too_long_for_a_qtd() {
    bench(|bench| {
        let (_, bulk_in, bulk_out) = bench.disk();
        let send = |bench: &mut Bench<'_>, token, length| {
            let piece = segment(0x2000, length);
            bench.ehci.send_segment(
                bulk_out,
                Token(token),
                piece,
                Handling::outward(Report::Always),
            )
        };
        bench.bus.accesses();
        for token in [1, 2, 3] {
            assert_eq!(send(bench, token, 0x6000), Ok(()), "two qTDs each");
        }
        assert_eq!(send(bench, 4, 512), Err(HostError::QueueFull));
        let all = [(2, OUT, Answer::All); 6];
        bench.walker.walk(&all);
        for token in [1, 2, 3] {
            let done = ended(bulk_out, token, Outcome::Complete, 0x6000);
            assert_eq!(bench.poll(), Some(done));
        }
        assert_eq!(bench.poll(), None);
        let stale = EndpointHandle {
            generation: bulk_in.generation.wrapping_add(1),
            ..bulk_in
        };
        let piece = segment(0x2000, 512);
        let refused =
            bench
                .ehci
                .send_segment(stale, Token(9), piece, Handling::inward(Report::Always));
        assert_eq!(refused, Err(HostError::Stale));
        assert_eq!(bench.bus.accesses(), 0);
    });
}
