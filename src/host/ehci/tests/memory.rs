//! What devices and endpoints take, and give back.

use super::*;

#[test]
fn the_address_of_a_closed_device_is_free_again() {
    bench(|bench| {
        for round in 0..200 {
            let device = bench.open();
            let addressing = bench.ehci.address_device(device, bench.now);
            assert_eq!(addressing, Ok(Addressing::Software(round % 127 + 1)));
            bench.ehci.close_device(device, bench.now).unwrap();
            bench.settled(device);
        }
    });
}

#[test]
fn an_endpoint_that_is_closed_gives_its_memory_back() {
    bench(|bench| {
        let (device, bulk_in, bulk_out) = bench.disk();
        let before = bench.pool.held_by(Owner::Device(1, 0));
        bench.ehci.close_endpoint(&mut bench.pool, bulk_in).unwrap();
        bench
            .ehci
            .close_endpoint(&mut bench.pool, bulk_out)
            .unwrap();
        let mut again = bench.endpoint(device, &bulk(1, Direction::In));
        for _ in 0..10 {
            bench.ehci.configure(device, bench.now).unwrap();
            bench.settled(device);
            bench.ehci.close_endpoint(&mut bench.pool, again).unwrap();
            again = bench.endpoint(device, &bulk(1, Direction::In));
        }
        bench.ehci.configure(device, bench.now).unwrap();
        bench.settled(device);
        assert!(bench.pool.held_by(Owner::Device(1, 0)) < before);
        let data = [segment(0x2000, 512)];
        let stale = bench
            .ehci
            .submit(bulk_out, &transfer(1, Direction::Out, &data));
        assert_eq!(stale, Err(HostError::Stale));
        bench.submit(again, &transfer(2, Direction::In, &data));
        bench.walker.walk(&[(1, IN, Answer::All)]);
        let done = ended(again, 2, Outcome::Complete, 512);
        assert_eq!(bench.until_event(), done);
    });
}

#[test]
fn an_endpoint_is_not_reached_before_it_is_configured() {
    bench(|bench| {
        let device = bench.open();
        let bulk_in = bench.endpoint(device, &bulk(1, Direction::In));
        let data = [segment(0x2000, 512)];
        let early = bench
            .ehci
            .submit(bulk_in, &transfer(1, Direction::In, &data));
        assert_eq!(early, Err(HostError::Stale));
    });
}

#[test]
fn full_storage_and_a_full_pool_are_typed_errors_that_leak_nothing() {
    bench(|bench| {
        let devices: Vec<_> = (0..3).map(|_| bench.open()).collect();
        let fourth = bench.ehci.open_device(&mut bench.pool, &HIGH, bench.now);
        assert_eq!(fourth, Err(HostError::StorageFull));
        let used = bench.pool.usage().used;
        let greedy = EndpointConfig {
            longest: 4 << 20,
            ..bulk(1, Direction::In)
        };
        for _ in 0..20 {
            let refused = bench
                .ehci
                .open_endpoint(&mut bench.pool, devices[0], &greedy);
            assert!(matches!(refused, Err(HostError::PoolExhausted)));
        }
        let many = EndpointConfig {
            transfers: 11,
            ..bulk(1, Direction::In)
        };
        let refused = bench.ehci.open_endpoint(&mut bench.pool, devices[0], &many);
        assert_eq!(refused, Err(HostError::StorageFull), "16 records, 6 taken");
        assert_eq!(bench.pool.usage().used, used);
        bench.endpoint(devices[0], &bulk(1, Direction::In));
    });
}
