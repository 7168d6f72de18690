//! Devices that change their link while they start.

use crate::rig::{HIGH_PORT, Rig};
use rootport_models::device::{Link, MILLISECOND, Script};

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
