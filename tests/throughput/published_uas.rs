//! Figures that people published for the same bridges over UAS, beside the model with the very delays
//! that were fitted on Bulk-Only ([`published`](super::published)).
//!
//! Over UAS Linux's own time is not on the way of large records: it prepares a command while the disk
//! works on others. A small request waits for it, one at a time.

use rootport::host::xhci::Options;
use rootport::policy::Policy;
use rootport_models::device::MICROSECOND;
use rootport_models::device::scsi::Timing;

use super::published::{BANANA_PI, Bridge, ROCK64, Way};
use super::uas;
use super::wire::megabytes_a_second;

/// Bytes of a small request.
const SMALL: usize = 4096;

/// A column that was published.
#[derive(Clone, Copy, Debug)]
struct Row {
    name: &'static str,
    way: Way,
    /// Megabytes (10^6) a second.
    reported: f64,
    /// Linux's own time for a small request.
    linux_microseconds: f64,
    /// Why it need not come out within 15 %.
    exempt: Option<&'static str>,
}

/// A bridge's columns.
struct Published {
    bridge: Bridge,
    /// Bytes of a large record.
    record: usize,
    large: &'static [Row],
    small: &'static [Row],
}

const fn large(name: &'static str, way: Way, reported: f64) -> Row {
    Row {
        name,
        way,
        reported,
        linux_microseconds: 0.0,
        exempt: None,
    }
}

const fn kibibytes(count: f64) -> f64 {
    count * 1024.0 / 1e6
}

/// A small column of the Rock64 from its KiB a second and its load, of which 25 % is one core.
const fn small(name: &'static str, way: Way, reported: f64, load: f64) -> Row {
    Row {
        linux_microseconds: load / 25.0 * 4.0 * 1e6 / reported,
        ..large(name, way, kibibytes(reported))
    }
}

const fn iops(name: &'static str, way: Way, requests: f64) -> Row {
    large(name, way, requests * SMALL as f64 / 1e6)
}

const WRITES: &str = "the SSD's own pace at writes, which reads do not tell";

const fn write_of_ssd(name: &'static str, reported: f64) -> Row {
    Row {
        exempt: Some(WRITES),
        ..large(name, Way::Write, kibibytes(reported))
    }
}

const ALL: [Published; 3] = [
    Published {
        bridge: BANANA_PI[0],
        record: 1 << 20,
        large: &[
            large("read", Way::Read, 39.8),
            large("write", Way::Write, 37.1),
        ],
        small: &[
            iops("sequential read", Way::Read, 9932.0),
            iops("sequential write", Way::Write, 9062.0),
            iops("random read (cached)", Way::Read, 4818.0),
            iops("random write", Way::Write, 157.0),
        ],
    },
    Published {
        bridge: BANANA_PI[1],
        record: 1 << 20,
        large: &[
            large("read", Way::Read, 40.5),
            large("write", Way::Write, 38.1),
        ],
        small: &[
            iops("sequential read", Way::Read, 10_227.0),
            iops("sequential write", Way::Write, 9284.0),
            iops("random read (cached)", Way::Read, 4956.0),
            iops("random write", Way::Write, 166.0),
        ],
    },
    Published {
        bridge: ROCK64,
        record: 16 << 20,
        large: &[
            large("read", Way::Read, kibibytes(354_657.0)),
            large("reread", Way::Read, kibibytes(354_838.0)),
            large("random read", Way::Read, kibibytes(353_728.0)),
            write_of_ssd("write", 217_132.0),
            write_of_ssd("rewrite", 219_776.0),
            write_of_ssd("random write", 183_282.0),
        ],
        small: &[
            small("read", Way::Read, 27_535.0, 7.60),
            small("reread", Way::Read, 23_642.0, 14.42),
            small("random read", Way::Read, 15_982.0, 1.05),
            small("write", Way::Write, 18_129.0, 17.85),
            small("rewrite", Way::Write, 23_421.0, 9.43),
            small("random write", Way::Write, 17_115.0, 1.11),
        ],
    },
];

/// Megabytes a second of records, with so much time between two.
fn run(bridge: &Bridge, way: Way, record: usize, pause: f64) -> f64 {
    let access = bridge.access_microseconds * MICROSECOND;
    let timing = Timing {
        access,
        program: access,
        flush: access,
        bytes_per_second: Some(bridge.bytes_per_second),
    };
    let options = Options::default();
    let mut bench = uas::bench(bridge.bus, Policy::DEFAULT, options, timing);
    bench.pause = (pause * 1e3) as u64;
    let count = (32 << 20) / record.max(1 << 20) as u64;
    megabytes_a_second(match way {
        Way::Read => bench.read(record, count),
        Way::Write => bench.write(record, count),
    })
}

impl Published {
    fn model(&self, row: &Row) -> f64 {
        run(&self.bridge, row.way, self.record, 0.0)
    }
}

#[test]
fn large_records_over_uas_come_out_within_15_percent_but_for_those_that_are_named() {
    for published in ALL {
        for row in published.large {
            let deviation = published.model(row) / row.reported - 1.0;
            let is_within = deviation.abs() <= 0.15;
            assert_eq!(is_within, row.exempt.is_none(), "{row:?}: {deviation:.3}");
        }
    }
}

/// Prints what `cargo xtask bench` takes over.
#[test]
fn the_tables_of_published_uas_figures_are_printed() {
    for published in ALL {
        let bridge = &published.bridge;
        println!("### {} over UAS\n", bridge.name);
        println!(
            "| UAS, {} MiB records; {:.1} MB/s and {} µs to answer, as over Bulk-Only | published MB/s | \
             model | deviation |",
            published.record >> 20,
            bridge.bytes_per_second as f64 / 1e6,
            bridge.access_microseconds,
        );
        println!("|---|---:|---:|---:|");
        for row in published.large {
            let model = published.model(row);
            println!(
                "| {}{} | {:.1} | {model:.1} | {:+.1} % |",
                row.name,
                row.exempt.map(|why| format!(": {why}")).unwrap_or_default(),
                row.reported,
                100.0 * (model / row.reported - 1.0),
            );
        }
        for row in published.small {
            let model = run(bridge, row.way, SMALL, row.linux_microseconds);
            println!(
                "| {}, 4 KiB, Linux {:.0} µs a request; no tolerance | {:.1} | {model:.1} | |",
                row.name, row.linux_microseconds, row.reported,
            );
        }
    }
}
