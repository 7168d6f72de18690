//! A load, through each of the two faces. The loops do as little as they can beside the calls.

use rootport::block::queue::{DiskId, Operation};
use rootport::block::{BlockDevice, Lba};
use rootport::usb::Driver;
use rootport::{Host, Platform};

use super::memory::Owned;
use super::workload::{Direction, Load, Places};

/// Reads a buffer's worth once, so that what happens only once is over.
pub fn warm_up<P: Platform, C: Driver>(host: &mut Host<'_, P, C>, disk: DiskId, buffer: &mut [u8]) {
    // A disk that cannot be read says so in the load itself.
    let _ = host.disk(disk).read(Lba(0), buffer);
}

/// Runs a load through the blocking face, and returns how many requests failed.
#[inline(never)]
pub fn blocking<P: Platform, C: Driver>(
    host: &mut Host<'_, P, C>,
    disk: DiskId,
    load: &Load,
    buffer: &mut [u8],
) -> u32 {
    let mut places = places(host, disk, load);
    let mut disk = host.disk(disk);
    let mut errors = 0;
    for _ in 0..load.count {
        let lba = Lba(places.next().unwrap_or(0));
        let result = match load.direction {
            Direction::Read => disk.read(lba, buffer),
            Direction::Write => disk.write(lba, buffer),
        };
        errors += u32::from(result.is_err());
    }
    errors
}

/// Runs a load through the queue face, with as many requests in flight as there are buffers, and
/// returns how many failed.
#[inline(never)]
pub fn queued<P: Platform, C: Driver>(
    host: &mut Host<'_, P, C>,
    disk: DiskId,
    load: &Load,
    buffers: &mut Owned,
) -> u32 {
    let mut places = places(host, disk, load);
    let (mut submitted, mut ended, mut errors) = (0, 0, 0);
    while ended < load.count {
        while submitted < load.count
            && let Some(buffer) = buffers.pop()
        {
            let lba = Lba(places.next().unwrap_or(0));
            let operation = match load.direction {
                Direction::Read => Operation::Read(lba),
                Direction::Write => Operation::Write(lba),
            };
            submitted += 1;
            if let Err((_, buffer)) = host.submit(disk, operation, Some(buffer)) {
                buffers.extend(buffer);
                ended += 1;
                errors += 1;
            }
        }
        let wake = host.poll();
        let before = ended;
        while let Some(completion) = host.take_completion() {
            ended += 1;
            errors += u32::from(completion.result.is_err());
            buffers.extend(completion.buffer);
        }
        if ended == before {
            host.platform().wait(wake);
        }
    }
    errors
}

fn places<P: Platform, C: Driver>(host: &Host<'_, P, C>, disk: DiskId, load: &Load) -> Places {
    let (blocks, block_bytes) = host
        .geometry(disk)
        .map_or((0, 512), |geometry| (geometry.blocks, geometry.block_bytes));
    load.places(blocks, block_bytes)
}
