//! Faults of descriptors that people reported in public, one test for each.

use super::*;
use crate::usb::setup::Direction;
use crate::usb::speed::Speed;

/// Configuration head: 9 bytes, then whatever a test appends.
const fn head(total: u8, interfaces: u8) -> [u8; 9] {
    [9, 2, total, 0, interfaces, 1, 0, 0x80, 50]
}

const fn interface(number: u8, alternate: u8, endpoints: u8, protocol: u8) -> [u8; 9] {
    [9, 4, number, alternate, endpoints, 8, 6, protocol, 0]
}

const fn bulk(address: u8, packet: u16) -> [u8; 7] {
    let [low, high] = packet.to_le_bytes();
    [7, 5, address, 2, low, high, 0]
}

const fn pipe(id: u8) -> [u8; 4] {
    [4, 0x24, id, 0]
}

/// Joins descriptors in a buffer of 255 bytes; the length byte of the head is set to the sum.
struct Bytes {
    buffer: [u8; 255],
    length: usize,
}

impl Bytes {
    fn of(parts: &[&[u8]]) -> Self {
        let mut buffer = [0; 255];
        let mut length = 0;
        for part in parts {
            buffer[length..length + part.len()].copy_from_slice(part);
            length += part.len();
        }
        Self { buffer, length }
    }

    fn with_total_length(mut self) -> Self {
        self.buffer[2] = u8::try_from(self.length).unwrap();
        self
    }

    fn configuration(&self) -> Configuration<'_> {
        Configuration::parse(&self.buffer[..self.length]).unwrap()
    }
}

fn only_storage(bytes: &Bytes, speed: Speed) -> MassStorageAlternate {
    let configuration = bytes.configuration();
    let mut storage = configuration.mass_storage(speed);
    let first = storage.next().unwrap();
    assert_eq!(storage.next(), None);
    first
}

fn is_bulk_only(storage: &MassStorageAlternate) -> bool {
    matches!(storage.transport, StorageTransport::BulkOnly(_))
}

#[test]
fn case_27_total_length_beyond_the_real_data_is_clamped() {
    // 67 announced, 32 real.
    let bytes = Bytes::of(&[
        &head(67, 1),
        &interface(0, 0, 2, 0x50),
        &bulk(0x81, 512),
        &bulk(0x02, 512),
    ]);
    assert_eq!(bytes.configuration().announced_length(), 67);
    assert!(is_bulk_only(&only_storage(&bytes, Speed::High)));
}

#[test]
fn case_27_zeros_behind_the_real_data_end_the_walk() {
    let bytes = Bytes::of(&[
        &head(0, 1),
        &interface(0, 0, 2, 0x50),
        &bulk(0x81, 512),
        &bulk(0x02, 512),
        &[0; 40],
    ])
    .with_total_length();
    assert!(is_bulk_only(&only_storage(&bytes, Speed::High)));
    assert_eq!(bytes.configuration().descriptors().count(), 3);
}

#[test]
fn case_27_bytes_behind_the_total_length_are_not_read() {
    let stray = interface(1, 0, 0, 0x50);
    let bytes = Bytes::of(&[
        &head(32, 1),
        &interface(0, 0, 2, 0x50),
        &bulk(0x81, 512),
        &bulk(0x02, 512),
        &stray,
    ]);
    assert_eq!(bytes.configuration().alternates().count(), 1);
}

#[test]
fn case_27_a_head_without_a_length_does_not_hide_what_follows() {
    for head_length in [0, 1, 2, 8] {
        let mut bytes = Bytes::of(&[
            &head(0, 1),
            &interface(0, 0, 2, 0x50),
            &bulk(0x81, 512),
            &bulk(0x02, 512),
        ])
        .with_total_length();
        bytes.buffer[0] = head_length;
        assert!(is_bulk_only(&only_storage(&bytes, Speed::High)));
    }
}

#[test]
fn case_27_more_endpoints_than_announced_are_ignored() {
    let bytes = Bytes::of(&[
        &head(0, 1),
        &interface(0, 0, 2, 0x50),
        &bulk(0x81, 512),
        &bulk(0x02, 512),
        &bulk(0x83, 512),
        &bulk(0x04, 512),
    ])
    .with_total_length();
    let configuration = bytes.configuration();
    let alternate = configuration.alternates().next().unwrap();
    let addresses = alternate
        .endpoints(Speed::High)
        .map(|endpoint| endpoint.address().byte());
    assert!(addresses.eq([0x81, 0x02]));
}

