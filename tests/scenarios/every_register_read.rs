//! The way to a controller's registers breaks at the n-th read, for every n of a whole life: probe, start,
//! enumeration, reading, recovery, shutdown. From then on every read gives ones, as behind a link that has
//! gone, or zeros, as in a block that has lost its clock; writes reach nothing, and the controller works on in
//! memory as it was told before. All calls end in time, and no memory is given back that the controller may
//! still reach: the models panic when it does.

use rootport::block::{BlockDevice, BlockError, Lba};
use rootport::policy::Policy;
use rootport::stack::{Leaving, Parting};
use rootport::time::Duration;
use rootport_models::adapter::owned;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::field::good_stick;
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Disk, Script};
use rootport_models::machine::{Machine, Options};

use crate::controller::{self, Driver, Faults};
use crate::rig::{CALL_LIMIT, HIGH_PORT, ModelHost, OTHER_PORT, POOL, Rig};

/// A disk is found in this time or not at all: a start, and three attempts on the port, each with a few
/// commands that the controller may leave unanswered for ten seconds.
const FOUND_LIMIT: Duration = Duration::from_secs(150);

/// A call may meet a controller that ends no command: the episode, and the time until it is given up.
const PATIENCE: Duration = Duration::from_secs(90);

/// When reads break, and what they give then.
#[derive(Clone, Copy, Debug)]
struct Break {
    after: u64,
    reads_as: u32,
    can_cut_dma: bool,
}

/// A disk that falls silent once, and hangs once until its port is reset.
fn stick() -> Disk {
    Script::new()
        .unit(LogicalUnit::stick(4096))
        .on(opcode(0x28).after(2).once(), Action::SilentData(3))
        .on(opcode(0x28).after(4).once(), Action::Hang(Until::BusReset))
        .build()
}

/// How a life ended.
#[derive(Debug)]
struct Life {
    /// How each call has ended, if a disk was found.
    results: Vec<Result<(), BlockError>>,
    leaving: Option<Leaving>,
    /// How many register reads there were.
    reads: u64,
}

impl Life {
    fn is_good(&self) -> bool {
        let left_well = self.leaving
            == Some(Leaving {
                unflushed: None,
                quiet: true,
            });
        left_well && self.results.len() == 7 && self.results.iter().all(Result::is_ok)
    }
}

fn live(at: Break) -> Life {
    let machine = Machine::new(Options {
        seed: at.after + 1,
        coherent: at.after % 4 < 2,
        can_cut_dma: at.can_cut_dma,
        ..Options::default()
    });
    let index = controller::add(&machine, controller::usual(), Faults::none());
    machine.lose_registers(index, at.after, at.reads_as);
    machine.plug(index, HIGH_PORT, stick());
    let mut staging = machine.buffer(8 * 512, 0);
    let (mut results, mut leaving) = (Vec::new(), None);
    if let Ok(mut rig) = Rig::try_on(machine.clone(), index, POOL, Driver::default()) {
        rig.host.set_staging(owned(&mut staging));
        work(&mut rig, &mut results);
        leaving = Some(leave(&mut rig, at));
    }
    let reads = machine.statistics(index).reads;
    Life {
        results,
        leaving,
        reads,
    }
}

/// Finds the disk, and reads, writes and flushes it.
fn work(rig: &mut Rig, results: &mut Vec<Result<(), BlockError>>) {
    let is_found = |host: &ModelHost| host.first_disk().is_ok();
    rig.host.poll_until(FOUND_LIMIT, is_found);
    let Ok(disk) = rig.host.first_disk() else {
        return;
    };
    let mut buffer = rig.machine.buffer(8 * 512, 0);
    let write = |rig: &mut Rig| rig.host.disk(disk).write(Lba(7), &buffer);
    results.push(rig.within(PATIENCE, write));
    let flush = Policy::DEFAULT.flush + PATIENCE;
    results.push(rig.within(flush, |rig| rig.flush(disk)));
    for lba in [7, 64, 128, 192, 256] {
        let read = |rig: &mut Rig| rig.host.disk(disk).read(Lba(lba), &mut buffer);
        results.push(rig.within(PATIENCE, read));
        // Of the next read the buffer is another one.
        buffer = rig.machine.buffer(8 * 512, 3 * lba as usize);
    }
    // What still reaches for the buffers of the past does it now.
    rig.run(Duration::from_secs(5));
}

fn leave(rig: &mut Rig, at: Break) -> Leaving {
    let limit = Policy::DEFAULT.flush + CALL_LIMIT;
    let leaving = rig.within(limit, |rig| {
        rig.host.shutdown(Parting::Flush, Duration::from_secs(5))
    });
    assert!(
        leaving.quiet || !at.can_cut_dma,
        "{at:?}: {}",
        rig.describe()
    );
    if leaving.quiet {
        leaves_memory_alone(rig, at);
    } else {
        rig.run(Duration::from_secs(30));
    }
    leaving
}

/// The memory is said to be free: the controller moves nothing there or back, also when something is
/// plugged in.
fn leaves_memory_alone(rig: &Rig, at: Break) {
    let before = rig.machine.statistics(0).moved;
    rig.plug(OTHER_PORT, good_stick());
    rig.machine.advance(1_000_000_000);
    let after = rig.machine.statistics(0).moved;
    assert_eq!(before, after, "{at:?}: {}", rig.describe());
}

/// Lives with a break at every read up to the first that comes after the end; of those of a long life, which
/// are much the same, at some.
fn break_at_every_read(reads_as: u32) -> u64 {
    let breaks = std::iter::successors(Some(0_u64), |after| Some(after + 1 + after / 150 * 15));
    for after in breaks {
        let at = Break {
            after,
            reads_as,
            can_cut_dma: after % 2 == 0,
        };
        let life = live(at);
        if life.reads <= after {
            assert!(life.is_good(), "nothing was broken: {life:?}");
            return after;
        }
    }
    0
}

#[test]
fn registers_that_read_as_ones_from_any_moment_on_cost_no_memory_and_no_time() {
    assert!(break_at_every_read(u32::MAX) > 50);
}

#[test]
fn registers_that_read_as_zeros_from_any_moment_on_cost_no_memory_and_no_time() {
    assert!(break_at_every_read(0) > 50);
}
