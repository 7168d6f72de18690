//! REPORT LUNS (SPC-4 §6.33, operation code A0).

use super::{Cdb, Command, DataPhase};

/// Bytes to ask for: the numbers of 31 units behind the header of 8. Policy: more than any enclosure
/// has, and a transport's small memory holds it.
const ALLOCATION: u8 = 255;

/// Asks which logical units there are. 12 bytes, up to 255 bytes in.
#[must_use]
pub const fn report_luns() -> Command {
    Command {
        // Select report 0: the units that can be addressed.
        cdb: Cdb::twelve([0xa0, 0, 0, 0, 0, 0, 0, 0, 0, ALLOCATION, 0, 0]),
        data: DataPhase::In(ALLOCATION as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_bytes_ask_for_at_least_the_header_and_one_unit() {
        let command = report_luns();
        assert_eq!(
            command.cdb.to_bytes(),
            [0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0]
        );
        assert_eq!(command.data, DataPhase::In(255));
    }
}
