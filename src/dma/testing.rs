//! A pool for unit tests of what lives in it.

use core::ptr::NonNull;

use super::{BusAddress, CoherentRegion, Pool, PoolRecord};

#[repr(C, align(4096))]
#[derive(Clone)]
struct Page([u8; 4096]);

/// Where the region starts for devices: above 4 GiB, and one page before a 64 KiB boundary.
pub(crate) const BUS: u64 = 0x7_0000_f000;

/// Runs `test` with a pool of `pages` pages that starts at [`BUS`], filled with rubbish.
pub(crate) fn with_pool<R>(pages: usize, test: impl FnOnce(&mut Pool<'_>) -> R) -> R {
    with_pool_at(BUS, pages, test)
}

/// The same, at another bus address.
pub(crate) fn with_pool_at<R>(bus: u64, pages: usize, test: impl FnOnce(&mut Pool<'_>) -> R) -> R {
    let mut memory = vec![Page([0xa5; 4096]); pages];
    let mut records = vec![PoolRecord::EMPTY; 64];
    let cpu = NonNull::from(memory.as_mut_slice()).cast();
    // SAFETY: the pages outlive the pool, and nothing else touches them meanwhile.
    let region = unsafe { CoherentRegion::new(cpu, BusAddress::new(bus), pages * 4096) };
    test(&mut Pool::new(region, &mut records))
}
