//! A Bulk-Only disk: the device side of BOT 1.0 over a SCSI [`Target`](super::scsi::Target).
//!
//! [`BulkOnly`] is a [`Function`](super::base::Function) of the base device. It is strict where the specification is (valid
//! and meaningful wrappers, halts until reset recovery, the thirteen cases) and becomes odd only by
//! [`Hook`]s and [`Manners`]. It does not know what commands mean.

mod busy;
mod function;
mod hook;
mod machine;
mod plan;
mod wire;

#[cfg(test)]
mod tests;

pub use hook::{Action, Hook, Until, When, any, opcode};
pub use machine::{BulkOnly, ClassReset, Exchange, Manners};
pub use plan::{ShortEnd, Unwanted};
pub use wire::{CommandWrapper, status_wrapper};
