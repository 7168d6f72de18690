//! The plug is pulled at the n-th transaction, for every n from plug-in to the end of a read, a write
//! and a flush.

use super::Course;
use super::course::is_refused;
use crate::controller::{Faults, LINKS};
use crate::rig::{disk_at, port_for};
use rootport::block::BlockError;
use rootport_models::device::Link;

fn pull_at_every_transaction(link: Link) -> u64 {
    for step in 1.. {
        let mut course = Course::new(link, step, Faults::none());
        let device = disk_at(link).build();
        device.pull_at(step);
        let results = course.run(&device);
        let survived = device.change(|device| device.pulled_after != Some(0));
        if let Some(results) = results {
            for result in [results.read, results.write, results.flush] {
                assert!(
                    matches!(result, Ok(()) | Err(BlockError::Disconnected)),
                    "step {step}: {result:?} {}",
                    course.rig.describe()
                );
            }
            assert_eq!(survived, results.all_good(), "step {step}: {results:?}");
        }
        course.end();
        if survived {
            return step;
        }
    }
    0
}

#[test]
fn a_disk_may_be_pulled_at_any_transaction() {
    for &link in LINKS {
        assert!(pull_at_every_transaction(link) > 50);
    }
}

#[test]
fn the_handle_of_a_pulled_disk_names_nothing_also_when_another_is_in_its_place() {
    for &link in LINKS {
        let mut course = Course::new(link, 0, Faults::none());
        let device = disk_at(link).build();
        assert!(course.run(&device).unwrap().all_good());
        let disk = course.rig.units_at(port_for(link))[0].id;
        course.rig.unplug(port_for(link));
        is_refused(&mut course, disk);
        let successor = course.rig.disk(port_for(link), disk_at(link).build());
        assert_ne!(successor, disk);
        is_refused(&mut course, disk);
        course.rig.check(successor, 0, 3);
        course.end();
    }
}
