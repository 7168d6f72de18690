//! UAS on the timed models: several commands in flight, on the bus's own time.
//!
//! The host takes some time between a completion and the next command: that of the instructions that a
//! read was measured to cost, on a core of 1.2 GHz with one instruction a cycle.

use rootport::host::xhci::{Interrupts, Options};
use rootport::policy::Policy;
use rootport::time::Duration;
use rootport_models::device::UasScript;
use rootport_models::device::scsi::{LogicalUnit, Timing};

use super::wire::{Bench, Bus, megabytes_a_second, quick};
use super::{HIGH_SPEED, SUPER_SPEED};

/// Nanoseconds of the instructions of a read of 4 KiB at depth, rounded up (`docs/performance.md`).
fn reaction(bus: Bus) -> u64 {
    let instructions = match bus {
        Bus::XhciHigh | Bus::Super { .. } => 1_800,
        Bus::Ehci => 3_000,
    };
    instructions * 10 / 12
}

/// Commands in flight.
const DEPTH: u64 = 8;

/// With streams, and bursts of 16 packets.
const SUPER: Bus = Bus::Super { burst: 15 };

pub(crate) fn bench(bus: Bus, policy: Policy, options: Options, timing: Timing) -> Bench {
    let mut bench = Bench::with(bus, policy, options, |link, burst| {
        let unit = LogicalUnit::disk(1 << 20, 512).timing(timing);
        UasScript::new().speed(link).burst(burst).unit(unit).build()
    });
    assert_eq!(bench.usage(), "uas");
    bench.pause = reaction(bus);
    bench
}

/// Megabytes a second of reads in a row, in commands of so many bytes.
fn sequential_read(bus: Bus, command: usize) -> f64 {
    let policy = Policy {
        transfer_high: command as u32,
        depth: DEPTH as u8,
        ..Policy::DEFAULT
    };
    let mut bench = bench(bus, policy, Options::default(), quick());
    megabytes_a_second(bench.read_at_depth(command, DEPTH, 64))
}

/// What nobody could be faster than: the packets of the data and of the command's units, back to back.
fn ideal(bus: Bus, command: usize) -> f64 {
    let bytes = command as f64;
    let (packet, limit, time) = match bus {
        // Nanoseconds of a packet: 7500 bytes in 125 µs with 55 of overhead; its READY goes too.
        Bus::XhciHigh | Bus::Ehci => {
            let time = |bytes: f64| (bytes + 55.0) * 125_000.0 / 7_500.0;
            (
                512.0,
                HIGH_SPEED,
                time(512.0) * bytes / 512.0 + time(32.0) + time(4.0) + time(16.0),
            )
        }
        // Two a symbol, 56 symbols of overhead.
        Bus::Super { .. } => {
            let time = |bytes: f64| (bytes + 56.0) * 2.0;
            (
                1024.0,
                SUPER_SPEED,
                time(1024.0) * bytes / 1024.0 + time(32.0) + time(16.0),
            )
        }
    };
    assert!(bytes >= packet);
    (bytes * 1e3 / time).min(limit)
}

/// Each figure that has a limit: its name, the bus, the bytes of a command, the limit.
fn goals() -> [(&'static str, Bus, usize, f64); 5] {
    [
        (
            "SuperSpeed with streams",
            SUPER,
            128 << 10,
            0.95 * SUPER_SPEED,
        ),
        (
            "high speed on xHCI",
            Bus::XhciHigh,
            128 << 10,
            0.9 * HIGH_SPEED,
        ),
        (
            "high speed on xHCI",
            Bus::XhciHigh,
            512 << 10,
            0.95 * HIGH_SPEED,
        ),
        ("high speed on EHCI", Bus::Ehci, 128 << 10, 0.9 * HIGH_SPEED),
        (
            "high speed on EHCI",
            Bus::Ehci,
            512 << 10,
            0.95 * HIGH_SPEED,
        ),
    ]
}

#[test]
fn a_uas_disk_reads_at_95_percent_of_superspeed_and_at_90_and_95_of_high_speed() {
    for (name, bus, command, limit) in goals() {
        let reached = sequential_read(bus, command);
        assert!(reached >= limit, "{name}, {command}: {reached:.1} MB/s");
        let ideal = ideal(bus, command);
        assert!(
            reached <= ideal * 1.001,
            "{name}: {reached:.1} of {ideal:.1}"
        );
    }
}

/// NumP and bursts that end early, as in `main`, with streams.
#[test]
fn a_uas_disk_that_moves_few_packets_at_once_reads_as_fast_as_these_allow() {
    let rate = |burst: u8, at_once: u32| {
        let bus = Bus::Super { burst };
        let options = Options::default();
        let mut bench = Bench::with(bus, Policy::DEFAULT, options, |link, burst| {
            let unit = LogicalUnit::disk(1 << 20, 512).timing(quick());
            let script = UasScript::new().speed(link).burst(burst).unit(unit);
            script.packets_at_once(at_once).build()
        });
        megabytes_a_second(bench.read_at_depth(128 << 10, DEPTH, 32))
    };
    let (one, all) = (rate(15, 1), rate(15, 16));
    assert!(one * 1.5 < all, "{one:.1} {all:.1}");
    assert!((one / rate(0, 16) - 1.0).abs() < 0.01);
}

/// Interrupts for a completion of a small read, with as many in flight as there are tags.
fn interrupts_a_completion(moderation: Duration) -> f64 {
    let options = Options {
        interrupts: Interrupts::Wired,
        moderation,
        ..Options::default()
    };
    let mut bench = bench(SUPER, Policy::DEFAULT, options, quick());
    let before = bench.interrupts();
    bench.read_at_depth(4096, 16, 400);
    (bench.interrupts() - before) as f64 / 400.0
}

/// Moderation that suits many small requests.
const MODERATION: Duration = Duration::from_micros(50);

#[test]
fn with_moderation_an_interrupt_tells_of_four_completions_or_more() {
    let share = interrupts_a_completion(MODERATION);
    assert!(share > 0.0 && share <= 0.25, "{share:.2} a completion");
}

/// Prints what `cargo xtask bench` takes over.
#[test]
fn the_table_of_uas_is_printed() {
    println!("### Sequential reads of a UAS disk, {DEPTH} commands in flight\n");
    println!("| bus, bytes a command | MB/s | at least | ideal schedule | |");
    println!("|---|---:|---:|---:|---|");
    for (name, bus, command, limit) in goals() {
        let reached = sequential_read(bus, command);
        let verdict = if reached >= limit {
            "reached"
        } else {
            "**missed**"
        };
        println!(
            "| {name}, {} KiB | {reached:.1} | {limit:.1} | {:.1} | {verdict} |",
            command >> 10,
            ideal(bus, command),
        );
    }
    let share = interrupts_a_completion(MODERATION);
    println!(
        "| interrupts a completion, 4 KiB, 16 requests, moderation {} µs | {share:.2} | at most 0.25 | | {} |",
        MODERATION.as_micros(),
        if share <= 0.25 {
            "reached"
        } else {
            "**missed**"
        },
    );
}
