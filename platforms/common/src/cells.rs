//! Memory for drivers, in statics: a piece for each controller that there may be, each taken once.
//!
//! Who calls it: a board, for each controller that it finds. A controller that cannot be used keeps the piece that
//! it was tried with. So a piece has nothing to do with a driver's number, which only those get that can be used:
//! with as many pieces as controllers, nobody goes without one.

use static_cell::ConstStaticCell;

/// Takes a piece that nobody has; `None` when all were taken.
pub fn take<T>(pieces: &'static [ConstStaticCell<T>]) -> Option<&'static mut T> {
    pieces.iter().find_map(ConstStaticCell::try_take)
}

#[cfg(test)]
mod tests {
    use core::ptr::NonNull;
    use std::boxed::Box;
    use std::vec::Vec;

    use rootport::host::ehci::{Ehci, EhciMemory, Options};
    use rootport::mmio::MmioWindow;

    use super::*;

    type Memory = EhciMemory<1, 3, 8>;

    /// The registers of an EHCI, by its first word: CAPLENGTH and HCIVERSION (EHCI 1.0 §2.2), then one port.
    fn registers(first: u32) -> MmioWindow {
        let words: &'static mut [u64; 32] = Box::leak(Box::new([0; 32]));
        words[0] = 1 << 32 | u64::from(first);
        let base = NonNull::from(words).cast();
        // SAFETY: the memory is aligned, has this length, and is never freed nor reached otherwise.
        unsafe { MmioWindow::new(base, 256) }
    }

    #[test]
    fn a_controller_that_cannot_be_used_leaves_each_of_the_others_a_piece() {
        static PIECES: [ConstStaticCell<Memory>; 4] =
            [const { ConstStaticCell::new(Memory::new()) }; 4];
        const GOOD: u32 = 0x0100_0010;
        const GONE: u32 = u32::MAX;
        let mut drivers: Vec<Ehci<'static, MmioWindow>> = Vec::new();
        for first in [GONE, GOOD, GOOD, GOOD] {
            let memory = take(&PIECES).expect("as many pieces as controllers");
            let number = drivers.len() as u8;
            let made = Ehci::new(
                registers(first),
                number,
                memory.slices(),
                Options::default(),
            );
            drivers.extend(made.ok());
        }
        assert_eq!(drivers.len(), 3);
        assert!(take(&PIECES).is_none(), "each was taken once");
    }
}
