//! Leaving: disks hold what was written, controllers reach no memory any more.

use crate::controller::{self, Death, Faults, LINKS};
use crate::rig::{FAST_PORT, FASTEST, HIGH_PORT, ModelHost, OTHER_PORT, Rig, port_for};
use rootport::block::queue::Operation;
use rootport::block::{BlockDevice, BlockError, Lba};
use rootport::dma::DmaBuffer;
use rootport::platform::Platform;
use rootport::policy::Policy;
use rootport::stack::{DiskState, Leaving, Parting};
use rootport::time::Duration;
use rootport_models::adapter::owned;
use rootport_models::device::base::{Answer, Request};
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::{CacheLoss, LogicalUnit, Scripted, Sense};
use rootport_models::device::{BothScript, Link, SECOND, Script};
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
fn a_dirty_disk_that_is_pulled_while_another_one_is_stopped_is_named() {
    for parting in [Parting::Flush, Parting::FlushAndStop] {
        let mut rig = Rig::default();
        let slow = opcode(0x35).once();
        let first = caching_stick().on(slow, Action::Delay(2 * SECOND)).build();
        let disk = rig.disk(HIGH_PORT, first.clone());
        rig.write(disk, 5, &[0x3c; 512]).unwrap();
        // It goes four seconds after it came, a second after the flush of the first has begun.
        let goes = caching_stick().appears(4 * SECOND, None).build();
        let second = rig.disk(OTHER_PORT, goes);
        rig.write(second, 7, &[0x3d; 512]).unwrap();
        rig.run(Duration::from_millis(2700));
        let leaving = rig.host.shutdown(parting, PATIENCE);
        let why = Some((second, BlockError::Disconnected));
        assert_eq!((leaving.unflushed, leaving.quiet), (why, true));
        assert_eq!(first.durable_block(5), [0x3c; 512]);
    }
}

/// Its first disk is clean when its turn comes, and is written to while the second is flushed.
#[test]
fn a_write_that_waits_for_its_turn_on_the_way_out_is_flushed_too() {
    for parting in [Parting::Flush, Parting::FlushAndStop] {
        let mut rig = Rig::default();
        let slow = Action::Delay(SECOND);
        let first = caching_stick().on(opcode(0x28).after(1).times(1), slow);
        // It does not know how to stop.
        let first = first.on(opcode(0x1b), Action::Fail(Sense::UNKNOWN_COMMAND));
        let first = first.build();
        let disk = rig.disk(HIGH_PORT, first.clone());
        let slow = Action::Delay(3 * SECOND);
        let second = caching_stick().on(opcode(0x35).once(), slow).build();
        let other = rig.disk(OTHER_PORT, second.clone());
        rig.write(other, 7, &[0x3d; 512]).unwrap();
        let mut buffers = [512, 512].map(|length| rig.machine.buffer(length, 0));
        buffers[1].fill(0x3c);
        let [read, write] = &mut buffers;
        let requests = [
            (Operation::Read(Lba(100)), owned(read)),
            (Operation::Write(Lba(5)), owned(write)),
        ];
        for (operation, buffer) in requests {
            let submitted = rig.host.submit(disk, operation, Some(buffer));
            assert!(submitted.is_ok(), "there is room");
        }
        let leaving = rig.host.shutdown(parting, PATIENCE);
        assert_eq!(leaving, GOOD, "{parting:?}");
        assert_eq!(first.durable_block(5), [0x3c; 512], "{parting:?}");
        assert_eq!(second.durable_block(7), [0x3d; 512]);
    }
}

/// Its place in the table is another disk's by then, which has nothing to be flushed.
#[test]
fn a_dirty_disk_that_is_replaced_while_another_one_is_flushed_is_named() {
    let mut rig = Rig::default();
    let slow = opcode(0x35).once();
    let first = caching_stick().on(slow, Action::Delay(10 * SECOND)).build();
    let disk = rig.disk(HIGH_PORT, first.clone());
    rig.write(disk, 5, &[0x3c; 512]).unwrap();
    // It goes four seconds after it came, and comes back a second later.
    let goes = caching_stick().appears(4 * SECOND, None);
    let goes = goes.appears(5 * SECOND, Some(Link::High));
    let second = rig.disk(OTHER_PORT, goes.build());
    rig.write(second, 7, &[0x3d; 512]).unwrap();
    rig.run(Duration::from_millis(2700));
    let leaving = rig.host.shutdown(Parting::Flush, PATIENCE);
    let why = Some((second, BlockError::Disconnected));
    assert_eq!((leaving.unflushed, leaving.quiet), (why, true));
    assert_eq!(first.durable_block(5), [0x3c; 512]);
}

