//! The demo: what a person wants to see of a USB disk, and what the host checks.
//!
//! Who calls it: a board's `main`. The console is for people first; the marker lines between are
//! `docs/demo-protocol.md`'s. Only [`session`] knows of
//! USB; the rest knows disks, partitions and files.
//!
//! | module | what it is for |
//! |---|---|
//! | [`session`] | a host, from start to stop |
//! | [`options`] | what the host wants |
//! | [`disk`] | the block device that the rest works on |
//! | [`partitions`] | MBR and GPT |
//! | [`sectors`] | a partition as a file system wants it |
//! | [`files`] | list, sum up, copy |
//! | [`throughput`], [`scratch`] | the scratch partition: a table, a pattern |
//! | [`buffers`] | fixed memory for all of it |

pub mod buffers;
pub mod checksum;
pub mod disk;
pub mod files;
pub mod options;
pub mod partitions;
pub mod scratch;
pub mod sectors;
pub mod session;
pub mod throughput;

use buffers::Buffers;
use checksum::Checksum;
use disk::{Disk, Flushed};
use files::Task;
use options::Options;
use partitions::{Partition, Purpose};

use rootport::block::BlockError;

use crate::power::Reason;
use crate::println;

/// Everything that is done with one disk in [`options::Mode::Demo`] and
/// [`options::Mode::Read`]: partitions, files, and in the first case the writing parts. `clock`
/// tells microseconds.
///
/// # Errors
///
/// The first thing that failed. What a disk does not have is skipped, not an error.
pub fn examine(
    disk: &mut Disk<'_>,
    number: usize,
    options: &Options,
    buffers: &mut Buffers<'_>,
    clock: fn() -> u64,
) -> Result<(), Reason> {
    let partitions = partitions::read(disk, buffers.block)?;
    let mut copy = options.mode.writes() && disk.is_writable();
    for partition in &partitions {
        let fat = probe(disk, number, partition, buffers);
        if fat {
            let task = Task {
                disk: number,
                limit: options.limit,
                copy,
            };
            files::run(disk, partition, task, buffers.window, buffers.transfer)?;
            copy = false;
        }
    }
    if options.mode.writes() {
        if copy || !disk.is_writable() {
            skip(number, "copy", "no FAT partition that can be written");
        }
        use_scratch(disk, number, &partitions, buffers, clock)?;
        flush(disk, number)?;
    }
    Ok(())
}

/// Sums up the first bytes of a disk, [`options::Mode::Raw`].
///
/// # Errors
///
/// The disk's own error.
pub fn sum_raw(
    disk: &mut Disk<'_>,
    number: usize,
    bytes: u64,
    buffers: &mut Buffers<'_>,
) -> Result<(), Reason> {
    let (bytes, sum) = read_through(disk, bytes, buffers)
        .map_err(|error| Reason::new(format_args!("disk {number}: {error}")))?;
    println!("checksum of the first {bytes} bytes of disk {number}");
    println!("@sum disk={number} bytes={bytes} crc32={sum:08x}");
    Ok(())
}

/// Reads the first `bytes` of a disk, or all where it is smaller: how many it were, and their
/// checksum.
///
/// # Errors
///
/// The disk's own error.
pub fn read_through(
    disk: &mut Disk<'_>,
    bytes: u64,
    buffers: &mut Buffers<'_>,
) -> Result<(u64, u32), BlockError> {
    let block_size = disk.block_size() as u64;
    let blocks = disk.blocks().min(bytes / block_size);
    let room = buffers.transfer.len() as u64 / block_size;
    let mut sum = Checksum::default();
    let mut first = 0;
    while first < blocks {
        let count = room.min(blocks - first);
        let piece = &mut buffers.transfer[..(count * block_size) as usize];
        disk.read(first, piece)?;
        sum.update(piece);
        first += count;
    }
    Ok((blocks * block_size, sum.value()))
}

/// Says what a partition is; true for one with a FAT.
fn probe(
    disk: &mut Disk<'_>,
    number: usize,
    partition: &Partition,
    buffers: &mut Buffers<'_>,
) -> bool {
    let fat = match partition.purpose {
        Purpose::Files => files::probe(disk, partition, buffers.window),
        Purpose::Scratch | Purpose::Other => Err("not for files".into()),
    };
    let kind = match (&fat, partition.purpose) {
        (Ok(()), _) => "fat",
        (Err(_), Purpose::Scratch) => "scratch",
        (Err(_), _) => "other",
    };
    let Partition {
        number: part,
        first,
        blocks,
        purpose,
    } = *partition;
    println!("partition {part}: {blocks} blocks from block {first}, {kind}");
    println!("@partition disk={number} number={part} first={first} blocks={blocks} kind={kind}");
    if let (Err(reason), Purpose::Files) = (&fat, purpose) {
        println!("@skip disk={number} what=files reason=partition {part}: {reason}");
    }
    fat.is_ok()
}

fn use_scratch(
    disk: &mut Disk<'_>,
    number: usize,
    partitions: &[Partition],
    buffers: &mut Buffers<'_>,
    clock: fn() -> u64,
) -> Result<(), Reason> {
    let scratch = partitions
        .iter()
        .find(|partition| partition.purpose == Purpose::Scratch);
    match scratch {
        None => skip(number, "scratch", "no scratch partition"),
        Some(_) if !disk.is_writable() => skip(number, "scratch", "the disk is write-protected"),
        Some(partition) => {
            throughput::run(disk, number, partition, buffers.transfer, clock)?;
            scratch::run(disk, number, partition, buffers.transfer)?;
        }
    }
    Ok(())
}

fn flush(disk: &mut Disk<'_>, number: usize) -> Result<(), Reason> {
    let flushed = disk
        .flush()
        .map_err(|error| Reason::new(format_args!("flushing disk {number}: {error}")))?;
    let result = match flushed {
        Flushed::Done => "ok",
        Flushed::NoCommand => "no-command",
    };
    println!("@flush disk={number} result={result}");
    Ok(())
}

fn skip(disk: usize, what: &str, reason: &str) {
    println!("@skip disk={disk} what={what} reason={reason}");
}
