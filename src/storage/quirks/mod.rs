//! What is known about devices that are not as the specifications say: named policies, the tables
//! that give them to devices, and the run-time string that overrides the tables.
//!
//! The stack asks [`bulk_only`] or [`attached`] once a device was described, again after every
//! enumeration, and keeps the [`Decision`]; whoever a policy concerns honours it: `storage` in the
//! wrappers, `scsi` in bring-up and in its commands. Quirks of the bus itself are in `usb::quirks`,
//! those of a controller with its driver.
//!
//! The words are Linux's, because people know them: each [`Quirks`] bears the name of the flag
//! without its prefix and, where it has one, the letter of `usb-storage.quirks`. What is known of a
//! device comes from public sources and is named beside it ([`Story`]). Nothing here does I/O.

mod attached;
mod bulk_only;
mod chips;
mod decision;
mod entry;
mod flags;
mod overrides;

pub use attached::{Avoidance, Setting, UasChoice, attached};
pub use bulk_only::bulk_only;
pub use chips::{Chip, chip};
pub use decision::{Decision, Source};
pub use entry::{Entry, EntryRef, Identity, Story};
pub use flags::Quirks;
pub use overrides::{Flaw, Override, Overrides, Problem};
