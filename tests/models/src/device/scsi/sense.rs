//! Sense data: why a command failed (SPC-4 §4.5).

/// The output registers of an ATA command, for sense data to bring (SAT-3 §11.7, §12.2.2.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registers {
    /// The error register.
    pub error: u8,
    /// The sector count.
    pub count: u8,
    /// Low, mid and high byte of the address.
    pub lba: [u8; 3],
    /// The device register.
    pub device: u8,
    /// The status register.
    pub status: u8,
    /// In a descriptor of their own, whatever format was asked for; else in the fixed format.
    pub in_descriptor: bool,
}

/// Sense key, additional sense code and qualifier, and the block that the failure is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sense {
    /// The kind of failure, 4 bits.
    pub key: u8,
    /// The additional sense code.
    #[doc(alias = "ASC")]
    pub code: u8,
    /// Its qualifier.
    #[doc(alias = "ASCQ")]
    pub qualifier: u8,
    /// The block that could not be read or written.
    pub information: Option<u64>,
    /// The registers of an ATA command.
    pub registers: Option<Registers>,
}

impl Sense {
    /// 0/00/00: nothing to say.
    pub const NONE: Self = Self::new(0, 0x00, 0x00);
    /// 1/00/1D: the registers of an ATA command.
    pub const ATA_INFORMATION: Self = Self::new(1, 0x00, 0x1d);
    /// 2/04/01: becoming ready.
    pub const BECOMING_READY: Self = Self::new(2, 0x04, 0x01);
    /// 2/04/02: START UNIT needed.
    pub const NEEDS_START: Self = Self::new(2, 0x04, 0x02);
    /// 2/3A/00: no medium.
    pub const NO_MEDIUM: Self = Self::new(2, 0x3a, 0x00);
    /// 3/11/00: a block cannot be read.
    pub const READ_ERROR: Self = Self::new(3, 0x11, 0x00);
    /// 3/0C/00: a block cannot be written.
    pub const WRITE_ERROR: Self = Self::new(3, 0x0c, 0x00);
    /// 4/44/81: what a bridge without enough power says.
    pub const UNDER_POWERED: Self = Self::new(4, 0x44, 0x81);
    /// 5/20/00: unknown command.
    pub const UNKNOWN_COMMAND: Self = Self::new(5, 0x20, 0x00);
    /// 5/21/00: block out of range.
    pub const OUT_OF_RANGE: Self = Self::new(5, 0x21, 0x00);
    /// 5/24/00: a bad field in the command.
    pub const BAD_FIELD: Self = Self::new(5, 0x24, 0x00);
    /// 5/26/00: a bad field in the parameter list.
    pub const BAD_PARAMETER: Self = Self::new(5, 0x26, 0x00);
    /// 5/25/00: no such logical unit.
    pub const NO_SUCH_UNIT: Self = Self::new(5, 0x25, 0x00);
    /// 6/28/00: the medium may have changed.
    pub const MEDIUM_CHANGED: Self = Self::new(6, 0x28, 0x00);
    /// 6/29/00: power on or reset.
    pub const RESET: Self = Self::new(6, 0x29, 0x00);
    /// 7/27/00: write protected.
    pub const WRITE_PROTECTED: Self = Self::new(7, 0x27, 0x00);
    /// B/00/00: aborted.
    pub const ABORTED: Self = Self::new(0x0b, 0x00, 0x00);

    /// Key, code and qualifier.
    #[must_use]
    pub const fn new(key: u8, code: u8, qualifier: u8) -> Self {
        Self {
            key,
            code,
            qualifier,
            information: None,
            registers: None,
        }
    }

    /// Whether it tells of something that was not this command's doing, once.
    #[must_use]
    pub const fn is_attention(&self) -> bool {
        self.key == 6
    }

    /// The same with the registers of an ATA command.
    #[must_use]
    pub const fn with(self, registers: Registers) -> Self {
        Self {
            registers: Some(registers),
            ..self
        }
    }

    /// The same about block `lba`.
    #[must_use]
    pub const fn at(self, lba: u64) -> Self {
        Self {
            information: Some(lba),
            ..self
        }
    }

    /// The 18 bytes of fixed format (SPC-4 §4.5.3), unless there are registers that come in a
    /// descriptor. A block beyond 32 bits is not told.
    #[must_use]
    pub fn fixed(&self) -> Vec<u8> {
        if self.registers.is_some_and(|it| it.in_descriptor) {
            return self.descriptors();
        }
        let mut bytes = vec![0; 18];
        bytes[0] = 0x70;
        bytes[2] = self.key;
        bytes[7] = 10;
        bytes[12] = self.code;
        bytes[13] = self.qualifier;
        if let Some(lba) = self.information.and_then(|lba| u32::try_from(lba).ok()) {
            bytes[0] |= 0x80;
            bytes[3..7].copy_from_slice(&lba.to_be_bytes());
        }
        if let Some(it) = self.registers {
            bytes[3..7].copy_from_slice(&[it.error, it.status, it.device, it.count]);
            bytes[9..12].copy_from_slice(&it.lba);
        }
        bytes
    }

    /// Descriptor format, with an information descriptor if there is a block to tell, and an ATA
    /// Status Return descriptor if there are registers (SPC-4 §4.5.2).
    #[must_use]
    pub fn descriptors(&self) -> Vec<u8> {
        let mut bytes = vec![0x72, self.key, self.code, self.qualifier, 0, 0, 0, 0];
        if let Some(lba) = self.information {
            bytes[7] = 12;
            bytes.extend([0x00, 0x0a, 0x80, 0x00]);
            bytes.extend(lba.to_be_bytes());
        }
        if let Some(it) = self.registers {
            let [low, mid, high] = it.lba;
            bytes[7] += 14;
            bytes.extend([0x09, 0x0c, 0, it.error, 0, it.count]);
            bytes.extend([0, low, 0, mid, 0, high, it.device, it.status]);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_error_tells_its_block_in_both_formats() {
        let sense = Sense::READ_ERROR.at(0x0102_0304);
        let fixed = sense.fixed();
        assert_eq!(fixed[..8], [0xf0, 0, 3, 1, 2, 3, 4, 10]);
        assert_eq!(fixed[12..14], [0x11, 0]);
        let descriptors = sense.descriptors();
        assert_eq!(descriptors[..8], [0x72, 3, 0x11, 0, 0, 0, 0, 12]);
        assert_eq!(descriptors[12..], [0, 0, 0, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_block_beyond_32_bits_does_not_fit_fixed_format() {
        assert_eq!(Sense::READ_ERROR.at(1 << 32).fixed()[0], 0x70);
    }
}
