//! Whatever bytes a device sends as descriptors: the parsers end, stay within the bytes, and yield
//! only values that the speed of the link has.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use rootport::usb::descriptor::{
    BinaryObjectStore, Configuration, Descriptors, Device, DeviceHead, Endpoint, EndpointKind, Hub,
    StorageTransport, StringDescriptor,
};
use rootport::usb::setup::Direction;
use rootport::usb::speed::Speed;

const SPEEDS: [Speed; 5] = [
    Speed::Low,
    Speed::Full,
    Speed::High,
    Speed::Super,
    Speed::SuperPlus,
];

fn any_speed() -> impl Strategy<Value = Speed> {
    select(&SPEEDS[..])
}

/// Bytes of no order at all.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..300)
}

/// Kinds that the parsers look at, with their lengths; the frequent ones more than once.
const KINDS: [(u8, usize); 9] = [
    (4, 9),
    (4, 9),
    (5, 7),
    (5, 7),
    (5, 7),
    (0x30, 6),
    (0x24, 4),
    (2, 9),
    (0x0b, 8),
];

/// One record that is likely to mean something: of a kind that the parsers look at, mostly with
/// its right length, with any bytes in it.
fn record() -> impl Strategy<Value = Vec<u8>> {
    let length_error = prop_oneof![8 => Just(0_i8), 1 => -9..9_i8];
    (select(&KINDS[..]), length_error, vec(any::<u8>(), 12)).prop_map(
        |((kind, length), error, mut bytes)| {
            bytes.truncate(length);
            bytes[0] = (length as u8).wrapping_add_signed(error);
            bytes[1] = kind;
            bytes
        },
    )
}

/// A storage interface with a few bulk endpoints and pipes, as nearly right as devices are.
fn storage_setting() -> impl Strategy<Value = Vec<u8>> {
    let endpoint = (
        0..6_u8,
        any::<bool>(),
        select(&[0_u16, 8, 64, 512, 1024][..]),
        0..6_u8,
    );
    (select(&[0x50_u8, 0x62][..]), 0..6_u8, vec(endpoint, 0..6)).prop_map(
        |(protocol, announced, endpoints)| {
            let mut bytes = vec![9, 4, 0, 0, announced, 8, 6, protocol, 0];
            for (number, is_in, packet, pipe) in endpoints {
                let [low, high] = packet.to_le_bytes();
                bytes.extend([7, 5, number | (u8::from(is_in) << 7), 2, low, high, 0]);
                bytes.extend([4, 0x24, pipe, 0]);
            }
            bytes
        },
    )
}

/// A UAS setting with four pipes in any order, now and then one of the wrong direction.
fn uas_setting() -> impl Strategy<Value = Vec<u8>> {
    let pipes = Just([(1_u8, 0_u8), (2, 0x80), (3, 0x80), (4, 0)]).prop_shuffle();
    let flips = vec(prop_oneof![15 => Just(0_u8), 1 => Just(0x80)], 4);
    (pipes, flips).prop_map(|(pipes, flips)| {
        let mut bytes = vec![9, 4, 0, 1, 4, 8, 6, 0x62, 0];
        for ((pipe, direction), flip) in pipes.into_iter().zip(flips) {
            bytes.extend([7, 5, pipe | (direction ^ flip), 2, 0, 4, 0]);
            bytes.extend([6, 0x30, 15, 4, 0, 0, 4, 0x24, pipe, 0]);
        }
        bytes
    })
}

/// A configuration: a head with any total length, then records.
fn configuration() -> impl Strategy<Value = Vec<u8>> {
    let parts = vec(
        prop_oneof![4 => record(), 1 => storage_setting(), 1 => uas_setting()],
        0..20,
    );
    (any::<u16>(), any::<bool>(), parts).prop_map(|(length, is_right, parts)| {
        let body = parts.concat();
        let right = u16::try_from(9 + body.len()).unwrap();
        let [low, high] = if is_right { right } else { length }.to_le_bytes();
        let mut bytes = vec![9, 2, low, high, 1, 1, 0, 0x80, 50];
        bytes.extend(body);
        bytes
    })
}

