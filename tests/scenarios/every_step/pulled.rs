//! The plug is pulled at the n-th transaction, for every n from plug-in to the end of a read, a write
//! and a flush.

use super::course::is_refused;
use super::{Course, Speed};
use rootport::block::BlockError;
use rootport_models::controller::xhci::Faults;

fn pull_at_every_transaction(speed: Speed) -> u64 {
    for step in 1.. {
        let mut course = Course::new(speed, step, Faults::none());
        let device = speed.script().build();
        device.pull_at(step);
        let results = course.run(&device);
        let survived = device.change(|device| device.pulled_after != Some(0));
        if let Some(results) = results {
            for result in [results.read, results.write, results.flush] {
                assert!(
                    matches!(result, Ok(()) | Err(BlockError::Disconnected)),
                    "step {step}: {result:?}"
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
fn a_high_speed_disk_may_be_pulled_at_any_transaction() {
    assert!(pull_at_every_transaction(Speed::High) > 50);
}

#[test]
fn a_superspeed_disk_may_be_pulled_at_any_transaction() {
    assert!(pull_at_every_transaction(Speed::Super) > 50);
}

#[test]
fn the_handle_of_a_pulled_disk_names_nothing_also_when_another_is_in_its_place() {
    for speed in Speed::BOTH {
        let mut course = Course::new(speed, 0, Faults::none());
        let device = speed.script().build();
        assert!(course.run(&device).unwrap().all_good());
        let disk = course.rig.units_at(speed.port())[0].id;
        course.rig.unplug(speed.port());
        is_refused(&mut course, disk);
        let successor = course.rig.disk(speed.port(), speed.script().build());
        assert_ne!(successor, disk);
        is_refused(&mut course, disk);
        course.rig.check(successor, 0, 3);
        course.end();
    }
}
