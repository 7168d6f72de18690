//! Tests of a ring's transfers: queued, ended in order, taken back.

use super::*;
use crate::dma::testing::with_pool;
use crate::dma::{Allocation, Class, Rules, Segment};
use crate::host::EndpointKind;
use crate::usb::setup::{Direction, SetupPacket};

mod control;
mod held;

/// A ring with its records, and data memory on a 64 KiB boundary.
struct Bench<'r> {
    ring: TransferRing,
    records: Records<'r>,
    data: Allocation,
}

const LONGEST: u32 = 0x2_0000;

fn config(kind: EndpointKind, transfers: u8) -> EndpointConfig {
    EndpointConfig {
        number: 1,
        direction: Direction::In,
        kind,
        max_packet: 512,
        max_burst: 0,
        interval: 0,
        transfers,
        longest: LONGEST,
        streams: 0,
    }
}

fn with_bench<R>(kind: EndpointKind, transfers: u8, test: impl FnOnce(&mut Bench<'_>) -> R) -> R {
    with_pool(80, |pool| {
        let mut all = [TransferRecord::EMPTY; 16];
        let config = config(kind, transfers);
        let parameters = Parameters::for_tests();
        let mut records = Records::new(&mut all);
        let chain = records.reserve(usize::from(transfers)).unwrap();
        let ring = TransferRing::allocate(pool, Owner::Host, &config, &parameters, 0, chain);
        test(&mut Bench {
            ring: ring.unwrap(),
            records,
            data: pool
                .allocate(
                    Owner::Host,
                    Class::Bounce,
                    0x3_0000,
                    Rules::aligned(0x1_0000),
                )
                .unwrap(),
        })
    })
}

impl Bench<'_> {
    fn submit(&mut self, token: u32, pieces: &[(usize, usize)], report: Report) -> (u32, u32) {
        self.try_submit(token, pieces, report, None).unwrap();
        let newest = self.ring.chain.count() - 1;
        let record = self.records.get(&self.ring.chain, newest).unwrap();
        (record.first, record.last)
    }

    fn try_submit(
        &mut self,
        token: u32,
        pieces: &[(usize, usize)],
        report: Report,
        setup: Option<SetupPacket>,
    ) -> Result<(), HostError> {
        let segments: Vec<Segment> = pieces
            .iter()
            .map(|(offset, length)| self.data.raw(*offset, *length).unwrap().into())
            .collect();
        let transfer = Transfer {
            token: Token(token),
            setup,
            direction: Direction::In,
            segments: &segments,
            report,
            stream: 0,
        };
        self.ring.submit(&mut self.records, &transfer)
    }

    fn event(&mut self, block: u32, code: u8, residue: u32) -> Verdict {
        let pointer = self.ring.ring.bus_of(block).get();
        self.event_at(pointer, code, residue)
    }

    fn event_at(&mut self, pointer: u64, code: u8, residue: u32) -> Verdict {
        let event = event(pointer, code, residue);
        // As the driver does: the short ways first.
        let mut end = TransferEnd::NONE;
        let (ring, records) = (&mut self.ring, &mut self.records);
        let mut at = ring.take_end(records, &event, &mut end);
        if at.is_none() && ring.take_quiet_ones(records, &event) {
            at = ring.take_end(records, &event, &mut end);
        }
        match at {
            Some(_) => Verdict::Ended(end),
            None => ring.take(records, &event),
        }
    }

    fn drained(&mut self) -> Vec<(u32, Outcome, u32)> {
        let mut all = Vec::new();
        while let Some(ended) = self.ring.drain(&mut self.records) {
            all.push((ended.token.0, ended.outcome, ended.actual));
        }
        all
    }
}

fn event(pointer: u64, code: u8, residue: u32) -> Trb {
    Trb {
        parameter: pointer,
        status: u32::from(code) << 24 | residue,
        control: 0,
    }
}

fn ended(token: u32, outcome: Outcome, actual: u32) -> Verdict {
    Verdict::Ended(TransferEnd {
        token: Token(token),
        outcome,
        actual,
    })
}

#[test]
fn transfers_end_in_order_lap_after_lap() {
    with_bench(EndpointKind::Bulk, 2, |bench| {
        for token in 0..100 {
            let (_, last) = bench.submit(token, &[(0, 512)], Report::Always);
            assert_eq!(
                bench.event(last, code::SUCCESS, 0),
                ended(token, Outcome::Complete, 512)
            );
        }
        assert!(bench.ring.is_idle());
    });
}

