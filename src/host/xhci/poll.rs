//! What happens in a poll that is not empty.
//!
//! Called by [`controller`](super::controller). First what the driver itself has to report, then the
//! event ring, then deadlines; one event of the core's at a time, and the driver's state is in order
//! before it is returned. Read `xHCI 1.2 §4.9.4` and `§4.11.3`.

use super::Xhci;
use super::base::Base;
use super::controller::Phase;
use super::device::DeviceRecord;
use super::endpoint::EndpointState;
use super::regs::Blocks;
use super::transfer::Verdict;
use super::trb::{Flags, Trb, code, kind};
use crate::dma::{Pool, release};
use crate::host::{EndpointHandle, Event, Outcome, RootPort, TransferEnd};
use crate::mmio::Bus;
use crate::time::Instant;

/// Events that say nothing to the core, at most, before a poll lets the core have a look at other
/// things. Policy.
const EVENTS_PER_POLL: usize = 256;

impl TransferEnd {
    /// The event that reports it.
    pub(super) fn event(self, endpoint: EndpointHandle) -> Event {
        Event::Transfer {
            endpoint,
            token: self.token,
            outcome: self.outcome,
            actual: self.actual,
        }
    }
}

/// Where the endpoints lie that have had events lately: guesses, of which only those count that are true.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recent([u8; 4]);

impl Recent {
    pub(super) const NONE: Self = Self([0; 4]);

    #[inline(always)]
    fn index(dci: u8) -> usize {
        usize::from(dci >> 1 & 3)
    }

    #[inline(always)]
    fn place(&self, dci: u8) -> usize {
        self.0.get(Self::index(dci)).copied().map_or(0, usize::from)
    }

    fn remember(&mut self, dci: u8, place: usize) {
        if let Some(entry) = self.0.get_mut(Self::index(dci)) {
            *entry = place as u8;
        }
    }
}

/// What became of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Taken {
    /// It was the end of a transfer.
    End,
    /// It was taken, and says nothing to the core.
    Silently,
    /// It was not taken, or there is none.
    Nothing,
}

