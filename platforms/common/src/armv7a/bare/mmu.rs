//! The MMU: translation regime of supervisor mode, long descriptors.
//!
//! Who calls it: `AddressSpace`. Read first: DDI 0406C §B3.6.

use aarch32_cpu::asm::{dsb, isb};
use aarch32_cpu::register::mair0::Mair;
use aarch32_cpu::register::{
    BpIAll, Iciallu, Mair0, Sctlr, SysReg, SysReg64, SysRegWrite, SysRegWrite64, TlbIAll,
};

use crate::tables::{MEMORY_ATTRIBUTES, Root};

/// SCTLR of Cortex-A7 after reset (DDI 0464F §4.3.27): MMU, caches and alignment check off,
/// exceptions in ARM state through VBAR, branch prediction on.
pub(super) const CONTROL_MMU_OFF: u32 = 0x00c5_0878;

/// The form of the tables.
pub(crate) const ROOT: Root = Root::Level1;

/// TTBCR of the long-descriptor format (DDI 0406C §B4.1.153): EAE; no walks through TTBR1; TTBR0
/// for all 32 bits, its walks inner shareable, write-back, write-allocate.
const CONTROL: u32 = 1 << 31 | 1 << 23 | 0b11 << 12 | 0b01 << 10 | 0b01 << 8;

/// Translation Table Base Control Register: `aarch32-cpu` has no name for it.
struct Ttbcr;

impl SysReg for Ttbcr {
    const CP: u32 = 15;
    const CRN: u32 = 2;
    const OP1: u32 = 0;
    const CRM: u32 = 0;
    const OP2: u32 = 2;
}

impl SysRegWrite for Ttbcr {}

/// Translation Table Base Register 0 in its 64-bit form: likewise.
struct Ttbr0;

impl SysReg64 for Ttbr0 {
    const CP: u32 = 15;
    const OP1: u32 = 0;
    const CRM: u32 = 2;
}

impl SysRegWrite64 for Ttbr0 {}

/// Lets the table walker see new entries before the next access.
pub(crate) fn publish() {
    dsb();
    isb();
}

/// Switches MMU and caches on.
///
/// # Safety
///
/// `root` is the root of tables that map everything that runs from here on, and its data.
pub(crate) unsafe fn enable(root: usize) {
    // SAFETY: with the MMU off none of these has an effect yet; the values are the format's.
    unsafe {
        Mair0::write(Mair::new_with_raw_value(MEMORY_ATTRIBUTES as u32));
        Ttbcr::write_raw(CONTROL);
        Ttbr0::write_raw(root as u64);
    }
    // The tables are in memory, what the TLB may hold of an earlier regime is gone, and the
    // registers above have taken effect before the MMU is on.
    dsb();
    TlbIAll::write();
    Iciallu::write();
    BpIAll::write();
    publish();
    let off = Sctlr::new_with_raw_value(CONTROL_MMU_OFF);
    Sctlr::write(off.with_m(true).with_c(true).with_i(true));
    isb();
}
