//! Cache lines that a buffer shares with its neighbours: they keep what the CPU wrote, and the buffer
//! gets what the disk sent, whatever is evicted or fetched at whatever moment.

use crate::controller;
use crate::rig::{HIGH_PORT, Rig};
use rootport::block::{BlockDevice, Lba};
use rootport_models::device::field::good_stick;
use rootport_models::device::scsi::pattern;
use rootport_models::machine::Options;

const BEFORE: usize = 256;
const AFTER: usize = 256;

fn rig(cache_line: usize, coherent: bool, seed: u64) -> Rig {
    let options = Options {
        seed,
        cache_line,
        coherent,
        ..Options::default()
    };
    Rig::new(options, controller::usual())
}

/// Reads into the middle of a larger buffer whose other bytes the CPU has just written.
fn reads_between_dirty_neighbours(cache_line: usize, coherent: bool, seed: u64) {
    let mut rig = rig(cache_line, coherent, seed);
    let disk = rig.disk(HIGH_PORT, good_stick());
    for offset in [0, 1, 2, 3, 4, 13, 31, 32, 33, 63, 64, 65, 100, 127] {
        for length in [512, 1536, 8192] {
            let mut buffer = rig.machine.buffer(BEFORE + length + AFTER, offset);
            buffer.fill(0xa7);
            let lba = offset as u64;
            let target = &mut buffer[BEFORE..BEFORE + length];
            rig.host.disk(disk).read(Lba(lba), target).unwrap();
            let wanted: Vec<u8> = (0..(length / 512) as u64)
                .flat_map(|block| pattern(lba + block, 512))
                .collect();
            assert!(
                buffer[BEFORE..BEFORE + length] == wanted,
                "data at {offset}, {length} bytes"
            );
            assert!(
                buffer[..BEFORE].iter().all(|byte| *byte == 0xa7),
                "before {offset}"
            );
            assert!(
                buffer[BEFORE + length..].iter().all(|byte| *byte == 0xa7),
                "after {offset}"
            );
        }
    }
}

/// Writes from the middle of a larger buffer right after the CPU has filled it.
fn writes_what_the_cpu_has_just_stored(cache_line: usize, coherent: bool, seed: u64) {
    let mut rig = rig(cache_line, coherent, seed);
    let stick = good_stick();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    for offset in [0, 1, 5, 31, 33, 64, 127] {
        let mut buffer = rig.machine.buffer(BEFORE + 1024 + AFTER, offset);
        for (index, byte) in buffer.iter_mut().enumerate() {
            *byte = (index + offset) as u8;
        }
        let source = buffer[BEFORE..BEFORE + 1024].to_vec();
        rig.host
            .disk(disk)
            .write(Lba(1000), &buffer[BEFORE..BEFORE + 1024])
            .unwrap();
        assert_eq!(
            [stick.block(1000), stick.block(1001)].concat(),
            source,
            "offset {offset}"
        );
    }
}

#[test]
fn dirty_neighbours_of_a_read_are_kept_for_every_line_length() {
    for cache_line in [16, 32, 64, 128] {
        for seed in 1..=3 {
            reads_between_dirty_neighbours(cache_line, false, seed);
        }
    }
}

#[test]
fn a_coherent_platform_is_served_alike() {
    reads_between_dirty_neighbours(64, true, 1);
    writes_what_the_cpu_has_just_stored(64, true, 1);
}

#[test]
fn a_write_takes_what_the_cpu_has_just_stored_for_every_line_length() {
    for cache_line in [16, 32, 64, 128] {
        for seed in 1..=3 {
            writes_what_the_cpu_has_just_stored(cache_line, false, seed);
        }
    }
}

#[test]
fn a_setup_packet_reaches_the_device_as_it_was_written() {
    // SETUP data all zeros on the wire was the report: the device keeps what came.
    for seed in 1..=8 {
        let mut rig = rig(128, false, seed);
        let stick = good_stick();
        let _disk = rig.disk(HIGH_PORT, stick.clone());
        assert!(
            stick
                .requests()
                .iter()
                .all(|(_, setup)| setup.bytes() != [0; 8])
        );
    }
}
