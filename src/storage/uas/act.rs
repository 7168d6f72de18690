//! What the transport does when the [`Machine`](super::machine::Machine) asks for it: transfers,
//! operations on pipes, the ends of commands.
//!
//! The other half of [`transport`](super::transport), where everything comes in. Nothing is decided
//! here: a transfer that the controller does not take ends in a reset of the port.

use super::ends::outcome_of;
use super::machine::{Action, Cause, End, Input, Mode, UasPipe};
use super::memory::{CommandSlot, slot_mut};
use super::tags::TagSet;
use super::transport::{QUIET, Tools, Transport, part};
use super::wire::{CommandUnit, ScsiStatus, Tag, TaskFunction, TaskUnit};
use crate::dma::{Dma, Mapping, Segment};
use crate::host::{Handling, HostError, Report};
use crate::scsi::cdb::DataPhase;
use crate::scsi::transport::TransportError;
use crate::time::{Duration, Instant};
use crate::usb::bus::function_token;
use crate::usb::operation::Operation;
use crate::usb::setup::Direction;
use crate::usb::{Bus, Driver, Pipe, UsbError};

/// How long the data of a command may take to be seen behind its good status. Policy: they were on
/// the wire before it; a controller's driver may look at the pipes in another order.
const LINGER: Duration = Duration::from_millis(5);

/// How long a command waits that the device had no room for, before it is sent again. Policy: long enough for a
/// device to get something done, short beside any deadline.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a pipe may take to be made usable before the device counts as broken. Policy.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(5);

