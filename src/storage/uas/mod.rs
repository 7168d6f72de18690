//! USB Attached SCSI: commands, status and data on pipes of their own, several commands in flight.
//!
//! [`wire`] has the bytes, [`tags`] the names of commands in flight, [`machine`] the order of things,
//! [`transport`] the memory and pipes. Read UAS §4 (the model), §5.2.3 (the pipes) and §6.2 (the information units).

#[cfg(not(feature = "uas"))]
pub mod absent;
mod act;
mod answers;
mod calm;
mod ends;
mod inputs;
pub mod machine;
mod memory;
mod nexus;
mod open;
pub mod tags;
mod tasks;
pub mod transport;
pub mod wire;

pub use memory::{CommandSlot, release};
