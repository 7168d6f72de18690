//! Figures that people published for bridges over Bulk-Only, and what is assumed to tell them from ours.
//!
//! A bridge and its disk have one pace: so many bytes a second, and a time to answer. It is fitted on the
//! sequential reads, with Linux's own time between two commands added, and all other columns are
//! computed with it. Linux's time is an input of its own, not fitted: for the Rock64 it follows from
//! the CPU load that was published with the figures (the share of one of four cores, times the time of
//! a megabyte); for the Banana Pi, which has none, it is the Rock64's share for 120 KiB, slowed down by
//! the clock (1.3 to 0.96 GHz).

use rootport_models::device::MICROSECOND;
use rootport_models::device::scsi::Timing;

use super::wire::{Bench, Bus, megabytes_a_second};

/// Bytes of a small request.
const SMALL: usize = 4096;

/// Which way data go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Read,
    Write,
}

/// A column that was published.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Its heading.
    pub(crate) name: &'static str,
    pub(crate) way: Way,
    /// Megabytes (10^6) a second.
    pub(crate) reported: f64,
    /// Linux's own time for a command.
    pub(crate) linux_microseconds: f64,
    /// Why it need not come out within 15 %.
    pub(crate) exempt: Option<&'static str>,
}

/// A bridge with a disk behind it, on a board.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bridge {
    pub(crate) name: &'static str,
    pub(crate) bus: Bus,
    /// What is fitted.
    pub(crate) bytes_per_second: u64,
    /// What it takes to answer a command, before a read's data and after a write's.
    pub(crate) access_microseconds: u64,
    /// Bytes of a command: the transfer limit of Linux, which is ours too.
    pub(crate) command: usize,
    pub(crate) record_words: &'static str,
    pub(crate) rows: &'static [Row],
    pub(crate) small_rows: &'static [Row],
}

impl Row {
    fn run(&self, bridge: &Bridge, bytes: usize, linux_microseconds: f64) -> f64 {
        let access = bridge.access_microseconds * MICROSECOND;
        let timing = Timing {
            access,
            program: access,
            flush: access,
            bytes_per_second: Some(bridge.bytes_per_second),
        };
        let mut bench = Bench::new(bridge.bus, timing);
        bench.pause = (linux_microseconds * 1e3) as u64;
        megabytes_a_second(match self.way {
            Way::Read => bench.read(bytes, 16),
            Way::Write => bench.write(bytes, 16),
        })
    }

    /// Megabytes a second of the model with Linux's time added.
    pub(crate) fn with_linux(&self, bridge: &Bridge) -> f64 {
        self.run(bridge, bridge.command, self.linux_microseconds)
    }

    /// Megabytes a second of the model with our stack alone.
    pub(crate) fn ours(&self, bridge: &Bridge) -> f64 {
        self.run(bridge, bridge.command, 0.0)
    }

    /// The same for 4 KiB.
    pub(crate) fn small_with_linux(&self, bridge: &Bridge) -> f64 {
        self.run(bridge, SMALL, self.linux_microseconds)
    }

    /// The same for 4 KiB.
    pub(crate) fn small_ours(&self, bridge: &Bridge) -> f64 {
        self.run(bridge, SMALL, 0.0)
    }
}

const fn row(name: &'static str, way: Way, reported: f64, linux_microseconds: f64) -> Row {
    Row {
        name,
        way,
        reported,
        linux_microseconds,
        exempt: None,
    }
}

/// Linux on an A20 at 960 MHz, a command of 120 KiB.
const A20: f64 = 380.0;

