//! 4 KiB random reads from several disks at once, each at the same depth: what a request costs must not
//! depend on how many disks there are.
//!
//! Who calls it: `work`, in [`Mode::Spread`](crate::demo::options::Mode::Spread). The lines are
//! those of the other loads: `rr4k.8` has 8 requests in flight on each disk.

use heapless::Vec;
use rootport::block::Lba;
use rootport::block::queue::{DiskId, Operation};
use rootport::dma::DmaBuffer;
use rootport::stack::DiskState;
use rootport::time::Duration;
use rootport::usb::Driver;
use rootport::{Host, Platform};

use super::meter::Meter;
use super::workload::{Load, MOST_BUFFERS, Places};
use super::{Tools, finish};
use crate::power::Reason;
use crate::println;

/// Requests in flight on each disk.
const DEPTHS: [usize; 4] = [1, 4, 8, 14];
/// The most disks: all of them at the greatest depth have a buffer for each request.
const MOST_DISKS: usize = 4;
const _: () = assert!(MOST_DISKS * DEPTHS[3] <= MOST_BUFFERS);

/// How long the disks may take to come. Policy: slow ones spin up.
const LIMIT: Duration = Duration::from_secs(30);

/// Buffers that wait for a request, each with the disk that it goes to.
type Idle = Vec<(DmaBuffer, DiskId), MOST_BUFFERS>;

/// Starts the host, waits for `count` disks, reads from all of them at each depth, stops the host.
///
/// # Errors
///
/// The first thing that failed. The host is stopped in any case.
pub fn run<P: Platform, C: Driver>(
    host: &mut Host<'_, P, C>,
    tools: Tools,
    count: usize,
) -> Result<(), Reason> {
    let result = measure(host, tools, count);
    finish(host, result)
}

fn measure<P: Platform, C: Driver>(
    host: &mut Host<'_, P, C>,
    tools: Tools,
    count: usize,
) -> Result<(), Reason> {
    let Tools {
        meter,
        mut memory,
        rounds,
        ..
    } = tools;
    let disks = await_disks(host, count)?;
    for depth in DEPTHS {
        let load = Load::short_reads(depth);
        let buffers = memory.own(load.size, depth * disks.len());
        let mut idle: Idle = buffers
            .into_iter()
            .zip(disks.iter().copied().cycle())
            .collect();
        let load = load.times(rounds * disks.len() as u32);
        one(host, &load, &mut idle, &meter);
        memory.take_back(idle.into_iter().map(|(buffer, _)| buffer).collect());
    }
    Ok(())
}

fn await_disks<P: Platform, C: Driver>(
    host: &mut Host<'_, P, C>,
    count: usize,
) -> Result<Vec<DiskId, MOST_DISKS>, Reason> {
    let ready = |host: &Host<'_, P, C>| -> Vec<DiskId, MOST_DISKS> {
        let is_ready = |state| matches!(state, DiskState::Ready(_));
        let all = host.disks().filter(|disk| is_ready(disk.state));
        all.take(MOST_DISKS).map(|disk| disk.id).collect()
    };
    host.start();
    if !host.poll_until(LIMIT, |host| ready(host).len() == count) {
        return Err("the disks did not come in time, or are too many".into());
    }
    Ok(ready(host))
}

/// One load, between its lines.
fn one<P: Platform, C: Driver>(
    host: &mut Host<'_, P, C>,
    load: &Load,
    idle: &mut Idle,
    meter: &Meter,
) {
    let geometry = idle.first().and_then(|(_, disk)| host.geometry(*disk).ok());
    let (blocks, block_bytes) = geometry.map_or((0, 512), |it| (it.blocks, it.block_bytes));
    let mut places = load.places(blocks, block_bytes);
    // Each buffer is read into once: it is known to be untouched since, then.
    read(host, idle, &mut places, idle.len() as u32);
    println!("@@B bare.rr4k.{}", load.depth);
    let start = meter.read();
    let errors = read(host, idle, &mut places, load.count);
    let counted = meter.read().since(&start);
    let (count, bytes) = (load.count, load.bytes());
    println!(
        "@@E bare.rr4k.{} n={count} bytes={bytes} {counted} err={errors}",
        load.depth
    );
}

/// Reads so often, each buffer on its own disk, and returns how many reads failed.
#[inline(never)]
fn read<P: Platform, C: Driver>(
    host: &mut Host<'_, P, C>,
    idle: &mut Idle,
    places: &mut Places,
    count: u32,
) -> u32 {
    let (mut submitted, mut ended, mut errors) = (0, 0, 0);
    while ended < count {
        while submitted < count
            && let Some((buffer, disk)) = idle.pop()
        {
            let lba = Lba(places.next().unwrap_or(0));
            submitted += 1;
            if let Err((_, Some(buffer))) = host.submit(disk, Operation::Read(lba), Some(buffer)) {
                // It came from there.
                let _ = idle.push((buffer, disk));
                ended += 1;
                errors += 1;
            }
        }
        let wake = host.poll();
        let before = ended;
        while let Some(completion) = host.take_completion() {
            ended += 1;
            errors += u32::from(completion.result.is_err());
            if let Some(buffer) = completion.buffer {
                let _ = idle.push((buffer, completion.disk));
            }
        }
        if ended == before {
            host.platform().wait(wake);
        }
    }
    errors
}
