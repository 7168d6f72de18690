//! A controller that is not ready after its reset, a command ring that is stuck, and one that does not
//! halt.

use rootport::block::BlockError;
use rootport::host::ControllerFault;
use rootport::time::Duration;
use rootport::usb::ControllerState;
use rootport_models::controller::xhci::CompletionFault;
use rootport_models::device::field::good_stick;
use rootport_models::machine::Options;

use super::{Faults, usual};
use crate::rig::{CALL_LIMIT, FAST_PORT, HIGH_PORT, OTHER_PORT, Rig};
use crate::scenarios::hangs::cannot_be_started;

#[test]
fn a_controller_that_is_never_ready_fails_with_the_reason_in_time() {
    let mut faults = Faults::none();
    faults.never_ready = true;
    cannot_be_started(faults, ControllerFault::ResetTimeout);
}

#[test]
fn a_command_ring_that_cannot_be_aborted_costs_a_restart_and_the_disks_come_back() {
    for command in 0..7 {
        let mut faults = Faults::none();
        faults.abort_hangs = true;
        faults.commands.insert(command, CompletionFault::Never);
        let mut rig = Rig::faulty(Options::default(), usual(), faults);
        rig.plug(HIGH_PORT, good_stick());
        rig.plug(OTHER_PORT, good_stick());
        for port in [HIGH_PORT, OTHER_PORT] {
            let disk = rig.wait_for_disk(port);
            rig.within(CALL_LIMIT, |rig| rig.check(disk, 0, 8));
        }
        assert_eq!(rig.controller_state(), ControllerState::Running);
    }
}

#[test]
fn a_controller_that_does_not_halt_is_cut_off_from_memory_and_given_up() {
    let mut faults = Faults::none();
    faults.never_halts = true;
    faults.abort_hangs = true;
    faults.commands.insert(3, CompletionFault::Never);
    let mut rig = Rig::faulty(Options::default(), usual(), faults);
    let disk = rig.disk(HIGH_PORT, good_stick());
    rig.check(disk, 0, 8);
    // Its first command after the disk is there: another one is plugged in.
    rig.plug(OTHER_PORT, good_stick());
    rig.run(Duration::from_secs(30));
    let halt = ControllerState::Failed(ControllerFault::HaltTimeout);
    assert_eq!(rig.controller_state(), halt);
    assert_eq!(rig.read(disk, 0, 512), Err(BlockError::Disconnected));
    assert_eq!(rig.host.bus().devices().count(), 0);
    let log = rig.machine.log();
    let is_cut = |line: &String| line.contains("its DMA was cut off");
    assert!(log.iter().any(is_cut), "{log:?}");
    // It still runs, and has something to tell: not into memory that may be somebody else's now.
    let moved = rig.machine.statistics(0).moved;
    drop(rig.machine.unplug(0, OTHER_PORT));
    rig.plug(FAST_PORT, good_stick());
    rig.machine.advance(1_000_000_000);
    rig.run(Duration::from_secs(30));
    assert_eq!(rig.machine.statistics(0).moved, moved);
}

/// Its commands can be aborted: the ring works. But it may reach the memory of a device that has gone for as long
/// as it runs.
#[test]
fn a_controller_that_does_not_give_a_slot_back_is_started_again_for_that_reason() {
    let mut faults = Faults::none();
    // The first commands after the disk is there are those that take its slot away.
    for disable in 3..5 {
        faults.commands.insert(disable, CompletionFault::Never);
    }
    let mut rig = Rig::faulty(Options::default(), usual(), faults);
    rig.disk(HIGH_PORT, good_stick());
    drop(rig.machine.unplug(0, HIGH_PORT));
    let reason = ControllerState::Recovering(ControllerFault::KeepsDevice);
    let is_told = rig.host.poll_until(Duration::from_secs(14), |host| {
        host.bus()
            .controllers()
            .any(|(_, state, _)| state == reason)
    });
    assert!(is_told, "{}", rig.describe());
    rig.run(Duration::from_secs(1));
    let disk = rig.disk(HIGH_PORT, good_stick());
    rig.check(disk, 0, 8);
}

#[test]
fn a_controller_that_is_stuck_again_and_again_is_given_up() {
    let mut faults = Faults::none();
    faults.abort_hangs = true;
    for command in 0..20 {
        faults.commands.insert(command, CompletionFault::Never);
    }
    let mut rig = Rig::faulty(Options::default(), usual(), faults);
    rig.plug(HIGH_PORT, good_stick());
    rig.run(Duration::from_secs(120));
    let given_up = ControllerState::Failed(ControllerFault::CommandRingStuck);
    assert_eq!(rig.controller_state(), given_up);
    assert_eq!(rig.host.bus().devices().count(), 0);
}
