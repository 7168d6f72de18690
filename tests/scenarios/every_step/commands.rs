//! The device does something odd at its n-th SCSI command, for every n of bring-up, a read, a write
//! and a flush.

use super::Course;
use crate::controller::{Faults, LINKS};
use crate::rig::disk_at;
use rootport_models::device::bot::{Action, Until, any};
use rootport_models::device::scsi::Sense;
use rootport_models::device::{MILLISECOND, SECOND};

/// More than the commands of a course, with the repeats that faults cause.
const COMMANDS: u32 = 11;

/// Oddities that a good stack recovers from by the means of the transport: nobody above notices.
fn passing() -> Vec<Action> {
    vec![
        Action::Hang(Until::ClassReset),
        Action::LongData(512),
        Action::SilentData(3),
        Action::EmptyPacketBeforeStatus,
        Action::HaltStatus(1),
        Action::HaltStatus(2),
        Action::Delay(3 * SECOND),
        Action::DelayStatus(3 * SECOND),
        Action::Delay(12 * SECOND),
        Action::Status(2),
        Action::Status(0x7f),
        Action::Tag(0xdead_beef),
        Action::Signature(*b"USBC"),
        Action::Residue(u32::MAX),
        Action::StatusLength(12),
        Action::StatusLength(14),
        Action::StatusLength(0),
        Action::Fail(Sense::ABORTED),
        Action::Fail(Sense::new(6, 0x2a, 0x01)),
        Action::Fail(Sense::NONE),
    ]
}

/// Oddities that may fail a call, or the disk, until it is plugged again.
fn lasting() -> Vec<Action> {
    vec![
        Action::Hang(Until::BusReset),
        Action::Hang(Until::PowerCycle),
        Action::Crash(Until::BusReset),
        Action::Crash(Until::PowerCycle),
        Action::Leave(50 * MILLISECOND),
        Action::Leave(5 * SECOND),
        Action::HaltData,
        Action::ShortData(100),
        Action::ShortData(0),
        Action::EarlyStatus(100),
        Action::StatusAsData(Sense::UNKNOWN_COMMAND),
        // A reset while something was written and not flushed is told of by the next flush.
        Action::Fail(Sense::RESET),
        Action::Fail(Sense::UNDER_POWERED),
        Action::Fail(Sense::READ_ERROR),
        Action::Fail(Sense::MEDIUM_CHANGED),
        Action::Fail(Sense::NO_MEDIUM),
        Action::Residue(1),
    ]
}

#[test]
fn what_the_transport_can_mend_at_any_command_is_noticed_by_nobody() {
    for (index, action) in passing().into_iter().enumerate() {
        for count in 0..COMMANDS {
            let link = LINKS[(index + count as usize) % LINKS.len()];
            let when = any().after(count).once();
            let device = disk_at(link).on(when, action.clone()).build();
            let mut course = Course::new(link, u64::from(count), Faults::none());
            let results = course.run(&device);
            let good = results.is_some_and(|results| results.all_good());
            assert!(
                good,
                "{action:?} at command {count}: {results:?}, {}",
                course.rig.describe()
            );
            course.end();
        }
    }
}

#[test]
fn whatever_happens_at_any_command_ends_in_time_and_with_the_plug() {
    for (index, action) in lasting().into_iter().enumerate() {
        for count in 0..COMMANDS {
            let link = LINKS[(index + count as usize) % LINKS.len()];
            let when = any().after(count).once();
            let device = disk_at(link).on(when, action.clone()).build();
            let mut course = Course::new(link, u64::from(count), Faults::none());
            let _any = course.run(&device);
            if matches!(action, Action::EarlyStatus(_) | Action::StatusAsData(_)) {
                // The rest of a write's data, which the device does not expect any more.
                let _provoked = device.faults().take();
            }
            course.end();
        }
    }
}
