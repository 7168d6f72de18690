use super::*;

#[repr(align(4096))]
struct Memory([u8; 16384]);

/// A pool whose bus addresses differ from its CPU addresses by an odd page count.
fn with_pool<R>(lines: usize, test: impl FnOnce(&mut Pool<'_>) -> R) -> R {
    let mut memory = Box::new(Memory([0xa5; 16384]));
    let mut records = vec![PoolRecord::EMPTY; lines];
    let cpu = NonNull::from(&mut memory.0).cast();
    // SAFETY: the box outlives the pool; nothing else touches it meanwhile.
    let region = unsafe { CoherentRegion::new(cpu, BusAddress::new(0x7_0000_f000), 16384) };
    test(&mut Pool::new(region, &mut records))
}

const ANY: Rules = Rules::aligned(64);

#[test]
fn a_piece_is_zeroed_aligned_and_accounted() {
    with_pool(8, |pool| {
        let piece = pool
            .allocate(Owner::Host, Class::Ring, 100, Rules::aligned(1024))
            .unwrap();
        assert_eq!(piece.bus().get() % 1024, 0);
        assert_eq!(piece.read64(0) | piece.read64(96), 0);
        assert_eq!(pool.usage().used, 128);
        assert_eq!(pool.usage().by_class[2], 128);
    });
}

#[test]
fn a_piece_does_not_cross_its_boundary() {
    with_pool(8, |pool| {
        let first = pool.allocate(Owner::Host, Class::Ring, 0x800, ANY).unwrap();
        assert_eq!(first.bus().get(), 0x7_0000_f000);
        let rules = ANY.within(0x1_0000);
        let second = pool
            .allocate(Owner::Host, Class::Ring, 0x1000, rules)
            .unwrap();
        assert_eq!(
            second.bus().get(),
            0x7_0001_0000,
            "moved behind the 64 KiB line"
        );
    });
}

#[test]
fn a_piece_longer_than_its_boundary_is_refused() {
    with_pool(8, |pool| {
        let rules = ANY.within(0x1000);
        assert!(
            pool.allocate(Owner::Host, Class::Ring, 0x1001, rules)
                .is_err()
        );
    });
}

#[test]
fn an_exhausted_pool_tells_what_was_needed_and_what_is_free() {
    with_pool(8, |pool| {
        pool.allocate(Owner::Host, Class::Ring, 16000, ANY).unwrap();
        let error = pool
            .allocate(Owner::Host, Class::Ring, 512, ANY)
            .unwrap_err();
        assert_eq!(error, PoolError::Exhausted);
        let usage = pool.usage();
        assert_eq!(usage.refused, 512);
        assert_eq!(usage.capacity - usage.used, 384);
    });
}

#[test]
fn a_full_ledger_is_a_typed_error() {
    with_pool(1, |pool| {
        pool.allocate(Owner::Host, Class::Ring, 1, ANY).unwrap();
        let error = pool.allocate(Owner::Host, Class::Ring, 1, ANY).unwrap_err();
        assert_eq!(error, PoolError::LedgerFull);
    });
}

#[test]
fn reclaiming_an_owner_leaves_the_others_and_fills_the_gap() {
    with_pool(8, |pool| {
        let device = Owner::Device(0, 3);
        pool.allocate(device, Class::Context, 128, ANY).unwrap();
        let kept = pool
            .allocate(Owner::Controller(0), Class::Ring, 128, ANY)
            .unwrap();
        pool.allocate(device, Class::Ring, 128, ANY).unwrap();
        assert_eq!(pool.held_by(device), 256);
        pool.reclaim(device);
        assert_eq!(pool.held_by(device), 0);
        assert_eq!(pool.usage().used, 128);
        assert_eq!(pool.usage().high_water, 384);
        let again = pool.allocate(device, Class::Context, 128, ANY).unwrap();
        assert!(again.bus() < kept.bus(), "the first gap is used again");
    });
}

#[test]
fn freeing_one_piece_leaves_the_owner_the_rest() {
    with_pool(8, |pool| {
        let first = pool.allocate(Owner::Host, Class::Ring, 128, ANY).unwrap();
        pool.allocate(Owner::Host, Class::Ring, 256, ANY).unwrap();
        pool.free(first);
        assert_eq!(pool.held_by(Owner::Host), 256);
    });
}

#[test]
fn an_access_outside_a_piece_reaches_nothing() {
    with_pool(8, |pool| {
        let piece = pool.allocate(Owner::Host, Class::Ring, 128, ANY).unwrap();
        let neighbour = pool.allocate(Owner::Host, Class::Ring, 128, ANY).unwrap();
        piece.write32(128, 7);
        piece.write_bytes(126, &[1, 2, 3]);
        assert_eq!(piece.read32(128), 0);
        assert_eq!(neighbour.read32(0), 0);
        assert!(piece.raw(120, 9).is_none());
    });
}

#[test]
fn a_block_lies_in_its_piece_or_is_none() {
    with_pool(8, |pool| {
        let piece = pool.allocate(Owner::Host, Class::Queue, 128, ANY).unwrap();
        let block = piece.block::<64>(64).unwrap();
        block.write32::<60>(0x1234_5678);
        block.write_element::<0, 5>(4, 9);
        block.write_element::<0, 5>(5, 7);
        assert_eq!(piece.read32(124), 0x1234_5678);
        assert_eq!(piece.read32(64 + 16), 9);
        assert_eq!(piece.read32(64 + 20), 0, "outside of the array");
        assert_eq!(block.read32::<16>(), 9);
        assert!(piece.block::<64>(68).is_none());
        assert!(piece.block::<64>(2).is_none());
        assert!(piece.block::<64>(usize::MAX - 3).is_none());
        assert!(piece.block::<256>(0).is_none());
    });
}
