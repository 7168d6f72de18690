//! Controllers of every shape and in every state are taken over, run, and given back.

use rootport::host::{
    ControllerFault, Devices, Endpoints, Event, HostController, HostError, Report,
};
use rootport::time::Duration;
use rootport::usb::setup::Direction;
use rootport_models::controller::ehci::{Death, Faults, Traits};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Disk, Link, Script};

use crate::rig::{
    DiskRig, Rig, STATUS, Setting, moments_of_a_start, with_left_running, with_rig, with_running,
};

fn stick() -> Disk {
    Script::new()
        .speed(Link::High)
        .unit(LogicalUnit::stick(65536).content(b"block zero"))
        .build()
}

/// A controller that really makes every poll, so that it is always at work.
fn busy() -> Traits {
    Traits {
        exact_polls: true,
        ..Traits::default()
    }
}

/// Asks a disk for data that it does not have.
fn wait_for_data(rig: &mut Rig<'_>) -> DiskRig {
    rig.machine.plug(0, 0, stick());
    let disk = rig.disk(0);
    rig.queue(disk.input, 7, Direction::In, (STATUS, 512), Report::Always);
    rig.driver.kick(disk.input, 0);
    disk
}

fn shapes() -> [(&'static str, Traits); 4] {
    [
        ("default", Traits::default()),
        ("allwinner", Traits::allwinner()),
        ("64 bits", Traits::addresses_64()),
        ("odd", Traits::odd()),
    ]
}

#[test]
fn controllers_of_every_shape_start_and_stop_twice() {
    for (name, traits) in shapes() {
        with_rig(traits, |rig| {
            for _ in 0..2 {
                assert_eq!(rig.start(), Ok(()), "{name}");
                assert_eq!(rig.stop(), Ok(()), "{name}");
                rig.pool.reclaim_controller(0);
            }
        });
    }
}

#[test]
fn what_was_said_to_be_needed_is_enough() {
    for (name, traits) in shapes() {
        with_rig(traits, |rig| {
            let before = rig.pool.usage().used;
            let requirement = rig.driver.requirement();
            assert_eq!(rig.start(), Ok(()), "{name}");
            let used = rig.pool.usage().used - before;
            assert!(used <= requirement.pool, "{name}: {used}");
        });
    }
}

#[test]
fn a_controller_that_runs_over_foreign_memory_is_stopped_before_anything_else() {
    for (name, traits) in shapes() {
        with_left_running(traits, |rig| {
            assert_eq!(rig.start(), Ok(()), "{name}");
            assert_eq!(rig.stop(), Ok(()), "{name}");
        });
    }
}

#[test]
fn what_never_happens_is_a_typed_fault_in_bounded_time() {
    let faults = |change: fn(&mut Faults)| {
        let mut faults = Faults::none();
        change(&mut faults);
        faults
    };
    let table = [
        (
            faults(|faults| faults.reset_hangs = true),
            ControllerFault::ResetTimeout,
        ),
        (
            faults(|faults| faults.never_runs = true),
            ControllerFault::RunTimeout,
        ),
        (
            faults(|faults| faults.schedules_stuck = true),
            ControllerFault::RunTimeout,
        ),
    ];
    for (faults, fault) in table {
        with_rig(faults, |rig| {
            assert_eq!(rig.start(), Err(fault));
            assert!(rig.now().as_micros() < 400_000, "{fault:?}");
        });
    }
}

#[test]
fn one_that_never_halts_is_not_reset() {
    let faults = Faults {
        never_halts: true,
        ..Faults::none()
    };
    with_running(faults, |rig| {
        assert_eq!(rig.stop(), Err(ControllerFault::HaltTimeout));
    });
}

#[test]
fn one_that_leaves_the_bus_is_reported_when_it_is_asked_for() {
    for death in [Death::AllOnes, Death::Silent] {
        let setting = Setting {
            traits: busy(),
            faults: Faults {
                death: Some((400_000_000, death)),
                ..Faults::none()
            },
            ..Setting::default()
        };
        with_running(setting, |rig| {
            wait_for_data(rig);
            assert!(rig.driver.check_alive());
            while rig.now().as_micros() < 405_000 {
                rig.machine.advance(1_000_000);
            }
            let alive = rig.driver.check_alive();
            assert_eq!(alive, death == Death::Silent);
            let died = rig.try_find(Duration::from_secs(1), |event| match event {
                Event::Died(fault) => Some(*fault),
                _ => None,
            });
            assert_eq!(died, (!alive).then_some(ControllerFault::Absent));
        });
    }
}

#[test]
fn an_error_of_the_system_bus_ends_the_controller_and_a_start_brings_it_back() {
    let setting = Setting {
        traits: busy(),
        faults: Faults {
            host_system_error_at: Some(50_000),
            ..Faults::none()
        },
        ..Setting::default()
    };
    with_running(setting, |rig| {
        let disk = wait_for_data(rig);
        let fault = rig.find(|event| match event {
            Event::Died(fault) => Some(*fault),
            _ => None,
        });
        assert_eq!(fault, ControllerFault::HostSystemError);
        let refused = rig.driver.close_device(disk.device, rig.now());
        assert_eq!(refused, Err(HostError::Dead));
        assert_eq!(rig.start(), Ok(()));
        let mut disk = rig.disk(0);
        assert_eq!(&rig.read_at(&mut disk, 0, 8)[..10], b"block zero");
        assert_eq!(rig.stop(), Ok(()));
    });
}

#[test]
fn a_controller_may_be_stopped_at_any_moment_of_its_start() {
    for (name, traits) in shapes() {
        let ran = moments_of_a_start()
            .find(|after| with_rig(traits.clone(), |rig| rig.stop_while_starting(*after)));
        assert!(ran.is_some(), "{name}");
    }
}
