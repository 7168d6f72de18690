//! What came with the end of a data or a status transfer of a Bulk-Only device, weighed before the machine is told;
//! and what the end of a command is to whoever wanted it.
//!
//! Called by the [`Transport`] when the bus reports an end. Everything here was written by the device: a
//! status counts only in its full length and with its own signature and tag (BOT 1.0 §6.3).

use super::{Sensing, Transport, layout};
use crate::dma::Dma;
use crate::host::Outcome;
use crate::scsi::cdb::DataPhase;
use crate::scsi::transport::{
    Completion, Fault, Outcome as CommandOutcome, Status, TransportError,
};
use crate::storage::bot::machine::{Action, BotError, End, Input};
use crate::storage::bot::wire::{Csw, CswFault, CswStatus};
use crate::time::Instant;
use crate::usb::{Bus, Driver};

impl Transport {
    /// The end of the data transfer: if exactly a status wrapper's length came, it may be one.
    #[inline]
    pub(super) fn data_ended(&mut self, dma: &impl Dma, outcome: Outcome, actual: u32) -> Action {
        let is_in = matches!(self.announced, DataPhase::In(_));
        let status = if is_in && outcome.is_ok() && actual as usize == Csw::LENGTH {
            self.status_in_data(dma)
        } else {
            None
        };
        self.machine.data_ended(outcome, actual, status)
    }

    #[cold]
    fn status_in_data(&mut self, dma: &impl Dma) -> Option<Result<Csw, CswFault>> {
        let mut bytes = [0; Csw::LENGTH];
        self.peek_data(dma, &mut bytes);
        Csw::is_wrapper(&bytes, self.tag)
            .then(|| Csw::parse(&bytes, self.tag, self.announced.length()))
    }

    /// The first bytes of data that came. The mapping ends here: the data transfer has ended.
    fn peek_data(&mut self, dma: &impl Dma, bytes: &mut [u8]) {
        if self.sensing.is_some() {
            self.memory.read_bytes(layout::SENSE, bytes);
        } else if let Some(mapping) = self.mapping.take() {
            mapping.unmap_and_peek(dma, bytes);
        } else {
            self.memory.read_bytes(layout::SCRATCH_AT, bytes);
        }
    }

    #[inline]
    pub(super) fn status_ended(&mut self, outcome: Outcome, actual: u32) -> Action {
        if !outcome.is_ok() {
            return self.machine.step(Input::Status(Err(outcome)));
        }
        let result = match self.memory.block::<{ Csw::ROOM }>(layout::STATUS) {
            Some(wrapper) if actual as usize == Csw::LENGTH => {
                let words = wrapper.read();
                self.check_status(words)
            }
            _ => Err(CswFault::WrongLength { found: actual }),
        };
        self.machine.status_ended(Ok(result))
    }

    /// The end of any command.
    #[cold]
    #[inline(never)]
    pub(super) fn finish<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        end: End,
        now: Instant,
    ) -> Option<CommandOutcome> {
        bus.retire(&self.bulk_out);
        if let Some(sensing) = self.sensing.take() {
            return self.finish_sense(bus, sensing, end, now);
        }
        let moved = match end {
            End::Status(_, moved) => moved,
            End::Recovered(_) | End::Broken(_) => 0,
        };
        self.unmap(dma, moved as usize);
        match end {
            End::Status(CswStatus::Failed, moved) => {
                self.ask_sense(bus, Sensing::failure(moved), now);
                None
            }
            End::Status(CswStatus::Passed, _) if self.wants_sense() => {
                self.ask_sense(bus, Sensing::FLUSH, now);
                None
            }
            End::Status(_, moved) => self.end(Ok(Completion {
                status: Status::Good,
                moved,
            })),
            End::Recovered(BotError::Timeout) => self.end(Err(TransportError::Timeout)),
            End::Recovered(error) => self.end(Err(TransportError::Protocol(error.into()))),
            End::Broken(error) => self.end(Err(TransportError::Broken(error.into()))),
        }
    }
}

impl From<BotError> for Fault {
    fn from(error: BotError) -> Self {
        match error {
            BotError::Timeout => Self::Timeout,
            BotError::PhaseError => Self::PhaseError,
            BotError::Status(_) => Self::BadStatus,
            BotError::Stalled => Self::Stall,
            BotError::Transfer(_) => Self::Wire,
        }
    }
}
