//! A device that dies, babbles, lies or is pulled, at every step there is.
//!
//! Each test is a loop over steps: transactions, transfers, commands. At each step another rig is
//! made, with another seed, cache line, coherence and offset of the buffers, so that the combinations
//! are spread over the steps; one thing goes wrong there, and a [`Course`] asserts what must hold
//! whatever goes wrong.

mod clock;
mod commands;
mod control_requests;
pub(crate) mod course;
mod pulled;
mod transfers;
mod uas;
mod uas_pulled;

use course::Course;
pub(crate) use course::survives;
