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
//! | [`places`] | blocks by their numbers: sums, errors, a pattern |
//! | [`offsets`] | buffers at every place in a cache line |
//! | [`discard`] | blocks unmapped, and filled by WRITE SAME |
//! | [`checksum`] | CRC-32, in pieces |
//! | [`throughput`], [`scratch`] | the scratch partition: a table, a pattern |
//! | [`payload`] | the next stage, in what was the pool |
//! | [`buffers`] | fixed memory for all of it |

pub mod buffers;
pub mod checksum;
pub mod discard;
pub mod disk;
pub mod files;
pub mod offsets;
pub mod options;
pub mod partitions;
pub mod payload;
pub mod places;
pub mod scratch;
pub mod sectors;
pub mod session;
pub mod throughput;

use buffers::Buffers;
use disk::{Disk, Flushed};
use files::Task;
use options::Options;
use partitions::{Partition, Purpose};

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
