//! Disks that halt, babble, fall silent, or come back only by a certain rung of recovery.

use super::super::base::{Answer, Request};
use super::super::bot::{Action, Manners, Until, opcode};
use super::super::{Disk, Nanoseconds, Script};

/// The third read halts bulk IN, and stays so until CLEAR_FEATURE arrives. A host that rings its
/// doorbell before that collects more than one STALL ([`Disk::stalls`]). iPXE commit 5d6fb7282, Haiku
/// commits 0a9e5c9e58, 0d5a4ebf16 and c098332d7b.
#[must_use]
pub fn halts_the_third_read() -> Disk {
    Script::new()
        .on(opcode(0x28).after(2).once(), Action::HaltData)
        .build()
}

/// The third write halts bulk OUT.
#[must_use]
pub fn halts_the_third_write() -> Disk {
    Script::new()
        .on(opcode(0x2a).after(2).once(), Action::HaltData)
        .build()
}

/// The third read brings more than was announced. edk2 issue 7068 and commit c12bbc1490, circle pull
/// request 704.
#[must_use]
pub fn babbles_in_the_third_read() -> Disk {
    Script::new()
        .on(opcode(0x28).after(2).once(), Action::LongData(512))
        .build()
}

/// Three transactions of the third read get no answer: a transaction error. edk2 issue 7068.
#[must_use]
pub fn falls_silent_in_the_third_read() -> Disk {
    Script::new()
        .on(opcode(0x28).after(2).once(), Action::SilentData(3))
        .build()
}

/// Three transactions of the third write get no answer.
#[must_use]
pub fn falls_silent_in_the_third_write() -> Disk {
    Script::new()
        .on(opcode(0x2a).after(2).once(), Action::SilentData(3))
        .build()
}

/// GET MAX LUN is answered with 80 bytes in place of one: babble on endpoint 0.
#[must_use]
pub fn babbles_on_endpoint_zero() -> Disk {
    Script::new()
        .control(Request::GET_MAX_LUN, Answer::Overlong(vec![0; 80]))
        .build()
}

/// GET MAX LUN gets no answer at all: a transaction error on endpoint 0.
#[must_use]
pub fn falls_silent_on_endpoint_zero() -> Disk {
    Script::new()
        .control(Request::GET_MAX_LUN, Answer::Silent)
        .build()
}

/// Hangs in the third read until this rung of the recovery ladder, once. DAPLink issue 94, Zephyr
/// pull request 55531.
#[must_use]
pub fn hangs_in_the_third_read_until(rung: Until) -> Disk {
    Script::new()
        .on(opcode(0x28).after(2).once(), Action::Hang(rung))
        .build()
}

/// As [`hangs_in_the_third_read_until`] a power cycle, but every read from the third on hangs again:
/// nothing helps.
#[must_use]
pub fn hangs_in_every_read_from_the_third_on() -> Disk {
    Script::new()
        .on(opcode(0x28).after(2), Action::Hang(Until::PowerCycle))
        .build()
}

/// Dead to everything, also on endpoint 0, from the third read on until power goes.
#[must_use]
pub fn crashes_in_the_third_read() -> Disk {
    Script::new()
        .on(
            opcode(0x28).after(2).once(),
            Action::Crash(Until::PowerCycle),
        )
        .build()
}

/// Lets go of the bus in the third read and comes back after `time`.
#[must_use]
pub fn leaves_in_the_third_read_for(time: Nanoseconds) -> Disk {
    Script::new()
        .on(opcode(0x28).after(2).once(), Action::Leave(time))
        .build()
}

/// A command that a bus reset cut goes on: the next wrappers are swallowed as its data, until reset
/// recovery. DAPLink issue 94 and pull request 120.
#[must_use]
pub fn swallows_wrappers_after_a_bus_reset() -> Disk {
    let manners = Manners {
        survives_bus_reset: true,
        ..Manners::default()
    };
    Script::new().manners(manners).build()
}

/// Left in the middle of a command by a boot loader: both pipes stay halted through clear-halts until
/// reset recovery. Genode issue 2836, DAPLink pull request 120.
#[must_use]
pub fn starts_halted_until_reset_recovery() -> Disk {
    let manners = Manners {
        starts_halted: true,
        ..Manners::default()
    };
    Script::new().manners(manners).build()
}

#[cfg(test)]
mod tests {
    use super::super::super::base::Request;
    use super::super::super::packet_host::{Data, Fault, PacketHost};
    use super::super::super::{MILLISECOND, UsbDevice};
    use super::super::testing::{READ, TEST, WRITE, plugged};
    use super::*;

