//! The part of `armv7a` that touches system registers: bare metal only.

#[cfg(feature = "bench")]
pub mod counters;
mod entry;
mod exceptions;
pub mod interrupts;
pub(crate) mod mmu;
pub mod timer;

pub use entry::{Start, entry_mode};

/// Stops this core for good.
pub fn park() -> ! {
    interrupts::mask();
    loop {
        aarch32_cpu::asm::wfi();
    }
}
