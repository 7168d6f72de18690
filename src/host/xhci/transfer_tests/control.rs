//! Tests of a ring's transfers: control transfers and their stages.

use super::*;

fn with_control<R>(test: impl FnOnce(&mut Bench<'_>, u32) -> R) -> R {
    with_bench(EndpointKind::Control, 2, |bench| {
        let setup = SetupPacket::configuration_descriptor(0, 0x200);
        bench
            .try_submit(7, &[(0xff00, 0x200)], Report::Always, Some(setup))
            .unwrap();
        let first = bench.records.get(&bench.ring.chain, 0).unwrap().first;
        test(bench, first)
    })
}

#[test]
fn a_control_read_in_full_is_reported_once() {
    with_control(|bench, first| {
        assert_eq!(
            bench.event(first + 3, code::SUCCESS, 0),
            ended(7, Outcome::Complete, 0x200)
        );
    });
}

#[test]
fn a_short_data_stage_is_reported_with_its_status() {
    with_control(|bench, first| {
        assert_eq!(
            bench.event(first + 2, code::SHORT_PACKET, 0xf0),
            Verdict::Noted
        );
        assert_eq!(
            bench.event(first + 3, code::SUCCESS, 0),
            ended(7, Outcome::Short, 0x110)
        );
    });
}

#[test]
fn a_stall_in_each_stage_tells_what_was_moved() {
    for (block, actual) in [(0, 0), (1, 0x80), (2, 0x180), (3, 0x200)] {
        with_control(|bench, first| {
            let residue = if block == 3 { 0 } else { 0x80 };
            assert_eq!(
                bench.event(first + block, code::STALL, residue),
                ended(7, Outcome::Stall, actual)
            );
        });
    }
}

#[test]
fn a_short_data_stage_before_a_stalled_status_keeps_its_length() {
    with_control(|bench, first| {
        assert_eq!(
            bench.event(first + 1, code::SHORT_PACKET, 0xf0),
            Verdict::Noted
        );
        assert_eq!(
            bench.event(first + 3, code::STALL, 0),
            ended(7, Outcome::Stall, 0x10)
        );
    });
}
