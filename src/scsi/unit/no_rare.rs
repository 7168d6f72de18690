//! In place of [`rare`](super::rare) where the library is built without it: such requests end at once as on
//! a disk that does not know their commands.

use crate::block::queue::{Operation, Piece, RequestSlot};
use crate::block::{BlockError, Geometry, SenseCode};
use crate::policy::Policy;
use crate::scsi::capacity::BlockLength;
use crate::scsi::cdb::Command;
use crate::scsi::sense::{AtaRegisters, Sense};
use crate::scsi::transport::DataPlace;
use crate::time::Duration;

use super::UnitEntry;

/// What is known of a unit's ATA PASS-THROUGH: nothing, ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AtaBridge {
    /// None.
    pub(crate) registers: Option<AtaRegisters>,
}

impl AtaBridge {
    pub(crate) const UNKNOWN: Self = Self { registers: None };
}

/// None is carried out.
#[inline]
pub(super) fn is_rare(_operation: Operation) -> bool {
    false
}

impl UnitEntry {
    /// None is taken.
    ///
    /// # Errors
    ///
    /// [`BlockError::Unsupported`], always.
    pub(crate) fn admit(
        &self,
        _operation: Operation,
        _geometry: &Geometry,
        _length: usize,
    ) -> Result<u64, BlockError> {
        Err(BlockError::Unsupported(SenseCode::UNKNOWN_COMMAND))
    }

    /// Never called: none is taken.
    pub(super) fn rare_command(
        &mut self,
        _block_length: BlockLength,
        _slot: &mut RequestSlot,
        _policy: &Policy,
    ) -> Result<(Command, DataPlace, Duration), BlockError> {
        Err(BlockError::Refused)
    }

    /// Never called.
    pub(super) fn rare_done(
        &mut self,
        _piece: Piece,
        _slot: &mut RequestSlot,
        _moved: u32,
    ) -> Result<(), BlockError> {
        Ok(())
    }

    /// It is no rare request.
    pub(super) fn rare_check(
        &mut self,
        _piece: Piece,
        _slot: &mut RequestSlot,
        _sense: &Sense,
    ) -> Option<Result<(), BlockError>> {
        None
    }

    /// It was no ATA command.
    pub(crate) fn note_harm(&mut self, _operation: Operation) {}
}
