//! Bulk-Only Transport: a command wrapper, the data, a status wrapper, one command at a time.
//!
//! Read BOT 1.0 §5 and §6.

pub mod wire;
