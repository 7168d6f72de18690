//! A SCSI target: logical units that execute commands, whatever the transport (SPC-4, SBC-3).
//!
//! A transport (Bulk-Only, UAS) hands in the CDB and gets an [`Execution`]: what the device
//! intends to transfer, when, and with which status. For writes it hands the data to
//! [`Target::write`]. The target does not know how data travel, nor what lengths the transport
//! announced. It refuses what a strict device refuses and records what is a host's fault; it keeps a
//! list of all commands.

mod ata;
mod cdb;
mod discard;
mod image;
mod inquiry;
mod medium;
mod parameters;
mod sense;
mod target;
mod unit;

#[cfg(test)]
mod tests;

pub use ata::{AtaDisk, Bringing};
pub use cdb::Extent;
pub use discard::Provisioning;
pub use image::{Image, pattern};
pub use sense::{Registers, Sense};
pub use target::{Command, Execution, Intent, Outcome, StatusLoss, Target};
pub use unit::{Attention, CacheLoss, Forced, LogicalUnit, Scripted, Timing};
