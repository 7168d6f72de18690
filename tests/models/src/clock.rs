//! Virtual time: a queue of what will happen, in the order in which it will.
//!
//! Each controller model keeps an [`Agenda`] of its own; the machine asks all of them for the
//! earliest moment and moves the time there. Nothing in the models looks at the time of the PC.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::device::Nanoseconds;

/// Things to do at points of virtual time. Those of the same moment come in the order in which
/// they were added.
#[derive(Debug)]
pub struct Agenda<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    added: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Nanoseconds,
    order: u64,
    what: T,
}

impl<T> Entry<T> {
    fn key(&self) -> (Nanoseconds, u64) {
        (self.at, self.order)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            added: 0,
        }
    }
}

impl<T> Agenda<T> {
    /// Adds `what`, to be done at `at`.
    pub fn add(&mut self, at: Nanoseconds, what: T) {
        self.added += 1;
        self.heap.push(Reverse(Entry {
            at,
            order: self.added,
            what,
        }));
    }

    /// When the next thing is due.
    #[must_use]
    pub fn next(&self) -> Option<Nanoseconds> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Takes the next thing that is due at `now` or was before.
    pub fn take_due(&mut self, now: Nanoseconds) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry.what)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.heap.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_in_the_order_of_time_then_of_addition() {
        let mut agenda = Agenda::default();
        agenda.add(20, "later");
        agenda.add(10, "first");
        agenda.add(10, "second");
        assert_eq!(agenda.take_due(9), None);
        assert_eq!(agenda.take_due(15), Some("first"));
        assert_eq!(agenda.take_due(15), Some("second"));
        assert_eq!(agenda.take_due(15), None);
        assert_eq!(agenda.next(), Some(20));
    }
}
