//! What differs between CPUs: barriers, cache lines, hints and single-width device accesses.
//!
//! Called by `dma` (ordering and cache maintenance) and `mmio` (device accesses); a platform calls
//! [`cache`] and [`wait_for_interrupt`] too. Every CPU offers the same names:
//!
//! | item | what it promises |
//! |---|---|
//! | `barrier::release` | all earlier writes to DMA memory are visible to devices before any later register write |
//! | `barrier::acquire` | no later read of DMA memory is satisfied before an earlier one that saw a device's write |
//! | `cache::line_size` | bytes of the smallest data cache line |
//! | `cache::{clean, invalidate, clean_and_invalidate}` | by address, to the point of coherency |
//! | `stored` | nothing; on a PC it tells the models of a store to coherent memory |
//! | `wait_for_interrupt` | sleeps until an interrupt is pending, taken or not |
//! | `mmio::{read8 … write32}` | one access of exactly that width |

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::{barrier, cache, mmio, spin_hint, stored, wait_for_interrupt};

#[cfg(target_arch = "arm")]
mod armv7a;
#[cfg(target_arch = "arm")]
pub use armv7a::{barrier, cache, mmio, spin_hint, stored, wait_for_interrupt};

#[cfg(not(any(target_arch = "aarch64", target_arch = "arm")))]
mod host;
#[cfg(not(any(target_arch = "aarch64", target_arch = "arm")))]
pub use host::{barrier, cache, mmio, observer, spin_hint, stored, wait_for_interrupt};
