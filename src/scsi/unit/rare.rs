//! Requests that few make: forced writes, blocks written alike or given back, ATA commands.
//!
//! What a unit does not have, or a policy for its device forbids, ends here with the sense that a
//! device would give, and no command is sent. Ranges are cut by the limits of page B0, at the edges of
//! granules where the unit has such. Out of the way of reads and writes, which only ask whether a
//! request is one of these.

use super::{SECOND_TRY, UnitEntry, UnitState, retry, write};
use crate::block::ata::{ATA_SECTOR, AtaTransfer};
use crate::block::queue::{Operation, Piece, RequestSlot};
use crate::block::{BlockError, Geometry, Lba, SenseCode};
use crate::policy::Policy;
use crate::scsi::bring_up::{Found, Manner};
use crate::scsi::capacity::BlockLength;
use crate::scsi::cdb::{
    AtaForm, BlockRange, Command, SameBlock, UNMAP_LIST, UnitAccess, ata_pass_through, unmap,
    unmap_list, write_same,
};
use crate::scsi::inquiry::DeviceType;
use crate::scsi::sense::{AtaRegisters, Sense, Verdict};
use crate::scsi::transport::{DataPlace, SCRATCH};
use crate::scsi::vpd::BlockLimits;
use crate::storage::quirks::Quirks;
use crate::time::Duration;

/// The most blocks of one WRITE SAME where the unit does not say. Policy: what its shortest form can
/// name.
const WRITE_SAME_BLOCKS: u32 = 65_535;

/// The most blocks of one WRITE SAME, whatever the unit says. Policy: as Linux; many say that they have no limit.
const WRITE_SAME_LIMIT: u32 = 0x7f_ffff;

/// The most bytes that one WRITE SAME writes. Policy: a slow disk writes 20 MB/s, and has 60 seconds.
const WRITTEN_ALIKE_BYTES: u64 = 1 << 30;

/// What is known of a unit's ATA PASS-THROUGH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AtaBridge {
    form: AtaForm,
    state: AtaState,
    /// The output registers of the last command, where they came.
    pub(crate) registers: Option<AtaRegisters>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AtaState {
    Untried,
    /// A command was carried out in the present form.
    Works,
    /// Its device had to be reset because of one: it gets no more.
    Harmful,
}

impl AtaBridge {
    pub(crate) const UNKNOWN: Self = Self {
        form: AtaForm::Sixteen,
        state: AtaState::Untried,
        registers: None,
    };
}

/// Whether an operation is one of those that are carried out here.
#[inline]
pub(super) fn is_rare(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::WriteForced(_)
            | Operation::WriteSame { .. }
            | Operation::Unmap { .. }
            | Operation::Ata(_)
    )
}

impl UnitEntry {
    /// What is known of the unit, also while its device is opened again.
    fn known(&self) -> Option<&Found> {
        match &self.state {
            UnitState::Ready(found) => Some(found),
            _ => self.before.as_ref(),
        }
    }

    /// How many blocks a rare request is about, whose memory has `length` bytes.
    ///
    /// # Errors
    ///
    /// [`BlockError::Unsupported`], with the sense that a device would give, for what the unit does
    /// not have or must not get; else as for a write.
    #[cold]
    pub(crate) fn admit(
        &self,
        operation: Operation,
        geometry: &Geometry,
        length: usize,
    ) -> Result<u64, BlockError> {
        let is_write = !matches!(operation, Operation::Ata(_));
        if is_write && !geometry.writable {
            return Err(BlockError::WriteProtected);
        }
        let found = self.known().ok_or(BlockError::NotReady)?;
        match operation {
            Operation::WriteForced(lba) => {
                let blocks = geometry.extent(lba, length)?;
                let takes = found.details.takes_forced_writes;
                takes
                    .then_some(blocks)
                    .ok_or(unsupported(SenseCode::BAD_FIELD))
            }
            Operation::WriteSame { lba, blocks } => {
                admit_block(geometry, length)?;
                geometry.range(lba, blocks.into())?;
                self.admit_write_same(found)?;
                Ok(blocks.into())
            }
            Operation::Unmap { lba, blocks } => {
                geometry.range(lba, blocks.into())?;
                self.discard(found)?;
                Ok(blocks.into())
            }
            Operation::Ata(command) => {
                admit_sector(command.transfer, length)?;
                self.admit_ata(found)?;
                Ok(0)
            }
            Operation::Read(_) | Operation::Write(_) | Operation::Flush | Operation::Stop => Ok(0),
        }
    }

