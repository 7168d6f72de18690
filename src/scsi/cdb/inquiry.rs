//! INQUIRY (SPC-4, operation code 12), for the standard data and for the vital product data pages.

use super::{Cdb, Command, DataPhase};
use crate::scsi::inquiry::Inquiry;
use crate::scsi::vpd::PageCode;

/// Asks what the device is. 6 bytes, up to 36 bytes in.
///
/// Policy: 36 exactly, since every host that devices are tested with asks so.
#[must_use]
pub const fn inquiry() -> Command {
    Command {
        cdb: Cdb::six([0x12, 0, 0, 0, Inquiry::LENGTH as u8, 0]),
        data: DataPhase::In(Inquiry::LENGTH as u32),
    }
}

/// Asks for a page of vital product data. 6 bytes, up to `allocation` bytes in.
#[must_use]
pub const fn vital_product_data(page: PageCode, allocation: u16) -> Command {
    let [high, low] = allocation.to_be_bytes();
    Command {
        cdb: Cdb::six([0x12, 0x01, page.0, high, low, 0]),
        data: DataPhase::In(allocation as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_data_is_asked_with_36_bytes() {
        let command = inquiry();
        assert_eq!(command.cdb.to_bytes(), [0x12, 0, 0, 0, 36, 0]);
        assert_eq!(command.data, DataPhase::In(36));
    }

    #[test]
    fn a_page_is_asked_by_its_code() {
        let command = vital_product_data(PageCode::BLOCK_LIMITS, 0x0140);
        assert_eq!(command.cdb.to_bytes(), [0x12, 1, 0xb0, 1, 0x40, 0]);
        assert_eq!(command.data, DataPhase::In(0x0140));
    }
}
