//! The figures, each with what it may be at most.

use anyhow::{Context, Result};

use super::runs::{IDLE, Runs};
use super::sample::{Report, Sample, cost_of_waiting, without_waiting};
use super::traffic::Traffic;

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The heading that it stands under.
    pub part: Part,
    /// What was measured.
    pub what: String,
    /// How much it was.
    pub value: f64,
    /// In what.
    pub unit: &'static str,
    /// Where it may be, where somebody has said so.
    pub limit: Option<Limit>,
}

/// Where a figure may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Not above this.
    AtMost(f64),
    /// Not below this.
    AtLeast(f64),
}

/// What a figure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Instructions of a request.
    Cost,
    /// Instructions of a poll that finds nothing.
    Poll,
    /// Accesses to the controller's registers.
    Traffic,
    /// Bytes that were moved by the processor.
    Copies,
    /// From the start of the host to the first block.
    Arrival,
    /// Memory.
    Memory,
    /// Everything of an EHCI.
    Ehci,
    /// Everything of a UAS disk.
    Uas,
    /// By the clock, beside U-Boot.
    Beside,
    /// By the clock of the plain emulator.
    Time,
}

impl Figure {
    pub(super) fn new(part: Part, what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            part,
            what: what.into(),
            value,
            unit,
            limit: None,
        }
    }

    pub(super) fn at_most(self, limit: f64) -> Self {
        Self {
            limit: Some(Limit::AtMost(limit)),
            ..self
        }
    }

    pub(super) fn at_least(self, limit: f64) -> Self {
        Self {
            limit: Some(Limit::AtLeast(limit)),
            ..self
        }
    }

    /// Whether it is on the wrong side of its limit.
    pub fn misses(&self) -> bool {
        match self.limit {
            None => false,
            Some(Limit::AtMost(limit)) => self.value > limit,
            Some(Limit::AtLeast(limit)) => self.value < limit,
        }
    }
}

/// The figures of an xHCI, in the order of the table.
///
/// # Errors
///
/// When a run has not brought what it should.
pub fn all(runs: &Runs) -> Result<Vec<Figure>> {
    let parts = [
        cost(runs)?,
        polls(runs)?,
        accesses(runs)?,
        copies(runs)?,
        arrival(&runs.coherent, "SuperSpeed", &SUPER_SPEED_DELAYS)?,
        arrival(&runs.high_speed, "high speed", &HIGH_SPEED_DELAYS)?,
        memory(runs)?,
        times(&runs.timed)?,
    ];
    Ok(parts.concat())
}

/// Loads whose cost has a limit: name, what it is, the limit.
const COHERENT_LIMITS: [(&str, &str, f64); 4] = [
    ("rr4k.1", "4 KiB random read", 1_600.0),
    ("rr4k-owned.1", "4 KiB random read, owned buffer", 1_600.0),
    ("sr1m.1", "1 MiB read", 4_000.0),
    ("sr1m-owned.1", "1 MiB read, owned buffer", 4_000.0),
];
const MAINTAINED_LIMITS: [(&str, &str, f64); 5] = [
    ("rr4k.1", "4 KiB random read", 1_600.0),
    (
        "sr1m.1",
        "1 MiB read, borrowed buffer, both passes",
        80_000.0,
    ),
    (
        "sr1m-owned.1",
        "1 MiB read, owned buffer untouched since its last invalidate",
        42_000.0,
    ),
    ("sw1m.1", "1 MiB write", 42_000.0),
    ("sw1m-owned.1", "1 MiB write, owned buffer", 42_000.0),
];
/// The load that a slower disk tells the cost of waiting by, through the blocking face.
pub(super) const WAITING: &str = "rr4k.1";
/// The same through the queue face, whose caller looks for completions after each poll.
pub(super) const WAITING_OWNED: &str = "rr4k-owned.1";
/// The blocking face waits once before it polls.
pub(super) const BARE_WAITS: f64 = 1.0;
/// Loads without a limit of their own.
const COHERENT_OTHERS: [(&str, &str); 4] = [
    ("rw4k.1", "4 KiB random write"),
    ("rr4k.8", "4 KiB random read, 8 requests in the queue"),
    ("rr4k.32", "4 KiB random read, 32 requests in the queue"),
    ("sw1m.1", "1 MiB write"),
];

