//! A logical unit: what it is, and how requests on it become commands.
//!
//! The stack owns a table of units and feeds them the ends of their commands; a unit answers what
//! comes next. Nothing is sent here.

mod ends;
mod flush;
mod limits;
#[cfg(feature = "rare")]
mod rare;
#[cfg(not(feature = "rare"))]
#[path = "unit/no_rare.rs"]
mod rare;

use ends::retry;
pub(crate) use ends::{has_relapsed, tells_of_reset, transport_failed};
pub(crate) use flush::is_loss;
pub(crate) use rare::AtaBridge;
use rare::is_rare;

use super::bring_up::{BringUp, BringUpError, Found, Manner, Search};
use super::capacity::BlockLength;
use super::cdb::{
    Command, Extent, PowerChange, UnitAccess, read, start_stop_unit, synchronize_cache, write,
};
use super::inquiry::Inquiry;
use super::sense::{Sense, Verdict};
use super::transport::{Completion, DataPlace, Outcome, Request, Status};
use crate::block::durability::Durability;
use crate::block::line::Line;
use crate::block::queue::{Operation, Piece, RequestSlot};
use crate::block::{BlockError, FlushSupport, Geometry, Lba, SenseCode};
use crate::platform::ControllerId;
use crate::policy::Policy;
use crate::storage::quirks::Quirks;
use crate::time::Instant;

/// How often a command is tried again that ended with a status worth another try. Policy.
const RETRIES: u8 = 3;