fn is_inside(part: &[u8], whole: &[u8]) -> bool {
    let (part, whole) = (part.as_ptr_range(), whole.as_ptr_range());
    whole.start <= part.start && part.end <= whole.end
}

fn largest_bulk_packet(speed: Speed) -> u16 {
    match speed {
        Speed::Low => 8,
        Speed::Full => 64,
        Speed::High => 512,
        Speed::Super | Speed::SuperPlus => 1024,
    }
}

/// What every endpoint must be, whatever the device wrote.
fn check_endpoint(endpoint: &Endpoint, speed: Speed) {
    let packet = endpoint.max_packet_size();
    assert!((1..=1024).contains(&packet));
    assert!((1..=15).contains(&endpoint.address().number()));
    assert!(endpoint.max_burst() <= 15);
    assert!(endpoint.max_streams().count() <= 65_536);
    assert!(endpoint.additional_transactions() <= 2);
    if endpoint.kind() == EndpointKind::Bulk {
        assert!(packet.is_power_of_two() && packet >= 8);
        assert!(packet <= largest_bulk_packet(speed));
    } else {
        assert_eq!(endpoint.max_streams().count(), 0);
    }
    if !speed.is_super() {
        assert_eq!(
            (endpoint.max_burst(), endpoint.max_streams().count()),
            (0, 0)
        );
    }
}

fn check_transport(transport: StorageTransport) {
    let pipes = match transport {
        StorageTransport::BulkOnly(pipes) => vec![
            (pipes.bulk_in, Direction::In),
            (pipes.bulk_out, Direction::Out),
        ],
        StorageTransport::Uas(pipes) => vec![
            (pipes.command, Direction::Out),
            (pipes.status, Direction::In),
            (pipes.data_in, Direction::In),
            (pipes.data_out, Direction::Out),
        ],
        StorageTransport::Unusable(_) => vec![],
    };
    let addresses: HashSet<u8> = pipes
        .iter()
        .map(|(endpoint, _)| endpoint.address().byte())
        .collect();
    assert_eq!(addresses.len(), pipes.len(), "a pipe of two endpoints");
    for (endpoint, direction) in pipes {
        assert_eq!(endpoint.kind(), EndpointKind::Bulk);
        assert_eq!(endpoint.direction(), direction);
    }
}

