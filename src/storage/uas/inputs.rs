//! What happens to a UAS device: ends of transfers and operations, and deadlines, handed to the
//! [`Machine`](super::machine::Machine) as its inputs.
//!
//! Called by [`function`](crate::storage::function). A unit that came is parsed here, once, from memory that the
//! device wrote; what the machine answers is carried out in `act`.

use super::machine::{Input, UasPipe};
use super::memory::{CommandSlot, slot_mut};
use super::transport::{Tools, Transport, part};
use super::wire::{StatusUnit, Tag, UnitFault};
use crate::dma::{Dma, Mapping};
use crate::host::{Outcome, TransferEnd};
use crate::scsi::transport::{Client, ClientKind, Progress};
use crate::time::Instant;
use crate::usb::{Bus, Driver, UsbError, function_and_tag};

impl Transport {
    /// Takes the good end of a transfer where it is a step on the way of a command, or ends one of a request
    /// well and in full, as nearly all do.
    #[inline]
    pub fn ended_well<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        commands: &mut [CommandSlot],
        end: &TransferEnd,
    ) -> Progress {
        let (_, tag) = function_and_tag(end.token);
        if !self.calm {
            return Progress::Unknown;
        }
        let progress = match (tag & ((1 << part::BITS) - 1), Tag::new(tag >> part::BITS)) {
            (part::STATUS, Some(command)) => self.passed(bus, dma, commands, command, end.actual),
            (part::STATUS, None) => self.heard(bus, dma, commands, end.actual),
            (part::DATA, Some(command)) => {
                let came = self.machine.data_came(command, end.actual);
                came.then_some(Progress::Step)
            }
            // The device has taken a unit.
            (part::COMMAND, _) => Some(Progress::Step),
            _ => None,
        };
        progress.unwrap_or(Progress::Unknown)
    }

    /// Something has come on the stream of a command: ends it, if that is a good status and all that was
    /// to come. `None`: nothing was done.
    #[inline]
    fn passed<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        commands: &mut [CommandSlot],
        tag: Tag,
        actual: u32,
    ) -> Option<Progress> {
        let at = self.layout.status(Some(tag));
        let head = self.memory.block::<{ StatusUnit::SENSE_HEAD }>(at)?;
        let is_unit = actual as usize >= StatusUnit::SENSE_HEAD;
        if !is_unit || !StatusUnit::is_good(head.read(), tag) {
            return None;
        }
        self.end_well(bus, dma, commands, tag)
    }

    /// Something has come on the status pipe without streams: queues the data for which the device is ready,
    /// or ends a command that has ended well with all that was to come; and posts the status read again.
    /// `None`: nothing was done.
    #[inline]
    fn heard<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        commands: &mut [CommandSlot],
        actual: u32,
    ) -> Option<Progress> {
        let head = self
            .memory
            .block::<{ StatusUnit::SENSE_HEAD }>(self.layout.status(None))?;
        let (tag, pipe) = match StatusUnit::usual(head.read(), actual as usize)? {
            StatusUnit::ReadReady(tag) => (tag, UasPipe::DataIn),
            StatusUnit::WriteReady(tag) => (tag, UasPipe::DataOut),
            StatusUnit::Sense { tag, .. } => {
                let progress = self.end_well(bus, dma, commands, tag)?;
                if self.read_status(bus, None).is_err() {
                    self.get_stuck(bus);
                }
                return Some(progress);
            }
            StatusUnit::Response { .. } => return None,
        };
        if !self.machine.ready_at_once(tag, pipe) {
            return None;
        }
        let read = self.read_status(bus, None);
        if read
            .and_then(|()| self.queue_data(bus, commands, tag, 0))
            .is_err()
        {
            self.get_stuck(bus);
        }
        Some(Progress::Step)
    }

    /// The device says that a request's command has ended well: ends it, if the machine knows it and all its
    /// data has come. `None`: nothing was done.
    #[inline]
    fn end_well<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        commands: &mut [CommandSlot],
        tag: Tag,
    ) -> Option<Progress> {
        let slot = slot_mut(commands, self.base, tag)?;
        let Client { kind, index, piece } = slot.client?;
        if kind != ClientKind::Request || self.scratch == Some(tag) {
            return None;
        }
        let moved = self.machine.pass(tag)?;
        slot.client = None;
        Mapping::end(&mut slot.mapping, dma, moved as usize);
        self.flying.remove(tag);
        self.tags.give_back(tag);
        if self.flying.is_empty() {
            self.rest(bus);
        }
        Some(Progress::Done {
            request: index,
            piece,
            moved,
        })
    }

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
        if let Some(head) = self.memory.block::<{ StatusUnit::SENSE_HEAD }>(at)
            && let Some(unit) = StatusUnit::usual(head.read(), actual as usize)
        {
            return Ok(Ok(unit));
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

    /// A deadline may have passed. No function that is sent for a late command has longer than until `end`.
    pub fn deadline_passed<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        end: Instant,
    ) {
        if self.quiescent {
            self.deadline = Instant::NEVER;
            return;
        }
        let now = tools.now;
        let mut any = false;
        self.recovery_end = end;
        self.resume_put_off(tools);
        for tag in self.flying.without(self.ended).without(self.put_off) {
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
        let mut earliest = self.operation.min(task).min(self.put_off_until);
        for tag in self.flying.without(self.ended) {
            if let Some(slot) = slot_mut(commands, self.base, tag) {
                earliest = earliest.min(slot.deadline);
            }
        }
        earliest
    }
}
