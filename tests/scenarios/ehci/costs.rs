//! Accesses to the controller's registers that a request costs. The figures are printed
//! (`cargo test … -- --nocapture`); what the bus carries is in `tests/throughput`.

use rootport::policy::{Policy, Queueing};
use rootport::time::Duration;
use rootport_models::device::field::good_stick;
use rootport_models::device::{Link, UasScript, UsbDevice};
use rootport_models::machine::Options;

use super::{Driver, Faults, Traits, interrupting, usual};
use crate::rig::{HIGH_PORT, POOL, Rig};

fn rig((traits, driver): (Traits, Driver), queueing: Queueing) -> Rig {
    let mut rig = Rig::made(Options::default(), traits, Faults::none(), POOL, driver);
    rig.host.set_policy(Policy {
        queueing,
        ..Policy::DEFAULT
    });
    rig
}

/// Register reads and writes of so many reads, after some that are not counted.
fn accesses(rig: &mut Rig, device: impl UsbDevice + 'static, count: u64) -> (u64, u64) {
    let disk = rig.disk(HIGH_PORT, device);
    for lba in 0..10 {
        rig.check(disk, lba, 8);
    }
    let before = rig.machine.statistics(0);
    let ((), took) = rig.timed(|rig| {
        for lba in 0..count {
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
        let (reads, writes) = accesses(&mut rig, good_stick(), 100);
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
        let (reads, writes) = accesses(&mut rig, good_stick(), 100);
        println!("100 reads of 4 KiB, interrupts: {reads} reads, {writes} writes");
        assert!(
            reads <= 101 && writes <= 100,
            "{reads} reads, {writes} writes"
        );
    }
}

#[test]
fn a_uas_command_without_streams_has_an_interrupt_for_its_readiness_and_one_for_its_status() {
    for kind in interrupting() {
        let mut rig = rig(kind, Queueing::Eager);
        let device = UasScript::new().speed(Link::High).build();
        let (reads, writes) = accesses(&mut rig, device, 80);
        println!("80 reads of 4 KiB over UAS, interrupts: {reads} reads, {writes} writes");
        assert!(
            reads <= 161 && writes <= 160,
            "{reads} reads, {writes} writes"
        );
    }
}
