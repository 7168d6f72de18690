//! The MMU: translation regime of EL1.
//!
//! Who calls it: `AddressSpace`. Read first: DDI 0487 §D8.1.

use core::arch::asm;

use aarch64_cpu::asm::barrier;
use aarch64_cpu::registers::{
    ID_AA64MMFR0_EL1, MAIR_EL1, Readable, SCTLR_EL1, TCR_EL1, TTBR0_EL1, Writeable,
};

use crate::tables::{MEMORY_ATTRIBUTES, Root};

/// SCTLR_EL1 with its bits that are 1 in ARMv8.0 (DDI 0487 §D17.2.118) and all else off.
pub(super) const CONTROL_MMU_OFF: u64 = 0x30d0_0800;

/// The form of the tables.
pub(crate) const ROOT: Root = Root::Level0;

/// Virtual addresses of 48 bits: T0SZ of TCR_EL1.
const UNUSED_ADDRESS_BITS: u64 = 64 - 48;

/// Lets the table walker see new entries before the next access.
pub(crate) fn publish() {
    barrier::dsb(barrier::ISHST);
    barrier::isb(barrier::SY);
}

/// Switches MMU and caches on.
///
/// # Safety
///
/// `root` is the root of tables that map everything that runs from here on, and its data.
pub(crate) unsafe fn enable(root: usize) {
    MAIR_EL1.set(MEMORY_ATTRIBUTES);
    TTBR0_EL1.set(root as u64);
    TCR_EL1.write(
        TCR_EL1::EPD1::DisableTTBR1Walks
            + TCR_EL1::TG0::KiB_4
            + TCR_EL1::SH0::Inner
            + TCR_EL1::ORGN0::WriteBack_ReadAlloc_WriteAlloc_Cacheable
            + TCR_EL1::IRGN0::WriteBack_ReadAlloc_WriteAlloc_Cacheable
            + TCR_EL1::IPS.val(physical_size())
            + TCR_EL1::T0SZ.val(UNUSED_ADDRESS_BITS),
    );
    // The tables are in memory, what the TLB may hold of an earlier regime is gone, and the
    // registers above have taken effect before the MMU is on.
    barrier::dsb(barrier::SY);
    // SAFETY: drops cached translations, of which nothing depends with the MMU off; there is
    // no intrinsic and no register name for it.
    unsafe { asm!("tlbi vmalle1", "dsb nsh", "isb", options(nostack)) };
    let on = SCTLR_EL1::M::SET + SCTLR_EL1::C::SET + SCTLR_EL1::I::SET + SCTLR_EL1::SA::SET;
    SCTLR_EL1.set(CONTROL_MMU_OFF | on.value);
    barrier::isb(barrier::SY);
}

/// IPS of TCR_EL1: what the core implements, but not the 52 bits that need larger granules.
fn physical_size() -> u64 {
    const BITS_48: u64 = 5;
    ID_AA64MMFR0_EL1
        .read(ID_AA64MMFR0_EL1::PARange)
        .min(BITS_48)
}
