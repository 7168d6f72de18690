//! A controller that dies: what is under way ends in time, it is started again, and its disks are
//! back.

use crate::controller::{self, Death, Faults, MENDABLE};
use crate::rig::{CALL_LIMIT, FAST_PORT, FASTEST, HIGH_PORT, Rig, disk_at};
use rootport::block::{BlockDevice, Lba};
use rootport::time::Duration;
use rootport::usb::ControllerState;
use rootport_models::device::Nanoseconds;
use rootport_models::device::field::good_stick;
use rootport_models::machine::Options;

/// Reads until the controller has died at `at`: the disks are back after that.
fn dies(death: Death, at: Nanoseconds, seed: u64) {
    let mut faults = Faults::none();
    faults.death = Some((at, death));
    let options = Options {
        seed,
        coherent: seed.is_multiple_of(2),
        ..Options::default()
    };
    let mut rig = Rig::faulty(options, controller::usual(), faults);
    let stick = good_stick();
    let fast = disk_at(FASTEST).build();
    rig.plug(HIGH_PORT, stick.clone());
    rig.plug(FAST_PORT, fast.clone());
    let before = at.saturating_sub(2_000_000) / 1_000;
    rig.host
        .poll_until(Duration::from_micros(before), |_| false);
    let mut buffer = rig.machine.buffer(8 * 512 + 5, 0);
    while rig.machine.now() < at + 1_000_000 {
        if let Ok(disk) = rig.host.first_disk() {
            let _any = rig.within(CALL_LIMIT, |rig| {
                rig.host.disk(disk).read(Lba(7), &mut buffer[5..])
            });
        }
        rig.run(Duration::from_micros(20));
    }
    if death == Death::AllOnes {
        return is_gone(&mut rig);
    }
    for port in [HIGH_PORT, FAST_PORT] {
        let disk = rig.wait_for_disk(port);
        rig.check(disk, 1, 20);
        rig.write(disk, 5, &[1; 512]).unwrap();
        rig.flush(disk).unwrap();
    }
    let restarted = stick.bus_resets().len() + fast.bus_resets().len();
    assert!(
        restarted >= 3,
        "{death:?} at {at}: the ports were reset again: {restarted}"
    );
}

/// All registers read as ones: there is nothing to start again.
fn is_gone(rig: &mut Rig) {
    rig.run(Duration::from_secs(60));
    let state = rig.controller_state();
    assert!(matches!(state, ControllerState::Failed(_)), "{state:?}");
    assert_eq!(rig.host.bus().devices().count(), 0);
    assert!(rig.host.first_disk().is_err());
}

/// Moments of bring-up, enumeration and reading.
fn moments() -> impl Iterator<Item = (Nanoseconds, u64)> {
    let enumeration = (150..560).step_by(29).map(|at| at * 1_000_000);
    let reading = (0..12).map(|step| 560_000_000 + step * 37_123);
    enumeration.chain(reading).zip(1..)
}

#[test]
fn a_death_that_a_start_mends_is_followed_by_one_whenever_it_comes() {
    for &death in MENDABLE {
        for (at, seed) in moments() {
            dies(death, at, seed);
        }
    }
}

#[test]
fn a_controller_that_has_left_the_bus_takes_its_disks_along() {
    for (at, seed) in moments() {
        dies(Death::AllOnes, at, seed);
    }
}

/// Nobody wants anything of its disks, and nothing is plugged in or pulled.
#[test]
fn a_controller_that_dies_while_nobody_wants_anything_is_found_out_within_two_seconds() {
    const DEATH: Nanoseconds = 20_000_000_000;
    let told = MENDABLE.iter().filter(|death| **death != Death::Silent);
    for &death in told.chain([&Death::AllOnes]) {
        let mut faults = Faults::none();
        faults.death = Some((DEATH, death));
        let mut rig = Rig::faulty(Options::default(), controller::usual(), faults);
        let stick = good_stick();
        let before = rig.disk(HIGH_PORT, stick.clone());
        rig.check(before, 0, 8);
        rig.run(Duration::from_micros(DEATH / 1_000 - rig.age().as_micros()));
        assert_eq!(rig.controller_state(), ControllerState::Running);
        let runs = |state| state == ControllerState::Running;
        let is_found = rig.host.poll_until(Duration::from_secs(2), |host| {
            host.bus().controllers().any(|(_, state, _)| !runs(state))
        });
        assert!(is_found, "{death:?}");
        if death == Death::AllOnes {
            is_gone(&mut rig);
        } else {
            rig.run(Duration::from_secs(5));
            assert_eq!(rig.controller_state(), ControllerState::Running);
            let disk = rig.wait_for_disk(HIGH_PORT);
            rig.check(disk, 0, 8);
        }
    }
}