    /// What the third read or write meets, after two good ones.
    fn third(disk: Disk, cdb: &[u8; 10]) -> (PacketHost<Disk>, Result<usize, Fault>) {
        let mut host = plugged(disk);
        let out = [7; 512];
        let data = if cdb == &READ {
            Data::In(512)
        } else {
            Data::Out(&out)
        };
        for _ in 0..2 {
            assert_eq!(
                host.command(cdb, data).map(|(_, status)| status.status),
                Ok(0)
            );
        }
        host.command_wrapper(0, cdb, data).expect("wrapper");
        host.now += MILLISECOND;
        let moved = match data {
            Data::Out(bytes) => host.bulk_out(0x02, bytes).map(|()| bytes.len()),
            _ => host.bulk_in(0x81, 512).map(|bytes| bytes.len()),
        };
        (host, moved)
    }

    #[test]
    fn the_third_command_meets_the_fault() {
        assert_eq!(third(halts_the_third_read(), &READ).1, Err(Fault::Stall));
        assert_eq!(third(halts_the_third_write(), &WRITE).1, Err(Fault::Stall));
        assert_eq!(
            third(falls_silent_in_the_third_read(), &READ).1,
            Err(Fault::Silent)
        );
        assert_eq!(
            third(falls_silent_in_the_third_write(), &WRITE).1,
            Err(Fault::Silent)
        );
        assert_eq!(
            third(crashes_in_the_third_read(), &READ).1,
            Err(Fault::Silent)
        );
        assert_eq!(
            third(leaves_in_the_third_read_for(1), &READ).1,
            Err(Fault::Silent)
        );
        let hang = hangs_in_the_third_read_until(Until::ClassReset);
        assert_eq!(third(hang, &READ).1, Err(Fault::Timeout));
    }

    #[test]
    fn babble_is_a_packet_beyond_what_was_announced() {
        let (mut host, moved) = third(babbles_in_the_third_read(), &READ);
        assert_eq!(moved, Ok(512));
        assert_eq!(host.bulk_in(0x81, 13), Err(Fault::Babble));
    }

    #[test]
    fn stalls_are_counted_one_by_one() {
        let (mut host, _) = third(halts_the_third_read(), &READ);
        assert_eq!(host.device.stalls().len(), 1);
        assert_eq!(host.bulk_in(0x81, 512), Err(Fault::Stall));
        assert_eq!(
            host.device
                .stalls()
                .iter()
                .map(|(_, pipe)| *pipe)
                .collect::<Vec<_>>(),
            [0x81; 2]
        );
        assert_eq!(host.device.count_requests(Request::CLEAR_HALT), 0);
    }

    #[test]
    fn endpoint_zero_fails_in_one_request_and_works_in_the_next() {
        for (disk, fault) in [
            (babbles_on_endpoint_zero(), Fault::Babble),
            (falls_silent_on_endpoint_zero(), Fault::Silent),
        ] {
            let mut host = plugged(disk);
            assert_eq!(
                host.control([0xa1, 0xfe, 0, 0, 0, 0, 1, 0], &[]),
                Err(fault)
            );
            assert_eq!(
                host.control([0x80, 6, 0, 1, 0, 0, 18, 0], &[])
                    .map(|b| b.len()),
                Ok(18)
            );
        }
    }

    #[test]
    fn nothing_helps_a_disk_that_hangs_in_every_read() {
        let (mut host, _) = third(hangs_in_every_read_from_the_third_on(), &READ);
        for _ in 0..2 {
            host.device.power_off(host.now);
            host.device.power_on(host.now);
            host.reset();
            host.enumerate().expect("endpoint 0 lives");
            assert_eq!(host.command(&READ, Data::In(512)), Err(Fault::Timeout));
        }
    }

    #[test]
    fn a_disk_left_in_mid_command_needs_reset_recovery() {
        let mut host = plugged(starts_halted_until_reset_recovery());
        assert_eq!(host.simple(&TEST), Err(Fault::Stall));
        host.reset_recovery().expect("recovery");
        assert_eq!(host.simple(&TEST), Ok(0));
        let mut host = plugged(swallows_wrappers_after_a_bus_reset());
        host.command_wrapper(0, &WRITE, Data::Out(&[0; 512]))
            .expect("wrapper");
        host.reset();
        host.enumerate().expect("endpoint 0 lives");
        assert_eq!(host.simple(&TEST), Err(Fault::Timeout));
        host.reset_recovery().expect("recovery");
        assert_eq!(host.simple(&TEST), Ok(0));
    }
}
