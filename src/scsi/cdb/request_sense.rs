//! REQUEST SENSE (SPC-4, operation code 03).

use super::{Cdb, Command, DataPhase};

/// Asks why the command before failed, in fixed format. 6 bytes, up to `allocation` bytes in.
///
/// Ask for [`Sense::FIXED_LENGTH`](crate::scsi::sense::Sense::FIXED_LENGTH) unless the device has
/// proved that it stands more: some never answer again after a longer request.
#[must_use]
pub const fn request_sense(allocation: u8) -> Command {
    Command {
        cdb: Cdb::six([0x03, 0, 0, 0, allocation, 0]),
        data: DataPhase::In(allocation as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_phase_is_the_allocation() {
        let command = request_sense(18);
        assert_eq!(command.cdb.to_bytes(), [0x03, 0, 0, 0, 18, 0]);
        assert_eq!(command.data, DataPhase::In(18));
    }
}
