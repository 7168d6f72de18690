//! What the end of a command says, and whether the command gets another try.
//!
//! Called by [`unit`](super) and, for what concerns more than a unit, by the stack.

use crate::block::queue::{Piece, RequestSlot};
use crate::block::{BlockError, SenseCode};
use crate::scsi::sense::{Sense, Verdict};
use crate::scsi::transport::{Status, TransportError};

/// Whether a command's status says that its unit must be brought up again before anything else: it has
/// stopped, is starting, or is of another size.
pub(crate) fn has_relapsed(status: &Status) -> bool {
    matches!(status, Status::Check(sense) if matches!(
        sense.verdict(),
        Verdict::NeedsStart | Verdict::BecomingReady | Verdict::CapacityChanged
    ))
}

/// Whether a command's status says no more than that its unit was reset.
#[cold]
pub(crate) fn tells_of_reset(status: &Status) -> bool {
    matches!(status, Status::Check(sense) if sense.verdict() == Verdict::ResetHappened)
}

/// A piece is to be issued again, if it has not failed so often already. Of several that fail the
/// first is judged; the others have their turn when it is done.
#[cold]
#[inline(never)]
pub(super) fn retry(
    piece: Piece,
    slot: &mut RequestSlot,
    retries: u8,
    error: BlockError,
) -> Result<(), BlockError> {
    let first = u64::from(piece.first);
    if first < slot.suspect {
        slot.suspect = first;
        slot.failures = 0;
    }
    if first == slot.suspect {
        if slot.failures >= retries {
            return Err(error);
        }
        slot.failures += 1;
    }
    slot.put_back(piece);
    Ok(())
}

/// What a request ends with whose command the transport could not carry out, once recovery has done what
/// it could.
pub(crate) fn transport_failed(error: TransportError) -> BlockError {
    match error {
        TransportError::Timeout => BlockError::Timeout,
        TransportError::Protocol(_) => BlockError::Protocol,
        TransportError::Broken(_) => BlockError::Broken,
        TransportError::Disconnected => BlockError::Disconnected,
        TransportError::Memory(error) => BlockError::Memory(error),
        TransportError::Refused | TransportError::Busy => BlockError::Refused,
        TransportError::Neighbour => BlockError::Reset,
        TransportError::DeviceBusy => BlockError::DeviceBusy,
        TransportError::Reserved => BlockError::Reserved,
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
