//! Leaving: disks hold what was written, controllers reach no memory any more.

use crate::controller::{self, Death, Faults};
use crate::rig::{HIGH_PORT, ModelHost, Rig};
use rootport::block::queue::Operation;
use rootport::block::{BlockDevice, BlockError, Lba};
use rootport::dma::DmaBuffer;
use rootport::platform::Platform;
use rootport::stack::{DiskState, Leaving, Parting};
use rootport::time::Duration;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::{CacheLoss, LogicalUnit, Scripted, Sense};
use rootport_models::device::{SECOND, Script};
use rootport_models::machine::Options;

const PATIENCE: Duration = Duration::from_secs(2);
const GOOD: Leaving = Leaving {
    unflushed: None,
    quiet: true,
};

fn caching_stick() -> Script {
    Script::new().unit(LogicalUnit::stick(4096).write_cache(CacheLoss::PowerCycle))
}

#[test]
fn a_dirty_disk_is_flushed_on_the_way_out() {
    let mut rig = Rig::default();
    let stick = caching_stick().build();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    let buffer = rig.machine.buffer(512, 0);
    rig.host.disk(disk).write(Lba(9), &buffer).unwrap();
    assert_eq!(rig.host.shutdown(Parting::Flush, PATIENCE), GOOD);
    assert_eq!(stick.count(0x35), 1);
    assert_eq!(
        stick.count(0x1b),
        0,
        "nobody asked for the disk to be stopped"
    );
}

#[test]
fn a_clean_disk_is_left_alone() {
    let mut rig = Rig::default();
    let stick = caching_stick().build();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    rig.read(disk, 0, 512).unwrap();
    assert_eq!(rig.host.shutdown(Parting::Flush, PATIENCE), GOOD);
    assert_eq!(stick.count(0x35), 0);
}

#[test]
fn disks_are_spun_down_for_a_machine_that_is_switched_off() {
    let mut rig = Rig::default();
    let stick = caching_stick().build();
    rig.disk(HIGH_PORT, stick.clone());
    assert_eq!(rig.host.shutdown(Parting::FlushAndStop, PATIENCE), GOOD);
    assert_eq!(stick.count(0x1b), 1);
}

#[test]
fn the_pool_is_nobody_s_after_that() {
    let mut rig = Rig::default();
    rig.disk(HIGH_PORT, caching_stick().build());
    assert_eq!(rig.host.shutdown(Parting::Flush, PATIENCE), GOOD);
    assert_eq!(rig.host.pool_usage().used, 0);
    // A device that is plugged in now reaches a controller that does not run.
    rig.plug(HIGH_PORT + 1, caching_stick().build());
    rig.machine.advance(1_000_000_000);
}

#[test]
fn a_controller_that_may_still_reach_memory_is_told_of_also_when_nothing_was_plugged_in() {
    for (can_cut_dma, quiet) in [(false, false), (true, true)] {
        let mut faults = Faults::none();
        faults.death = Some((3 * SECOND, Death::AllOnes));
        let options = Options {
            can_cut_dma,
            ..Options::default()
        };
        let mut rig = Rig::faulty(options, controller::usual(), faults);
        rig.run(Duration::from_secs(5));
        let leaving = rig.host.shutdown(Parting::Flush, PATIENCE);
        assert_eq!(leaving.quiet, quiet, "DMA can be cut: {can_cut_dma}");
    }
}

#[test]
fn a_disk_that_fails_its_flush_is_named() {
    let mut rig = Rig::default();
    let failing = LogicalUnit::stick(4096).script(0x35, Scripted::Fail(Sense::UNDER_POWERED));
    let stick = Script::new().unit(failing);
    let disk = rig.disk(HIGH_PORT, stick.build());
    let buffer = rig.machine.buffer(512, 0);
    rig.host.disk(disk).write(Lba(9), &buffer).unwrap();
    let leaving = rig.host.shutdown(Parting::Flush, PATIENCE);
    assert!(leaving.quiet);
    assert_eq!(leaving.unflushed.map(|(id, _)| id), Some(disk));
}

/// Takes one write into its cache, hangs in the second until the bus is reset, and forgets both.
fn forgetful_stick() -> Script {
    let unit = LogicalUnit::stick(4096).write_cache(CacheLoss::BusReset);
    let hangs = Action::Hang(Until::BusReset);
    Script::new()
        .unit(unit)
        .on(opcode(0x2a).after(1).once(), hangs)
}

#[test]
fn a_loss_that_nobody_was_told_of_is_told_on_the_way_out() {
    let mut rig = Rig::default();
    let disk = rig.disk(HIGH_PORT, forgetful_stick().build());
    let buffer = rig.machine.buffer(512, 0);
    rig.host.disk(disk).write(Lba(9), &buffer).unwrap();
    rig.host.disk(disk).write(Lba(10), &buffer).unwrap();
    let leaving = rig.host.shutdown(Parting::Flush, PATIENCE);
    let lost = (disk, BlockError::WritesMayBeLost);
    assert_eq!(leaving.unflushed, Some(lost));
}

#[test]
fn a_disk_that_is_being_reset_is_named_if_it_held_writes() {
    let mut rig = Rig::default();
    let disk = rig.disk(HIGH_PORT, forgetful_stick().build());
    let buffer = rig.machine.buffer(512, 0);
    rig.host.disk(disk).write(Lba(9), &buffer).unwrap();
    let hangs = DmaBuffer::from_static(vec![0; 512].leak());
    let operation = Operation::Write(Lba(10));
    rig.host.submit(disk, operation, Some(hangs)).unwrap();
    // It is listed all the while, but cannot be used now.
    let is_away = |host: &ModelHost| {
        let first = host.disks().next().expect("it is listed");
        first.state == DiskState::NotReady && first.inquiry.is_some()
    };
    assert!(rig.host.poll_until(Duration::from_secs(60), is_away));
    let leaving = rig.host.shutdown(Parting::Flush, PATIENCE);
    assert_eq!(leaving.unflushed.map(|(id, _)| id), Some(disk));
}

/// Whether the data of a long write arrives, of which the controller has everything it needs when
/// `meanwhile` is called with it.
fn arrives(meanwhile: impl FnOnce(&mut Rig)) -> bool {
    const BLOCKS: usize = 240;
    let mut rig = Rig::default();
    let stick = caching_stick().build();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    let buffer = DmaBuffer::from_static(vec![0x55; BLOCKS * 512].leak());
    let write = Operation::Write(Lba(8));
    rig.host.submit(disk, write, Some(buffer)).unwrap();
    while stick.count(0x2a) == 0 {
        rig.host.poll();
        rig.machine.advance(10_000);
    }
    // The wrapper has arrived: the data is queued.
    rig.host.poll();
    meanwhile(&mut rig);
    rig.machine.advance(1_000_000_000);
    stick.block(8 + BLOCKS as u64 - 1) == [0x55; 512]
}

#[test]
fn a_brake_stops_the_controller_in_the_middle_of_a_write_and_without_the_host() {
    assert!(
        arrives(|_| {}),
        "no brake, and the host is not asked either"
    );
    let pull = |rig: &mut Rig| {
        let (id, ..) = rig.host.bus().controllers().next().expect("there is one");
        let driver = rig.host.controller_mut(id).expect("it is there");
        let brake = driver.emergency_stop();
        let begin = rig.now();
        assert!(brake.stop(|| rig.host.platform().now()));
        assert!(rig.now() - begin < Duration::from_millis(100));
    };
    assert!(!arrives(pull));
}
