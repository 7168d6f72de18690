//! The host bridge's windows, handed out from the bottom.

use crate::device_tree::PcieWindow;
use crate::region::Region;

/// A place in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its address on the bus: what goes into the base address register.
    pub bus: u64,
    /// The same place as the processor sees it.
    pub memory: Region,
}

/// What is left of the two memory windows of a host bridge.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    low: Option<Remaining>,
    high: Option<Remaining>,
}

#[derive(Clone, Copy, Debug)]
struct Remaining {
    window: PcieWindow,
    /// Bytes given away from its start, gaps included.
    used: usize,
}

impl Windows {
    /// The windows for addresses of 32 and of 64 bits, all free.
    #[must_use]
    pub fn new(low: Option<PcieWindow>, high: Option<PcieWindow>) -> Self {
        let all = |window: PcieWindow| Remaining { window, used: 0 };
        Self {
            low: low.map(all),
            high: high.map(all),
        }
    }

    /// A place of `size` bytes (a power of two), aligned to its size on the bus. Addresses below
    /// 4 GiB come first, whatever the base address could take: they need no table of their own.
    pub fn claim(&mut self, size: u64, is_64_bit: bool) -> Option<Claim> {
        let high = self.high.as_mut().filter(|_| is_64_bit);
        self.low
            .as_mut()
            .and_then(|window| window.claim(size))
            .or_else(|| high.and_then(|window| window.claim(size)))
    }
}

impl Remaining {
    fn claim(&mut self, size: u64) -> Option<Claim> {
        let bus = self
            .window
            .bus
            .checked_add(self.used as u64)?
            .checked_next_multiple_of(size)?;
        let offset = usize::try_from(bus - self.window.bus).ok()?;
        let length = usize::try_from(size).ok()?;
        let used = offset.checked_add(length)?;
        if used > self.window.memory.length {
            return None;
        }
        self.used = used;
        Some(Claim {
            bus,
            memory: Region::new(self.window.memory.start + offset, length),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Windows;
    use crate::device_tree::PcieWindow;
    use crate::region::Region;

    #[test]
    fn places_are_aligned_on_the_bus_and_do_not_overlap() {
        let window = PcieWindow {
            bus: 0x1000,
            memory: Region::new(0x9000_1000, 0x1_0000),
        };
        let mut windows = Windows::new(Some(window), None);
        let small = windows.claim(0x100, false).unwrap();
        let large = windows.claim(0x4000, false).unwrap();
        assert_eq!((small.bus, small.memory.start), (0x1000, 0x9000_1000));
        assert_eq!((large.bus, large.memory.start), (0x4000, 0x9000_4000));
        assert_eq!(windows.claim(0x100, false).unwrap().bus, 0x8000);
    }

    #[test]
    fn a_full_window_refuses_and_stays_as_it_is() {
        let window = PcieWindow {
            bus: 0,
            memory: Region::new(0, 0x3000),
        };
        let mut windows = Windows::new(Some(window), None);
        windows.claim(0x1000, false).unwrap();
        assert_eq!(windows.claim(0x4000, true), None);
        assert_eq!(windows.claim(0x1000, false).unwrap().bus, 0x1000);
    }
}
