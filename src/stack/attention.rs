//! What a unit tells by the way, in its answers to a bring-up: that it was reset, that writes have failed
//! after all, that its medium is another one. And what it need not tell, because the host knows: that the host
//! has reset it.
//!
//! Called by [`dispatch`](super::dispatch) and [`schedule`](super::schedule). An answer is weighed ahead of the
//! bring-up itself, which takes it for a reason to ask again and no more. A request would have been told the same
//! ([`unit`](crate::scsi::unit)); what is told is told once, so it must not be lost here.

use super::Host;
use super::recover::replace;
use crate::block::BlockError;
use crate::platform::Platform;
use crate::scsi::luns::Luns;
use crate::scsi::sense::Verdict;
use crate::scsi::transport::{Completion, Outcome, Status};
use crate::scsi::unit::UnitEntry;
use crate::usb::Driver;

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Weighs the end of a bring-up's command for what it says of the time before.
    ///
    /// A unit whose device was reset is expected to say that its medium may have changed; what it is now is
    /// compared with what it was. One that was not reset, and whose medium can be taken out, has another.
    #[cold]
    pub(super) fn weigh_attention(&mut self, unit: u8, outcome: &Outcome) {
        let Ok(Completion {
            status: Status::Check(sense),
            ..
        }) = outcome
        else {
            return;
        };
        let verdict = sense.verdict();
        let error = match verdict {
            // What was not heard may have been that it was reset.
            Verdict::ResetHappened | Verdict::EarlierCommandFailed | Verdict::Unheard => None,
            Verdict::MediaChanged => Some(BlockError::MediumChanged),
            Verdict::NoMedium => Some(BlockError::NoMedium),
            _ => return,
        };
        let Some(entry) = self.units.get_mut(usize::from(unit)) else {
            return;
        };
        match verdict {
            Verdict::Unheard => entry.durability.doubted(),
            _ => entry.durability.interrupted(),
        }
        let before = entry.before.as_ref();
        let is_removable = before.is_some_and(|found| found.inquiry.removable);
        if let Some(error) = error.filter(|_| entry.relapsed && is_removable) {
            replace(entry);
            self.end_requests_of(unit, error);
        }
    }

    /// Units that their transport has reset, for the sake of commands that did not end, may have lost what they
    /// held in their caches, and need not say so. To be called first of all when something has happened to a function,
    /// so that no flush behind the reset is weighed before it.
    #[inline]
    pub(super) fn weigh_resets(&mut self, function: u8) {
        let slot = self.functions.get_mut(usize::from(function));
        let units = slot.map_or(Luns::NONE, |slot| slot.function.take_reset_units());
        if units != Luns::NONE {
            self.units_were_reset(function, units);
        }
    }

    #[cold]
    #[inline(never)]
    fn units_were_reset(&mut self, function: u8, units: Luns) {
        let is_one =
            |entry: &&mut UnitEntry| entry.function == function && units.contains(entry.lun);
        let reset = self.units.iter_mut().filter(is_one);
        reset.for_each(|entry| entry.durability.interrupted());
    }
}
