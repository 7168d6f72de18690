//! Stream arrays and stream contexts: read, checked, written, and kept from the driver's hands (xHCI
//! 1.2 §4.12.2, §6.2.4). Which stream an endpoint works on is in [`streams`](super::streams).
//!
//! The controller reads a stream's context at the first doorbell of the stream, and owns it from then
//! on. It shows in it where the ring goes on when the endpoint stops or halts.

use super::Xhci;
use super::contexts::EndpointContext;
use super::rings::Position;
use super::streams::{CONTEXT, PRIMARY_RING, Standing, Streams};
use super::trb::Trb;
use crate::broken::{broken, require};
use crate::controller::Surroundings;

impl Xhci {
    /// §4.12.2, §6.2.3: the array of an endpoint that is being added.
    pub(super) fn check_stream_array(
        &self,
        around: &mut Surroundings<'_>,
        index: u32,
        context: EndpointContext,
    ) {
        let entries = context.stream_entries();
        if entries == 0 {
            return;
        }
        let most = match self.traits.stream_array_size {
            0 => 0,
            exponent => 2 << exponent,
        };
        require!(
            entries <= most,
            "xHCI 1.2 §5.3.6",
            "a primary stream array of {entries} entries for endpoint {index}: MaxPSASize allows \
             {most}"
        );
        let length = CONTEXT * u64::from(entries);
        require!(
            around.memory.is_mapped(context.dequeue(), length as usize),
            "xHCI 1.2 §6.2.4",
            "{length} bytes of the stream array at {:#x} are not all memory",
            context.dequeue()
        );
    }

    fn streams(&mut self, slot: u8, index: u8) -> Option<&mut Streams> {
        self.endpoint(slot, index)?.streams.as_mut()
    }

    /// §4.7, §5.6: the stream of a doorbell.
    pub(super) fn check_doorbell_stream(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
        stream: u16,
    ) {
        let Some(streams) = self.streams(slot, index) else {
            require!(
                stream == 0,
                "xHCI 1.2 §5.6",
                "doorbell {slot} names stream {stream} of endpoint {index}, which has no streams"
            );
            return;
        };
        require!(
            streams.has_entry(stream),
            "xHCI 1.2 §5.6",
            "doorbell {slot} names stream {stream} of endpoint {index}, which has streams 1 to {}",
            streams.entries - 1
        );
        self.check_stream_contexts(around, slot, index);
    }

    /// §4.12.2: a stream context that the controller has read is the controller's.
    pub(super) fn check_stream_contexts(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
    ) {
        let Some(streams) = self.streams(slot, index) else {
            return;
        };
        for (stream, kept) in &streams.contexts {
            let words: [u32; 4] = around.memory.read_words(streams.context_at(*stream));
            require!(
                words == *kept,
                "xHCI 1.2 §4.12.2",
                "the driver wrote to the context of stream {stream} of endpoint {index}: \
                 {words:08x?}, was {kept:08x?}"
            );
        }
    }

    /// The doorbell of a stream rang: its ring may be worked on.
    pub(super) fn arm_stream(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
        stream: u16,
    ) {
        let Some(streams) = self.streams(slot, index) else {
            return;
        };
        if !streams.knows(stream) {
            self.load_stream(around, slot, index, stream);
        }
        let Some(endpoint) = self.endpoint(slot, index) else {
            return;
        };
        let (host_starts, idle) = (
            endpoint.context.host_starts_streams(),
            endpoint.td.is_none(),
        );
        if let Some(streams) = &mut endpoint.streams {
            streams.armed.insert(stream);
            if host_starts {
                streams.wanted = Some(stream);
            } else {
                // The device is told that there are more buffers.
                streams.primed = false;
            }
        }
        if idle {
            // It may be waiting for the device: what changed, changed now.
            self.unschedule(slot, index);
        }
    }

