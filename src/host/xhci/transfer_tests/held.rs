//! Tests of a ring's transfers: one that is kept from the controller until the one before it has ended.

use super::*;

/// What the controller sees of a ring's block: whether it is its own in this lap.
fn is_handed_over(bench: &Bench<'_>, block: u32) -> bool {
    bench.ring.ring.read(block).control & 1 == 1
}

#[test]
fn a_transfer_that_is_held_is_handed_over_when_the_one_before_it_has_ended() {
    with_bench(EndpointKind::Bulk, 3, |bench| {
        let (_, before) = bench.submit(1, &[(0xff00, 0x200)], Report::Always);
        let status = bench.data.raw(0, 1024).unwrap().into();
        assert!(
            bench
                .ring
                .hold_segment(&mut bench.records, Token(2), status)
        );
        let held = before + 1;
        assert!(!is_handed_over(bench, held));
        assert_eq!(
            bench.try_submit(3, &[(0, 1)], Report::Always, None),
            Err(HostError::QueueFull),
            "nothing goes behind it"
        );
        assert!(!bench.ring.let_go(held), "it waits for another block");
        assert_eq!(
            bench.event(before, code::SUCCESS, 0),
            ended(1, Outcome::Complete, 0x200)
        );
        assert!(bench.ring.let_go(before));
        assert!(is_handed_over(bench, held));
        assert!(!bench.ring.let_go(before), "once");
        assert_eq!(
            bench.event(held, code::SHORT_PACKET, 1024 - 13),
            ended(2, Outcome::Short, 13)
        );
        assert!(bench.ring.is_idle());
    });
}

#[test]
fn a_transfer_that_is_held_comes_back_with_the_others() {
    with_bench(EndpointKind::Bulk, 3, |bench| {
        let (_, before) = bench.submit(1, &[(0, 512)], Report::Always);
        let status = bench.data.raw(0, 1024).unwrap().into();
        assert!(
            bench
                .ring
                .hold_segment(&mut bench.records, Token(2), status)
        );
        assert_eq!(
            bench.event(before, code::STALL, 0x100),
            ended(1, Outcome::Stall, 0x100)
        );
        assert_eq!(bench.drained(), [(2, Outcome::Cancelled, 0)]);
        assert!(
            is_handed_over(bench, before + 1),
            "so that it is no new one in the next lap"
        );
        bench.submit(3, &[(0, 1)], Report::Always);
    });
}

#[test]
fn nothing_is_held_behind_nothing() {
    with_bench(EndpointKind::Bulk, 3, |bench| {
        let status = bench.data.raw(0, 1024).unwrap().into();
        assert!(
            !bench
                .ring
                .hold_segment(&mut bench.records, Token(2), status)
        );
    });
}
