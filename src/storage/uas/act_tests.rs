//! Where data that were taken back go on.

use super::*;
use crate::dma::testing::TestMemory;
use crate::dma::{Class, Owner, Pool, PoolRecord, Rules};

fn segment(pool: &mut Pool<'_>, length: usize) -> Segment {
    let memory = pool
        .allocate(Owner::Host, Class::Ring, length, Rules::aligned(64))
        .unwrap();
    memory.raw(0, length).unwrap().into()
}

#[test]
fn data_that_were_taken_back_go_on_where_they_had_come_to() {
    let mut records = [const { PoolRecord::EMPTY }; 4];
    let region = TestMemory::new(0x10_0000, 0x1000).region();
    let mut pool = Pool::new(region, &mut records);
    let pieces = [64, 512, 64].map(|length| segment(&mut pool, length));
    let cases = [
        (0, vec![(0, 0, 64), (1, 0, 512), (2, 0, 64)]),
        (64, vec![(1, 0, 512), (2, 0, 64)]),
        (100, vec![(1, 36, 476), (2, 0, 64)]),
        (576, vec![(2, 0, 64)]),
        (639, vec![(2, 63, 1)]),
        (640, vec![]),
        (9999, vec![]),
    ];
    for (from, expected) in cases {
        let mut rest = [Segment::EMPTY; 3];
        let count = skip(&pieces, from, &mut rest);
        let found: Vec<_> = rest[..count]
            .iter()
            .map(|piece| (piece.bus().get(), piece.length()))
            .collect();
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(place, offset, length): (usize, u64, u32)| {
                (pieces[place].bus().get() + offset, length)
            })
            .collect();
        assert_eq!(found, expected, "from byte {from}");
    }
}
