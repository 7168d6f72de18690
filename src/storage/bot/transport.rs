//! The memory, pipes and deadlines of one Bulk-Only device: carries out what the
//! [`Machine`] answers.
//!
//! One command at a time. A command that the device fails is followed by REQUEST SENSE before it is
//! reported. Everything that the device writes lands in memory that is checked before it is used:
//! the status in one whole packet, so that a wrong length is seen and does not babble.

use super::habits::Habits;
use super::machine::{Action, Input, Machine};
use super::wire::{Cbw, Csw, Lun};
use crate::dma::{
    Allocation, Class, DataDirection, Dma, Mapping, Owner, PoolError, Rules, Segment, SegmentRules,
};
use crate::host::{HostError, Outcome, Report, StatusReading, Token, TransferEnd};
use crate::policy::Queueing;
use crate::scsi::cdb::{Command, DataPhase};
use crate::scsi::transport::{
    DataPlace, Outcome as CommandOutcome, Request, SCRATCH, TransportError,
};
use crate::time::{Duration, Instant};
use crate::usb::bus::function_token;
use crate::usb::operation::Operation;
use crate::usb::setup::Direction;
use crate::usb::{Bus, Driver, Pipe, UsbError};

mod ends;
mod honours;
mod queue;
mod recover;

use honours::Sensing;
use queue::Follows;

/// Where things lie in the transport's memory.
mod layout {
    use crate::scsi::transport::SCRATCH;

    pub(super) const COMMAND: usize = 0;
    pub(super) const SENSE: usize = 64;
    /// One packet of the largest size.
    pub(super) const STATUS: usize = 512;
    pub(super) const STATUS_LENGTH: usize = 1024;
    pub(super) const SCRATCH_AT: usize = STATUS + STATUS_LENGTH;
    pub(super) const LENGTH: usize = SCRATCH_AT + SCRATCH;
}

/// A controller cuts what crosses 64 KiB (xHCI 1.2 §6.4.1): neither wrapper nor status is to be cut.
const MEMORY: Rules = Rules::aligned(128).within(0x1_0000);

/// How long REQUEST SENSE may take. Policy: it needs no medium.
const SENSE_TIMEOUT: Duration = Duration::from_secs(3);

/// How long reset recovery may take in all. Policy.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the reset request itself may take. Policy: without data, 50 ms (USB 2.0 §9.2.6.4);
/// bridges that reset their disk on it take longer.
const RESET_TIMEOUT: Duration = Duration::from_secs(2);

/// What a transfer of the transport carries: the low bits of its tag.
mod part {
    pub(super) const COMMAND: u16 = 0;
    pub(super) const DATA: u16 = 1;
    pub(super) const STATUS: u16 = 2;
    pub(super) const BITS: u32 = 2;
}

/// Counters of copies, for the figures that a user may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CopyCount {
    /// Commands of which bytes were copied.
    pub copied: u64,
    /// Bytes of their data that went through bounce memory.
    pub bounced: u64,
}

/// One Bulk-Only device.
#[derive(Debug)]
pub struct Transport {
    function: u8,
    interface: u8,
    bulk_in: Pipe,
    bulk_out: Pipe,
    memory: Allocation,
    bounce: Allocation,
    /// Where the command wrapper lies, and room for the status.
    wrapper: Segment,
    status: Segment,
    rules: SegmentRules,
    queueing: Queueing,
    /// The controller keeps a status read back until the data have come.
    holds: bool,
    habits: Habits,
    /// The operation code of the command under way.
    operation: u8,
    machine: Machine,
    /// The unit that the command under way is for.
    lun: Option<Lun>,
    /// What it announces, or the REQUEST SENSE for it.
    announced: DataPhase,
    /// Its number.
    tag: u32,
    /// REQUEST SENSE is under way for the request.
    sensing: Option<Sensing>,
    /// Its status read is kept back until the data have come.
    holding: bool,
    /// The command rests behind its wrapper: what comes next, and the deadline from then on.
    paused: Option<(Action, Instant)>,
    mapping: Option<Mapping>,
    deadline: Instant,
    /// An operation that waits for an earlier one to end.
    waiting: Option<Operation>,
    /// The device must be closed before the command can end.
    stuck: bool,
    copies: CopyCount,
}

/// The pipes of a Bulk-Only device.
#[derive(Clone, Copy, Debug)]
pub struct Pipes {
    /// Data and status.
    pub bulk_in: Pipe,
    /// Commands and data.
    pub bulk_out: Pipe,
}

impl Transport {
    /// Transfers in flight on a pipe at most: data and status, or command and data.
    pub const TRANSFERS: u8 = 2;

