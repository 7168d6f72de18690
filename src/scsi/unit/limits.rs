//! How much one command of a unit moves.
//!
//! Called when a unit was brought up, and when a user chooses. What a command may move at most is the least of
//! three: what its device was opened for, what it says itself (page B0), and what was chosen for it.

use super::UnitEntry;
use crate::scsi::bring_up::{Found, Manner};
use crate::storage::quirks::Quirks;

impl UnitEntry {
    /// Keeps to the limits of a unit of which this was found, and whose device was opened for commands of
    /// `device` bytes at most.
    pub(crate) fn limit_transfers(&mut self, found: &Found, device: u32) {
        self.transfer_bytes = device.min(self.chosen_bytes);
        if let Some(blocks) = found.details.limits.maximum_transfer {
            let exponent = u32::from(found.capacity.block_length().exponent());
            let most = blocks.get().checked_shl(exponent);
            let most = most.filter(|most| most >> exponent == blocks.get());
            self.transfer_bytes = self.transfer_bytes.min(most.unwrap_or(u32::MAX));
        }
        // Card readers and sticks are known that fail, or die, in a read of several blocks which touches the last.
        let is_well = self.manner == Manner::Free || self.quirks.contains(Quirks::CAPACITY_OK);
        self.lone_end = match is_well {
            true => u64::MAX,
            false => found.capacity.blocks(),
        };
    }
}