/// Unaligned, in three pieces: the most blocks that a transfer can have.
fn most_blocks() -> [(usize, usize); 3] {
    [
        (0xff00, 64),
        (0xff40, LONGEST as usize - 128),
        (0x2_ff40, 64),
    ]
}

#[test]
fn a_ring_holds_as_many_longest_transfers_as_it_was_opened_for_at_every_place() {
    let pieces = most_blocks();
    with_bench(EndpointKind::Bulk, 3, |bench| {
        for round in 0..60 {
            for _ in 0..round % 5 {
                let (_, last) = bench.submit(99, &[(0, 1)], Report::Always);
                bench.event(last, code::SUCCESS, 0);
            }
            let lasts: Vec<u32> = (0..3)
                .map(|token| bench.submit(token, &pieces, Report::Always).1)
                .collect();
            assert_eq!(
                bench.try_submit(3, &[(0, 1)], Report::Always, None),
                Err(HostError::QueueFull)
            );
            for (token, last) in lasts.into_iter().enumerate() {
                let verdict = bench.event(last, code::SUCCESS, 0);
                assert_eq!(verdict, ended(token as u32, Outcome::Complete, LONGEST));
            }
        }
    });
}

#[test]
fn a_transfer_of_more_pieces_than_reserved_is_too_long() {
    with_bench(EndpointKind::Bulk, 2, |bench| {
        let pieces = [(0, 1); 7];
        assert_eq!(
            bench.try_submit(1, &pieces, Report::Always, None),
            Err(HostError::TooLong)
        );
        assert!(bench.ring.is_idle());
    });
}

#[test]
fn a_short_packet_counts_the_blocks_before_it() {
    let pieces = [(0xff00, 0x1_0200)];
    with_bench(EndpointKind::Bulk, 2, |bench| {
        let (first, _) = bench.submit(1, &pieces, Report::Always);
        // 0x100 bytes in the first block, 0x1_0000 in the second: 0xfff0 of them are missing.
        assert_eq!(
            bench.event(first + 1, code::SHORT_PACKET, 0xfff0),
            ended(1, Outcome::Short, 0x110)
        );
        let (_, last) = bench.submit(2, &pieces, Report::Always);
        assert_eq!(
            bench.event(last, code::SUCCESS, 0x10),
            ended(2, Outcome::Short, 0x1_01f0),
            "success with a residue is short too"
        );
    });
}

#[test]
fn a_residue_beyond_its_block_counts_nothing_of_it() {
    with_bench(EndpointKind::Bulk, 2, |bench| {
        let (_, last) = bench.submit(1, &[(0, 512)], Report::Always);
        assert_eq!(
            bench.event(last, code::SHORT_PACKET, 0xff_ffff),
            ended(1, Outcome::Short, 0)
        );
    });
}

#[test]
fn quiet_transfers_are_done_when_a_later_one_is() {
    with_bench(EndpointKind::Bulk, 3, |bench| {
        bench.submit(1, &[(0, 31)], Report::Unexpected);
        bench.submit(2, &[(0, 512)], Report::Unexpected);
        let (_, last) = bench.submit(3, &[(0, 13)], Report::Always);
        assert_eq!(
            bench.event(last, code::SUCCESS, 0),
            ended(3, Outcome::Complete, 13)
        );
        assert!(bench.ring.is_idle());
    });
}

#[test]
fn a_quiet_transfer_that_ends_badly_is_reported() {
    for (code, outcome) in [
        (code::STALL, Outcome::Stall),
        (code::BABBLE, Outcome::Babble),
        (code::TRANSACTION, Outcome::TransactionError),
        (code::SPLIT, Outcome::SplitError),
        (code::DATA_BUFFER, Outcome::HostOverrun),
        (5, Outcome::Other(5)),
    ] {
        with_bench(EndpointKind::Bulk, 3, |bench| {
            bench.submit(1, &[(0, 31)], Report::Unexpected);
            let (first, _) = bench.submit(2, &[(0xff00, 0x200)], Report::Unexpected);
            bench.submit(3, &[(0, 13)], Report::Always);
            assert_eq!(bench.event(first, code, 0x80), ended(2, outcome, 0x80));
            assert_eq!(bench.drained(), [(3, Outcome::Cancelled, 0)]);
        });
    }
}

