//! The memory, pipes, mappings and deadlines of one UAS function: carries out what the [`Machine`]
//! answers.
//!
//! Called by [`function`](crate::storage::function), with the same face as Bulk-Only's transport but
//! for two things: several commands may be under way, each for a [`Client`] that is given back with
//! its end; and what must be remembered of each lies in [`CommandSlot`]s of the caller's storage, of
//! which a function reserves as many in a row as it may have commands in flight.
//!
//! Everything that the device writes lands in memory that is checked before it is used. A command
//! costs one interrupt, that of its status: its data end with an event and no interrupt, and the
//! command unit quietly, but for one in `QUIET` that tells the controller's driver how far it is.

use super::ends::outcome_of;
use super::machine::{Action, Counters, End, Input, Machine, Mode, UasPipe};
use super::memory::{CommandSlot, Layout, slot_mut};
use super::tags::{TagSet, Tags};
use super::wire::{
    Attribute, CommandUnit, ScsiStatus, StatusUnit, Tag, TaskFunction, TaskUnit, UnitFault,
};
use crate::dma::{Allocation, DataDirection, Dma, Mapping, RawBuffer, Segment, SegmentRules};
use crate::host::{HostError, Outcome, Report};
use crate::scsi::cdb::DataPhase;
use crate::scsi::transport::{Client, DataPlace, Ended, Request, SCRATCH, TransportError};
use crate::storage::bot::transport::CopyCount;
use crate::time::{Duration, Instant};
use crate::usb::operation::Operation;
use crate::usb::{Bus, Driver, Pipe, UsbError};

/// How long the data of a command may take to be seen behind its good status. Policy: they were on
/// the wire before it; a controller's driver may look at the pipes in another order.
const LINGER: Duration = Duration::from_millis(5);

/// How long a pipe may take to be made usable before the device counts as broken. Policy.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Command units in a row that are sent without an event.
pub(super) const QUIET: u8 = 7;

/// What a transfer of the transport carries: the low bits of its tag. The tag of the command is above.
mod part {
    pub(super) const COMMAND: u16 = 0;
    pub(super) const DATA: u16 = 1;
    pub(super) const STATUS: u16 = 2;
    pub(super) const BITS: u32 = 2;
}

/// What a transport works with in every call.
#[derive(Debug)]
pub struct Tools<'t, 's, C, D> {
    /// The bus.
    pub bus: &'t mut Bus<'s, C>,
    /// What the platform knows about DMA.
    pub dma: &'t D,
    /// The commands of all functions.
    pub commands: &'t mut [CommandSlot],
    /// The time.
    pub now: Instant,
}

/// The open pipes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipes {
    pub(super) command: Pipe,
    pub(super) status: Pipe,
    pub(super) data_in: Pipe,
    pub(super) data_out: Pipe,
}

/// One UAS device.
#[derive(Debug)]
pub struct Transport {
    pub(super) function: u8,
    pub(super) pipes: Pipes,
    pub(super) rules: SegmentRules,
    pub(super) memory: Allocation,
    pub(super) layout: Layout,
    pub(super) machine: Machine,
    pub(super) tags: Tags,
    /// Tags that have a bounce area of their own.
    pub(super) bouncing: TagSet,
    /// Place of the first tag's slot.
    pub(super) base: u16,
    /// Commands in flight.
    pub(super) flying: TagSet,
    /// Commands that the device had no room for.
    pub(super) refused: TagSet,
    /// Commands that have ended, and whose end was not taken yet.
    pub(super) ended: TagSet,
    /// Commands that were in flight when another one was given up because it was late: if they are
    /// late too, it is of the same fault.
    pub(super) overtaken: TagSet,
    /// The command that has the small memory.
    pub(super) scratch: Option<Tag>,
    /// Command units sent without an event since the last one with.
    pub(super) quiet: u8,
    /// Not later than any deadline.
    pub(super) deadline: Instant,
    pub(super) task: Option<(Tag, Instant)>,
    pub(super) task_timeout: Duration,
    pub(super) operation: Instant,
    /// An operation that waits for an earlier one to end.
    pub(super) waiting: Option<Operation>,
    /// The device has gone, or must be closed: nothing is done on it any more.
    pub(super) quiescent: bool,
    /// No command may begin, until the device is back in step.
    pub(super) held_up: bool,
    /// It is back in step, and nobody was told yet.
    pub(super) resumed: bool,
    pub(super) stuck: bool,
    pub(super) copies: CopyCount,
}