fn check_configuration(bytes: &[u8], speed: Speed) {
    let Ok(configuration) = Configuration::parse(bytes) else {
        return;
    };
    for descriptor in configuration.descriptors() {
        assert!(is_inside(descriptor.bytes(), bytes));
    }
    for alternate in configuration.alternates() {
        let endpoints: Vec<_> = alternate.endpoints(speed).collect();
        let addresses: HashSet<u8> = endpoints.iter().map(|e| e.address().byte()).collect();
        assert_eq!(addresses.len(), endpoints.len());
        for endpoint in &endpoints {
            check_endpoint(endpoint, speed);
        }
    }
    for storage in configuration.mass_storage(speed) {
        check_transport(storage.transport);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn the_walk_stays_inside_the_bytes_and_ends(bytes in prop_oneof![noise(), configuration()]) {
        let mut total = 0;
        for descriptor in Descriptors::new(&bytes) {
            prop_assert!(is_inside(descriptor.bytes(), &bytes));
            prop_assert!(descriptor.bytes().len() >= 2);
            total += descriptor.bytes().len();
        }
        prop_assert!(total <= bytes.len());
    }

    #[test]
    fn configurations_yield_only_legal_endpoints(
        bytes in configuration(),
        cut in any::<prop::sample::Index>(),
        speed in any_speed(),
    ) {
        check_configuration(&bytes, speed);
        check_configuration(&bytes[..cut.index(bytes.len())], speed);
    }

    #[test]
    fn noise_is_no_configuration_or_a_legal_one(mut bytes in noise(), speed in any_speed()) {
        check_configuration(&bytes, speed);
        if let Some(kind) = bytes.get_mut(1) {
            *kind = 2;
        }
        check_configuration(&bytes, speed);
    }

    #[test]
    fn a_right_bulk_only_setting_is_found_behind_any_records(
        before in vec(record(), 0..8).prop_map(|records| records.concat()),
        numbers in (1..16_u8, 1..16_u8),
    ) {
        // Only records whose lengths add up leave the walk in step.
        let walked: usize = Descriptors::new(&before).map(|d| d.bytes().len()).sum();
        prop_assume!(walked == before.len());
        let (number_in, number_out) = numbers;
        let setting = [
            9, 4, 7, 3, 2, 8, 6, 0x50, 0,
            7, 5, 0x80 | number_in, 2, 0, 2, 0,
            7, 5, number_out, 2, 0, 2, 0,
        ];
        let [low, high] = u16::try_from(9 + before.len() + setting.len()).unwrap().to_le_bytes();
        let head = [9, 2, low, high, 1, 1, 0, 0x80, 50];
        let bytes = [&head[..], &before, &setting].concat();
        let last = Configuration::parse(&bytes).unwrap().mass_storage(Speed::High).last().unwrap();
        prop_assert_eq!((last.interface, last.alternate), (7, 3));
        let StorageTransport::BulkOnly(pipes) = last.transport else {
            return Err(TestCaseError::fail("not Bulk-Only"));
        };
        prop_assert_eq!(pipes.bulk_in.address().number(), number_in);
        prop_assert_eq!(pipes.bulk_out.address().number(), number_out);
    }

    #[test]
    fn device_descriptors_are_read_whole_or_refused(mut bytes in noise(), speed in any_speed()) {
        prop_assert_eq!(Device::parse(&bytes).is_ok(), bytes.len() >= 18 && bytes[1] == 1);
        if let Some(kind) = bytes.get_mut(1) {
            *kind = 1;
        }
        prop_assert_eq!(Device::parse(&bytes).is_ok(), bytes.len() >= 18);
        if let Ok(head) = DeviceHead::parse(&bytes)
            && let Ok(size) = head.control_packet_size(speed)
        {
            prop_assert!([8, 16, 32, 64, 512].contains(&size));
        }
    }

    #[test]
    fn hubs_have_a_bounded_number_of_ports(
        mut bytes in noise(),
        kind in select(&[0x29_u8, 0x2a][..]),
    ) {
        if let Some(slot) = bytes.get_mut(1) {
            *slot = kind;
        }
        if let Ok(hub) = Hub::parse(&bytes) {
            prop_assert!((1..=Hub::MAX_PORTS).contains(&hub.ports()));
            prop_assert!(hub.think_time() <= 3);
        }
    }

    #[test]
    fn strings_are_never_longer_than_their_bytes(mut bytes in noise()) {
        if let Some(slot) = bytes.get_mut(1) {
            *slot = 3;
        }
        if let Ok(text) = StringDescriptor::parse(&bytes) {
            prop_assert!(text.chars().count() * 2 + 2 <= bytes.len());
            prop_assert!(!text.to_string().contains(char::is_control));
        }
    }

    #[test]
    fn what_a_device_encodes_is_what_is_shown(text in "[ -~\u{e0}-\u{ff}\u{4e00}-\u{4eff}\u{1f600}]{0,60}") {
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let length = u8::try_from(units.len() + 2);
        prop_assume!(length.is_ok());
        let bytes = [&[length.unwrap(), 3][..], &units].concat();
        prop_assert_eq!(StringDescriptor::parse(&bytes).unwrap().to_string(), text);
    }

    #[test]
    fn object_stores_end(mut bytes in noise()) {
        if let Some(slot) = bytes.get_mut(1) {
            *slot = 0x0f;
        }
        if let Ok(store) = BinaryObjectStore::parse(&bytes) {
            prop_assert!(store.capabilities().count() * 3 <= bytes.len());
        }
    }
}
