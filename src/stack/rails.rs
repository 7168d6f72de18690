//! Rails whose power was taken away, and when they get it back.
//!
//! Kept by the host and not by the function on whose behalf it was done: that may have gone by then, and
//! the rail feeds others. Called by [`recover`](super::recover), by the timers, and when the host stops.

use super::Host;
use crate::platform::Platform;
use crate::time::Instant;
use crate::usb::Driver;

/// Rails that may be without power at the same time. Policy: more than any board has; one more waits for
/// its neighbour's turn on a higher rung.
const MOST: usize = 4;

/// The rails without power, and until when.
#[derive(Debug)]
pub(super) struct Rails([Option<(u8, Instant)>; MOST]);

impl Rails {
    /// All have power.
    pub(super) const ON: Self = Self([None; MOST]);

    /// The place of a rail, or a free one.
    fn place(&mut self, rail: u8) -> Option<&mut Option<(u8, Instant)>> {
        let is_its = |place: &Option<(u8, Instant)>| place.is_some_and(|(it, _)| it == rail);
        let own = self.0.iter().position(is_its);
        let index = own.or_else(|| self.0.iter().position(Option::is_none))?;
        self.0.get_mut(index)
    }

    /// Whether a rail may be switched off.
    pub(super) fn have_room_for(&self, rail: u8) -> bool {
        let fits = |place: &Option<(u8, Instant)>| place.is_none_or(|(it, _)| it == rail);
        self.0.iter().any(fits)
    }

    /// A rail that is due to have its power back.
    fn take_due(&mut self, now: Instant) -> Option<u8> {
        let is_due = |place: &&mut Option<(u8, Instant)>| place.is_some_and(|(_, at)| now >= at);
        let place = self.0.iter_mut().find(is_due)?;
        place.take().map(|(rail, _)| rail)
    }

    fn next(&self) -> Instant {
        let times = self.0.iter().flatten().map(|(_, until)| *until);
        times.min().unwrap_or(Instant::NEVER)
    }
}

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Takes a rail's power away until a time.
    pub(super) fn switch_rail_off(&mut self, rail: u8, until: Instant) {
        if let Some(place) = self.rails.place(rail) {
            *place = Some((rail, until));
            self.platform.switch_rail(rail, false);
            self.wake_at(until);
        }
    }

    /// Gives the rails their power back whose time has come.
    pub(super) fn run_rails(&mut self, now: Instant) {
        while let Some(rail) = self.rails.take_due(now) {
            self.platform.switch_rail(rail, true);
        }
        self.wake_at(self.rails.next());
    }

    /// Gives all rails their power back at once.
    pub(super) fn switch_rails_on(&mut self) {
        self.run_rails(Instant::NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rail_has_its_own_time_and_none_is_forgotten() {
        let mut rails = Rails::ON;
        let at = |seconds: u64| Instant::from_micros(seconds * 1_000_000);
        for (rail, until) in [(7, 5), (0, 3), (255, 9), (1, 7), (7, 8)] {
            assert!(rails.have_room_for(rail));
            *rails.place(rail).unwrap() = Some((rail, at(until)));
        }
        assert!(rails.have_room_for(1) && !rails.have_room_for(2));
        assert_eq!(rails.next(), at(3));
        assert_eq!(rails.take_due(at(2)), None);
        let due: Vec<_> = core::iter::from_fn(|| rails.take_due(at(8))).collect();
        assert_eq!(due.len(), 3, "{due:?}");
        assert!(rails.have_room_for(2));
        assert_eq!(rails.take_due(Instant::NEVER), Some(255));
        assert_eq!(rails.next(), Instant::NEVER);
    }
}
