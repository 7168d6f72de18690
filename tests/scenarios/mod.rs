//! The whole stack on modelled hardware: what a user sees, with good devices and with odd ones.
//!
//! The one list of what every kind of controller must do. `tests/scenarios_xhci.rs` and
//! `tests/scenarios_ehci.rs` each run all of it by the same names, on the controller that their
//! module `controller` makes; what is about one kind alone is in `xhci/` and `ehci/`.
//!
//! `every_step` makes one thing go wrong at every step there is. A field report becomes a test in
//! `field_cases`, named after what the device does.

mod attempts;
mod controller_restart;
mod death;
mod events;
mod every_ledger_line;
mod every_offset;
mod every_register_read;
pub(crate) mod every_step;
mod exhausted_pool;
mod field_cases;
mod good_disk;
pub(crate) mod hangs;
mod hidden_losses;
pub(crate) mod interrupts;
mod leaving;
pub(crate) mod letting_go;
mod medium;
mod never_halts;
mod over_current;
mod persistent;
mod policies;
mod power;
mod quarantine;
mod quirks;
mod recovery;
pub(crate) mod rig;
pub(crate) mod scsi_rest;
mod soak;
mod staging;
mod trials;
mod two_disks;
pub(crate) mod uas;
mod uas_choice;
