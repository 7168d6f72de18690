//! Controllers that hang, die or lie: a typed fault within its deadline, and everything is given
//! back.

use std::rc::Rc;

use rootport::host::xhci::{Interrupts, Options};
use rootport::host::{
    ControllerFault, Devices, Endpoints, Event, HostController, HostError, RootPort,
};
use rootport::time::Duration;
use rootport::usb::speed::Speed;
use rootport_models::controller::xhci::{CompletionFault, Death, Faults, Signal, Traits};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Disk, Link, Script};

use crate::rig::{Rig, Setting, attachment, with_rig, with_running};

fn stick() -> Disk {
    Script::new()
        .speed(Link::High)
        .unit(LogicalUnit::stick(65536).content(b"block zero"))
        .build()
}

#[test]
fn a_controller_that_hangs_on_its_way_is_a_typed_fault_within_its_deadline() {
    type Hang = fn(&mut Faults);
    let cases: [(Hang, ControllerFault, u64); 3] = [
        (
            |faults| faults.reset_hangs = true,
            ControllerFault::ResetTimeout,
            1_100,
        ),
        (
            |faults| faults.never_ready = true,
            ControllerFault::ResetTimeout,
            1_100,
        ),
        (
            |faults| faults.never_runs = true,
            ControllerFault::RunTimeout,
            250,
        ),
    ];
    for (hang, fault, milliseconds) in cases {
        let mut faults = Faults::none();
        hang(&mut faults);
        with_rig(faults, |rig| {
            assert_eq!(rig.start(), Err(fault));
            assert!(rig.now().as_micros() < milliseconds * 1000, "{fault:?}");
        });
    }
    let setting = Setting {
        traits: Traits {
            running_at_start: true,
            ..Traits::default()
        },
        faults: Faults {
            never_halts: true,
            ..Faults::none()
        },
        ..Setting::default()
    };
    with_rig(setting, |rig| {
        assert_eq!(rig.start(), Err(ControllerFault::HaltTimeout));
        assert!(rig.now().as_micros() < 50_000);
    });
}

#[test]
fn every_way_to_die_is_noticed_when_the_core_asks() {
    for (death, fault) in [
        (Death::AllOnes, ControllerFault::Absent),
        (Death::HostSystemError, ControllerFault::HostSystemError),
        (Death::ControllerError, ControllerFault::HostSystemError),
    ] {
        let faults = Faults {
            death: Some((1_000_000_000, death)),
            ..Faults::none()
        };
        with_running(faults, |rig| {
            rig.machine.plug(0, 0, stick());
            let disk = rig.disk(0);
            assert!(rig.driver.check_alive());
            rig.idle(Duration::from_secs(1));
            assert!(!rig.driver.check_alive());
            let died = rig.find(|event| match event {
                Event::Died(fault) => Some(*fault),
                _ => None,
            });
            assert_eq!(died, fault);
            let now = rig.now();
            assert_eq!(
                rig.driver.address_device(disk.device, now),
                Err(HostError::Dead)
            );
            assert_eq!(rig.driver.poll(&mut rig.pool, now), None, "said once");
        });
    }
}

#[test]
fn a_silent_death_is_found_by_the_next_command() {
    let faults = Faults {
        death: Some((1_000_000_000, Death::Silent)),
        abort_hangs: true,
        ..Faults::none()
    };
    with_running(faults, |rig| {
        rig.machine.plug(0, 0, stick());
        let disk = rig.disk(0);
        rig.idle(Duration::from_secs(1));
        assert!(rig.driver.check_alive(), "it looks well");
        let now = rig.now();
        rig.driver.quiesce(disk.input, now).unwrap();
        let died = rig.find(|event| match event {
            Event::Died(fault) => Some(*fault),
            _ => None,
        });
        assert_eq!(died, ControllerFault::CommandRingStuck);
        let took = (rig.now() - now).as_millis();
        assert!(
            (10_000..10_100).contains(&took),
            "{took} ms: command and abort"
        );
    });
}

