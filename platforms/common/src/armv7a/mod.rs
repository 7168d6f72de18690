//! 32-bit ARM with the Large Physical Address Extension (Cortex-A7, A15, A17): from the boot
//! loader's jump to Rust with caches on, and what needs system registers.
//!
//! The image runs in supervisor mode. Entered in Hyp mode (`bootm` of a U-Boot that has put itself
//! into the non-secure world) it goes down first; entered in supervisor mode (`go`) it stays in the
//! security state that it finds. One translation regime, one set of vectors and the physical timer
//! serve both ways of arriving.
//!
//! What is pure (the boot loader's words) is compiled and tested on the host too.

pub mod handoff;

#[cfg(all(target_arch = "arm", target_os = "none"))]
mod bare;
#[cfg(all(target_arch = "arm", target_os = "none"))]
pub use bare::*;
