//! What is queued on the pipes of a Bulk-Only device: the command wrapper, the data, the status.
//!
//! Called by the [`Transport`] when its machine says so. Nothing is decided here but what the controller
//! reports of each transfer: as little as the status behind it allows.

use super::{Transport, layout, part};
use crate::dma::Segment;
use crate::host::{Exchange, HostError, Report, StatusReading, Token};
use crate::scsi::cdb::DataPhase;
use crate::storage::bot::wire::Csw;
use crate::usb::setup::Direction;
use crate::usb::{Bus, Driver, Pipe};

/// What is queued behind the data on its pipe before the controller is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Follows {
    Nothing,
    Status,
}

impl Transport {
    pub(super) fn queue_command<C: Driver>(
        &self,
        bus: &mut Bus<'_, C>,
        report: Report,
    ) -> Result<(), HostError> {
        let token = self.token_of(part::COMMAND);
        bus.send_segment(&self.bulk_out, 0, token, self.wrapper, report)
    }

    /// The data of the command under way, if it is the caller's and in one piece, as nearly all is.
    #[inline]
    pub(super) fn whole_data(&self) -> Option<Segment> {
        match (&self.mapping, self.sensing) {
            (Some(mapping), None) => mapping.whole(),
            _ => None,
        }
    }

    /// Queues wrapper, data in one piece, and status: what [`Transport::queue_command`],
    /// [`Transport::queue_data`] and [`Transport::queue_rest`] do for nearly every command.
    #[inline(always)]
    pub(super) fn send_whole<C: Driver>(
        &self,
        bus: &mut Bus<'_, C>,
        data: Segment,
        reading: StatusReading,
    ) -> Result<(), HostError> {
        let (direction, report) = match (self.announced, reading) {
            (DataPhase::In(_), StatusReading::Behind) => (Direction::In, self.report_of_data()),
            (DataPhase::In(_), _) => (Direction::In, Report::Always),
            (_, StatusReading::Later) => (Direction::Out, Report::Always),
            _ => (Direction::Out, self.report_of_data()),
        };
        let driver = bus.transfer_driver(self.bulk_out.controller)?;
        driver.send_exchange(&Exchange {
            outward: self.bulk_out.handle,
            inward: self.bulk_in.handle,
            tokens: self.tokens(),
            wrapper: self.wrapper,
            data,
            direction,
            report,
            status: self.status,
            reading,
        })
    }

    /// The tokens of wrapper, data and status, which differ in their lowest bits only: see [`part`].
    #[inline]
    fn tokens(&self) -> [Token; 3] {
        const { assert!(part::COMMAND == 0) }
        let Token(command) = self.token_of(part::COMMAND);
        [part::COMMAND, part::DATA, part::STATUS].map(|part| Token(command | u32::from(part)))
    }

    /// What is told of the data where the status is queued behind them.
    #[inline]
    fn report_of_data(&self) -> Report {
        match self.announced {
            // A data phase that is as long as a status wrapper may be one: look at it.
            DataPhase::In(length) if length as usize == Csw::LENGTH => Report::Always,
            // The status behind it on the same pipe says that it is done.
            DataPhase::In(_) => Report::Unexpected,
            DataPhase::Out(_) | DataPhase::None => Report::WithoutInterrupt,
        }
    }

    /// Queues the data, if there is any, and the status behind it.
    pub(super) fn queue_rest<C: Driver>(&self, bus: &mut Bus<'_, C>) -> Result<(), HostError> {
        match self.announced {
            DataPhase::None => {}
            DataPhase::In(_) if self.holding => {
                self.queue_data(bus, Report::Always, Follows::Nothing)?;
                let token = self.token_of(part::STATUS);
                return bus.hold_segment(&self.bulk_in, token, self.status);
            }
            DataPhase::In(_) => self.queue_data(bus, self.report_of_data(), Follows::Status)?,
            DataPhase::Out(_) => self.queue_data(bus, self.report_of_data(), Follows::Nothing)?,
        }
        self.queue_status(bus)
    }

    /// Queues the data; the controller is told if nothing follows on the same pipe.
    pub(super) fn queue_data<C: Driver>(
        &self,
        bus: &mut Bus<'_, C>,
        report: Report,
        follows: Follows,
    ) -> Result<(), HostError> {
        match self.whole_data() {
            Some(segment) if follows == Follows::Nothing => {
                let token = self.token_of(part::DATA);
                bus.send_segment(self.data_pipe(), 0, token, segment, report)
            }
            Some(segment) => self.queue_pieces(bus, &[segment], report, follows),
            None => self.queue_other_data(bus, report, follows),
        }
    }

    /// Queues data that is in several pieces, or in the transport's own memory.
    #[inline(never)]
    fn queue_other_data<C: Driver>(
        &self,
        bus: &mut Bus<'_, C>,
        report: Report,
        follows: Follows,
    ) -> Result<(), HostError> {
        if let (None, Some(mapping)) = (self.sensing, &self.mapping) {
            return self.queue_pieces(bus, mapping.pieces().as_slice(), report, follows);
        }
        let at = if self.sensing.is_some() {
            layout::SENSE
        } else {
            layout::SCRATCH_AT
        };
        let memory = self.memory.raw(at, self.announced.length() as usize);
        let memory = memory.map(Segment::from).ok_or(HostError::TooLong)?;
        self.queue_pieces(bus, &[memory], report, follows)
    }

    fn queue_pieces<C: Driver>(
        &self,
        bus: &mut Bus<'_, C>,
        pieces: &[Segment],
        report: Report,
        follows: Follows,
    ) -> Result<(), HostError> {
        let tag = self.tag_of(part::DATA);
        let pipe = self.data_pipe();
        match follows {
            Follows::Nothing => bus.send(pipe, self.function, tag, pieces, report),
            Follows::Status => bus.submit(pipe, self.function, tag, pieces, report),
        }
    }

    #[inline]
    fn data_pipe(&self) -> &Pipe {
        match self.announced {
            DataPhase::Out(_) => &self.bulk_out,
            DataPhase::In(_) | DataPhase::None => &self.bulk_in,
        }
    }

    pub(super) fn queue_status<C: Driver>(&self, bus: &mut Bus<'_, C>) -> Result<(), HostError> {
        let token = self.token_of(part::STATUS);
        bus.send_segment(&self.bulk_in, 0, token, self.status, Report::Always)
    }
}
