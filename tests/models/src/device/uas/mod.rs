//! A UAS disk: the device side of UAS over a SCSI [`Target`](super::scsi::Target), with streams at
//! SuperSpeed and without below it.
//!
//! [`Uas`] is a [`Function`](super::base::Function) of the base device. It is strict where the
//! specification is (tags, unit formats, streams, whose data phase it is) and becomes odd only by
//! [`Fault`]s and [`Manners`]. In which order it serves the commands that it has is decided by a seed.
//! [`UasDisk`] is the device to plug in, and the test's handle on it.

mod disk;
mod fault;
mod function;
mod machine;
mod streams;
mod wire;

#[cfg(test)]
mod tests;

pub use disk::{Offer, UasDisk, UasScript};
pub use fault::{Fault, Manners, PrimeManner, TaskManner, What, on};
pub use machine::{Exchange, Task, Uas};