#[test]
fn case_27_endpoint_zero_and_duplicates_are_passed_over() {
    let bytes = Bytes::of(&[
        &head(0, 1),
        &interface(0, 0, 2, 0x50),
        &bulk(0x80, 512),
        &bulk(0x81, 512),
        &bulk(0xf1, 64),
        &bulk(0x02, 512),
    ])
    .with_total_length();
    let storage = only_storage(&bytes, Speed::High);
    let StorageTransport::BulkOnly(pipes) = storage.transport else {
        panic!("{storage:?}");
    };
    assert_eq!(pipes.bulk_in.max_packet_size(), 512);
    assert_eq!(pipes.bulk_out.address().number(), 2);
}

#[test]
fn case_27_packets_of_1024_at_high_speed_bulk_become_512() {
    let bytes = Bytes::of(&[
        &head(0, 1),
        &interface(0, 0, 2, 0x50),
        &bulk(0x81, 1024),
        &bulk(0x02, 1024),
    ])
    .with_total_length();
    let storage = only_storage(&bytes, Speed::High);
    let StorageTransport::BulkOnly(pipes) = storage.transport else {
        panic!("{storage:?}");
    };
    assert_eq!(pipes.bulk_in.max_packet_size(), 512);
    assert_eq!(pipes.bulk_out.max_packet_size(), 512);
}

#[test]
fn case_27_two_interfaces_where_one_was_announced_are_both_seen() {
    let bytes = Bytes::of(&[
        &head(0, 1),
        &[9, 4, 0, 0, 0, 3, 0, 0, 0],
        &interface(1, 0, 2, 0x50),
        &bulk(0x81, 512),
        &bulk(0x02, 512),
    ])
    .with_total_length();
    assert_eq!(bytes.configuration().announced_interfaces(), 1);
    assert_eq!(only_storage(&bytes, Speed::High).interface, 1);
}

#[test]
fn case_27_unknown_and_cut_descriptors_are_passed_over() {
    let bytes = Bytes::of(&[
        &head(0, 1),
        &[8, 0x0b, 0, 1, 8, 6, 0x50, 0],
        &interface(0, 0, 2, 0x50),
        &[3, 0xff, 0xff],
        &bulk(0x81, 512),
        &[4, 5, 0x83, 2],
        &bulk(0x02, 512),
    ])
    .with_total_length();
    assert!(is_bulk_only(&only_storage(&bytes, Speed::High)));
}

#[test]
fn case_27_a_cut_interface_does_not_lend_its_endpoints_to_the_one_before() {
    let bytes = Bytes::of(&[
        &head(0, 2),
        &interface(0, 0, 2, 0x50),
        &bulk(0x81, 512),
        &[4, 4, 1, 0],
        &bulk(0x02, 512),
    ])
    .with_total_length();
    assert_eq!(
        only_storage(&bytes, Speed::High).transport,
        StorageTransport::Unusable(Unusable::NoBulkEndpoint(Direction::Out))
    );
}

#[test]
fn case_27_the_configuration_value_is_a_label() {
    let bytes = [9, 2, 9, 0, 0, 0xc8, 0, 0x80, 50];
    assert_eq!(Configuration::parse(&bytes).unwrap().value(), 0xc8);
}

#[test]
fn case_27_super_speed_companions_do_not_confuse_the_endpoints() {
    let companion = [6, 0x30, 7, 4, 0, 0];
    let bytes = Bytes::of(&[
        &head(0, 1),
        &interface(0, 0, 2, 0x50),
        &bulk(0x81, 1024),
        &companion,
        &bulk(0x02, 1024),
        &companion,
    ])
    .with_total_length();
    let storage = only_storage(&bytes, Speed::Super);
    let StorageTransport::BulkOnly(pipes) = storage.transport else {
        panic!("{storage:?}");
    };
    assert_eq!(pipes.bulk_in.max_burst(), 7);
    assert_eq!(pipes.bulk_out.max_streams().count(), 16);
}

#[test]
fn case_29_eight_bytes_are_enough_to_learn_the_packet_size() {
    for (byte, speed, size) in [
        (8, Speed::Full, 8),
        (16, Speed::Full, 16),
        (32, Speed::Full, 32),
        (64, Speed::Full, 64),
        (64, Speed::High, 64),
        (8, Speed::High, 8),
        (8, Speed::Low, 8),
        (9, Speed::Super, 512),
    ] {
        let head = DeviceHead::parse(&[18, 1, 0, 2, 0, 0, 0, byte]).unwrap();
        assert_eq!(
            head.control_packet_size(speed),
            Ok(size),
            "{byte} {speed:?}"
        );
    }
}

#[test]
fn case_29_an_answer_longer_than_asked_is_read_all_the_same() {
    let mut answer = [0; 64];
    answer[..8].copy_from_slice(&[18, 1, 0x10, 0x02, 0, 0, 0, 64]);
    for length in [8, 18, 64] {
        let head = DeviceHead::parse(&answer[..length]).unwrap();
        assert_eq!(head.control_packet_size(Speed::High), Ok(64));
    }
}

