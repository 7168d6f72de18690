//! The periodic schedule, and devices behind a translator.

use super::*;

#[test]
fn a_hub_status_endpoint_is_met_in_its_frames_until_it_is_closed() {
    bench(|bench| {
        let hub = bench.open();
        let config = EndpointConfig {
            kind: EndpointKind::Interrupt,
            max_packet: 1,
            interval: 12,
            transfers: 1,
            longest: 1,
            ..bulk(1, Direction::In)
        };
        let status = bench.endpoint(hub, &config);
        bench.ehci.configure(hub, bench.now).unwrap();
        bench.settled(hub);
        let met: Vec<u32> = (0..1024)
            .filter(|frame| !bench.walker.frame(*frame).is_empty())
            .collect();
        assert_eq!(met.len(), 32, "every 32nd frame");
        let change = [segment(0x2000, 1)];
        bench.submit(status, &transfer(1, Direction::In, &change));
        let head = bench.walker.frame(met[0])[0];
        let mut script = [(1, IN, Answer::All)].into();
        bench.walker.queue_head(head, &mut script);
        let done = ended(status, 1, Outcome::Complete, 1);
        assert_eq!(bench.until_event(), done);
        bench.ehci.close_endpoint(&mut bench.pool, status).unwrap();
        let begun = bench.now;
        bench.ehci.configure(hub, bench.now).unwrap();
        bench.settled(hub);
        assert!(bench.now.since(begun) >= Duration::from_millis(2));
        assert!((0..1024).all(|frame| bench.walker.frame(frame).is_empty()));
    });
}

#[test]
fn a_full_speed_device_needs_a_translator() {
    bench(|bench| {
        let direct = Attachment {
            speed: Speed::Full,
            ..HIGH
        };
        let refused = bench.ehci.open_device(&mut bench.pool, &direct, bench.now);
        assert_eq!(refused, Err(HostError::Unsupported));
        let hub = bench.open();
        bench
            .ehci
            .update_hub(
                hub,
                &crate::host::HubInfo {
                    ports: 4,
                    multi_translator: false,
                    think_time: 0,
                },
                bench.now,
            )
            .unwrap();
        bench.settled(hub);
        let behind = Attachment {
            translator: Some(Translator {
                hub,
                hub_address: 9,
                port: 2,
                multi: false,
            }),
            ..direct
        };
        let device = bench.ehci.open_device(&mut bench.pool, &behind, bench.now);
        bench.settled(device.unwrap());
    });
}