/// How often a command is tried again that ended well and yet not as it should. Policy: once; the
/// second time it is the device's habit.
const SECOND_TRY: u8 = 1;

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
    /// Its device is being opened again.
    Away,
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
    pub(crate) generation: u32,
    pub(crate) function: u8,
    /// The controller that its device is on.
    pub(crate) controller: ControllerId,
    pub(crate) lun: u8,
    pub(crate) state: UnitState,
    pub(crate) flush: FlushSupport,
    /// It has carried out a flush: that it lacks the command is not believed any more.
    pub(crate) has_flushed: bool,
    /// The most bytes of one command's data.
    pub(crate) transfer_bytes: u32,
    /// What of that is chosen for this disk at run time.
    pub(crate) chosen_bytes: u32,
    /// A read that ends before this block moves its last block with a command of its own.
    pub(crate) lone_end: u64,
    pub(crate) durability: Durability,
    /// The loss epoch that the disk's own holder has seen: see `Host::add_holder`.
    pub(crate) seen: u32,
    /// What the unit was before its device was opened again: it must be the same now.
    pub(crate) before: Option<Found>,
    /// It is brought up again because of what it has said itself, and not because its device was reset:
    /// what it says of its medium meanwhile is news.
    pub(crate) relapsed: bool,
    /// Which use of the entry was told of as a disk that is ready.
    pub(crate) told: Option<u32>,
    /// On the way out: the use of the entry that is owed a flush. It outlasts that use.
    pub(crate) owed: Option<u32>,
    /// When it is asked again, while it has no medium.
    pub(crate) next_look: Instant,
    /// How often its device had to be reset while a command of a bring-up was under way.
    pub(crate) interruptions: u8,
    /// Its device's policies, for commands that may harm it.
    pub(crate) quirks: Quirks,
    /// How freely it may be asked.
    pub(crate) manner: Manner,
    /// [`Policy::trust`] is for everyone.
    #[cfg(feature = "rare")]
    pub(crate) is_trusted: bool,
    /// It has refused WRITE SAME as unknown.
    #[cfg(feature = "rare")]
    pub(crate) lacks_write_same: bool,
    /// How its device's other units are looked for, beginning with it.
    pub(crate) search: Search,
    /// What is known of its ATA PASS-THROUGH.
    pub(crate) ata: AtaBridge,
    /// Its requests that want a command, oldest first.
    pub(crate) line: Line,
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
        has_flushed: false,
        transfer_bytes: 0,
        chosen_bytes: u32::MAX,
        lone_end: u64::MAX,
        durability: Durability::NEW,
        seen: 0,
        before: None,
        relapsed: false,
        told: None,
        owed: None,
        next_look: Instant::NEVER,
        interruptions: 0,
        quirks: Quirks::empty(),
        manner: Manner::Cautious,
        #[cfg(feature = "rare")]
        is_trusted: false,
        #[cfg(feature = "rare")]
        lacks_write_same: false,
        search: Search::None,
        ata: AtaBridge::UNKNOWN,
        line: Line::EMPTY,
    };

    /// Whether commands may be issued for requests.
    #[inline]
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.state, UnitState::Ready(_))
    }

    /// Whether the entry is unused.
    #[must_use]
    pub fn is_free(&self) -> bool {
        matches!(self.state, UnitState::Free)
    }

    /// What it is, or was before its bring-up began again.
    #[inline]
    pub(crate) fn found(&self) -> Option<&Found> {
        match &self.state {
            UnitState::Ready(found) => Some(found),
            UnitState::BringUp(..) | UnitState::Away => self.before.as_ref(),
            UnitState::Free | UnitState::Empty(_) | UnitState::Failed(_) => None,
        }
    }

    /// Size and nature of the unit.
    ///
    /// # Errors
    ///
    /// [`BlockError::NoMedium`], [`BlockError::NotReady`], [`BlockError::Disconnected`].
    #[inline]
    pub fn geometry(&self) -> Result<Geometry, BlockError> {
        match (&self.state, &self.before) {
            (UnitState::Ready(found), _) => Ok(self.geometry_of(found)),
            // While it is being opened again, requests may be submitted.
            (UnitState::BringUp(..) | UnitState::Away, Some(before)) => {
                Ok(self.geometry_of(before))
            }
            (UnitState::Empty(_), _) => Err(BlockError::NoMedium),
            (UnitState::BringUp(machine, _), None) if machine.is_looking() => {
                Err(BlockError::NoMedium)
            }
            (UnitState::BringUp(..) | UnitState::Away | UnitState::Failed(_), _) => {
                Err(BlockError::NotReady)
            }
            (UnitState::Free, _) => Err(BlockError::Disconnected),
        }
    }

    /// Why it takes no commands of requests now.
    #[cold]
    #[inline(never)]
    fn why_not_ready(&self) -> BlockError {
        self.geometry().err().unwrap_or(BlockError::NotReady)
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
            cache: found.details.cache,
            transfer_blocks: (self.transfer_bytes >> block_length.exponent()).max(1),
        }
    }

    /// How many blocks `length` bytes from `lba` on are, which an operation reads or writes.
    ///
    /// # Errors
    ///
    /// Why the unit cannot have it.
    #[inline]
    pub(crate) fn admit_move(
        &self,
        operation: Operation,
        lba: Lba,
        length: usize,
    ) -> Result<u64, BlockError> {
        if let UnitState::Ready(found) = &self.state {
            let capacity = &found.capacity;
            let blocks = capacity.block_length().count(length);
            let end = lba.0.checked_add(blocks);
            let fits = blocks != 0 && end.is_some_and(|end| end <= capacity.blocks());
            if fits && (operation.is_read() || !found.write_protected) {
                return Ok(blocks);
            }
        }
        self.refuse_move(operation, lba, length)
    }

    /// The same for a unit that is not ready, or an operation that it cannot have.
    #[cold]
    #[inline(never)]
    fn refuse_move(
        &self,
        operation: Operation,
        lba: Lba,
        length: usize,
    ) -> Result<u64, BlockError> {
        let geometry = self.geometry()?;
        if !operation.is_read() && !geometry.writable {
            return Err(BlockError::WriteProtected);
        }
        geometry.extent(lba, length)
    }

    /// The same of an operation that neither reads nor writes, or does so in a manner of its own.
    ///
    /// # Errors
    ///
    /// Why the unit cannot have it.
    #[cold]
    pub(crate) fn admit_other(
        &self,
        operation: Operation,
        length: usize,
    ) -> Result<u64, BlockError> {
        let geometry = self.geometry()?;
        match operation {
            Operation::Flush | Operation::Stop => Ok(0),
            rare => self.admit(rare, &geometry, length),
        }
    }

    /// Whether writes that have ended well may be in no safer place than a cache, now that a command of this
    /// operation has ended without a status. A write that is the only one since the last flush has none
    /// beside it. What was under way at an earlier loss is not counted: until that loss was told, no write is
    /// taken for the only one.
    pub(crate) fn has_unflushed_beside(&self, operation: Option<Operation>) -> bool {
        let writes = matches!(
            operation,
            Some(Operation::Write(_) | Operation::WriteSame { .. } | Operation::Unmap { .. })
        );
        let may_be_alone = writes && self.seen == self.durability.epoch();
        self.durability.unflushed() > u32::from(may_be_alone)
    }

    /// The next command of a request that reads or writes from `lba` on.
    ///
    /// # Errors
    ///
    /// Why the request ends without one.
    #[inline]
    pub(crate) fn moving_command(
        &mut self,
        slot: &mut RequestSlot,
        lba: Lba,
        policy: &Policy,
    ) -> Result<Request, BlockError> {
        let UnitState::Ready(Found { capacity, .. }) = &self.state else {
            return Err(self.why_not_ready());
        };
        let block_length = capacity.block_length();
        let (command, data) = if slot.operation.is_read() {
            let (extent, data) = self.next_chunk(block_length, slot, lba, self.lone_end)?;
            (read(extent), data)
        } else {
            let (extent, data) = self.next_chunk(block_length, slot, lba, u64::MAX)?;
            self.durability.write_begins();
            (write(extent, UnitAccess::Cached), data)
        };
        slot.in_flight += 1;
        Ok(Request {
            lun: self.lun,
            command,
            data,
            timeout: policy.read_write,
        })
    }

    /// The next command of a request.
    ///
    /// # Errors
    ///
    /// Why the request ends without one.
    pub(crate) fn command_for(
        &mut self,
        slot: &mut RequestSlot,
        policy: &Policy,
    ) -> Result<Request, BlockError> {
        let UnitState::Ready(Found { capacity, .. }) = self.state else {
            return Err(self.why_not_ready());
        };
        if let Operation::Read(lba) | Operation::Write(lba) = slot.operation {
            return self.moving_command(slot, lba, policy);
        }
        slot.piece = Piece::default();
        let (command, data, timeout) = match slot.operation {
            Operation::Flush => {
                let command = synchronize_cache(capacity.blocks());
                slot.mark = self.durability.flush_begins();
                (command, DataPlace::Scratch, policy.flush)
            }
            Operation::Stop => {
                let command = start_stop_unit(PowerChange::Stop);
                (command, DataPlace::Scratch, policy.flush)
            }
            _ => self.rare_command(capacity.block_length(), slot, policy)?,
        };
        slot.in_flight += 1;
        Ok(Request {
            lun: self.lun,
            command,
            data,
            timeout,
        })
    }

    /// The same for at most `room` bytes of data, at least a block.
    ///
    /// # Errors
    ///
    /// As [`UnitEntry::command_for`].
    #[cold]
    pub(crate) fn command_within(
        &mut self,
        slot: &mut RequestSlot,
        policy: &Policy,
        room: u32,
    ) -> Result<Request, BlockError> {
        let usual = self.transfer_bytes;
        self.transfer_bytes = usual.min(room);
        let command = self.command_for(slot, policy);
        self.transfer_bytes = usual;
        command
    }

    /// The blocks of the next command, and their place in the request's memory. One that would end before
    /// `lone_end` leaves its last block to another.
    #[inline]
    fn next_chunk(
        &self,
        block_length: BlockLength,
        slot: &mut RequestSlot,
        lba: Lba,
        lone_end: u64,
    ) -> Result<(Extent, DataPlace), BlockError> {
        let most = (self.transfer_bytes >> block_length.exponent()).max(1);
        let rest = slot.blocks.saturating_sub(slot.issued);
        let mut blocks = rest.min(u64::from(most)) as u32;
        let first = lba.0.saturating_add(slot.issued);
        if first.wrapping_add(u64::from(blocks)) == lone_end && blocks > 1 {
            blocks -= 1;
        }
        let beyond = BlockError::OutOfRange {
            lba: Lba(first),
            blocks: rest,
        };
        let extent = Extent::new(first, blocks, block_length).ok_or(beyond)?;
        let offset = (slot.issued as usize) << block_length.exponent();
        let memory = slot
            .memory
            .and_then(|memory| memory.slice(offset, extent.bytes() as usize));
        slot.piece = Piece {
            first: slot.issued as u32,
            blocks,
        };
        slot.issued += u64::from(blocks);
        Ok((extent, DataPlace::Caller(memory.ok_or(beyond)?)))
    }

    /// The command for a piece of a request has ended. `None`: the request goes on.
    #[inline]
    pub(crate) fn request_ended(
        &mut self,
        piece: Piece,
        slot: &mut RequestSlot,
        outcome: Outcome,
    ) -> Option<Result<(), BlockError>> {
        let ended = match outcome {
            Ok(Completion {
                status: Status::Good,
                moved,
            }) => self.piece_done(piece, slot, moved),
            Ok(Completion {
                status: Status::Check(sense),
                moved,
            }) => self.check(piece, slot, &sense, moved),
            Err(error) => Err(transport_failed(error)),
        };
        if let Err(error) = ended {
            slot.failed.get_or_insert(error);
        }
        slot.settle()
    }

    #[inline]
    fn piece_done(
        &mut self,
        piece: Piece,
        slot: &mut RequestSlot,
        moved: u32,
    ) -> Result<(), BlockError> {
        if slot.operation == Operation::Flush {
            self.durability.flushed(slot.mark);
            self.has_flushed = true;
            return Ok(());
        }
        if slot.operation == Operation::Stop {
            return Ok(());
        }
        if is_rare(slot.operation) && !matches!(slot.operation, Operation::WriteForced(_)) {
            return self.rare_done(piece, slot, moved);
        }
        let Some(found) = self.found() else {
            return Err(BlockError::NotReady);
        };
        let wanted = piece.blocks << found.capacity.block_length().exponent();
        if moved != wanted {
            return retry(piece, slot, SECOND_TRY, BlockError::Short { moved });
        }
        if u64::from(piece.first) == slot.suspect {
            slot.suspect = u64::MAX;
            slot.failures = 0;
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn check(
        &mut self,
        piece: Piece,
        slot: &mut RequestSlot,
        sense: &Sense,
        moved: u32,
    ) -> Result<(), BlockError> {
        let code = SenseCode::from(sense);
        let failed = BlockError::Device(code);
        if let Some(ended) = self.rare_check(piece, slot, sense) {
            return ended;
        }
        if slot.operation == Operation::Flush && is_loss(sense.verdict()) {
            self.durability.interrupted();
        }
        match sense.verdict() {
            Verdict::Success => self.piece_done(piece, slot, moved),
            Verdict::Unsupported if slot.operation == Operation::Stop => match self.durability {
                // Nothing has put that on the medium.
                held if held.is_dirty() => Err(BlockError::Unsupported(code)),
                _ => Ok(()),
            },
            Verdict::Unsupported
                if slot.operation == Operation::Flush && self.lacks_flush(code) =>
            {
                self.flush = FlushSupport::NoFlushCommand;
                Ok(())
            }
            Verdict::ResetHappened | Verdict::EarlierCommandFailed => {
                self.durability.interrupted();
                retry(piece, slot, RETRIES, failed)
            }
            // The unit is brought up again before the next try: see `has_relapsed`.
            Verdict::Retry
            | Verdict::CapacityChanged
            | Verdict::NeedsStart
            | Verdict::BecomingReady
            | Verdict::HardwareError => retry(piece, slot, RETRIES, failed),
            Verdict::Unexplained => retry(piece, slot, SECOND_TRY, failed),
            Verdict::Unheard => {
                self.durability.doubted();
                retry(piece, slot, SECOND_TRY, failed)
            }
            Verdict::MediumError => {
                let lba = sense.information().map(Lba);
                retry(
                    piece,
                    slot,
                    RETRIES,
                    BlockError::Medium { lba, sense: code },
                )
            }
            Verdict::MediaChanged => {
                self.durability.interrupted();
                Err(BlockError::MediumChanged)
            }
            Verdict::NoMedium => Err(BlockError::NoMedium),
            Verdict::WriteProtected => Err(BlockError::WriteProtected),
            Verdict::NotReady
            | Verdict::NoSuchUnit
            | Verdict::OutOfRange
            | Verdict::Unsupported
            | Verdict::Failed => Err(failed),
        }
    }
}

#[cfg(test)]
#[path = "unit_tests.rs"]
mod tests;
