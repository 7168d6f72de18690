//! What a request costs on a bus with the timing of high speed: bytes a second, and accesses to the
//! controller's registers. The figures are printed (`cargo test … -- --nocapture`).

use rootport::policy::{Policy, Queueing};
use rootport::time::Duration;
use rootport_models::device::field::good_stick;
use rootport_models::machine::Options;

use super::{Driver, Faults, Traits, interrupting, usual};
use crate::rig::{HIGH_PORT, POOL, Rig};

/// Thirteen bulk packets of 512 bytes in each microframe (USB 2.0 §5.8.4), in bytes a second.
const MOST: u64 = 13 * 512 * 8_000;

fn rig((traits, driver): (Traits, Driver), queueing: Queueing) -> Rig {
    let mut rig = Rig::made(Options::default(), traits, Faults::none(), POOL, driver);
    rig.host.set_policy(Policy {
        queueing,
        ..Policy::DEFAULT
    });
    rig
}

/// Policy: 85 % of the bus; the rest is the wrappers, the status, and the host between them.
#[test]
fn sequential_reads_of_120_kib_take_85_percent_of_the_bus() {
    for queueing in [Queueing::AfterCommand, Queueing::Eager] {
        let mut rig = rig((usual(), Driver::default()), queueing);
        let disk = rig.disk(HIGH_PORT, good_stick());
        let bytes = 120 * 1024;
        let ((), took) = rig.timed(|rig| {
            for round in 0..50 {
                rig.read(disk, round * 240, bytes).unwrap();
            }
        });
        let rate = 50 * bytes as u64 * 1_000_000 / took.as_micros();
        println!(
            "120 KiB reads, {queueing:?}: {:.1} of {:.3} MB/s",
            rate as f64 / 1e6,
            MOST as f64 / 1e6
        );
        assert!(
            rate * 100 >= MOST * 85,
            "{queueing:?}: {rate} bytes a second"
        );
    }
}

/// Register reads and writes of a hundred reads, after some that are not counted.
fn accesses(rig: &mut Rig) -> (u64, u64) {
    let disk = rig.disk(HIGH_PORT, good_stick());
    for lba in 0..10 {
        rig.check(disk, lba, 8);
    }
    let before = rig.machine.statistics(0);
    let ((), took) = rig.timed(|rig| {
        for lba in 0..100 {
            rig.check(disk, lba * 8, 8);
        }
    });
    // The status register is looked at each 100 ms, whatever is read.
    assert!(took < Duration::from_millis(100), "{took:?}");
    let after = rig.machine.statistics(0);
    (after.reads - before.reads, after.writes - before.writes)
}

#[test]
fn polling_memory_touches_no_register() {
    for queueing in [Queueing::AfterCommand, Queueing::Eager] {
        let mut rig = rig((usual(), Driver::default()), queueing);
        let (reads, writes) = accesses(&mut rig);
        println!("100 reads of 4 KiB, polling, {queueing:?}: {reads} reads, {writes} writes");
        assert!(
            reads <= 1,
            "{reads} reads: a look at the status register at most"
        );
        assert_eq!(writes, 0);
    }
}

#[test]
fn an_interrupt_costs_a_read_and_a_write_and_there_is_one_a_command() {
    for kind in interrupting() {
        let mut rig = rig(kind, Queueing::Eager);
        let (reads, writes) = accesses(&mut rig);
        println!("100 reads of 4 KiB, interrupts: {reads} reads, {writes} writes");
        assert!(
            reads <= 101 && writes <= 100,
            "{reads} reads, {writes} writes"
        );
    }
}