#[test]
fn a_transfer_whose_event_is_missing_is_reported_before_the_later_one() {
    with_bench(EndpointKind::Bulk, 2, |bench| {
        bench.submit(1, &[(0, 512)], Report::Always);
        let (_, last) = bench.submit(2, &[(0, 512)], Report::Always);
        let Verdict::Missed(missed) = bench.event(last, code::SUCCESS, 0) else {
            panic!("the first one's event never came");
        };
        assert_eq!(
            (missed.token, missed.outcome),
            (Token(1), Outcome::Other(0))
        );
        assert_eq!(
            bench.event(last, code::SUCCESS, 0),
            ended(2, Outcome::Complete, 512),
            "the same event, taken again"
        );
    });
}

#[test]
fn events_that_fit_nothing_in_flight_are_strays() {
    with_bench(EndpointKind::Bulk, 2, |bench| {
        let (first, last) = bench.submit(1, &[(0xff00, 0x200)], Report::Always);
        let base = bench.ring.ring.bus().get();
        for pointer in [0, base - 16, base + 1, base + 0x1000, u64::MAX] {
            assert_eq!(bench.event_at(pointer, code::SUCCESS, 0), Verdict::Stray);
        }
        assert_eq!(bench.event(last + 1, code::SUCCESS, 0), Verdict::Stray);
        assert_eq!(
            bench.event(first, code::SUCCESS, 0),
            Verdict::Stray,
            "only the last block reports success"
        );
        assert_eq!(
            bench.event(last, code::SUCCESS, 0),
            ended(1, Outcome::Complete, 0x200)
        );
        assert_eq!(
            bench.event(last, code::SUCCESS, 0),
            Verdict::Stray,
            "a second event after a short packet"
        );
    });
}

#[test]
fn a_stop_reports_bytes_and_what_had_ended_before() {
    for (stop, residue, expected) in [
        (code::STOPPED, 0x80, 0x180),
        (code::STOPPED_LENGTH_INVALID, 0x80, 0x100),
        (code::STOPPED_SHORT_PACKET, 0x42, 0x42),
    ] {
        with_bench(EndpointKind::Bulk, 3, |bench| {
            bench.ring.forget_stop();
            bench.submit(1, &[(0, 31)], Report::Unexpected);
            let (first, _) = bench.submit(2, &[(0xff00, 0x200)], Report::Always);
            bench.submit(3, &[(0, 13)], Report::Always);
            assert_eq!(bench.event(first + 1, stop, residue), Verdict::Noted);
            bench.ring.settle_stop(&mut bench.records, 0);
            // The first one is quiet and has ended well.
            assert_eq!(
                bench.drained(),
                [
                    (2, Outcome::Cancelled, expected),
                    (3, Outcome::Cancelled, 0)
                ]
            );
        });
    }
}

#[test]
fn a_stop_without_a_block_rests_on_the_endpoints_position() {
    with_bench(EndpointKind::Bulk, 3, |bench| {
        bench.ring.forget_stop();
        bench.submit(1, &[(0, 31)], Report::Always);
        assert_eq!(
            bench.event_at(0, code::STOPPED_LENGTH_INVALID, 0),
            Verdict::Noted
        );
        let position = bench.ring.ring.bus_of(bench.ring.ring.enqueue()).get();
        bench.ring.settle_stop(&mut bench.records, position);
        assert_eq!(bench.drained(), [(1, Outcome::Complete, 31)]);

        bench.ring.forget_stop();
        bench.submit(2, &[(0, 31)], Report::Unexpected);
        bench.ring.settle_stop(&mut bench.records, 0);
        assert_eq!(
            bench.drained(),
            [(2, Outcome::Cancelled, 0)],
            "nobody knows"
        );
    });
}

#[test]
fn retiring_ends_at_the_newest_quiet_transfer() {
    with_bench(EndpointKind::Bulk, 4, |bench| {
        bench.submit(1, &[(0, 31)], Report::Unexpected);
        bench.submit(2, &[(0, 31)], Report::Unexpected);
        bench.submit(3, &[(0, 31)], Report::Always);
        bench.ring.retire(&mut bench.records);
        assert_eq!(bench.drained(), [(3, Outcome::Cancelled, 0)]);
        bench.ring.retire(&mut bench.records);
    });
}