fn cost(runs: &Runs) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let figure = |way: &str, what: &str, value| {
        Figure::new(Part::Cost, format!("{what}; {way}"), value, "instructions")
    };
    for (name, what, limit) in COHERENT_LIMITS {
        let value = runs.coherent.sample(name)?.each("insn")?;
        figures.push(figure("interrupt, coherent", what, value).at_most(limit));
    }
    for (name, what) in COHERENT_OTHERS {
        let value = runs.coherent.sample(name)?.each("insn")?;
        figures.push(figure("interrupt, coherent", what, value));
    }
    for (name, what, limit) in MAINTAINED_LIMITS {
        let value = runs.maintained.sample(name)?.each("insn")?;
        figures.push(figure("interrupt, cache maintenance", what, value).at_most(limit));
    }
    let (borrowed, owned) = (waiting(runs, WAITING)?, waiting(runs, WAITING_OWNED)?);
    for (name, what, limit) in COHERENT_LIMITS {
        let (waiting, bare) = match name.contains("-owned") {
            true => (owned, 0.0),
            false => (borrowed, BARE_WAITS),
        };
        let value = without_waiting(runs.polled.sample(name)?, waiting, bare)?;
        figures.push(figure("polling, coherent, less empty polls", what, value).at_most(limit));
    }
    let value = runs.small.sample("rr4k.1")?.each("insn")?;
    let what = "4 KiB random read, image built for size";
    figures.push(figure("interrupt, coherent", what, value));
    Ok(figures)
}

/// What an empty poll of a load costs, with its wait.
fn waiting(runs: &Runs, load: &str) -> Result<f64> {
    let [borrowed, owned] = &runs.slow;
    let slow = match load {
        WAITING_OWNED => owned,
        _ => borrowed,
    };
    cost_of_waiting(runs.polled.sample(load)?, slow.sample(load)?)
}

fn polls(runs: &Runs) -> Result<Vec<Figure>> {
    let poll = |report: &Report| -> Result<f64> { report.sample("poll.1")?.each("insn") };
    let (alone, crowded) = (poll(&runs.polled)?, poll(&runs.crowded)?);
    let waiting = waiting(runs, WAITING)?;
    let figure = |what, value| Figure::new(Part::Poll, what, value, "instructions");
    let asleep = poll(&runs.coherent)?;
    Ok(vec![
        figure("empty poll, one controller", alone).at_most(60.0),
        figure(
            "empty poll with its wait, while a transfer is under way",
            waiting,
        )
        .at_most(60.0),
        figure("empty poll, one controller with interrupts", asleep).at_most(60.0),
        figure(
            "more for each idle controller",
            (crowded - alone) / IDLE as f64,
        )
        .at_most(15.0),
    ])
}

fn accesses(runs: &Runs) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let ways = [
        ("interrupt", &runs.coherent, &runs.asleep_traffic),
        ("polling", &runs.polled, &runs.polled_traffic),
    ];
    for (way, report, traffic) in ways {
        for (name, what) in [("rr4k.1", "4 KiB random read"), ("sr1m.1", "1 MiB read")] {
            let count = report.sample(name)?.value("n")?.max(1) as f64;
            let traffic = traffic.get(name).copied();
            let traffic = traffic.with_context(|| format!("the trace does not show {name}"))?;
            let limited = name == "rr4k.1";
            figures.extend(traffic_figures(
                &format!("{what}; {way}"),
                traffic,
                count,
                limited,
            ));
        }
    }
    Ok(figures)
}

fn traffic_figures(what: &str, traffic: Traffic, count: f64, limited: bool) -> [Figure; 4] {
    let figure = |kind: &str, value: u64, unit| {
        let what = format!("{what}: {kind}");
        Figure::new(Part::Traffic, what, value as f64 / count, unit)
    };
    let limit = |figure: Figure, most| match limited {
        true => figure.at_most(most),
        false => figure,
    };
    [
        limit(figure("registers written", traffic.writes, "writes"), 4.0),
        limit(figure("registers read", traffic.reads, "reads"), 0.0),
        figure("doorbells among the writes", traffic.doorbells, "writes"),
        figure("interrupts", traffic.interrupts, "interrupts"),
    ]
}

/// Over all loads of the run with cache maintenance, where ends of buffers could be bounced.
fn copies(runs: &Runs) -> Result<Vec<Figure>> {
    let loads = || {
        let loads = runs.maintained.samples().iter();
        loads.filter(|load| load.value("copied").is_ok())
    };
    let sum = |key: &str| {
        loads()
            .map(|load: &Sample| load.value(key))
            .sum::<Result<u64>>()
    };
    let figure =
        |what, value: u64, unit| Figure::new(Part::Copies, what, value as f64, unit).at_most(0.0);
    Ok(vec![
        figure(
            "requests with copied data, all loads",
            sum("copied")?,
            "requests",
        ),
        figure(
            "bytes through the bounce area, all loads",
            sum("bounced")?,
            "bytes",
        ),
    ])
}

