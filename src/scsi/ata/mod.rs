//! The ATA disk behind a bridge, as far as ATA PASS-THROUGH shows it: who it is, how it is, and how
//! its tests of itself go.
//!
//! The commands are constants of [`AtaCommand`]; their answers are parsed here, distrustful of every
//! byte. `Disk` of the stack sends the one and reads the other; nothing is sent here. Read ACS-3
//! §7.12 (IDENTIFY DEVICE) and §7.48 (SMART), SAT-3 §12.2. NVMe disks behind a bridge answer none of
//! it: their bridges have commands of their own, which are not here.

mod health;
mod identity;
mod sector;
mod self_test;

pub use health::{Health, Prognosis};
pub use identity::AtaIdentity;
pub use sector::SectorFault;
pub use self_test::{SelfTest, SelfTestKind, SelfTestOutcome};

use crate::block::ata::{AtaCommand, AtaRegistersWanted, AtaTransfer};

/// The address that makes SMART commands be taken for such: low byte, then its signature.
const fn smart_address(low: u8) -> [u8; 3] {
    [low, 0x4f, 0xc2]
}

/// SMART, with the feature register for what is wanted.
const fn smart(features: u8, low: u8, transfer: AtaTransfer) -> AtaCommand {
    AtaCommand {
        command: 0xb0,
        features,
        lba: smart_address(low),
        transfer,
    }
}

impl AtaCommand {
    /// IDENTIFY DEVICE: a sector for [`AtaIdentity::parse`].
    pub const IDENTIFY_DEVICE: Self = Self {
        command: 0xec,
        features: 0,
        lba: [0; 3],
        transfer: AtaTransfer::SectorIn,
    };

    /// SMART READ DATA: a sector for [`Health::parse`].
    pub const SMART_READ_DATA: Self = smart(0xd0, 0, AtaTransfer::SectorIn);

    /// SMART RETURN STATUS: output registers for [`Prognosis::of`].
    pub const SMART_RETURN_STATUS: Self =
        smart(0xda, 0, AtaTransfer::None(AtaRegistersWanted::Always));

    /// SMART EXECUTE OFF-LINE IMMEDIATE: begins a test in the background, or ends the one under way.
    #[must_use]
    pub const fn self_test(kind: SelfTestKind) -> Self {
        let transfer = AtaTransfer::None(AtaRegistersWanted::OnFailure);
        smart(0xd4, kind.code(), transfer)
    }
}