    /// Reserves the transport's memory.
    ///
    /// # Errors
    ///
    /// The pool is too small: nothing was reserved.
    pub fn new<C: Driver>(
        bus: &mut Bus<'_, C>,
        function: u8,
        interface: u8,
        pipes: Pipes,
    ) -> Result<Self, PoolError> {
        let capabilities = bus.capabilities(pipes.bulk_in.device);
        let rules = bus.segment_rules(pipes.bulk_in.device);
        let rules = rules.unwrap_or(SegmentRules { mask: 0, grain: 1 });
        // Two ends, each a cache line or a page, whichever the controller wants.
        let grain = rules.grain.max(128);
        let owner = Owner::Function(function);
        let pool = bus.pool();
        let memory = pool.allocate(owner, Class::Command, layout::LENGTH, MEMORY)?;
        let bounce = pool.allocate(owner, Class::Bounce, 2 * grain, Rules::aligned(grain));
        let bounce = bounce.inspect_err(|_| pool.reclaim(owner))?;
        let piece = |at, length| memory.raw(at, length).map_or(Segment::EMPTY, Segment::from);
        Ok(Self {
            function,
            interface,
            bulk_in: pipes.bulk_in,
            bulk_out: pipes.bulk_out,
            wrapper: piece(layout::COMMAND, Cbw::LENGTH),
            status: piece(layout::STATUS, layout::STATUS_LENGTH),
            rules,
            memory,
            bounce,
            queueing: Queueing::default(),
            holds: capabilities.is_some_and(|capabilities| capabilities.holds),
            habits: Habits::PLAIN,
            operation: 0,
            machine: Machine::idle(),
            lun: None,
            announced: DataPhase::None,
            tag: 0,
            sensing: None,
            holding: false,
            paused: None,
            mapping: None,
            deadline: Instant::NEVER,
            waiting: None,
            stuck: false,
            copies: CopyCount::default(),
        })
    }

    /// Chooses when data and status are queued, from the next command on.
    pub fn set_queueing(&mut self, queueing: Queueing) {
        self.queueing = queueing;
    }

