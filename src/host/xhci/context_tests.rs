use super::super::capability::Parameters;
use super::*;
use crate::dma::testing::with_pool;
use crate::host::{DeviceHandle, RootPort, Translator};

fn config(number: u8, direction: Direction, kind: EndpointKind) -> EndpointConfig {
    EndpointConfig {
        number,
        direction,
        kind,
        max_packet: 512,
        max_burst: 0,
        interval: 0,
        transfers: 1,
        longest: 0,
        streams: 0,
    }
}

const BARE: Attachment = Attachment {
    root_port: RootPort(0),
    route: 0,
    speed: Speed::High,
    max_packet0: 64,
    translator: None,
};

#[test]
fn a_context_index_counts_out_before_in() {
    let index = |number, direction| context_index(&config(number, direction, EndpointKind::Bulk));
    assert_eq!(index(1, Direction::Out), 2);
    assert_eq!(index(1, Direction::In), 3);
    assert_eq!(index(15, Direction::In), 31);
    assert_eq!(index(0, Direction::Out), 1);
    assert_eq!(index(0, Direction::In), 1);
}

#[test]
fn intervals_are_exponents_of_125_us_whatever_a_device_says() {
    let exponent = |speed, said| {
        let config = EndpointConfig {
            interval: said,
            ..config(1, Direction::In, EndpointKind::Interrupt)
        };
        interval(&config, speed)
    };
    // Frames become the next lower power of two.
    for (said, expected) in [
        (0, 3),
        (1, 3),
        (2, 4),
        (3, 4),
        (10, 6),
        (127, 9),
        (128, 10),
        (255, 10),
    ] {
        assert_eq!(exponent(Speed::Full, said), expected, "{said} frames");
        assert_eq!(exponent(Speed::Low, said), expected, "{said} frames");
    }
    for (said, expected) in [(0, 0), (1, 0), (4, 3), (16, 15), (17, 15), (255, 15)] {
        assert_eq!(exponent(Speed::High, said), expected, "2^{said}");
        assert_eq!(exponent(Speed::Super, said), expected, "2^{said}");
    }
    let bulk = EndpointConfig {
        interval: 255,
        ..config(1, Direction::In, EndpointKind::Bulk)
    };
    assert_eq!(interval(&bulk, Speed::High), 0);
}

#[test]
fn a_bulk_endpoint_with_bursts_fills_its_context() {
    let config = EndpointConfig {
        max_packet: 1024,
        max_burst: 15,
        ..config(2, Direction::In, EndpointKind::Bulk)
    };
    let words = endpoint_words(&config, Speed::Super, 0x1_2345_6781);
    assert_eq!(words, [0, 0x0400_0f36, 0x2345_6781, 1, 3072, 0, 0, 0]);
}

#[test]
fn an_interrupt_endpoint_says_what_it_moves_in_an_interval() {
    let config = EndpointConfig {
        max_packet: 64,
        max_burst: 2,
        interval: 4,
        ..config(1, Direction::In, EndpointKind::Interrupt)
    };
    let words = endpoint_words(&config, Speed::Super, 1);
    assert_eq!(words[0], 3 << 16);
    assert_eq!(words[1] >> 3 & 7, 7);
    assert_eq!(words[4], 192 << 16 | 1024);
}

#[test]
fn a_slot_context_names_path_speed_and_last_endpoint() {
    let attachment = Attachment {
        root_port: RootPort(4),
        route: 0x12,
        speed: Speed::Super,
        ..BARE
    };
    let slot = Slot {
        attachment: &attachment,
        hub: None,
        translator_slot: 0,
        entries: 5,
    };
    assert_eq!(
        slot.words(),
        [5 << 27 | 4 << 20 | 0x12, 5 << 16, 0, 0, 0, 0, 0, 0]
    );
}

#[test]
fn a_full_speed_device_names_its_translator() {
    let attachment = Attachment {
        route: 3,
        speed: Speed::Full,
        translator: Some(Translator {
            hub: DeviceHandle {
                index: 0,
                generation: 0,
            },
            hub_address: 9,
            port: 3,
            multi: true,
        }),
        ..BARE
    };
    let slot = Slot {
        attachment: &attachment,
        hub: None,
        translator_slot: 7,
        entries: 1,
    };
    let words = slot.words();
    assert_eq!(words[0], 1 << 27 | 1 << 25 | 1 << 20 | 3);
    assert_eq!(words[2], 3 << 8 | 7, "slot id, not address");
}

#[test]
fn think_time_is_for_high_speed_hubs() {
    let hub = HubInfo {
        ports: 4,
        multi_translator: true,
        think_time: 2,
    };
    let words = |attachment: &Attachment| {
        Slot {
            attachment,
            hub: Some(&hub),
            translator_slot: 0,
            entries: 3,
        }
        .words()
    };
    let high = words(&BARE);
    assert_eq!(high[0] >> 25 & 3, 3, "hub and multi");
    assert_eq!(high[1] >> 24, 4);
    assert_eq!(high[2], 2 << 16);
    let full = words(&Attachment {
        speed: Speed::Full,
        ..BARE
    });
    assert_eq!(full[2], 0);
}

#[test]
fn contexts_are_spaced_as_the_chip_says() {
    for size in [32, 64] {
        with_pool(8, |pool| {
            let parameters = Parameters {
                context: size,
                ..Parameters::for_tests()
            };
            let contexts = Contexts::allocate(pool, Owner::Host, &parameters).unwrap();
            contexts.write_flags(0x9, 0x8);
            contexts.write_slot([0x11; 8]);
            contexts.write_endpoint(3, [0x33; 8]);
            assert_eq!(contexts.input.read32(0), 0x8, "dropped");
            assert_eq!(contexts.input.read32(4), 0x9, "added");
            assert_eq!(contexts.input.read32(size), 0x11);
            assert_eq!(
                contexts.input.read32(4 * size),
                0x33,
                "behind the control and slot ones"
            );
            contexts.output.write32(3 * size, 0xffff_fffa);
            contexts.output.write64(3 * size + 8, 0x1_0000_0041);
            assert_eq!(contexts.endpoint_state(3), state::HALTED);
            assert_eq!(contexts.endpoint_position(3), 0x1_0000_0040);
        });
    }
}

#[test]
fn speeds_and_ids_agree() {
    for speed in [
        Speed::Low,
        Speed::Full,
        Speed::High,
        Speed::Super,
        Speed::SuperPlus,
    ] {
        assert_eq!(speed_of(speed_id(speed)), Some(speed));
    }
    assert_eq!(speed_of(0), None, "legal while a port is not enabled");
    assert_eq!(speed_of(7), Some(Speed::SuperPlus));
}
