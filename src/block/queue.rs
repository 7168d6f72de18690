//! The queue face: requests that own their buffers until they are completed.
//!
//! A caller submits requests to the host, polls it, and takes completions. Requests of one disk
//! are begun in the order of their submission; a flush covers the writes whose completion was
//! taken before it was submitted.

use super::durability::FlushMark;
use super::{BlockError, Lba};
use crate::dma::{Bounced, DmaBuffer, RawBuffer};

/// A disk of the host: its place in the table and which use of that place. The id of a disk that
/// has gone stays valid and names nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskId {
    pub(crate) index: u8,
    pub(crate) generation: u8,
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
    pub(crate) generation: u8,
}

/// A holder of a disk. The caller of the stack provides a slice of them; a disk's only user needs
/// none.
#[derive(Clone, Copy, Debug)]
pub struct HolderEntry {
    pub(crate) generation: u8,
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
    /// Put what was written on the medium; no buffer.
    Flush,
    /// Put what was written on the medium and spin the disk down; no buffer. The next command spins
    /// it up again.
    Stop,
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
    /// Carries the data of the command under way, where the controller cannot reach the memory.
    pub(crate) bounced: Option<Bounced>,
    /// Blocks in all, and done.
    pub(crate) blocks: u64,
    pub(crate) done: u64,
    /// Blocks of the command under way.
    pub(crate) chunk: u32,
    /// Tries of the command under way that failed.
    pub(crate) failures: u8,
    /// How often its device had to be reset while a command of it was under way.
    pub(crate) interruptions: u8,
    /// Where the flush began, for a flush.
    pub(crate) mark: FlushMark,
    /// Whose flush it is: place in the table of holders, or the disk's own.
    pub(crate) holder: Option<HolderId>,
    /// A blocking call waits for it, and takes its result itself.
    pub(crate) is_blocking: bool,
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
        blocks: 0,
        done: 0,
        chunk: 0,
        failures: 0,
        interruptions: 0,
        mark: FlushMark::NONE,
        holder: None,
        is_blocking: false,
    };
}
