//! The arrays and rings of an endpoint with streams, in memory.

use super::super::capability::Parameters;
use super::*;
use crate::dma::PoolRecord;
use crate::dma::testing::TestMemory;
use crate::host::xhci::TransferRecord;
use crate::host::{EndpointKind, Outcome, Report, Token, Transfer};
use crate::usb::setup::Direction;

const BUS: u64 = 0x10_0000;
const OWNER: Owner = Owner::Controller(0);

fn config(streams: u16, longest: u32) -> EndpointConfig {
    EndpointConfig {
        number: 3,
        direction: Direction::In,
        kind: EndpointKind::Bulk,
        max_packet: 1024,
        max_burst: 15,
        interval: 0,
        transfers: 1,
        longest,
        streams,
    }
}

struct Bench {
    memory: TestMemory,
    pool: Pool<'static>,
    streams: Vec<StreamRecord>,
    records: Records<'static>,
}

impl Bench {
    fn new(streams: usize, transfers: usize) -> Self {
        let memory = TestMemory::new(BUS, 0x1_0000);
        let lines = Vec::leak((0..8).map(|_| PoolRecord::EMPTY).collect());
        let records = Vec::leak((0..transfers).map(|_| TransferRecord::EMPTY).collect());
        Self {
            memory,
            pool: Pool::new(memory.region(), lines),
            streams: (0..streams).map(|_| StreamRecord::EMPTY).collect(),
            records: Records::new(records),
        }
    }

    fn open(&mut self, config: &EndpointConfig) -> Result<StreamSet, HostError> {
        let parameters = Parameters {
            address_mask: u64::from(u32::MAX),
            ..Parameters::for_tests()
        };
        let (streams, records) = (&mut self.streams, &mut self.records);
        StreamSet::open(&mut self.pool, OWNER, config, &parameters, streams, records)
    }

    fn submit(&mut self, set: &StreamSet, stream: u16) {
        let transfer = Transfer {
            token: Token(u32::from(stream)),
            setup: None,
            direction: Direction::In,
            segments: &[],
            report: Report::Always,
            stream,
        };
        let ring = set.ring(&mut self.streams, stream).unwrap();
        ring.submit(&mut self.records, &transfer).unwrap();
    }

    fn drain(&mut self, set: &StreamSet) -> Vec<u32> {
        let mut tokens = Vec::new();
        while let Some(ended) = set.drain(&mut self.streams, &mut self.records, false) {
            assert_eq!(ended.outcome, Outcome::Cancelled);
            tokens.push(ended.token.0);
        }
        tokens
    }
}

#[test]
fn every_stream_has_a_context_that_names_its_own_ring() {
    let mut bench = Bench::new(16, 16);
    let set = bench.open(&config(16, 65_536)).unwrap();
    let (array, exponent) = set.install(&mut bench.streams);
    assert_eq!(
        exponent, 4,
        "32 entries for 16 streams and the one not used"
    );
    assert!(array.is_multiple_of(512));
    assert_eq!(bench.memory.read32(array as u32), 0, "no stream 0");
    for stream in 1..=16_u16 {
        let context = bench.memory.read32(array as u32 + u32::from(stream) * 16);
        assert_eq!(context & 0xf, 0b0011, "primary ring, cycle 1");
        let ring = u64::from(context & !0xf);
        assert_eq!(set.stream_of(ring), Some(stream));
        assert_eq!(set.stream_of(ring + set.ring as u64 - 16), Some(stream));
    }
    assert_eq!(set.stream_of(array), None);
    assert_eq!(set.stream_of(0), None);
    assert_eq!(set.stream_of(array + bench.memory_length() as u64), None);
}

impl Bench {
    fn memory_length(&self) -> usize {
        0x1_0000
    }
}

#[test]
fn streams_that_do_not_exist_have_no_ring() {
    let mut bench = Bench::new(8, 8);
    let set = bench.open(&config(5, 512)).unwrap();
    for stream in [0, 6, 8, u16::MAX] {
        assert!(set.ring(&mut bench.streams, stream).is_none());
    }
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_nothing_behind() {
    let mut bench = Bench::new(4, 4);
    assert!(matches!(
        bench.open(&config(5, 512)),
        Err(HostError::StorageFull)
    ));
    let mut few_records = Bench::new(8, 3);
    assert!(matches!(
        few_records.open(&config(5, 512)),
        Err(HostError::StorageFull)
    ));
    assert!(few_records.open(&config(3, 512)).is_ok());
    let mut small_pool = Bench::new(16, 16);
    assert!(matches!(
        small_pool.open(&config(16, 8 << 20)),
        Err(HostError::PoolExhausted)
    ));
    let set = small_pool.open(&config(16, 512)).unwrap();
    let memory = set.close(&mut small_pool.streams, &mut small_pool.records);
    small_pool.pool.free(memory);
    assert!(small_pool.open(&config(16, 512)).is_ok());
}

#[test]
fn only_named_streams_are_taken_back_and_begin_anew() {
    let mut bench = Bench::new(4, 4);
    let set = bench.open(&config(4, 512)).unwrap();
    set.install(&mut bench.streams);
    for stream in [1, 2, 3] {
        bench.submit(&set, stream);
    }
    set.name(&mut bench.streams, 2);
    set.settle_stop(&mut bench.streams, &mut bench.records);
    assert_eq!(bench.drain(&set), [2]);
    let (stream, pointer) = set.take_named(&mut bench.streams).unwrap();
    assert_eq!(stream, 2);
    assert_eq!(set.stream_of(pointer & !0xf), Some(2));
    assert_eq!(pointer & 0xf, 0b0011);
    assert!(set.take_named(&mut bench.streams).is_none());
    assert!(set.busy(&bench.streams).eq([1, 3]));
}

#[test]
fn where_no_stream_is_named_all_are_taken_back() {
    let mut bench = Bench::new(4, 4);
    let set = bench.open(&config(4, 512)).unwrap();
    set.install(&mut bench.streams);
    for stream in [1, 4] {
        bench.submit(&set, stream);
    }
    assert!(!set.is_idle(&bench.streams));
    set.settle_stop(&mut bench.streams, &mut bench.records);
    assert_eq!(bench.drain(&set), [1, 4]);
    assert!(set.is_idle(&bench.streams));
    let mut restarted = 0;
    while set.take_named(&mut bench.streams).is_some() {
        restarted += 1;
    }
    assert_eq!(restarted, 4);
}
