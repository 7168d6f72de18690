//! Checks that every part of the model makes.

use super::Xhci;
use crate::broken::require;
use crate::controller::Surroundings;

impl Xhci {
    /// A controller without AC64 forms 32 bits of an address.
    pub(super) fn check_reach(&self, address: u64, what: &str) {
        require!(
            self.traits.addresses_64 || address >> 32 == 0,
            "xHCI 1.2 §5.3.6",
            "{what} at {address:#x} is beyond a controller without AC64"
        );
    }

    /// §4.9.2, table 6-1: where a ring may begin.
    pub(super) fn check_ring_start(&self, address: u64, alignment: u64, what: &str) {
        require!(
            address != 0 && address.is_multiple_of(alignment),
            "xHCI 1.2 table 6-1",
            "{what} at {address:#x} is not a multiple of {alignment}"
        );
        self.check_reach(address, what);
    }
}

/// Whether `length` bytes at `start` cross a multiple of `boundary`.
pub(super) fn crosses(start: u64, length: u64, boundary: u64) -> bool {
    length != 0 && start / boundary != (start + length - 1) / boundary
}

/// What the driver stored must be visible before it tells the controller to look.
pub(super) fn check_memory_released(around: &Surroundings<'_>, what: &str) {
    require!(
        !around.memory.has_unreleased_stores(),
        "Policy: release before the doorbell",
        "{what} was written while stores to coherent memory may still be under way"
    );
}
