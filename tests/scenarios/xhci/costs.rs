//! Accesses to the controller's registers that a request costs. The figures are printed
//! (`cargo test … -- --nocapture`); what the bus carries is in `tests/throughput`.

use rootport::block::queue::{DiskId, Operation};
use rootport::block::{BlockDevice, Lba};
use rootport::host::xhci::Silicon;
use rootport::policy::{Policy, Queueing};
use rootport_models::controller::xhci::Signal;
use rootport_models::device::UasScript;
use rootport_models::device::field::good_stick;
use rootport_models::machine::Options;

use super::{Driver, Faults, Interrupts, Traits, interrupting_by, usual};
use crate::rig::{FAST_PORT, FASTEST, HIGH_PORT, POOL, Rig};
use crate::scenarios::uas::submit;

/// Register reads and writes of a hundred reads, after some that are not counted.
fn accesses(kind: (Traits, Driver), queueing: Queueing) -> (u64, u64) {
    accesses_of("reads", kind, queueing, |rig, disk, lba| {
        rig.check(disk, lba, 8)
    })
}

/// The same of a hundred requests of 4 KiB.
fn accesses_of(
    what: &str,
    (traits, driver): (Traits, Driver),
    queueing: Queueing,
    request: fn(&mut Rig, DiskId, u64),
) -> (u64, u64) {
    let mut rig = Rig::made(Options::default(), traits, Faults::none(), POOL, driver);
    rig.host.set_policy(Policy {
        queueing,
        ..Policy::DEFAULT
    });
    let disk = rig.disk(HIGH_PORT, good_stick());
    for lba in 0..10 {
        request(&mut rig, disk, lba);
    }
    let before = rig.machine.statistics(0);
    for lba in 0..100 {
        request(&mut rig, disk, lba * 8);
    }
    let after = rig.machine.statistics(0);
    println!(
        "100 {what} of 4 KiB, {:?}, {queueing:?}: {} reads, {} writes, {} interrupts",
        driver.interrupts,
        after.reads - before.reads,
        after.writes - before.writes,
        after.interrupts - before.interrupts,
    );
    (after.reads - before.reads, after.writes - before.writes)
}

#[test]
fn an_interrupt_costs_two_doorbells_and_the_two_halves_of_one_acknowledgement() {
    let kind = interrupting_by((Interrupts::Message, Signal::Message));
    assert_eq!(accesses(kind, Queueing::Eager), (0, 400));
}

/// QEMU's controller, which takes the low half of the event ring's pointer alone. Another that got no more
/// than that would wait for the other half, and the model would break the run.
#[test]
fn the_acknowledgement_is_one_write_where_its_low_half_counts_alone() {
    let (traits, driver) = interrupting_by((Interrupts::Message, Signal::Message));
    let traits = Traits {
        erdp_by_low_half: true,
        ..traits
    };
    let (vendor, device) = (0x1b36, 0x000d);
    let driver = Driver {
        silicon: Silicon::Pci { vendor, device },
        ..driver
    };
    assert_eq!(accesses((traits, driver), Queueing::Eager), (0, 300));
}

/// Its pin is let go by USBSTS, which is read first, and by IMAN.
#[test]
fn a_wired_interrupt_costs_a_read_and_two_writes_more() {
    let kind = interrupting_by((Interrupts::Wired, Signal::Wired));
    assert_eq!(accesses(kind, Queueing::Eager), (100, 600));
}

/// The library's own choice, which every device is used to; the boards take `Queueing::Eager`.
#[test]
fn to_wait_for_the_command_s_end_costs_another_acknowledgement() {
    let kind = interrupting_by((Interrupts::Message, Signal::Message));
    assert_eq!(accesses(kind, Queueing::AfterCommand), (0, 600));
}

/// The event ring is told of what was taken now and then, so that it never fills.
#[test]
fn polling_costs_two_doorbells() {
    let (reads, writes) = accesses((usual(), Driver::default()), Queueing::Eager);
    assert_eq!(reads, 0);
    assert!((200..=206).contains(&writes), "{writes} writes");
}

/// The wrapper and the data of a write share a pipe, and a doorbell.
#[test]
fn a_write_costs_two_doorbells_as_a_read_does() {
    let write = |rig: &mut Rig, disk, lba| {
        let written = rig.host.disk(disk).write(Lba(lba), &[0x5a; 8 * 512]);
        assert_eq!(written, Ok(()));
    };
    let kind = (usual(), Driver::default());
    let (reads, writes) = accesses_of("writes", kind, Queueing::Eager, write);
    assert_eq!(reads, 0);
    // Twice as many events as of reads, of which the controller is told now and then.
    assert!((200..=212).contains(&writes), "{writes} writes");
}

/// Status and data have a stream and a doorbell each; the commands of five requests share a pipe, and two
/// doorbells: the first is told of at once, and the rest by the next poll.
#[test]
fn commands_that_are_submitted_together_share_doorbells() {
    let mut rig = Rig::default();
    let disk = rig.disk(FAST_PORT, UasScript::new().speed(FASTEST).build());
    let before = rig.machine.statistics(0).writes;
    for lba in 0..5 {
        submit(&mut rig, disk, Operation::Read(Lba(lba * 8)), 0);
    }
    let submitted = rig.machine.statistics(0).writes - before;
    assert_eq!(submitted, 5 + 5 + 1);
    rig.host.poll();
    assert_eq!(rig.machine.statistics(0).writes - before, submitted + 1);
}

/// There is nothing to wait for: no command can follow.
#[test]
fn the_last_command_that_a_disk_takes_is_told_of_at_once_with_all_before_it() {
    let mut rig = Rig::default();
    let disk = rig.disk(FAST_PORT, UasScript::new().speed(FASTEST).build());
    let depth = u64::from(rig.host.uas(disk).expect("it is used over UAS").depth);
    let before = rig.machine.statistics(0).writes;
    for lba in 0..depth {
        submit(&mut rig, disk, Operation::Read(Lba(lba * 8)), 0);
    }
    assert_eq!(rig.machine.statistics(0).writes - before, 2 * depth + 2);
}
