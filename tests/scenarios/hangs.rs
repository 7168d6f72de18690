//! Steps of a controller that never end: its reset, its start, and a port's reset.

use rootport::host::ControllerFault;
use rootport::time::Duration;
use rootport::usb::{ControllerState, PortState, UsbError};
use rootport_models::device::field::good_stick;
use rootport_models::machine::Options;

use crate::controller::{self, Faults};
use crate::rig::{HIGH_PORT, Rig};

/// The controller does not start, for this reason.
pub(crate) fn cannot_be_started(faults: Faults, reason: ControllerFault) {
    let mut rig = Rig::faulty(Options::default(), controller::usual(), faults);
    rig.plug(HIGH_PORT, good_stick());
    rig.run(Duration::from_secs(5));
    assert_eq!(rig.controller_state(), ControllerState::Failed(reason));
    assert!(rig.host.first_disk().is_err());
}

#[test]
fn a_controller_whose_reset_never_ends_fails_with_the_reason_in_time() {
    let mut faults = Faults::none();
    faults.reset_hangs = true;
    cannot_be_started(faults, ControllerFault::ResetTimeout);
}

#[test]
fn a_controller_that_never_runs_fails_with_the_reason_in_time() {
    let mut faults = Faults::none();
    faults.never_runs = true;
    cannot_be_started(faults, ControllerFault::RunTimeout);
}

#[test]
fn a_port_whose_reset_never_ends_is_given_up() {
    let mut faults = Faults::none();
    faults.port_reset_hangs = true;
    let mut rig = Rig::faulty(Options::default(), controller::usual(), faults);
    rig.plug(HIGH_PORT, good_stick());
    let port = rig.within(Duration::from_secs(10), |rig| rig.settle_port(HIGH_PORT));
    assert_eq!(port, PortState::Failed(UsbError::PortReset));
    assert_eq!(rig.host.bus().devices().count(), 0);
}
