//! An ATA command for the disk behind a bridge, as a caller names it.
//!
//! Part of an [`Operation`](super::queue::Operation); `scsi` puts it into ATA PASS-THROUGH, and has
//! the commands by name. Read ACS-3 §4 for the registers.

/// Bytes of an ATA sector, the unit of the data of an ATA command.
pub const ATA_SECTOR: usize = 512;

/// An ATA command with 28-bit addresses, by its input registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AtaCommand {
    /// The command register.
    pub command: u8,
    /// The features register.
    pub features: u8,
    /// Low, mid and high byte of the address registers.
    pub lba: [u8; 3],
    /// What it moves.
    pub transfer: AtaTransfer,
}

/// What an ATA command moves, and with it its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtaTransfer {
    /// No data; the output registers come back if they are asked for.
    None(AtaRegistersWanted),
    /// One sector of 512 bytes in, by PIO.
    SectorIn,
}

/// Whether the bridge is to end the command with CHECK CONDITION, so that its sense data bring the
/// output registers.
#[doc(alias = "CK_COND")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtaRegistersWanted {
    /// Only where the command fails.
    OnFailure,
    /// Always.
    Always,
}
