//! Devices that are not at high speed: theirs is the companion, whether there is one, whether it takes
//! them, and whenever they show it.

use rootport::block::BlockError;
use rootport::time::Duration;
use rootport::usb::{PortState, UsbError};
use rootport_models::device::field::good_stick;
use rootport_models::device::{Disk, Link, MILLISECOND, Script};
use rootport_models::machine::Options;

use super::{Faults, Traits, usual};
use crate::rig::{CALL_LIMIT, HIGH_PORT, OTHER_PORT, Rig};

const LEFT_TO_COMPANION: PortState = PortState::Failed(UsbError::NeedsCompanion);

fn slow(link: Link) -> Disk {
    Script::new().speed(link).build()
}

/// A slow device is shown as the companion's and left alone; a neighbour and a successor work.
fn is_left_to_the_companion(link: Link, traits: Traits, faults: Faults) {
    let mut rig = Rig::faulty(Options::default(), traits, faults);
    rig.run(Duration::from_millis(500));
    let before = rig.pool_used();
    let device = slow(link);
    rig.plug(HIGH_PORT, device.clone());
    let port = rig.within(Duration::from_secs(61), |rig| rig.settle_port(HIGH_PORT));
    assert_eq!(port, LEFT_TO_COMPANION);
    assert_eq!(rig.pool_used(), before);
    let neighbour = rig.disk(OTHER_PORT, good_stick());
    let resets = device.bus_resets().len();
    rig.run(Duration::from_secs(30));
    assert_eq!(rig.port_state(HIGH_PORT), LEFT_TO_COMPANION);
    assert_eq!(device.bus_resets().len(), resets, "it is left alone");
    assert_eq!(device.requests().len(), 0);
    rig.check(neighbour, 0, 8);
    rig.unplug(HIGH_PORT);
    let disk = rig.disk(HIGH_PORT, good_stick());
    rig.check(disk, 0, 8);
}

#[test]
fn slow_devices_are_left_to_the_companion_and_shown_as_such() {
    for link in [Link::Full, Link::Low] {
        is_left_to_the_companion(link, usual(), Faults::none());
    }
}

#[test]
fn a_companion_that_never_takes_the_port_leaves_it_shown_as_such() {
    for link in [Link::Full, Link::Low] {
        let mut faults = Faults::none();
        faults.companion_refuses = true;
        is_left_to_the_companion(link, usual(), faults);
    }
}

#[test]
fn a_controller_without_companion_shows_slow_devices_as_such() {
    for link in [Link::Full, Link::Low] {
        let traits = Traits {
            companions: 0,
            ports_per_companion: 0,
            ..usual()
        };
        is_left_to_the_companion(link, traits, Faults::none());
    }
}

/// Reads until the disk is gone. A call ends in time, whatever it ends with.
fn reads_until_it_is_gone(rig: &mut Rig, device: Disk) -> BlockError {
    let neighbour = rig.disk(OTHER_PORT, good_stick());
    let disk = rig.disk(HIGH_PORT, device);
    for lba in 0..2_000 {
        let result = rig.within(CALL_LIMIT, |rig| rig.read(disk, lba, 512));
        rig.check(neighbour, lba, 1);
        rig.run(Duration::from_millis(5));
        if let Err(error) = result {
            return error;
        }
    }
    panic!("it never went: {}", rig.describe());
}

#[test]
fn a_disk_that_comes_back_at_full_speed_is_gone_and_left_to_the_companion() {
    for at in [900, 950, 1_000] {
        let device = Script::new()
            .appears(0, Some(Link::High))
            .appears(at * MILLISECOND, None)
            .appears((at + 40) * MILLISECOND, Some(Link::Full))
            .build();
        let mut rig = Rig::default();
        let error = reads_until_it_is_gone(&mut rig, device);
        assert_eq!(error, BlockError::Disconnected);
        assert_eq!(rig.settle_port(HIGH_PORT), LEFT_TO_COMPANION);
        rig.unplug(HIGH_PORT);
        let disk = rig.disk(HIGH_PORT, good_stick());
        rig.check(disk, 0, 8);
    }
}

/// It hangs, its port is reset, and it does not chirp any more.
#[test]
fn a_disk_that_is_at_full_speed_after_the_reset_of_its_recovery_ends_in_an_error_in_time() {
    use rootport_models::device::bot::{Action, Until, opcode};
    let device = Script::new()
        .appears(0, Some(Link::High))
        .appears(800 * MILLISECOND, Some(Link::Full))
        .on(opcode(0x28).after(20).once(), Action::Hang(Until::BusReset))
        .build();
    let mut rig = Rig::default();
    reads_until_it_is_gone(&mut rig, device);
    assert_eq!(rig.port_state(HIGH_PORT), LEFT_TO_COMPANION);
    assert_eq!(rig.units_at(HIGH_PORT).len(), 0);
    rig.unplug(HIGH_PORT);
    let disk = rig.disk(HIGH_PORT, good_stick());
    rig.check(disk, 0, 8);
}

#[test]
fn a_disk_whose_first_resets_do_not_bring_it_to_high_speed_is_left_to_the_companion() {
    // An enclosure that starts at full speed and changes its mind: it must drop off to be seen anew.
    let device = Script::new()
        .appears(0, Some(Link::Full))
        .appears(1_500 * MILLISECOND, None)
        .appears(1_600 * MILLISECOND, Some(Link::High))
        .build();
    let mut rig = Rig::default();
    rig.plug(HIGH_PORT, device);
    rig.run(Duration::from_millis(1_000));
    assert_eq!(rig.port_state(HIGH_PORT), LEFT_TO_COMPANION);
    let disk = rig.wait_for_disk(HIGH_PORT);
    rig.check(disk, 0, 8);
}
