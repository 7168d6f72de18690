//! TEST UNIT READY (SPC-4, operation code 00).

use super::{Cdb, Command, DataPhase};

/// Asks whether the disk can take commands for its medium. 6 bytes, no data.
#[must_use]
pub const fn test_unit_ready() -> Command {
    Command {
        cdb: Cdb::six([0x00, 0, 0, 0, 0, 0]),
        data: DataPhase::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_six_zeros_without_data() {
        let command = test_unit_ready();
        assert_eq!(command.cdb.to_bytes(), [0; 6]);
        assert_eq!(command.data.length(), 0);
    }
}
