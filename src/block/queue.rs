//! The queue face: requests that own their buffers until they are completed.
//!
//! A caller submits requests to the host, polls it, and takes completions. Requests of one disk
//! are begun in the order of their submission, several at a time where the device takes several
//! commands, and then end in any order: but one that overlaps an earlier one, if either writes,
//! waits for it. A flush waits for all before it, and all behind it wait for the flush; it covers the
//! writes whose completion was taken before it was submitted.

use super::ata::AtaCommand;
use super::durability::FlushMark;
use super::line::NOBODY;
use super::{BlockError, Lba};
use crate::dma::{Bounced, DmaBuffer, RawBuffer};

/// How often a command is issued again after its device had to be reset. Policy: once after the
/// protocol's reset and once after the port's, whatever rung they were of. UAS has two resets of its own, which count
/// as one.
pub(crate) const REISSUES: u8 = 2;

/// A disk of the host: its place in the table and which use of that place. The id of a disk that
/// has gone stays valid and names nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskId {
    pub(crate) index: u8,
    pub(crate) generation: u32,
}

impl DiskId {
    /// A number for people: the place in the table.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.index
    }
}

/// A request that was submitted. Unique among all requests of a host in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestId {
    pub(crate) index: u8,
    pub(crate) sequence: u32,
}

/// One of several users of the same disk: each is told of losses by its own flushes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HolderId {
    pub(crate) index: u8,
    pub(crate) generation: u32,
}

/// A holder of a disk. The caller of the stack provides a slice of them; a disk's only user needs
/// none.
#[derive(Clone, Copy, Debug)]
pub struct HolderEntry {
    pub(crate) generation: u32,
    pub(crate) disk: Option<DiskId>,
    /// The loss epoch that it was told of.
    pub(crate) seen: u32,
}

impl HolderEntry {
    /// An unused entry.
    pub const EMPTY: Self = Self {
        generation: 0,
        disk: None,
        seen: 0,
    };
}

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Fill the buffer from the disk.
    Read(Lba),
    /// Write the buffer to the disk.
    Write(Lba),
    /// Write the buffer to the disk's medium, past its cache, where
    /// `takes_forced_writes` of its details says that it can; else [`BlockError::Unsupported`]. It is no flush: other writes stay where they are.
    WriteForced(Lba),
    /// Write the buffer, one block, to each of these blocks.
    WriteSame {
        /// The first block.
        lba: Lba,
        /// How many.
        blocks: u32,
    },
    /// Say that these blocks hold nothing any more, by UNMAP or in another way that the disk has; no
    /// buffer. They read as `provisioning` of its
    /// details says until they are written again.
    Unmap {
        /// The first block.
        lba: Lba,
        /// How many.
        blocks: u32,
    },
    /// Hand an ATA command through to the disk behind a bridge; a buffer of 512 bytes for one that
    /// brings a sector. It is not issued again after a reset of its device: bridges die of these.
    Ata(AtaCommand),
    /// Put what was written on the medium; no buffer.
    Flush,
    /// Spin the disk down, which puts what was written on the medium; no buffer. The next command spins it
    /// up again. A disk that does not know how to stays as it is, and that is no failure unless it holds
    /// writes that no flush has covered ([`BlockError::Unsupported`]).
    Stop,
}

impl Operation {
    /// Whether it leaves the disk as it is, so that others like it may be under way in any order.
    #[inline]
    pub(crate) fn is_read(&self) -> bool {
        matches!(self, Self::Read(_))
    }

    /// Whether it may leave something in the disk's cache.
    pub(crate) fn leaves_unflushed(&self) -> bool {
        !matches!(self, Self::Read(_) | Self::Flush | Self::Stop)
    }
}

/// A request that has ended, with its buffer.
#[derive(Debug)]
pub struct Completion {
    /// From the submission.
    pub id: RequestId,
    /// The disk.
    pub disk: DiskId,
    /// How it ended.
    pub result: Result<(), BlockError>,
    /// The buffer, if the request had one.
    pub buffer: Option<DmaBuffer>,
}

/// A piece of a request, in blocks from its start: what one command moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Piece {
    /// The first block.
    pub first: u32,
    /// How many.
    pub blocks: u32,
}

/// What a request does to its blocks, and the first of them.
#[derive(Clone, Copy)]
enum Touch {
    Reads(Lba),
    Changes(Lba),
}

impl Touch {
    fn first(self) -> u64 {
        match self {
            Self::Reads(lba) | Self::Changes(lba) => lba.0,
        }
    }
}

/// Where a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestState {
    Free,
    /// Submitted; commands may be under way for it.
    Waiting,
    /// Ended; the completion was not taken yet.
    Ended(Result<(), BlockError>),
}

