//! The next stage: what a boot loader starts when the stack has gone.
//!
//! It takes the memory that controllers had their structures in, fills it with a pattern of its own,
//! waits, and looks whether anything has written to it. The controllers are still allowed to master
//! their bus: nothing but their being stopped protects it.

use core::ptr::NonNull;

use rootport::dma::CoherentRegion;

use crate::power::Reason;
use crate::println;

/// The word at index i is i times this, inverted, modulo 2^64: nothing that a controller writes.
const FACTOR: u64 = 0xd1b5_4a32_d192_ed03;

/// Runs on what was the pool, for so many milliseconds by a clock of microseconds.
///
/// # Errors
///
/// Something has changed it.
pub fn run(pool: CoherentRegion, clock: fn() -> u64, milliseconds: u64) -> Result<(), Reason> {
    let memory = Memory(pool);
    memory.fill();
    let bytes = memory.words() * 8;
    println!("@watch bytes={bytes} milliseconds={milliseconds}");
    let end = clock() + milliseconds * 1_000;
    while clock() < end {
        core::hint::spin_loop();
    }
    let changed = memory.count_changed();
    println!("next stage: {bytes} bytes of the old pool, watched for {milliseconds} ms");
    println!("@payload bytes={bytes} milliseconds={milliseconds} changed={changed}");
    if changed == 0 {
        Ok(())
    } else {
        Err(Reason::new(format_args!(
            "{changed} words of the old pool were written to after the stack had left"
        )))
    }
}

/// The pool's memory, in words of 64 bits.
struct Memory(CoherentRegion);

impl Memory {
    fn words(&self) -> usize {
        self.0.length() / 8
    }

    fn at(&self, index: usize) -> NonNull<u64> {
        debug_assert!(index < self.words());
        // SAFETY: inside the region, whose start is a multiple of 4096.
        unsafe { self.0.cpu().cast().add(index) }
    }

    fn fill(&self) {
        for index in 0..self.words() {
            // SAFETY: aligned and inside the region, which we own and nobody borrows.
            unsafe { self.at(index).write_volatile(word(index)) }
        }
    }

    fn count_changed(&self) -> usize {
        // SAFETY: as above.
        let is_changed = |&index: &usize| unsafe { self.at(index).read_volatile() } != word(index);
        (0..self.words()).filter(is_changed).count()
    }
}

fn word(index: usize) -> u64 {
    !(index as u64).wrapping_mul(FACTOR)
}
