//! Malformed configuration descriptors: the disk is used where the bytes name one, refused where they
//! do not, and the port and its neighbour live on in both cases.

use crate::rig::{HIGH_PORT, OTHER_PORT, Rig};
use rootport::stack::DiskState;
use rootport::time::Duration;
use rootport::usb::PortState;
use rootport_models::device::field::descriptors::{Malformed, all};
use rootport_models::device::field::good_stick;

/// Announces one endpoint, and two come. The second one is not believed (USB 2.0 §9.6.5), so there is
/// no disk, although a more lenient host would find one.
const BEYOND_ITS_COUNT: &str = "more endpoints than announced";

fn works(malformed: &Malformed) -> bool {
    malformed.usable && malformed.fault != BEYOND_ITS_COUNT
}

#[test]
fn a_disk_that_the_bytes_still_name_works() {
    for malformed in all().iter().filter(|malformed| works(malformed)) {
        let mut rig = Rig::default();
        let units = rig.settle(HIGH_PORT, malformed.disk.clone());
        assert!(
            matches!(
                units.first().map(|unit| unit.state),
                Some(DiskState::Ready(_))
            ),
            "{}: {}",
            malformed.fault,
            rig.describe()
        );
        rig.check(units[0].id, 1, 40);
    }
}

#[test]
fn a_disk_that_the_bytes_do_not_name_is_refused_in_time() {
    for malformed in all().iter().filter(|malformed| !works(malformed)) {
        let mut rig = Rig::default();
        rig.plug(HIGH_PORT, malformed.disk.clone());
        rig.run(Duration::from_secs(10));
        assert!(rig.units_at(HIGH_PORT).is_empty(), "{}", malformed.fault);
        let port = rig.settle_port(HIGH_PORT);
        assert!(
            matches!(port, PortState::Failed(_) | PortState::Occupied(_)),
            "{}: {port:?}",
            malformed.fault
        );
        assert!(malformed.disk.commands().is_empty(), "{}", malformed.fault);
    }
}

#[test]
fn the_neighbour_and_the_port_itself_live_on() {
    for malformed in all() {
        let mut rig = Rig::default();
        let neighbour = rig.disk(OTHER_PORT, good_stick());
        rig.plug(HIGH_PORT, malformed.disk.clone());
        rig.run(Duration::from_secs(3));
        rig.check(neighbour, 5, 9);
        rig.unplug(HIGH_PORT);
        let disk = rig.disk(HIGH_PORT, good_stick());
        rig.check(disk, 6, 9);
        rig.check(neighbour, 7, 9);
    }
}
