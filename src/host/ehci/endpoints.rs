//! What the core asks of endpoints: open, submit, take back, restart.
//!
//! Called by the core through [`Endpoints`]. `submit` writes memory only; the controller finds the
//! work by itself. `quiesce` is the one way to take transfers back, for running and halted queues
//! alike: a copy of the queue head that the controller may hold is out of reach in both.

use super::Ehci;
use super::endpoint::{EndpointRecord, Reason, Shown, Stage, Taken};
use super::periodic;
use super::queue::{self, Queue};
use super::queue_head::{Identity, Masks};
use super::quirks::Quirks;
use super::schedule::Doorbell;
use super::storage::CALL;
use crate::dma::{self, Class, Owner, Pool, Rules, Segment};
use crate::host::{
    DeviceHandle, EndpointConfig, EndpointHandle, EndpointKind, Endpoints, Event, Handling,
    HostError, Outcome, Report, Sequence, Token, Transfer, TransferEnd,
};
use crate::mmio::Bus;
use crate::time::{Duration, Instant};

/// The longest packet of an endpoint without high bandwidth (`USB 2.0 §5.7.3`).
const LONGEST_PACKET: u16 = 1024;

/// What a look at the endpoints has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// The good end of a transfer with one qTD.
    End,
    /// Something else, on the endpoint whose turn it is.
    Other(u8),
    /// Nothing; the next look begins a new round.
    Nothing,
}

/// After so long without a completion QEMU looks at the schedule less often than once a frame.
/// Policy: two of its frames.
const IDLE_TIME: Duration = Duration::from_millis(2);

