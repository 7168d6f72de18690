//! A controller that is started again because nothing less has helped one of its devices.
//!
//! Called by [`recover`](super::recover), as the last rung of the ladder: a controller that looks well may
//! have lost a stream or an endpoint all the same. All that is on it leaves and comes back. So it is done
//! only while every other disk on it has nothing to lose, and the requests of those end with
//! [`BlockError::Reset`](crate::block::BlockError::Reset).

use super::Host;
use crate::platform::{ControllerId, Platform};
use crate::policy::UasFallback;
use crate::time::Instant;
use crate::usb::Driver;

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Whether a function's controller may be started again for its sake: every other disk on it has
    /// nothing unflushed, and there is nothing gentler left to try.
    pub(super) fn may_restart(&self, function: u8) -> bool {
        let Some(controller) = self.controller_of(function) else {
            return false;
        };
        // Bulk-Only is gentler on the neighbours, unless the controller is the one to blame.
        let is_last =
            self.policy.uas_fallback == UasFallback::UntilRestart || !self.can_leave_uas(function);
        is_last
            && self.bus.may_restart(controller)
            && self.units.iter().all(|entry| {
                entry.is_free()
                    || entry.function == function
                    || entry.controller != controller
                    || !entry.durability.is_dirty()
            })
    }

    /// The function, and all others on its controller, leave and come back.
    pub(super) fn restart_controller_of(&mut self, function: u8, now: Instant) {
        let Some(controller) = self.controller_of(function) else {
            return;
        };
        for neighbour in 0..self.functions.len() as u8 {
            if neighbour == function || self.controller_of(neighbour) != Some(controller) {
                continue;
            }
            let slot = self.functions.get(usize::from(neighbour));
            if slot.is_some_and(|slot| slot.function.device().is_some()) {
                self.leave(neighbour, now);
                self.blame_neighbour(neighbour);
            } else {
                self.stay_away(neighbour, now);
            }
        }
        self.leave(function, now);
        self.bus.restart_controller(controller, now);
    }

    /// The controller that a function's device is, or was, on.
    pub(super) fn controller_of(&self, function: u8) -> Option<ControllerId> {
        let slot = self.functions.get(usize::from(function))?;
        Some(slot.home?.controller())
    }
}
