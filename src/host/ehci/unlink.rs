//! Endpoints in and out of their schedules, and what becomes of those that leave.
//!
//! Called by what the core asks of devices and endpoints, and by `poll` until the controller has let
//! go. An endpoint that is out of its schedule is still the controller's for a while: until a doorbell
//! is answered (asynchronous) or the frame is over (periodic). Only then its transfers are handed
//! back, its queue head is changed, or its memory is given to the pool.

use super::Ehci;
use super::endpoint::{EndpointRecord, Reason, Stage, Wait};
use super::periodic;
use crate::dma::{self, Pool};
use crate::host::{Event, Sequence};
use crate::mmio::Bus;
use crate::time::Instant;

impl<B: Bus> Ehci<'_, B> {
    /// Puts an endpoint, whose queue head is ready, into its schedule.
    pub(super) fn link(&mut self, index: u8) {
        let Some(endpoint) = self.endpoints.get_mut(usize::from(index)) else {
            return;
        };
        endpoint.stage = Stage::Linked;
        let (periodic, idle) = (endpoint.period != 0, endpoint.is_idle());
        if periodic {
            self.link_periodic(index);
        } else {
            self.link_asynchronous(index);
        }
        if !idle {
            self.active.insert(index);
        }
    }

    /// Puts an endpoint into its schedule empty.
    pub(super) fn link_afresh(&mut self, index: u8, sequence: Sequence) {
        if let Some(endpoint) = self.endpoints.get_mut(usize::from(index)) {
            endpoint.prepare_restart(sequence);
        }
        self.link(index);
    }

    /// Begins to take an endpoint out of its schedule, or gives another reason to one that is on
    /// its way.
    pub(super) fn unlink(&mut self, index: u8, reason: Reason, now: Instant) {
        let Some(endpoint) = self.endpoints.get_mut(usize::from(index)) else {
            return;
        };
        let periodic = endpoint.period != 0;
        match endpoint.stage {
            Stage::Free => return,
            Stage::Opened | Stage::Draining(_) | Stage::Out => {
                endpoint.stage = Stage::Draining(reason);
            }
            Stage::Leaving(_, wait) => endpoint.stage = Stage::Leaving(reason, wait),
            Stage::Linked if periodic => {
                let wait = Wait::Until(now + periodic::UNLINK_TIME);
                endpoint.stage = Stage::Leaving(reason, wait);
                self.unlink_periodic();
            }
            Stage::Linked => {
                endpoint.stage = Stage::Leaving(reason, Wait::NextDoorbell);
                self.unlink_asynchronous(index);
            }
        }
        if reason == Reason::Close {
            self.restarted.remove(index);
        }
        self.active.remove(index);
        self.moving.insert(index);
        self.ring_if_waited_for(now);
        self.attend_now();
    }

    /// Goes on with endpoints that the controller has let go of.
    pub(super) fn tend_moving(&mut self, pool: &mut Pool<'_>, now: Instant) -> Option<Event> {
        let mut at = 0;
        while let Some(index) = self.moving.first_from(at) {
            at = u16::from(index) + 1;
            let endpoint = self.endpoints.get_mut(usize::from(index))?;
            if let Stage::Leaving(reason, Wait::Until(time)) = endpoint.stage
                && now >= time
            {
                endpoint.stage = Stage::Draining(reason);
            }
            let Stage::Draining(reason) = endpoint.stage else {
                continue;
            };
            if reason == Reason::Change {
                self.moving.remove(index);
                self.relink(index);
                continue;
            }
            if let Some(event) = endpoint.drain(&mut self.records, index) {
                dma::acquire();
                return Some(event);
            }
            self.moving.remove(index);
            if reason == Reason::Close {
                self.discard(pool, index);
                continue;
            }
            endpoint.stage = Stage::Out;
            let endpoint = endpoint.handle(index);
            return Some(Event::Endpoint {
                endpoint,
                result: Ok(()),
            });
        }
        None
    }

    /// Puts an endpoint back whose queue head says something else from now on.
    fn relink(&mut self, index: u8) {
        if let Some(endpoint) = self.endpoints.get_mut(usize::from(index)) {
            endpoint.write_identity();
        }
        self.link(index);
        if let Some(endpoint) = self.endpoints.get_mut(usize::from(index)) {
            endpoint.release_held();
        }
    }

    /// Gives back what those endpoints of a device held that were closed before they were ever linked:
    /// one that is opened in their place may need it.
    pub(super) fn discard_unused(&mut self, pool: &mut Pool<'_>, device: u8) {
        self.each_endpoint(device, |this, index| {
            let unused =
                |endpoint: &EndpointRecord| endpoint.closing && endpoint.stage == Stage::Opened;
            if this.endpoint(index).is_some_and(unused) {
                this.discard(pool, index);
            }
        });
    }

    /// Gives back all that a closed, empty endpoint held.
    fn discard(&mut self, pool: &mut Pool<'_>, index: u8) {
        if let Some(endpoint) = self.endpoints.get_mut(usize::from(index)) {
            self.records.release(endpoint.limit);
            if let Some(queue) = endpoint.vacate() {
                pool.free(queue.into_memory());
            }
        }
    }

    /// The earliest time at which an endpoint of the periodic schedule is let go.
    pub(super) fn next_departure(&self) -> Instant {
        let mut earliest = Instant::NEVER;
        let mut at = 0;
        while let Some(index) = self.moving.first_from(at) {
            at = u16::from(index) + 1;
            if let Some(Stage::Leaving(_, Wait::Until(time))) =
                self.endpoint(index).map(|endpoint| endpoint.stage)
            {
                earliest = earliest.min(time);
            }
        }
        earliest
    }
}
