//! A logical unit: what it is, and how requests on it become commands.
//!
//! The stack owns a table of units and feeds them the ends of their commands; a unit answers what
//! comes next. Nothing is sent here.

use super::bring_up::{BringUp, BringUpError, Found};
use super::cdb::{Command, Extent, UnitAccess, read, synchronize_cache, write};
use super::inquiry::Inquiry;
use super::sense::{Sense, Verdict};
use super::transport::{Completion, DataPlace, Outcome, Request, Status, TransportError};
use crate::block::queue::{Operation, RequestSlot};
use crate::block::{BlockError, FlushSupport, Geometry, Lba, SenseCode};
use crate::platform::ControllerId;
use crate::policy::Policy;
use crate::time::Instant;

/// How often a command is tried again that ended with a status worth another try. Policy.
const RETRIES: u8 = 3;

/// How often a command is tried again after the device had to be reset. Policy: once; the second
/// time it is the device's habit, and the episode's time is up.
const RETRIES_AFTER_RESET: u8 = 1;

/// Where a unit is.
#[derive(Clone, Copy, Debug)]
pub enum UnitState {
    /// The entry is unused.
    Free,
    /// It is being brought up: the command to be issued next, or when to come back.
    BringUp(BringUp, Next),
    /// It is a disk.
    Ready(Found),
    /// It is there without a medium.
    Empty(Inquiry),
    /// It cannot be used.
    Failed(BringUpError),
}

/// What a bring-up waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Its turn to issue this command.
    Issue(Command),
    /// The end of its command.
    Ended,
    /// This time.
    Time(Instant),
}

/// A unit. The caller of the stack provides a slice of them.
#[derive(Debug)]
pub struct UnitEntry {
    pub(crate) generation: u8,
    pub(crate) function: u8,
    /// The controller that its device is on.
    pub(crate) controller: ControllerId,
    pub(crate) lun: u8,
    pub(crate) state: UnitState,
    pub(crate) flush: FlushSupport,
    pub(crate) transfer_bytes: u32,
}

impl UnitEntry {
    /// An unused entry.
    pub const EMPTY: Self = Self {
        generation: 0,
        function: 0,
        controller: ControllerId(0),
        lun: 0,
        state: UnitState::Free,
        flush: FlushSupport::Command,
        transfer_bytes: 0,
    };

    /// Whether the entry is unused.
    #[must_use]
    pub fn is_free(&self) -> bool {
        matches!(self.state, UnitState::Free)
    }

    /// Size and nature of the unit.
    ///
    /// # Errors
    ///
    /// [`BlockError::NoMedium`], [`BlockError::NotReady`], [`BlockError::Disconnected`].
    #[inline]
    pub fn geometry(&self) -> Result<Geometry, BlockError> {
        match &self.state {
            UnitState::Ready(found) => Ok(self.geometry_of(found)),
            UnitState::Empty(_) => Err(BlockError::NoMedium),
            UnitState::BringUp(..) | UnitState::Failed(_) => Err(BlockError::NotReady),
            UnitState::Free => Err(BlockError::Disconnected),
        }
    }

    #[inline]
    fn geometry_of(&self, found: &Found) -> Geometry {
        let block_length = found.capacity.block_length();
        Geometry {
            blocks: found.capacity.blocks(),
            block_bytes: block_length.bytes(),
            physical_exponent: found.capacity.physical_exponent(),
            writable: !found.write_protected,
            removable: found.inquiry.removable,
            flush: self.flush,
            transfer_blocks: (self.transfer_bytes >> block_length.exponent()).max(1),
        }
    }

    /// The next command of a request.
    ///
    /// # Errors
    ///
    /// Why the request ends without one.
    #[inline]
    pub(crate) fn command_for(
        &self,
        slot: &mut RequestSlot,
        policy: &Policy,
    ) -> Result<Request, BlockError> {
        let UnitState::Ready(found) = &self.state else {
            return Err(self.geometry().err().unwrap_or(BlockError::NotReady));
        };
        let (command, data, timeout) = match slot.operation {
            Operation::Flush => {
                let command = synchronize_cache(found.capacity.blocks());
                (command, DataPlace::Scratch, policy.flush)
            }
            Operation::Read(lba) => {
                let (extent, data) = self.next_chunk(found, slot, lba)?;
                (read(extent), data, policy.read_write)
            }
            Operation::Write(lba) => {
                let (extent, data) = self.next_chunk(found, slot, lba)?;
                (write(extent, UnitAccess::Cached), data, policy.read_write)
            }
        };
        Ok(Request {
            lun: self.lun,
            command,
            data,
            timeout,
        })
    }

