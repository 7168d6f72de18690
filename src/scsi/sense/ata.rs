//! The output registers of an ATA command, as sense data bring them (SAT-3 §11.7, §12.2.2.6).
//!
//! A bridge answers ATA PASS-THROUGH with CHECK CONDITION 1/00/1D and the registers, in a descriptor
//! of their own or spread over the fixed format. They travel in [`Sense::information`], which means
//! nothing else under that code: sense data pass through every layer of every command, and stay as
//! small as they are.

use super::{Sense, SenseKey};
use crate::bytes::{array_at, u8_at};

/// ATA PASS-THROUGH INFORMATION AVAILABLE: the additional sense code and its qualifier.
const CODE: (u8, u8) = (0x00, 0x1d);

/// The type of the ATA Status Return descriptor, which marks packed registers too.
const STATUS_RETURN: u8 = 0x09;

/// The output registers of an ATA command with a 28-bit address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AtaRegisters {
    /// Why it failed, if it did.
    pub error: u8,
    /// Low byte of the sector count.
    pub count: u8,
    /// Low, mid and high byte of the address.
    pub lba: [u8; 3],
    /// Which device.
    pub device: u8,
    /// How it ended: bit 0 says that it failed.
    pub status: u8,
}

impl Sense {
    /// The registers, if these sense data bring them.
    #[must_use]
    pub fn ata_registers(&self) -> Option<AtaRegisters> {
        if !is_about_registers(self.key, self.asc, self.ascq) {
            return None;
        }
        unpack(self.information()?)
    }
}

/// Whether sense data with these codes have the registers where others have a block's number.
pub(super) fn is_about_registers(key: SenseKey, asc: u8, ascq: u8) -> bool {
    // Old bridges say NO SENSE.
    (asc, ascq) == CODE && matches!(key, SenseKey::RecoveredError | SenseKey::NoSense)
}

/// From the fixed format: INFORMATION and COMMAND-SPECIFIC INFORMATION.
pub(super) fn packed_of_fixed(bytes: &[u8]) -> Option<u64> {
    let [error, status, device, count] = array_at(bytes, 3)?;
    let lba = array_at(bytes, 9)?;
    Some(pack(AtaRegisters {
        error,
        count,
        lba,
        device,
        status,
    }))
}

/// From an ATA Status Return descriptor of 14 bytes: type 9, then each register behind its upper
/// half. `None` for any other.
pub(super) fn packed_of_descriptor(descriptor: &[u8]) -> Option<u64> {
    let [STATUS_RETURN, 0x0c] = array_at(descriptor, 0)? else {
        return None;
    };
    let byte = |at| u8_at(descriptor, at);
    Some(pack(AtaRegisters {
        error: byte(3)?,
        count: byte(5)?,
        lba: [byte(7)?, byte(9)?, byte(11)?],
        device: byte(12)?,
        status: byte(13)?,
    }))
}

const fn pack(registers: AtaRegisters) -> u64 {
    let AtaRegisters {
        error,
        count,
        lba: [low, mid, high],
        device,
        status,
    } = registers;
    u64::from_be_bytes([STATUS_RETURN, error, count, low, mid, high, device, status])
}

const fn unpack(packed: u64) -> Option<AtaRegisters> {
    let [STATUS_RETURN, error, count, low, mid, high, device, status] = packed.to_be_bytes() else {
        return None;
    };
    Some(AtaRegisters {
        error,
        count,
        lba: [low, mid, high],
        device,
        status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILING: AtaRegisters = AtaRegisters {
        error: 0,
        count: 7,
        lba: [1, 0xf4, 0x2c],
        device: 0xa0,
        status: 0x50,
    };

    const DESCRIPTORS: [u8; 22] = [
        0x72, 1, 0x00, 0x1d, 0, 0, 0, 14, 0x09, 0x0c, 0, 0, 0, 7, 0, 1, 0, 0xf4, 0, 0x2c, 0xa0,
        0x50,
    ];

    #[test]
    fn both_formats_bring_the_registers() {
        assert_eq!(Sense::parse(&DESCRIPTORS).ata_registers(), Some(FAILING));
        let fixed = [
            0x70, 0, 1, 0, 0x50, 0xa0, 7, 10, 0, 1, 0xf4, 0x2c, 0x00, 0x1d, 0, 0, 0, 0,
        ];
        assert_eq!(Sense::parse(&fixed).ata_registers(), Some(FAILING));
    }

    #[test]
    fn old_bridges_bring_them_without_a_sense_key() {
        let mut bytes = DESCRIPTORS;
        bytes[1] = 0;
        assert_eq!(Sense::parse(&bytes).ata_registers(), Some(FAILING));
    }

    #[test]
    fn registers_that_are_cut_off_or_of_another_code_are_none() {
        for length in 0..DESCRIPTORS.len() {
            let cut = Sense::parse(&DESCRIPTORS[..length]);
            assert_eq!(cut.ata_registers(), None, "{length} bytes");
        }
        let mut other = DESCRIPTORS;
        other[3] = 0x00;
        assert_eq!(Sense::parse(&other).ata_registers(), None);
        let mut failed = DESCRIPTORS;
        failed[1] = 0x0b;
        assert_eq!(Sense::parse(&failed).ata_registers(), None);
    }

    #[test]
    fn a_block_number_is_not_taken_for_registers() {
        let sense = Sense {
            information: super::super::about(Some(0x1234)),
            ..Sense::parse(&DESCRIPTORS)
        };
        assert_eq!(sense.ata_registers(), None);
    }
}
