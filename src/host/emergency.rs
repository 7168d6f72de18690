//! Stopping a controller when nothing is known to be sane: for panic handlers and exception reports.
//!
//! Made with the driver and kept by the platform beside the interrupt half. It shares nothing with the
//! driver but the registers: it takes no lock, uses no memory, and does not care in the middle of what
//! the host was left. It flushes no disk and tells nobody; the host is not to be used afterwards. The
//! careful way out is [`Host::shutdown`](crate::Host::shutdown).

use core::convert::Infallible;
use core::marker::PhantomData;

use crate::mmio::Bus;
use crate::time::Instant;

/// The brake of a controller of any kind that was built in.
#[derive(Debug)]
pub enum EmergencyStop<B> {
    /// An xHCI's.
    #[cfg(feature = "xhci")]
    Xhci(super::xhci::EmergencyStop<B>),
    /// An EHCI's.
    #[cfg(feature = "ehci")]
    Ehci(super::ehci::EmergencyStop<B>),
    /// None: cannot be made.
    #[doc(hidden)]
    Never(Infallible, PhantomData<B>),
}

impl<B: Bus> EmergencyStop<B> {
    /// Halts and resets the controller; `now` is the platform's clock, which is all that it waits by.
    ///
    /// `true` if it has stopped: it reaches no memory any more. Bounded: at most 1.1 s, and a few
    /// milliseconds with a healthy controller.
    #[cfg_attr(not(any(feature = "xhci", feature = "ehci")), expect(unused_variables))]
    pub fn stop(&self, now: impl Fn() -> Instant) -> bool {
        match self {
            #[cfg(feature = "xhci")]
            Self::Xhci(brake) => brake.stop(now),
            #[cfg(feature = "ehci")]
            Self::Ehci(brake) => brake.stop(now),
            Self::Never(never, _) => match *never {},
        }
    }
}

/// Waits until `done` says so, for `time` at most. What it said last.
#[cfg(any(feature = "xhci", feature = "ehci"))]
pub(super) fn wait(
    now: &impl Fn() -> Instant,
    time: crate::time::Duration,
    mut done: impl FnMut() -> bool,
) -> bool {
    let deadline = now() + time;
    loop {
        if done() {
            return true;
        }
        if now() >= deadline {
            return false;
        }
        crate::arch::spin_hint();
    }
}
