//! 64-bit ARM: from the boot loader's jump to Rust with caches on, and what needs system registers.
//!
//! The image runs at EL1. Entered at EL2 it goes down first: one translation regime, one set of
//! vectors and one timer then serve both ways of arriving, and QEMU, Cortex-A53 boards under
//! Trusted Firmware, and guests of a hypervisor end up the same. What it costs is EL2 itself: a
//! boot loader that must start its next stage at EL2 has to stay there.
//!
//! What is pure (the words of a syndrome) is compiled and tested on the host too.

pub mod syndrome;

#[cfg(all(target_arch = "aarch64", target_os = "none"))]
mod bare;
#[cfg(all(target_arch = "aarch64", target_os = "none"))]
pub use bare::*;
