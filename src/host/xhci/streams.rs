//! Streams: several rings behind one endpoint, each with a transfer of its own in flight.
//!
//! An endpoint with streams has no ring of its own but a *primary stream array* in shared memory, with
//! a context for each stream that says where its ring is, and the rings behind it in the same piece.
//! What the driver knows of each ring lies in a [`StreamRecord`] of the caller's storage.
//!
//! Stopping the endpoint stops all its streams. Those that were named before
//! ([`Endpoints::name_stream`](crate::host::Endpoints::name_stream)) are emptied and start anew; the others
//! are left as they are, since the controller alone knows how far it has come in them, and go on when
//! their doorbells ring. Without the feature `uas` the module beside this one, `no_streams`, stands in its place.
//! Read `xHCI 1.2 §4.12` and `§6.2.4`.

use super::capability::Parameters;
use super::encode::ring_blocks;
use super::records::Records;
use super::ring::ProducerRing;
use super::transfer::{TransferRing, Verdict, is_stop};
use super::trb::{BYTES, Trb};
use crate::dma::{Allocation, Class, Owner, Pool, Rules, release};
use crate::host::{EndpointConfig, HostError, TransferEnd};

/// Bytes of a stream context (`xHCI 1.2 table 6-12`).
const CONTEXT: usize = 16;

/// Stream context type: the dequeue pointer is that of a ring in the primary array
/// (`xHCI 1.2 table 6-13`), in the pointer's bits 3 to 1.
pub(super) const PRIMARY_RING: u64 = 1 << 1;

/// A stream of an endpoint. The caller of the driver provides a slice of them: for each UAS disk three
/// times the tags that it may use.
#[derive(Debug)]
pub struct StreamRecord {
    /// Belongs to an endpoint.
    reserved: bool,
    ring: Option<TransferRing>,
    /// Its transfers are to be taken back when the endpoint was stopped.
    named: bool,
}

impl StreamRecord {
    /// An unused record.
    pub const EMPTY: Self = Self {
        reserved: false,
        ring: None,
        named: false,
    };
}

/// The streams of one endpoint: a part of the slice, and the array with the rings.
#[derive(Debug)]
pub(super) struct StreamSet {
    memory: Allocation,
    base: usize,
    count: u16,
    /// Bytes of the array, and of each ring behind it.
    array: usize,
    ring: usize,
}

/// The most streams of an endpoint: an array's entries, less the one that is not used. Policy: 255,
/// since nobody has so many commands in flight.
pub(super) fn most_streams(parameters: &Parameters) -> u16 {
    match parameters.stream_array {
        0 => 0,
        exponent => ((1_u32 << (u32::from(exponent) + 1)) - 1).min(255) as u16,
    }
}

/// Entries of an array for `streams` streams: a power of two, with the one that is not used.
fn entries(streams: u16) -> usize {
    (usize::from(streams) + 1).next_power_of_two().max(4)
}

impl StreamSet {
    /// Takes memory, records and rings for an endpoint's streams, or nothing.
    pub(super) fn open(
        pool: &mut Pool<'_>,
        owner: Owner,
        config: &EndpointConfig,
        parameters: &Parameters,
        streams: &mut [StreamRecord],
        records: &mut Records<'_>,
    ) -> Result<Self, HostError> {
        let count = usize::from(config.streams);
        let base = streams
            .windows(count.max(1))
            .position(|part| part.iter().all(|stream| !stream.reserved))
            .ok_or(HostError::StorageFull)?;
        let blocks = ring_blocks(config).ok_or(HostError::Resources)?;
        let ring = blocks as usize * BYTES;
        let array = (entries(config.streams) * CONTEXT).next_multiple_of(128);
        // Neither the array nor a ring crosses a boundary of 64 KiB, nor the array one of a page.
        let rules = Rules::aligned(array.next_power_of_two()).within(0x1_0000);
        let memory = pool.allocate(owner, Class::Ring, array + count * ring, rules)?;
        let mut set = Self {
            memory,
            base,
            count: 0,
            array,
            ring,
        };
        if !set
            .memory
            .bus()
            .reachable(set.memory.length(), parameters.address_mask)
        {
            pool.free(set.memory);
            return Err(HostError::Unsupported);
        }
        for stream in streams.iter_mut().skip(base).take(count) {
            let opened = set.open_ring(blocks, config, parameters, records);
            let Some(ring) = opened else {
                let memory = set.close(streams, records);
                pool.free(memory);
                return Err(HostError::StorageFull);
            };
            *stream = StreamRecord {
                reserved: true,
                ring: Some(ring),
                named: false,
            };
            set.count += 1;
        }
        Ok(set)
    }

    fn open_ring(
        &self,
        blocks: u32,
        config: &EndpointConfig,
        parameters: &Parameters,
        records: &mut Records<'_>,
    ) -> Option<TransferRing> {
        let offset = self.array + usize::from(self.count) * self.ring;
        let memory = self.memory.part(offset, self.ring)?;
        let chain = records.reserve(usize::from(config.transfers))?;
        let ring = ProducerRing::in_memory(memory, blocks);
        Some(TransferRing::new(ring, chain, config, parameters))
    }

    /// Gives records and rings back. Returns the memory, to be freed.
    pub(super) fn close(
        self,
        streams: &mut [StreamRecord],
        records: &mut Records<'_>,
    ) -> Allocation {
        for stream in self.part_mut(streams) {
            if let Some(mut ring) = stream.ring.take() {
                ring.clear(records);
                let (_, chain) = ring.into_parts();
                records.unreserve(chain);
            }
            *stream = StreamRecord::EMPTY;
        }
        self.memory
    }

