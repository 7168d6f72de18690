//! What a disk makes of a flush when it does not simply carry it out.
//!
//! Called by [`unit`](super), and by the stack for what a transport has to say of one. Invariant: a disk is taken for
//! one without the command only after it has said so, or has stalled the command twice and then shown that
//! it takes others, and never after it has carried one out; otherwise a flush that was not done is an error, or is
//! issued again.

use super::{RETRIES, SECOND_TRY, UnitEntry, retry};
use crate::block::queue::{Operation, RequestSlot};
use crate::block::{BlockError, FlushSupport, SenseCode};
use crate::scsi::sense::Verdict;

impl UnitEntry {
    /// Whether an operation is a flush of a disk without the command: nothing is sent for it.
    pub(crate) fn needs_no_command(&self, operation: Operation) -> bool {
        operation == Operation::Flush
            && self.flush == FlushSupport::NoFlushCommand
            && self.is_ready()
    }

    /// The device has stalled a flush, and was brought back in step. The first time that may be chance, and
    /// the flush is issued again. `true` if it is the device's habit: then it has no such command, if it
    /// still takes others. It must be brought up again to show that: one that has died says nothing about a
    /// command. One that has carried out a flush before fails this one.
    pub(crate) fn flush_stalled(&mut self, slot: &mut RequestSlot) -> bool {
        let piece = slot.piece;
        let tries = if self.has_flushed {
            RETRIES
        } else {
            SECOND_TRY
        };
        let Err(error) = retry(piece, slot, tries, BlockError::Protocol) else {
            return false;
        };
        if self.has_flushed {
            slot.failed.get_or_insert(error);
            return false;
        }
        self.flush = FlushSupport::NoFlushCommand;
        slot.put_back(piece);
        true
    }

    /// Whether the device says with this that it does not have the command. Any other complaint about a flush is
    /// a flush that was not done: a device that knows the command must not be taken for one that does not.
    pub(super) fn lacks_flush(&self, sense: SenseCode) -> bool {
        let unknown = [SenseCode::UNKNOWN_COMMAND, SenseCode::BAD_FIELD];
        !self.has_flushed && unknown.contains(&sense)
    }
}

/// Whether a flush that fails so may have left writes behind that no later flush covers: the disk may give
/// up what it could not write. One that could not begin has left all where it was.
pub(crate) fn is_loss(verdict: Verdict) -> bool {
    matches!(
        verdict,
        Verdict::MediumError | Verdict::HardwareError | Verdict::WriteProtected | Verdict::Failed
    )
}
