//! How fast disks are on the timed models: what the buses allow, and the figures that people
//! published for real bridges, beside ours.
//!
//! Time is the models': packets, bursts, microframes, and a disk's own pace. The host's instructions
//! take none here; they are counted elsewhere (`docs/performance.md`). `cargo xtask bench` prints the
//! table and puts it into that document.

mod published;
mod published_uas;
mod uas;
mod wire;

use published::{BANANA_PI, Bridge, ROCK64};
use rootport::host::xhci::Options;
use rootport::policy::Policy;
use rootport_models::device::Script;
use rootport_models::device::scsi::LogicalUnit;
use wire::{Bench, Bus, megabytes_a_second};

/// Megabytes a second of 13 packets of 512 bytes in each microframe (USB 2.0 §5.8.4).
const HIGH_SPEED: f64 = 53.248;
/// Megabytes a second of SuperSpeed with bursts: 1024 bytes in 2.16 µs.
const SUPER_SPEED: f64 = 474.0;

/// Lengths of sequential reads: the usual transfer limits below and at SuperSpeed (`Policy`).
const SHORT: usize = 120 << 10;
const LONG: usize = 1 << 20;

fn sequential_read(bus: Bus, record: usize) -> f64 {
    let mut bench = Bench::new(bus, wire::quick());
    megabytes_a_second(bench.read(record, 16))
}

#[test]
fn a_bulk_only_disk_at_high_speed_reads_at_85_percent_of_the_bus() {
    for bus in [Bus::XhciHigh, Bus::Ehci] {
        let reached = sequential_read(bus, SHORT);
        assert!(reached >= 0.85 * HIGH_SPEED, "{bus:?}: {reached:.1} MB/s");
        assert!(reached < HIGH_SPEED, "{bus:?}: {reached:.1} MB/s");
    }
}

#[test]
fn a_bulk_only_disk_at_superspeed_reads_at_90_percent_of_the_bus_with_bursts_and_a_third_less_without()
 {
    let reached = sequential_read(Bus::Super { burst: 15 }, LONG);
    assert!(reached >= 0.9 * SUPER_SPEED, "{reached:.1} MB/s");
    assert!(reached < SUPER_SPEED + 1.0, "{reached:.1} MB/s");
    let alone = sequential_read(Bus::Super { burst: 0 }, LONG);
    assert!(
        alone <= reached * 2.0 / 3.0,
        "{alone:.1} of {reached:.1} MB/s"
    );
}

/// NumP of what it acknowledges, and bursts that end early (USB 3.2 §8.10): the bus is as fast as with an endpoint that
/// announces no more.
#[test]
fn a_disk_that_moves_fewer_packets_at_once_than_it_announces_is_as_slow_as_one_that_announces_those()
 {
    type Move = fn(&mut Bench) -> wire::Moved;
    let directions: [Move; 2] = [|bench| bench.read(LONG, 4), |bench| bench.write(LONG, 4)];
    for moves in directions {
        let rate = |burst: u8, at_once: u32| {
            let bus = Bus::Super { burst };
            let (policy, options) = (Policy::DEFAULT, Options::default());
            let mut bench = Bench::with(bus, policy, options, |link, burst| {
                let unit = LogicalUnit::disk(1 << 20, 512).timing(wire::quick());
                let script = Script::new().speed(link).burst(burst).unit(unit);
                script.packets_at_once(at_once).build()
            });
            megabytes_a_second(moves(&mut bench))
        };
        let (one, all) = (rate(15, 1), rate(15, 16));
        assert!(one * 1.5 < all, "{one:.1} {all:.1}");
        assert!((one / rate(0, 16) - 1.0).abs() < 0.01);
    }
}

