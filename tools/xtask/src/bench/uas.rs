//! What a UAS disk costs: with streams on an xHCI, without them on an EHCI.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::figures::{Figure, Part};
use super::runs::{COUNTED, Run};
use super::sample::Report;
use super::traffic::Traffic;
use crate::board::Board;

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
const MEMORY: f64 = 163_840.0;

/// All runs with a UAS disk.
#[derive(Debug)]
pub struct Runs {
    streams: Report,
    traffic: BTreeMap<String, Traffic>,
    ehci: Report,
}

impl Runs {
    /// Performs the runs on `virt`.
    ///
    /// # Errors
    ///
    /// At the first run that fails.
    pub fn perform(virt: &Board, image: &Path) -> Result<Self> {
        let run = |what: &str| Run::new(virt, format!("UAS, {what}"), image).attached();
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
        let pool = self.streams.number("memory", "pool")? as f64;
        let what = "coherent pool at most, one controller, 14 commands of 1 MiB";
        figures.push(Figure::new(Part::Uas, what, pool, "bytes").at_most(MEMORY));
        Ok(figures)
    }

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
