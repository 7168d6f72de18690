use super::super::queue::{Queue, descriptors, length};
use super::super::transfer_descriptor::NEXT;
use super::*;
use crate::dma::testing::{TestMemory, segment};
use crate::dma::{Class, Owner, Pool, PoolRecord, Rules, Segment};
use crate::host::{EndpointConfig, EndpointKind, Token as Name};

const BUS: u64 = 0x4000_0000;

/// A queue of `size` qTDs, and its memory as the controller sees it.
fn queue(size: u16) -> (Queue, TestMemory) {
    let memory = TestMemory::new(BUS, 0x4000);
    let mut records = [PoolRecord::EMPTY; 2];
    let mut pool = Pool::new(memory.region(), &mut records);
    let rules = Rules::aligned(128);
    let piece = pool.allocate(Owner::Host, Class::Queue, length(size), rules);
    (Queue::new(piece.unwrap(), size, true), memory)
}

fn transfer(direction: Direction, segments: &[Segment]) -> Transfer<'_> {
    Transfer {
        token: Name(1),
        setup: None,
        direction,
        segments,
        report: Report::Always,
        stream: 0,
    }
}

/// Word `field` of the qTD at `position`.
fn word(memory: &TestMemory, position: u32, field: usize) -> u32 {
    memory.read32(BUS as u32 + 128 + 64 * position + field as u32)
}

#[test]
fn a_transfer_is_invisible_until_its_first_token_is_written() {
    let (mut queue, memory) = queue(4);
    let data = [segment(0x1_2345_6780, 31)];
    let prepared = queue
        .prepare(&transfer(Direction::Out, &data), 512)
        .unwrap();
    assert_eq!(word(&memory, 0, STATUS), 0);
    queue.activate(prepared);
    assert_eq!(word(&memory, 0, STATUS), 0x001f_8c80);
    assert_eq!(word(&memory, 0, PAGES), 0x2345_6780);
    assert_eq!(word(&memory, 0, PAGES_HIGH), 1);
    assert_eq!(word(&memory, 0, ALTERNATE), LINK_END);
    assert_eq!(word(&memory, 1, STATUS), 0, "where the controller stops");
}

#[test]
fn only_the_last_qtd_of_a_reported_transfer_interrupts() {
    let (mut queue, memory) = queue(8);
    let data = [segment(0x8000, 0xa000)];
    let prepared = queue.prepare(&transfer(Direction::In, &data), 512).unwrap();
    assert_eq!(prepared.span.count, 2);
    assert_eq!(prepared.token, 0x5000_0d80);
    assert_eq!(word(&memory, 1, STATUS), 0x5000_8d80);
    let quiet = Transfer {
        report: Report::WithoutInterrupt,
        ..transfer(Direction::In, &data)
    };
    queue.prepare(&quiet, 512).unwrap();
    assert_eq!(word(&memory, 3, STATUS), 0x5000_0d80);
}

#[test]
fn a_short_packet_leads_to_the_next_transfer() {
    let (mut queue, memory) = queue(4);
    let data = [segment(0x8000, 0xa000)];
    queue.prepare(&transfer(Direction::In, &data), 512).unwrap();
    let behind = BUS as u32 + 128 + 64 * 2;
    assert_eq!(word(&memory, 0, ALTERNATE), behind);
    assert_eq!(word(&memory, 1, NEXT), behind);
}

#[test]
fn a_control_read_has_its_stages_toggles_and_a_way_out() {
    let (mut queue, memory) = queue(8);
    let data = [segment(0x8000, 18)];
    let control = Transfer {
        setup: Some(SetupPacket::device_descriptor(18)),
        ..transfer(Direction::In, &data)
    };
    let prepared = queue.prepare(&control, 64).unwrap();
    assert_eq!(prepared.span, Span { first: 0, count: 3 });
    assert_eq!(prepared.token, 0x0008_0e80, "SETUP, 8 bytes, DATA0");
    let setup = BUS as u32 + 128 + SETUP as u32;
    assert_eq!(word(&memory, 0, PAGES), setup);
    assert_eq!(memory.read32(setup), 0x0100_0680);
    assert_eq!(memory.read32(setup + 4), 0x0012_0000);
    assert_eq!(word(&memory, 0, ALTERNATE), LINK_END);
    assert_eq!(word(&memory, 1, STATUS), 0x8012_0d80, "IN, DATA1");
    assert_eq!(word(&memory, 1, NEXT), BUS as u32 + 128 + 64 * 2);
    assert_eq!(word(&memory, 2, STATUS), 0x8000_8c80, "OUT, DATA1");
    assert_eq!(word(&memory, 2, ALTERNATE), LINK_END);
}

