//! USBSTS bits 5..0, USBINTR, the interrupt threshold and the line (EHCI 1.0 §2.3.2, §2.3.3, §4.15).

use super::{Due, Ehci, timing};
use crate::controller::Surroundings;

/// USBINT: a qTD with IOC, or a short packet.
pub(super) const COMPLETION: u32 = 1;
/// USBERRINT.
pub(super) const ERROR: u32 = 1 << 1;
pub(super) const PORT_CHANGE: u32 = 1 << 2;
pub(super) const ROLLOVER: u32 = 1 << 3;
pub(super) const HOST_SYSTEM_ERROR: u32 = 1 << 4;
pub(super) const ASYNC_ADVANCE: u32 = 1 << 5;
/// All that a driver clears by writing ones.
pub(super) const SOURCES: u32 = 0x3f;

/// The sources of interrupts.
#[derive(Debug, Default)]
pub(super) struct Interrupts {
    pub(super) status: u32,
    pub(super) enabled: u32,
    /// Completions that wait for the threshold.
    waiting: u32,
    line: bool,
    /// The line ought to be asserted, but this interrupt was lost.
    lost: bool,
    count: u64,
}

impl Interrupts {
    pub(super) fn line(&self) -> bool {
        self.line
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// HCRESET: nothing is left but the count.
    pub(super) fn reset(&mut self) {
        *self = Self {
            count: self.count,
            ..Self::default()
        };
    }
}

impl Ehci {
    /// Sets a status bit at once, as for all events of the controller itself (§4.15.2).
    pub(super) fn raise(&mut self, around: &mut Surroundings<'_>, bits: u32) {
        self.interrupts.status |= bits;
        *around.noticed = true;
        self.update_line();
    }

    /// Sets a status bit at the next interrupt threshold, as for completions (§4.15.1).
    pub(super) fn raise_at_threshold(&mut self, around: &mut Surroundings<'_>, bits: u32) {
        if self.interrupts.waiting == 0 {
            let span = self.operational.threshold() * timing::MICROFRAME;
            let at = (around.now / span + 1) * span;
            self.agenda.add(at, Due::Threshold);
        }
        self.interrupts.waiting |= bits;
    }

    pub(super) fn reach_threshold(&mut self, around: &mut Surroundings<'_>) {
        let bits = std::mem::take(&mut self.interrupts.waiting);
        if bits != 0 {
            self.raise(around, bits);
        }
    }

    pub(super) fn update_line(&mut self) {
        let wanted = self.interrupts.status & self.interrupts.enabled & SOURCES != 0;
        if !wanted {
            self.interrupts.lost = false;
        } else if !self.interrupts.line && !self.interrupts.lost {
            if self.faults.lost_interrupts == 0 {
                self.interrupts.count += 1;
            } else {
                self.faults.lost_interrupts -= 1;
                self.interrupts.lost = true;
            }
        }
        self.interrupts.line = wanted && !self.interrupts.lost;
    }
}
