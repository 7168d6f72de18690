//! The blocking face's way to the ATA disk behind a bridge: who it is, how it is, its tests of itself.
//!
//! Nothing of this is sent unasked: there are bridges that die of it. One whose device had to be reset
//! for an ATA command gets no other.

use core::fmt;

use super::Disk;
use super::disk::Small;
use crate::block::BlockError;
use crate::block::ata::{AtaCommand, AtaRegistersWanted, AtaTransfer};
use crate::block::queue::Operation;
use crate::platform::Platform;
use crate::scsi::ata::{AtaIdentity, Health, Prognosis, SectorFault, SelfTestKind};
use crate::scsi::sense::AtaRegisters;
use crate::usb::Driver;

/// Why nothing is known of an ATA disk's health.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SmartError {
    /// The bridge failed: [`BlockError::Unsupported`] for one that passes no ATA commands on, and for
    /// one that must not get any.
    Block(BlockError),
    /// What came is damaged, or no answer to the question. Ask once more.
    Sector(SectorFault),
    /// The disk has no SMART, or cannot test itself.
    Absent,
    /// SMART is switched off in the disk.
    SwitchedOff,
}

impl From<BlockError> for SmartError {
    fn from(error: BlockError) -> Self {
        Self::Block(error)
    }
}

impl From<SectorFault> for SmartError {
    fn from(fault: SectorFault) -> Self {
        Self::Sector(fault)
    }
}

impl fmt::Display for SmartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(error) => error.fmt(formatter),
            Self::Sector(fault) => write!(formatter, "the disk's answer is no good: {fault:?}"),
            Self::Absent => formatter.write_str("the disk does not have this"),
            Self::SwitchedOff => formatter.write_str("SMART is switched off in the disk"),
        }
    }
}

impl core::error::Error for SmartError {}

impl<P: Platform, C: Driver> Disk<'_, '_, P, C> {
    /// Hands an ATA command through (ATA PASS-THROUGH with 16 bytes, or 12 where the bridge knows
    /// only that), and returns the output registers where they were asked for and came. A sector that
    /// it brings is in the first 512 bytes of `buffer`, which may be empty for one that brings none;
    /// any alignment works.
    ///
    /// # Errors
    ///
    /// [`BlockError::Unsupported`] for a bridge that knows neither form, one that refuses this command,
    /// one that must not get any ([`Quirks::NO_ATA_1X`](crate::storage::quirks::Quirks::NO_ATA_1X)),
    /// one that had to be reset for such a command before, and an optical drive;
    /// [`BlockError::Device`] if the disk aborts it; else as [`BlockDevice::read`](
    /// crate::block::BlockDevice::read).
    pub fn ata(
        &mut self,
        command: AtaCommand,
        buffer: &mut [u8],
    ) -> Result<Option<AtaRegisters>, BlockError> {
        let operation = Operation::Ata(command);
        match command.transfer {
            AtaTransfer::None(_) => self.run(operation)?,
            AtaTransfer::SectorIn => self.run_with(operation, Small::In(buffer))?,
        }
        let unit = self.host.unit(self.id()).ok_or(BlockError::Disconnected)?;
        let (function, registers) = (unit.function, unit.ata.registers);
        if command.transfer != AtaTransfer::None(AtaRegistersWanted::Always)
            && let Some(slot) = self.host.functions.get_mut(usize::from(function))
        {
            slot.function.learn_long_sense();
        }
        Ok(registers)
    }

    /// Who the ATA disk behind the bridge says it is. `sector` is memory for its answer, at least 512
    /// bytes; any alignment works.
    ///
    /// # Errors
    ///
    /// [`SmartError::Block`], [`SmartError::Sector`].
    pub fn identify_ata(&mut self, sector: &mut [u8]) -> Result<AtaIdentity, SmartError> {
        self.ata(AtaCommand::IDENTIFY_DEVICE, sector)?;
        Ok(AtaIdentity::parse(sector)?)
    }

    /// How the ATA disk behind the bridge is: temperature, bad sectors, age, its last test of itself,
    /// and what it thinks of its future. Three ATA commands; a disk that sleeps wakes up. `sector` is
    /// memory for the answers, at least 512 bytes; any alignment works.
    ///
    /// # Errors
    ///
    /// [`SmartError`]. A prognosis that the bridge keeps back is no error.
    pub fn smart(&mut self, sector: &mut [u8]) -> Result<Health, SmartError> {
        self.expect_smart(sector)?;
        self.ata(AtaCommand::SMART_READ_DATA, sector)?;
        let health = Health::parse(sector)?;
        let registers = match self.ata(AtaCommand::SMART_RETURN_STATUS, &mut []) {
            Ok(registers) => registers,
            // What the disk has said stands without its prognosis.
            Err(BlockError::Unsupported(_) | BlockError::Device(_)) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Health {
            prognosis: Prognosis::of(registers),
            ..health
        })
    }

    /// Begins a test of the ATA disk behind the bridge, in the background, or ends the one under way.
    /// How it goes is in [`Health::self_test`]. `sector` as for [`Disk::smart`].
    ///
    /// # Errors
    ///
    /// [`SmartError`].
    pub fn self_test(&mut self, kind: SelfTestKind, sector: &mut [u8]) -> Result<(), SmartError> {
        let identity = self.expect_smart(sector)?;
        if !identity.has_self_test {
            return Err(SmartError::Absent);
        }
        self.ata(AtaCommand::self_test(kind), &mut [])?;
        Ok(())
    }

    fn expect_smart(&mut self, sector: &mut [u8]) -> Result<AtaIdentity, SmartError> {
        let identity = self.identify_ata(sector)?;
        match (identity.has_smart, identity.smart_is_on) {
            (false, _) => Err(SmartError::Absent),
            (true, false) => Err(SmartError::SwitchedOff),
            (true, true) => Ok(identity),
        }
    }
}
