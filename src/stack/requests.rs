//! The queue face: requests in, completions out.

use super::Host;
use crate::block::line::Line;
use crate::block::queue::{
    Completion, DiskId, HolderId, Operation, RequestId, RequestSlot, RequestState,
};
use crate::block::{BlockError, Geometry};
use crate::dma::{DmaBuffer, RawBuffer};
use crate::platform::Platform;
use crate::scsi::unit::UnitEntry;
use crate::usb::Driver;

/// Who takes the result of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waiter {
    /// A blocking call.
    Call,
    /// Whoever asks for completions.
    Queue,
}

/// How many requests there are in each state.
#[derive(Debug)]
pub(super) struct Backlog {
    /// Requests that have not ended, and those of them that are no reads.
    pub(super) waiting: usize,
    pub(super) changes: usize,
}

impl Backlog {
    /// No request.
    pub(super) const NONE: Self = Self {
        waiting: 0,
        changes: 0,
    };

    /// Ends a request that waits, has nothing in flight and wants nothing any more.
    #[inline]
    pub(super) fn end(
        &mut self,
        ended: &mut Line,
        requests: &mut [RequestSlot],
        index: u8,
        result: Result<(), BlockError>,
    ) {
        let Some(slot) = requests.get_mut(usize::from(index)) else {
            return;
        };
        self.waiting = self.waiting.saturating_sub(1);
        let changes = usize::from(!slot.operation.is_read());
        self.changes = self.changes.saturating_sub(changes);
        slot.state = RequestState::Ended(result);
        slot.memory = None;
        if let Some(buffer) = slot.buffer.as_mut() {
            if slot.carried == slot.sequence {
                buffer.note_carried();
            } else if result.is_ok() {
                buffer.note_transfer();
            }
        }
        if !slot.is_blocking {
            ended.join(requests, index);
        }
    }
}

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Submits a read or write of the whole `buffer`, or a flush without one. The completion is
    /// taken with [`Host::take_completion`] after a [`Host::poll`]. While others of the disk are in flight it
    /// may be that poll that the controller is told by, so that several share a doorbell: whoever submits
    /// polls before it sleeps.
    ///
    /// # Errors
    ///
    /// Why nothing was submitted, and the buffer.
    pub fn submit(
        &mut self,
        disk: DiskId,
        operation: Operation,
        buffer: Option<DmaBuffer>,
    ) -> Result<RequestId, (BlockError, Option<DmaBuffer>)> {
        let memory = buffer.as_ref().map(DmaBuffer::raw);
        match self.submit_queued(disk, operation, memory, None) {
            Ok(id) => {
                if let Some(slot) = self.requests.get_mut(usize::from(id.index)) {
                    slot.buffer = buffer;
                }
                Ok(id)
            }
            Err(error) => Err((error, buffer)),
        }
    }

    /// Puts a request into a slot as [`Host::submit_for`] does, for whoever asks for completions.
    #[inline(never)]
    pub(super) fn submit_queued(
        &mut self,
        disk: DiskId,
        operation: Operation,
        memory: Option<RawBuffer>,
        holder: Option<HolderId>,
    ) -> Result<RequestId, BlockError> {
        self.submit_for(disk, operation, memory, holder, Waiter::Queue)
    }

    /// The next completion of any disk, in the order in which the requests have ended.
    #[inline]
    pub fn take_completion(&mut self) -> Option<Completion> {
        let index = self.ended.take(self.requests)?;
        let slot = self.requests.get_mut(usize::from(index))?;
        let RequestState::Ended(result) = slot.state else {
            return None;
        };
        let id = RequestId {
            index,
            sequence: slot.sequence,
        };
        let completion = Completion {
            id,
            disk: slot.disk,
            result,
            buffer: slot.buffer.take(),
        };
        slot.state = RequestState::Free;
        self.free.cut_in(self.requests, index);
        Some(completion)
    }

    /// Size and nature of a disk.
    ///
    /// # Errors
    ///
    /// [`BlockError::Disconnected`], [`BlockError::NotReady`], [`BlockError::NoMedium`].
    #[inline]
    pub fn geometry(&self, disk: DiskId) -> Result<Geometry, BlockError> {
        self.unit(disk).ok_or(BlockError::Disconnected)?.geometry()
    }

    /// Limits the data of one command of a disk to `bytes`, from the next command on: for a bridge that is found
    /// to corrupt or refuse long ones. No more than its device was opened for ([`Policy`](crate::policy::Policy)
    /// and quirks) or than it says itself, and no less than a block; [`Geometry::transfer_blocks`] says what counts.
    /// It holds as long as the disk has this id.
    ///
    /// # Errors
    ///
    /// As [`Host::geometry`].
    pub fn limit_transfers(&mut self, disk: DiskId, bytes: u32) -> Result<(), BlockError> {
        self.geometry(disk)?;
        let unit = self.units.get_mut(usize::from(disk.index));
        let unit = unit.ok_or(BlockError::Disconnected)?;
        unit.chosen_bytes = bytes;
        // One that is being opened again finds it when it is ready.
        if let Some(found) = unit.found().copied() {
            let device = self.functions.get(usize::from(unit.function));
            let most = device.map_or(0, |slot| slot.function.transfer_bytes());
            unit.limit_transfers(&found, most);
        }
        Ok(())
    }

    #[inline]
    pub(super) fn unit(&self, disk: DiskId) -> Option<&UnitEntry> {
        let entry = self.units.get(usize::from(disk.index))?;
        (entry.generation == disk.generation && !entry.is_free()).then_some(entry)
    }

    /// Puts a request into a slot and sets its function going, for a holder of the disk where there
    /// is one. Whoever calls it keeps the memory alive and alone until the request has ended.
    #[inline(always)]
    pub(super) fn submit_for(
        &mut self,
        disk: DiskId,
        operation: Operation,
        memory: Option<RawBuffer>,
        holder: Option<HolderId>,
        waiter: Waiter,
    ) -> Result<RequestId, BlockError> {
        let unit = self.unit(disk).ok_or(BlockError::Disconnected)?;
        let function = unit.function;
        let is_ready = unit.is_ready();
        let length = memory.as_ref().map_or(0, |memory| memory.length);
        let blocks = match operation {
            Operation::Read(lba) | Operation::Write(lba) => {
                unit.admit_move(operation, lba, length)?
            }
            other => unit.admit_other(other, length)?,
        };
        let index = self.free.take(self.requests).ok_or(BlockError::QueueFull)?;
        let slot = self.requests.get_mut(usize::from(index));
        let slot = slot.ok_or(BlockError::QueueFull)?;
        self.sequence = self.sequence.wrapping_add(1);
        slot.state = RequestState::Waiting;
        slot.sequence = self.sequence;
        slot.disk = disk;
        slot.operation = operation;
        slot.memory = memory;
        slot.blocks = blocks;
        slot.start_over();
        slot.holder = holder;
        slot.is_blocking = waiter == Waiter::Call;
        let id = RequestId {
            index,
            sequence: self.sequence,
        };
        let is_first = self.backlog.waiting == 0;
        self.backlog.waiting += 1;
        self.backlog.changes += usize::from(!operation.is_read());
        // Whoever waits has its command, and reads are in nobody's way.
        let is_free = self.hungry == 0 && self.backlog.changes == 0;
        let now = self.platform.now();
        if is_ready && (is_first || is_free) {
            self.schedule_alone(function, index, now);
        } else {
            self.note_hunger(index);
            self.schedule(function, now);
        }
        if waiter == Waiter::Call {
            // It waits before it polls.
            self.kick(now);
        }
        Ok(id)
    }

    pub(super) fn end_request(&mut self, index: u8, result: Result<(), BlockError>) {
        let Some(slot) = self.requests.get_mut(usize::from(index)) else {
            return;
        };
        if !slot.is_waiting() {
            return;
        }
        if slot.in_flight != 0 {
            // Its memory may be reached: it ends when the last of its commands has.
            if let Err(error) = result {
                slot.failed.get_or_insert(error);
            }
            return self.note_hunger(index);
        }
        if slot.is_in_line {
            self.leave_line(index);
        }
        self.backlog
            .end(&mut self.ended, self.requests, index, result);
    }

    /// The buffers of a unit's requests are not given back: dropping one leaks its memory, which is
    /// what is wanted of memory that a device may write to for ever.
    pub(super) fn withhold_buffers_of(&mut self, unit: u8) {
        for slot in self.requests.iter_mut() {
            if slot.disk.index == unit && slot.state == RequestState::Waiting {
                slot.buffer = None;
                // Nobody waits for their end any more.
                slot.in_flight = 0;
            }
        }
    }

    /// The disk of these requests has gone.
    pub(super) fn end_requests_of(&mut self, unit: u8, error: BlockError) {
        for index in 0..self.requests.len() {
            if self
                .requests
                .get(index)
                .is_some_and(|slot| slot.disk.index == unit)
            {
                self.end_request(index as u8, Err(error));
            }
        }
    }

    /// The result of a blocking request that has ended; its slot is free again then.
    #[inline]
    pub(super) fn take_result(&mut self, id: RequestId) -> Option<Result<(), BlockError>> {
        let slot = self.requests.get_mut(usize::from(id.index))?;
        match slot.state {
            RequestState::Ended(result) if slot.sequence == id.sequence => {
                slot.state = RequestState::Free;
                slot.is_blocking = false;
                self.free.cut_in(self.requests, id.index);
                Some(result)
            }
            _ => None,
        }
    }
}
