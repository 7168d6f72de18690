//! Disks that react oddly to one command.

use super::super::bot::{Action, Manners, Until, any, opcode};
use super::super::scsi::Sense;
use super::super::{Disk, Script};

/// MODE SENSE(10) crashes the firmware: NAK for ever after it, until power goes. MODE SENSE(6) works.
/// FreeMiNT issue 219 and pull request 220.
#[must_use]
pub fn dies_of_mode_sense_10() -> Disk {
    Script::new()
        .on(opcode(0x5a), Action::Hang(Until::PowerCycle))
        .build()
}

/// MODE SENSE of 192 bytes gets 16, and then the read of the status finds bulk IN halted; residue
/// B0h. Haiku ticket 20232 (commits 432325a816 and 9d21bc8b39), NuttX issue 19435.
#[must_use]
pub fn halts_the_status_after_short_mode_data() -> Disk {
    let data = vec![0x0f, 0, 0, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0x1c, 2, 0, 0];
    let script = [0x1a, 0x5a]
        .into_iter()
        .fold(Script::new(), |script, code| {
            script
                .on(opcode(code), Action::Data(data.clone()))
                .on(opcode(code), Action::HaltStatus(1))
        });
    script.build()
}

/// The command with this operation code is unknown (5/20/00), and the status wrapper comes at once
/// where the data should: no halt, 13 bytes. usbode-circle pull request 202 (Windows 11, code A2).
#[must_use]
pub fn sends_the_status_in_place_of_data_of(code: u8) -> Disk {
    let action = Action::StatusAsData(Sense::UNKNOWN_COMMAND);
    Script::new().on(opcode(code), action).build()
}

/// The first READ(10) fails with 5/21/00. Linux unusual_devs entry 090c:6000.
#[must_use]
pub fn refuses_the_first_read() -> Disk {
    let action = Action::Fail(Sense::OUT_OF_RANGE);
    Script::new()
        .ids(0x090c, 0x6000)
        .on(opcode(0x28).once(), action)
        .build()
}

/// The first READ(10) brings junk with good status. Linux unusual_devs entry 1b1c:1ab5.
#[must_use]
pub fn garbles_the_first_read() -> Disk {
    Script::new()
        .ids(0x1b1c, 0x1ab5)
        .release(0x0200)
        .on(opcode(0x28).once(), Action::WrongData)
        .build()
}

/// The first READ(10) fails with 6/28/00. edk2 commit 06e2409667.
#[must_use]
pub fn announces_a_new_medium_at_the_first_read() -> Disk {
    Script::new()
        .on(opcode(0x28).once(), Action::Fail(Sense::MEDIUM_CHANGED))
        .build()
}

/// What a device does to a command of more blocks than it can count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overflow {
    /// Only so many blocks move; good status, residue 0.
    StopsSilently,
    /// The data pipe halts, the command fails.
    Halts,
    /// All data move and are wrong; good status.
    WrongData,
}

/// Reads and writes of more than `blocks` blocks go wrong: 64, 128, 240, 255 and 32767 were seen.
/// U-Boot mailing list 2016-February/245893 and 2016-April/251799 (Kingston 0951:1666).
#[must_use]
pub fn miscounts_above(blocks: u32, overflow: Overflow) -> Disk {
    let bytes = blocks as usize * 512;
    let actions = match overflow {
        Overflow::StopsSilently => vec![Action::ShortData(bytes), Action::Residue(0)],
        Overflow::Halts => vec![Action::HaltData],
        Overflow::WrongData => vec![Action::WrongData],
    };
    let script = Script::new().ids(0x0951, 0x1666);
    let too_long = any().longer_than(blocks);
    actions
        .into_iter()
        .fold(script, |script, action| script.on(too_long.clone(), action))
        .build()
}

/// Bulk-Only Mass Storage Reset makes all writes fail with 4/44/00 until power goes: a host that
/// sends one unasked at the start loses. Genode issue 2836 (SanDisk 0781:5572), USBHost_t36 pull
/// request 114.
#[must_use]
pub fn cannot_write_after_a_class_reset() -> Disk {
    let class_reset = super::super::bot::ClassReset::BreaksWrites;
    let manners = Manners {
        class_reset,
        ..Manners::default()
    };
    Script::new().ids(0x0781, 0x5572).manners(manners).build()
}

#[cfg(test)]
mod tests {
    use super::super::super::UsbDevice;
    use super::super::super::packet_host::{Data, Fault};
    use super::super::super::scsi::pattern;
    use super::super::testing::{READ, TEST, WRITE, plugged};
    use super::*;

