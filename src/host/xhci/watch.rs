//! The watch over a controller that says nothing: one that died of a bus error reports nothing any more, and its
//! disks would be found out only by the deadlines of their commands, or never while nobody wants anything.
//!
//! Called by [`poll`](super::poll) when its time has come. A controller that has told of something since the last time
//! is alive, and no register is read.

use super::Xhci;
use crate::mmio::Bus;
use crate::time::{Duration, Instant};

/// How often the controller is looked at. Policy: as an EHCI's status that is looked at for lost interrupts.
const INTERVAL: Duration = Duration::from_secs(1);

/// When the controller is looked at next, and where its event ring stood the last time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub(super) next: Instant,
    position: u32,
}

impl Watch {
    /// One that begins with the first look.
    pub(super) const NONE: Self = Self {
        next: Instant::from_micros(0),
        position: u32::MAX,
    };
}

impl<B: Bus> Xhci<'_, B> {
    /// Looks whether the controller lives, if it is time.
    pub(super) fn keep_watch(&mut self, now: Instant) {
        if now < self.watch.next {
            return;
        }
        let position = self.base.as_ref().map_or(0, |base| base.events.position());
        let was = self.watch.position;
        self.watch = Watch {
            next: now + INTERVAL,
            position,
        };
        if position == was {
            self.read_alive();
        }
    }
}
