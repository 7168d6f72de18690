//! Endpoints: opened, fed, stopped and started again.
//!
//! The trait's part three. Submitting and ringing are short and touch only the endpoint's own
//! record; what takes commands is a small machine in [`recovery`](super::recovery). Read
//! `xHCI 1.2 §4.8`.

use super::command::Command;
use super::records::Records;
use super::streams::{StreamRecord, StreamSet, most_streams};
use super::transfer::TransferRing;
use super::trb::Trb;
use super::{Xhci, context, device_at, endpoint_at};
use crate::dma::{Allocation, Pool, Segment, release};
use crate::host::{
    DeviceHandle, EndpointConfig, EndpointHandle, EndpointKind, Endpoints, Exchange, Handling,
    HostError, Report, Sequence, StatusReading, Token, Transfer, TransferEnd,
};
use crate::mmio::Bus;
use crate::time::Instant;
use crate::usb::setup::Direction;

/// An endpoint. The caller of the driver provides a slice of them.
#[derive(Debug)]
pub struct EndpointRecord {
    pub(super) generation: u8,
    pub(super) state: EndpointState,
    /// Place of its device.
    pub(super) device: u8,
    /// The controller's number for the device.
    pub(super) slot: u8,
    /// Device context index.
    pub(super) dci: u8,
    pub(super) config: EndpointConfig,
    /// Its ring, if it has no streams.
    pub(super) transfers: Option<TransferRing>,
    pub(super) streams: Option<StreamSet>,
    pub(super) work: EndpointWork,
    pub(super) command: Option<Command>,
    /// Reset Endpoint has set the sequence to zero since it last ran.
    pub(super) sequence_reset: bool,
}

/// What an endpoint is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EndpointState {
    Free,
    /// Opened, not configured yet.
    Staged,
    /// Takes transfers.
    Running,
    /// A transfer has failed.
    Halted,
    /// Quiesced.
    Stopped,
    /// Closed; the controller is told by the next configuration.
    Dropping,
    /// Closed before the controller ever knew of it.
    Discarded,
}

/// What an endpoint has under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EndpointWork {
    Idle,
    /// Stop Endpoint, the how manieth.
    Stopping(u8),
    /// Reset Endpoint, after so many other commands.
    Resetting(u8),
    /// The controller has let go; transfers are to be reported.
    Draining,
    SettingDequeue,
    /// Configure Endpoint, to set the sequence to zero.
    Reconfiguring,
    /// To be reported.
    Finished(Result<(), HostError>),
}

impl EndpointRecord {
    /// An unused place.
    pub const EMPTY: Self = Self {
        generation: 0,
        state: EndpointState::Free,
        device: u8::MAX,
        slot: 0,
        dci: 0,
        config: EndpointConfig {
            number: 0,
            direction: Direction::In,
            kind: EndpointKind::Control,
            max_packet: 8,
            max_burst: 0,
            interval: 0,
            transfers: 0,
            longest: 0,
            streams: 0,
        },
        transfers: None,
        streams: None,
        work: EndpointWork::Idle,
        command: None,
        sequence_reset: false,
    };

    /// The handle of the endpoint at `place`.
    #[inline]
    pub(super) fn handle(&self, place: usize) -> EndpointHandle {
        EndpointHandle {
            index: place as u8,
            generation: self.generation,
        }
    }

    /// Whether the controller calls it so. A free one it may call 0, and finds no ring there.
    #[inline(always)]
    pub(super) fn is_known_as(&self, slot: u8, dci: u8) -> bool {
        self.slot == slot && self.dci == dci
    }

    /// Forgets everything but which use of the place comes next. Returns the memory of its rings,
    /// which is the caller's affair.
    pub(super) fn vacate(
        &mut self,
        streams: &mut [StreamRecord],
        records: &mut Records<'_>,
    ) -> Option<Allocation> {
        let in_use = self.state != EndpointState::Free;
        let ring = self.transfers.take().map(|mut transfers| {
            transfers.clear(records);
            let (ring, chain) = transfers.into_parts();
            records.unreserve(chain);
            ring.into_memory()
        });
        let set = self.streams.take();
        let memory = ring.or(set.map(|set| set.close(streams, records)));
        *self = Self {
            generation: self.generation.wrapping_add(u8::from(in_use)),
            ..Self::EMPTY
        };
        memory
    }

