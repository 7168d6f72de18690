//! Steps of a controller that never end: resets, ports, the command ring, halting.

use crate::rig::{CALL_LIMIT, HIGH_PORT, OTHER_PORT, Rig};
use rootport::block::BlockError;
use rootport::host::ControllerFault;
use rootport::time::Duration;
use rootport::usb::{ControllerState, PortState, UsbError};
use rootport_models::controller::xhci::{CompletionFault, Faults, Traits};
use rootport_models::device::field::good_stick;
use rootport_models::machine::Options;

fn state(rig: &Rig) -> ControllerState {
    let mut controllers = rig.host.bus().controllers();
    controllers.next().expect("there is one").1
}

/// What goes wrong.
type Plan = fn(&mut Faults);

#[test]
fn a_controller_that_cannot_be_started_fails_with_the_reason_in_time() {
    let plans: [(Plan, ControllerFault); 3] = [
        (
            |faults| faults.reset_hangs = true,
            ControllerFault::ResetTimeout,
        ),
        (
            |faults| faults.never_ready = true,
            ControllerFault::ResetTimeout,
        ),
        (
            |faults| faults.never_runs = true,
            ControllerFault::RunTimeout,
        ),
    ];
    for (plan, fault) in plans {
        let mut faults = Faults::none();
        plan(&mut faults);
        let mut rig = Rig::faulty(Options::default(), Traits::default(), faults);
        rig.plug(HIGH_PORT, good_stick());
        rig.run(Duration::from_secs(5));
        assert_eq!(state(&rig), ControllerState::Failed(fault));
        assert!(rig.host.first_disk().is_err());
    }
}

#[test]
fn a_port_whose_reset_never_ends_is_given_up() {
    let mut faults = Faults::none();
    faults.port_reset_hangs = true;
    let mut rig = Rig::faulty(Options::default(), Traits::default(), faults);
    rig.plug(HIGH_PORT, good_stick());
    let port = rig.within(Duration::from_secs(10), |rig| rig.settle_port(HIGH_PORT));
    assert_eq!(port, PortState::Failed(UsbError::PortReset));
    assert_eq!(rig.host.bus().devices().count(), 0);
}

#[test]
fn a_command_ring_that_cannot_be_aborted_costs_a_restart_and_the_disks_come_back() {
    for command in 0..7 {
        let mut faults = Faults::none();
        faults.abort_hangs = true;
        faults.commands.insert(command, CompletionFault::Never);
        let mut rig = Rig::faulty(Options::default(), Traits::default(), faults);
        rig.plug(HIGH_PORT, good_stick());
        rig.plug(OTHER_PORT, good_stick());
        for port in [HIGH_PORT, OTHER_PORT] {
            let disk = rig.wait_for_disk(port);
            rig.within(CALL_LIMIT, |rig| rig.check(disk, 0, 8));
        }
        assert_eq!(state(&rig), ControllerState::Running);
    }
}

#[test]
fn a_controller_that_does_not_halt_is_cut_off_from_memory_and_given_up() {
    let mut faults = Faults::none();
    faults.never_halts = true;
    faults.abort_hangs = true;
    faults.commands.insert(3, CompletionFault::Never);
    let mut rig = Rig::faulty(Options::default(), Traits::default(), faults);
    let disk = rig.disk(HIGH_PORT, good_stick());
    rig.check(disk, 0, 8);
    // Its first command after the disk is there: another one is plugged in.
    rig.plug(OTHER_PORT, good_stick());
    rig.run(Duration::from_secs(30));
    let halt = ControllerState::Failed(ControllerFault::HaltTimeout);
    assert_eq!(state(&rig), halt);
    assert_eq!(rig.read(disk, 0, 512), Err(BlockError::Disconnected));
    assert_eq!(rig.host.bus().devices().count(), 0);
}

#[test]
fn a_controller_that_is_stuck_again_and_again_is_given_up() {
    let mut faults = Faults::none();
    faults.abort_hangs = true;
    for command in 0..20 {
        faults.commands.insert(command, CompletionFault::Never);
    }
    let mut rig = Rig::faulty(Options::default(), Traits::default(), faults);
    rig.plug(HIGH_PORT, good_stick());
    rig.run(Duration::from_secs(120));
    let given_up = ControllerState::Failed(ControllerFault::CommandRingStuck);
    assert_eq!(state(&rig), given_up);
    assert_eq!(rig.host.bus().devices().count(), 0);
}
