use super::super::encode::least_blocks;
use super::super::trb::kind;
use super::*;
use crate::dma::testing::with_pool;

/// Reads a ring as a controller does: up to the first block that is not handed over, through
/// links.
struct Consumer {
    index: u32,
    cycle: u32,
}

impl Consumer {
    fn new(ring: &mut ProducerRing) -> Self {
        let start = ring.start_pointer();
        Self {
            index: ring.index_of(start & !1).unwrap(),
            cycle: (start & 1) as u32,
        }
    }

    /// The parameters of all blocks that are handed over.
    fn take(&mut self, ring: &ProducerRing) -> Vec<u64> {
        let mut taken = Vec::new();
        loop {
            let control = ring.memory.read32(word(self.index, 12));
            if control & 1 != self.cycle {
                return taken;
            }
            let parameter = ring.memory.read64(word(self.index, 0));
            if control >> 10 & 0x3f == kind::LINK {
                assert_eq!(parameter, ring.bus().get(), "links lead to the start");
                assert_eq!(control & 2, 2, "and toggle");
                self.index = 0;
                self.cycle ^= 1;
            } else {
                taken.push(parameter);
                self.index += 1;
            }
            assert!(self.index < ring.size, "ran off the end");
        }
    }
}

fn put(ring: &ProducerRing, first: u32, values: &[u64]) {
    for (offset, value) in values.iter().enumerate() {
        let index = first + offset as u32;
        let trb = Trb::command(kind::NORMAL, 0, *value);
        ring.write(index, &trb);
        ring.hand_over(index, trb.control);
    }
}

fn with_ring<R>(blocks: u32, test: impl FnOnce(&mut ProducerRing) -> R) -> R {
    with_pool(4, |pool| {
        test(&mut ProducerRing::allocate(pool, Owner::Host, blocks, 0).unwrap())
    })
}

#[test]
fn groups_of_every_size_pass_whole_at_every_index() {
    for blocks in [8, 9, 16] {
        for group in 1..=(blocks - 1) / 2 {
            with_ring(blocks, |ring| {
                let mut consumer = Consumer::new(ring);
                for round in 0..u64::from(blocks) * 5 {
                    let values: Vec<_> = (0..u64::from(group)).map(|n| round * 100 + n).collect();
                    let first = ring.take(group);
                    assert!(first + group < blocks, "not over the link");
                    put(ring, first, &values);
                    assert_eq!(consumer.take(ring), values, "{blocks} {group} {round}");
                }
            });
        }
    }
}

#[test]
fn a_lap_that_links_early_leaves_nothing_for_the_next_to_stumble_over() {
    with_ring(16, |ring| {
        let mut consumer = Consumer::new(ring);
        // Each lap ends elsewhere.
        for round in 0..200_u64 {
            let group = [7, 4, 1, 1, 5, 3, 6][round as usize % 7];
            let first = ring.take(group);
            put(ring, first, &vec![round; group as usize]);
            assert_eq!(consumer.take(ring), vec![round; group as usize]);
            assert!(consumer.take(ring).is_empty());
        }
    });
}

/// How many blocks the next `count` take up, with those that are left out before a link.
fn take_up(ring: &mut ProducerRing, count: u32) -> u32 {
    let before = ring.enqueue();
    let first = ring.take(count);
    match first == before {
        true => count,
        false => ring.size - before + count,
    }
}

#[test]
fn what_may_be_in_flight_never_fills_a_ring_of_the_least_size() {
    let mut random = 1_u32;
    for (transfers, most) in [(1, 1), (1, 4), (2, 1), (2, 5), (3, 2), (5, 6)] {
        let blocks = least_blocks(transfers, most as usize) as u32;
        with_ring(blocks, |ring| {
            let mut in_flight = std::collections::VecDeque::new();
            let mut fullest = 0;
            for _ in 0..10_000 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Mostly the longest, and now and then another, so that laps end at every place.
                let count = [most, most, most, (random >> 16) % most + 1][(random >> 30) as usize];
                in_flight.push_back(take_up(ring, count));
                let taken: u32 = in_flight.iter().sum();
                assert!(taken < blocks, "{transfers} of {most}: {in_flight:?}");
                fullest = fullest.max(taken);
                if in_flight.len() == transfers {
                    in_flight.pop_front();
                }
            }
            assert!(
                fullest + 1 + most >= blocks,
                "smaller would do: {fullest} of {blocks}"
            );
        });
    }
}

#[test]
fn a_start_pointer_is_never_a_link() {
    with_ring(8, |ring| {
        for lap in 0..4 {
            let expected = if lap == 0 { 0 } else { ring.enqueue() };
            assert_eq!(ring.enqueue(), expected);
            let first = ring.take(7);
            put(ring, first, &[1; 7]);
            assert_eq!(ring.enqueue(), 7, "the link's place");
            let pointer = ring.start_pointer();
            assert_eq!(pointer & !1, ring.bus().get());
            assert_eq!(
                pointer & 1,
                u64::from(lap % 2 == 1),
                "toggled with each lap"
            );
        }
    });
}

#[test]
fn a_start_pointer_is_not_the_link_of_an_earlier_lap_either() {
    with_ring(8, |ring| {
        // A group of three does not fit behind five, so the link of this lap is there.
        for count in [5, 3, 2] {
            let first = ring.take(count);
            put(ring, first, &vec![1; count as usize]);
        }
        assert_eq!((ring.enqueue(), ring.read(5).kind()), (5, kind::LINK));
        let pointer = ring.start_pointer();
        assert_eq!(ring.index_of(pointer & !1), Some(5));
        assert_eq!(pointer & 1, 0, "the second lap");
        assert_eq!(ring.read(5).control, 1, "nothing, of the lap before");
    });
}

#[test]
fn only_addresses_of_blocks_have_an_index() {
    with_ring(8, |ring| {
        let base = ring.bus().get();
        assert_eq!(ring.index_of(base), Some(0));
        assert_eq!(ring.index_of(base + 0x70), Some(7));
        assert_eq!(ring.index_of(base + 0x80), None);
        assert_eq!(ring.index_of(base + 8), None, "inside a block");
        assert_eq!(ring.index_of(base - 16), None);
        assert_eq!(ring.index_of(0), None);
    });
}

#[test]
fn aligning_leads_to_64_bytes_from_where_it_was_and_from_the_start_pointer() {
    let filler = Trb::command(kind::NO_OP_COMMAND, 0, 99);
    with_ring(16, |ring| {
        let mut old = Consumer::new(ring);
        for number in 0..40 {
            ring.align(&filler);
            let mut new = Consumer::new(ring);
            assert_eq!(ring.enqueue() % 4, 0);
            let first = ring.take(1);
            put(ring, first, &[number]);
            assert_eq!(new.take(ring), [number]);
            assert_eq!(old.take(ring).last(), Some(&number));
        }
    });
}

#[test]
fn a_ring_of_64_kib_lies_between_two_boundaries() {
    with_pool(40, |pool| {
        let ring = ProducerRing::allocate(pool, Owner::Host, MAX_BLOCKS as u32, 0).unwrap();
        assert_eq!(ring.bus().get() % 0x1_0000, 0);
    });
}