impl Transport {
    /// Carries out what the machine wants.
    #[inline]
    pub(super) fn run<C: Driver, D: Dma>(&mut self, tools: &mut Tools<'_, '_, C, D>) {
        while !self.quiescent {
            if self.machine.is_quiet() {
                return self.note_step();
            }
            let queued = match self.machine.next_action() {
                Action::Wait => return self.note_step(),
                Action::ReadStatus(stream) => self.read_status(tools.bus, stream),
                Action::QueueData(tag, from) => {
                    self.queue_data(tools.bus, tools.commands, tag, from)
                }
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
        self.note_calm();
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
    pub(super) fn get_stuck<C: Driver>(&mut self, bus: &Bus<'_, C>) {
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

    /// Sends a command behind its own transfers, its data being in one piece: what [`Transport::read_status`],
    /// [`Transport::queue_data`] and [`Transport::send`] do for nearly every command.
    #[inline(always)]
    pub(super) fn send_whole<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        tag: Tag,
        data: DataPhase,
        whole: Segment,
    ) -> Result<(), HostError> {
        let stream = tag.number();
        let token = |part| function_token(self.function, stream << part::BITS | part);
        let handling = |direction, report| Handling {
            stream,
            direction,
            report,
        };
        let status = self.segment(self.layout.status(Some(tag)), self.layout.status_length())?;
        let unit = self.segment(self.layout.unit(tag), CommandUnit::LENGTH)?;
        let driver = tools.bus.transfer_driver(self.pipes.status.controller)?;
        let told = handling(Direction::In, Report::Always);
        driver.send_segment(self.pipes.status.handle, token(part::STATUS), status, told)?;
        let (pipe, direction) = match data {
            DataPhase::Out(_) => (&self.pipes.data_out, Direction::Out),
            DataPhase::In(_) | DataPhase::None => (&self.pipes.data_in, Direction::In),
        };
        let told = handling(direction, Report::WithoutInterrupt);
        driver.send_segment(pipe.handle, token(part::DATA), whole, told)?;
        let (command, token) = (self.pipes.command.handle, token(part::COMMAND));
        let told = Handling::outward(self.report_of_unit());
        if self.may_wait(tag) {
            driver.submit_segment(command, token, unit, told)?;
            if self.unsent.is_empty() {
                self.unsent_since = tools.now;
            }
            self.unsent.insert(tag);
            tools.bus.promise_kick();
            return Ok(());
        }
        self.unsent = TagSet::EMPTY;
        driver.send_segment(command, token, unit, told)
    }

    /// Whether the controller need not be told of a command yet: the device has others to go on with, and
    /// there may come more. The next poll tells of all that wait.
    #[inline(always)]
    fn may_wait(&self, tag: Tag) -> bool {
        let others = self.flying.without(self.unsent).without(TagSet::of(tag));
        !others.is_empty() && self.tags.is_available()
    }

    /// A piece of the coherent memory.
    #[inline(always)]
    fn segment(&self, at: usize, length: usize) -> Result<Segment, HostError> {
        let memory = self.memory.raw(at, length);
        memory.map(Segment::from).ok_or(HostError::TooLong)
    }

    /// What is told of the next unit that is sent: nothing, but for one in some.
    #[inline(always)]
    fn report_of_unit(&mut self) -> Report {
        if self.quiet < QUIET {
            self.quiet += 1;
            Report::Unexpected
        } else {
            self.quiet = 0;
            Report::WithoutInterrupt
        }
    }

    pub(super) fn read_status<C: Driver>(
        &self,
        bus: &mut Bus<'_, C>,
        stream: Option<Tag>,
    ) -> Result<(), HostError> {
        let memory = self
            .memory
            .raw(self.layout.status(stream), self.layout.status_length());
        let memory = memory.map(Segment::from).ok_or(HostError::TooLong)?;
        let number = stream.map_or(0, Tag::number);
        let token = function_token(self.function, number << part::BITS | part::STATUS);
        bus.send_segment(&self.pipes.status, number, token, memory, Report::Always)
    }

    pub(super) fn queue_data<C: Driver>(
        &self,
        bus: &mut Bus<'_, C>,
        commands: &mut [CommandSlot],
        tag: Tag,
        from: u32,
    ) -> Result<(), HostError> {
        let slot = slot_mut(commands, self.base, tag).ok_or(HostError::Stale)?;
        let expected = self.machine.expected(tag);
        let pipe = match expected {
            DataPhase::Out(_) => &self.pipes.data_out,
            DataPhase::In(_) | DataPhase::None => &self.pipes.data_in,
        };
        let transfer = tag.number() << part::BITS | part::DATA;
        let stream = self.stream(tag);
        let report = Report::WithoutInterrupt;
        let whole = match &slot.mapping {
            Some(mapping) if from == 0 => mapping.whole(),
            Some(_) => None,
            None => {
                let at = self.layout.scratch() + from as usize;
                let left = expected.length().saturating_sub(from);
                let memory = self.memory.raw(at, left as usize);
                Some(memory.map(Segment::from).ok_or(HostError::TooLong)?)
            }
        };
        if let Some(whole) = whole {
            let token = function_token(self.function, transfer);
            return bus.send_segment(pipe, stream, token, whole, report);
        }
        let mut rest = [Segment::EMPTY; 3];
        let pieces = slot.mapping.as_ref().map(Mapping::pieces);
        let count = pieces.map_or(0, |pieces| skip(pieces.as_slice(), from, &mut rest));
        let rest = rest.get(..count).unwrap_or_default();
        bus.send_on(pipe, stream, self.function, transfer, rest, report)
    }

    /// Sends the unit that was written for a tag.
    pub(super) fn send<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        tag: Tag,
        length: usize,
    ) -> Result<(), HostError> {
        let memory = self.memory.raw(self.layout.unit(tag), length);
        let memory = memory.map(Segment::from).ok_or(HostError::TooLong)?;
        let token = function_token(self.function, tag.number() << part::BITS | part::COMMAND);
        let report = self.report_of_unit();
        bus.send_segment(&self.pipes.command, 0, token, memory, report)
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
        let deadline = (tools.now + self.task_timeout).min(self.recovery_end);
        self.task = Some((tag, deadline));
        self.deadline = self.deadline.min(deadline);
        self.send(tools.bus, tag, TaskUnit::LENGTH)
    }

    /// Begins an operation on the device, or puts it behind the one under way.
    pub(super) fn operate<C: Driver, D: Dma>(
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
        if let End::Status { status, .. } = end
            && is_full(status)
            && self.put_off(tools.commands, tag, status, tools.now)
        {
            return;
        }
        // The device has sent nothing for it, and may yet: whatever it has said to the function that ended it.
        let unanswered = matches!(
            end,
            End::Failed(Cause::Timeout | Cause::Neighbour | Cause::Status(_))
        );
        if unanswered {
            self.marked.insert(tag);
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
        let moved = outcome.map_or(0, |completion| completion.moved as usize);
        Mapping::end(&mut slot.mapping, tools.dma, moved);
        slot.outcome = Some(outcome);
        slot.deadline = Instant::NEVER;
        self.ended.insert(tag);
    }
}

impl Transport {
    /// The device had no room for a command: it is sent again after a pause, if it has time for that. It keeps
    /// its tag, its memory and its deadline meanwhile.
    #[cold]
    fn put_off(
        &mut self,
        commands: &mut [CommandSlot],
        tag: Tag,
        status: ScsiStatus,
        now: Instant,
    ) -> bool {
        if status == ScsiStatus::TaskSetFull {
            // Those that wait here are not at the device.
            let waiting = self.put_off.with(TagSet::of(tag)).count();
            self.tags
                .lower(self.tags.in_flight().saturating_sub(waiting));
        }
        let again = now + PAUSE;
        let slot = slot_mut(commands, self.base, tag);
        if slot.is_none_or(|slot| again >= slot.deadline) {
            return false;
        }
        if self.put_off.is_empty() {
            self.put_off_until = again;
        }
        self.put_off.insert(tag);
        self.deadline = self.deadline.min(self.put_off_until);
        true
    }

    /// Sends the commands again that were put off, if it is time, or puts them off once more while the device is
    /// being brought back in step. One whose own time is over meanwhile ends.
    pub(super) fn resume_put_off<C: Driver, D: Dma>(&mut self, tools: &mut Tools<'_, '_, C, D>) {
        if self.put_off.is_empty() || tools.now < self.put_off_until {
            return;
        }
        let may_begin = self.machine.takes_commands();
        for tag in self.put_off {
            let Some(slot) = slot_mut(tools.commands, self.base, tag) else {
                continue;
            };
            if tools.now >= slot.deadline {
                Mapping::end(&mut slot.mapping, tools.dma, 0);
                slot.outcome = Some(Err(TransportError::DeviceBusy));
                slot.deadline = Instant::NEVER;
                self.ended.insert(tag);
            } else if may_begin {
                self.machine.begin_again(tag);
            } else {
                continue;
            }
            self.put_off.remove(tag);
        }
        self.put_off_until = match self.put_off.is_empty() {
            true => Instant::NEVER,
            false => tools.now + PAUSE,
        };
    }
}

/// Whether the device says that it had no room for a command, and did nothing.
fn is_full(status: ScsiStatus) -> bool {
    matches!(status, ScsiStatus::Busy | ScsiStatus::TaskSetFull)
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
#[path = "act_tests.rs"]
mod tests;
