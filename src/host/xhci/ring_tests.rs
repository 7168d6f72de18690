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

/// Takes blocks while nothing is in flight, and lets them go at once.
fn take(ring: &mut ProducerRing, count: u32) -> u32 {
    let place = ring.reserve(count).unwrap();
    ring.give_back(place.blocks);
    place.first
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
                    let first = take(ring, group);
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
            let first = take(ring, group);
            put(ring, first, &vec![round; group as usize]);
            assert_eq!(consumer.take(ring), vec![round; group as usize]);
            assert!(consumer.take(ring).is_empty());
        }
    });
}

#[test]
fn blocks_that_the_controller_may_still_need_are_not_taken() {
    with_ring(8, |ring| {
        assert_eq!(
            ring.reserve(3),
            Some(Place {
                first: 0,
                blocks: 3
            })
        );
        assert_eq!(
            ring.reserve(3),
            Some(Place {
                first: 3,
                blocks: 3
            })
        );
        assert_eq!(ring.reserve(2), None, "only the link's place is left");
        ring.give_back(3);
        assert_eq!(ring.reserve(3), None, "3 blocks would meet the oldest");
        let behind_a_link = ring.reserve(2);
        assert_eq!(
            behind_a_link,
            Some(Place {
                first: 0,
                blocks: 4
            })
        );
        assert_eq!(ring.reserve(1), None, "one stays free");
        ring.give_back(3);
        assert_eq!(
            ring.reserve(1),
            Some(Place {
                first: 2,
                blocks: 1
            })
        );
    });
}

#[test]
fn a_link_that_was_not_followed_yet_is_not_written_over() {
    with_ring(8, |ring| {
        let mut consumer = Consumer::new(ring);
        let first = take(ring, 5);
        put(ring, first, &[1; 5]);
        assert_eq!(consumer.take(ring), [1; 5]);
        let place = ring.reserve(3).unwrap();
        assert_eq!(
            place,
            Place {
                first: 0,
                blocks: 6
            }
        );
        put(ring, 0, &[2; 3]);
        assert_eq!(ring.reserve(2), None);
        assert_eq!(consumer.take(ring), [2; 3], "by the link at 5");
    });
}

#[test]
fn a_start_pointer_is_never_a_link() {
    with_ring(8, |ring| {
        for lap in 0..4 {
            let expected = if lap == 0 { 0 } else { ring.enqueue() };
            assert_eq!(ring.enqueue(), expected);
            let first = take(ring, 7);
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
            let first = take(ring, count);
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
            let first = take(ring, 1);
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
