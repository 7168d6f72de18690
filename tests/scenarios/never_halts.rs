//! A controller that goes on by itself: it cannot be stopped, whether it has a disk or not, and whether this host
//! has started it or a boot loader has. It is cut off from memory; where that cannot be done, leaving says so.

use rootport::stack::Parting;
use rootport::time::Duration;
use rootport::usb::ControllerState;
use rootport_models::device::bot::{Action, opcode};
use rootport_models::device::field::good_stick;
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{MICROSECOND, SECOND, Script};
use rootport_models::machine::{Machine, Options};

use crate::controller::{self, Death, Driver, Faults};
use crate::rig::{CALL_LIMIT, HIGH_PORT, POOL, Rig};

/// Whether the platform can cut it off.
const CAN: [bool; 2] = [true, false];

fn options(can_cut_dma: bool) -> Options {
    Options {
        can_cut_dma,
        ..Options::default()
    }
}

fn never_halts() -> Faults {
    let mut faults = Faults::none();
    faults.never_halts = true;
    faults
}

/// Whether the memory of all controllers is free after leaving.
fn is_quiet(rig: &mut Rig) -> bool {
    let patience = Duration::from_secs(2);
    rig.within(Duration::from_secs(3), |rig| {
        rig.host.shutdown(Parting::Flush, patience).quiet
    })
}

/// Whether the log says that the controller was cut off from memory, if it could be.
fn was_cut(rig: &Rig) -> bool {
    let log = rig.machine.log();
    let line = log.iter().find(|line| line.contains("does not stop"));
    line.unwrap_or_else(|| panic!("{log:?}"))
        .ends_with("was cut off")
}

#[test]
fn a_controller_that_a_boot_loader_left_running_and_that_does_not_halt_is_cut_off_at_the_start() {
    for can in CAN {
        let machine = Machine::new(options(can));
        let index = controller::add_running(&machine, never_halts());
        machine.plug(index, HIGH_PORT, good_stick());
        let mut rig = Rig::on(machine, index, POOL, Driver::default());
        rig.run(Duration::from_secs(5));
        let state = rig.controller_state();
        assert!(matches!(state, ControllerState::Failed(_)), "{state:?}");
        assert_eq!(was_cut(&rig), can);
        assert_eq!(is_quiet(&mut rig), can, "{}", rig.describe());
    }
}

#[test]
fn a_controller_whose_reset_never_ends_is_cut_off() {
    for can in CAN {
        let mut faults = Faults::none();
        faults.reset_hangs = true;
        let mut rig = Rig::faulty(options(can), controller::usual(), faults);
        rig.run(Duration::from_secs(5));
        assert_eq!(was_cut(&rig), can);
        assert_eq!(is_quiet(&mut rig), can, "{}", rig.describe());
    }
}

/// It was told to run, and may do so at any time: a stop makes sure that it does not.
#[test]
fn a_controller_that_does_not_start_in_time_is_stopped() {
    let mut faults = Faults::none();
    faults.never_runs = true;
    let mut rig = Rig::faulty(options(false), controller::usual(), faults);
    rig.run(Duration::from_secs(5));
    assert_eq!(rig.pool_used(), 0, "it has let go of its memory");
    assert!(is_quiet(&mut rig), "{}", rig.describe());
}

#[test]
fn a_controller_that_does_not_halt_is_told_of_though_its_last_disk_was_pulled_before() {
    for can in CAN {
        let mut rig = Rig::faulty(options(can), controller::usual(), never_halts());
        rig.disk(HIGH_PORT, good_stick());
        rig.unplug(HIGH_PORT);
        assert_eq!(is_quiet(&mut rig), can, "{}", rig.describe());
        assert_eq!(was_cut(&rig), can);
    }
}

#[test]
fn a_controller_that_leaves_the_bus_after_its_last_disk_is_told_of() {
    for can in CAN {
        let mut faults = Faults::none();
        faults.death = Some((20_000_000_000, Death::AllOnes));
        let mut rig = Rig::faulty(options(can), controller::usual(), faults);
        rig.disk(HIGH_PORT, good_stick());
        rig.unplug(HIGH_PORT);
        rig.run(Duration::from_secs(60));
        assert_eq!(is_quiet(&mut rig), can, "{}", rig.describe());
    }
}

/// Nobody has asked for it to be stopped, but it may run all the same.
#[test]
fn a_controller_that_was_added_and_never_started_is_stopped_on_the_way_out() {
    for can in CAN {
        let machine = Machine::new(options(can));
        let first = controller::add(&machine, controller::usual(), Faults::none());
        let second = controller::add_running(&machine, never_halts());
        let mut rig = Rig::on(machine, first, POOL, Driver::default());
        let platform = rig.host.platform().clone();
        let driver = controller::drive(&rig.machine, &platform, second, Driver::default());
        rig.host.add_controller(driver).expect("room for two");
        assert_eq!(is_quiet(&mut rig), can, "{}", rig.describe());
        assert_eq!(was_cut(&rig), can);
    }
}

/// The platform says that it can cut the controller off, and fails at first: the buffer of a blocking call would
/// be its caller's again, and still the controller's.
#[test]
fn a_call_does_not_come_back_before_its_controller_is_cut_off_as_the_platform_has_promised() {
    const DEATH: u64 = 10 * SECOND;
    for failed_cuts in [0, 1, 5] {
        let options = Options {
            failed_cuts,
            ..Options::default()
        };
        let mut faults = Faults::none();
        faults.death = Some((DEATH, Death::AllOnes));
        faults.never_halts = true;
        let mut rig = Rig::faulty(options, controller::usual(), faults);
        let late = opcode(0x28).touching(100..101);
        let device = Script::new()
            .unit(LogicalUnit::stick(4096))
            .on(late, Action::Delay(60 * SECOND));
        let disk = rig.disk(HIGH_PORT, device.build());
        let alive = DEATH / MICROSECOND - rig.age().as_micros();
        rig.run(Duration::from_micros(alive - 1_000));
        let gone = rig.within(CALL_LIMIT, |rig| rig.read(disk, 100, 512));
        assert!(gone.is_err());
        let before = rig.machine.statistics(0).moved;
        rig.run(Duration::from_secs(60));
        assert_eq!(rig.machine.statistics(0).moved, before);
        let log = rig.machine.log();
        let is_told = log.iter().any(|line| line.contains("as the platform says"));
        assert_eq!(is_told, failed_cuts > 1, "{log:?}");
    }
}