/// What a specification makes a host wait, in milliseconds.
type Delays = [(&'static str, f64)];

const SUPER_SPEED_DELAYS: [(&str, f64); 2] = [
    ("recovery after the reset, USB 2.0 §7.1.7.5", 10.0),
    ("recovery after SET_ADDRESS, USB 2.0 §9.2.6.3", 2.0),
];
const HIGH_SPEED_DELAYS: [(&str, f64); 4] = [
    ("debounce, USB 2.0 §7.1.7.3", 100.0),
    ("reset of a root port, USB 2.0 §7.1.7.5", 50.0),
    SUPER_SPEED_DELAYS[0],
    SUPER_SPEED_DELAYS[1],
];

/// Milestones of the image, and what was done since the one before.
const STAGES: [(&str, &str); 7] = [
    ("running", "the controller is reset and runs"),
    ("connected", "the port shows a device"),
    ("enumerating", "debounce"),
    ("described", "reset, address, descriptors"),
    ("configured", "configuration"),
    ("ready", "SCSI bring-up"),
    ("read", "the first block is read"),
];

fn arrival(report: &Report, speed: &str, delays: &Delays) -> Result<Vec<Figure>> {
    let figure = |what: String, value| {
        let what = format!("{what}; {speed}");
        Figure::new(Part::Arrival, what, value, "ms")
    };
    let mut figures = Vec::new();
    let mut before = 0.0;
    for (name, what) in STAGES {
        let at = report
            .marker("reached", "what", name)?
            .number::<f64>("microseconds")?
            / 1_000.0;
        figures.push(figure(what.to_owned(), at - before));
        before = at;
    }
    let owed: f64 = delays.iter().map(|(_, milliseconds)| milliseconds).sum();
    figures.push(figure("in all".into(), before));
    for (what, milliseconds) in delays {
        figures.push(figure(format!("owed: {what}"), *milliseconds));
    }
    figures.push(figure("in all, less what is owed".into(), before - owed).at_most(100.0));
    Ok(figures)
}

fn memory(runs: &Runs) -> Result<Vec<Figure>> {
    let figure = |what: &str, bytes: u64| Figure::new(Part::Memory, what, bytes as f64, "bytes");
    let weights = &runs.weights;
    let weight = weights.xhci;
    let pool = runs.coherent.number("memory", "pool")?;
    let scratchpads = runs.coherent.number("memory", "scratchpads")?;
    let all = pool - scratchpads + weight.tables;
    Ok(vec![
        figure("text, xHCI and Bulk-Only, built for size", weight.text).at_most(65_536.0),
        figure(
            "text, EHCI and Bulk-Only, for the H3 boards (Thumb)",
            weights.ehci.text,
        )
        .at_most(49_152.0),
        figure(
            "text, EHCI and Bulk-Only, for 64-bit ARM",
            weights.ehci_64_bit.text,
        ),
        figure(
            "text, xHCI, EHCI, Bulk-Only, UAS and rare requests",
            weights.all.text,
        )
        .at_most(114_688.0),
        figure("constants, xHCI and Bulk-Only", weight.constants),
        figure("constants, all", weights.all.constants),
        figure("coherent pool at most, scratchpads included", pool),
        figure("scratchpads among them", scratchpads),
        figure("tables for one controller and one disk", weight.tables),
        figure("memory beyond scratchpads and buffers", all).at_most(49_152.0),
    ])
}

/// Ticks of the machine's timer in a microsecond.
pub(super) const TICKS: f64 = 62.5;

fn times(report: &Report) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for load in report
        .samples()
        .iter()
        .filter(|load| load.value("bytes").is_ok_and(|bytes| bytes != 0))
    {
        let microseconds = load.value("cnt")?.max(1) as f64 / TICKS;
        let rate = load.value("bytes")? as f64 / microseconds;
        figures.push(Figure::new(Part::Time, &load.name, rate, "MB/s"));
        let each = microseconds / load.value("n")?.max(1) as f64;
        figures.push(Figure::new(Part::Time, &load.name, each, "µs a request"));
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(lines: &str) -> Report {
        let mut report = Report::default();
        lines.lines().for_each(|line| report.take(line).unwrap());
        report
    }

    #[test]
    fn only_a_figure_on_the_wrong_side_of_its_limit_misses() {
        let figure = Figure::new(Part::Poll, "x", 60.0, "instructions");
        assert!(!figure.misses());
        assert!(!figure.clone().at_most(60.0).misses());
        assert!(figure.clone().at_most(59.9).misses());
        assert!(!figure.clone().at_least(60.0).misses());
        assert!(figure.at_least(60.1).misses());
    }

    #[test]
    fn an_arrival_is_itemised_and_weighed_against_what_is_owed() {
        let lines: String = STAGES
            .iter()
            .zip(1..)
            .map(|((name, _), time)| {
                format!("@reached what={name} microseconds={}\n", time * 20_000)
            })
            .collect();
        let figures = arrival(&report(&lines), "SuperSpeed", &SUPER_SPEED_DELAYS).unwrap();
        let last = figures.last().unwrap();
        assert_eq!(last.value, 140.0 - 12.0);
        assert!(last.misses());
        assert!(
            figures
                .iter()
                .any(|figure| figure.what == "debounce; SuperSpeed")
        );
    }
}