/// The n-th command of a disk that is opened: Enable Slot, Address Device, Configure Endpoint.
fn with_command_fault(n: u64, fault: CompletionFault, test: impl FnOnce(&mut Rig<'_>)) {
    let mut faults = Faults::none();
    faults.commands.insert(n, fault);
    with_running(faults, |rig| {
        rig.machine.plug(0, 0, stick());
        test(rig);
        // The controller goes on.
        let mut disk = rig.disk_again(0);
        assert_eq!(&rig.read_at(&mut disk, 0, 1)[..10], b"block zero");
        rig.close(disk.device).unwrap();
        assert_eq!(rig.stop(), Ok(()));
    });
}

#[test]
fn a_command_that_never_ends_is_aborted_and_its_neighbours_are_served() {
    with_command_fault(1, CompletionFault::Never, |rig| {
        let first = rig.connect(0);
        let now = rig.now();
        let device = rig.driver.open_device(&mut rig.pool, &first, now).unwrap();
        rig.device_result(device).unwrap();
        let began = rig.now();
        rig.driver.address_device(device, began).unwrap();
        // Two more commands wait behind the one that hangs.
        let second = attachment(RootPort(1), Speed::High);
        let others = [0, 1].map(|_| {
            let now = rig.now();
            rig.driver.open_device(&mut rig.pool, &second, now).unwrap()
        });
        assert_eq!(rig.device_result(device), Err(HostError::Timeout));
        let took = (rig.now() - began).as_millis();
        assert!((5_000..5_050).contains(&took), "{took} ms");
        for other in others {
            assert_eq!(rig.device_result(other), Ok(()));
            assert_eq!(rig.close(other), Ok(()));
        }
        assert_eq!(rig.close(device), Ok(()));
    });
}

#[test]
fn an_abort_that_hangs_is_a_dead_controller() {
    let mut faults = Faults::none();
    faults.commands.insert(0, CompletionFault::Never);
    faults.abort_hangs = true;
    with_running(faults, |rig| {
        let at = attachment(RootPort(0), Speed::High);
        let now = rig.now();
        rig.driver.open_device(&mut rig.pool, &at, now).unwrap();
        let died = rig.find(|event| match event {
            Event::Died(fault) => Some(*fault),
            _ => None,
        });
        assert_eq!(died, ControllerFault::CommandRingStuck);
        assert_eq!(rig.stop(), Ok(()));
        rig.pool.reclaim_controller(0);
        assert_eq!(rig.start(), Ok(()), "a reset brings it back");
    });
}

#[test]
fn a_refused_command_is_a_typed_error_of_that_device_alone() {
    for (code, error) in [
        (4, HostError::NoAnswer),
        (7, HostError::Resources),
        (9, HostError::Resources),
        (17, HostError::Refused(17)),
    ] {
        with_command_fault(0, CompletionFault::Code(code), |rig| {
            let before = rig.pool.usage().used;
            let at = rig.connect(0);
            let now = rig.now();
            let device = rig.driver.open_device(&mut rig.pool, &at, now).unwrap();
            assert_eq!(rig.device_result(device), Err(error));
            assert_eq!(rig.close(device), Ok(()));
            assert_eq!(rig.pool.usage().used, before);
        });
        with_command_fault(1, CompletionFault::Code(code), |rig| {
            let at = rig.connect(0);
            let now = rig.now();
            let device = rig.driver.open_device(&mut rig.pool, &at, now).unwrap();
            rig.device_result(device).unwrap();
            let now = rig.now();
            rig.driver.address_device(device, now).unwrap();
            assert_eq!(rig.device_result(device), Err(error));
            assert_eq!(rig.close(device), Ok(()));
        });
    }
}

/// Its context would be the other's, and its end would take the other's memory along.
#[test]
fn a_slot_that_is_in_use_is_not_given_to_another_device() {
    let mut faults = Faults::none();
    faults.given_slots.insert(3, 1);
    with_running(faults, |rig| {
        rig.machine.plug(0, 0, stick());
        let mut disk = rig.disk(0);
        let used = rig.pool.usage().used;
        let second = attachment(RootPort(1), Speed::High);
        let now = rig.now();
        let device = rig.driver.open_device(&mut rig.pool, &second, now).unwrap();
        assert_eq!(rig.device_result(device), Err(HostError::Refused(1)));
        assert_eq!(rig.close(device), Ok(()));
        assert_eq!(rig.pool.usage().used, used);
        assert_eq!(&rig.read_at(&mut disk, 0, 1)[..10], b"block zero");
        assert_eq!(rig.close(disk.device), Ok(()));
    });
}

#[test]
fn full_storage_and_a_full_pool_are_errors_of_one_request() {
    with_running(Traits::default(), |rig| {
        let at = attachment(RootPort(0), Speed::High);
        let used = rig.pool.usage().used;
        let devices: Vec<_> = (0..4)
            .map(|_| {
                let now = rig.now();
                rig.driver.open_device(&mut rig.pool, &at, now).unwrap()
            })
            .collect();
        let now = rig.now();
        let fifth = rig.driver.open_device(&mut rig.pool, &at, now);
        assert_eq!(fifth, Err(HostError::StorageFull));
        for device in devices {
            rig.device_result(device).unwrap();
            assert_eq!(rig.close(device), Ok(()));
        }
        assert_eq!(rig.pool.usage().used, used);
        // Whatever allocation fails, nothing stays behind.
        let mut held = Vec::new();
        let rules = rootport::dma::Rules::aligned(128);
        let (owner, class) = (rootport::dma::Owner::Host, rootport::dma::Class::Bounce);
        for size in [1 << 16, 1 << 12, 128] {
            while let Ok(piece) = rig.pool.allocate(owner, class, size, rules) {
                held.push(piece);
            }
        }
        for _ in 0..30 {
            let used = rig.pool.usage().used;
            let now = rig.now();
            match rig.driver.open_device(&mut rig.pool, &at, now) {
                Err(HostError::PoolExhausted) => assert_eq!(rig.pool.usage().used, used),
                Ok(device) => {
                    rig.device_result(device).unwrap();
                    assert_eq!(rig.close(device), Ok(()));
                    return;
                }
                Err(error) => panic!("{error:?}"),
            }
            let freed = held.pop().unwrap();
            rig.pool.free(freed);
        }
        panic!("it never fitted");
    });
}

#[test]
fn interrupts_are_acknowledged_by_the_half_alone() {
    for (interrupts, signal) in [
        (Interrupts::Wired, Signal::Wired),
        (Interrupts::Message, Signal::Message),
    ] {
        let setting = Setting {
            traits: Traits {
                signal,
                ..Traits::default()
            },
            machine: rootport_models::machine::Options {
                sleep: rootport_models::machine::Sleep::UntilInterrupt,
                ..Default::default()
            },
            options: Options {
                interrupts,
                ..Options::default()
            },
            ..Setting::default()
        };
        with_running(setting, |rig| {
            let half = Rc::new(rig.driver.interrupt_half());
            let taken = Rc::clone(&half);
            rig.handler = Some(Box::new(move || {
                taken.acknowledge();
                taken.take_pending();
            }));
            rig.machine.plug(0, 0, stick());
            let mut disk = rig.disk(0);
            let before = rig.machine.statistics(0);
            for _ in 0..20 {
                rig.read_at(&mut disk, 0, 8);
            }
            let after = rig.machine.statistics(0);
            let interrupts = after.interrupts - before.interrupts;
            assert_eq!(interrupts, 20, "one a command");
            if signal == Signal::Message {
                assert_eq!(after.reads - before.reads, 0);
                assert_eq!(after.writes - before.writes, 20 * 4);
            }
        });
    }
}