/// What the function asks.
impl Transport {
    /// Whether one more command may begin.
    #[inline]
    #[must_use]
    pub fn takes_commands(&self) -> bool {
        !self.quiescent && self.tags.is_available() && self.machine.takes_commands()
    }

    /// Whether the pipes have streams.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.machine.mode()
    }

    /// The most commands in flight.
    #[must_use]
    pub fn depth(&self) -> u8 {
        self.tags.depth()
    }

    /// When [`Transport::deadline_passed`] is due.
    #[inline]
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// How much was copied since the device was configured.
    #[must_use]
    pub fn copies(&self) -> CopyCount {
        self.copies
    }

    /// What was odd since the device was configured.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.machine.counters()
    }

    /// The first bytes of the transport's own memory: what the last small command brought.
    pub fn read_scratch(&self, bytes: &mut [u8]) {
        let length = bytes.len().min(SCRATCH);
        if let Some(bytes) = bytes.get_mut(..length) {
            self.memory.read_bytes(self.layout.scratch(), bytes);
        }
    }

    /// Begins a command.
    ///
    /// # Errors
    ///
    /// [`TransportError::Busy`]: not now, but when another command has ended.
    /// [`TransportError::Memory`]: the controller cannot reach the data. Nothing was begun.
    #[inline(never)]
    pub fn begin<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        request: &Request,
        client: Client,
    ) -> Result<(), TransportError> {
        let data = request.command.data;
        let is_small = matches!(request.data, DataPlace::Scratch | DataPlace::List(_));
        let small = is_small && data != DataPhase::None;
        if !self.takes_commands() || small && self.scratch.is_some() {
            return Err(TransportError::Busy);
        }
        let allowed = self.tags_for(tools.dma, request);
        let tag = self.tags.take(allowed).ok_or(TransportError::Busy)?;
        let mapped = self.map(tools, tag, request);
        mapped.inspect_err(|_| self.tags.give_back(tag))?;
        let deadline = tools.now + request.timeout;
        if let Some(slot) = slot_mut(tools.commands, self.base, tag) {
            slot.client = Some(client);
            slot.deadline = deadline;
            slot.outcome = None;
        }
        self.deadline = self.deadline.min(deadline);
        if small {
            self.scratch = Some(tag);
            self.place_list(&request.data);
        }
        self.flying.insert(tag);
        self.overtaken.remove(tag);
        let unit = CommandUnit {
            tag,
            lun: request.lun,
            attribute: Attribute::Simple,
            cdb: request.command.cdb,
        };
        let at = self.layout.unit(tag);
        if let Some(room) = self.memory.block::<{ CommandUnit::LENGTH }>(at) {
            room.write(unit.to_words());
        }
        if self.machine.begin_at_once(tag, request.lun, data) {
            if self.send_all(tools, tag, data).is_err() {
                self.get_stuck(tools.bus);
            }
        } else {
            self.machine.begin(tag, request.lun, data);
            self.run(tools);
        }
        Ok(())
    }

    /// Sends a command behind its own transfers.
    #[inline]
    fn send_all<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        tag: Tag,
        data: DataPhase,
    ) -> Result<(), HostError> {
        self.read_status(tools.bus, Some(tag))?;
        if data != DataPhase::None {
            self.queue_data(tools, tag, 0)?;
        }
        self.send(tools.bus, tag, CommandUnit::LENGTH)
    }

    /// Puts a command's list into the transport's own memory.
    #[cold]
    fn place_list(&self, data: &DataPlace) {
        if let DataPlace::List(bytes) = data {
            self.memory.write_bytes(self.layout.scratch(), bytes);
        }
    }

    /// Tags that a command may have: a read whose ends must be bounced needs one with an area for it.
    fn tags_for(&self, dma: &impl Dma, request: &Request) -> TagSet {
        let all = TagSet::first(self.tags.depth());
        match (request.data, request.command.data) {
            (DataPlace::Caller(buffer), DataPhase::In(_))
                if !dma.coherent() && !is_aligned(&buffer, dma.cache_line()) =>
            {
                self.bouncing
            }
            _ => all,
        }
    }

    fn map<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        tag: Tag,
        request: &Request,
    ) -> Result<(), TransportError> {
        let Some(slot) = slot_mut(tools.commands, self.base, tag) else {
            return Ok(());
        };
        slot.mapping = None;
        let buffer = match request.data {
            DataPlace::Caller(buffer) => buffer,
            DataPlace::Pool(memory) => {
                slot.mapping = Some(Mapping::of_pool(memory));
                self.count_copy(memory.length);
                return Ok(());
            }
            DataPlace::Scratch | DataPlace::List(_) => return Ok(()),
        };
        let direction = match request.command.data {
            DataPhase::In(_) => DataDirection::FromDevice,
            DataPhase::Out(_) => DataDirection::ToDevice,
            DataPhase::None => return Ok(()),
        };
        let (place, bounce) = (&mut slot.mapping, slot.bounce.as_ref());
        let mapping = Mapping::map(place, tools.dma, self.rules, buffer, direction, bounce);
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

    /// A command that has ended, and for whom. To be asked after every call until there is none.
    #[inline]
    pub fn take_ended<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
    ) -> Option<Ended> {
        let tag = self.ended.next()?;
        let slot = slot_mut(tools.commands, self.base, tag)?;
        let (client, outcome) = (slot.client.take()?, slot.outcome.take()?);
        self.flying.remove(tag);
        self.tags.give_back(tag);
        if self.refused.contains(tag) {
            self.refused.remove(tag);
            self.tags.lower();
        }
        if self.scratch == Some(tag) {
            self.scratch = None;
        }
        if self.flying.is_empty() {
            // Every unit that was sent has arrived.
            tools.bus.retire(&self.pipes.command);
            self.quiet = 0;
            let task = self.task.map_or(Instant::NEVER, |(_, deadline)| deadline);
            self.deadline = self.operation.min(task);
        }
        Some(Ended { outcome, client })
    }

    /// Whether commands may begin again that could not before, although none has ended: `true` once.
    #[inline]
    pub fn take_resumed(&mut self) -> bool {
        core::mem::take(&mut self.resumed)
    }

    /// Whether the device must be closed for the commands under way to end: `true` once.
    pub fn take_stuck(&mut self) -> bool {
        if self.stuck {
            self.deadline = Instant::NEVER;
        }
        core::mem::take(&mut self.stuck)
    }

    /// The device has gone: nothing is done on it any more. The commands under way keep their memory
    /// until [`Transport::abandon`], since the controller may still reach it.
    pub fn gone(&mut self) {
        self.quiescent = true;
        self.deadline = Instant::NEVER;
        self.waiting = None;
    }

    /// The controller has let go of the device: takes the next command that was under way, whose
    /// memory is its owner's again.
    pub fn abandon(&mut self, commands: &mut [CommandSlot], dma: &impl Dma) -> Option<Client> {
        self.gone();
        let tag = self.flying.next()?;
        self.ended.remove(tag);
        let slot = slot_mut(commands, self.base, tag)?;
        if let Some(mapping) = slot.mapping.take() {
            mapping.unmap(dma, 0);
        }
        slot.client.take()
    }
}

