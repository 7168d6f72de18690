//! ATA PASS-THROUGH (12) and (16): an ATA command in a SCSI one (SAT-3 §12.2, operation codes A1 and
//! 85).

use super::{Cdb, Command, DataPhase};
use crate::block::ata::{ATA_SECTOR, AtaCommand, AtaRegistersWanted, AtaTransfer};

/// Which of the two forms. Bridges know both or one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AtaForm {
    /// 16 bytes, operation code 85.
    #[default]
    Sixteen,
    /// 12 bytes, operation code A1: BLANK to an optical drive, so never for one.
    Twelve,
}

/// Hands an ATA command through a bridge. 12 or 16 bytes; no data, or up to 512 bytes in.
#[must_use]
pub const fn ata_pass_through(form: AtaForm, ata: AtaCommand) -> Command {
    let AtaCommand {
        command,
        features,
        lba: [low, mid, high],
        ..
    } = ata;
    let (protocol, flags, count) = fields(ata.transfer);
    let cdb = match form {
        AtaForm::Sixteen => Cdb::sixteen([
            0x85, protocol, flags, 0, features, 0, count, 0, low, 0, mid, 0, high, 0, command, 0,
        ]),
        AtaForm::Twelve => Cdb::twelve([
            0xa1, protocol, flags, features, count, low, mid, high, 0, command, 0, 0,
        ]),
    };
    Command {
        cdb,
        data: match ata.transfer {
            AtaTransfer::None(_) => DataPhase::None,
            AtaTransfer::SectorIn => DataPhase::In(ATA_SECTOR as u32),
        },
    }
}

/// Protocol in bits 4 to 1; flags; sectors.
const fn fields(transfer: AtaTransfer) -> (u8, u8, u8) {
    match transfer {
        // Non-data.
        AtaTransfer::None(AtaRegistersWanted::OnFailure) => (3 << 1, 0x00, 0),
        AtaTransfer::None(AtaRegistersWanted::Always) => (3 << 1, 0x20, 0),
        // PIO data-in; from the device, in blocks, as many as the count says.
        AtaTransfer::SectorIn => (4 << 1, 0x08 | 0x04 | 0x02, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMART_READ_DATA: AtaCommand = AtaCommand {
        command: 0xb0,
        features: 0xd0,
        lba: [0x00, 0x4f, 0xc2],
        transfer: AtaTransfer::SectorIn,
    };

    #[test]
    fn both_forms_carry_the_same_registers() {
        let sixteen = ata_pass_through(AtaForm::Sixteen, SMART_READ_DATA);
        assert_eq!(
            sixteen.cdb.to_bytes(),
            [
                0x85, 0x08, 0x0e, 0, 0xd0, 0, 1, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0
            ]
        );
        let twelve = ata_pass_through(AtaForm::Twelve, SMART_READ_DATA);
        assert_eq!(
            twelve.cdb.to_bytes(),
            [0xa1, 0x08, 0x0e, 0xd0, 1, 0, 0x4f, 0xc2, 0, 0xb0, 0, 0]
        );
        assert_eq!(sixteen.data, DataPhase::In(512));
        assert_eq!(twelve.data, sixteen.data);
    }

    #[test]
    fn registers_are_asked_for_by_one_bit() {
        let status = AtaCommand {
            features: 0xda,
            transfer: AtaTransfer::None(AtaRegistersWanted::Always),
            ..SMART_READ_DATA
        };
        let command = ata_pass_through(AtaForm::Sixteen, status);
        assert_eq!(command.cdb.to_bytes()[..5], [0x85, 0x06, 0x20, 0, 0xda]);
        assert_eq!(command.data, DataPhase::None);
        let quiet = AtaCommand {
            transfer: AtaTransfer::None(AtaRegistersWanted::OnFailure),
            ..status
        };
        let command = ata_pass_through(AtaForm::Sixteen, quiet);
        assert_eq!(command.cdb.to_bytes()[2], 0);
    }
}