    /// Reads the context of a stream whose doorbell rang (§6.2.4.1).
    fn load_stream(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u8, stream: u16) {
        let Some(streams) = self.streams(slot, index) else {
            return;
        };
        let words: [u32; 4] = around.memory.read_words(streams.context_at(stream));
        let pointer = u64::from(words[1]) << 32 | u64::from(words[0] & !0xf);
        require!(
            pointer != 0,
            "xHCI 1.2 §4.12.2",
            "the doorbell of stream {stream} of endpoint {index} was rung, which has no ring"
        );
        require!(
            words[0] >> 1 & 7 == PRIMARY_RING,
            "xHCI 1.2 §6.2.4.1",
            "SCT of stream {stream} of endpoint {index} is {}: a ring in a linear array has 1",
            words[0] >> 1 & 7
        );
        require!(
            words[2..] == [0, 0],
            "xHCI 1.2 §6.2.4.1",
            "reserved words of the context of stream {stream} are not zero: {words:08x?}"
        );
        self.check_ring_start(pointer, 16, "the ring of a stream");
        self.keep_stream(slot, index, stream, words);
        let position = Position {
            address: pointer,
            cycle: words[0] & 1 != 0,
        };
        self.move_stream(slot, index, stream, position);
    }

    fn keep_stream(&mut self, slot: u8, index: u8, stream: u16, words: [u32; 4]) {
        if let Some(streams) = self.streams(slot, index) {
            streams.contexts.insert(stream, words);
        }
    }

    /// The ring of a stream goes on there; the selected stream stays.
    fn move_stream(&mut self, slot: u8, index: u8, stream: u16, to: Position) {
        if let Some(endpoint) = self.endpoint(slot, index) {
            let before = endpoint.stream();
            endpoint.select(stream);
            endpoint.move_to(to.address, to.cycle);
            endpoint.select(before);
        }
    }

    /// §4.6.10: Set TR Dequeue Pointer of a stream.
    pub(super) fn set_stream_dequeue(
        &mut self,
        around: &mut Surroundings<'_>,
        (slot, index): (u8, u8),
        stream: u16,
        to: Position,
    ) {
        self.move_stream(slot, index, stream, to);
        self.show_stream(around, (slot, index), stream, to);
    }

    /// Puts the place where a stream's ring goes on into its context.
    fn show_stream(
        &mut self,
        around: &mut Surroundings<'_>,
        (slot, index): (u8, u8),
        stream: u16,
        at: Position,
    ) {
        let words = [
            at.address as u32 | PRIMARY_RING << 1 | u32::from(at.cycle),
            (at.address >> 32) as u32,
            0,
            0,
        ];
        let Some(streams) = self.streams(slot, index) else {
            return;
        };
        around
            .memory
            .write_words(streams.context_at(stream), &words);
        self.keep_stream(slot, index, stream, words);
    }

    /// §6.4.3.9: the stream and the type of a Set TR Dequeue Pointer command.
    pub(super) fn check_dequeue_stream(&mut self, slot: u8, index: u8, trb: &Trb) -> Option<u16> {
        let (kind, stream) = (trb.words[0] >> 1 & 7, (trb.words[2] >> 16) as u16);
        let Some(streams) = self.streams(slot, index) else {
            require!(
                kind == 0 && stream == 0,
                "xHCI 1.2 §4.6.10",
                "Set TR Dequeue Pointer with stream type {kind} and stream {stream}, for an endpoint \
                 without streams"
            );
            return None;
        };
        if !streams.has_entry(stream) {
            broken!(
                "xHCI 1.2 §4.6.10",
                "Set TR Dequeue Pointer for stream {stream} of endpoint {index}, which has 1 to {}",
                streams.entries - 1
            )
        }
        require!(
            kind == PRIMARY_RING,
            "xHCI 1.2 §4.6.10",
            "Set TR Dequeue Pointer with stream type {kind} for a linear array"
        );
        Some(stream)
    }

    /// The endpoint has stopped or halted: how each stream that the controller knows stands. Their
    /// contexts show it.
    pub(super) fn settle_streams(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
    ) -> Vec<(u16, Standing)> {
        let known = self
            .streams(slot, index)
            .map_or(Vec::new(), |one| one.known());
        let mut standings = Vec::new();
        for stream in known {
            let Some(endpoint) = self.endpoint(slot, index) else {
                break;
            };
            endpoint.select(stream);
            let standing = endpoint.settle(around);
            self.show_stream(around, (slot, index), stream, standing.at);
            standings.push((stream, standing));
        }
        if let Some(endpoint) = self.endpoint(slot, index) {
            endpoint.select(0);
            if let Some(streams) = &mut endpoint.streams {
                streams.disarm();
            }
        }
        standings
    }
}
