//! When a device is used over UAS no more: what counts, and where it is remembered.
//!
//! Called by [`recover`](super::recover) at each rung and by [`attach`](super::attach), which chooses between
//! UAS and Bulk-Only. Resets and aborts are noted in the device's own [`Fallback`], or in its controller's where
//! [`Policy::uas_fallback`](crate::policy::Policy::uas_fallback) blames that; that UAS could not be opened
//! is always the device's.

use super::Host;
use crate::platform::{ControllerId, Platform};
use crate::policy::UasFallback;
use crate::storage::fallback::{Fallback, FellBack};
use crate::storage::ladder::Climb;
use crate::storage::uas::machine::Tried;
use crate::time::Instant;
use crate::usb::Driver;

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Why UAS is to be left on a device in this place of the table and on this controller, if so.
    pub(super) fn reason_against_uas(
        &self,
        function: usize,
        controller: ControllerId,
    ) -> Option<FellBack> {
        let all = self.fallbacks.get(usize::from(controller.0));
        let own = self.functions.get(function);
        let all = all.and_then(Fallback::reason);
        all.or(own.and_then(|slot| slot.fallback.reason()))
    }

    /// Whether a function speaks UAS, and could be used over Bulk-Only.
    pub(super) fn can_leave_uas(&self, function: u8) -> bool {
        let slot = self.functions.get(usize::from(function));
        let Some((slot, home)) = slot.and_then(|slot| Some((slot, slot.home?))) else {
            return false;
        };
        let reason = self.reason_against_uas(usize::from(function), home.controller());
        slot.function.takes_several() && slot.has_bulk_only && reason.is_none()
    }

    /// What becomes of a rung when the device speaks UAS: too many resets, or the end of the ladder, and
    /// it is used over Bulk-Only when it is back.
    pub(super) fn leave_uas(&mut self, function: u8, climb: Climb, now: Instant) -> Climb {
        let can_leave = self.can_leave_uas(function);
        let policy = self.policy;
        let Some(slot) = self.functions.get(usize::from(function)) else {
            return climb;
        };
        let has_time = slot.ladder.has_time(policy.episode, now);
        let speaks_uas = slot.function.takes_several();
        match climb {
            Climb::ResetPort if speaks_uas => self.note_reset(function, now),
            // Between its two resets the fault is the same.
            Climb::Retry if can_leave && slot.function.tried() != Tried::Nothing => {
                let is_habit = !slot.ladder.is_at_unit_reset()
                    && self
                        .resets_of(function)
                        .is_some_and(|fallback| fallback.count_abort(&policy, now));
                if is_habit {
                    return self.reset_port_early(function);
                }
            }
            // The ladder is past its own port reset.
            Climb::GiveUp if can_leave && has_time => {
                if let Some(fallback) = self.resets_of(function) {
                    fallback.end_of_ladder(&policy, now);
                }
                return Climb::ResetPort;
            }
            // The higher rungs belong to the fault whose port reset has been noted.
            _ => {}
        }
        climb
    }

    /// A port reset that the ladder has not come to is the rung of this episode all the same: a device that
    /// does not come back from it gets the next one.
    fn reset_port_early(&mut self, function: u8) -> Climb {
        if let Some(slot) = self.functions.get_mut(usize::from(function)) {
            slot.ladder.port_is_reset();
        }
        Climb::ResetPort
    }

    /// The controller of a function has died and is started again. If the device was being brought back
    /// in step over UAS, that has killed it.
    pub(super) fn note_death(&mut self, function: u8, now: Instant) {
        let slot = self.functions.get(usize::from(function));
        if slot.is_some_and(|slot| slot.function.is_recovering_uas()) {
            self.note_reset(function, now);
        }
    }

    fn note_reset(&mut self, function: u8, now: Instant) {
        let policy = self.policy;
        if let Some(fallback) = self.resets_of(function) {
            fallback.count_reset(&policy, now);
        }
    }

    /// Where the resets of a function's device are noted.
    fn resets_of(&mut self, function: u8) -> Option<&mut Fallback> {
        let slot = self.functions.get_mut(usize::from(function))?;
        let all = match (self.policy.uas_fallback, slot.home) {
            (UasFallback::UntilRestart, Some(home)) => {
                self.fallbacks.get_mut(usize::from(home.controller().0))
            }
            _ => None,
        };
        Some(all.unwrap_or(&mut slot.fallback))
    }
}
