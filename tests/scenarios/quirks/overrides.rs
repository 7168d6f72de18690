//! The run-time string.

use rootport::storage::quirks::Quirks;
use rootport_models::device::bot::{Action, Until, opcode};

use super::stick;
use crate::rig::{HIGH_PORT, Rig};

#[test]
fn the_string_switches_policies_on_and_off_and_says_so() {
    let mut rig = Rig::default();
    rig.host.set_quirks("1209:0001:w,0951:1697:");
    let device = stick(0x1209, 0x0001, 0x0100)
        .on(opcode(0x1a), Action::Hang(Until::PowerCycle))
        .build();
    let disk = rig.disk(HIGH_PORT, device.clone());
    rig.check(disk, 0, 1);
    assert_eq!(device.count(0x1a), 0);
    let decision = rig.units_at(HIGH_PORT)[0].decision;
    assert_eq!(decision.quirks, Quirks::NO_WP_DETECT);
    assert_eq!(decision.source.replaced, Some((Quirks::empty(), 0)));
    rig.unplug(HIGH_PORT);
    // The table has it for this one; the string clears it.
    let kingston = stick(0x0951, 0x1697, 0x0100).build();
    rig.disk(HIGH_PORT, kingston.clone());
    assert_eq!(kingston.count(0x1a), 1);
    let decision = rig.units_at(HIGH_PORT)[0].decision;
    assert_eq!(decision.source.replaced, Some((Quirks::NO_WP_DETECT, 12)));
    assert!(decision.source.entry.is_some());
}

#[test]
fn a_bad_entry_is_told_of_with_its_position_and_the_others_count() {
    let mut rig = Rig::default();
    rig.host.set_quirks("1209:0001:w,oops,1209:0002:iz");
    let log = format!("{:?}", rig.machine.log());
    assert!(
        log.contains("position 12: an entry is VID:PID:letters"),
        "{log}"
    );
    assert!(
        log.contains("position 28: no policy has this letter"),
        "{log}"
    );
    rig.plug(HIGH_PORT, stick(0x1209, 0x0002, 0x0100).build());
    rig.run(rootport::time::Duration::from_secs(3));
    assert_eq!(rig.host.disks().count(), 0, "ignored, as the string says");
}