/// It does not come back any more, and nobody waits for it.
#[test]
fn what_waits_for_a_disk_that_is_away_ends_when_the_host_stops() {
    let mut rig = Rig::default();
    rig.host.set_policy(Policy {
        read_write: Duration::from_secs(2),
        ..Policy::DEFAULT
    });
    let hangs = Action::Hang(Until::PowerCycle);
    let device = caching_stick().on(opcode(0x28).after(1), hangs).build();
    let disk = rig.disk(HIGH_PORT, device.clone());
    // It is deaf behind the reset of its port.
    device.change(|device| device.recovery.after_reset = 60 * SECOND);
    let buffer = owned(&mut rig.machine.buffer(512, 0));
    let read = rig.host.submit(disk, Operation::Read(Lba(9)), Some(buffer));
    assert!(read.is_ok(), "there is room");
    rig.run(Duration::from_millis(3500));
    assert!(rig.host.take_completion().is_none(), "it waits");
    assert!(rig.host.stop(PATIENCE));
    let completion = rig.host.take_completion().expect("its disk is gone");
    assert_eq!(completion.result, Err(BlockError::Disconnected));
    assert!(completion.buffer.is_some());
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

/// Whoever comes next and resets no port expects the first setting.
#[test]
fn a_bridge_that_speaks_uas_is_left_in_its_first_setting_behind_its_flush() {
    for &link in LINKS {
        let mut rig = Rig::default();
        let bridge = BothScript::new().speed(link).build();
        let disk = rig.disk(port_for(link), bridge.clone());
        rig.write(disk, 9, &[7; 512]).unwrap();
        assert_eq!(bridge.settings(), [1], "{link:?}");
        assert_eq!(rig.host.shutdown(Parting::Flush, PATIENCE), GOOD);
        assert_eq!(bridge.settings(), [1, 0], "{link:?}");
        assert_eq!(bridge.durable_block(9), [7; 512]);
        assert_eq!(rig.host.pool_usage().used, 0);
    }
}

#[test]
fn bridges_that_do_not_go_back_to_their_first_setting_cost_half_a_second_in_all() {
    const FIRST_SETTING: Request = Request {
        value: Some(0),
        ..Request::SET_INTERFACE
    };
    for answer in [Answer::Silent, Answer::Stall] {
        let mut rig = Rig::default();
        for port in [HIGH_PORT, OTHER_PORT] {
            let stubborn = BothScript::new().control(FIRST_SETTING, answer.clone());
            rig.disk(port, stubborn.build());
        }
        let limit = PATIENCE + Duration::from_millis(600);
        let leaving = rig.within(limit, |rig| rig.host.shutdown(Parting::Flush, PATIENCE));
        assert_eq!(leaving, GOOD);
    }
}

/// As `Host::shutdown` says: a flush's deadline, an episode of recovery and a readiness for each disk, half a
/// second for settings, and what the controllers were given.
#[test]
fn a_shutdown_with_disks_that_hang_in_their_flush_ends_within_what_is_said() {
    for until in [Until::BusReset, Until::PowerCycle] {
        for ports in [&[HIGH_PORT][..], &[HIGH_PORT, OTHER_PORT, FAST_PORT]] {
            let mut rig = Rig::default();
            for &port in ports {
                let link = if port == FAST_PORT {
                    FASTEST
                } else {
                    Link::High
                };
                let unit = LogicalUnit::disk(4096, 512).write_cache(CacheLoss::PowerCycle);
                let script = Script::new().speed(link).unit(unit);
                let disk = rig.disk(port, script.on(opcode(0x35), Action::Hang(until)).build());
                rig.write(disk, 9, &[7; 512]).unwrap();
            }
            let each = Duration::from_secs(60 + 20 + 20);
            let disks = (0..ports.len()).fold(Duration::ZERO, |sum, _| sum + each);
            let limit = disks + Duration::from_millis(500) + PATIENCE;
            let leaving = rig.within(limit, |rig| rig.host.shutdown(Parting::Flush, PATIENCE));
            assert!(leaving.unflushed.is_some() && leaving.quiet);
        }
    }
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

/// The disk's own user was told of the loss by its flush; the other one would have been by its next.
#[test]
fn a_loss_of_which_a_holder_was_not_told_yet_is_named_on_the_way_out() {
    for is_there in [true, false] {
        let mut rig = Rig::default();
        let reset = Action::Fail(Sense::new(0x06, 0x29, 0x00));
        let disk = caching_stick().on(opcode(0x28).touching(100..101).once(), reset);
        let disk = rig.disk(HIGH_PORT, disk.build());
        let holder = rig.host.add_holder(disk).unwrap();
        rig.write(disk, 5, &[0x3c; 512]).unwrap();
        rig.read(disk, 100, 512).unwrap();
        assert_eq!(rig.flush(disk), Err(BlockError::WritesMayBeLost));
        if !is_there {
            rig.host.remove_holder(holder);
        }
        let leaving = rig.host.shutdown(Parting::Flush, PATIENCE);
        let lost = is_there.then_some((disk, BlockError::WritesMayBeLost));
        assert_eq!((leaving.unflushed, leaving.quiet), (lost, true));
    }
}
