//! Models of USB hardware, for tests on a PC: memory that is not what it seems, strict
//! xHCI and EHCI controllers, and devices from the well-behaved to the odd.
//!
//! The models are an independent reading of the specifications. They use no type and no constant of
//! the driver library, except in [`adapter`], which dresses a [`machine::Machine`] up as the
//! platform that the library runs on, in [`board_adapter`], and in the hook by which the library tells of its stores.
//!
//! | module | what it models |
//! |---|---|
//! | [`machine`] | everything together, and what a test holds in its hand |
//! | [`memory`] | two copies of all memory, and the cache between them |
//! | [`clock`], [`random`] | virtual time and chance, both decided by one seed |
//! | [`controller`] | host controllers, register by register |
//! | [`device`] | USB devices, packet by packet |
//! | [`board`] | what a board's controllers need before they can be touched |
//! | [`adapter`], [`board_adapter`] | the machine as the library's platform, a board as its registers |
//! | `broken` | how a model says that a rule was broken |
//!
//! What breaks a rule fails the run: a controller or the memory panics with the section at the very
//! access that broke it; a device records it, and its list panics when the test drops it.

pub mod adapter;
pub mod board;
pub mod board_adapter;
mod broken;
pub mod clock;
pub mod controller;
pub mod device;
pub mod machine;
pub mod memory;
pub mod random;
