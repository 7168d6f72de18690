//! Bulk-Only Transport: a command wrapper, the data, a status wrapper, one command at a time.
//!
//! [`wire`] has the bytes, [`machine`] the order of things, [`transport`] the memory and pipes;
//! `habits` is what a device's quirks change in that.
//! Read BOT 1.0 §5 and §6.

mod habits;
pub mod machine;
pub mod transport;
pub mod wire;