/// One request. The caller of the stack provides a slice of them: as many as may be in flight.
#[derive(Debug)]
pub struct RequestSlot {
    pub(crate) state: RequestState,
    pub(crate) sequence: u32,
    pub(crate) disk: DiskId,
    pub(crate) operation: Operation,
    pub(crate) memory: Option<RawBuffer>,
    /// The buffer, where the request owns one; a blocking request borrows.
    pub(crate) buffer: Option<DmaBuffer>,
    /// Carries the data of one command under way, where the controller cannot reach the memory.
    pub(crate) bounced: Option<(Piece, Bounced)>,
    /// The latest request here, by its sequence number, some of whose data was carried so.
    pub(crate) carried: u32,
    /// Blocks in all, and those that commands were issued for.
    pub(crate) blocks: u64,
    pub(crate) issued: u64,
    /// What the last command moves.
    pub(crate) piece: Piece,
    /// Commands in flight.
    pub(crate) in_flight: u8,
    /// The first block whose command must be issued again; `u64::MAX` if none. No more is issued
    /// until all that is in flight has ended.
    pub(crate) redo: u64,
    /// The first block whose command has failed; `u64::MAX` if none has.
    pub(crate) suspect: u64,
    /// Tries of that command that failed.
    pub(crate) failures: u8,
    /// What it ends with when all that is in flight has ended.
    pub(crate) failed: Option<BlockError>,
    /// Its device had to be reset meanwhile, and what it ends with if that was once too often.
    pub(crate) interrupted: Option<BlockError>,
    /// How often its device had to be reset while a command of it was under way.
    pub(crate) interruptions: u8,
    /// Where the flush began, for a flush.
    pub(crate) mark: FlushMark,
    /// Whose flush it is: place in the table of holders, or the disk's own.
    pub(crate) holder: Option<HolderId>,
    /// A blocking call waits for it, and takes its result itself.
    pub(crate) is_blocking: bool,
    /// Who is behind it in its line.
    pub(crate) behind: u8,
    /// It stands in its disk's line of requests that want a command.
    pub(crate) is_in_line: bool,
}

impl RequestSlot {
    /// An unused slot.
    pub const EMPTY: Self = Self {
        state: RequestState::Free,
        sequence: 0,
        disk: DiskId {
            index: 0,
            generation: 0,
        },
        operation: Operation::Flush,
        memory: None,
        buffer: None,
        bounced: None,
        carried: u32::MAX,
        blocks: 0,
        issued: 0,
        piece: Piece {
            first: 0,
            blocks: 0,
        },
        in_flight: 0,
        redo: u64::MAX,
        suspect: u64::MAX,
        failures: 0,
        failed: None,
        interrupted: None,
        interruptions: 0,
        mark: FlushMark::NONE,
        holder: None,
        is_blocking: false,
        behind: NOBODY,
        is_in_line: false,
    };

    /// Forgets how far an earlier request had come.
    pub(crate) fn start_over(&mut self) {
        self.issued = 0;
        self.in_flight = 0;
        self.redo = u64::MAX;
        self.suspect = u64::MAX;
        self.failures = 0;
        self.interruptions = 0;
        self.failed = None;
        self.interrupted = None;
        self.bounced = None;
    }

    /// Its id, for the slot at `index`.
    pub(crate) fn id(&self, index: u8) -> RequestId {
        let sequence = self.sequence;
        RequestId { index, sequence }
    }

    /// Whether it was submitted and has not ended.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.state, RequestState::Waiting)
    }

    /// Whether a command is to be issued for it, as far as it alone is concerned.
    #[inline]
    pub(crate) fn wants_command(&self) -> bool {
        self.in_flight == 0
            || (self.issued < self.blocks && self.redo == u64::MAX && self.failed.is_none())
    }

    /// Whether it ends well with the command for a piece, which has moved all of that: a read or write, of
    /// which nothing else is under way or still to be done.
    #[inline]
    pub(crate) fn ends_with(&self, piece: Piece) -> bool {
        let moves = matches!(self.operation, Operation::Read(_) | Operation::Write(_));
        let is_last = self.in_flight == 1 && self.issued >= self.blocks && self.redo == u64::MAX;
        let went_well = self.failed.is_none() && self.suspect != u64::from(piece.first);
        moves && is_last && went_well && self.bounced.is_none()
    }

    /// Whether it must not be under way at the same time as another one of its disk: the device may
    /// carry commands out in any order, and a write that is issued again must not overtake a later
    /// one.
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        match (self.touches(), other.touches()) {
            (Some(Touch::Reads(_)), Some(Touch::Reads(_))) => false,
            (Some(one), Some(two)) => {
                let (one, two) = (one.first(), two.first());
                one < two.saturating_add(other.blocks) && two < one.saturating_add(self.blocks)
            }
            (None, _) | (_, None) => true,
        }
    }

    /// The blocks from where on it is about; `None`: all, or none that can be told.
    fn touches(&self) -> Option<Touch> {
        match self.operation {
            Operation::Read(lba) => Some(Touch::Reads(lba)),
            Operation::Write(lba)
            | Operation::WriteForced(lba)
            | Operation::WriteSame { lba, .. }
            | Operation::Unmap { lba, .. } => Some(Touch::Changes(lba)),
            Operation::Flush | Operation::Stop | Operation::Ata(_) => None,
        }
    }

    /// The command that was made for a piece was not issued after all.
    pub(crate) fn not_issued(&mut self, piece: Piece) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.issued = u64::from(piece.first);
    }

    /// The command for a piece has ended without being carried out: it is to be issued again.
    #[inline]
    pub(crate) fn put_back(&mut self, piece: Piece) {
        self.redo = self.redo.min(u64::from(piece.first));
    }

    /// One command less is in flight. When none is, the request has ended or goes on from where it
    /// must: `None`.
    #[inline]
    pub(crate) fn settle(&mut self) -> Option<Result<(), BlockError>> {
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.in_flight != 0 {
            return None;
        }
        if let Some(error) = self.failed {
            return Some(Err(error));
        }
        if self.redo != u64::MAX {
            self.issued = self.redo;
            self.redo = u64::MAX;
            return self.count_interruption();
        }
        (self.issued >= self.blocks).then_some(Ok(()))
    }

    #[cold]
    fn count_interruption(&mut self) -> Option<Result<(), BlockError>> {
        let error = self.interrupted.take()?;
        self.interruptions = self.interruptions.saturating_add(1);
        (self.interruptions > REISSUES).then_some(Err(error))
    }
}
