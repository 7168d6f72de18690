//! The one address space of the image, one to one.
//!
//! Who calls it: entry (image, devices, RAM), then the board for device registers as it finds them.
//! The registers of the MMU are the processor's own module's (`cpu::mmu`).
//! Invariant: the DMA pool has no cacheable mapping, ever: `entry.s` cleaned and invalidated its
//! lines with the MMU off, and [`AddressSpace::map_ram`] leaves the image's whole span out.

use core::cell::UnsafeCell;

use crate::cpu::mmu;
use crate::region::Region;
use crate::tables::{MapError, Memory, Tables};

/// Policy: the image needs about 12; each far-away device region takes up to 3.
const TABLES: usize = 32;

struct Shared(UnsafeCell<Tables<TABLES>>);

// SAFETY: `AddressSpace` is the only way in, there is one (`take`), and one core.
unsafe impl Sync for Shared {}

static SPACE: Shared = Shared(UnsafeCell::new(Tables::new(mmu::ROOT)));

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

/// The span between two symbols of the linker script.
fn span(start: &'static u8, end: &'static u8) -> Region {
    Region::between(&raw const *start as usize, &raw const *end as usize)
}

/// The address space. What is mapped stays mapped.
#[derive(Debug)]
pub struct AddressSpace(&'static mut Tables<TABLES>);

impl AddressSpace {
    /// The address space, empty.
    ///
    /// # Safety
    ///
    /// To be called once.
    pub(crate) unsafe fn take() -> Self {
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
        // None was valid before, so that no TLB entry has to go (DDI 0487 §D8.13.1).
        mmu::publish();
        result
    }

    /// Maps RAM as data, except what is the image's own.
    ///
    /// # Errors
    ///
    /// See [`MapError`].
    pub(crate) fn map_ram(&mut self, ram: Region) -> Result<(), MapError> {
        let image = span(&__image_start, &__image_end);
        for part in ram.to_pages().without(image) {
            self.map(part, Memory::Data)?;
        }
        Ok(())
    }

    /// Maps the image by what its parts are for; the pages below the stacks stay unmapped.
    ///
    /// # Errors
    ///
    /// See [`MapError`].
    pub(crate) fn map_image(&mut self) -> Result<(), MapError> {
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

    /// Maps what must be there before the MMU is on: the image, its console and the like, and RAM
    /// that entry reads.
    ///
    /// # Errors
    ///
    /// See [`MapError`].
    pub(crate) fn map_first(&mut self, devices: &[Region], ram: Region) -> Result<(), MapError> {
        self.map_image()?;
        for &region in devices {
            self.map(region, Memory::Device)?;
        }
        self.map_ram(ram)
    }

    /// The DMA pool, zeroed.
    pub(crate) fn take_pool(&mut self) -> Region {
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
    pub(crate) unsafe fn enable(&mut self) {
        // SAFETY: the root holds what was mapped, which is all that is used from here on.
        unsafe { mmu::enable(self.0.root()) };
    }
}
