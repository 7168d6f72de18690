//! The part of `aarch64` that touches system registers: bare metal only.

#[cfg(feature = "bench")]
pub mod counters;
mod entry;
mod exceptions;
pub mod interrupts;
pub(crate) mod mmu;
pub mod timer;

pub use entry::{Start, entry_level};

/// Stops this core for good.
pub fn park() -> ! {
    interrupts::mask();
    loop {
        aarch64_cpu::asm::wfe();
    }
}
