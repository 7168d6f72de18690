//! A host that sleeps until its controller calls: no wake-up is lost.

use rootport::time::Duration;
use rootport_models::device::Script;
use rootport_models::machine::{Options, Sleep};

use crate::controller::{self, Driver, Faults, Traits};
use crate::rig::{FAST_PORT, FASTEST, HIGH_PORT, POOL, Rig, disk_at};

/// A rig that sleeps until an interrupt comes, by a controller and a driver of these kinds.
pub(crate) fn sleeping((traits, driver): (Traits, Driver), seed: u64, faults: Faults) -> Rig {
    let options = Options {
        sleep: Sleep::UntilInterrupt,
        seed,
        ..Options::default()
    };
    Rig::made(options, traits, faults, POOL, driver)
}

#[test]
fn every_read_write_and_flush_ends_without_waiting_for_a_deadline() {
    for kind in controller::interrupting() {
        for seed in 1..=6 {
            let mut rig = sleeping(kind.clone(), seed, Faults::none());
            let high = rig.disk(HIGH_PORT, Script::new().build());
            let fast = rig.disk(FAST_PORT, disk_at(FASTEST).build());
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
