//! The streams of an endpoint, and which one the endpoint works on (xHCI 1.2 §4.12). Their contexts are
//! in [`stream_contexts`](super::stream_contexts), how one is started in
//! [`stream_packets`](super::stream_packets).
//!
//! The controller works on one stream of an endpoint at a time, the *selected* one: its ring and its TD
//! lie in the [`Endpoint`] itself, where everything that is done to a TD finds them. Those of the others
//! are parked. When the endpoint stops or halts, all doorbells are forgotten, as a controller may do; a
//! driver rings again for each stream that is to go on.

use std::collections::{BTreeMap, BTreeSet};

use super::contexts::EndpointContext;
use super::descriptors::Td;
use super::endpoints::Endpoint;
use super::rings::{Position, Ring};
use super::trb::{RingKind, Trb};
use crate::controller::Surroundings;
use crate::memory::Memory;

/// Bytes of a stream context.
pub(super) const CONTEXT: u64 = 16;
/// Stream Context Type of a transfer ring in the primary array (table 6-13).
pub(super) const PRIMARY_RING: u32 = 1;
/// The first of the stream numbers that the bus uses itself: Prime, NoStream (USB 3.2 table 8-33).
const RESERVED_STREAMS: u32 = 0xfffe;

/// What belongs to a stream that is not selected.
#[derive(Debug)]
struct Lane {
    ring: Ring,
    td: Option<Td>,
    resumes_at: u64,
}

/// The streams of an endpoint.
#[derive(Debug)]
pub(super) struct Streams {
    array: u64,
    /// Entries of the array.
    pub(super) entries: u32,
    /// The stream that the endpoint works on, 0 for none.
    pub(super) selected: u16,
    parked: BTreeMap<u16, Lane>,
    /// The contexts that were read, as the controller keeps them in memory.
    pub(super) contexts: BTreeMap<u16, [u32; 4]>,
    /// Streams whose doorbell rang since the endpoint began to run.
    pub(super) armed: BTreeSet<u16>,
    /// The device knows that there are buffers.
    pub(super) primed: bool,
    /// The stream that the host tries to start when the device starts none.
    pub(super) wanted: Option<u16>,
}

impl Streams {
    /// Those that an endpoint context announces.
    pub(super) fn of(context: EndpointContext) -> Option<Self> {
        let entries = context.stream_entries();
        (entries != 0).then(|| Self {
            array: context.dequeue(),
            entries,
            selected: 0,
            parked: BTreeMap::new(),
            contexts: BTreeMap::new(),
            armed: BTreeSet::new(),
            primed: false,
            wanted: None,
        })
    }

    pub(super) fn context_at(&self, stream: u16) -> u64 {
        self.array + CONTEXT * u64::from(stream)
    }

    /// Whether the array has an entry that this stream may use.
    pub(super) fn has_entry(&self, stream: u16) -> bool {
        stream != 0 && u32::from(stream) < self.entries.min(RESERVED_STREAMS)
    }

    /// Whether the controller has read this stream's context.
    pub(super) fn knows(&self, stream: u16) -> bool {
        self.contexts.contains_key(&stream)
    }

    /// Whether the context of a stream, which was not read yet, is that of a ring.
    pub(super) fn has_ring(&self, memory: &mut Memory, stream: u16) -> bool {
        let words: [u32; 4] = memory.read_words(self.context_at(stream));
        words[0] >> 1 & 7 == PRIMARY_RING
    }

    pub(super) fn known(&self) -> Vec<u16> {
        self.contexts.keys().copied().collect()
    }

    /// No doorbell is remembered.
    pub(super) fn disarm(&mut self) {
        self.armed.clear();
        self.wanted = None;
        self.primed = false;
    }
}

impl Endpoint {
    /// The stream that packets carry: the selected one, or 0 without streams.
    pub(super) fn stream(&self) -> u16 {
        self.streams.as_ref().map_or(0, |streams| streams.selected)
    }

    /// Works on this stream from now on, 0 for none.
    pub(super) fn select(&mut self, stream: u16) {
        let Some(streams) = self.streams.as_mut().filter(|one| one.selected != stream) else {
            return;
        };
        let mut lane = streams.parked.remove(&stream).unwrap_or_else(|| Lane {
            ring: Ring::new(RingKind::Data, 0, true),
            td: None,
            resumes_at: 0,
        });
        std::mem::swap(&mut self.ring, &mut lane.ring);
        std::mem::swap(&mut self.td, &mut lane.td);
        std::mem::swap(&mut self.resumes_at, &mut lane.resumes_at);
        if streams.selected != 0 {
            streams.parked.insert(streams.selected, lane);
        }
        streams.selected = stream;
    }

    /// The rings that the controller may look at.
    pub(super) fn rings(&mut self) -> impl Iterator<Item = &mut Ring> {
        let own = match &self.streams {
            Some(streams) if streams.selected == 0 => None,
            _ => Some(&mut self.ring),
        };
        let parked = self
            .streams
            .iter_mut()
            .flat_map(|one| one.parked.values_mut());
        own.into_iter().chain(parked.map(|lane| &mut lane.ring))
    }

    /// Whether any TD is under way.
    pub(super) fn is_moving(&self) -> bool {
        let parked = |streams: &Streams| streams.parked.values().any(|lane| lane.td.is_some());
        self.td.is_some() || self.streams.as_ref().is_some_and(parked)
    }
}

/// How a ring stands as its endpoint stops.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// Where it goes on.
    pub(super) at: Position,
    /// The TRB there, if the driver has handed it over.
    pub(super) trb: Option<Trb>,
    /// What is left of that TRB, if its TD was begun.
    pub(super) left: Option<u32>,
}

impl Endpoint {
    /// Stops work on the ring: the TD under way will be resumed where it is.
    pub(super) fn settle(&mut self, around: &mut Surroundings<'_>) -> Standing {
        let standing = match self.td.take() {
            None => Standing {
                at: self.ring.position(),
                trb: self.ring.front(around.memory),
                left: None,
            },
            Some(td) => {
                let (at, offset) = td.place(td.done);
                let trb = td.trbs[at];
                self.resumes_at = td.done;
                Standing {
                    at: Position {
                        address: trb.address,
                        cycle: trb.cycle(),
                    },
                    trb: Some(trb),
                    left: Some(td.length_of(&trb) - offset as u32),
                }
            }
        };
        self.ring.forget();
        standing
    }
}
