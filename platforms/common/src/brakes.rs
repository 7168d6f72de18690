//! The brakes of the controllers, where a panic handler finds them.
//!
//! Who calls it: the board's `main` puts them in, panics and exception reports pull them all
//! ([`Brakes::pull`]) before the machine goes off: whatever comes next must not find its memory written to.
//! No lock is taken: `Once::get` is a load. A controller whose brake does not hold is cut off from memory; one that
//! was cut off already has no register that may be touched.

use rootport::host::EmergencyStop;
use rootport::mmio::Bus;
use rootport::time::Instant;
use spin::Once;

use crate::println;

/// How a board takes a controller's DMA away.
pub trait CutDma {
    /// Takes it away; true when it is certain that the controller reaches no memory any more.
    fn cut_dma(&self) -> bool;

    /// Whether it was taken away in a manner that leaves no register to be touched: a reset line, a clock.
    fn is_cut(&self) -> bool {
        false
    }
}

/// The brakes of at most `N` controllers, and how each is cut off, by a `C`.
#[derive(Debug)]
pub struct Brakes<B, C, const N: usize>([Once<(EmergencyStop<B>, C)>; N]);

impl<B: Bus, C: CutDma, const N: usize> Default for Brakes<B, C, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Bus, C: CutDma, const N: usize> Brakes<B, C, N> {
    /// No brakes.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { Once::new() }; N])
    }

    /// Puts in the brake of the controller `index`, and what cuts it off. The first ones stay.
    pub fn attach(&self, index: usize, brake: EmergencyStop<B>, cut: C) {
        if let Some(place) = self.0.get(index) {
            place.call_once(|| (brake, cut));
        }
    }

    /// Stops all controllers, and says how many of them did. `microseconds` is the board's clock.
    pub fn pull(&self, microseconds: fn() -> u64) {
        let (all, stopped) = self.stop_all(|| Instant::from_micros(microseconds()));
        if all != 0 {
            println!("@quiet controllers={all} stopped={stopped}");
        }
    }

    /// How many there are, and how many of them reach no memory now.
    fn stop_all(&self, now: impl Fn() -> Instant) -> (u32, u32) {
        let attached = self.0.iter().filter_map(Once::get);
        attached.fold((0, 0), |(all, stopped), (brake, cut)| {
            let is_quiet = cut.is_cut() || brake.stop(&now) || cut.cut_dma();
            (all + 1, stopped + u32::from(is_quiet))
        })
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use std::boxed::Box;
    use std::rc::Rc;

    use rootport::host::EmergencyStop;
    use rootport::host::ehci::{Ehci, EhciMemory, Options};

    use super::*;

    /// An EHCI (EHCI 1.0 §2.2, §2.3: operational registers from 0x10 on, one port) that does not halt; and the
    /// means to cut it off, if it has any.
    #[derive(Clone, Debug)]
    struct Runaway {
        is_cut: Rc<Cell<bool>>,
        can_be_cut: bool,
    }

    impl Bus for Runaway {
        fn length(&self) -> usize {
            0x400
        }

        fn read8(&self, offset: usize) -> u8 {
            self.read32(offset & !3) as u8
        }

        fn read16(&self, offset: usize) -> u16 {
            (self.read32(offset & !3) >> (8 * (offset & 2))) as u16
        }

        fn read32(&self, offset: usize) -> u32 {
            assert!(!self.is_cut.get(), "a register of a controller in reset");
            match offset {
                0 => 0x0100_0010,
                4 => 1,
                _ => 0,
            }
        }

        fn write8(&self, _offset: usize, _value: u8) {}

        fn write16(&self, _offset: usize, _value: u16) {}

        fn write32(&self, _offset: usize, _value: u32) {
            assert!(!self.is_cut.get(), "a register of a controller in reset");
        }
    }

    impl CutDma for Runaway {
        fn cut_dma(&self) -> bool {
            self.is_cut.set(self.can_be_cut);
            self.can_be_cut
        }

        fn is_cut(&self) -> bool {
            self.is_cut.get()
        }
    }

    /// Its brakes are pulled twice: a report may be cut short by another one.
    fn pulled_twice(can_be_cut: bool) -> [(u32, u32); 2] {
        let chip = Runaway {
            is_cut: Rc::default(),
            can_be_cut,
        };
        let memory: &'static mut EhciMemory<1, 3, 8> = Box::leak(Box::new(EhciMemory::new()));
        let driver = Ehci::new(chip.clone(), 0, memory.slices(), Options::default()).unwrap();
        let brakes = Brakes::<_, _, 2>::new();
        let brake = EmergencyStop::Ehci(driver.emergency_stop());
        brakes.attach(0, brake, chip);
        let clock = Cell::new(0);
        let now = || Instant::from_micros(clock.replace(clock.get() + 1_000));
        [brakes.stop_all(now), brakes.stop_all(now)]
    }

    #[test]
    fn a_controller_whose_brake_does_not_hold_is_cut_off_and_not_touched_again() {
        assert_eq!(pulled_twice(true), [(1, 1), (1, 1)]);
    }

    #[test]
    fn a_controller_that_nothing_stops_is_not_counted_as_stopped() {
        assert_eq!(pulled_twice(false), [(1, 0), (1, 0)]);
    }
}
