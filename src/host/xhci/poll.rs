//! What happens in a poll that is not empty.
//!
//! Called by [`controller`](super::controller). First what the driver itself has to report, then the
//! event ring, then deadlines; one event of the core's at a time, and the driver's state is in order
//! before it is returned. Read `xHCI 1.2 §4.9.4` and `§4.11.3`.

use super::Xhci;
use super::controller::Phase;
use super::endpoint::EndpointState;
use super::transfer::{Ended, Verdict};
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
    /// The end of a transfer.
    Transfer(Ended, EndpointHandle),
    /// Something about a root port.
    Port(RootPort),
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
    /// Takes the end of a transfer, if that is the next event and nothing is to be reported before
    /// it: what most polls are for.
    #[inline]
    pub(super) fn take_transfer(&mut self) -> Option<Event> {
        let event = self.base.as_ref()?.events.peek()?;
        if self.pending || event.kind() != kind::TRANSFER_EVENT {
            return None;
        }
        match self.on_transfer(&event) {
            Taken::Transfer(ended, endpoint) => Some(ended.event(endpoint)),
            _ => None,
        }
    }

    /// The part of a poll that has something else to do, out of the way.
    #[cold]
    pub(super) fn poll_further(&mut self, pool: &mut Pool<'_>, now: Instant) -> Option<Event> {
        for _ in 0..EVENTS_PER_POLL {
            if self.pending
                && let Some(event) = self.report(pool)
            {
                return Some(event);
            }
            match self.take_event(pool, now) {
                Taken::Transfer(ended, endpoint) => return Some(ended.event(endpoint)),
                Taken::Port(port) => return Some(Event::Port(port)),
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
                Some(port) if port < self.parameters.ports => return Taken::Port(RootPort(port)),
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
        let Some((place, endpoint)) = endpoint.filter(|_| !event.has(Flags::EVENT_DATA)) else {
            return self.stray();
        };
        let handle = endpoint.handle(place);
        let verdict = match &mut endpoint.transfers {
            Some(transfers) => transfers.take(&mut self.records, event),
            None => Verdict::Stray,
        };
        let Verdict::Ended(ended) = verdict else {
            return self.on_no_end(verdict, handle);
        };
        if !ended.outcome.is_ok() && endpoint.state == EndpointState::Running {
            endpoint.state = EndpointState::Halted;
        }
        self.leave_event();
        Taken::Transfer(ended, handle)
    }

    /// An event of a transfer that does not end it.
    #[cold]
    fn on_no_end(&mut self, verdict: Verdict, handle: EndpointHandle) -> Taken {
        match verdict {
            Verdict::Missed(ended) => {
                // The event stays: it belongs to a transfer behind this one.
                let count = &mut self.statistics.missed_events;
                *count = count.wrapping_add(1);
                Taken::Transfer(ended, handle)
            }
            Verdict::Noted | Verdict::Ended(_) => {
                self.leave_event();
                Taken::Quietly
            }
            Verdict::Stray => self.stray(),
        }
    }

    #[cold]
    fn stray(&mut self) -> Taken {
        self.leave_event();
        self.count_unexpected();
        Taken::Quietly
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
