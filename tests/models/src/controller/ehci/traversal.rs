//! The asynchronous schedule: the order of visits, the empty-schedule detection and the reload of
//! the NAK counters (EHCI 1.0 §4.8, §4.9).

use super::queue_head::Pointer;
use super::{Ehci, List, timing};
use crate::controller::Surroundings;
use crate::device::Nanoseconds;

/// The NAK counter reload control (§4.9.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum NakReload {
    #[default]
    WaitForStartEvent,
    WaitForListHead,
    Reloading,
}

/// Where the traversal stands. The next queue head is in ASYNCLISTADDR.
#[derive(Debug, Default)]
pub(super) struct Traversal {
    /// Set by a start event and by each transaction, cleared at the head of the list: a list in
    /// which nothing was executed from head to head is empty.
    pub(super) reclamation: bool,
    reload: NakReload,
    /// The list was empty, or all in it answer NAK; when to look again by itself.
    asleep: Option<Option<Nanoseconds>>,
    /// The next transaction does not fit into this microframe any more.
    no_room: bool,
    /// Something moved since the head of the list was last visited.
    progress: bool,
    /// Transactions that park mode still allows at this queue head.
    parked: u32,
}

impl Traversal {
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// A schedule that sleeps looks again at `at`, or before.
    pub(super) fn wake_by(&mut self, at: Nanoseconds) {
        if let Some(wake) = &mut self.asleep {
            *wake = Some(wake.map_or(at, |earlier| earlier.min(at)));
        }
    }

    /// A transaction did more than to be put off.
    pub(super) fn made_progress(&mut self) {
        self.progress = true;
    }

    /// §4.8.6, §4.9.1: what the head of the list does. Whether the list is empty.
    fn visit_head(&mut self) -> bool {
        let empty = !self.reclamation;
        self.reclamation = false;
        self.reload = match self.reload {
            NakReload::WaitForStartEvent => NakReload::WaitForStartEvent,
            NakReload::WaitForListHead => NakReload::Reloading,
            NakReload::Reloading => NakReload::WaitForStartEvent,
        };
        empty
    }
}

/// What a visit came to.
enum Visit {
    /// Nothing to do here.
    Passed,
    /// One transaction.
    Executed,
    /// The microframe has no room for it.
    NoRoom,
}

impl Ehci {
    /// The asynchronous schedule has just been switched on.
    pub(super) fn begin_asynchronous(&mut self, around: &mut Surroundings<'_>) {
        self.traversal.reset();
        self.walk_asynchronous(around);
        self.start_event(around);
        self.plan_turn((around.now + 1).max(self.turn.free_at));
    }

    /// §4.8.5: the traversal begins in a new microframe, or after sleep.
    pub(super) fn start_event(&mut self, _around: &mut Surroundings<'_>) {
        if !self.operational.is_on(List::Asynchronous) {
            return;
        }
        self.traversal.reclamation = true;
        self.traversal.asleep = None;
        self.traversal.no_room = false;
        if self.traversal.reload == NakReload::WaitForStartEvent {
            self.traversal.reload = NakReload::WaitForListHead;
        }
    }

    /// Goes along the list up to the next transaction, if there is one. `None` if the controller has
    /// died of it.
    pub(super) fn traverse(&mut self, around: &mut Surroundings<'_>) -> Option<()> {
        if !self.operational.is_on(List::Asynchronous) {
            return Some(());
        }
        match self.traversal.asleep {
            Some(Some(at)) if around.now >= at => self.start_event(around),
            Some(_) => return Some(()),
            None => {}
        }
        for _ in 0..2 * self.held.in_list(List::Asynchronous).count() + 4 {
            let at = self.structure(self.operational.async_address);
            let link = self.fetch_head(around, at)?;
            if self.held.get(at)?.head.is_list_head() && self.is_list_empty(around) {
                return Some(());
            }
            match self.visit(around, at)? {
                Visit::NoRoom => {
                    self.traversal.no_room = true;
                    return Some(());
                }
                Visit::Executed => {
                    if !self.stays_parked(at) {
                        self.follow(around, at, link)?;
                    }
                    return Some(());
                }
                Visit::Passed => self.follow(around, at, link)?,
            }
        }
        self.fall_asleep(around);
        Some(())
    }

    /// §4.10.1: reads a queue head; its horizontal link as devices see it at this moment.
    pub(super) fn fetch_head(&mut self, around: &mut Surroundings<'_>, at: u64) -> Option<Pointer> {
        self.access(around)?;
        if self.held.get(at).is_none() {
            self.discover(around, at, List::Asynchronous);
        }
        let [link] = around.memory.read_words(at);
        Some(Pointer(link))
    }

