//! A boot loader's live schedules under our feet. The model fails the run at the first store to memory
//! that the controller may still hold.

use rootport_models::controller::ehci::{FOREIGN_BYTES, Left};
use rootport_models::device::field::good_stick;
use rootport_models::machine::{Machine, Options};

use super::{Driver, Faults, Traits, usual};
use crate::rig::{HIGH_PORT, POOL, Rig};

/// Takes over, uses the disk that was there all the time, and leaves the boot loader's memory alone
/// until it is stopped; then that memory is anybody's.
fn takes_over(traits: Traits, faults: Faults) {
    takes_over_what_was(Left::Running, traits, faults);
}

/// The same in any state.
fn takes_over_what_was(left: Left, traits: Traits, faults: Faults) {
    let machine = Machine::new(Options::default());
    let (index, foreign) = machine.add_ehci_left(traits, faults, left);
    let stick = good_stick();
    machine.plug(index, HIGH_PORT, stick.clone());
    machine.advance(300_000_000);
    let mut rig = Rig::on(machine, index, POOL, Driver::default());
    let disk = rig.wait_for_disk(HIGH_PORT);
    for word in (0..FOREIGN_BYTES as u64).step_by(4) {
        rig.machine.store(foreign + word, &[0xffff_ffff]);
    }
    rig.check(disk, 0, 300);
    rig.unplug(HIGH_PORT);
    let disk = rig.disk(HIGH_PORT, good_stick());
    rig.check(disk, 0, 8);
}

#[test]
fn live_schedules_are_stopped_before_anything_else_and_the_disk_is_found() {
    for traits in [
        usual(),
        Traits::allwinner(),
        Traits {
            ports: 4,
            ..Traits::odd()
        },
    ] {
        let traits = Traits {
            missing_phys: vec![3],
            ..traits
        };
        takes_over(traits, Faults::none());
    }
}

#[test]
fn whatever_a_boot_loader_has_left_under_way_is_ended_and_the_disk_is_found() {
    for left in Left::ALL {
        for traits in [usual(), Traits::addresses_64(), Traits::allwinner()] {
            takes_over_what_was(left, traits, Faults::none());
        }
    }
}

#[test]
fn live_schedules_that_stop_late_are_waited_for() {
    for milliseconds in [1, 10, 100] {
        let time = milliseconds * 1_000_000;
        let traits = Traits {
            follow_time: time,
            halt_time: time,
            reset_time: time,
            ..usual()
        };
        takes_over(traits, Faults::none());
    }
}

#[test]
fn live_schedules_that_never_stop_are_halted_all_the_same() {
    let mut faults = Faults::none();
    faults.doorbell_hangs = true;
    takes_over(usual(), faults);
}
