//! The interrupt halves of the controllers, where a board's interrupt entry finds them.
//!
//! Who calls it: the board's `main` puts them in ([`Attention::attach`]), its interrupt entry asks
//! ([`Attention::serve`]). Invariant: a half is put in before its interrupt is enabled, and stays.
//! Several controllers may share a line.

use core::sync::atomic::{AtomicU32, Ordering};

use rootport::host::{ehci, xhci};
use rootport::mmio::Bus;
use spin::Once;

use crate::gic::InterruptId;
use crate::wake;

/// Policy: an interrupt may come again just before its cause is cleared, and nobody claims it then;
/// so many in a row mean a line that nobody will ever quieten.
const MOST_UNCLAIMED: u32 = 1_000;

/// The interrupt half of a controller of either kind.
#[derive(Debug)]
pub enum Half<B> {
    /// Of an xHCI.
    Xhci(xhci::InterruptHalf<B>),
    /// Of an EHCI.
    Ehci(ehci::InterruptHalf<'static, B>),
}

impl<B: Bus> Half<B> {
    /// Quietens the controller; whether it was the one that called.
    fn acknowledge(&self) -> bool {
        match self {
            Self::Xhci(half) => half.acknowledge(),
            Self::Ehci(half) => half.acknowledge(),
        }
    }
}

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
pub struct Attention<B, const N: usize> {
    halves: [Once<(InterruptId, Half<B>)>; N],
    unclaimed: AtomicU32,
}

impl<B: Bus, const N: usize> Default for Attention<B, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Bus, const N: usize> Attention<B, N> {
    /// No halves.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            halves: [const { Once::new() }; N],
            unclaimed: AtomicU32::new(0),
        }
    }

    /// Puts in the half of a controller that interrupts as `id`. False if there is no place left.
    pub fn attach(&self, id: InterruptId, half: Half<B>) -> bool {
        let Some(place) = self.halves.iter().find(|place| place.get().is_none()) else {
            return false;
        };
        place.call_once(|| (id, half));
        wake::add_source();
        true
    }

    /// Quietens every controller that calls on this interrupt, and wakes the stack.
    pub fn serve(&self, id: InterruptId) -> Served {
        // They fill the array from its start.
        let attached = self.halves.iter().map_while(Once::get);
        let mut called = false;
        for (_, half) in attached.filter(|(own, _)| *own == id) {
            called |= half.acknowledge();
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