    fn part_mut<'a>(
        &self,
        streams: &'a mut [StreamRecord],
    ) -> impl Iterator<Item = &'a mut StreamRecord> {
        streams
            .iter_mut()
            .skip(self.base)
            .take(usize::from(self.count))
    }

    fn part<'a>(&self, streams: &'a [StreamRecord]) -> impl Iterator<Item = &'a StreamRecord> {
        streams.iter().skip(self.base).take(usize::from(self.count))
    }

    /// The ring of a stream.
    #[inline(always)]
    pub(super) fn ring<'a>(
        &self,
        streams: &'a mut [StreamRecord],
        stream: u16,
    ) -> Option<&'a mut TransferRing> {
        self.record(streams, stream)?.ring.as_mut()
    }

    #[inline(always)]
    fn record<'a>(
        &self,
        streams: &'a mut [StreamRecord],
        stream: u16,
    ) -> Option<&'a mut StreamRecord> {
        if stream == 0 || stream > self.count {
            return None;
        }
        streams.get_mut(self.base + usize::from(stream) - 1)
    }

    /// The stream in whose ring an address lies.
    #[inline(always)]
    pub(super) fn stream_of(&self, pointer: u64) -> Option<u16> {
        let first = self.memory.bus().get() + self.array as u64;
        let offset = pointer.checked_sub(first)?;
        let number = offset.checked_div(self.ring as u64)?;
        (number < u64::from(self.count)).then_some(number as u16 + 1)
    }

    /// The ring in which an address lies.
    #[inline(always)]
    pub(super) fn ring_at<'a>(
        &self,
        streams: &'a mut [StreamRecord],
        pointer: u64,
    ) -> Option<&'a mut TransferRing> {
        self.ring(streams, self.stream_of(pointer)?)
    }

    /// Takes an event of the endpoint, which names a block in one of the rings.
    pub(super) fn take(
        &self,
        streams: &mut [StreamRecord],
        records: &mut Records<'_>,
        event: &Trb,
    ) -> Verdict {
        match self.ring_at(streams, event.parameter) {
            Some(ring) => ring.take(records, event),
            // Some controllers report each stream that they stop so, with a pointer of zero.
            None if is_stop(event.completion_code()) => Verdict::Noted,
            None => Verdict::Stray,
        }
    }

    /// Writes the array for a controller that begins with it, and returns its address with the
    /// exponent of its size, as an endpoint context has it (`xHCI 1.2 table 6-9`).
    pub(super) fn install(&self, streams: &mut [StreamRecord]) -> (u64, u32) {
        for (number, stream) in (1..).zip(self.part_mut(streams)) {
            if let Some(ring) = &mut stream.ring {
                let pointer = ring.start_pointer() | PRIMARY_RING;
                self.memory.write64(number * CONTEXT, pointer);
                self.memory.write64(number * CONTEXT + 8, 0);
            }
        }
        release();
        let exponent = entries(self.count).ilog2() - 1;
        (self.memory.bus().get(), exponent)
    }

    /// Whether nothing is in flight.
    pub(super) fn is_idle(&self, streams: &[StreamRecord]) -> bool {
        let idle = |stream: &StreamRecord| stream.ring.as_ref().is_none_or(TransferRing::is_idle);
        self.part(streams).all(idle)
    }

    pub(super) fn name(&self, streams: &mut [StreamRecord], stream: u16) {
        if let Some(record) = self.record(streams, stream) {
            record.named = true;
        }
    }

    /// The endpoint is about to be stopped.
    pub(super) fn forget_stop(&self, streams: &mut [StreamRecord], records: &mut Records<'_>) {
        for stream in self.part_mut(streams) {
            if let Some(ring) = &mut stream.ring {
                ring.forget_progress(records);
            }
        }
    }

    /// The endpoint has stopped: finds out how far the named streams had come. If none was named, all
    /// are taken back.
    pub(super) fn settle_stop(&self, streams: &mut [StreamRecord], records: &mut Records<'_>) {
        let none = !self.part(streams).any(|stream| stream.named);
        for (number, stream) in (1..).zip(self.part_mut(streams)) {
            stream.named |= none;
            if let (true, Some(ring)) = (stream.named, &mut stream.ring) {
                let position = self.memory.read64(number * CONTEXT) & !0xf;
                ring.settle_stop(records, position);
            }
        }
    }

    /// Takes the oldest transfer of a named stream back; of any, if the whole device is closed.
    pub(super) fn drain(
        &self,
        streams: &mut [StreamRecord],
        records: &mut Records<'_>,
        all: bool,
    ) -> Option<TransferEnd> {
        self.part_mut(streams)
            .filter(|stream| stream.named || all)
            .find_map(|stream| stream.ring.as_mut()?.drain(records))
    }

    /// The next named stream, and where its ring begins anew.
    pub(super) fn take_named(&self, streams: &mut [StreamRecord]) -> Option<(u16, u64)> {
        let (number, stream) = (1..)
            .zip(self.part_mut(streams))
            .find(|(_, stream)| stream.named)?;
        stream.named = false;
        let ring = stream.ring.as_mut()?;
        Some((number, ring.start_pointer() | PRIMARY_RING))
    }

    /// The streams that have something in flight.
    pub(super) fn busy<'a>(&self, streams: &'a [StreamRecord]) -> impl Iterator<Item = u16> + 'a {
        let part = streams.iter().skip(self.base).take(usize::from(self.count));
        (1..).zip(part).filter_map(|(number, stream)| {
            let ring = stream.ring.as_ref()?;
            (!ring.is_idle()).then_some(number)
        })
    }
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
