//! Memory goes back to its owner only when no device can reach it, whatever goes wrong and whenever.
//!
//! The models panic when a controller reaches memory that was returned; so a test here runs a whole
//! life with one thing going wrong at its n-th chance, for every n, and asks for an end in time.

use crate::rig::{HIGH_PORT, Rig};
use rootport::block::{BlockDevice, Lba};
use rootport::time::Duration;
use rootport_models::controller::xhci::{CompletionFault, Death, Faults, Traits};
use rootport_models::device::Script;
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::machine::Options;

/// Longer than any call may take: the deadlines of a command, its retry and two episodes of recovery.
const PATIENCE: Duration = Duration::from_secs(120);

/// What came of a life.
#[derive(Debug)]
struct Life {
    /// A disk was found.
    found: bool,
    /// Reads and writes that went well.
    good: usize,
}

/// A disk is found, read and written with buffers that are gone after each call.
fn live(faults: Faults) -> Life {
    let mut rig = Rig::faulty(Options::default(), Traits::default(), faults);
    let stick = Script::new().unit(LogicalUnit::stick(4096)).build();
    rig.plug(HIGH_PORT, stick);
    let found = |host: &crate::rig::ModelHost| host.first_disk().is_ok();
    let found = rig.host.poll_until(Duration::from_secs(30), found);
    let mut good = 0;
    if let (true, Ok(disk)) = (found, rig.host.first_disk()) {
        for lba in [0, 64, 128] {
            let mut buffer = rig.machine.buffer(64 * 512, 0);
            let before = rig.now();
            good += usize::from(rig.host.disk(disk).write(Lba(lba), &buffer).is_ok());
            good += usize::from(rig.host.disk(disk).read(Lba(lba), &mut buffer).is_ok());
            let took = Duration::from_micros(rig.now().as_micros() - before.as_micros());
            assert!(took < PATIENCE, "{took:?}");
        }
    }
    // Whatever still reaches for memory of the past is caught here.
    rig.run(Duration::from_secs(30));
    Life { found, good }
}

#[test]
fn a_life_without_faults_is_good() {
    let life = live(Faults::none());
    assert!(life.found);
    assert_eq!(life.good, 6);
}

#[test]
fn when_the_device_is_pulled_at_any_transaction() {
    for transaction in 0..400 {
        let mut faults = Faults::none();
        faults.unplug_at.insert(HIGH_PORT, transaction);
        live(faults);
    }
}

#[test]
fn when_any_command_of_the_controller_never_ends() {
    for command in 0..24 {
        let mut faults = Faults::none();
        faults.commands.insert(command, CompletionFault::Never);
        eprintln!("command {command}");
        let life = live(faults);
        eprintln!("command {command} {life:?}");
    }
}

#[test]
fn when_any_transfer_ends_badly_and_then_any_command_never_ends() {
    for transfer in 0..12 {
        for address in [0x81, 0x02] {
            for command in [7, 8, 9, 10, 11] {
                let mut faults = Faults::none();
                let code = CompletionFault::Code(4);
                faults.transfers.insert((address, transfer), code);
                faults.commands.insert(command, CompletionFault::Never);
                live(faults);
            }
        }
    }
}

#[test]
fn when_the_controller_dies_at_any_moment() {
    for death in [
        Death::AllOnes,
        Death::HostSystemError,
        Death::ControllerError,
        Death::Silent,
    ] {
        for step in 1..60 {
            let mut faults = Faults::none();
            faults.death = Some((step * 10_000_000, death));
            eprintln!("{death:?} {step}");
            let life = live(faults);
            eprintln!("{life:?}");
        }
    }
}
