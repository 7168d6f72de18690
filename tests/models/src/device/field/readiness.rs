//! Disks that are not ready, for a while or for ever, and say so in all the ways there are.

use super::super::bot::{Action, opcode};
use super::super::scsi::{Attention, LogicalUnit, Scripted, Sense};
use super::super::{Disk, Nanoseconds, SECOND, Script};

/// Every command but INQUIRY fails with 6/28/00 until REQUEST SENSE was sent, and the stick needs 4 s
/// besides. Espressif esp-idf issue 14319, esp-usb pull request 81; CherryUSB pull request 92.
#[must_use]
pub fn keeps_its_attention_until_request_sense() -> Disk {
    let unit =
        slow_stick(4 * SECOND).attention_after_reset(Sense::MEDIUM_CHANGED, Attention::UntilSense);
    Script::new().unit(unit).build()
}

/// 2/3A/00, for ever: a reader without a card. TinyUSB issue 3898.
#[must_use]
pub fn never_has_a_medium() -> Disk {
    Script::new().unit(LogicalUnit::empty_slot()).build()
}

/// 2/04/01, for ever. TinyUSB issue 3898.
#[must_use]
pub fn is_becoming_ready_for_ever() -> Disk {
    Script::new().unit(slow_stick(Nanoseconds::MAX)).build()
}

/// 2/04/01 for `time` after power-on: 6 to 10 s were reported. Raspberry Pi firmware issues 994 and
/// 842.
#[must_use]
pub fn is_ready_after(time: Nanoseconds) -> Disk {
    Script::new().unit(slow_stick(time)).build()
}

/// The first TEST UNIT READY is not answered for 3 s, then it is good. Raspberry Pi firmware
/// issue 854.
#[must_use]
pub fn holds_up_test_unit_ready_for_three_seconds() -> Disk {
    Script::new()
        .on(opcode(0x00).once(), Action::Delay(3 * SECOND))
        .build()
}

/// 2/04/02 until START UNIT.
#[must_use]
pub fn waits_for_start_unit() -> Disk {
    Script::new()
        .unit(LogicalUnit::stick(65536).needs_start())
        .build()
}

/// A bridge without enough power: TEST UNIT READY and both READ CAPACITY fail with 4/44/81.
/// Raspberry Pi rpi-eeprom issue 183.
#[must_use]
pub fn lacks_power_to_spin_up() -> Disk {
    let failure = Scripted::Fail(Sense::UNDER_POWERED);
    let unit = LogicalUnit::disk(65536, 512)
        .script(0x00, failure.clone())
        .script(0x25, failure.clone())
        .script(0x9e, failure);
    Script::new().unit(unit).build()
}

/// A reader with four slots and a card in one of them (0 to 3); the others say 2/3A/00. Espressif
/// esp-usb pull request 570, coreboot issue 199, Raspberry Pi firmware issue 854.
#[must_use]
pub fn has_four_slots_and_a_card_in(slot: usize) -> Disk {
    let unit = |number| {
        if number == slot {
            LogicalUnit::stick(65536)
        } else {
            LogicalUnit::empty_slot()
        }
    };
    (0..4)
        .fold(Script::new(), |script, number| script.unit(unit(number)))
        .build()
}

fn slow_stick(time: Nanoseconds) -> LogicalUnit {
    LogicalUnit::stick(65536).ready_after(time)
}

#[cfg(test)]
mod tests {
    use super::super::super::packet_host::Data;
    use super::super::testing::{CAPACITY, CAPACITY_16, INQUIRY, TEST, plugged};
    use super::*;

    #[test]
    fn the_attention_stays_for_as_long_as_nobody_fetches_it() {
        let mut host = plugged(keeps_its_attention_until_request_sense());
        host.now = 5 * SECOND;
        for _ in 0..3 {
            assert_eq!(host.simple(&TEST), Ok(1));
        }
        assert_eq!(
            host.command(&CAPACITY, Data::In(8))
                .map(|(_, status)| status.status),
            Ok(1)
        );
        assert_eq!(host.sense(), Ok((6, 0x28, 0)));
        assert_eq!(host.simple(&TEST), Ok(0));
    }

    #[test]
    fn a_disk_that_is_not_ready_says_why_also_after_an_hour() {
        for (disk, sense) in [
            (never_has_a_medium(), (2, 0x3a, 0)),
            (is_becoming_ready_for_ever(), (2, 0x04, 1)),
            (lacks_power_to_spin_up(), (4, 0x44, 0x81)),
            (waits_for_start_unit(), (2, 0x04, 2)),
        ] {
            let mut host = plugged(disk);
            host.now += 3600 * SECOND;
            let (_attention, _sense) = (host.simple(&TEST), host.sense());
            assert_eq!(host.simple(&TEST), Ok(1));
            assert_eq!(host.sense(), Ok(sense));
        }
    }

    #[test]
    fn a_bridge_without_power_answers_neither_capacity() {
        let mut host = plugged(lacks_power_to_spin_up());
        let _attention = host.simple(&TEST);
        for (cdb, length) in [(&CAPACITY[..], 8), (&CAPACITY_16[..], 32)] {
            let (bytes, status) = host
                .command(cdb, Data::In(length))
                .expect("a failed command");
            assert_eq!((bytes.len(), status.status), (0, 1));
            assert_eq!(host.sense(), Ok((4, 0x44, 0x81)));
        }
    }

    #[test]
    fn a_slow_disk_becomes_ready_at_its_time() {
        let mut host = plugged(is_ready_after(8 * SECOND));
        host.now = 8 * SECOND - 1_000_000;
        assert_eq!(host.simple(&TEST), Ok(1));
        host.now = 8 * SECOND;
        assert_eq!(host.simple(&TEST), Ok(0));
    }

    #[test]
    fn start_unit_wakes_the_disk() {
        let mut host = plugged(waits_for_start_unit());
        assert_eq!(host.simple(&[0x1b, 0, 0, 0, 1, 0]), Ok(0));
        assert_eq!(host.simple(&TEST), Ok(0));
    }

    #[test]
    fn a_test_that_is_held_up_is_good_in_the_end() {
        let mut host = plugged(holds_up_test_unit_ready_for_three_seconds());
        let before = host.now;
        assert_eq!(host.simple(&TEST), Ok(0));
        assert!(host.now - before >= 3 * SECOND);
    }

    #[test]
    fn the_card_is_in_its_slot_and_in_no_other() {
        let mut host = plugged(has_four_slots_and_a_card_in(2));
        assert_eq!(
            host.control([0xa1, 0xfe, 0, 0, 0, 0, 1, 0], &[]),
            Ok(vec![3])
        );
        for lun in 0..4 {
            host.command_wrapper(lun, &TEST, Data::Nothing)
                .expect("wrapper");
            assert_eq!(
                host.status().map(|status| status.status),
                Ok(u8::from(lun != 2))
            );
            host.command_wrapper(lun, &INQUIRY, Data::In(36))
                .expect("wrapper");
            assert_eq!(host.bulk_in(0x81, 36).map(|bytes| bytes[1]), Ok(0x80));
            assert_eq!(host.status().map(|status| status.status), Ok(0));
        }
    }
}
