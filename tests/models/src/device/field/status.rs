//! Disks whose status wrappers are wrong (BOT 1.0 §6.3). A host owes reset recovery, or a tolerance
//! that it can give reasons for.

use super::super::bot::{Action, any, opcode};
use super::super::{Disk, Script};

/// Every status wrapper has 16 bytes: its structure was not packed. MINI404 issue 79 (QEMU commit
/// bbd8323d31).
#[must_use]
pub fn has_sixteen_bytes() -> Disk {
    always(Action::StatusLength(16))
}

/// The status wrapper of the first TEST UNIT READY has 12 bytes.
#[must_use]
pub fn has_twelve_bytes_once() -> Disk {
    once(Action::StatusLength(12))
}

/// Every status wrapper has the same tag. SL11R-IDE 04ce:0002 (Linux kernel mailing list, 2021-09).
#[must_use]
pub fn has_a_constant_tag() -> Disk {
    Script::new()
        .ids(0x04ce, 0x0002)
        .on(any(), Action::Tag(0x1122_3344))
        .build()
}

/// The status wrapper of the first TEST UNIT READY has the tag of nobody.
#[must_use]
pub fn has_a_wrong_tag_once() -> Disk {
    once(Action::Tag(0xdead_beef))
}

/// Every status wrapper has another signature.
#[must_use]
pub fn has_another_signature() -> Disk {
    always(Action::Signature(*b"SBSU"))
}

/// The residue of a READ is larger than what was announced, once.
#[must_use]
pub fn has_an_impossible_residue_once() -> Disk {
    Script::new()
        .on(opcode(0x28).once(), Action::Residue(u32::MAX))
        .build()
}

/// The residue is never 0 although all data came: it must be ignored. Linux quirk IGNORE_RESIDUE.
#[must_use]
pub fn has_a_residue_that_means_nothing() -> Disk {
    always(Action::Residue(8))
}

/// The first TEST UNIT READY ends in a phase error (BOT 1.0 §6.6.2).
#[must_use]
pub fn reports_a_phase_error_once() -> Disk {
    once(Action::Status(2))
}

/// The status byte of the first TEST UNIT READY is reserved.
#[must_use]
pub fn has_a_reserved_status_once() -> Disk {
    once(Action::Status(0x55))
}

/// An empty packet comes before every status wrapper.
#[must_use]
pub fn comes_after_an_empty_packet() -> Disk {
    always(Action::EmptyPacketBeforeStatus)
}

fn always(action: Action) -> Disk {
    Script::new().on(any(), action).build()
}

fn once(action: Action) -> Disk {
    Script::new().on(opcode(0x00).once(), action).build()
}

#[cfg(test)]
mod tests {
    use super::super::super::packet_host::{Data, Status};
    use super::super::testing::{READ, TEST, plugged};
    use super::*;

    fn first_and_second(disk: Disk) -> [Status; 2] {
        let mut host = plugged(disk);
        let mut status = || host.command(&TEST, Data::Nothing).expect("some status").1;
        [status(), status()]
    }

    #[test]
    fn wrong_wrappers_are_wrong_once_or_always() {
        let wrong =
            |status: &Status| !status.well_formed || status.tag != 0x1234 || status.status > 1;
        for (disk, always) in [
            (has_sixteen_bytes(), true),
            (has_twelve_bytes_once(), false),
            (has_a_constant_tag(), true),
            (has_a_wrong_tag_once(), false),
            (has_another_signature(), true),
            (reports_a_phase_error_once(), false),
            (has_a_reserved_status_once(), false),
        ] {
            let [first, second] = first_and_second(disk);
            assert_eq!((wrong(&first), wrong(&second)), (true, always));
        }
    }

    #[test]
    fn residues_lie_while_all_data_come() {
        for (disk, residue) in [
            (has_an_impossible_residue_once(), u32::MAX),
            (has_a_residue_that_means_nothing(), 8),
        ] {
            let (bytes, status) = plugged(disk)
                .command(&READ, Data::In(512))
                .expect("a status");
            assert_eq!((bytes.len(), status.residue), (512, residue));
        }
    }

    #[test]
    fn the_empty_packet_comes_first() {
        let mut host = plugged(comes_after_an_empty_packet());
        host.command_wrapper(0, &TEST, Data::Nothing)
            .expect("wrapper");
        assert_eq!(host.bulk_in(0x81, 512), Ok(vec![]));
        assert_eq!(host.status().map(|status| status.status), Ok(0));
    }
}
