//! SuperSpeed disks that come at high speed, links that do not train, and devices that change their
//! link while they start.

use crate::rig::{HIGH_PORT, Rig, SUPER_PORT};
use rootport::usb::speed::Speed;
use rootport_models::controller::xhci::{Faults, Traits};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Link, MILLISECOND, Script};
use rootport_models::machine::Options;

fn super_disk() -> Script {
    Script::new()
        .speed(Link::Super)
        .unit(LogicalUnit::disk(65536, 512))
}

#[test]
fn a_superspeed_disk_that_shows_itself_at_high_speed_is_used_there() {
    let disk = super_disk().appears(0, Some(Link::High)).build();
    let mut rig = Rig::default();
    let id = rig.disk(HIGH_PORT, disk);
    assert_eq!(rig.units_at(HIGH_PORT)[0].device.speed(), Speed::High);
    rig.check(id, 0, 8);
}

#[test]
fn a_link_that_does_not_train_gets_a_warm_reset() {
    let mut faults = Faults::none();
    faults.training_fails = true;
    let mut rig = Rig::faulty(Options::default(), Traits::default(), faults);
    let id = rig.disk(SUPER_PORT, super_disk().build());
    assert_eq!(rig.units_at(SUPER_PORT)[0].device.speed(), Speed::Super);
    rig.check(id, 0, 8);
}

#[test]
fn a_disk_that_drops_its_link_while_it_starts_is_found_when_it_has_settled() {
    for at in [30, 90, 130, 160, 200, 300, 420] {
        let disk = super_disk()
            .appears(at * MILLISECOND, None)
            .appears((at + 40) * MILLISECOND, Some(Link::Super))
            .build();
        let mut rig = Rig::default();
        let id = rig.disk(SUPER_PORT, disk);
        rig.run(rootport::time::Duration::from_secs(1));
        let id = match rig.host.geometry(id) {
            Ok(_) => id,
            Err(_) => rig.wait_for_disk(SUPER_PORT),
        };
        rig.check(id, 0, 8);
    }
}

#[test]
fn a_high_speed_disk_that_reconnects_while_it_starts_is_found_when_it_has_settled() {
    for at in [10, 60, 110, 150, 200, 260, 400] {
        let disk = Script::new()
            .appears(at * MILLISECOND, None)
            .appears((at + 40) * MILLISECOND, Some(Link::High))
            .build();
        let mut rig = Rig::default();
        rig.plug(HIGH_PORT, disk);
        rig.run(rootport::time::Duration::from_secs(2));
        let id = rig.wait_for_disk(HIGH_PORT);
        rig.check(id, 0, 8);
    }
}