/// High speed, Allwinner A20, a 2.5" disk, btrfs, kernel 4.1.2, iozone, 1 MiB records.
pub(crate) const BANANA_PI: [Bridge; 3] = [
    banana_pi(
        "Banana Pi, ASM1051",
        39_100_000,
        &[
            row("read", Way::Read, 34.8, A20),
            row("write", Way::Write, 33.1, A20),
        ],
        &[
            row("sequential read", Way::Read, iops(8844.0), 0.0),
            row("sequential write", Way::Write, iops(8225.0), 0.0),
            row("random read (cached)", Way::Read, iops(3433.0), 0.0),
            row("random write", Way::Write, iops(176.0), 0.0),
        ],
    ),
    banana_pi(
        "Banana Pi, JMS567",
        39_100_000,
        &[
            row("read", Way::Read, 34.8, A20),
            row("write", Way::Write, 34.0, A20),
        ],
        &[
            row("sequential read", Way::Read, iops(8816.0), 0.0),
            row("sequential write", Way::Write, iops(8301.0), 0.0),
            row("random read (cached)", Way::Read, iops(3479.0), 0.0),
            row("random write", Way::Write, iops(178.0), 0.0),
        ],
    ),
    banana_pi(
        "Banana Pi, INIC-1608",
        42_000_000,
        &[
            row("read", Way::Read, 37.1, A20),
            row("write", Way::Write, 33.5, A20),
        ],
        &[
            row("sequential read", Way::Read, iops(8684.0), 0.0),
            row("sequential write", Way::Write, iops(8220.0), 0.0),
            row("random read (cached)", Way::Read, iops(4106.0), 0.0),
            row("random write", Way::Write, iops(125.0), 0.0),
        ],
    ),
];

const fn banana_pi(
    name: &'static str,
    bytes_per_second: u64,
    rows: &'static [Row],
    small_rows: &'static [Row],
) -> Bridge {
    Bridge {
        name,
        bus: Bus::Ehci,
        bytes_per_second,
        access_microseconds: 20,
        command: 120 << 10,
        record_words: "1 MiB records in commands of 120 KiB",
        rows,
        small_rows,
    }
}

/// SuperSpeed, RK3328, JMS578 with an SSD, iozone -I, 16 MiB records; kilobytes are KiB.
pub(crate) const ROCK64: Bridge = Bridge {
    name: "Rock64, JMS578",
    bus: Bus::Super { burst: 15 },
    bytes_per_second: 321_000_000,
    access_microseconds: 20,
    command: 1 << 20,
    record_words: "16 MiB records in commands of 1 MiB",
    rows: &[
        rock64("read", Way::Read, 180_475.0, 10.63),
        rock64("reread", Way::Read, 180_800.0, 9.76),
        rock64("random read", Way::Read, 180_795.0, 9.85),
        rock64("write", Way::Write, 149_317.0, 11.20),
        rock64("rewrite", Way::Write, 163_379.0, 10.67),
        Row {
            exempt: Some("the SSD's own pace at random writes, which reads do not tell"),
            ..rock64("random write", Way::Write, 116_282.0, 5.08)
        },
    ],
    small_rows: &[
        rock64_small("read", Way::Read, 16_924.0, 22.65),
        rock64_small("reread", Way::Read, 16_926.0, 20.66),
        rock64_small("random read", Way::Read, 11_617.0, 17.60),
        rock64_small("write", Way::Write, 13_410.0, 29.81),
        rock64_small("rewrite", Way::Write, 14_787.0, 21.16),
        rock64_small("random write", Way::Write, 10_639.0, 20.10),
    ],
};

/// Megabytes a second of so many requests of 4 KiB.
const fn iops(requests: f64) -> f64 {
    requests * SMALL as f64 / 1e6
}

/// A column of the Rock64 from its KiB a second and its load, of which 25 % is one core.
const fn rock64(name: &'static str, way: Way, kibibytes: f64, load: f64) -> Row {
    let microseconds = load / 25.0 * 1024.0 * 1e6 / kibibytes;
    row(name, way, kibibytes * 1024.0 / 1e6, microseconds)
}

/// The same for 4 KiB. A load above one core counts as one: only that much is on the way of a request.
const fn rock64_small(name: &'static str, way: Way, kibibytes: f64, load: f64) -> Row {
    let share = if load > 25.0 { 1.0 } else { load / 25.0 };
    let microseconds = share * 4.0 * 1e6 / kibibytes;
    row(name, way, kibibytes * 1024.0 / 1e6, microseconds)
}
