//! Disks with the faults that people reported in public, each a small function.
//!
//! A function is named after what the device does, cites the report, and returns a [`Disk`] to plug
//! in; what a good host owes its user is the test's to assert. Each fault stands for its whole kind.
//! All are built with [`Script`], so that a new report becomes another few lines here.
//!
//! | module | faults |
//! |---|---|
//! | [`max_lun`] | GET MAX LUN stalled, odd, empty, late |
//! | [`readiness`] | attentions, no medium, slow or endless spin-up, lack of power, empty slots |
//! | [`commands`] | MODE SENSE that kills, status in place of data, first reads that lie, size limits |
//! | [`capacity`] | beyond 2 TiB, odd block lengths, nonsense |
//! | [`descriptors`] | malformed configurations |
//! | [`enumeration`] | recovery times, first descriptor read, size of endpoint 0 |
//! | [`halts`] | halts, babble, transaction errors, each rung of recovery |
//! | [`status`] | status wrappers of wrong length, tag, signature, residue |

pub mod capacity;
pub mod commands;
pub mod descriptors;
pub mod enumeration;
pub mod halts;
pub mod max_lun;
pub mod readiness;
pub mod status;

use super::{Disk, Script};

/// A good stick of 65536 blocks, each with a pattern that names it ([`super::scsi::pattern`]): for
/// faults that are not the device's, such as unplugging ([`Disk::pull_at`]) and cache lines.
#[must_use]
pub fn good_stick() -> Disk {
    Script::new().build()
}

#[cfg(test)]
mod testing {
    //! What the tests of this module share.

    use super::super::packet_host::PacketHost;
    use super::Disk;

    pub(super) const TEST: [u8; 6] = [0; 6];
    pub(super) const INQUIRY: [u8; 6] = [0x12, 0, 0, 0, 36, 0];
    pub(super) const CAPACITY: [u8; 10] = [0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    pub(super) const CAPACITY_16: [u8; 16] =
        [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0];
    pub(super) const READ: [u8; 10] = [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    pub(super) const WRITE: [u8; 10] = [0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0];

    /// The disk with address and configuration.
    pub(super) fn plugged(disk: Disk) -> PacketHost<Disk> {
        let mut host = PacketHost::plug(disk);
        host.enumerate().expect("this disk enumerates");
        host
    }
}
