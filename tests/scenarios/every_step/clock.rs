//! The platform's clock jumps an hour ahead at the n-th look at it: every deadline that is under way seems to
//! have passed. What is late is given up in order and with a reason, no memory comes back too early, and no data
//! are wrong.

use super::Course;
use crate::controller::{Faults, LINKS};
use crate::rig::disk_at;
use rootport_models::device::{BothScript, Link, SECOND};

/// Where the specification asks for a time without requests: behind a reset and behind an address.
const RECOVERY_TIMES: [&str; 2] = ["USB 2.0 §7.1.7.5", "USB 2.0 §9.2.6.3"];

const HOUR: u64 = 3600 * SECOND;

/// Runs with a jump behind so many looks. Returns whether all was good, or `None` if the run was over by then.
fn jump_after(looks: u64, link: Link, uas: bool) -> Option<bool> {
    let mut course = Course::new(link, looks, Faults::none());
    let at = course.rig.machine.clock_looks() + looks;
    course.rig.machine.jump_clock(at, HOUR);
    let (results, faults) = match uas {
        false => {
            let disk = disk_at(link).build();
            (course.run(&disk), disk.faults())
        }
        true => {
            let disk = BothScript::new().speed(link).build();
            (course.run(&disk), disk.faults())
        }
    };
    // What the device was to be given time for has passed by the clock, and by no other.
    for fault in faults.take() {
        assert!(RECOVERY_TIMES.contains(&fault.section), "{fault}");
    }
    let is_over = course.rig.machine.clock_looks() <= at;
    if is_over {
        course.rig.machine.jump_clock(u64::MAX, 0);
    }
    course.end();
    let good = results.is_some_and(|results| results.data_are_good());
    (!is_over).then_some(good)
}

#[test]
fn a_clock_that_jumps_ahead_at_any_look_costs_patience_and_nothing_else() {
    for &link in LINKS {
        for uas in [false, true] {
            let jumps = (0..).step_by(7);
            let runs: Vec<_> = jumps
                .map_while(|looks| jump_after(looks, link, uas))
                .collect();
            // A disk that seems to have been an hour on its way to being ready is given up.
            let good = runs.iter().filter(|good| **good).count();
            assert!(
                runs.len() > 7 && 2 * good > runs.len(),
                "{link:?}: {runs:?}"
            );
        }
    }
}