impl<B: Bus> Ehci<'_, B> {
    /// The endpoint at `index`.
    #[inline]
    pub(super) fn endpoint(&self, index: u8) -> Option<&EndpointRecord> {
        self.endpoints.get(usize::from(index))
    }

    /// The endpoint behind a handle.
    #[inline]
    pub(super) fn endpoint_mut(
        &mut self,
        handle: EndpointHandle,
    ) -> Result<&mut EndpointRecord, HostError> {
        self.must_run()?;
        self.endpoints
            .get_mut(usize::from(handle.index))
            .filter(|endpoint| {
                endpoint.generation == handle.generation && endpoint.stage != Stage::Free
            })
            .ok_or(HostError::Stale)
    }

    /// Reserves a place, records and memory for an endpoint of an open device.
    pub(super) fn reserve(
        &mut self,
        pool: &mut Pool<'_>,
        device: u8,
        config: &EndpointConfig,
    ) -> Result<EndpointHandle, HostError> {
        let size = check(config)?;
        let identity = self.identity(device, config)?;
        let (index, _) = (0_u8..=u8::MAX)
            .zip(self.endpoints.iter())
            .find(|(_, endpoint)| endpoint.stage == Stage::Free)
            .ok_or(HostError::StorageFull)?;
        let limit = config.transfers.max(1);
        if !self.records.promise(limit) {
            return Err(HostError::StorageFull);
        }
        let queue = self.allocate_queue(pool, device, size).inspect_err(|_| {
            self.records.release(limit);
        })?;
        let slot = (config.kind == EndpointKind::Interrupt)
            .then(|| periodic::choose(identity.speed, config.interval, self.endpoints));
        let endpoint = self
            .endpoints
            .get_mut(usize::from(index))
            .ok_or(HostError::StorageFull)?;
        endpoint.open(device, identity, queue, limit);
        if let Some(slot) = slot {
            endpoint.poll_in(slot);
        }
        Ok(endpoint.handle(index))
    }

    fn identity(&self, device: u8, config: &EndpointConfig) -> Result<Identity, HostError> {
        let device = self
            .devices
            .get(usize::from(device))
            .ok_or(HostError::Stale)?;
        Ok(Identity {
            address: device.address(),
            number: config.number,
            kind: config.kind,
            speed: device.speed(),
            max_packet: config.max_packet,
            split: device.split(),
            masks: Masks::default(),
        })
    }

    fn allocate_queue(
        &self,
        pool: &mut Pool<'_>,
        device: u8,
        size: u16,
    ) -> Result<Queue, HostError> {
        let owner = Owner::Device(self.index, device);
        let rules = Rules::aligned(super::queue_head::LENGTH);
        let memory = pool.allocate(owner, Class::Queue, queue::length(size), rules)?;
        Ok(Queue::new(memory, size, self.capability.wide))
    }

    /// Whether a look at the endpoints with transfers in flight would find an end.
    #[inline(never)]
    pub(super) fn has_ends(&self) -> bool {
        self.active.set().any(|index| {
            let endpoint = self.endpoint(index);
            endpoint.is_some_and(|endpoint| endpoint.read_ended().is_some())
        })
    }

    /// Looks at the endpoints with transfers in flight, one after the other from where the last look ended, for
    /// an end that is to be told, as long as what it finds is the good end of a transfer with one qTD; that goes
    /// to `end`.
    #[inline(never)]
    pub(super) fn look_around(&mut self, end: &mut TransferEnd) -> Found {
        while let Some(index) = self.active.peek() {
            let Some(endpoint) = self.endpoints.get_mut(usize::from(index)) else {
                return Found::Other(index);
            };
            let Some(token) = endpoint.read_ended() else {
                self.active.step();
                continue;
            };
            let taken = endpoint.take_good_end(&mut self.records, token, end);
            if taken == Taken::Otherwise {
                return Found::Other(index);
            }
            if endpoint.is_idle() {
                self.active.remove(index);
            }
            if taken == Taken::Told {
                dma::acquire();
                self.stirred = true;
                self.last_end = index;
                return Found::End;
            }
        }
        self.active.restart();
        self.just_looked.set(true);
        Found::Nothing
    }

    /// Looks at the endpoints with transfers in flight for whatever has ended.
    #[inline(never)]
    pub(super) fn scan(&mut self) -> Option<Event> {
        let mut end = TransferEnd::NONE;
        loop {
            match self.look_around(&mut end) {
                Found::End => {
                    let index = self.last_end;
                    return Some(self.endpoint(index)?.event(index, end));
                }
                Found::Other(index) => {
                    if let Some(event) = self.take_other_end(index) {
                        return Some(event);
                    }
                }
                Found::Nothing => return None,
            }
        }
    }

    /// Takes what has ended on an endpoint, whatever it is. `None`: nothing to tell, and its turn is
    /// over.
    #[cold]
    fn take_other_end(&mut self, index: u8) -> Option<Event> {
        let Some(endpoint) = self.endpoints.get_mut(usize::from(index)) else {
            self.active.remove(index);
            return None;
        };
        let end = endpoint.take_ended(&mut self.records);
        let event = end.map(|end| endpoint.event(index, end));
        if endpoint.is_idle() || endpoint.halted {
            self.active.remove(index);
        } else if end.is_none() {
            self.active.step();
        }
        if let Some(end) = end {
            dma::acquire();
            self.stirred = true;
            if end.outcome == Outcome::TransactionError {
                self.look_now();
            }
        }
        event
    }

    /// Queues one piece of memory. What is not taken as it is goes another way from in here, so that no caller
    /// has to keep anything for that.
    #[inline(never)]
    fn submit_one(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
        how: (Handling, Shown),
    ) -> Result<(), HostError> {
        let place = self.endpoints.get_mut(usize::from(endpoint.index));
        let Some(found) = place.filter(|found| found.is_live(endpoint)) else {
            return self.not_taken(endpoint, token, segment, how);
        };
        let was_idle = found.is_idle();
        if !found.submit_one(&mut self.records, token, &segment, how) {
            return self.not_taken(endpoint, token, segment, how);
        }
        if was_idle {
            self.active.insert(endpoint.index);
        }
        Ok(())
    }

    /// An endpoint has not taken a piece of memory as it is.
    #[cold]
    #[inline(never)]
    fn not_taken(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
        (handling, shown): (Handling, Shown),
    ) -> Result<(), HostError> {
        if shown == Shown::AtOnce {
            return self.submit_otherwise(endpoint, &handling.of(token, &segment));
        }
        match self.endpoint(endpoint.index) {
            Some(found) if found.is_live(endpoint) => Err(HostError::QueueFull),
            _ => Err(HostError::Halted),
        }
    }

    /// Queues any transfer, or says why the endpoint does not take it.
    #[inline(never)]
    fn submit_otherwise(
        &mut self,
        endpoint: EndpointHandle,
        transfer: &Transfer<'_>,
    ) -> Result<(), HostError> {
        self.must_run()?;
        let found = self
            .endpoints
            .get_mut(usize::from(endpoint.index))
            .filter(|found| found.generation == endpoint.generation)
            .ok_or(HostError::Stale)?;
        found.submit(&mut self.records, transfer)?;
        if found.stage == Stage::Linked {
            self.active.insert(endpoint.index);
        }
        Ok(())
    }

    /// QEMU is slow to look at an idle schedule, unless its doorbell is rung.
    #[cold]
    #[inline(never)]
    fn wake_schedule(&mut self) {
        if self.doorbell == Doorbell::Quiet && !self.stirred && self.must_run().is_ok() {
            self.ring(self.now);
            self.signal.raise(CALL);
        }
    }

    /// Reports the ends of restarts.
    pub(super) fn tend_restarted(&mut self) -> Option<Event> {
        let index = self.restarted.first_from(0)?;
        self.restarted.remove(index);
        let endpoint = self.endpoint(index)?.handle(index);
        Some(Event::Endpoint {
            endpoint,
            result: Ok(()),
        })
    }
}

