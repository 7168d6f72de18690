//! A `no_std`, heap-free USB host stack for bare-metal single-board computers.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[allow(unsafe_code)]
pub mod arch;
pub mod block;
pub(crate) mod bytes;
#[allow(unsafe_code)]
pub mod dma;
pub mod host;
#[allow(unsafe_code)]
pub mod mmio;
pub mod platform;
pub mod policy;
pub mod scsi;
pub mod stack;
pub mod storage;
pub mod time;
pub mod usb;

pub use platform::Platform;
pub use stack::Host;
