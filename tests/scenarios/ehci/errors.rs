//! Errors of the system's bus and interrupts that get lost.

use rootport::block::BlockError;
use rootport::host::ControllerFault;
use rootport::time::Duration;
use rootport::usb::ControllerState;
use rootport_models::device::Script;
use rootport_models::device::scsi::pattern;
use rootport_models::machine::Options;

use super::{Faults, interrupting, usual};
use crate::rig::{CALL_LIMIT, HIGH_PORT, OTHER_PORT, Rig};
use crate::scenarios::interrupts::sleeping;

/// What an untouched disk holds.
fn blocks(first: u64, count: u64) -> Vec<u8> {
    let each = (first..first + count).map(|lba| pattern(lba, 512));
    each.collect::<Vec<_>>().concat()
}

/// The n-th access to memory meets an error, at every stage of a disk's life: a start that it ends
/// fails with the reason; later the controller is started again, and the disks are back.
#[test]
fn an_error_of_the_system_s_bus_at_any_access_is_followed_by_a_restart() {
    for access in (0..40).chain((40..2_000).step_by(97)) {
        let mut faults = Faults::none();
        faults.host_system_error_at = Some(access);
        let mut rig = Rig::faulty(Options::default(), usual(), faults);
        rig.plug(HIGH_PORT, Script::new().build());
        rig.plug(OTHER_PORT, Script::new().build());
        rig.run(Duration::from_millis(50));
        if let ControllerState::Failed(fault) = rig.controller_state() {
            assert_eq!(fault, ControllerFault::HostSystemError);
            assert!(access < 4, "{access} accesses are more than a start makes");
            continue;
        }
        for port in [HIGH_PORT, OTHER_PORT] {
            for lba in 0..4 {
                let disk = rig.wait_for_disk(port);
                let result = rig.within(CALL_LIMIT, |rig| rig.read(disk, lba, 1536));
                // The controller's disks went with it, and come back as others.
                match result {
                    Ok(bytes) => assert!(bytes == blocks(lba, 3), "block {lba} after {access}"),
                    Err(error) => assert_eq!(error, BlockError::Disconnected, "{access}"),
                }
            }
            let disk = rig.wait_for_disk(port);
            rig.check(disk, 0, 8);
        }
    }
}

#[test]
fn a_lost_interrupt_costs_time_and_nothing_else() {
    for kind in interrupting() {
        for lost in 1..=5 {
            let mut faults = Faults::none();
            faults.lost_interrupts = lost;
            let mut rig = sleeping(kind.clone(), lost, faults);
            let device = Script::new().build();
            let disk = rig.disk(HIGH_PORT, device.clone());
            for lba in 0..10 {
                rig.within(CALL_LIMIT, |rig| rig.check(disk, lba, 3));
            }
            // What had ended when its deadline came has not timed out.
            assert_eq!(device.bus_resets().len(), 1, "{lost} lost");
        }
    }
}
