use super::super::capability::Parameters;
use super::*;
use crate::dma::testing::with_pool;

fn write(ring: &EventRing, block: usize, value: u64, cycle: u32) {
    ring.memory.write64(block * BYTES, value);
    ring.memory.write32(block * BYTES + 12, cycle);
}

fn parameters(event_segments: usize) -> Parameters {
    Parameters {
        event_segments,
        ..Parameters::for_tests()
    }
}

#[test]
fn events_are_taken_lap_after_lap() {
    with_pool(4, |pool| {
        let shape = Shape::for_events(16, &parameters(1));
        let mut ring = EventRing::allocate(pool, Owner::Host, shape, Quirks::empty()).unwrap();
        assert!(!ring.is_ready());
        for number in 0..100_u64 {
            let lap = number as usize / 16;
            write(&ring, number as usize % 16, number, 1 - (lap as u32 & 1));
            assert!(ring.is_ready());
            assert_eq!(ring.peek().unwrap().parameter, number);
            ring.advance();
            assert_eq!(ring.peek(), None, "the next block is of the lap before");
        }
    });
}

#[test]
fn a_ring_is_one_segment_where_the_chip_allows_no_more() {
    assert_eq!(
        Shape::for_events(1000, &parameters(1)),
        Shape {
            segments: 1,
            blocks: 1008
        }
    );
    assert_eq!(
        Shape::for_events(1000, &parameters(8)),
        Shape {
            segments: 4,
            blocks: 256
        }
    );
    let most = Shape::for_events(100_000, &parameters(1));
    assert_eq!(most.bytes()[0], 0x1_0000);
}

#[test]
fn the_table_names_every_segment_and_the_pointer_the_one_it_is_in() {
    with_pool(8, |pool| {
        let shape = Shape::for_events(600, &parameters(8));
        let mut ring = EventRing::allocate(pool, Owner::Host, shape, Quirks::empty()).unwrap();
        let base = ring.memory.bus().get();
        assert_eq!(shape.segments, 3);
        for segment in 0..3 {
            let start = ring.table.read64(segment * 16);
            assert_eq!(start, base + (segment * shape.blocks * 16) as u64);
            assert_eq!(ring.table.read64(segment * 16 + 8), shape.blocks as u64);
        }
        assert_eq!(ring.pointer(), base);
        for _ in 0..shape.blocks {
            ring.advance();
        }
        assert_eq!(ring.pointer(), base + (shape.blocks * 16) as u64 + 1);
    });
}

#[test]
fn half_a_ring_without_acknowledgement_is_overdue() {
    with_pool(4, |pool| {
        let shape = Shape::for_events(16, &parameters(1));
        let mut ring = EventRing::allocate(pool, Owner::Host, shape, Quirks::empty()).unwrap();
        for _ in 0..7 {
            ring.advance();
        }
        assert!(!ring.is_overdue());
        ring.advance();
        assert!(ring.is_overdue());
    });
}