    /// Whether a command is under way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.lun.is_some()
    }

    /// When [`Transport::deadline_passed`] is due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Bytes of data that the command under way, or the last one, has announced.
    #[must_use]
    pub fn announced(&self) -> u32 {
        self.announced.length()
    }

    /// How much was copied since the device was configured.
    #[must_use]
    pub fn copies(&self) -> CopyCount {
        self.copies
    }

    /// The first bytes of the transport's own memory: what the last small command brought.
    pub fn read_scratch(&self, bytes: &mut [u8]) {
        let length = bytes.len().min(SCRATCH);
        if let Some(bytes) = bytes.get_mut(..length) {
            self.memory.read_bytes(layout::SCRATCH_AT, bytes);
        }
    }

    /// Begins a command. The transport is not busy.
    ///
    /// # Errors
    ///
    /// [`TransportError::Memory`] or [`TransportError::Refused`]: nothing was begun.
    #[inline(always)]
    pub fn begin<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        request: &Request,
        now: Instant,
    ) -> Result<(), TransportError> {
        self.map(dma, request)?;
        let lun = Lun::new(request.lun).unwrap_or(Lun::ZERO);
        self.lun = Some(lun);
        self.operation = request.command.cdb.operation_code();
        self.sensing = None;
        let action = self.prepare(lun, &request.command, now + request.timeout);
        let queued = match (action, self.whole_data()) {
            (Action::SendAll, Some(data)) if self.holding => {
                self.send_whole(bus, data, StatusReading::Held)
            }
            (Action::SendAll, Some(data)) => self.send_whole(bus, data, StatusReading::Behind),
            (Action::SendCommandAndData, Some(data)) => {
                self.send_whole(bus, data, StatusReading::Later)
            }
            (action, _) => self.queue_beginning(bus, action),
        };
        self.note_queued(queued);
        Ok(())
    }

    #[inline(always)]
    fn map(&mut self, dma: &impl Dma, request: &Request) -> Result<(), TransportError> {
        self.mapping = None;
        let direction = match request.command.data {
            DataPhase::In(_) => DataDirection::FromDevice,
            DataPhase::Out(_) => DataDirection::ToDevice,
            DataPhase::None => return Ok(()),
        };
        let buffer = match request.data {
            DataPlace::Caller(buffer) => buffer,
            DataPlace::Pool(memory) => {
                self.count_copy(memory.length);
                self.mapping = Some(Mapping::of_pool(memory));
                return Ok(());
            }
            DataPlace::Scratch | DataPlace::List(_) => {
                let copy = *request;
                self.place_list(&copy);
                return Ok(());
            }
        };
        let (place, bounce) = (&mut self.mapping, Some(&self.bounce));
        let mapping = Mapping::map(place, dma, self.rules, buffer, direction, bounce);
        let bounced = mapping.map_err(TransportError::Memory)?.bounced();
        if bounced != 0 {
            self.count_copy(bounced);
        }
        Ok(())
    }

    #[cold]
    fn count_copy(&mut self, bytes: usize) {
        self.copies.copied += 1;
        self.copies.bounced += bytes as u64;
    }

    /// Begins a command as [`Transport::begin`] does, without haste.
    ///
    /// # Errors
    ///
    /// As [`Transport::begin`].
    #[cold]
    #[inline(never)]
    pub fn begin_rarely<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        request: &Request,
        now: Instant,
    ) -> Result<(), TransportError> {
        self.map(dma, request)?;
        let lun = Lun::new(request.lun).unwrap_or(Lun::ZERO);
        self.lun = Some(lun);
        self.operation = request.command.cdb.operation_code();
        self.sensing = None;
        self.start_rarely(bus, lun, &request.command, now + request.timeout);
        Ok(())
    }

    /// Writes the command wrapper and sets the machine going: what is to be queued.
    #[inline(always)]
    fn prepare(&mut self, lun: Lun, command: &Command, deadline: Instant) -> Action {
        self.tag = self.tag.wrapping_add(1);
        self.deadline = deadline;
        self.announced = command.data;
        let cbw = Cbw {
            tag: self.tag,
            data: command.data,
            lun,
            cdb: command.cdb,
        };
        if let Some(wrapper) = self.memory.block::<{ Cbw::ROOM }>(layout::COMMAND) {
            wrapper.write(cbw.to_words());
        }
        // A status read that is kept back is as good as one that waits behind the data.
        self.holding = self.may_hold(command.data);
        let queueing = match self.holding {
            true => Queueing::Eager,
            false => self.queueing,
        };
        self.machine.begin(command.data, queueing)
    }

    /// Whether the status read is queued with the data, but kept back until they have come. Not behind
    /// data that are as long as a status wrapper: they may be one.
    #[inline]
    fn may_hold(&self, data: DataPhase) -> bool {
        let is_long = matches!(data, DataPhase::In(length) if length as usize != Csw::LENGTH);
        self.holds && is_long && self.queueing == Queueing::StatusLast
    }

    /// Begins a command of the transport's own, or one that few make.
    #[cold]
    #[inline(never)]
    fn start_rarely<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        lun: Lun,
        command: &Command,
        deadline: Instant,
    ) {
        let action = self.prepare(lun, command, deadline);
        let queued = self.queue_beginning(bus, action);
        self.note_queued(queued);
    }

    /// A pipe that takes no transfer is noticed at the deadline.
    #[inline]
    fn note_queued(&mut self, queued: Result<(), HostError>) {
        if queued.is_err() {
            // Nothing will answer: recovery begins at the next look at the deadlines.
            self.deadline = Instant::from_micros(0);
        }
    }

    /// Queues what begins a command, whatever it is.
    #[inline(never)]
    fn queue_beginning<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        action: Action,
    ) -> Result<(), HostError> {
        match action {
            Action::SendAll => self
                .queue_command(bus, Report::Unexpected)
                .and_then(|()| self.queue_rest(bus)),
            Action::SendCommandAndData => self
                .queue_command(bus, Report::Unexpected)
                .and_then(|()| self.queue_data(bus, Report::Always, Follows::Nothing)),
            _ => self.queue_command(bus, Report::Always),
        }
    }

    /// Takes the end of a transfer where it ends a command well and in full, as nearly all do. `false`: nothing
    /// was done, and [`Transport::transfer_ended`] finds out what it means.
    #[inline]
    pub fn ended_well<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        end: &TransferEnd,
    ) -> bool {
        let is_status = end.token == self.token_of(part::STATUS);
        let is_wrapper = end.outcome.is_ok() && end.actual as usize == Csw::LENGTH;
        if !is_status || !is_wrapper || self.sensing.is_some() || self.wants_sense() {
            return false;
        }
        let wrapper = self.memory.block::<{ Csw::ROOM }>(layout::STATUS);
        if !wrapper.is_some_and(|wrapper| Csw::is_plain(wrapper.read(), self.tag))
            || !self.machine.pass()
        {
            return false;
        }
        bus.retire(&self.bulk_out);
        self.unmap(dma, self.announced() as usize);
        self.deadline = Instant::NEVER;
        self.lun = None;
        true
    }

    /// Takes the end of the data of a write where all of it went well: only the status is still to come. `false`:
    /// nothing was done, as for [`Transport::ended_well`].
    #[inline]
    pub fn data_sent<C: Driver>(&mut self, bus: &mut Bus<'_, C>, end: &TransferEnd) -> bool {
        let is_data = end.token == self.token_of(part::DATA) && end.outcome == Outcome::Complete;
        if !is_data || !matches!(self.announced, DataPhase::Out(_)) {
            return false;
        }
        match self.machine.asks_for_status() {
            Some(true) if self.queue_status(bus).is_err() => return false,
            Some(_) => {}
            None => return false,
        }
        // What it asks for was done.
        self.machine.data_ended(end.outcome, end.actual, None);
        true
    }

    /// A transfer of the transport has ended.
    pub fn transfer_ended<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        tag: u16,
        outcome: Outcome,
        actual: u32,
        now: Instant,
    ) -> Option<CommandOutcome> {
        if tag >> part::BITS != self.tag as u16 & (u16::MAX >> part::BITS) {
            // Of a command that has ended.
            return None;
        }
        let action = match tag & ((1 << part::BITS) - 1) {
            part::COMMAND => self.machine.step(Input::Command(outcome)),
            part::DATA => self.data_ended(dma, outcome, actual),
            _ => self.status_ended(outcome, actual),
        };
        self.carry_out(bus, dma, action, now)
    }

    /// The operation that the transport began has ended.
    pub fn operated<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        result: Result<(), UsbError>,
        now: Instant,
    ) -> Option<CommandOutcome> {
        match self.waiting.take() {
            Some(operation) => self.operate(bus, dma, operation, now),
            None => self.step(bus, dma, Input::Operated(result), now),
        }
    }

    /// The deadline has passed.
    pub fn deadline_passed<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        now: Instant,
    ) -> Option<CommandOutcome> {
        if self.go_on(bus, now) {
            return None;
        }
        bus.check_controller(&self.bulk_in);
        // What recovery may take before the device counts as broken.
        self.deadline = now + RECOVERY_TIMEOUT;
        self.step(bus, dma, Input::Deadline, now)
    }

    /// The device has gone: nothing is done on it any more. The command under way keeps its memory
    /// until [`Transport::closed`], since the controller may still reach it.
    pub fn gone(&mut self) {
        self.machine = Machine::idle();
        self.deadline = Instant::NEVER;
        self.waiting = None;
        self.paused = None;
    }

    /// The device has gone and the controller has let go of it: the command under way ends.
    pub fn closed(&mut self, dma: &impl Dma) -> Option<CommandOutcome> {
        self.gone();
        self.unmap(dma, 0);
        self.lun.take().map(|_| Err(TransportError::Disconnected))
    }

    /// Takes what happens more rarely than the end of a transfer.
    #[cold]
    #[inline(never)]
    fn step<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        input: Input,
        now: Instant,
    ) -> Option<CommandOutcome> {
        let action = self.machine.step(input);
        self.carry_out(bus, dma, action, now)
    }

    #[inline(never)]
    fn carry_out<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        action: Action,
        now: Instant,
    ) -> Option<CommandOutcome> {
        let queued = match action {
            Action::Wait => Ok(()),
            // They begin a command: `act_start` has done it.
            Action::SendCommand | Action::SendAll | Action::SendCommandAndData => Ok(()),
            Action::SendRest | Action::SendData if self.rests() => {
                self.pause(action, now);
                return None;
            }
            Action::SendRest => self.queue_rest(bus),
            Action::SendData => self.queue_data(bus, Report::Always, Follows::Nothing),
            Action::ReadStatus => self.queue_status(bus),
            Action::Finish(end) => return self.finish(bus, dma, end, now),
            action => return self.recover(bus, dma, action, now),
        };
        if queued.is_err() {
            self.deadline = now;
        }
        None
    }

    fn end(&mut self, outcome: CommandOutcome) -> Option<CommandOutcome> {
        self.deadline = Instant::NEVER;
        self.lun = None;
        Some(outcome)
    }

    #[inline]
    fn unmap(&mut self, dma: &impl Dma, moved: usize) {
        Mapping::end(&mut self.mapping, dma, moved);
    }

    fn pipe(&self, direction: Direction) -> &Pipe {
        match direction {
            Direction::In => &self.bulk_in,
            Direction::Out => &self.bulk_out,
        }
    }

    fn tag_of(&self, part: u16) -> u16 {
        (self.tag as u16) << part::BITS | part
    }

    /// What the bus gives back with the end of a transfer.
    #[inline]
    fn token_of(&self, part: u16) -> Token {
        function_token(self.function, self.tag_of(part))
    }
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