/// What happens.
impl Transport {
    /// A transfer of the transport has ended.
    #[inline]
    pub fn transfer_ended<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        tag: u16,
        outcome: Outcome,
        actual: u32,
    ) {
        if self.quiescent {
            return;
        }
        let command = Tag::new(tag >> part::BITS);
        let input = match (tag & ((1 << part::BITS) - 1), command) {
            (part::COMMAND, _) => Input::Command(outcome),
            (part::DATA, Some(tag)) => Input::Data {
                tag,
                outcome,
                actual,
            },
            (part::STATUS, stream) => Input::Status {
                stream,
                result: self.unit_that_came(stream, outcome, actual),
            },
            _ => return,
        };
        self.machine.step(input);
        self.run(tools);
    }

    #[inline]
    fn unit_that_came(
        &self,
        stream: Option<Tag>,
        outcome: Outcome,
        actual: u32,
    ) -> Result<Result<StatusUnit, UnitFault>, Outcome> {
        if !outcome.is_ok() {
            return Err(outcome);
        }
        let at = self.layout.status(stream);
        if actual as usize >= StatusUnit::SENSE_HEAD
            && let Some(head) = self.memory.block::<{ StatusUnit::SENSE_HEAD }>(at)
            && let Some(good) = StatusUnit::good(head.read())
        {
            return Ok(Ok(good));
        }
        Ok(self.parse_unit(at, actual))
    }

    #[cold]
    #[inline(never)]
    fn parse_unit(&self, at: usize, actual: u32) -> Result<StatusUnit, UnitFault> {
        let mut bytes = [0; StatusUnit::LONGEST];
        let length = (actual as usize).min(StatusUnit::LONGEST);
        let bytes = bytes.get_mut(..length).unwrap_or_default();
        self.memory.read_bytes(at, bytes);
        StatusUnit::parse(bytes)
    }

    /// The operation that the transport began has ended.
    pub fn operated<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        result: Result<(), UsbError>,
    ) {
        if self.quiescent {
            return;
        }
        match self.waiting.take() {
            Some(operation) => self.operate(tools, operation),
            None => {
                self.operation = Instant::NEVER;
                self.machine.step(Input::Operated(result));
            }
        }
        self.run(tools);
    }

    /// A deadline may have passed.
    pub fn deadline_passed<C: Driver, D: Dma>(&mut self, tools: &mut Tools<'_, '_, C, D>) {
        if self.quiescent {
            self.deadline = Instant::NEVER;
            return;
        }
        let now = tools.now;
        let mut any = false;
        for tag in self.flying.without(self.ended) {
            let Some(slot) = slot_mut(tools.commands, self.base, tag) else {
                continue;
            };
            if now >= slot.deadline {
                slot.deadline = Instant::NEVER;
                any = true;
                self.machine.step(Input::Late(tag));
            }
        }
        if let Some((tag, deadline)) = self.task
            && now >= deadline
        {
            self.task = None;
            any = true;
            self.machine.step(Input::Late(tag));
        }
        if now >= self.operation {
            self.operation = Instant::NEVER;
            any = true;
            self.machine.step(Input::OperationLate);
        }
        if any {
            tools.bus.check_controller(&self.pipes.status);
        }
        self.deadline = self.earliest(tools.commands);
        self.run(tools);
    }

    fn earliest(&self, commands: &mut [CommandSlot]) -> Instant {
        let task = self.task.map_or(Instant::NEVER, |(_, deadline)| deadline);
        let mut earliest = self.operation.min(task);
        for tag in self.flying.without(self.ended) {
            if let Some(slot) = slot_mut(commands, self.base, tag) {
                earliest = earliest.min(slot.deadline);
            }
        }
        earliest
    }
}

