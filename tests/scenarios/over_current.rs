//! A port that switches its power off because what is on it draws too much.

use rootport::block::BlockError;
use rootport::stack::HostEvent;
use rootport::time::Duration;
use rootport::usb::UsbError;
use rootport::usb::port::PortState;
use rootport_models::device::{MILLISECOND, Script};
use rootport_models::machine::Options;

use crate::controller;
use crate::rig::{HIGH_PORT, OTHER_PORT, Rig};

#[test]
fn a_port_with_over_current_is_told_of_its_disk_is_gone_and_its_neighbour_goes_on() {
    let faults = controller::over_current(HIGH_PORT, 900 * MILLISECOND, u64::MAX);
    let mut rig = Rig::faulty(Options::default(), controller::usual(), faults);
    let greedy = rig.disk(HIGH_PORT, Script::new().build());
    let neighbour = rig.disk(OTHER_PORT, Script::new().build());
    assert!(rig.age() < Duration::from_millis(900));
    while rig.host.take_event().is_some() {}
    rig.run(Duration::from_secs(1));
    let failed = PortState::Failed(UsbError::OverCurrent);
    assert_eq!(rig.port_state(HIGH_PORT), failed);
    assert_eq!(rig.read(greedy, 0, 512), Err(BlockError::Disconnected));
    rig.check(neighbour, 0, 8);
    let told: Vec<_> = std::iter::from_fn(|| rig.host.take_event()).collect();
    assert_eq!(told.first(), Some(&HostEvent::DiskGone(greedy)));
    let surges = told
        .iter()
        .filter(|event| matches!(event, HostEvent::OverCurrent(_, port) if port.0 == 0));
    assert_eq!(surges.count(), 1, "once: {told:?}");
}

/// As after a plug that was pushed in askew. Some controllers can switch the power of a port, and some cannot: the port
/// loses it all the same.
#[test]
fn a_port_whose_over_current_is_over_has_its_disk_again() {
    for traits in [controller::usual(), controller::switching_power()] {
        let (from, to) = (900 * MILLISECOND, 1_500 * MILLISECOND);
        let faults = controller::over_current(HIGH_PORT, from, to);
        let mut rig = Rig::faulty(Options::default(), traits, faults);
        let greedy = rig.disk(HIGH_PORT, Script::new().build());
        assert!(rig.age() < Duration::from_millis(900));
        rig.run(Duration::from_secs(1));
        assert_eq!(rig.read(greedy, 0, 512), Err(BlockError::Disconnected));
        let again = rig.wait_for_disk(HIGH_PORT);
        rig.check(again, 0, 8);
        rig.unplug(HIGH_PORT);
        let other = rig.disk(HIGH_PORT, Script::new().build());
        rig.check(other, 0, 8);
    }
}
