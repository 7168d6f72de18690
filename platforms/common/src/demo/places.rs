//! Blocks that the host names by their numbers: summed up, looked at one by one, written.
//!
//! Who calls it: [`session`](super::session), for the modes that know no partitions.

use rootport::block::BlockError;

use super::buffers::Buffers;
use super::checksum::Checksum;
use super::disk::Disk;
use super::options::Options;
use super::partitions::{Partition, Purpose};
use super::{flush, scratch};
use crate::power::Reason;
use crate::println;

/// Blocks of a disk.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    first: u64,
    blocks: u64,
}

impl Span {
    /// `bytes` from the block `first` on, cut at the disk's end.
    #[must_use]
    pub fn of(disk: &Disk<'_>, first: u64, bytes: u64) -> Self {
        let left = disk.blocks().saturating_sub(first);
        let blocks = left.min(bytes / disk.block_size() as u64);
        Self { first, blocks }
    }

    fn named(disk: &Disk<'_>, options: &Options) -> Self {
        Self::of(disk, options.first, options.bytes)
    }
}

/// Sums up blocks of a disk, [`Mode::Raw`](super::options::Mode::Raw).
///
/// # Errors
///
/// The disk's own error.
pub fn sum(
    disk: &mut Disk<'_>,
    number: usize,
    options: &Options,
    buffers: &mut Buffers<'_>,
) -> Result<(), Reason> {
    let span = Span::named(disk, options);
    let (bytes, sum) = read_through(disk, span, buffers)
        .map_err(|error| Reason::new(format_args!("disk {number}: {error}")))?;
    let first = span.first;
    println!("checksum of {bytes} bytes of disk {number} from block {first} on");
    println!("@sum disk={number} bytes={bytes} crc32={sum:08x}");
    Ok(())
}

/// Reads blocks: how many bytes it were, and their checksum.
///
/// # Errors
///
/// The disk's own error.
pub fn read_through(
    disk: &mut Disk<'_>,
    span: Span,
    buffers: &mut Buffers<'_>,
) -> Result<(u64, u32), BlockError> {
    let block_size = disk.block_size() as u64;
    let room = buffers.transfer.len() as u64 / block_size;
    let mut sum = Checksum::default();
    let mut done = 0;
    while done < span.blocks {
        let count = room.min(span.blocks - done);
        let piece = &mut buffers.transfer[..(count * block_size) as usize];
        disk.read(span.first + done, piece)?;
        sum.update(piece);
        done += count;
    }
    Ok((done * block_size, sum.value()))
}

/// Reads blocks one by one and names those that cannot be read,
/// [`Mode::Scan`](super::options::Mode::Scan). The sum covers the others.
///
/// # Errors
///
/// None: a bad block is what it looks for.
pub fn scan(
    disk: &mut Disk<'_>,
    number: usize,
    options: &Options,
    buffers: &mut Buffers<'_>,
) -> Result<(), Reason> {
    let span = Span::named(disk, options);
    let block = &mut buffers.transfer[..disk.block_size()];
    let (mut sum, mut bytes) = (Checksum::default(), 0);
    for index in span.first..span.first + span.blocks {
        match disk.read(index, block) {
            Ok(()) => {
                sum.update(block);
                bytes += block.len();
            }
            Err(reason) => println!("@bad disk={number} block={index} reason={reason}"),
        }
    }
    println!("@sum disk={number} bytes={bytes} crc32={:08x}", sum.value());
    Ok(())
}

/// Writes the scratch pattern to the blocks that the host names, and reads it back,
/// [`Mode::Pattern`](super::options::Mode::Pattern).
///
/// # Errors
///
/// The disk's own error, or the first byte that came back wrong.
pub fn write_pattern(
    disk: &mut Disk<'_>,
    number: usize,
    options: &Options,
    buffers: &mut Buffers<'_>,
) -> Result<(), Reason> {
    let Span { first, blocks } = Span::named(disk, options);
    let place = Partition {
        number: 0,
        first,
        blocks,
        purpose: Purpose::Scratch,
    };
    scratch::run(disk, number, &place, buffers.transfer)?;
    flush(disk, number)
}