/// What is done.
impl Transport {
    /// Carries out what the machine wants.
    #[inline]
    fn run<C: Driver, D: Dma>(&mut self, tools: &mut Tools<'_, '_, C, D>) {
        while !self.quiescent {
            if self.machine.is_quiet() {
                return self.note_step();
            }
            let queued = match self.machine.next_action() {
                Action::Wait => return self.note_step(),
                Action::ReadStatus(stream) => self.read_status(tools.bus, stream),
                Action::QueueData(tag, from) => self.queue_data(tools, tag, from),
                Action::SendCommand(tag) => self.send(tools.bus, tag, CommandUnit::LENGTH),
                Action::SendTask(tag, function, lun) => self.send_task(tools, tag, function, lun),
                Action::Finish(tag, end) => {
                    self.finish(tools, tag, end);
                    Ok(())
                }
                Action::Linger(tag) => {
                    let deadline = tools.now + LINGER;
                    if let Some(slot) = slot_mut(tools.commands, self.base, tag) {
                        slot.deadline = deadline;
                    }
                    self.deadline = self.deadline.min(deadline);
                    Ok(())
                }
                Action::Recall(pipe) => {
                    self.name_streams(tools.bus, pipe);
                    let operation = Operation::Recall(self.pipe(pipe).handle);
                    self.operate(tools, operation);
                    Ok(())
                }
                Action::ClearHalt(pipe) => {
                    self.name_streams(tools.bus, pipe);
                    let pipe = self.pipe(pipe);
                    let operation = Operation::ClearHalt(pipe.handle, pipe.address);
                    self.operate(tools, operation);
                    Ok(())
                }
                Action::GiveUp => return self.get_stuck(tools.bus),
            };
            if queued.is_err() {
                // The controller takes no transfer where one must go: only a new start can help.
                return self.get_stuck(tools.bus);
            }
        }
    }