    /// WRITE SAME goes to a unit that says that it has it: by a limit for it (VPD page B0) or by what its blocks
    /// can be given back with (B2). One that says nothing may die of it, and gets it only where everyone is
    /// trusted. What it has refused as unknown is not sent again.
    fn admit_write_same(&self, found: &Found) -> Result<(), BlockError> {
        let details = &found.details;
        let says_so = details.limits.maximum_write_same.is_some()
            || details.provisioning.is_some_and(|it| it.write_same_16);
        let may_try = self.manner == Manner::Free && !self.quirks.contains(Quirks::NO_SAME);
        let is_allowed = may_try && !self.lacks_write_same && (says_so || self.is_trusted);
        let forbidden = unsupported(SenseCode::UNKNOWN_COMMAND);
        is_allowed.then_some(()).ok_or(forbidden)
    }

    /// Linux ends what [`Quirks::NO_ATA_1X`] forbids with 5/24/00; so does this.
    fn admit_ata(&self, found: &Found) -> Result<(), BlockError> {
        let disks = [DeviceType::Disk, DeviceType::ReducedDisk];
        if !disks.contains(&found.inquiry.device_type) {
            return Err(unsupported(SenseCode::UNKNOWN_COMMAND));
        }
        if self.quirks.contains(Quirks::NO_ATA_1X) || self.ata.state == AtaState::Harmful {
            return Err(unsupported(SenseCode::BAD_FIELD));
        }
        Ok(())
    }

    /// The next command of a rare request.
    #[cold]
    #[inline(never)]
    pub(super) fn rare_command(
        &mut self,
        block_length: BlockLength,
        slot: &mut RequestSlot,
        policy: &Policy,
    ) -> Result<(Command, DataPlace, Duration), BlockError> {
        match slot.operation {
            Operation::WriteForced(lba) => {
                let (extent, data) = self.next_chunk(block_length, slot, lba, u64::MAX)?;
                let command = write(extent, UnitAccess::Forced);
                Ok((command, data, policy.read_write))
            }
            Operation::WriteSame { lba, .. } => {
                let limits = &self.ready()?.details.limits;
                let most = written_alike_limit(limits, block_length);
                let rest = slot.blocks.saturating_sub(slot.issued);
                let range = next_range(slot, lba, most.min(rest));
                let command = same(range, block_length, SameBlock::Written)?;
                self.durability.write_begins();
                Ok((command, memory_of(slot, command)?, policy.flush))
            }
            Operation::Unmap { lba, .. } => {
                let (command, list) = self.next_discard(block_length, slot, lba)?;
                self.durability.write_begins();
                Ok((command, DataPlace::List(list), policy.flush))
            }
            // It is what its device was reset for: not once more.
            Operation::Ata(_) if self.ata.state == AtaState::Harmful => Err(BlockError::Timeout),
            Operation::Ata(ata) => {
                self.ata.registers = None;
                let command = ata_pass_through(self.ata.form, ata);
                let data = match ata.transfer {
                    AtaTransfer::None(_) => DataPlace::Scratch,
                    AtaTransfer::SectorIn => memory_of(slot, command)?,
                };
                Ok((command, data, policy.read_write))
            }
            Operation::Read(_) | Operation::Write(_) | Operation::Flush | Operation::Stop => {
                Err(BlockError::Refused)
            }
        }
    }

    fn ready(&self) -> Result<&Found, BlockError> {
        self.known().ok_or(BlockError::NotReady)
    }

    /// The next command that gives blocks back, and what its data begin with.
    fn next_discard(
        &self,
        block_length: BlockLength,
        slot: &mut RequestSlot,
        lba: Lba,
    ) -> Result<(Command, [u8; UNMAP_LIST]), BlockError> {
        let found = self.ready()?;
        let way = self.discard(found)?;
        let first = lba.0.saturating_add(slot.issued);
        let rest = slot.blocks.saturating_sub(slot.issued);
        let blocks = whole_granules(&found.details.limits, first, rest, way.most());
        let range = next_range(slot, lba, blocks);
        Ok(match way {
            Discard::Unmap(_) => (unmap(), unmap_list(range)),
            Discard::WriteSame(_) => {
                let command = same(range, block_length, SameBlock::GivenBack)?;
                (command, [0; UNMAP_LIST])
            }
        })
    }

