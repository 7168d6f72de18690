//! Blocks that are unmapped, and blocks that are filled by WRITE SAME.
//!
//! Who calls it: [`session`](super::session), in [`Mode::Discard`](super::options::Mode::Discard).

use rootport::block::{BlockDevice, BlockError, Lba};
use rootport::stack::Disk;
use rootport::usb::Driver;
use rootport::{Host, Platform};

use super::options::Options;
use crate::power::Reason;
use crate::println;
use rootport::block::queue::DiskId;

/// What WRITE SAME fills blocks with.
const FILL: u8 = 0xa5;

/// Unmaps the first half of the blocks that the host names, fills the second half, flushes, and says how
/// each went: a disk that knows no such command says so, and is left as it is.
///
/// # Errors
///
/// The disk's own error, but not that it knows no such command.
pub fn run<P: Platform, C: Driver>(
    host: &mut Host<'_, P, C>,
    id: DiskId,
    number: usize,
    options: &Options,
    buffer: &mut [u8],
) -> Result<(), Reason> {
    let mut disk = host.disk(id);
    let geometry = disk.geometry().map_err(told(number))?;
    let block_bytes = geometry.block_bytes as usize;
    let half = options.bytes / 2 / block_bytes as u64;
    let first = options.first;
    let unmapped = disk.unmap(Lba(first), half);
    show(number, "unmap", (first, half), unmapped)?;
    let block = &mut buffer[..block_bytes];
    block.fill(FILL);
    let filled = disk.write_same(Lba(first + half), half, block);
    show(number, "write-same", (first + half, half), filled)?;
    if filled.is_ok() {
        compare(&mut disk, (first + half, half), buffer).map_err(told(number))?;
    }
    disk.flush().map_err(told(number))
}

fn told(number: usize) -> impl Fn(BlockError) -> Reason {
    move |error| Reason::new(format_args!("disk {number}: {error}"))
}

fn show(
    number: usize,
    way: &str,
    (first, blocks): (u64, u64),
    result: Result<(), BlockError>,
) -> Result<(), Reason> {
    let word = match result {
        Ok(()) => "ok",
        Err(BlockError::Unsupported(_)) => "unsupported",
        Err(error) => return Err(told(number)(error)),
    };
    println!("@discard disk={number} way={way} first={first} blocks={blocks} result={word}");
    Ok(())
}

/// Reads blocks back that were filled.
fn compare<P: Platform, C: Driver>(
    disk: &mut Disk<'_, '_, P, C>,
    (first, blocks): (u64, u64),
    buffer: &mut [u8],
) -> Result<(), BlockError> {
    let block_bytes = disk.geometry()?.block_bytes as usize;
    let room = (buffer.len() / block_bytes) as u64;
    let mut done = 0;
    while done < blocks {
        let count = room.min(blocks - done);
        let piece = &mut buffer[..count as usize * block_bytes];
        disk.read(Lba(first + done), piece)?;
        if piece.iter().any(|byte| *byte != FILL) {
            println!("filled blocks read back wrong, from {} on", first + done);
            return Err(BlockError::Broken);
        }
        done += count;
    }
    Ok(())
}
