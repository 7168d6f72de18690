//! A host that sleeps until its controller calls: no wake-up is lost, and where the hardware loses
//! one, a deadline is the net.

use crate::rig::{CALL_LIMIT, HIGH_PORT, POOL, Rig, SUPER_PORT};
use rootport::host::xhci::{Interrupts, Options as XhciOptions};
use rootport::time::Duration;
use rootport_models::controller::xhci::{Faults, Signal, Traits};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Link, Script};
use rootport_models::machine::{Options, Sleep};

fn sleeping(interrupts: Interrupts, signal: Signal, seed: u64, lost: u64) -> Rig {
    let options = Options {
        sleep: Sleep::UntilInterrupt,
        seed,
        ..Options::default()
    };
    let traits = Traits {
        signal,
        ..Traits::default()
    };
    let mut faults = Faults::none();
    faults.lost_interrupts = lost;
    let driver = XhciOptions {
        interrupts,
        ..XhciOptions::default()
    };
    Rig::made(options, traits, faults, POOL, driver)
}

const KINDS: [(Interrupts, Signal); 2] = [
    (Interrupts::Wired, Signal::Wired),
    (Interrupts::Message, Signal::Message),
];

#[test]
fn every_read_write_and_flush_ends_without_waiting_for_a_deadline() {
    for (interrupts, signal) in KINDS {
        for seed in 1..=6 {
            let mut rig = sleeping(interrupts, signal, seed, 0);
            let high = rig.disk(HIGH_PORT, Script::new().build());
            let fast = Script::new()
                .speed(Link::Super)
                .unit(LogicalUnit::disk(65536, 512));
            let fast = rig.disk(SUPER_PORT, fast.build());
            assert!(rig.age() < Duration::from_secs(2), "{:?}", rig.age());
            for lba in 0..20 {
                for disk in [high, fast] {
                    rig.within(Duration::from_millis(100), |rig| {
                        rig.check(disk, lba, 1 + lba % 7)
                    });
                    let write = |rig: &mut Rig| rig.write(disk, 500 + lba, &[9; 512]);
                    rig.within(Duration::from_millis(100), write).unwrap();
                }
            }
            rig.within(Duration::from_millis(100), |rig| rig.flush(high))
                .unwrap();
            assert!(rig.machine.statistics(0).interrupts > 80);
        }
    }
}

/// A wire holds its level until it is answered: only messages get lost.
#[test]
fn a_lost_message_costs_time_and_nothing_else() {
    for lost in 1..=5 {
        let mut rig = sleeping(Interrupts::Message, Signal::Message, lost, lost);
        let device = Script::new().build();
        let disk = rig.disk(HIGH_PORT, device.clone());
        for lba in 0..10 {
            rig.within(CALL_LIMIT, |rig| rig.check(disk, lba, 3));
        }
        // What had ended when its deadline came has not timed out.
        assert_eq!(device.bus_resets().len(), 1, "{lost} lost");
    }
}