    /// The blocks of the next command, and their place in the request's memory.
    #[inline]
    fn next_chunk(
        &self,
        found: &Found,
        slot: &mut RequestSlot,
        lba: Lba,
    ) -> Result<(Extent, DataPlace), BlockError> {
        let block_length = found.capacity.block_length();
        let most = (self.transfer_bytes >> block_length.exponent()).max(1);
        let rest = slot.blocks.saturating_sub(slot.done);
        slot.chunk = rest.min(u64::from(most)) as u32;
        let first = lba.0.saturating_add(slot.done);
        let beyond = BlockError::OutOfRange {
            lba: Lba(first),
            blocks: rest,
        };
        let extent = Extent::new(first, slot.chunk, block_length).ok_or(beyond)?;
        let offset = (slot.done as usize) << block_length.exponent();
        let memory = slot
            .memory
            .and_then(|memory| memory.slice(offset, extent.bytes() as usize));
        Ok((extent, DataPlace::Caller(memory.ok_or(beyond)?)))
    }

    /// A command of a request has ended. `None`: the request goes on.
    #[inline]
    pub(crate) fn request_ended(
        &mut self,
        slot: &mut RequestSlot,
        outcome: Outcome,
    ) -> Option<Result<(), BlockError>> {
        match outcome {
            Ok(Completion {
                status: Status::Good,
                moved,
            }) => self.chunk_done(slot, moved),
            Ok(Completion {
                status: Status::Check(sense),
                moved,
            }) => self.check(slot, &sense, moved),
            Err(error) => transport_failed(slot, error),
        }
    }

    #[inline]
    fn chunk_done(&self, slot: &mut RequestSlot, moved: u32) -> Option<Result<(), BlockError>> {
        if slot.operation == Operation::Flush {
            return Some(Ok(()));
        }
        let UnitState::Ready(found) = &self.state else {
            return Some(Err(BlockError::NotReady));
        };
        let wanted = slot.chunk << found.capacity.block_length().exponent();
        if moved != wanted {
            return retry(slot, RETRIES_AFTER_RESET, BlockError::Short { moved });
        }
        slot.failures = 0;
        slot.done += u64::from(slot.chunk);
        (slot.done >= slot.blocks).then_some(Ok(()))
    }

    fn check(
        &mut self,
        slot: &mut RequestSlot,
        sense: &Sense,
        moved: u32,
    ) -> Option<Result<(), BlockError>> {
        let code = SenseCode::from(sense);
        let failed = BlockError::Device(code);
        match sense.verdict() {
            Verdict::Success => self.chunk_done(slot, moved),
            Verdict::Unsupported if slot.operation == Operation::Flush => {
                self.flush = FlushSupport::NoFlushCommand;
                Some(Ok(()))
            }
            Verdict::Retry
            | Verdict::CapacityChanged
            | Verdict::ResetHappened
            | Verdict::EarlierCommandFailed
            | Verdict::BecomingReady
            | Verdict::HardwareError => retry(slot, RETRIES, failed),
            Verdict::Unexplained => retry(slot, RETRIES_AFTER_RESET, failed),
            Verdict::MediumError => {
                let lba = sense.information.map(Lba);
                retry(slot, RETRIES, BlockError::Medium { lba, sense: code })
            }
            Verdict::MediaChanged => Some(Err(BlockError::MediumChanged)),
            Verdict::NoMedium => Some(Err(BlockError::NoMedium)),
            Verdict::WriteProtected => Some(Err(BlockError::WriteProtected)),
            Verdict::NotReady
            | Verdict::NeedsStart
            | Verdict::NoSuchUnit
            | Verdict::OutOfRange
            | Verdict::Unsupported
            | Verdict::Failed => Some(Err(failed)),
        }
    }
}

fn retry(slot: &mut RequestSlot, retries: u8, error: BlockError) -> Option<Result<(), BlockError>> {
    if slot.failures >= retries {
        return Some(Err(error));
    }
    slot.failures += 1;
    None
}

fn transport_failed(
    slot: &mut RequestSlot,
    error: TransportError,
) -> Option<Result<(), BlockError>> {
    match error {
        // The device was reset, so the command is certainly dead, and nothing was accepted after
        // it: it may be issued again, also if it is a write.
        TransportError::Timeout => retry(slot, RETRIES_AFTER_RESET, BlockError::Timeout),
        TransportError::Protocol(_) => retry(slot, RETRIES_AFTER_RESET, BlockError::Protocol),
        TransportError::Broken(_) => Some(Err(BlockError::Broken)),
        TransportError::Disconnected => Some(Err(BlockError::Disconnected)),
        TransportError::Memory(error) => Some(Err(BlockError::Memory(error))),
        TransportError::Refused => Some(Err(BlockError::Refused)),
    }
}

impl From<&Sense> for SenseCode {
    fn from(sense: &Sense) -> Self {
        Self {
            key: sense.key.code(),
            asc: sense.asc,
            ascq: sense.ascq,
        }
    }
}

#[cfg(test)]
#[path = "unit_tests.rs"]
mod tests;
