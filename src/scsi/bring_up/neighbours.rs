//! The other units of a device: REPORT LUNS where it may be asked, else one INQUIRY after the other.
//!
//! Bulk-Only counts its units by a request of its own; devices of other transports are asked through
//! unit 0, or through each unit that was found by asking. The stack takes what was found after each
//! step, and begins the bring-up of those units.

use super::super::luns::Luns;
use super::{Action, BringUp, Manner, Phase, Questions};
use crate::storage::quirks::Quirks;

/// How the device's other units are looked for, beginning with this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Search {
    /// They are known, or another unit's bring-up looks for them.
    #[default]
    None,
    /// They are asked for, and looked for one by one where that fails.
    List,
    /// They are asked for; where that fails, their number is known otherwise.
    ListAlone,
    /// Behind each that is there, another one may be.
    Next,
}

impl Search {
    /// What a unit does of it: the others are looked for beginning with the first.
    pub(crate) fn from(self, lun: u8) -> Self {
        match lun {
            0 => self,
            _ => Self::None,
        }
    }
}

/// What was found of a device's other units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Neighbours {
    /// It has these, as it says.
    Listed(Luns),
    /// Behind this one there may be another: only its own INQUIRY tells.
    PerhapsNext,
}

impl BringUp {
    /// Asks in this manner, with this search for other units. To be said when it knows what it must
    /// mind.
    pub fn ask(&mut self, manner: Manner, search: Search) {
        let is_forbidden = self.quirks.contains(Quirks::NO_REPORT_LUNS);
        self.manner = manner;
        self.search = match search {
            Search::List if is_forbidden => Search::Next,
            Search::ListAlone if is_forbidden => Search::None,
            search => search,
        };
    }

    /// What the last step has found of other units, once.
    pub fn take_neighbours(&mut self) -> Option<Neighbours> {
        self.neighbours.take()
    }

    /// The unit is there. Its neighbours first: it may be no disk, and they may be.
    pub(super) fn look_around(&mut self) -> Action {
        let is_asked = matches!(self.search, Search::List | Search::ListAlone);
        if is_asked && self.questions == Questions::All {
            self.go_on(Phase::Units)
        } else {
            self.units_unknown()
        }
    }

    /// The answer to REPORT LUNS.
    pub(super) fn units_listed(&mut self, data: &[u8]) -> Action {
        match Luns::parse(data) {
            Some(luns) => {
                self.neighbours = Some(Neighbours::Listed(luns));
                self.identified()
            }
            None => self.units_unknown(),
        }
    }

    /// REPORT LUNS was not asked, or failed, or its answer makes no sense.
    pub(super) fn units_unknown(&mut self) -> Action {
        if matches!(self.search, Search::List | Search::Next) {
            self.neighbours = Some(Neighbours::PerhapsNext);
        }
        self.identified()
    }
}