    /// Whether the next configuration has it.
    pub(super) fn will_be_used(&self) -> bool {
        match self.state {
            EndpointState::Staged
            | EndpointState::Running
            | EndpointState::Halted
            | EndpointState::Stopped => true,
            EndpointState::Free | EndpointState::Dropping | EndpointState::Discarded => false,
        }
    }

    /// Why it takes no transfers now.
    #[cold]
    fn refusal(&self) -> HostError {
        match self.state {
            EndpointState::Running | EndpointState::Staged => HostError::Busy,
            EndpointState::Halted | EndpointState::Stopped => HostError::Halted,
            EndpointState::Free | EndpointState::Dropping | EndpointState::Discarded => {
                HostError::Stale
            }
        }
    }

    /// Whether nothing is in flight on any ring of it.
    fn has_nothing_in_flight(&self, streams: &[StreamRecord]) -> bool {
        match &self.streams {
            Some(set) => set.is_idle(streams),
            None => self.transfers.as_ref().is_none_or(TransferRing::is_idle),
        }
    }

    /// Takes the oldest transfer back that is to be: of an endpoint that was stopped, or of one whose
    /// device is closed.
    pub(super) fn drain(
        &mut self,
        streams: &mut [StreamRecord],
        records: &mut Records<'_>,
        all: bool,
    ) -> Option<TransferEnd> {
        match &self.streams {
            Some(set) => set.drain(streams, records, all),
            None => self.transfers.as_mut()?.drain(records),
        }
    }

    /// Whether nothing is in flight or under way.
    pub(super) fn is_idle(&self, streams: &[StreamRecord]) -> bool {
        self.work == EndpointWork::Idle && self.has_nothing_in_flight(streams)
    }

    /// Queues a transfer, if the endpoint takes one now.
    #[inline(always)]
    fn submit(
        &mut self,
        streams: &mut [StreamRecord],
        records: &mut Records<'_>,
        transfer: &Transfer<'_>,
    ) -> Result<(), HostError> {
        if self.state != EndpointState::Running || self.work != EndpointWork::Idle {
            return Err(self.refusal());
        }
        let ring = self.ring(streams, transfer.stream);
        ring.ok_or(HostError::Unsupported)?
            .submit(records, transfer)
    }

    /// The ring of one of its streams; of itself, if it has none.
    #[inline(always)]
    fn ring<'r>(
        &'r mut self,
        streams: &'r mut [StreamRecord],
        stream: u16,
    ) -> Option<&'r mut TransferRing> {
        match (&mut self.transfers, &self.streams) {
            (Some(ring), _) if stream == 0 => Some(ring),
            (None, Some(set)) => set.ring(streams, stream),
            _ => None,
        }
    }

    /// The ring that an event of it is about.
    #[inline(always)]
    pub(super) fn ring_of<'r>(
        &'r mut self,
        streams: &'r mut [StreamRecord],
        event: &Trb,
    ) -> Option<&'r mut TransferRing> {
        match (&mut self.transfers, &self.streams) {
            (Some(ring), _) => Some(ring),
            (None, Some(set)) => set.ring_at(streams, event.parameter),
            (None, None) => None,
        }
    }

    /// Its ring, if it takes transfers now and has no streams.
    #[inline]
    fn plain_ring(&mut self) -> Result<&mut TransferRing, HostError> {
        if self.state != EndpointState::Running || self.work != EndpointWork::Idle {
            return Err(self.refusal());
        }
        self.transfers.as_mut().ok_or(HostError::Unsupported)
    }

    /// Whether it takes transfers for this handle now.
    #[inline(always)]
    fn takes_transfers(&self, handle: EndpointHandle) -> bool {
        self.generation == handle.generation
            && self.state == EndpointState::Running
            && self.work == EndpointWork::Idle
    }

    /// The packet size has changed.
    pub(super) fn set_max_packet(&mut self, bytes: u16) {
        self.config.max_packet = bytes;
        if let Some(transfers) = &mut self.transfers {
            transfers.set_max_packet(bytes);
        }
    }
}

