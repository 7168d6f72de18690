//! MODE SENSE (6) and (10) (SPC-4, operation codes 1A and 5A).

use super::{Cdb, Command, DataPhase};

/// Which mode page to ask for, with its current values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModePage {
    /// 08: write cache and read cache (SBC-3 §6.4.5).
    Caching,
    /// 3F: all of them.
    All,
}

impl ModePage {
    /// The page code, as in byte 2 of the command and byte 0 of the page.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Caching => 0x08,
            Self::All => 0x3f,
        }
    }
}

/// Asks for mode parameters in the short form. 6 bytes, up to `allocation` bytes in.
///
/// For devices of the SCSI command set: some sticks die of the long form. Ask for all pages with
/// 192 bytes, as every host that devices are tested with does.
#[must_use]
pub const fn mode_sense_6(page: ModePage, allocation: u8) -> Command {
    Command {
        cdb: Cdb::six([0x1a, 0, page.code(), 0, allocation, 0]),
        data: DataPhase::In(allocation as u32),
    }
}

/// Asks for mode parameters in the long form. 10 bytes, up to `allocation` bytes in. For devices
/// of other command sets: floppy drives know it alone.
#[must_use]
pub const fn mode_sense_10(page: ModePage, allocation: u16) -> Command {
    let [high, low] = allocation.to_be_bytes();
    Command {
        cdb: Cdb::ten([0x5a, 0, page.code(), 0, 0, 0, 0, high, low, 0]),
        data: DataPhase::In(allocation as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_9_the_data_phase_is_the_allocation_in_both_forms() {
        let six = mode_sense_6(ModePage::All, 192);
        assert_eq!(six.cdb.to_bytes(), [0x1a, 0, 0x3f, 0, 192, 0]);
        assert_eq!(six.data, DataPhase::In(192));
        let ten = mode_sense_10(ModePage::Caching, 0x0102);
        assert_eq!(ten.cdb.to_bytes(), [0x5a, 0, 8, 0, 0, 0, 0, 1, 2, 0]);
        assert_eq!(ten.data, DataPhase::In(0x0102));
    }
}