#[test]
fn the_short_way_says_what_the_long_way_says_or_nothing() {
    let transfers: [&[(usize, usize)]; 3] = [&[(0, 512)], &[(0xff00, 0x200)], &[(0, 0)]];
    let reports = [Report::Always, Report::Unexpected];
    for (pieces, report) in transfers
        .into_iter()
        .flat_map(|one| reports.map(|report| (one, report)))
    {
        for (code, residue) in [0, 1, 0x200, 0xff_ffff].into_iter().flat_map(|residue| {
            [
                code::SUCCESS,
                code::SHORT_PACKET,
                code::STALL,
                code::STOPPED,
            ]
            .map(|code| (code, residue))
        }) {
            for block in 0..4 {
                let [short, long] = [true, false].map(|is_short| {
                    with_bench(EndpointKind::Bulk, 3, |bench| {
                        bench.submit(1, &[(0, 31)], Report::Unexpected);
                        bench.submit(2, pieces, report);
                        bench.submit(3, &[(0, 13)], Report::Always);
                        let event = event(bench.ring.ring.bus_of(block).get(), code, residue);
                        let verdict = if is_short {
                            let mut end = TransferEnd::NONE;
                            let records = &mut bench.records;
                            bench.ring.take_end(records, &event, &mut end)?;
                            Verdict::Ended(end)
                        } else {
                            bench.ring.take(&mut bench.records, &event)
                        };
                        Some((verdict, bench.drained()))
                    })
                });
                assert!(short.is_none() || short == long, "{short:?} {long:?}");
            }
        }
    }
}

#[test]
fn a_ring_that_would_cross_64_kib_is_not_opened() {
    let config = EndpointConfig {
        transfers: 255,
        longest: 1 << 20,
        ..config(EndpointKind::Bulk, 1)
    };
    assert_eq!(ring_blocks(&config), None);
}

/// Reads a ring as a controller does that lags behind: one transfer at a time.
struct Controller {
    index: u32,
    cycle: u32,
}

impl Controller {
    /// The last block and the length of the next transfer.
    fn next(&mut self, ring: &ProducerRing) -> Option<(u32, u32)> {
        let mut length = 0;
        loop {
            let block = ring.read(self.index);
            if block.control & 1 != self.cycle {
                assert_eq!(length, 0, "a transfer is handed over whole");
                return None;
            }
            if block.kind() == super::super::trb::kind::LINK {
                assert_eq!(length, 0, "no transfer is torn by a link");
                self.index = 0;
                self.cycle ^= 1;
                continue;
            }
            length += block.status & super::super::trb::LENGTH_MASK;
            self.index += 1;
            if !block.has(super::super::trb::Flags::CHAIN) {
                return Some((self.index - 1, length));
            }
        }
    }
}

#[test]
fn a_controller_that_lags_behind_sees_every_transfer_whole_and_once() {
    for transfers in [1, 2, 5] {
        with_bench(EndpointKind::Bulk, transfers, |bench| {
            let mut controller = Controller { index: 0, cycle: 1 };
            let mut random = 12345_u32;
            let mut submitted = std::collections::VecDeque::new();
            for token in 0..3000 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let offset = (random >> 8) as usize % 0x1_0000;
                let length = (random >> 4) as usize % LONGEST as usize;
                let report = [Report::Always, Report::Unexpected][random as usize >> 31];
                let (one, most) = ([(offset, length)], most_blocks());
                let pieces = [&one[..], &most[..]][(random >> 28 & 1) as usize];
                let length: usize = pieces.iter().map(|(_, length)| length).sum();
                let room = bench.try_submit(token, pieces, report, None);
                match room {
                    Ok(()) => submitted.push_back((token, length as u32, report)),
                    Err(error) => assert_eq!(error, HostError::QueueFull),
                }
                if room.is_ok() && random >> 29 < 4 {
                    continue;
                }
                match (controller.next(&bench.ring.ring), submitted.pop_front()) {
                    (Some((last, seen)), Some((token, length, report))) => {
                        assert_eq!(seen, length);
                        if report == Report::Always {
                            let verdict = bench.event(last, code::SUCCESS, 0);
                            assert_eq!(verdict, ended(token, Outcome::Complete, length));
                        }
                    }
                    (None, None) => bench.ring.retire(&mut bench.records),
                    (seen, sent) => panic!("{seen:?} {sent:?}"),
                }
            }
        });
    }
}
