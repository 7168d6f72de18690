//! The bus: a transaction on all enabled ports, and whose turn comes when (EHCI 1.0 §4.4).
//!
//! The periodic schedule has the first turn of each microframe, the asynchronous one has the rest.
//! While neither has anything to do, no turn is planned: a store of the driver, or the time at which
//! a device said that it would be ready, plans the next one.

use super::{Ehci, List, timing};
use crate::broken::require;
use crate::controller::Surroundings;
use crate::device::{Nanoseconds, Packet, Reply};

/// The plan for the bus.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// When the next turn is, and which plan it was.
    planned: Option<(Nanoseconds, u64)>,
    /// The microframe that has begun, counted since the start of time.
    microframe: Option<u64>,
    /// When the last transaction ends.
    pub(super) free_at: Nanoseconds,
}

impl Turn {
    pub(super) fn cancel(&mut self) {
        self.planned = None;
        self.microframe = None;
    }
}

impl Ehci {
    /// Plans a turn at `at`, unless an earlier one is planned.
    pub(super) fn plan_turn(&mut self, at: Nanoseconds) {
        if self.turn.planned.is_some_and(|(planned, _)| planned <= at) {
            return;
        }
        let life = self.next_life();
        self.turn.planned = Some((at, life));
        self.agenda.add(at, super::Due::Bus(life));
    }

    /// A planned turn has come.
    pub(super) fn take_turn(&mut self, around: &mut Surroundings<'_>, life: u64) {
        match self.turn.planned {
            Some((_, planned)) if planned == life => self.turn.planned = None,
            _ => return,
        }
        if !self.is_running() {
            return;
        }
        let microframe = around.now / timing::MICROFRAME;
        if self.turn.microframe != Some(microframe) {
            self.turn.microframe = Some(microframe);
            if self.begin_microframe(around).is_none() {
                return;
            }
        }
        if around.now >= self.turn.free_at && self.traverse(around).is_none() {
            return;
        }
        self.plan_next(around);
    }

    /// §4.4, §4.8.5: interrupt transfers, then a start event for the asynchronous schedule. A turn
    /// that begins in the middle was planned for want of work: there was none for the periodic
    /// schedule at its beginning.
    fn begin_microframe(&mut self, around: &mut Surroundings<'_>) -> Option<()> {
        if around.now.is_multiple_of(timing::MICROFRAME) {
            self.turn.free_at = self.turn.free_at.max(around.now);
            self.run_periodic(around)?;
        }
        self.start_event(around);
        Some(())
    }

    fn plan_next(&mut self, around: &mut Surroundings<'_>) {
        if let Some(at) = self.next_traversal(around) {
            self.plan_turn(at.max(self.turn.free_at));
        }
        if let Some(at) = self.next_periodic(around) {
            self.plan_turn(at);
        }
    }

    /// The driver stored something: there may be work.
    pub(super) fn wake(&mut self, around: &mut Surroundings<'_>) {
        if self.operational.is_on(List::Asynchronous) {
            let at = around.now + around.random.below(timing::SLEEP) + 1;
            self.traversal.wake_by(at);
            self.plan_turn(at.max(self.turn.free_at));
        }
        let mut interrupts = self.held.in_list(List::Periodic);
        let work = interrupts.any(|(_, held)| held.has_work());
        drop(interrupts);
        if work {
            self.plan_turn(timing::next_microframe(around.now));
        }
    }

    /// Takes the bus for `cost` from now on.
    pub(super) fn occupy(&mut self, around: &Surroundings<'_>, cost: Nanoseconds) {
        self.turn.free_at = self.turn.free_at.max(around.now) + cost;
    }

    /// One transaction. All enabled ports see it; the device whose address it is answers. With the
    /// answer, when the endpoint will have another one than NAK.
    pub(super) fn transact(
        &mut self,
        around: &mut Surroundings<'_>,
        address: u8,
        endpoint: u8,
        packet: Packet<'_>,
    ) -> (Reply, Option<Nanoseconds>) {
        let mut answer = (Reply::Silent, None);
        for index in 0..self.ports.len() {
            if !self.ports[index].enabled || self.loses_transaction(around, index) {
                continue;
            }
            let port = &mut self.ports[index];
            let Some(device) = &mut port.device else {
                continue;
            };
            let reply = device.transact(around.now, address, endpoint, packet);
            let ready = device.ready_at(endpoint, 0);
            // A device may let go of the bus in the middle of a transaction.
            if device.link(around.now).is_none() {
                self.watch_link(around, index);
            }
            if reply == Reply::Silent {
                continue;
            }
            require!(
                answer.0 == Reply::Silent,
                "USB 2.0 §9.1.1.3",
                "two devices answer at address {address}: only one at a time may be without its own"
            );
            self.ports[index].transactions += 1;
            answer = (reply, ready);
        }
        answer
    }

    /// Faults that a test has planned for the next transaction of a port's device.
    fn loses_transaction(&mut self, around: &mut Surroundings<'_>, index: usize) -> bool {
        let count = self.ports[index].transactions;
        if self
            .faults
            .unplug_at
            .get(&index)
            .is_some_and(|&at| count >= at)
        {
            self.faults.unplug_at.remove(&index);
            drop(self.unplug_device(around, index));
            return true;
        }
        let lost = self.faults.lost_transactions.remove(&(index, count));
        if lost {
            self.ports[index].transactions += 1;
        }
        lost
    }
}
