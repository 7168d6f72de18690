//! Units that another unit's bring-up has found.

use super::Host;
use crate::platform::{ControllerId, Platform};
#[cfg(feature = "rare")]
use crate::policy::Trust;
use crate::scsi::bring_up::{Manner, Neighbours, Search};
use crate::scsi::luns::Luns;
use crate::scsi::unit::UnitEntry;
use crate::time::Instant;
use crate::usb::Driver;

/// What is known of a unit before it was asked anything.
#[derive(Clone, Copy)]
pub(super) struct NewUnit {
    pub(super) function: u8,
    pub(super) controller: ControllerId,
    pub(super) lun: u8,
    pub(super) transfer_bytes: u32,
    pub(super) manner: Manner,
    pub(super) search: Search,
}

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Puts a unit into the table and begins its bring-up.
    pub(super) fn add_unit(&mut self, unit: &NewUnit, now: Instant) {
        let Some(index) = self.units.iter().position(UnitEntry::is_free) else {
            self.platform
                .log(format_args!("usb: no room for unit {}", unit.lun));
            return;
        };
        if let Some(entry) = self.units.get_mut(index) {
            *entry = UnitEntry {
                generation: entry.generation.wrapping_add(1),
                told: entry.told,
                owed: entry.owed,
                function: unit.function,
                controller: unit.controller,
                lun: unit.lun,
                transfer_bytes: unit.transfer_bytes,
                manner: unit.manner,
                #[cfg(feature = "rare")]
                is_trusted: self.policy.trust == Trust::Everyone,
                search: unit.search,
                ..UnitEntry::EMPTY
            };
        }
        self.bring_up(index as u8, now);
    }

    /// Adds the units that were found beside a unit, as far as they are not there yet.
    #[cold]
    pub(super) fn add_neighbours(&mut self, unit: u8, neighbours: Neighbours, now: Instant) {
        let Some(found_by) = self.units.get(usize::from(unit)) else {
            return;
        };
        let next = found_by.lun.saturating_add(1);
        let mut unit = NewUnit {
            function: found_by.function,
            controller: found_by.controller,
            lun: next,
            transfer_bytes: found_by.transfer_bytes,
            manner: found_by.manner,
            search: Search::None,
        };
        match neighbours {
            Neighbours::Listed(luns) => {
                for lun in luns.numbers() {
                    unit.lun = lun;
                    self.add_absent(&unit, now);
                }
            }
            Neighbours::PerhapsNext if next < Luns::LIMIT => {
                unit.search = Search::Next;
                self.add_absent(&unit, now);
            }
            Neighbours::PerhapsNext => {}
        }
    }

    fn add_absent(&mut self, unit: &NewUnit, now: Instant) {
        let is_it = |entry: &UnitEntry| {
            !entry.is_free() && (entry.function, entry.lun) == (unit.function, unit.lun)
        };
        if !self.units.iter().any(is_it) {
            self.add_unit(unit, now);
        }
    }
}