#[test]
fn a_request_without_data_ends_with_an_in_status() {
    let (mut queue, memory) = queue(8);
    let control = Transfer {
        setup: Some(SetupPacket::set_address(3)),
        ..transfer(Direction::Out, &[])
    };
    let prepared = queue.prepare(&control, 64).unwrap();
    assert_eq!(prepared.span.count, 2);
    assert_eq!(word(&memory, 1, STATUS), 0x8000_8d80);
}

#[test]
fn control_toggles_go_on_over_qtds() {
    let (mut queue, memory) = queue(8);
    // Unaligned by one packet and a half: 319 whole packets, an odd number.
    let data = [segment(0x8020, 0x6000)];
    let control = Transfer {
        setup: Some(SetupPacket::device_descriptor(0x6000)),
        ..transfer(Direction::In, &data)
    };
    queue.prepare(&control, 64).unwrap();
    assert_eq!(word(&memory, 1, STATUS) >> 16, 0x8000 | (319 * 64));
    assert_eq!(word(&memory, 2, STATUS) >> 31, 0, "320th packet: DATA0");
}

#[test]
fn what_does_not_fit_is_refused_by_name_and_stays_out_of_reach() {
    let (mut queue, memory) = queue(3);
    let data = [segment(0x8000, 0xa000)];
    queue.prepare(&transfer(Direction::In, &data), 512).unwrap();
    assert_eq!(
        queue.prepare(&transfer(Direction::In, &data), 512),
        Err(HostError::QueueFull)
    );
    queue.give_back(2);
    let long = [segment(0x8000, 0x1_0000)];
    assert_eq!(
        queue.prepare(&transfer(Direction::In, &long), 512),
        Err(HostError::TooLong)
    );
    assert_eq!(word(&memory, 2, STATUS), 0);
    let split = [segment(0x8001, 512 * 3 + 1), segment(0x9000, 512)];
    assert_eq!(
        queue.prepare(&transfer(Direction::In, &split), 512),
        Err(HostError::Unsupported)
    );
    assert_eq!(word(&memory, 2, STATUS), 0, "where the controller stops");
}

#[test]
fn a_piece_that_needs_a_sixth_page_takes_a_second_qtd() {
    for (bus, count) in [(0x8000, 1), (0x8001, 2), (0x8fff, 2)] {
        let (mut queue, memory) = queue(4);
        let data = [segment(bus, 0x5000)];
        let prepared = queue.prepare(&transfer(Direction::In, &data), 512).unwrap();
        assert_eq!(prepared.span.count, count);
        let last_page = word(&memory, 0, PAGES + 16);
        assert_eq!(last_page, 0xc000, "{bus:#x}");
    }
}

#[test]
fn the_circle_closes_at_every_position() {
    let (mut queue, memory) = queue(5);
    let data = [segment(0x8000, 0xa000)];
    for round in 0..20_u32 {
        let prepared = queue.prepare(&transfer(Direction::In, &data), 512).unwrap();
        assert_eq!(u32::from(prepared.span.first), round * 2 % 5);
        let behind = BUS as u32 + 128 + 64 * ((round * 2 + 2) % 5);
        assert_eq!(word(&memory, round * 2 % 5, ALTERNATE), behind);
        assert_eq!(word(&memory, (round * 2 + 2) % 5, STATUS), 0);
        queue.give_back(2);
    }
}

#[test]
fn an_endpoint_has_room_for_its_longest_transfers_at_any_alignment() {
    let config = EndpointConfig {
        transfers: 2,
        longest: 120 * 1024,
        ..super::super::device::control_config(64)
    };
    let bulk = EndpointConfig {
        kind: EndpointKind::Bulk,
        max_packet: 512,
        ..config
    };
    let size = descriptors(&bulk).unwrap();
    let (mut queue, _) = queue(size);
    let data = [segment(0x8fff, 120 * 1024)];
    for _ in 0..2 {
        queue.prepare(&transfer(Direction::In, &data), 512).unwrap();
    }
    assert_eq!(
        descriptors(&EndpointConfig {
            longest: u32::MAX,
            transfers: 255,
            ..bulk
        }),
        None
    );
}