#[test]
fn case_29_seven_bytes_or_a_senseless_packet_size_are_typed_faults() {
    assert_eq!(
        DeviceHead::parse(&[18, 1, 0, 2, 0, 0, 0]),
        Err(DescriptorFault::TooShort { have: 7, need: 8 })
    );
    for byte in [0, 7, 9, 128, 255] {
        let head = DeviceHead::parse(&[18, 1, 0, 2, 0, 0, 0, byte]).unwrap();
        assert_eq!(
            head.control_packet_size(Speed::Full),
            Err(DescriptorFault::ControlPacketSize(byte))
        );
    }
}

/// The endpoints of a UAS setting in an order of no meaning.
fn uas_setting(alternate: u8) -> Bytes {
    Bytes::of(&[
        &interface(0, alternate, 4, 0x62),
        &bulk(0x02, 512),
        &pipe(4),
        &bulk(0x83, 512),
        &pipe(2),
        &bulk(0x84, 512),
        &pipe(0xe0),
        &pipe(3),
        &bulk(0x01, 512),
        &pipe(1),
    ])
}

fn bulk_only_setting(alternate: u8) -> Bytes {
    Bytes::of(&[
        &interface(0, alternate, 2, 0x50),
        &bulk(0x81, 512),
        &bulk(0x02, 512),
    ])
}

fn is_uas(storage: &MassStorageAlternate) -> bool {
    match storage.transport {
        StorageTransport::Uas(pipes) => {
            let numbers = [pipes.command, pipes.status, pipes.data_in, pipes.data_out]
                .map(|endpoint| endpoint.address().byte());
            numbers == [0x01, 0x83, 0x84, 0x02]
        }
        _ => false,
    }
}

#[test]
fn case_26_settings_are_known_by_protocol_in_any_order() {
    for (first, second) in [
        (bulk_only_setting(0), uas_setting(1)),
        (uas_setting(0), bulk_only_setting(1)),
    ] {
        let bytes = Bytes::of(&[
            &head(0, 1),
            &first.buffer[..first.length],
            &second.buffer[..second.length],
        ])
        .with_total_length();
        let configuration = bytes.configuration();
        assert_eq!(
            configuration
                .mass_storage(Speed::High)
                .filter(is_uas)
                .count(),
            1
        );
        assert_eq!(
            configuration
                .mass_storage(Speed::High)
                .filter(is_bulk_only)
                .count(),
            1
        );
        let numbers = configuration
            .mass_storage(Speed::High)
            .map(|setting| setting.alternate);
        assert!(numbers.eq([0, 1]));
    }
}

#[test]
fn case_26_a_missing_pipe_descriptor_makes_the_setting_unusable_and_says_which() {
    let bytes = Bytes::of(&[
        &head(0, 1),
        &interface(0, 0, 4, 0x62),
        &bulk(0x01, 512),
        &pipe(1),
        &bulk(0x82, 512),
        &bulk(0x83, 512),
        &pipe(3),
        &bulk(0x04, 512),
        &pipe(4),
    ])
    .with_total_length();
    assert_eq!(
        only_storage(&bytes, Speed::High).transport,
        StorageTransport::Unusable(Unusable::NoPipe(PipeUsage::Status))
    );
}

#[test]
fn case_26_a_pipe_of_the_wrong_direction_makes_the_setting_unusable() {
    let bytes = Bytes::of(&[
        &head(0, 1),
        &interface(0, 0, 1, 0x62),
        &bulk(0x81, 512),
        &pipe(1),
    ])
    .with_total_length();
    assert_eq!(
        only_storage(&bytes, Speed::High).transport,
        StorageTransport::Unusable(Unusable::PipeDirection(PipeUsage::Command))
    );
}

#[test]
fn other_transports_are_listed_with_their_protocol() {
    let bytes = Bytes::of(&[&head(0, 1), &interface(0, 0, 0, 0x01)]).with_total_length();
    assert_eq!(
        only_storage(&bytes, Speed::Full).transport,
        StorageTransport::Unusable(Unusable::Protocol(0x01))
    );
}

#[test]
fn max_power_has_the_unit_of_the_speed() {
    let bytes = [9, 2, 9, 0, 0, 1, 0, 0xc0, 36];
    let configuration = Configuration::parse(&bytes).unwrap();
    assert!(configuration.is_self_powered());
    assert_eq!(configuration.raw_max_power(), 36);
    assert_eq!(configuration.max_power_milliamperes(Speed::High), 72);
    assert_eq!(configuration.max_power_milliamperes(Speed::Super), 288);
}