    /// How the unit gives blocks back: by UNMAP if it has that, else by WRITE SAME if that is allowed.
    /// A unit that announces no blocks or no range for UNMAP does not have it (SBC-3 §6.6.3).
    fn discard(&self, found: &Found) -> Result<Discard, BlockError> {
        let absent = unsupported(SenseCode::UNKNOWN_COMMAND);
        let provisioning = found.details.provisioning.ok_or(absent)?;
        let limits = &found.details.limits;
        if let (true, Some(most), Some(_)) = (
            provisioning.unmap,
            limits.maximum_unmap,
            limits.maximum_unmap_ranges,
        ) {
            return Ok(Discard::Unmap(most.get()));
        }
        // The block of zeros comes out of the transport's own memory.
        let fits = found.capacity.block_length().bytes() as usize <= SCRATCH;
        if provisioning.write_same_16 && fits && self.admit_write_same(found).is_ok() {
            return Ok(Discard::WriteSame(write_same_limit(limits) as u32));
        }
        Err(absent)
    }

    /// The command for a piece of a rare request has ended well. One that has not taken all that it was
    /// sent has not done what it should.
    #[cold]
    #[inline(never)]
    pub(super) fn rare_done(
        &mut self,
        piece: Piece,
        slot: &mut RequestSlot,
        moved: u32,
    ) -> Result<(), BlockError> {
        if let Operation::Ata(command) = slot.operation {
            self.ata.state = AtaState::Works;
            let is_whole = command.transfer != AtaTransfer::SectorIn || moved == ATA_SECTOR as u32;
            return is_whole.then_some(()).ok_or(BlockError::Short { moved });
        }
        let found = self.known().ok_or(BlockError::NotReady)?;
        let block_bytes = found.capacity.block_length().bytes();
        let wanted = match slot.operation {
            Operation::Unmap { .. } => match self.discard(found)? {
                Discard::Unmap(_) => UNMAP_LIST as u32,
                Discard::WriteSame(_) => block_bytes,
            },
            _ => block_bytes,
        };
        if moved == wanted {
            return Ok(());
        }
        retry(piece, slot, SECOND_TRY, BlockError::Short { moved })
    }

    /// A command of a request has failed. `None`: it is no rare one, or its sense means what it
    /// always does; else what becomes of the piece.
    pub(super) fn rare_check(
        &mut self,
        piece: Piece,
        slot: &mut RequestSlot,
        sense: &Sense,
    ) -> Option<Result<(), BlockError>> {
        let is_unknown = sense.verdict() == Verdict::Unsupported;
        let unknown = unsupported(SenseCode::from(sense));
        match slot.operation {
            Operation::Ata(_) if sense.ata_registers().is_some() => {
                self.ata.state = AtaState::Works;
                self.ata.registers = sense.ata_registers();
                Some(Ok(()))
            }
            Operation::Ata(_) if is_unknown && self.has_other_form() => {
                slot.put_back(piece);
                Some(Ok(()))
            }
            Operation::WriteForced(_) if is_unknown => {
                if let UnitState::Ready(found) = &mut self.state {
                    found.details.takes_forced_writes = false;
                }
                Some(Err(unknown))
            }
            Operation::Ata(_) | Operation::WriteSame { .. } | Operation::Unmap { .. }
                if is_unknown =>
            {
                if SenseCode::from(sense) == SenseCode::UNKNOWN_COMMAND {
                    self.note_lack(slot.operation);
                }
                Some(Err(unknown))
            }
            _ => None,
        }
    }

    /// The unit does not know the command that an operation was carried out by: it is not sent again.
    fn note_lack(&mut self, operation: Operation) {
        let way = match operation {
            Operation::Unmap { .. } => self.ready().and_then(|found| self.discard(found)).ok(),
            _ => None,
        };
        match (operation, way) {
            (_, Some(Discard::Unmap(_))) => {
                if let UnitState::Ready(found) = &mut self.state
                    && let Some(provisioning) = &mut found.details.provisioning
                {
                    provisioning.unmap = false;
                }
            }
            (Operation::WriteSame { .. }, _) | (_, Some(Discard::WriteSame(_))) => {
                self.lacks_write_same = true;
            }
            _ => {}
        }
    }

