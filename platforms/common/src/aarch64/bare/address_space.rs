//! The one address space of the image: translation regime of EL1, one to one.
//!
//! Who calls it: entry (image, devices, RAM), then the board for device registers as it finds them.
//! Invariant: the DMA pool has no cacheable mapping, ever: `entry.s` cleaned and invalidated its
//! lines with the MMU off, and [`AddressSpace::map_ram`] leaves the image's whole span out.

use core::arch::asm;
use core::cell::UnsafeCell;

use aarch64_cpu::asm::barrier;
use aarch64_cpu::registers::{
    ID_AA64MMFR0_EL1, MAIR_EL1, Readable, SCTLR_EL1, TCR_EL1, TTBR0_EL1, Writeable,
};

use crate::aarch64::tables::{MEMORY_ATTRIBUTES, MapError, Memory, Tables};
use crate::region::Region;

/// SCTLR_EL1 with its bits that are 1 in ARMv8.0 (DDI 0487 §D17.2.118) and all else off.
pub(super) const CONTROL_MMU_OFF: u64 = 0x30d0_0800;

/// Policy: the image needs about 12; each far-away device region takes up to 3.
const TABLES: usize = 32;

/// Virtual addresses of 48 bits: T0SZ of TCR_EL1.
const UNUSED_ADDRESS_BITS: u64 = 64 - 48;

struct Shared(UnsafeCell<Tables<TABLES>>);

// SAFETY: `AddressSpace` is the only way in, there is one (`take`), and one core.
unsafe impl Sync for Shared {}

static SPACE: Shared = Shared(UnsafeCell::new(Tables::new()));

unsafe extern "C" {
    safe static __image_start: u8;
    safe static __text_end: u8;
    safe static __rodata_end: u8;
    safe static __writable_end: u8;
    safe static __exception_stack_start: u8;
    safe static __exception_stack_end: u8;
    safe static __main_stack_start: u8;
    safe static __main_stack_end: u8;
    safe static __dma_pool_start: u8;
    safe static __dma_pool_end: u8;
    safe static __image_end: u8;
}

/// The span between two symbols of `linker/aarch64.ld`.
fn span(start: &'static u8, end: &'static u8) -> Region {
    Region::between(&raw const *start as usize, &raw const *end as usize)
}

/// The address space. What is mapped stays mapped.
#[derive(Debug)]
pub struct AddressSpace(&'static mut Tables<TABLES>);

impl AddressSpace {
    /// # Safety
    ///
    /// To be called once.
    pub(super) unsafe fn take() -> Self {
        // SAFETY: called once, so that this is the only reference.
        Self(unsafe { &mut *SPACE.0.get() })
    }

    /// Maps `region`, widened to whole pages, one to one.
    ///
    /// # Errors
    ///
    /// See [`MapError`].
    pub fn map(&mut self, region: Region, memory: Memory) -> Result<(), MapError> {
        let result = self.0.map(region.to_pages(), memory);
        // The walker sees the new entries before the next access; none was valid before, so that
        // no TLB entry has to go (DDI 0487 §D8.13.1).
        barrier::dsb(barrier::ISHST);
        barrier::isb(barrier::SY);
        result
    }

    /// Maps RAM as data, except what is the image's own.
    pub(super) fn map_ram(&mut self, ram: Region) -> Result<(), MapError> {
        let image = span(&__image_start, &__image_end);
        for part in ram.to_pages().without(image) {
            self.map(part, Memory::Data)?;
        }
        Ok(())
    }

    /// Maps the image by what its parts are for; the pages below the stacks stay unmapped.
    pub(super) fn map_image(&mut self) -> Result<(), MapError> {
        let parts = [
            (span(&__image_start, &__text_end), Memory::Code),
            (span(&__text_end, &__rodata_end), Memory::Constants),
            (span(&__rodata_end, &__writable_end), Memory::Data),
            (
                span(&__exception_stack_start, &__exception_stack_end),
                Memory::Data,
            ),
            (span(&__main_stack_start, &__main_stack_end), Memory::Data),
            (span(&__dma_pool_start, &__dma_pool_end), Memory::Uncached),
        ];
        parts
            .into_iter()
            .try_for_each(|(region, memory)| self.map(region, memory))
    }

    /// The DMA pool, zeroed.
    pub(super) fn take_pool(&mut self) -> Region {
        let pool = span(&__dma_pool_start, &__dma_pool_end);
        // SAFETY: the linker script gives the pool to nobody else, it is mapped and writable, and
        // no device knows of it yet.
        unsafe { core::ptr::write_bytes(pool.start as *mut u8, 0, pool.length) };
        pool
    }

    /// Switches MMU and caches on.
    ///
    /// # Safety
    ///
    /// Everything that runs from here on, and its data, must be mapped.
    pub(super) unsafe fn enable(&mut self) {
        MAIR_EL1.set(MEMORY_ATTRIBUTES);
        TTBR0_EL1.set(self.0.root() as u64);
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
}

/// IPS of TCR_EL1: what the core implements, but not the 52 bits that need larger granules.
fn physical_size() -> u64 {
    const BITS_48: u64 = 5;
    ID_AA64MMFR0_EL1
        .read(ID_AA64MMFR0_EL1::PARange)
        .min(BITS_48)
}