/// Polling.
impl<B: Bus> Xhci<'_, B> {
    /// Takes the next event if it is the good end of a transfer that is not a control transfer, which is what
    /// most polls are for.
    #[inline]
    pub(super) fn take_good_end(&mut self, end: &mut TransferEnd) -> bool {
        loop {
            match self.take_one(end) {
                Taken::End => return true,
                Taken::Silently => {}
                Taken::Nothing => return false,
            }
        }
    }

    /// Takes one event. What is not the usual way comes last and ends with a call, so that the usual way
    /// needs no frame.
    #[inline(never)]
    fn take_one(&mut self, end: &mut TransferEnd) -> Taken {
        let (Some(base), false) = (&mut self.base, self.pending) else {
            return Taken::Nothing;
        };
        let Some(event) = base.events.peek() else {
            return Taken::Nothing;
        };
        if event.kind() != kind::TRANSFER_EVENT || event.has(Flags::EVENT_DATA) {
            return Taken::Nothing;
        }
        let (slot, dci) = (event.slot(), event.dci());
        let place = self.recent.place(dci);
        let endpoint = self.endpoints.get_mut(place);
        let Some(endpoint) = endpoint.filter(|endpoint| endpoint.is_known_as(slot, dci)) else {
            return self.look_for(slot, dci, end);
        };
        let Some(ring) = endpoint.ring_of(self.streams, &event) else {
            return Taken::Nothing;
        };
        let Some(at) = ring.take_end(&mut self.records, &event, end) else {
            return self.take_behind_quiet_ones(place, end);
        };
        base.events.advance();
        if ring.let_go(at) {
            release();
            self.blocks.ring(slot, dci, 0);
            // Whoever queued a transfer behind this one waits for that.
            return match end.outcome {
                Outcome::Complete => Taken::Silently,
                _ => Taken::End,
            };
        }
        if base.events.is_overdue() {
            return self.tell_overdue();
        }
        Taken::End
    }

    /// The guess where an endpoint lies was wrong: finds out, and takes the event if it is right then.
    #[inline(never)]
    fn look_for(&mut self, slot: u8, dci: u8, end: &mut TransferEnd) -> Taken {
        let place = place_of(self.devices, slot, dci).unwrap_or(usize::MAX);
        match self.endpoints.get(place) {
            Some(endpoint) if endpoint.is_known_as(slot, dci) => {
                self.recent.remember(dci, place);
                self.take_one(end)
            }
            _ => Taken::Nothing,
        }
    }

    /// Takes an event of an endpoint at `place` if quiet transfers were before the one that it ends.
    #[inline(never)]
    fn take_behind_quiet_ones(&mut self, place: usize, end: &mut TransferEnd) -> Taken {
        match self.drop_quiet_ones(place) {
            Some(true) => self.take_one(end),
            _ => Taken::Nothing,
        }
    }

    fn drop_quiet_ones(&mut self, place: usize) -> Option<bool> {
        let event = self.base.as_ref()?.events.peek()?;
        let ring = self
            .endpoints
            .get_mut(place)?
            .ring_of(self.streams, &event)?;
        Some(ring.take_quiet_ones(&mut self.records, &event))
    }

    /// Tells the controller how far a long batch was taken.
    #[cold]
    #[inline(never)]
    fn tell_overdue(&mut self) -> Taken {
        if let Some(base) = &mut self.base {
            base.acknowledge_overdue(&self.blocks);
        }
        Taken::End
    }

    /// Takes the next thing from the event ring, whatever it is.
    #[inline(never)]
    pub(super) fn take_next(&mut self, pool: &mut Pool<'_>, now: Instant) -> Option<Event> {
        // What the driver itself has to report comes before the next event.
        for _ in 0..EVENTS_PER_POLL {
            if self.pending
                && let Some(event) = self.report(pool)
            {
                return Some(event);
            }
            let Some(event) = self.base.as_ref().and_then(|base| base.events.peek()) else {
                break;
            };
            if event.kind() == kind::TRANSFER_EVENT {
                if let Some((ended, endpoint)) = self.on_transfer(&event) {
                    return Some(ended.event(endpoint));
                }
            } else if let Some(port) = self.on_other(&event, pool, now) {
                return Some(Event::Port(port));
            }
        }
        if now < self.wake {
            return None;
        }
        self.act_on_deadlines(pool, now)
    }

    /// Takes an event that is not of a transfer.
    #[cold]
    #[inline(never)]
    fn on_other(&mut self, event: &Trb, pool: &mut Pool<'_>, now: Instant) -> Option<RootPort> {
        self.leave_event();
        match event.kind() {
            kind::COMMAND_COMPLETION => self.on_command(event, pool, now),
            kind::PORT_CHANGE => match event.port().checked_sub(1) {
                Some(port) if port < self.parameters.ports => return Some(RootPort(port)),
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
        None
    }

    /// Goes on behind the event that was looked at.
    fn leave_event(&mut self) {
        if let Some(base) = &mut self.base {
            base.leave_event(&self.blocks);
        }
    }

    /// Takes an event of a transfer. `None`: it says nothing to the core.
    #[inline(never)]
    fn on_transfer(&mut self, event: &Trb) -> Option<(TransferEnd, EndpointHandle)> {
        let place = place_of(self.devices, event.slot(), event.dci());
        let endpoint = place.and_then(|place| Some((place, self.endpoints.get_mut(place)?)));
        let Some((place, endpoint)) = endpoint.filter(|_| !event.has(Flags::EVENT_DATA)) else {
            return self.on_no_end(Verdict::Stray, None);
        };
        let handle = endpoint.handle(place);
        let verdict = match (&mut endpoint.transfers, &endpoint.streams) {
            (Some(transfers), _) => transfers.take(&mut self.records, event),
            (None, Some(set)) => set.take(self.streams, &mut self.records, event),
            (None, None) => Verdict::Stray,
        };
        let Verdict::Ended(ended) = verdict else {
            return self.on_no_end(verdict, Some(handle));
        };
        if !ended.outcome.is_ok() && endpoint.state == EndpointState::Running {
            endpoint.state = EndpointState::Halted;
        }
        if ended.outcome.is_ok()
            && let Some(transfers) = &mut endpoint.transfers
            && transfers.let_go_next()
        {
            release();
            self.blocks.ring(endpoint.slot, endpoint.dci, 0);
        }
        self.leave_event();
        Some((ended, handle))
    }

    /// An event of a transfer that does not end it.
    #[cold]
    #[inline(never)]
    fn on_no_end(
        &mut self,
        verdict: Verdict,
        endpoint: Option<EndpointHandle>,
    ) -> Option<(TransferEnd, EndpointHandle)> {
        match verdict {
            Verdict::Missed(ended) => {
                // The event stays: it belongs to a transfer behind this one.
                let count = &mut self.statistics.missed_events;
                *count = count.wrapping_add(1);
                return endpoint.map(|endpoint| (ended, endpoint));
            }
            Verdict::Noted | Verdict::Ended(_) => {}
            Verdict::Stray => self.count_unexpected(),
        }
        self.leave_event();
        None
    }

    /// The next thing that is to be reported without an event of the controller's.
    #[cold]
    #[inline(never)]
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

    /// Does what time asks for, and reports the first thing that came of it.
    #[cold]
    #[inline(never)]
    fn act_on_deadlines(&mut self, pool: &mut Pool<'_>, now: Instant) -> Option<Event> {
        match self.phase {
            Phase::Moving {
                goal,
                step,
                deadline,
            } => self.advance(goal, step, deadline, pool, now),
            Phase::Running => {
                self.expire_commands(pool, now);
                self.detect_again(now);
                self.keep_watch(now);
                self.wake = match self.pending {
                    true => Instant::default(),
                    false => {
                        let deadline = self.command_deadline().min(self.ports.deadline());
                        deadline.min(self.watch.next)
                    }
                };
            }
            Phase::Idle | Phase::Dead => self.wake = Instant::NEVER,
        }
        if self.pending {
            self.report(pool)
        } else {
            None
        }
    }
}

/// The place of the endpoint that an event names.
#[inline]
fn place_of(devices: &[DeviceRecord], slot: u8, dci: u8) -> Option<usize> {
    let tenant = devices.get(usize::from(slot.checked_sub(1)?))?.tenant;
    devices.get(usize::from(tenant))?.endpoint(dci)
}

impl Base {
    /// Goes on behind the event that was looked at.
    fn leave_event<B: Bus>(&mut self, blocks: &Blocks<B>) {
        self.events.advance();
        self.acknowledge_overdue(blocks);
    }

    /// A batch that is longer than half the ring is acknowledged on the way.
    fn acknowledge_overdue<B: Bus>(&mut self, blocks: &Blocks<B>) {
        if self.events.is_overdue() {
            self.events.acknowledge(blocks);
        }
    }
}