    /// A bridge does not know the present form, or minds the command. Whether the other form is to be
    /// tried: once, unless a command was carried out in this one.
    fn has_other_form(&mut self) -> bool {
        match (self.ata.state, self.ata.form) {
            (AtaState::Untried, AtaForm::Sixteen) => {
                self.ata.form = AtaForm::Twelve;
                true
            }
            (AtaState::Untried, AtaForm::Twelve) => {
                self.ata.form = AtaForm::Sixteen;
                false
            }
            (AtaState::Works | AtaState::Harmful, _) => false,
        }
    }

    /// Its device had to be reset while a command of such a request was under way.
    pub(crate) fn note_harm(&mut self, operation: Operation) {
        if matches!(operation, Operation::Ata(_)) {
            self.ata.state = AtaState::Harmful;
        }
    }
}

fn unsupported(sense: SenseCode) -> BlockError {
    BlockError::Unsupported(sense)
}

/// Whether a memory is one block.
fn admit_block(geometry: &Geometry, length: usize) -> Result<(), BlockError> {
    let block_bytes = geometry.block_bytes;
    let is_one = u32::try_from(length) == Ok(block_bytes);
    let refused = BlockError::BufferLength {
        length,
        block_bytes,
    };
    is_one.then_some(()).ok_or(refused)
}

/// Whether a memory is a sector, where one comes.
fn admit_sector(transfer: AtaTransfer, length: usize) -> Result<(), BlockError> {
    let needs = match transfer {
        AtaTransfer::None(_) => 0,
        AtaTransfer::SectorIn => ATA_SECTOR,
    };
    let refused = BlockError::BufferLength {
        length,
        block_bytes: ATA_SECTOR as u32,
    };
    (length >= needs).then_some(()).ok_or(refused)
}

/// The memory of a request, as long as its command says.
fn memory_of(slot: &RequestSlot, command: Command) -> Result<DataPlace, BlockError> {
    let length = command.data.length() as usize;
    let memory = slot.memory.and_then(|memory| memory.slice(0, length));
    let refused = BlockError::BufferLength {
        length: 0,
        block_bytes: command.data.length(),
    };
    memory.map(DataPlace::Caller).ok_or(refused)
}

/// How blocks are given back, and the most of one command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Discard {
    Unmap(u32),
    WriteSame(u32),
}

impl Discard {
    const fn most(self) -> u32 {
        match self {
            Self::Unmap(most) | Self::WriteSame(most) => most,
        }
    }
}

/// The blocks of the next command of a request that moves none of them.
fn next_range(slot: &mut RequestSlot, lba: Lba, blocks: u64) -> BlockRange {
    let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
    let first = lba.0.saturating_add(slot.issued);
    slot.piece = Piece {
        first: slot.issued as u32,
        blocks,
    };
    slot.issued += u64::from(blocks);
    BlockRange { lba: first, blocks }
}

fn same(
    range: BlockRange,
    block_length: BlockLength,
    what: SameBlock,
) -> Result<Command, BlockError> {
    let nothing = BlockError::OutOfRange {
        lba: Lba(range.lba),
        blocks: 0,
    };
    write_same(range, block_length, what).ok_or(nothing)
}

/// The most blocks of one WRITE SAME; 32 bits hold it.
fn write_same_limit(limits: &BlockLimits) -> u64 {
    let most = limits.maximum_write_same.map(core::num::NonZeroU64::get);
    most.unwrap_or(WRITE_SAME_BLOCKS.into())
        .min(WRITE_SAME_LIMIT.into())
}

/// The most blocks of one that writes them, so that it ends before its deadline.
fn written_alike_limit(limits: &BlockLimits, block_length: BlockLength) -> u64 {
    write_same_limit(limits).min(WRITTEN_ALIKE_BYTES >> block_length.exponent())
}

/// How many of `rest` blocks from `first` on one command of at most `most` gives back: where it cannot take
/// all, it ends at the edge of a granule, since pieces of one are not given back.
fn whole_granules(limits: &BlockLimits, first: u64, rest: u64, most: u32) -> u64 {
    let most = u64::from(most);
    if rest <= most {
        return rest;
    }
    let granule = limits.unmap_granularity.map_or(1, |it| u64::from(it.get()));
    let begins = u64::from(limits.unmap_alignment.unwrap_or(0));
    let end = first.saturating_add(most);
    let behind_edge = end.saturating_sub(begins) % granule;
    match most.saturating_sub(behind_edge) {
        0 => most,
        blocks => blocks,
    }
}

#[cfg(test)]
#[path = "rare_tests.rs"]
mod tests;