impl<B: Bus> Endpoints for Xhci<'_, B> {
    fn open_endpoint(
        &mut self,
        pool: &mut Pool<'_>,
        device: DeviceHandle,
        config: &EndpointConfig,
    ) -> Result<EndpointHandle, HostError> {
        self.check_running()?;
        let index = device_at(self.devices, device)?;
        let has_streams =
            config.kind == EndpointKind::Bulk && config.streams <= most_streams(&self.parameters);
        if config.number == 0 || config.streams != 0 && !has_streams {
            return Err(HostError::Unsupported);
        }
        self.free_discarded(pool, index);
        let dci = context::context_index(config);
        let device = self.devices.get(index).ok_or(HostError::Stale)?;
        let previous = device
            .endpoint(dci)
            .and_then(|place| self.endpoints.get(place));
        if previous.is_some_and(EndpointRecord::will_be_used) {
            return Err(HostError::Busy);
        }
        self.reserve_endpoint(pool, index, config)
    }

    fn close_endpoint(
        &mut self,
        pool: &mut Pool<'_>,
        endpoint: EndpointHandle,
    ) -> Result<(), HostError> {
        let endpoint = endpoint_at(self.endpoints, endpoint)?;
        if !endpoint.is_idle(self.streams) {
            return Err(HostError::Busy);
        }
        endpoint.state = match endpoint.state {
            EndpointState::Staged | EndpointState::Discarded => EndpointState::Discarded,
            _ => EndpointState::Dropping,
        };
        let index = usize::from(endpoint.device);
        self.free_discarded(pool, index);
        Ok(())
    }

    fn submit(
        &mut self,
        endpoint: EndpointHandle,
        transfer: &Transfer<'_>,
    ) -> Result<(), HostError> {
        let endpoint = endpoint_at(self.endpoints, endpoint)?;
        endpoint.submit(self.streams, &mut self.records, transfer)
    }

    fn send(&mut self, endpoint: EndpointHandle, transfer: &Transfer<'_>) -> Result<(), HostError> {
        let endpoint = endpoint_at(self.endpoints, endpoint)?;
        endpoint.submit(self.streams, &mut self.records, transfer)?;
        release();
        let stream = transfer.stream;
        self.blocks.ring(endpoint.slot, endpoint.dci, stream);
        Ok(())
    }

    #[inline(never)]
    fn send_segment(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
        handling: Handling,
    ) -> Result<(), HostError> {
        if let Some((slot, index)) = self.place_segment(endpoint, token, segment, handling) {
            release();
            self.blocks.ring(slot, index, handling.stream);
            return Ok(());
        }
        self.send_otherwise(endpoint, token, segment, handling)
    }

    #[inline(never)]
    fn submit_segment(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
        handling: Handling,
    ) -> Result<(), HostError> {
        if self
            .place_segment(endpoint, token, segment, handling)
            .is_some()
        {
            return Ok(());
        }
        self.submit(endpoint, &handling.of(token, &segment))
    }

    #[inline(never)]
    fn hold_segment(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
    ) -> Result<(), HostError> {
        let place = self.endpoints.get_mut(usize::from(endpoint.index));
        let record = place.filter(|record| record.takes_transfers(endpoint));
        let record = record.ok_or(HostError::Halted)?;
        let ring = record.transfers.as_mut().ok_or(HostError::Unsupported)?;
        match ring.hold_segment(&mut self.records, token, segment) {
            true => Ok(()),
            false => Err(HostError::QueueFull),
        }
    }

    /// Finds each endpoint once, and tells the controller of all that is queued on one at once.
    #[inline(never)]
    fn send_exchange(&mut self, exchange: &Exchange) -> Result<(), HostError> {
        let [wrapper, data, status] = exchange.tokens;
        let (outward, inward) = (exchange.outward, exchange.inward);
        let quiet = Handling::outward(Report::Unexpected);
        let records = &mut self.records;
        let endpoint = endpoint_at(self.endpoints, outward)?;
        let (slot, dci) = (endpoint.slot, endpoint.dci);
        let ring = endpoint.plain_ring()?;
        ring.submit_whole(records, wrapper, exchange.wrapper, quiet)?;
        if exchange.direction == Direction::Out {
            let handling = Handling::outward(exchange.report);
            ring.submit_whole(records, data, exchange.data, handling)?;
        }
        release();
        self.blocks.ring(slot, dci, 0);
        if (exchange.direction, exchange.reading) == (Direction::Out, StatusReading::Later) {
            return Ok(());
        }
        let endpoint = endpoint_at(self.endpoints, inward)?;
        let (slot, dci) = (endpoint.slot, endpoint.dci);
        let ring = endpoint.plain_ring()?;
        if exchange.direction == Direction::In {
            let handling = Handling::inward(exchange.report);
            ring.submit_whole(records, data, exchange.data, handling)?;
        }
        match exchange.reading {
            StatusReading::Behind => {
                let told = Handling::inward(Report::Always);
                ring.submit_whole(records, status, exchange.status, told)?;
            }
            StatusReading::Held if !ring.hold_segment(records, status, exchange.status) => {
                return Err(HostError::QueueFull);
            }
            StatusReading::Held | StatusReading::Later => {}
        }
        release();
        self.blocks.ring(slot, dci, 0);
        Ok(())
    }

    #[inline]
    fn kick(&mut self, endpoint: EndpointHandle, stream: u16) {
        let Ok(endpoint) = endpoint_at(self.endpoints, endpoint) else {
            return;
        };
        // A doorbell would start a stopped endpoint again; a halted one is not to be touched
        // before its device's own halt was cleared.
        if endpoint.state == EndpointState::Running && endpoint.work == EndpointWork::Idle {
            release();
            self.blocks.ring(endpoint.slot, endpoint.dci, stream);
        }
    }

    #[inline]
    fn retire(&mut self, endpoint: EndpointHandle) {
        if let Ok(record) = endpoint_at(self.endpoints, endpoint)
            && let Some(transfers) = &mut record.transfers
            && !transfers.retire_all()
        {
            self.retire_some(endpoint);
        }
    }

    fn name_stream(&mut self, endpoint: EndpointHandle, stream: u16) {
        if let Ok(endpoint) = endpoint_at(self.endpoints, endpoint)
            && let Some(set) = &endpoint.streams
        {
            set.name(self.streams, stream);
        }
    }

    fn quiesce(&mut self, endpoint: EndpointHandle, now: Instant) -> Result<(), HostError> {
        self.check_running()?;
        let place = usize::from(endpoint.index);
        self.check_operable(endpoint)?;
        self.begin_quiesce(place, now)
    }

    fn restart(
        &mut self,
        endpoint: EndpointHandle,
        sequence: Sequence,
        now: Instant,
    ) -> Result<(), HostError> {
        self.check_running()?;
        let place = usize::from(endpoint.index);
        self.check_operable(endpoint)?;
        self.begin_restart(place, sequence, now)
    }
}

