//! A host that sleeps until its controller calls: no wake-up is lost.

use rootport::block::Lba;
use rootport::block::queue::Operation;
use rootport::dma::DmaBuffer;
use rootport::time::Duration;
use rootport_models::device::{MICROSECOND, Script};
use rootport_models::machine::{Options, Sleep};

use crate::controller::{self, Driver, Faults, Traits};
use crate::rig::{FAST_PORT, FASTEST, HIGH_PORT, OTHER_PORT, POOL, Rig, disk_at};

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

/// One event comes while another is taken: what is seen, acknowledged and slept through must fit.
#[test]
fn a_read_that_ends_at_any_distance_from_another_disk_s_is_noticed_at_once() {
    for kind in controller::interrupting() {
        let mut rig = sleeping(kind, 1, Faults::none());
        let disks = [HIGH_PORT, OTHER_PORT].map(|port| rig.disk(port, Script::new().build()));
        for step in 0..400 {
            let [queued, blocking] = [disks[step % 2], disks[(step + 1) % 2]];
            let buffer = Some(DmaBuffer::from_static(vec![0; 512].leak()));
            let read = Operation::Read(Lba(3));
            rig.host
                .submit(queued, read, buffer)
                .expect("there is room");
            rig.host.poll();
            rig.machine.advance(step as u64 * MICROSECOND / 4);
            rig.within(Duration::from_millis(10), |rig| rig.check(blocking, 5, 1));
            rig.run(Duration::from_millis(1));
            let completion = rig.host.take_completion().expect("it has ended");
            assert_eq!(completion.result, Ok(()), "step {step}");
        }
    }
}
