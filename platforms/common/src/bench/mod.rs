//! What the stack costs: a fixed list of loads on the first disk, each between two console lines.
//!
//! Who calls it: a board's `main`, with a host that has its controllers added but not started, in
//! [`Mode::Bench`](crate::demo::options::Mode::Bench). The lines are those of the comparison with
//! other stacks: `@@B bare.TEST` right before a load and `@@E bare.TEST n=… bytes=… cnt=… insn=…
//! err=…` right after it, `@@DONE` at the end. What they do not say is in marker lines
//! (`docs/demo-protocol.md`). `cargo xtask bench` starts it in several ways and makes the tables of
//! `docs/performance.md` of it.
//!
//! | module | what it is for |
//! |---|---|
//! | [`workload`] | the list of loads |
//! | [`face`] | a load through the blocking face, and through the queue face |
//! | [`spread`] | reads from several disks at once, in a mode of its own |
//! | [`arrival`] | when what was reached, from the start to the first block |
//! | [`meter`] | what is counted |
//! | [`memory`] | what loads transfer from and to |
//!
//! What it does not do: verify data (the demo does), take part in noise (it runs alone).

pub mod arrival;
pub mod face;
pub mod memory;
pub mod meter;
pub mod spread;
pub mod workload;

use rootport::block::queue::DiskId;
use rootport::dma::Class;
use rootport::time::Duration;
use rootport::usb::Driver;
use rootport::{Host, Platform};

use crate::power::Reason;
use crate::println;
use arrival::Arrival;
use memory::Memory;
use meter::Meter;
use workload::{Buffer, LOADS, Load};

/// Policy: a controller halts within milliseconds.
const STOP: Duration = Duration::from_secs(5);
/// Empty polls that the cost of one is the mean of.
const EMPTY_POLLS: u32 = 1_000;

/// What a run works with, beside the host.
#[derive(Debug)]
pub struct Tools {
    /// What is counted.
    pub meter: Meter,
    /// Memory for transfers.
    pub memory: Memory,
    /// Every load runs so many times its shortest length.
    pub rounds: u32,
    /// The only load, where not all of them are to run.
    pub only: Option<Load>,
}

/// Starts the host, runs every load on its first disk, stops the host.
///
/// # Errors
///
/// The first thing that failed. The host is stopped in any case.
pub fn run<P: Platform, C: Driver>(host: &mut Host<'_, P, C>, tools: Tools) -> Result<(), Reason> {
    let result = measure(host, tools);
    finish(host, result)
}

/// Says what memory was used, and stops the host.
fn finish<P: Platform, C: Driver>(
    host: &mut Host<'_, P, C>,
    result: Result<(), Reason>,
) -> Result<(), Reason> {
    let usage = host.pool_usage();
    println!(
        "@memory pool={} scratchpads={} bounce={}",
        usage.high_water,
        memory::of_class(&usage, Class::Scratchpad),
        memory::of_class(&usage, Class::Bounce)
    );
    let stopped = host.stop(STOP);
    result?;
    if !stopped {
        return Err("a controller did not stop".into());
    }
    println!("@@DONE");
    Ok(())
}

fn measure<P: Platform, C: Driver>(host: &mut Host<'_, P, C>, tools: Tools) -> Result<(), Reason> {
    let Tools {
        meter,
        mut memory,
        rounds,
        only,
    } = tools;
    let arrival = Arrival::watch(host, memory.borrow(workload::MOST_BYTES))?;
    arrival.print();
    let disk = arrival.disk();
    let wanted = |load: &Load| only.is_none_or(|only| only == *load);
    for load in LOADS.into_iter().filter(wanted) {
        let load = load.times(rounds);
        let before = host.copies(disk).unwrap_or_default();
        let (errors, counted) = match load.buffer {
            Buffer::Borrowed => with_borrowed(host, disk, &load, &meter, &mut memory),
            Buffer::Owned => with_owned(host, disk, &load, &meter, &mut memory),
        };
        let after = host.copies(disk).unwrap_or_default();
        let name = load.name();
        println!(
            "@@E bare.{name} n={} bytes={} {counted} err={errors} copied={} bounced={}",
            load.count,
            load.bytes(),
            after.copied - before.copied,
            after.bounced - before.bounced,
        );
    }
    poll_for_nothing(host, &meter);
    Ok(())
}

fn with_borrowed<P: Platform, C: Driver>(
    host: &mut Host<'_, P, C>,
    disk: DiskId,
    load: &Load,
    meter: &Meter,
    memory: &mut Memory,
) -> (u32, meter::Counted) {
    let buffer = memory.borrow(load.size);
    face::warm_up(host, disk, buffer);
    println!("@@B bare.{}", load.name());
    let start = meter.read();
    let errors = face::blocking(host, disk, load, buffer);
    (errors, meter.read().since(&start))
}

fn with_owned<P: Platform, C: Driver>(
    host: &mut Host<'_, P, C>,
    disk: DiskId,
    load: &Load,
    meter: &Meter,
    memory: &mut Memory,
) -> (u32, meter::Counted) {
    let mut buffers = memory.own(load.size, load.depth);
    // Each buffer is read into once: it is known to be untouched since, then.
    let warm = load.once_each();
    face::queued(host, disk, &warm, &mut buffers);
    println!("@@B bare.{}", load.name());
    let start = meter.read();
    let errors = face::queued(host, disk, load, &mut buffers);
    let counted = meter.read().since(&start);
    memory.take_back(buffers);
    (errors, counted)
}

/// The cost of a poll that finds nothing.
fn poll_for_nothing<P: Platform, C: Driver>(host: &mut Host<'_, P, C>, meter: &Meter) {
    println!("@@B bare.poll.1");
    let start = meter.read();
    for _ in 0..EMPTY_POLLS {
        host.poll();
    }
    let counted = meter.read().since(&start);
    println!("@@E bare.poll.1 n={EMPTY_POLLS} bytes=0 {counted} err=0");
}
