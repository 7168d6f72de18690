//! A blocking call that is left by a panic: the caller's memory is its own again before it is unwound.
//!
//! Called when a request that borrows is dropped before it has ended. The controller is cut off, so that it reaches
//! no memory any more; and the host, which whoever catches the panic may go on to use, forgets all memory that
//! the controller had: no second pass of cache maintenance, no bounced end and no second try of a command may
//! touch it later. The controller's disks are gone.

use super::Host;
use crate::block::BlockError;
use crate::platform::{ControllerId, Platform};
use crate::scsi::transport::{ClientKind, TransportError};
use crate::time::Duration;
use crate::usb::Driver;

/// Between two tries to cut off a controller that must be.
const CUT_AGAIN: Duration = Duration::from_millis(10);

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Cuts a controller off from memory, and ends all that was under way on it. Where it cannot be cut off, the
    /// call has borrowed nothing but memory of the stack's own, which nobody gets back then.
    #[cold]
    #[inline(never)]
    pub(super) fn cut_off(&mut self, controller: ControllerId) {
        if self.surely_cut(controller) {
            for function in 0..self.functions.len() as u8 {
                if self.controller_of(function) == Some(controller) {
                    self.end_commands_of(function);
                    self.disown(function);
                }
            }
            self.end_units_of(controller, BlockError::Disconnected);
            self.bus.confirm_cut(controller, self.platform.now());
        } else {
            self.quarantine(controller);
        }
        self.free_abandoned_calls();
    }

    /// Cuts a controller off from memory that a call has borrowed. `false`: the platform has never promised that it
    /// can, and nothing was borrowed. Where it has, and breaks that, the memory is not its owner's again, and
    /// there is nothing that the call could return with: it goes on trying.
    #[cold]
    #[inline(never)]
    pub(super) fn surely_cut(&mut self, controller: ControllerId) -> bool {
        let mut was_told = false;
        while !self.platform.cut_dma(controller) {
            if !self.platform.can_cut_dma(controller) {
                return false;
            }
            if !was_told {
                self.platform.log(format_args!(
                    "usb: controller {} can't be cut off as the platform says: its call's buffer is lost",
                    controller.0,
                ));
                was_told = true;
            }
            self.platform.wait(self.platform.now() + CUT_AGAIN);
        }
        true
    }

    /// A function's commands end. What carried their data in the pool goes back to it.
    fn end_commands_of(&mut self, function: u8) {
        let now = self.platform.now();
        while let Some(client) = self.abandon(function, now) {
            if client.kind != ClientKind::Request {
                continue;
            }
            self.end_bounce(
                client.index,
                client.piece,
                Err(TransportError::Disconnected),
            );
            if let Some(slot) = self.requests.get_mut(usize::from(client.index)) {
                slot.in_flight = slot.in_flight.saturating_sub(1);
            }
        }
    }

    /// The results of blocking calls that nobody waits for any more.
    fn free_abandoned_calls(&mut self) {
        for index in 0..self.requests.len() as u8 {
            let slot = self.requests.get(usize::from(index));
            if let Some(id) = slot
                .filter(|slot| slot.is_blocking)
                .map(|slot| slot.id(index))
            {
                self.take_result(id);
            }
        }
    }
}