    /// §4.8.3: the head of the list is visited. Whether the traversal goes to sleep.
    fn is_list_empty(&mut self, around: &mut Surroundings<'_>) -> bool {
        let empty = self.traversal.visit_head();
        let moved = std::mem::take(&mut self.traversal.progress);
        let leaps = !self.traits.exact_polls && !moved && self.all_are_quiet(around);
        if empty || leaps {
            self.fall_asleep(around);
        }
        empty || leaps
    }

    /// Whether all that could be executed has just answered NAK and will for a while.
    fn all_are_quiet(&self, around: &Surroundings<'_>) -> bool {
        let later = around.now + timing::SLEEP;
        self.held
            .in_list(List::Asynchronous)
            .filter(|(_, held)| held.has_work())
            .all(|(_, held)| held.quiet_until.is_some_and(|until| until > later))
    }

    fn fall_asleep(&mut self, around: &mut Surroundings<'_>) {
        let soon = around.now + timing::SLEEP;
        let exact = self.traits.exact_polls;
        let quiet = self
            .held
            .in_list(List::Asynchronous)
            .filter(|(_, held)| held.has_work())
            .map(|(_, held)| held.quiet_until.filter(|_| !exact).unwrap_or(soon))
            .min();
        let wake = quiet.or(self.unreleased(around)).map(|at| at.max(soon));
        self.traversal.asleep = Some(wake);
    }

    fn visit(&mut self, around: &mut Surroundings<'_>, at: u64) -> Option<Visit> {
        self.reload_nak_count(around, at);
        let held = self.held.get(at)?;
        if held.head.token().is_halted() || held.stuck {
            return Some(Visit::Passed);
        }
        if held.head.is_idle() && !self.advance(around, at)? {
            return Some(Visit::Passed);
        }
        let held = self.held.get(at)?;
        let head = &held.head;
        let waits = head.nak_reload() != 0 && head.nak_count() == 0;
        if !head.token().is_active() || held.stuck || waits {
            return Some(Visit::Passed);
        }
        if !timing::fits(around.now, head.cost()) {
            return Some(Visit::NoRoom);
        }
        self.traversal.reclamation = true;
        self.execute(around, at, List::Asynchronous)?;
        Some(Visit::Executed)
    }

    fn reload_nak_count(&mut self, around: &mut Surroundings<'_>, at: u64) {
        if self.traversal.reload != NakReload::Reloading {
            return;
        }
        let Some(held) = self.held.get_mut(at) else {
            return;
        };
        let reload = held.head.nak_reload();
        if reload != 0 && held.head.nak_count() != reload {
            held.head.set_nak_count(reload);
            self.store_overlay(around, at);
        }
    }

    /// §4.10.3.2: whether park mode keeps the traversal at a queue head.
    fn stays_parked(&mut self, at: u64) -> bool {
        let count = self.operational.park_count();
        let goes_on = self.held.get(at).is_some_and(|held| {
            held.head.is_high_speed() && held.head.token().is_active() && held.quiet_until.is_none()
        });
        if !goes_on || self.traversal.parked + 1 >= count {
            self.traversal.parked = 0;
            return false;
        }
        self.traversal.parked += 1;
        true
    }

    /// §4.10.5: on to the next queue head. The controller may take the link as it was when it read
    /// the queue head, as it is now, or as it was at its last visit, if it still holds what was there.
    fn follow(&mut self, around: &mut Surroundings<'_>, at: u64, link: Pointer) -> Option<()> {
        let segment = self.structure(0);
        let stale = self.held.get_mut(at)?.last_link.replace(link);
        let stale = stale.filter(|old| self.held.get(segment | u64::from(old.low())).is_some());
        let link = match (around.random.below(8), stale) {
            (0, Some(old)) => old,
            (1..=3, _) => {
                let [now] = around.memory.read_words(at);
                Pointer(now)
            }
            _ => link,
        };
        self.operational.async_address = link.low();
        Some(())
    }

    /// The doorbell is answered: the traversal stands at no queue head that will be forgotten.
    pub(super) fn leave_unlinked(&mut self) {
        while let Some(held) = self
            .held
            .get(self.structure(self.operational.async_address))
            && !held.is_linked()
        {
            self.operational.async_address = held.head.horizontal().low();
            self.traversal.parked = 0;
        }
    }

    /// When the asynchronous schedule wants its next turn.
    pub(super) fn next_traversal(&self, around: &Surroundings<'_>) -> Option<Nanoseconds> {
        if !self.operational.is_on(List::Asynchronous) {
            return None;
        }
        match self.traversal.asleep {
            Some(wake) => wake,
            None if self.traversal.no_room => Some(timing::next_microframe(around.now)),
            None => Some(around.now + 1),
        }
    }
}
