//! The interrupt half: what an interrupt handler may touch of a controller, and nothing else.
//!
//! Made by [`Xhci::interrupt_half`](super::Xhci::interrupt_half), kept by the platform next to its
//! interrupt table. It shares no lock and no state with the driver: it quietens the controller and
//! remembers that something is to be polled. All work is in `poll`, so a handler that interrupts the
//! host in the middle of anything cannot deadlock. Read `xHCI 1.2 §4.17`.

use core::sync::atomic::{AtomicBool, Ordering};

use super::regs::{Blocks, IMAN, USBSTS, interrupter, operational};
use crate::mmio::{Bus, ChangeBits};

/// How the controller calls for attention.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Interrupts {
    /// Not at all.
    #[default]
    Polled,
    /// By a level on a wire, which stays until it is acknowledged.
    Wired,
    /// By a message (MSI or MSI-X), which the controller counts as acknowledged when it is sent.
    Message,
}

/// The registers that acknowledge an interrupt, and what it left to do.
#[derive(Debug)]
pub struct InterruptHalf<B> {
    blocks: Blocks<B>,
    kind: Interrupts,
    pending: AtomicBool,
}

impl<B: Bus> InterruptHalf<B> {
    pub(super) fn new(blocks: Blocks<B>, kind: Interrupts) -> Self {
        Self {
            blocks,
            kind,
            pending: AtomicBool::new(false),
        }
    }

    /// Called by the interrupt handler. Returns whether the interrupt was this controller's: a wire
    /// may be shared.
    ///
    /// A message touches no register. A wire costs one read and two writes: the summary bit is
    /// cleared before the interrupter's, so that an event in between raises the level again.
    #[inline]
    pub fn acknowledge(&self) -> bool {
        if self.kind == Interrupts::Message {
            self.pending.store(true, Ordering::Release);
            return true;
        }
        let status = self.blocks.read_status();
        if status.get() == u32::MAX
            || !status.any_matching_bits_set(USBSTS::EINT::SET + USBSTS::HSE::SET)
        {
            return false;
        }
        let summary = ChangeBits::none().with(USBSTS::EINT::SET);
        self.blocks.operational.change(operational::USBSTS, summary);
        let interrupter = ChangeBits::none().with(IMAN::IE::SET).with(IMAN::IP::SET);
        self.blocks.runtime.change(interrupter::IMAN, interrupter);
        self.pending.store(true, Ordering::Release);
        true
    }

    /// Whether an interrupt came since the last call: the host is to be polled.
    pub fn take_pending(&self) -> bool {
        self.pending.swap(false, Ordering::AcqRel)
    }
}
