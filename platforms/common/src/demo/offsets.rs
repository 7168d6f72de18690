//! Reads and writes at every place in a cache line: what a request moves is right to the byte, and what lies beside
//! its buffer, in the same lines, stays.
//!
//! Who calls it: [`session`](super::session), for [`Mode::Offsets`](super::options::Mode::Offsets).

use super::buffers::Buffers;
use super::disk::Disk;
use super::flush;
use super::options::Options;
use super::scratch::{check, fill};
use crate::power::Reason;
use crate::println;

/// Places of a buffer: all of a cache line's, on processors whose lines have 64 bytes.
const OFFSETS: usize = 64;
/// Lengths in blocks: odd ones, below and above a packet, and below and above a page.
const LENGTHS: [usize; 3] = [1, 3, 11];
/// What lies around a buffer.
const GUARD: u8 = 0xa7;

/// Writes the scratch pattern to the blocks from `rootport.first` on, piece by piece from buffers at every offset,
/// and reads each piece back.
///
/// # Errors
///
/// The disk's own error, or the first piece that came back wrong or went beyond its buffer.
pub fn run(
    disk: &mut Disk<'_>,
    number: usize,
    options: &Options,
    buffers: &mut Buffers<'_>,
) -> Result<(), Reason> {
    let mut done = 0;
    for offset in 0..OFFSETS {
        for blocks in LENGTHS {
            let length = blocks * disk.block_size();
            let room = &mut buffers.transfer[..offset + length + OFFSETS];
            let first = options.first + done / disk.block_size() as u64;
            move_piece(disk, first, room, offset, done).map_err(|error| {
                Reason::new(format_args!("offset {offset}, {length} bytes: {error}"))
            })?;
            done += length as u64;
        }
    }
    println!("@offsets disk={number} offsets={OFFSETS} bytes={done}");
    flush(disk, number)
}

/// Writes and reads one piece of the pattern, which is `at` bytes behind its beginning.
fn move_piece(
    disk: &mut Disk<'_>,
    first: u64,
    room: &mut [u8],
    offset: usize,
    at: u64,
) -> Result<(), Reason> {
    let buffer = offset..room.len() - OFFSETS;
    let told = |error| Reason::new(format_args!("{error}"));
    room.fill(GUARD);
    fill(&mut room[buffer.clone()], at);
    disk.write(first, &room[buffer.clone()]).map_err(told)?;
    room.fill(GUARD);
    disk.read(first, &mut room[buffer.clone()]).map_err(told)?;
    check(&room[buffer.clone()], at)?;
    let (before, after) = (&room[..buffer.start], &room[buffer.end..]);
    let is_intact = before.iter().chain(after).all(|byte| *byte == GUARD);
    if is_intact {
        Ok(())
    } else {
        Err("bytes beside the buffer have changed".into())
    }
}
