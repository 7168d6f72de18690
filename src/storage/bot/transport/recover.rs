//! What a [`Transport`] does about a command that went wrong: halts cleared, transfers taken back, reset
//! recovery (BOT 1.0 §5.3.4), and the device given up.
//!
//! Called when the machine says so. What is tried, and in which order, is the machine's business.

use super::{RECOVERY_TIMEOUT, RESET_TIMEOUT, Transport};
use crate::dma::Dma;
use crate::scsi::transport::Outcome as CommandOutcome;
use crate::storage::bot::machine::{Action, Input};
use crate::time::Instant;
use crate::usb::operation::Operation;
use crate::usb::setup::SetupPacket;
use crate::usb::{Bus, Driver, UsbError};

impl Transport {
    /// Carries out what only a command that went wrong asks for.
    #[cold]
    pub(super) fn recover<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        action: Action,
        now: Instant,
    ) -> Option<CommandOutcome> {
        let operation = match action {
            Action::GiveUp => {
                self.get_stuck();
                return None;
            }
            Action::ClearHalt(direction) => {
                let pipe = self.pipe(direction);
                Operation::ClearHalt(pipe.handle, pipe.address)
            }
            Action::Recall(direction) => Operation::Recall(self.pipe(direction).handle),
            Action::Quiesce(direction) => {
                self.deadline = now + RECOVERY_TIMEOUT;
                Operation::Quiesce(self.pipe(direction).handle)
            }
            Action::Reset => {
                self.deadline = now + RECOVERY_TIMEOUT;
                let setup = SetupPacket::bulk_only_reset(self.interface);
                Operation::Request(setup, RESET_TIMEOUT)
            }
            // `step` has carried the others out.
            _ => return None,
        };
        self.operate(bus, dma, operation, now)
    }

    /// Begins an operation on the device, or puts it behind the one under way.
    pub(super) fn operate<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        operation: Operation,
        now: Instant,
    ) -> Option<CommandOutcome> {
        match bus.operate(self.bulk_in.device, operation, now) {
            Ok(()) => None,
            Err(UsbError::Busy) => {
                self.waiting = Some(operation);
                None
            }
            // The device is being closed: the command ends with that.
            Err(UsbError::Disconnected) if bus.is_leaving(self.bulk_in.device) => {
                self.gone();
                None
            }
            Err(error) => self.step(bus, dma, Input::Operated(Err(error)), now),
        }
    }

    /// A pipe cannot be made quiet. The command ends when the device was closed, and not before: its
    /// memory may still be reached.
    fn get_stuck(&mut self) {
        self.gone();
        self.stuck = true;
        self.deadline = Instant::from_micros(0);
    }

    /// Whether the device must be closed for the command under way to end. Asked when the deadline
    /// has passed, and `true` once.
    pub fn take_stuck(&mut self) -> bool {
        if self.stuck {
            self.deadline = Instant::NEVER;
        }
        core::mem::take(&mut self.stuck)
    }
}
