//! [`Platform`]: all that the stack asks of a board or kernel.
//!
//! Implemented by the boards under `platforms/`, by an embedding kernel, and by the models. The
//! stack never reaches around it: registers come from [`Platform::Bus`], memory from
//! [`Dma`], time from [`Platform::now`].

use core::fmt;

use crate::dma::Dma;
use crate::mmio::Bus;
use crate::time::{Duration, Instant};

/// A controller of a host, by the order in which it was added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ControllerId(pub u8);

/// How the power of a root port can be switched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortPower {
    /// It cannot.
    AlwaysOn,
    /// By the controller, for this port alone.
    Port,
    /// By the platform, together with all ports that name the same rail.
    Rail(u8),
}

/// What a board or kernel provides: the time, a wait, a brake for DMA, a line for a person; with [`Dma`], which
/// knows addresses and caches. `docs/porting.md` leads through both in the order in which they are written.
///
/// The stack calls it from its own calls only ([`Host::poll`](crate::Host::poll) and the blocking face),
/// never from an interrupt handler. No method calls the host again.
pub trait Platform: Dma {
    /// How controllers' registers are reached.
    type Bus: Bus;

    /// The time. It never goes back.
    fn now(&self) -> Instant;

    /// Waits until something may have happened, at the latest until `until`, which may have passed, or be
    /// [`Instant::NEVER`].
    ///
    /// Called by the blocking face between polls, and before the first one of a request. May return early, and at
    /// once. A platform with interrupts sleeps here, and misses none: what happened since the last `wait`
    /// ends it at once. One without spins for a moment.
    fn wait(&self, until: Instant);

    /// Stops all DMA of a controller for good: bus mastering off, or the chip's reset line.
    /// Returns whether it is certain that the controller reaches no memory any more.
    ///
    /// The last resort: for a blocking call whose controller does not let go of the caller's buffer, or that a
    /// panic passes through, and for a controller that does not stop.
    /// A platform that has no such means returns `false`, and says so in
    /// [`Platform::can_cut_dma`]: its blocking reads then go through memory of the stack's own.
    fn cut_dma(&self, controller: ControllerId) -> bool;

    /// Whether [`Platform::cut_dma`] works for this controller: a promise. Where it is broken, a blocking call
    /// tries again, and does not come back before: its caller's buffer would still be the controller's.
    fn can_cut_dma(&self, controller: ControllerId) -> bool;

    /// How the power of a root port, counted from 0, can be switched: the port's fault domain, as
    /// far as power goes.
    fn port_power(&self, controller: ControllerId, port: u8) -> PortPower {
        let _ = (controller, port);
        PortPower::AlwaysOn
    }

    /// Switches a rail that [`Platform::port_power`] names as [`PortPower::Rail`]. It returns at once: the
    /// stack times how long the power stays off.
    fn switch_rail(&self, rail: u8, on: bool) {
        let _ = (rail, on);
    }

    /// A line for a person: what was found, what failed and why. Dropped by default.
    fn log(&self, line: fmt::Arguments<'_>) {
        let _ = line;
    }
}

/// A platform's clock as an [`embedded_hal::delay::DelayNs`], for drivers of pins and PHYs that
/// want one.
#[derive(Debug)]
pub struct PlatformDelay<'p, P>(pub &'p P);

impl<P: Platform> embedded_hal::delay::DelayNs for PlatformDelay<'_, P> {
    fn delay_ns(&mut self, nanoseconds: u32) {
        // One microsecond more than asked: the clock may be about to tick.
        let span = Duration::from_micros(u64::from(nanoseconds.div_ceil(1_000)) + 1);
        let until = self.0.now() + span;
        while self.0.now() < until {
            crate::arch::spin_hint();
        }
    }
}
