//! The bus: what USB devices say about themselves, and the requests that make them say it.
//!
//! Read `USB 2.0` chapter 9 first.

pub mod descriptor;
pub mod setup;
pub mod speed;