    /// Notices when the device falls out of step, and when it is back.
    #[inline]
    fn note_step(&mut self) {
        let was_held_up = self.held_up;
        self.held_up = !self.machine.takes_commands();
        self.resumed |= was_held_up && !self.held_up;
    }

    /// Says which streams of a pipe an operation is about.
    fn name_streams<C: Driver>(&self, bus: &mut Bus<'_, C>, pipe: UasPipe) {
        if self.machine.mode() == Mode::Streams {
            for tag in self.machine.to_take_back(pipe) {
                bus.name_stream(self.pipe(pipe), tag.number());
            }
        }
    }

    /// The commands end when the device was closed, and not before: their memory may be reached.
    #[cold]
    fn get_stuck<C: Driver>(&mut self, bus: &Bus<'_, C>) {
        self.gone();
        if !bus.is_leaving(self.pipes.status.device) {
            self.stuck = true;
            self.deadline = Instant::from_micros(0);
        }
    }

    fn pipe(&self, pipe: UasPipe) -> &Pipe {
        match pipe {
            UasPipe::Command => &self.pipes.command,
            UasPipe::Status => &self.pipes.status,
            UasPipe::DataIn => &self.pipes.data_in,
            UasPipe::DataOut => &self.pipes.data_out,
        }
    }

    /// The stream of a tag; none without streams.
    #[inline]
    fn stream(&self, tag: Tag) -> u16 {
        match self.machine.mode() {
            Mode::Streams => tag.number(),
            Mode::Ready => 0,
        }
    }

    #[inline]
    fn read_status<C: Driver>(
        &self,
        bus: &mut Bus<'_, C>,
        stream: Option<Tag>,
    ) -> Result<(), HostError> {
        let memory = self
            .memory
            .raw(self.layout.status(stream), self.layout.status_length());
        let segments = [memory.map(Segment::from).ok_or(HostError::TooLong)?];
        let number = stream.map_or(0, Tag::number);
        let tag = number << part::BITS | part::STATUS;
        let pipe = &self.pipes.status;
        bus.send_on(pipe, number, self.function, tag, &segments, Report::Always)
    }

    #[inline]
    fn queue_data<C: Driver, D: Dma>(
        &self,
        tools: &mut Tools<'_, '_, C, D>,
        tag: Tag,
        from: u32,
    ) -> Result<(), HostError> {
        let slot = slot_mut(tools.commands, self.base, tag).ok_or(HostError::Stale)?;
        let expected = self.machine.expected(tag);
        let pipe = match expected {
            DataPhase::Out(_) => &self.pipes.data_out,
            DataPhase::In(_) | DataPhase::None => &self.pipes.data_in,
        };
        let transfer = tag.number() << part::BITS | part::DATA;
        let (stream, function) = (self.stream(tag), self.function);
        let report = Report::WithoutInterrupt;
        let mut send = |segments: &[Segment]| {
            let bus = &mut *tools.bus;
            bus.send_on(pipe, stream, function, transfer, segments, report)
        };
        match &slot.mapping {
            Some(mapping) => match mapping.whole() {
                Some(whole) if from == 0 => send(&[whole]),
                _ => {
                    let mut rest = [Segment::EMPTY; 3];
                    let count = skip(mapping.pieces().as_slice(), from, &mut rest);
                    send(rest.get(..count).unwrap_or_default())
                }
            },
            None => {
                let at = self.layout.scratch() + from as usize;
                let left = expected.length().saturating_sub(from);
                let memory = self.memory.raw(at, left as usize);
                send(&[memory.map(Segment::from).ok_or(HostError::TooLong)?])
            }
        }
    }

