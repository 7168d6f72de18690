//! What is in a port gets three attempts to be taken into use, each with a new reset, and is then left
//! alone with the reason until it is pulled.

use crate::rig::{HIGH_PORT, OTHER_PORT, Rig, with_disk};
use rootport::time::Duration;
use rootport::usb::{PortState, UsbError};
use rootport_models::device::Script;
use rootport_models::device::base::{Answer, Request};
use rootport_models::device::field::good_stick;

#[test]
fn a_configuration_that_is_refused_once_is_set_at_the_next_attempt() {
    // The controller itself repeats a packet without an answer twice.
    for (answer, times) in [(Answer::Stall, 1), (Answer::Silent, 3)] {
        let device = Script::new()
            .control_some(Request::SET_CONFIGURATION, 0..times, answer)
            .build();
        let (mut rig, disk) = with_disk(&device);
        assert_eq!(device.bus_resets().len(), 2);
        rig.check(disk, 0, 8);
    }
}

#[test]
fn a_configuration_that_is_always_refused_leaves_the_port_with_the_reason() {
    let device = Script::new()
        .control(Request::SET_CONFIGURATION, Answer::Stall)
        .build();
    let mut rig = Rig::default();
    rig.run(Duration::from_millis(500));
    let before = rig.pool_used();
    rig.plug(HIGH_PORT, device.clone());
    let neighbour = rig.disk(OTHER_PORT, good_stick());
    rig.check(neighbour, 0, 8);
    rig.unplug(OTHER_PORT);
    let port = rig.settle_port(HIGH_PORT);
    assert_eq!(port, PortState::Failed(UsbError::Stall));
    assert_eq!(device.bus_resets().len(), 3);
    assert_eq!(rig.host.bus().devices().count(), 0);
    assert_eq!(rig.pool_used(), before);
    rig.unplug(HIGH_PORT);
    let disk = rig.disk(HIGH_PORT, good_stick());
    rig.check(disk, 0, 8);
}
