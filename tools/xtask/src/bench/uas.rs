//! What a UAS disk costs: with streams on an xHCI, without them on an EHCI.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::figures::{Figure, Part};
use super::runs::{COUNTED, Run};
use super::sample::Report;
use super::traffic::Traffic;
use crate::board::Board;
use crate::image::{self, Flavour};

const WORDS: &str = "rootport.wait=asleep rootport.dma=coherent";
const ALONE: &str = "rootport.wait=asleep rootport.dma=coherent rootport.only=rr4k.1";

/// Loads of 4 KiB random reads: name, what it is, the limit. The device takes 14 commands at a time.
const LOADS: [(&str, &str, Option<f64>); 5] = [
    ("rr4k.1", "one at a time", Some(2_200.0)),
    ("rr4k.4", "4 requests in the queue", None),
    ("rr4k.8", "8 requests in the queue", Some(1_500.0)),
    ("rr4k.14", "14 requests in the queue", Some(1_500.0)),
    ("rr4k.32", "32 requests in the queue", None),
];
/// The load whose register accesses are limited.
const DEEP: &str = "rr4k.14";
/// On an EHCI, one at a time.
const EHCI_REQUEST: f64 = 2_500.0;
const WRITES: f64 = 3.5;
/// With 14 commands of 1 MiB in flight; fewer take less.
const MEMORY: f64 = 163_840.0;
/// Depths at which the memory is measured, beside the greatest.
const SHALLOW: [u8; 2] = [4, 8];

/// Numbers of disks that are read from at once, and requests in flight on each.
const DISKS: [usize; 3] = [1, 2, 4];
const DEPTHS: [usize; 4] = [1, 4, 8, 14];
/// From here on a request must not depend on depth or disks any more: the most expensive combination
/// against the cheapest, in percent.
const FLAT_FROM: usize = 8;
const FLAT: f64 = 10.0;

/// The image with room for all of [`DISKS`].
const MANY: Flavour = Flavour {
    name: "-bench-disks",
    profile: "board-fast",
    features: &["bench-disks"],
};

/// All runs with a UAS disk.
#[derive(Debug)]
pub struct Runs {
    streams: Report,
    traffic: BTreeMap<String, Traffic>,
    ehci: Report,
    /// With fewer commands in flight, as in [`SHALLOW`].
    shallow: Vec<Report>,
    /// From several disks at once, as in [`DISKS`].
    spread: Vec<Report>,
}

impl Runs {
    /// Performs the runs on `virt`.
    ///
    /// # Errors
    ///
    /// At the first run that fails.
    pub fn perform(virt: &Board, fast: &Path) -> Result<Self> {
        let run = |what: &str| Run::new(virt, format!("UAS, {what}"), fast).attached(1);
        let many = image::build_flavour(virt, &MANY)?;
        let shallow = |depth: u8| {
            run(&format!("at most {depth} commands in flight"))
                .words(&format!("{ALONE} rootport.depth={depth}"))
                .with(&COUNTED)
                .report()
        };
        let spread = |disks: usize| {
            Run::new(virt, format!("UAS, disks at once: {disks}"), &many)
                // With fewer ports QEMU makes a hub for the last one by itself.
                .controller("qemu-xhci,id=usb,p2=8,p3=8")
                .attached(disks)
                .mode("spread")
                .words(&format!("{WORDS} rootport.disks={disks}"))
                .with(&COUNTED)
                .report()
        };
        Ok(Self {
            streams: run("asleep, coherent")
                .words(WORDS)
                .with(&COUNTED)
                .report()?,
            traffic: run("traced, asleep").words(WORDS).traffic()?,
            ehci: run("EHCI, asleep, coherent")
                .controller("usb-ehci,id=usb")
                .words(ALONE)
                .with(&COUNTED)
                .report()?,
            shallow: SHALLOW.into_iter().map(shallow).collect::<Result<_>>()?,
            spread: DISKS.into_iter().map(spread).collect::<Result<_>>()?,
        })
    }

    /// The figures.
    ///
    /// # Errors
    ///
    /// When a run has not brought what it should.
    pub fn figures(&self) -> Result<Vec<Figure>> {
        let mut figures = Vec::new();
        for (name, what, limit) in LOADS {
            let value = self.streams.sample(name)?.each("insn")?;
            let what = format!("4 KiB random read, {what}; interrupt, coherent");
            let figure = Figure::new(Part::Uas, what, value, "instructions");
            figures.push(match limit {
                Some(limit) => figure.at_most(limit),
                None => figure,
            });
        }
        let value = self.ehci.sample("rr4k.1")?.each("insn")?;
        let what = "4 KiB random read, one at a time, on an EHCI; interrupt, coherent";
        figures.push(Figure::new(Part::Uas, what, value, "instructions").at_most(EHCI_REQUEST));
        figures.extend(self.accesses()?);
        figures.extend(self.flatness()?);
        for (depth, report) in SHALLOW.into_iter().zip(&self.shallow) {
            figures.push(memory(depth, report)?);
        }
        figures.push(memory(14, &self.streams)?.at_most(MEMORY));
        Ok(figures)
    }

    /// Each number of disks at each depth, and how far those are apart that must not be.
    fn flatness(&self) -> Result<Vec<Figure>> {
        let mut figures = Vec::new();
        let mut deep = Vec::new();
        for (disks, report) in DISKS.into_iter().zip(&self.spread) {
            for depth in DEPTHS {
                let value = report.sample(&format!("rr4k.{depth}"))?.each("insn")?;
                let what = format!(
                    "4 KiB random read from {disks} at once, {depth} in flight on each; interrupt"
                );
                figures.push(Figure::new(Part::Uas, what, value, "instructions"));
                if depth >= FLAT_FROM {
                    deep.push(value);
                }
            }
        }
        let what = "the same from depth 8 up: the dearest above the cheapest";
        let apart = Figure::new(Part::Uas, what, apart(&deep), "%");
        figures.push(apart.at_most(FLAT));
        Ok(figures)
    }

    /// Registers at depth.
    fn accesses(&self) -> Result<[Figure; 4]> {
        let count = self.streams.sample(DEEP)?.value("n")?.max(1) as f64;
        let traffic = self.traffic.get(DEEP).copied();
        let traffic = traffic.with_context(|| format!("the trace does not show {DEEP}"))?;
        let figure = |kind: &str, value: u64, unit| {
            let what = format!("4 KiB random read, 14 requests in the queue; interrupt: {kind}");
            Figure::new(Part::Uas, what, value as f64 / count, unit)
        };
        Ok([
            figure("registers written", traffic.writes, "writes").at_most(WRITES),
            figure("registers read", traffic.reads, "reads").at_most(0.0),
            figure("doorbells among the writes", traffic.doorbells, "writes"),
            figure("interrupts", traffic.interrupts, "interrupts"),
        ])
    }
}

fn memory(depth: u8, report: &Report) -> Result<Figure> {
    let pool = report.number("memory", "pool")? as f64;
    let what = format!("coherent pool at most, one controller, {depth} commands of 1 MiB");
    Ok(Figure::new(Part::Uas, what, pool, "bytes"))
}

/// How far the highest of some values is above the lowest, in percent.
fn apart(values: &[f64]) -> f64 {
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = values.iter().copied().fold(0.0, f64::max);
    (highest / lowest - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::apart;

    #[test]
    fn values_are_apart_by_the_highest_above_the_lowest() {
        assert_eq!(apart(&[100.0, 100.0]), 0.0);
        assert_eq!(apart(&[150.0, 100.0, 125.0]), 50.0);
    }
}