/// Checks a configuration, and returns the length of its queue in qTDs.
fn check(config: &EndpointConfig) -> Result<u16, HostError> {
    let sound = config.number <= 15
        && (1..=LONGEST_PACKET).contains(&config.max_packet)
        && config.streams == 0;
    if !sound {
        return Err(HostError::Unsupported);
    }
    queue::descriptors(config).ok_or(HostError::Unsupported)
}

impl<B: Bus> Endpoints for Ehci<'_, B> {
    fn open_endpoint(
        &mut self,
        pool: &mut Pool<'_>,
        device: DeviceHandle,
        config: &EndpointConfig,
    ) -> Result<EndpointHandle, HostError> {
        if self.device(device)?.is_closing() {
            return Err(HostError::Stale);
        }
        self.discard_unused(pool, device.index);
        self.reserve(pool, device.index, config)
    }

    fn close_endpoint(
        &mut self,
        pool: &mut Pool<'_>,
        endpoint: EndpointHandle,
    ) -> Result<(), HostError> {
        let endpoint = self.endpoint_mut(endpoint)?;
        endpoint.closing = true;
        let device = endpoint.device;
        self.discard_unused(pool, device);
        Ok(())
    }

    #[inline]
    fn submit(
        &mut self,
        endpoint: EndpointHandle,
        transfer: &Transfer<'_>,
    ) -> Result<(), HostError> {
        self.submit_otherwise(endpoint, transfer)
    }

    #[inline]
    fn send_segment(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
        handling: Handling,
    ) -> Result<(), HostError> {
        let queued = self.submit_segment(endpoint, token, segment, handling);
        if queued.is_ok() {
            self.kick(endpoint, handling.stream);
        }
        queued
    }

    #[inline]
    fn submit_segment(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
        handling: Handling,
    ) -> Result<(), HostError> {
        self.submit_one(endpoint, token, segment, (handling, Shown::AtOnce))
    }

    #[inline]
    fn hold_segment(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
    ) -> Result<(), HostError> {
        let handling = Handling::inward(Report::Always);
        self.submit_one(endpoint, token, segment, (handling, Shown::InItsTurn))?;
        dma::release();
        Ok(())
    }

    /// The controller watches memory. Only what is written must get there.
    #[inline]
    fn kick(&mut self, _endpoint: EndpointHandle, _stream: u16) {
        dma::release();
        if self.quirks.contains(Quirks::IDLE_SCHEDULE_BACKS_OFF)
            && self.now.since(self.last_activity) > IDLE_TIME
        {
            self.wake_schedule();
        }
    }

    #[inline(never)]
    fn retire(&mut self, endpoint: EndpointHandle) {
        let place = self.endpoints.get_mut(usize::from(endpoint.index));
        let is_it = |found: &EndpointRecord| found.generation == endpoint.generation;
        if let Some(found) = place.filter(|found| is_it(found) && !found.is_idle()) {
            found.retire(&mut self.records);
            if found.is_idle() {
                self.active.remove(endpoint.index);
            }
        }
    }

    fn quiesce(&mut self, endpoint: EndpointHandle, now: Instant) -> Result<(), HostError> {
        match self.endpoint_mut(endpoint)?.stage {
            Stage::Free | Stage::Opened => Err(HostError::Stale),
            Stage::Leaving(Reason::Quiesce | Reason::Close, _)
            | Stage::Draining(Reason::Quiesce | Reason::Close) => Err(HostError::Busy),
            Stage::Linked
            | Stage::Out
            | Stage::Leaving(Reason::Change, _)
            | Stage::Draining(Reason::Change) => {
                self.unlink(endpoint.index, Reason::Quiesce, now);
                Ok(())
            }
        }
    }

    fn restart(
        &mut self,
        endpoint: EndpointHandle,
        sequence: Sequence,
        _now: Instant,
    ) -> Result<(), HostError> {
        match self.endpoint_mut(endpoint)?.stage {
            Stage::Out => {}
            Stage::Free | Stage::Opened => return Err(HostError::Stale),
            _ => return Err(HostError::Busy),
        }
        self.link_afresh(endpoint.index, sequence);
        self.restarted.insert(endpoint.index);
        self.attend_now();
        Ok(())
    }
}