    /// Sends the unit that was written for a tag.
    #[inline]
    fn send<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        tag: Tag,
        length: usize,
    ) -> Result<(), HostError> {
        let memory = self.memory.raw(self.layout.unit(tag), length);
        let segments = [memory.map(Segment::from).ok_or(HostError::TooLong)?];
        let transfer = tag.number() << part::BITS | part::COMMAND;
        let report = if self.quiet < QUIET {
            self.quiet += 1;
            Report::Unexpected
        } else {
            self.quiet = 0;
            Report::WithoutInterrupt
        };
        let pipe = &self.pipes.command;
        bus.send(pipe, self.function, transfer, &segments, report)
    }

    fn send_task<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        tag: Tag,
        function: TaskFunction,
        lun: u8,
    ) -> Result<(), HostError> {
        let unit = TaskUnit { tag, function, lun };
        self.memory
            .write_bytes(self.layout.unit(tag), &unit.to_bytes());
        let deadline = tools.now + self.task_timeout;
        self.task = Some((tag, deadline));
        self.deadline = self.deadline.min(deadline);
        self.send(tools.bus, tag, TaskUnit::LENGTH)
    }

    /// Begins an operation on the device, or puts it behind the one under way.
    fn operate<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        operation: Operation,
    ) {
        self.operation = tools.now + OPERATION_TIMEOUT;
        self.deadline = self.deadline.min(self.operation);
        let device = self.pipes.status.device;
        match tools.bus.operate(device, operation, tools.now) {
            Ok(()) => {}
            Err(UsbError::Busy) => self.waiting = Some(operation),
            // The device is being closed: the commands end with that.
            Err(UsbError::Disconnected) if tools.bus.is_leaving(device) => self.gone(),
            Err(error) => self.machine.step(Input::Operated(Err(error))),
        }
    }

    #[inline]
    fn finish<C: Driver, D: Dma>(&mut self, tools: &mut Tools<'_, '_, C, D>, tag: Tag, end: End) {
        let status = match end {
            End::Status { status, .. } => Some(status),
            End::Failed(_) => None,
        };
        if status == Some(ScsiStatus::TaskSetFull) {
            self.refused.insert(tag);
        }
        let Some(slot) = slot_mut(tools.commands, self.base, tag) else {
            return;
        };
        let outcome = match outcome_of(end) {
            Err(TransportError::Timeout) if self.overtaken.contains(tag) => {
                Err(TransportError::Neighbour)
            }
            outcome => outcome,
        };
        if outcome == Err(TransportError::Timeout) {
            self.overtaken = self.flying.without(self.ended);
        }
        if let Some(mapping) = slot.mapping.take() {
            let moved = outcome.map_or(0, |completion| completion.moved as usize);
            mapping.unmap(tools.dma, moved);
        }
        slot.outcome = Some(outcome);
        slot.deadline = Instant::NEVER;
        self.ended.insert(tag);
    }
}

/// Whether both ends of a buffer lie between cache lines.
fn is_aligned(buffer: &RawBuffer, line: usize) -> bool {
    let start = buffer.start.addr().get();
    (start | buffer.length).is_multiple_of(line)
}

/// Leaves the first `bytes` of a list of pieces out. Returns how many pieces are left.
fn skip(segments: &[Segment], mut bytes: u32, rest: &mut [Segment; 3]) -> usize {
    let mut count = 0;
    for segment in segments {
        let skipped = bytes.min(segment.length());
        bytes -= skipped;
        if skipped < segment.length()
            && let Some(slot) = rest.get_mut(count)
        {
            *slot = segment.behind(skipped);
            count += 1;
        }
    }
    count
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
