//! What a disk says of its write cache, and where it may be asked (SBC-3 §6.4.5; SPC-4 §7.5).
//!
//! Only in the free manner: a Bulk-Only bridge that invents a caching page would have flushes left
//! out that its disk needs. A disk that hides its cache, or minds the question, counts as one with a
//! cache.

use super::super::details::Details;
use super::super::mode::{Caching, ModeParameters};
use super::{Action, BringUp, Manner, ModeForm, Phase, Questions};
use crate::block::WriteCache;
use crate::storage::quirks::Quirks;

/// What was read in the mode parameters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Caches {
    write: WriteCache,
    takes_forced: bool,
}

impl Caches {
    /// The details with it.
    pub(super) fn told_in(self, details: Details) -> Details {
        Details {
            cache: self.write,
            takes_forced_writes: self.takes_forced,
            ..details
        }
    }
}

impl BringUp {
    /// Takes mode parameters, of all pages or of one.
    pub(super) fn take_mode(&mut self, data: &[u8]) {
        let parameters = match self.mode_form {
            ModeForm::Six => ModeParameters::parse_6(data),
            ModeForm::Ten => ModeParameters::parse_10(data),
        };
        let Some(parameters) = parameters else {
            return;
        };
        if self.phase == Phase::ModeSense {
            self.write_protected = parameters.is_write_protected();
        }
        if self.manner == Manner::Free && !self.hides_cache() {
            let is_broken = self.quirks.contains(Quirks::BROKEN_FUA);
            self.caches.takes_forced = parameters.takes_forced_unit_access() && !is_broken;
            if let Some(Caching { write_back, .. }) = parameters.caching() {
                self.caches.write = if write_back {
                    WriteCache::WriteBack
                } else {
                    WriteCache::WriteThrough
                };
            }
        }
    }

    /// Asks for the caching page where that is allowed and it is not known yet.
    pub(super) fn ask_caching(&mut self) -> Action {
        let may_ask = self.manner == Manner::Free
            && self.questions == Questions::All
            && self.caches.write == WriteCache::Unknown
            && !self.hides_cache();
        if may_ask {
            self.go_on(Phase::Caching)
        } else {
            self.ask_details()
        }
    }

    fn hides_cache(&self) -> bool {
        self.quirks
            .intersects(Quirks::ALWAYS_SYNC | Quirks::WRITE_CACHE)
    }
}
