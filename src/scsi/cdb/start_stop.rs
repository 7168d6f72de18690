//! START STOP UNIT (SBC-3 §5.25, operation code 1B).

use super::{Cdb, Command, DataPhase};

/// What to do with the motor, or whatever the device has in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PowerChange {
    /// Spin up. Answered at once: test for readiness afterwards.
    Start,
    /// Put the cache on the medium, then spin down. Answered when it is done.
    Stop,
    /// As `Stop`, then eject the medium where the device can.
    Eject,
}

/// Spins a disk up or down. 6 bytes, no data.
#[must_use]
pub const fn start_stop_unit(change: PowerChange) -> Command {
    let (immediate, action) = match change {
        PowerChange::Start => (1, 0x01),
        PowerChange::Stop => (0, 0x00),
        PowerChange::Eject => (0, 0x02),
    };
    Command {
        cdb: Cdb::six([0x1b, immediate, 0, 0, action, 0]),
        data: DataPhase::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_start_is_answered_at_once() {
        let table = [
            (PowerChange::Start, [0x1b, 1, 0, 0, 1, 0]),
            (PowerChange::Stop, [0x1b, 0, 0, 0, 0, 0]),
            (PowerChange::Eject, [0x1b, 0, 0, 0, 2, 0]),
        ];
        for (change, bytes) in table {
            assert_eq!(start_stop_unit(change).cdb.to_bytes(), bytes);
        }
    }
}
