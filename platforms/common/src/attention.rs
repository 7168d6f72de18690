//! The interrupt halves of the controllers, where a board's interrupt entry finds them.
//!
//! Who calls it: the board's `main` puts them in ([`Attention::attach`]), its interrupt entry asks
//! ([`Attention::serve`]). Invariant: a half is put in before its interrupt is enabled, and stays.
//! Several controllers may share a line.

use core::sync::atomic::{AtomicU32, Ordering};

use rootport::host::InterruptHalf;
use rootport::mmio::Bus;
use spin::Once;

use crate::gic::InterruptId;
use crate::wake;

/// Policy: an interrupt may come again just before its cause is cleared, and nobody claims it then;
/// so many in a row mean a line that nobody will ever quieten.
const MOST_UNCLAIMED: u32 = 1_000;

/// No interrupt has this number.
const NO_INTERRUPT: u32 = u32::MAX;

/// What became of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// A controller called, was quietened, and the stack was woken.
    Yes,
    /// Nobody called: a late echo.
    Nobody,
    /// Nobody has called for so long that the line should be disabled.
    Never,
}

/// The halves of at most `N` controllers.
#[derive(Debug)]
pub struct Attention<B: 'static, const N: usize> {
    halves: [Once<InterruptHalf<'static, B>>; N],
    /// The number of each one's interrupt, where an interrupt finds them soonest.
    numbers: [AtomicU32; N],
    unclaimed: AtomicU32,
}

impl<B: Bus + 'static, const N: usize> Default for Attention<B, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Bus + 'static, const N: usize> Attention<B, N> {
    /// No halves.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            halves: [const { Once::new() }; N],
            numbers: [const { AtomicU32::new(NO_INTERRUPT) }; N],
            unclaimed: AtomicU32::new(0),
        }
    }

    /// Puts in the half of a controller that interrupts as `id`. False if there is no place left.
    pub fn attach(&self, id: InterruptId, half: InterruptHalf<'static, B>) -> bool {
        let mut places = self.halves.iter().zip(&self.numbers);
        let Some((place, number)) = places.find(|(place, _)| place.get().is_none()) else {
            return false;
        };
        place.call_once(|| half);
        number.store(id.number(), Ordering::Release);
        wake::add_source();
        true
    }

    /// Quietens every controller that calls on this interrupt, and wakes the stack.
    pub fn serve(&self, id: InterruptId) -> Served {
        let mut called = false;
        for (place, number) in self.halves.iter().zip(&self.numbers) {
            let number = number.load(Ordering::Relaxed);
            if number == NO_INTERRUPT {
                // They fill the array from its start.
                break;
            }
            if number == id.number()
                && let Some(half) = place.get()
            {
                called |= half.acknowledge();
            }
        }
        if called {
            self.unclaimed.store(0, Ordering::Relaxed);
            wake::notify();
            return Served::Yes;
        }
        match self.unclaimed.fetch_add(1, Ordering::Relaxed) {
            MOST_UNCLAIMED.. => Served::Never,
            _ => Served::Nobody,
        }
    }
}
