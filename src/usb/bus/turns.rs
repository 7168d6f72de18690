//! The turns of the controllers: what they report is taken from one after the other, each having its share.
//!
//! Called by the stack in every poll. Most of what is taken are good ends of transfers, and most polls end with
//! nothing left: both have a short way ([`Bus::take_end`]).

use super::{Bus, BusEvent, Driver, token};
use crate::host::{HostController, TransferEnd};
use crate::time::Instant;

/// How many things in a row one controller may report before the others have a turn.
/// Policy: more than a burst of completions, less than what a user would notice.
pub(super) const SHARE: u8 = 64;

/// How often in a row the timers wait because a controller's share was over before its events were: what has
/// ended in time, but was not told of, has not timed out. Policy: more events than the rings of all
/// controllers of a board hold, and an end to what a mad one can hold up.
pub(super) const POSTPONED: u8 = 8;

/// What a short look at the controllers has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// The good end of a function's transfer.
    End,
    /// Nothing: every controller had its turn and was told how far its events were taken.
    Over,
    /// [`Bus::poll`] finds out.
    Other,
}

impl<C: Driver> Bus<'_, C> {
    /// Whether [`Bus::poll`] would find something. Touches nothing.
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.wake || self.drivers().any(HostController::has_events)
    }

    /// Takes the next thing that a driver must know. `None`: every controller had its turn and was
    /// told how far its events were taken; [`Bus::next_wake`] says whether there is more at once.
    ///
    /// Events come before timers: what has ended in time, but was not told of, has not timed out.
    #[inline(never)]
    pub fn poll(&mut self, now: Instant) -> Option<BusEvent> {
        let mut timers_ran = false;
        loop {
            if let Some(event) = self.take_events(now) {
                return Some(event);
            }
            let comes_first = self.cut_short != Instant::NEVER && self.behind < POSTPONED;
            if timers_ran || now < self.next_timer || comes_first {
                break;
            }
            // What the timers have begun may have ended already.
            timers_ran = true;
            if let Some(event) = self.run_timers(now) {
                return Some(event);
            }
        }
        let cut_short = core::mem::replace(&mut self.cut_short, Instant::NEVER);
        self.behind = match cut_short {
            Instant::NEVER => 0,
            _ => self.behind.saturating_add(1),
        };
        self.wake = self.earliest(cut_short);
        None
    }

    /// When there is something to do at the latest, if not at `time`.
    pub(super) fn earliest(&self, time: Instant) -> Instant {
        self.drivers()
            .map(HostController::next_deadline)
            .fold(time.min(self.next_timer), Instant::min)
    }

    /// Takes the good end of a function's transfer if that is what [`Bus::poll`] would find, by a shorter way; or
    /// says that [`Bus::poll`] would find nothing, as at the end of nearly every poll of the stack.
    #[inline]
    pub fn take_end(&mut self, end: &mut TransferEnd, now: Instant) -> Turn {
        if self.taken == SHARE {
            return Turn::Other;
        }
        let mut wake = self.next_timer;
        let rest = self.controllers.get_mut(self.cursor..);
        for slot in rest.unwrap_or_default() {
            let Some(driver) = slot.driver.as_mut() else {
                break;
            };
            if driver.take_end(end) {
                self.taken += 1;
                // Control transfers do not end so; whatever else there was, nobody waits for it.
                return match token::is_of_function(end.token) {
                    true => Turn::End,
                    false => Turn::Other,
                };
            }
            if driver.has_events() {
                // Something else comes first.
                return Turn::Other;
            }
            driver.acknowledge_events();
            wake = wake.min(driver.next_deadline());
        }
        if self.cursor != 0 || self.cut_short != Instant::NEVER || now >= wake {
            return Turn::Other;
        }
        self.taken = 0;
        self.behind = 0;
        self.wake = wake;
        Turn::Over
    }

    /// Gives every controller its turn, up to the first event that a driver must know.
    #[inline]
    fn take_events(&mut self, now: Instant) -> Option<BusEvent> {
        while let Some(driver) = self
            .controllers
            .get_mut(self.cursor)
            .and_then(|slot| slot.driver.as_mut())
        {
            if self.taken == SHARE {
                self.cut_short = now;
            } else if let Some(event) = driver.poll(&mut self.pool, now) {
                self.taken += 1;
                if let Some(event) = self.take(event, now) {
                    return Some(event);
                }
                continue;
            }
            driver.acknowledge_events();
            self.cursor += 1;
            self.taken = 0;
        }
        self.cursor = 0;
        None
    }

    /// Whether events were left at the last [`Bus::poll`] that returned `None`, and come before any timer: the
    /// rest is due at once.
    pub fn is_behind(&self, now: Instant) -> bool {
        now >= self.wake && (1..POSTPONED).contains(&self.behind)
    }

    /// When to poll again at the latest, as of the last [`Bus::poll`] that returned `None`. Not
    /// later than it should be if something was begun since.
    #[inline]
    pub fn next_wake(&self) -> Instant {
        self.wake
    }
}