impl<B: Bus> Xhci<'_, B> {
    /// Queues a segment that is one block, on an endpoint that takes it as it is. Returns the slot and the context
    /// index, whose doorbell tells the controller. `None`: nothing was done.
    #[inline(always)]
    fn place_segment(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
        handling: Handling,
    ) -> Option<(u8, u8)> {
        let record = self.endpoints.get_mut(usize::from(endpoint.index))?;
        if !record.takes_transfers(endpoint) {
            return None;
        }
        let (slot, dci) = (record.slot, record.dci);
        let ring = record.ring(self.streams, handling.stream)?;
        let placed = ring.submit_segment(&mut self.records, token, segment, handling.report);
        placed.then_some((slot, dci))
    }

    /// Sends a segment that needs several blocks, or says why the endpoint does not take it.
    #[cold]
    #[inline(never)]
    fn send_otherwise(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
        handling: Handling,
    ) -> Result<(), HostError> {
        self.send(endpoint, &handling.of(token, &segment))
    }

    /// Retires the quiet transfers of an endpoint whose newest one is not quiet.
    #[cold]
    #[inline(never)]
    fn retire_some(&mut self, endpoint: EndpointHandle) {
        if let Ok(endpoint) = endpoint_at(self.endpoints, endpoint)
            && let Some(transfers) = &mut endpoint.transfers
        {
            transfers.retire(&mut self.records);
        }
    }

    /// The endpoint is open, its device is not being closed, and no operation is under way.
    fn check_operable(&mut self, endpoint: EndpointHandle) -> Result<(), HostError> {
        let endpoint = endpoint_at(self.endpoints, endpoint)?;
        let (index, work) = (usize::from(endpoint.device), endpoint.work);
        if !endpoint.will_be_used() || self.is_closing(index) {
            return Err(HostError::Stale);
        }
        match work {
            EndpointWork::Idle => Ok(()),
            _ => Err(HostError::Busy),
        }
    }
}
