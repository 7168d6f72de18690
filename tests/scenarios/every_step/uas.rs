//! The same over UAS: every transfer of every pipe goes wrong once, with streams and without.

use super::Course;
use crate::controller::{BAD_ENDS, Faults, LINKS, NEVER_ENDS, TransferFault};
use rootport_models::device::{Link, UasDisk, UasScript};

/// Command, status, data in, data out; and how many of its transfers a course has at least.
const PIPES: [(u8, u64); 4] = [(0x01, 16), (0x82, 16), (0x83, 10), (0x04, 1)];

fn disk(link: Link) -> UasDisk {
    UasScript::new().speed(link).build()
}

/// The disk works on; if its port had to be reset between a write and its flush, that is told.
fn survives(link: Link, step: u64, faults: Faults, what: &str) {
    let mut course = Course::new(link, step, faults);
    let results = course.run(&disk(link));
    let good = results.is_some_and(|results| results.data_are_good());
    assert!(good, "{what}: {results:?}; {}", course.rig.describe());
    course.end();
}

fn transfer(endpoint: u8, count: u64, fault: TransferFault) -> Faults {
    let mut faults = Faults::none();
    faults.transfers.insert((endpoint, count), fault);
    faults
}

#[test]
fn any_transfer_of_a_uas_pipe_may_end_with_any_error() {
    for &link in LINKS {
        for (pipe, most) in PIPES {
            for count in 0..most {
                // A pipe with few transfers has every error at each.
                let (first, all) = (count as usize, BAD_ENDS.len());
                let each = if most < 4 { all } else { 1 };
                for fault in (first..first + each).map(|place| BAD_ENDS[place % all]) {
                    let what = format!("{fault:?} at transfer {count} of {pipe:#x}, {link:?}");
                    survives(link, count, transfer(pipe, count, fault), &what);
                }
            }
        }
    }
}

#[test]
fn any_transfer_of_a_uas_pipe_may_never_end() {
    for &link in LINKS {
        for (pipe, most) in PIPES {
            for count in 0..most {
                let faults = transfer(pipe, count, NEVER_ENDS);
                let what = format!("no end of transfer {count} of {pipe:#x}, {link:?}");
                survives(link, count, faults, &what);
            }
        }
    }
}