#[test]
fn each_bridge_s_pace_is_fitted_on_its_sequential_reads() {
    for bridge in BANANA_PI.iter().chain([&ROCK64]) {
        let row = &bridge.rows[0];
        assert_eq!(row.name, "read");
        let deviation = row.with_linux(bridge) / row.reported - 1.0;
        assert!(deviation.abs() < 0.02, "{}: {deviation:.3}", bridge.name);
    }
}

#[test]
fn the_other_columns_come_out_within_15_percent_but_for_those_that_are_named() {
    for bridge in BANANA_PI.iter().chain([&ROCK64]) {
        for row in bridge.rows {
            let deviation = row.with_linux(bridge) / row.reported - 1.0;
            let is_within = deviation.abs() <= 0.15;
            assert_eq!(is_within, row.exempt.is_none(), "{row:?}: {deviation:.3}");
        }
    }
}

/// What our stack moves over a bridge is never less than what Linux was seen to.
#[test]
fn our_rows_are_not_below_the_published_ones() {
    for bridge in BANANA_PI.iter().chain([&ROCK64]) {
        for row in bridge.rows {
            let ours = row.ours(bridge);
            assert!(ours >= row.reported, "{row:?}: {ours:.1} MB/s");
        }
    }
}

/// Prints what `cargo xtask bench` takes over: every line of it begins with `#` or `|`.
#[test]
fn the_table_is_printed() {
    println!("### Sequential reads of a Bulk-Only disk\n");
    println!("| bus, bytes a request | MB/s | at least | |");
    println!("|---|---:|---:|---|");
    let line = |what: &str, reached: f64, limit: f64| {
        let verdict = if reached >= limit {
            "reached"
        } else {
            "**missed**"
        };
        println!("| {what} | {reached:.1} | {limit:.1} | {verdict} |");
    };
    let high = 0.85 * HIGH_SPEED;
    line(
        "high speed on xHCI, 120 KiB",
        sequential_read(Bus::XhciHigh, SHORT),
        high,
    );
    line(
        "high speed on EHCI, 120 KiB",
        sequential_read(Bus::Ehci, SHORT),
        high,
    );
    let bursts = sequential_read(Bus::Super { burst: 15 }, LONG);
    line("SuperSpeed, bursts of 16, 1 MiB", bursts, 0.9 * SUPER_SPEED);
    let alone = sequential_read(Bus::Super { burst: 0 }, LONG);
    println!(
        "| SuperSpeed, no bursts, 1 MiB | {alone:.1} | at most {:.1} | {} |",
        bursts * 2.0 / 3.0,
        if alone <= bursts * 2.0 / 3.0 {
            "reached"
        } else {
            "**missed**"
        },
    );
    for bridge in BANANA_PI.iter().chain([&ROCK64]) {
        print_bridge(bridge);
    }
}

fn print_bridge(bridge: &Bridge) {
    println!("### {}\n", bridge.name);
    println!(
        "| Bulk-Only, {}; {:.1} MB/s and {} µs to answer, Linux's CPU time as stated | published MB/s | model \
         with Linux | deviation | ours |",
        bridge.record_words,
        bridge.bytes_per_second as f64 / 1e6,
        bridge.access_microseconds,
    );
    println!("|---|---:|---:|---:|---:|");
    for row in bridge.rows {
        let linux = row.with_linux(bridge);
        let deviation = 100.0 * (linux / row.reported - 1.0);
        println!(
            "| {} ({:.0} µs a command){} | {:.1} | {linux:.1} | {deviation:+.1} % | {:.1} |",
            row.name,
            row.linux_microseconds,
            row.exempt.map(|why| format!(": {why}")).unwrap_or_default(),
            row.reported,
            row.ours(bridge),
        );
    }
    for row in bridge.small_rows {
        println!(
            "| {}, 4 KiB ({:.0} µs a command); no tolerance | {:.1} | {:.1} | | {:.1} |",
            row.name,
            row.linux_microseconds,
            row.reported,
            row.small_with_linux(bridge),
            row.small_ours(bridge),
        );
    }
}
