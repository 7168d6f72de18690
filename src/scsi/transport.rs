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
    /// These bytes, which the transport puts into its own small memory, and zeros behind them up to
    /// what the command says.
    List([u8; UNMAP_LIST]),
}

impl DataPlace {
    /// Gives the bytes of a list of `length` bytes to `place`, piece by piece, with their offsets;
    /// nothing where there is no list.
    pub fn list(&self, length: u32, mut place: impl FnMut(usize, &[u8])) {
        let bytes = match self {
            // Nothing but rare requests has a list.
            Self::List(bytes) if cfg!(feature = "rare") => bytes,
            _ => return,
        };
        place(0, bytes);
        let length = (length as usize).min(SCRATCH);
        for offset in (UNMAP_LIST..length).step_by(UNMAP_LIST) {
            let zeros = [0; UNMAP_LIST];
            let rest = zeros.get(..length - offset).unwrap_or(&zeros);
            place(offset, rest);
        }
    }
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
    /// The stack, which asks a unit what it may have said in a status that has not arrived.
    Doubt,
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

    /// The question what a unit may have said in a status that has not arrived.
    #[must_use]
    pub const fn doubt(unit: u8) -> Self {
        Self {
            kind: ClientKind::Doubt,
            ..Self::unit(unit)
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
    /// The device said that it has no room for it, until its time was over. Nothing was done.
    DeviceBusy,
    /// The device keeps the unit for another host, and did nothing.
    Reserved,
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

/// What the good end of a transfer is to the commands of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// One of them goes on.
    Step,
    /// A request's has ended well, and has moved all of its piece.
    Done {
        /// Whose it was: its place.
        request: u8,
        /// Which piece.
        piece: Piece,
        /// Bytes of that.
        moved: u32,
    },
    /// Nothing was done: there may be more to it.
    Unknown,
}

const _: () = assert!(size_of::<Outcome>() <= 16, "it travels in two registers");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_followed_by_zeros_as_far_as_the_command_says() {
        let place = DataPlace::List([7; UNMAP_LIST]);
        for length in [24, 25, 512, 4096] {
            let mut memory = [0xee; 4200];
            place.list(length, |offset, bytes| {
                memory[offset..offset + bytes.len()].copy_from_slice(bytes);
            });
            let (list, behind) = memory.split_at(UNMAP_LIST);
            let (zeros, untouched) = behind.split_at(length as usize - UNMAP_LIST);
            assert!(list.iter().all(|byte| *byte == 7));
            assert!(zeros.iter().all(|byte| *byte == 0), "{length}");
            assert!(untouched.iter().all(|byte| *byte == 0xee), "{length}");
        }
        DataPlace::Scratch.list(512, |_, _| panic!("there is no list"));
    }
}
