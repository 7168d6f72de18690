//! The lines of requests that want a command: who joins, who leaves, and whose turn it is.
//!
//! Called by [`schedule`](super::schedule), and by whatever changes what a request wants. Each disk has a
//! [`Line`], oldest first, so that a long queue is not searched for each command. Invariant: between two calls of
//! the stack a request stands in its disk's line if and only if it waits and wants a command.

use super::Host;
use crate::block::line::{Line, NOBODY};
use crate::block::queue::RequestSlot;
use crate::platform::Platform;
use crate::usb::Driver;

#[inline]
fn wants_command(slot: &RequestSlot) -> bool {
    slot.is_waiting() && slot.wants_command()
}

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// The oldest waiting request on a unit of the function that may have a command now.
    #[inline]
    pub(super) fn next_request(&self, function: u8) -> Option<u8> {
        if self.hungry == 0 {
            return None;
        }
        self.oldest_request(function)
    }

    /// The same where somebody waits. Whoever is first in line nearly always may have one.
    #[inline(never)]
    fn oldest_request(&self, function: u8) -> Option<u8> {
        let mut oldest: Option<(u32, u8)> = None;
        for unit in self.units.iter() {
            let is_its = unit.function == function && !unit.line.is_empty();
            // One that is being opened again gets none.
            if is_its && (unit.is_ready() || unit.before.is_none()) {
                let first = self.first_in(unit.line, function);
                oldest = match (oldest, first) {
                    (Some(one), Some(other)) if one.0 >= other.0 => Some(one),
                    (one, other) => other.or(one),
                };
            }
        }
        oldest.map(|(_, index)| index)
    }

    /// The oldest request of a line that is in nobody's way, and its age.
    fn first_in(&self, line: Line, function: u8) -> Option<(u32, u8)> {
        let mut next = line.first();
        while let Some(index) = next {
            let slot = self.requests.get(usize::from(index))?;
            if self.backlog.changes == 0 || !self.takes_several(function) || !self.must_wait(slot) {
                return Some((self.age(slot), index));
            }
            next = (slot.behind != NOBODY).then_some(slot.behind);
        }
        None
    }

    #[inline]
    fn takes_several(&self, function: u8) -> bool {
        let slot = self.functions.get(usize::from(function));
        slot.is_some_and(|slot| slot.function.takes_several())
    }

    /// Sequence numbers wrap: the difference tells the order.
    #[inline]
    fn age(&self, slot: &RequestSlot) -> u32 {
        self.sequence.wrapping_sub(slot.sequence)
    }

    /// Puts a request in line, or takes it out, as it wants a command now or not. To be called after all that may
    /// have changed it.
    #[inline(never)]
    pub(super) fn note_hunger(&mut self, request: u8) {
        let Some(slot) = self.requests.get(usize::from(request)) else {
            return;
        };
        match (wants_command(slot), slot.is_in_line) {
            (true, false) => self.join_line(request),
            (false, true) => self.leave_line(request),
            _ => {}
        }
    }

    /// Puts a request in the line of its disk, behind those that are older.
    fn join_line(&mut self, request: u8) {
        let Some(slot) = self.requests.get_mut(usize::from(request)) else {
            return;
        };
        let Some(unit) = self.units.get_mut(usize::from(slot.disk.index)) else {
            return;
        };
        slot.is_in_line = true;
        self.hungry += 1;
        let newest = self.sequence;
        let age = newest.wrapping_sub(slot.sequence);
        let last = unit.line.last().map(usize::from);
        let last = last.and_then(|last| self.requests.get(last));
        let is_younger = |other: &RequestSlot| newest.wrapping_sub(other.sequence) < age;
        if last.is_some_and(is_younger) {
            unit.line.join_before(self.requests, request, is_younger);
        } else {
            unit.line.join(self.requests, request);
        }
    }

    /// Takes a request out of the line of its disk.
    #[inline]
    pub(super) fn leave_line(&mut self, request: u8) {
        let Some(slot) = self.requests.get_mut(usize::from(request)) else {
            return;
        };
        slot.is_in_line = false;
        let index = usize::from(slot.disk.index);
        self.hungry = self.hungry.saturating_sub(1);
        if let Some(unit) = self.units.get_mut(index) {
            unit.line.leave(self.requests, request);
        }
    }

    /// Whether an older request of the same unit is in a request's way.
    #[inline(never)]
    fn must_wait(&self, slot: &RequestSlot) -> bool {
        let age = self.age(slot);
        self.requests.iter().any(|other| {
            other.is_waiting()
                && other.disk == slot.disk
                && self.age(other) > age
                && other.conflicts(slot)
        })
    }
}
