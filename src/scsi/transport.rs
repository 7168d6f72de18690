//! What passes between a disk and the transport that carries its commands.
//!
//! A transport takes a [`Request`], one or several at a time as it can, and ends each with a
//! [`Completion`]. It always brings sense data along with a CHECK CONDITION: fetched by a command
//! of its own where the protocol does not deliver it.

use super::cdb::{Command, UNMAP_LIST};
use super::sense::Sense;
use crate::block::queue::Piece;
use crate::dma::{MapError, RawBuffer, RawCoherent};
use crate::time::Duration;

/// Where the data of a command is.
#[derive(Clone, Copy, Debug)]
pub enum DataPlace {
    /// No data, or in the transport's own small memory (at most [`SCRATCH`] bytes).
    Scratch,
    /// The caller's memory, as many bytes as the command says.
    Caller(RawBuffer),
    /// A piece of the pool that stands for the caller's memory, which the controller cannot reach.
    Pool(RawCoherent),
    /// These bytes, which the transport puts into its own small memory.
    List([u8; UNMAP_LIST]),
}

/// Bytes of a transport's own memory for the answers of small commands.
pub const SCRATCH: usize = 4096;

/// A command to be carried out.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Logical unit.
    pub lun: u8,
    /// What is asked.
    pub command: Command,
    /// Where its data is.
    pub data: DataPlace,
    /// How long it may take before recovery begins.
    pub timeout: Duration,
}

/// Who wants a command: a place in one of the stack's tables, given back with the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Client {
    /// Which table.
    pub kind: ClientKind,
    /// Which place.
    pub index: u8,
    /// Which piece of a request.
    pub piece: Piece,
}

/// What wants a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientKind {
    /// The bring-up of a unit.
    Unit,
    /// A request.
    Request,
}

impl Client {
    /// The bring-up of a unit.
    #[must_use]
    pub const fn unit(index: u8) -> Self {
        Self {
            kind: ClientKind::Unit,
            index,
            piece: Piece {
                first: 0,
                blocks: 0,
            },
        }
    }

    /// A request, for a piece of it.
    #[must_use]
    pub const fn request(index: u8, piece: Piece) -> Self {
        Self {
            kind: ClientKind::Request,
            index,
            piece,
        }
    }
}

/// How a command ended at the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// GOOD.
    Good,
    /// CHECK CONDITION, with what the device says about it.
    Check(Sense),
}

/// A command that the device has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// How.
    pub status: Status,
    /// Bytes of data that were moved and that the device has processed.
    pub moved: u32,
}

/// Why the device has not ended a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransportError {
    /// It did not answer in time. It was reset by its protocol's own means and can be asked again.
    Timeout,
    /// Its answer made no sense, or the wire failed. It was reset by its protocol's own means and
    /// can be asked again.
    Protocol(Fault),
    /// The same, and resetting it failed too: it takes no commands until its port was reset.
    Broken(Fault),
    /// It has gone.
    Disconnected,
    /// The controller cannot reach the caller's memory.
    Memory(MapError),
    /// The controller took no transfer for it: its queues or the pool are too small.
    Refused,
    /// Its unit was reset for another command's sake, or it was late together with another. It can be
    /// asked again.
    Neighbour,
    /// Nothing was begun: it can be when another command has ended.
    Busy,
}

/// What went wrong, for people and for deciding about another try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// No answer.
    Timeout,
    /// Host and device were out of step.
    PhaseError,
    /// The status could not be believed.
    BadStatus,
    /// A stall where none may be.
    Stall,
    /// The wire or the controller.
    Wire,
}

/// The end of a [`Request`].
pub type Outcome = Result<Completion, TransportError>;

/// A command that has ended, and for whom. Aligned so that it is copied in whole words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(8))]
pub struct Ended {
    /// How.
    pub outcome: Outcome,
    /// For whom.
    pub client: Client,
}

const _: () = assert!(size_of::<Outcome>() <= 16, "it travels in two registers");
