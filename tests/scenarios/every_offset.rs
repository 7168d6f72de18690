//! Buffers at every offset in a cache line and around a page's end, of every odd number of packets, on
//! a machine whose caches the devices do not see.

use rootport::block::queue::DiskId;
use rootport_models::device::Disk;
use rootport_models::device::field::good_stick;
use rootport_models::device::scsi::pattern;
use rootport_models::machine::Options;

use crate::controller;
use crate::rig::{FAST_PORT, FASTEST, HIGH_PORT, Rig, disk_at};

/// Blocks in one request: odd numbers of packets, less than a page, about a page, about a qTD's five
/// pages, and more than one command may move.
const LENGTHS: [u64; 7] = [1, 3, 7, 9, 39, 41, 243];

fn rig(cache_line: usize) -> Rig {
    let options = Options {
        seed: cache_line as u64,
        cache_line,
        coherent: false,
        ..Options::default()
    };
    Rig::new(options, controller::usual())
}

/// Reads and writes so many blocks with a buffer that begins `offset` bytes behind a page.
fn moves(rig: &mut Rig, disk: DiskId, device: &Disk, offset: usize, blocks: u64) {
    let (lba, bytes) = (offset as u64, blocks as usize * 512);
    let read = rig.read_at(disk, lba, bytes, offset);
    let wanted: Vec<u8> = (lba..lba + blocks)
        .flat_map(|lba| pattern(lba, 512))
        .collect();
    assert!(read == Ok(wanted), "{blocks} blocks read at {offset}");
    let target = 1_000 + lba;
    let data: Vec<u8> = (0..bytes)
        .map(|index| (index + index / 512 + offset) as u8)
        .collect();
    let written = rig.write_at(disk, target, &data, offset);
    let found: Vec<u8> = (target..target + blocks)
        .flat_map(|lba| device.block(lba))
        .collect();
    assert!(
        written.is_ok() && found == data,
        "{blocks} blocks written at {offset}"
    );
}

#[test]
fn data_of_odd_lengths_move_at_every_offset_of_a_cache_line() {
    for cache_line in [32, 64] {
        let mut rig = rig(cache_line);
        let (stick, fast) = (good_stick(), disk_at(FASTEST).build());
        let high = rig.disk(HIGH_PORT, stick.clone());
        let other = rig.disk(FAST_PORT, fast.clone());
        for offset in 0..64 {
            for blocks in LENGTHS {
                let (disk, device) = match (offset as u64 + blocks) % 4 {
                    0 => (other, &fast),
                    _ => (high, &stick),
                };
                moves(&mut rig, disk, device, offset, blocks);
            }
        }
    }
}

#[test]
fn data_of_odd_lengths_move_at_every_offset_around_the_end_of_a_page() {
    let mut rig = rig(64);
    let stick = good_stick();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    for offset in (4096 - 65..4096).chain(3 * 4096 - 513..3 * 4096 - 509) {
        for blocks in [1, 9, 41] {
            moves(&mut rig, disk, &stick, offset, blocks);
        }
    }
}
