//! Who starts which stream, and when (USB 3.2 §8.12.1.4; xHCI 1.2 §4.12.1).
//!
//! | state | what happens here |
//! |---|---|
//! | Prime Pipe | after the first doorbell the host primes the pipe, and the device says NRDY |
//! | Idle | the device starts a stream by its ERDY; if it starts none, the host tries one itself |
//! | Start Stream | a stream that the host has no buffer for is rejected, NRDY ends the host's try |
//! | Move Data | the TD's packets carry the stream; behind the last TD of the stream: Idle |

use super::commands::code;
use super::endpoints::state;
use super::trb::Trb;
use super::{Xhci, timing};
use crate::controller::Surroundings;
use crate::device::{Nanoseconds, Packet, Reply};

/// What the host makes of a stream that the device wants to start.
enum Start {
    /// It has a buffer.
    Accepted,
    /// It has none.
    Rejected,
    /// There is no such stream, with this completion code.
    Invalid(u8),
}

impl Xhci {
    /// Selects the stream to move data of, and says how long its first packet waits for the start.
    /// `None` if there is none now; then the endpoint is planned for when there may be.
    pub(super) fn choose_stream(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
    ) -> Option<Nanoseconds> {
        let endpoint = self.endpoint(slot, index)?;
        if endpoint.stream() != 0 && self.has_buffer(around, slot, index, None) {
            return Some(0);
        }
        let endpoint = self.endpoint(slot, index)?;
        endpoint.select(0);
        let streams = endpoint.streams.as_ref()?;
        if streams.armed.is_empty() || !streams.primed && !self.prime(around, slot, index) {
            return None;
        }
        self.follow_device(around, slot, index)
    }

    /// Whether a stream whose doorbell rang has a TD; the selected one by default.
    fn has_buffer(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
        stream: Option<u16>,
    ) -> bool {
        let Some(endpoint) = self.endpoint(slot, index) else {
            return false;
        };
        let before = endpoint.stream();
        let stream = stream.unwrap_or(before);
        let armed = |endpoint: &super::endpoints::Endpoint| {
            let streams = endpoint.streams.as_ref();
            streams.is_some_and(|streams| streams.armed.contains(&stream))
        };
        if !armed(endpoint) {
            return false;
        }
        endpoint.select(stream);
        let has = endpoint.td.is_some() || endpoint.ring.front(around.memory).is_some();
        endpoint.select(before);
        has
    }

    /// Tells the device that there are buffers. `false` if it does not know yet, or if the pipe halted.
    fn prime(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u8) -> bool {
        let Some(endpoint) = self.endpoint(slot, index) else {
            return false;
        };
        let address = endpoint.address();
        let reply = self.exchange(around, slot, address, Packet::Prime);
        let Some(endpoint) = self.endpoint(slot, index) else {
            return false;
        };
        if matches!(reply, Reply::Silent | Reply::Corrupt) {
            endpoint.errors += 1;
            if endpoint.errors < endpoint.context.errors_allowed() {
                self.plan(slot, index, around.now + timing::RETRY);
            } else {
                endpoint.errors = 0;
                self.refused(around, slot, index, code::TRANSACTION);
            }
            return false;
        }
        endpoint.errors = 0;
        if let Some(streams) = &mut endpoint.streams {
            streams.primed = true;
        }
        if reply == Reply::Stall {
            self.refused(around, slot, index, code::STALL);
            return false;
        }
        true
    }

    /// The pipe halts as the device is told of buffers: the first TD that waits gets to know.
    fn refused(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u8, error: u8) {
        let armed = self
            .endpoint(slot, index)
            .and_then(|endpoint| endpoint.streams.as_ref())
            .map_or(Vec::new(), |streams| {
                streams.armed.iter().copied().collect()
            });
        for stream in armed {
            if self.has_buffer(around, slot, index, Some(stream)) {
                if let Some(endpoint) = self.endpoint(slot, index) {
                    endpoint.select(stream);
                }
                let td = self.take_td(around, slot, index);
                if let Some(endpoint) = self.endpoint(slot, index) {
                    endpoint.td = td;
                }
                return self.end_badly(around, slot, index, error);
            }
        }
    }

    /// Idle: the first ERDY that finds a buffer starts its stream; else the host tries the one whose
    /// doorbell rang last.
    fn follow_device(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
    ) -> Option<Nanoseconds> {
        let mut later = None;
        for (at, stream) in self.streams_ready(around, slot, index) {
            if at > around.now {
                later = Some(at);
                break;
            }
            match self.start(around, slot, index, stream) {
                Start::Accepted => {
                    self.endpoint(slot, index)?.select(stream);
                    return Some(timing::STREAM_START);
                }
                Start::Rejected => {}
                Start::Invalid(code) => {
                    self.invalid_stream(around, slot, index, code);
                    return None;
                }
            }
        }
        let streams = self.endpoint(slot, index)?.streams.as_mut()?;
        if let Some(wanted) = streams.wanted.take()
            && self.has_buffer(around, slot, index, Some(wanted))
        {
            self.endpoint(slot, index)?.select(wanted);
            return Some(0);
        }
        let endpoint = self.endpoint(slot, index)?;
        endpoint.waiting = true;
        self.plan(slot, index, later.unwrap_or(around.now + timing::PATIENCE));
        None
    }

    pub(super) fn streams_ready(
        &mut self,
        around: &Surroundings<'_>,
        slot: u8,
        index: u8,
    ) -> Vec<(Nanoseconds, u16)> {
        let address = self
            .endpoint(slot, index)
            .map_or(0, |endpoint| endpoint.address());
        let port = self.slots[usize::from(slot)].root_port();
        self.ports[port].streams_ready(around.now, address)
    }

    fn start(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u8, stream: u16) -> Start {
        let streams = self
            .endpoint(slot, index)
            .and_then(|endpoint| endpoint.streams.as_ref());
        let Some(streams) = streams else {
            return Start::Rejected;
        };
        if !streams.has_entry(stream) {
            return Start::Invalid(code::INVALID_STREAM_ID);
        }
        if !streams.knows(stream) && !streams.has_ring(around.memory, stream) {
            return Start::Invalid(code::INVALID_STREAM_TYPE);
        }
        if self.has_buffer(around, slot, index, Some(stream)) {
            Start::Accepted
        } else {
            Start::Rejected
        }
    }

    /// §4.12.2, table 6-90: the device started a stream that does not exist. No TRB is to blame, so
    /// the event names none. That the endpoint halts is how this model reads it.
    fn invalid_stream(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u8, code: u8) {
        self.unschedule(slot, index);
        self.settle_streams(around, slot, index);
        self.set_endpoint_state(around, slot, index, state::HALTED);
        self.post_transfer_event(around, (slot, index), &Trb::NULL, (code, 0));
    }

    /// The controller loses a stream with its TD: nothing is heard of it any more, the others go on.
    pub(super) fn lose_stream(&mut self, around: &Surroundings<'_>, slot: u8, index: u8) {
        if let Some(endpoint) = self.endpoint(slot, index) {
            let lost = endpoint.stream();
            endpoint.select(0);
            if let Some(streams) = &mut endpoint.streams {
                streams.armed.remove(&lost);
            }
        }
        self.plan(slot, index, around.now + 1);
    }

    /// NRDY: the stream waits, and another one may be started.
    pub(super) fn leave_stream(&mut self, around: &Surroundings<'_>, slot: u8, index: u8) {
        if let Some(endpoint) = self.endpoint(slot, index) {
            endpoint.select(0);
        }
        self.plan(slot, index, around.now + timing::RETRY);
    }
}
