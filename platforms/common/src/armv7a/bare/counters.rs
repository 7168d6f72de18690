//! Instructions and ticks, for measurements.
//!
//! Read first: DDI 0406C §C12 (the performance monitors). Event counters stand still in the secure
//! world unless a debugger allows them, so that instructions are counted only where the boot loader
//! left us in the other one (`bootm`). QEMU counts the event only under `-icount`, and leaves the time
//! out in which the core sleeps.

use aarch32_cpu::asm::isb;
use aarch32_cpu::register::{CntPct, Pmcntenset, Pmcr, Pmselr, Pmxevcntr, Pmxevtyper};

/// Event INST_RETIRED (DDI 0406C §C12.8.2).
const INSTRUCTIONS_RETIRED: u32 = 0x08;

/// Has event counter 0 count the instructions of this core.
pub fn start_counting() {
    // SAFETY: counter 0 is selected and enabled with a defined event, and nothing else uses it.
    unsafe {
        Pmselr::write(Pmselr(0));
        isb();
        Pmxevtyper::write(Pmxevtyper(INSTRUCTIONS_RETIRED));
        Pmcntenset::write(Pmcntenset(1));
        Pmcr::write(Pmcr(1));
    }
    isb();
}

/// Instructions so far. Wraps.
#[must_use]
pub fn instructions() -> u32 {
    isb();
    Pmxevcntr::read().0
}

/// Ticks of the generic timer so far.
#[must_use]
pub fn ticks() -> u64 {
    isb();
    CntPct::read().0
}
