//! What happens in a poll that is not empty.
//!
//! Called by [`controller`](super::controller). First what the driver itself has to report, then the
//! event ring, then deadlines; one event of the core's at a time, and the driver's state is in order
//! before it is returned. Read `xHCI 1.2 §4.9.4` and `§4.11.3`.

use super::Xhci;
use super::controller::Phase;
use super::endpoint::EndpointState;
use super::transfer::{Ended, Verdict, is_stop};
use super::trb::{Flags, Trb, code, kind};
use crate::dma::Pool;
use crate::host::{EndpointHandle, Event, RootPort};
use crate::mmio::Bus;
use crate::time::Instant;

/// Events that say nothing to the core, at most, before a poll lets the core have a look at other
/// things. Policy.
const EVENTS_PER_POLL: usize = 256;

/// What was found in the event ring.
enum Taken {
    Nothing,
    /// An event that says nothing to the core.
    Quietly,
    Event(Event),
}

impl Ended {
    /// The event that reports it.
    #[inline]
    pub(super) fn event(self, endpoint: EndpointHandle) -> Event {
        Event::Transfer {
            endpoint,
            token: self.token,
            outcome: self.outcome,
            actual: self.actual,
        }
    }
}

/// Polling.
impl<B: Bus> Xhci<'_, B> {
    /// The part of a poll that has something to do, out of the way of one that has not.
    #[inline(never)]
    pub(super) fn poll_further(&mut self, pool: &mut Pool<'_>, now: Instant) -> Option<Event> {
        for _ in 0..EVENTS_PER_POLL {
            if self.pending
                && let Some(event) = self.report(pool)
            {
                return Some(event);
            }
            match self.take_event(pool, now) {
                Taken::Event(event) => return Some(event),
                Taken::Quietly => {}
                Taken::Nothing => break,
            }
        }
        if now >= self.wake {
            self.act_on_deadlines(pool, now);
        }
        if self.pending {
            self.report(pool)
        } else {
            None
        }
    }

    /// Takes the next event out of the ring.
    fn take_event(&mut self, pool: &mut Pool<'_>, now: Instant) -> Taken {
        let Some(base) = &mut self.base else {
            return Taken::Nothing;
        };
        let Some(event) = base.events.peek() else {
            return Taken::Nothing;
        };
        if event.kind() == kind::TRANSFER_EVENT {
            return self.on_transfer(&event);
        }
        self.leave_event();
        self.on_other(&event, pool, now)
    }

    /// Takes an event that is not of a transfer.
    #[cold]
    fn on_other(&mut self, event: &Trb, pool: &mut Pool<'_>, now: Instant) -> Taken {
        match event.kind() {
            kind::COMMAND_COMPLETION => self.on_command(event, pool, now),
            kind::PORT_CHANGE => match event.port().checked_sub(1) {
                Some(port) if port < self.parameters.ports => {
                    return Taken::Event(Event::Port(RootPort(port)));
                }
                _ => self.count_unexpected(),
            },
            kind::HOST_CONTROLLER if event.completion_code() == code::EVENT_RING_FULL => {
                let count = &mut self.statistics.event_ring_full;
                *count = count.wrapping_add(1);
            }
            kind::HOST_CONTROLLER => {
                self.read_alive();
            }
            _ => self.count_unexpected(),
        }
        Taken::Quietly
    }

    /// Goes on behind the event that was looked at. A batch that is longer than half the ring is
    /// acknowledged on the way.
    #[inline]
    fn leave_event(&mut self) {
        if let Some(base) = &mut self.base {
            base.events.advance();
            if base.events.is_overdue() {
                base.events.acknowledge(&self.blocks);
            }
        }
    }

    #[inline]
    fn on_transfer(&mut self, event: &Trb) -> Taken {
        let place = self.place_of(event.slot(), event.dci());
        let endpoint = place.and_then(|place| Some((place, self.endpoints.get_mut(place)?)));
        let (verdict, handle) = match endpoint {
            Some((place, endpoint)) if !event.has(Flags::EVENT_DATA) => {
                let verdict = match (&mut endpoint.transfers, &endpoint.streams) {
                    (Some(transfers), _) => transfers.take(&mut self.records, event),
                    (None, Some(set)) => match set.stream_of(event.parameter) {
                        Some(stream) => match set.ring(self.streams, stream) {
                            Some(ring) => ring.take(&mut self.records, event),
                            None => Verdict::Stray,
                        },
                        None => without_ring(event),
                    },
                    (None, None) => Verdict::Stray,
                };
                if let Verdict::Ended(ended) = verdict
                    && !ended.outcome.is_ok()
                    && endpoint.state == EndpointState::Running
                {
                    endpoint.state = EndpointState::Halted;
                }
                (verdict, endpoint.handle(place))
            }
            _ => (
                Verdict::Stray,
                EndpointHandle {
                    index: 0,
                    generation: 0,
                },
            ),
        };
        if let Verdict::Missed(ended) = verdict {
            // The event stays: it belongs to a transfer behind this one.
            let count = &mut self.statistics.missed_events;
            *count = count.wrapping_add(1);
            return Taken::Event(ended.event(handle));
        }
        self.leave_event();
        match verdict {
            Verdict::Ended(ended) => Taken::Event(ended.event(handle)),
            Verdict::Noted | Verdict::Missed(_) => Taken::Quietly,
            Verdict::Stray => {
                self.count_unexpected();
                Taken::Quietly
            }
        }
    }

    /// The place of the endpoint that an event names.
    #[inline]
    fn place_of(&self, slot: u8, dci: u8) -> Option<usize> {
        let tenant = self.devices.get(usize::from(slot.checked_sub(1)?))?.tenant;
        self.devices.get(usize::from(tenant))?.endpoint(dci)
    }

    /// The next thing that is to be reported without an event of the controller's.
    #[cold]
    fn report(&mut self, pool: &mut Pool<'_>) -> Option<Event> {
        if let Some(event) = self.notice.take() {
            return Some(event);
        }
        if let Some(port) = self.ports.changed.pop() {
            return Some(Event::Port(port));
        }
        let device = (0..self.devices.len()).find_map(|index| self.report_device(index, pool));
        let event = device
            .or_else(|| (0..self.endpoints.len()).find_map(|place| self.report_endpoint(place)));
        self.pending = event.is_some();
        event
    }

    #[cold]
    fn act_on_deadlines(&mut self, pool: &mut Pool<'_>, now: Instant) {
        match self.phase {
            Phase::Moving {
                goal,
                step,
                deadline,
            } => self.advance(goal, step, deadline, pool, now),
            Phase::Running => {
                self.expire_commands(pool, now);
                self.detect_again(now);
                self.wake = match self.pending {
                    true => Instant::default(),
                    false => self.command_deadline().min(self.ports.deadline()),
                };
            }
            Phase::Idle | Phase::Dead => self.wake = Instant::NEVER,
        }
    }
}

/// An event of an endpoint with streams that names no ring. Some controllers report each stream that
/// they stop so, with a pointer of zero.
#[cold]
fn without_ring(event: &Trb) -> Verdict {
    if is_stop(event.completion_code()) {
        Verdict::Noted
    } else {
        Verdict::Stray
    }
}