    #[test]
    fn the_long_mode_sense_kills_and_the_short_one_does_not() {
        let mut host = plugged(dies_of_mode_sense_10());
        let short = host.command(&[0x1a, 0, 0x3f, 0, 192, 0], Data::In(192));
        assert_eq!(short.map(|(_, status)| status.status), Ok(0));
        let long = host.command(&[0x5a, 0, 0x3f, 0, 0, 0, 0, 0, 192, 0], Data::In(192));
        assert_eq!(long, Err(Fault::Timeout));
        host.reset();
        host.enumerate().expect("endpoint 0 lives");
        assert_eq!(host.simple(&TEST), Err(Fault::Timeout));
    }

    #[test]
    fn sixteen_bytes_of_mode_data_come_before_the_halt() {
        let mut host = plugged(halts_the_status_after_short_mode_data());
        host.command_wrapper(0, &[0x1a, 0, 0x3f, 0, 192, 0], Data::In(192))
            .expect("wrapper");
        assert_eq!(host.bulk_in(0x81, 192).map(|bytes| bytes.len()), Ok(16));
        assert_eq!(host.status(), Err(Fault::Stall));
        host.clear_halt(0x81).expect("clear");
        assert_eq!(
            host.status().map(|status| (status.status, status.residue)),
            Ok((0, 0xb0))
        );
    }

    #[test]
    fn a_refused_command_gets_a_status_for_data() {
        let mut host = plugged(sends_the_status_in_place_of_data_of(0x1a));
        host.command_wrapper(0, &[0x1a, 0, 0x3f, 0, 192, 0], Data::In(192))
            .expect("wrapper");
        assert_eq!(
            host.status()
                .map(|status| (status.well_formed, status.status)),
            Ok((true, 1))
        );
        assert_eq!(host.sense(), Ok((5, 0x20, 0)));
    }

    #[test]
    fn only_the_first_read_is_odd() {
        for disk in [
            refuses_the_first_read(),
            garbles_the_first_read(),
            announces_a_new_medium_at_the_first_read(),
        ] {
            let mut host = plugged(disk);
            let first = host.command(&READ, Data::In(512)).map(|(bytes, _)| bytes);
            assert_ne!(first, Ok(pattern(0, 512)));
            let second = host.command(&READ, Data::In(512)).map(|(bytes, _)| bytes);
            assert_eq!(second, Ok(pattern(0, 512)));
        }
    }

    #[test]
    fn a_command_of_one_block_too_many_goes_wrong_in_each_way() {
        let read = |blocks| [0x28, 0, 0, 0, 0, 0, 0, 0, blocks, 0];
        for overflow in [
            Overflow::StopsSilently,
            Overflow::Halts,
            Overflow::WrongData,
        ] {
            let mut host = plugged(miscounts_above(64, overflow));
            let (bytes, status) = host
                .command(&read(64), Data::In(64 * 512))
                .expect("64 are good");
            assert_eq!((bytes[511], status.status), (pattern(0, 512)[511], 0));
            host.command_wrapper(0, &read(65), Data::In(65 * 512))
                .expect("wrapper");
            let first = host
                .bulk_in(0x81, 64 * 512)
                .map(|bytes| bytes[7] == pattern(0, 512)[7]);
            let last = host.bulk_in(0x81, 512).map(|bytes| bytes.len());
            match overflow {
                Overflow::StopsSilently => assert_eq!((first, last), (Ok(true), Err(Fault::Stall))),
                Overflow::Halts => assert_eq!(first, Err(Fault::Stall)),
                Overflow::WrongData => assert_eq!((first, last), (Ok(false), Ok(512))),
            }
        }
    }

    #[test]
    fn writes_fail_after_a_class_reset_and_only_then() {
        let mut host = plugged(cannot_write_after_a_class_reset());
        let block = Data::Out(&[1; 512]);
        assert_eq!(
            host.command(&WRITE, block).map(|(_, status)| status.status),
            Ok(0)
        );
        host.reset_recovery().expect("recovery");
        assert_eq!(
            host.command(&WRITE, block).map(|(_, status)| status.status),
            Ok(1)
        );
        assert_eq!(host.sense(), Ok((4, 0x44, 0)));
        host.device.power_off(host.now);
        host.device.power_on(host.now);
        host.reset();
        host.enumerate().expect("comes back");
        assert_eq!(
            host.command(&WRITE, block).map(|(_, status)| status.status),
            Ok(0)
        );
    }
}
