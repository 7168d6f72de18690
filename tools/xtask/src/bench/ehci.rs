//! What an EHCI costs: in the machine `virt`, and on an H3 board that its own U-Boot has started.
//!
//! QEMU's EHCI looks at its schedules by a timer, so that only counts mean something here.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::figures::{BARE_WAITS, Figure, Part};
use super::runs::{COUNTED, COUNTED_AWAKE, FAST, IDLE, Run};
use super::sample::{Report, cost_of_waiting, without_waiting};
use super::traffic::Traffic;
use super::weight::{self, Weight};
use crate::board::{self, Board};
use crate::image;

/// The board that is measured beside [`super::BOARD`]. Its controllers are four.
pub(super) const BOARD: &str = "orangepi-pc";
const CONTROLLERS: f64 = 4.0;
/// One load: a thousand reads of 4 KiB take a second each way.
const LOAD: &str = "rr4k.1";
const WORDS: &str = "rootport.only=rr4k.1";

/// How the core waits, and who keeps its caches in step.
const ASLEEP: &str = "rootport.wait=asleep rootport.dma=coherent";
const POLLED: &str = "rootport.wait=polling rootport.dma=coherent";
/// Polled with pauses: QEMU's EHCI takes so long that a core which never sleeps would do nothing but
/// look, some thousand times for each request.
const DOZING: &str = "rootport.wait=dozing rootport.dma=coherent";
const MAINTAINED: &str = "rootport.wait=asleep rootport.dma=maintained";

/// How instructions are counted on an H3: its U-Boot hangs where one takes a nanosecond; eight are no
/// less exact.
const BOARD_CLOCK: [&str; 2] = ["-icount", "shift=3"];

/// Policy: 2,500 instructions for a request, 60 for an empty poll and 15 more for each controller.
const REQUEST: f64 = 2_500.0;
const POLL: f64 = 60.0;
const POLL_MORE: f64 = 15.0;
/// Memory beyond buffers.
const MEMORY: f64 = 24_576.0;

/// What the runs on one machine brought.
#[derive(Debug)]
pub struct Machine {
    name: &'static str,
    asleep: Report,
    polled: Report,
    /// As `polled`, with a slower disk.
    slow: Report,
    maintained: Report,
    asleep_traffic: BTreeMap<String, Traffic>,
    polled_traffic: BTreeMap<String, Traffic>,
}

/// All runs with an EHCI.
#[derive(Debug)]
pub struct Runs {
    virt: Machine,
    /// `virt`, polling, beside [`IDLE`] idle controllers.
    crowded: Report,
    board: Machine,
    /// The smallest image with an EHCI.
    weight: Weight,
}

impl Runs {
    /// Builds what is missing and performs the runs; `image` is that of `virt`.
    ///
    /// # Errors
    ///
    /// At the first run that fails.
    pub fn perform(virt: &Board, image: &Path) -> Result<Self> {
        let board = board::named(BOARD)?;
        let board_image = image::build_flavour(&board, &FAST)?;
        let choice = board.emulation()?.controller(None)?;
        let on_virt = |what: String| Run::new(virt, what, image).controller("usb-ehci,id=usb");
        let on_board = |what: String| Run::new(&board, what, &board_image).on(choice);
        Ok(Self {
            virt: Machine::perform("virt", &COUNTED, on_virt)?,
            crowded: on_virt("virt, EHCI, beside idle controllers".into())
                .words(&format!("{WORDS} {POLLED}"))
                .with(&COUNTED_AWAKE)
                .with(&["-device", "usb-ehci"].repeat(IDLE))
                .report()?,
            board: Machine::perform(BOARD, &BOARD_CLOCK, on_board)?,
            weight: weight::weigh(virt, &["footprint/ehci"])?,
        })
    }

    /// The figures.
    ///
    /// # Errors
    ///
    /// When a run has not brought what it should.
    pub fn figures(&self) -> Result<Vec<Figure>> {
        let parts = [
            self.virt.figures()?,
            self.board.figures()?,
            self.polls()?,
            self.memory()?,
        ];
        Ok(parts.concat())
    }

    fn polls(&self) -> Result<Vec<Figure>> {
        let poll = |report: &Report| -> Result<f64> { report.sample("poll.1")?.each("insn") };
        let figure = |what: &str, value| Figure::new(Part::Ehci, what, value, "instructions");
        let (alone, crowded) = (poll(&self.virt.polled)?, poll(&self.crowded)?);
        let more = (crowded - alone) / IDLE as f64;
        let board = poll(&self.board.polled)?;
        Ok(vec![
            figure("empty poll, one controller; virt", alone).at_most(POLL + POLL_MORE),
            figure("empty poll, more for each idle controller; virt", more).at_most(POLL_MORE),
            figure("empty poll, eight controllers; virt", crowded)
                .at_most(POLL + (IDLE + 1) as f64 * POLL_MORE),
            figure(
                "empty poll, the chip's four controllers; orangepi-pc",
                board,
            )
            .at_most(POLL + CONTROLLERS * POLL_MORE),
        ])
    }

    fn memory(&self) -> Result<Vec<Figure>> {
        let figure = |what: &str, bytes: u64| Figure::new(Part::Ehci, what, bytes as f64, "bytes");
        let pool = self.virt.polled.number("memory", "pool")?;
        let bounce = self.virt.polled.number("memory", "bounce")?;
        let tables = self.weight.tables;
        Ok(vec![
            figure("coherent pool at most, one controller and one disk", pool),
            figure("buffers for the ends of data among them", bounce),
            figure("tables for one controller and one disk", tables),
            figure("memory beyond buffers", pool - bounce + tables).at_most(MEMORY),
        ])
    }
}

impl Machine {
    fn perform<'r>(
        name: &'static str,
        clock: &[&str],
        run: impl Fn(String) -> Run<'r>,
    ) -> Result<Self> {
        let run = |way: &str, words| {
            run(format!("{name}, EHCI, {way}")).words(&format!("{WORDS} {words}"))
        };
        Ok(Self {
            name,
            asleep: run("asleep", ASLEEP).with(clock).report()?,
            polled: run("polling", DOZING).with(clock).report()?,
            slow: run("polling, slow disk", DOZING)
                .slow()
                .with(clock)
                .report()?,
            maintained: run("with cache maintenance", MAINTAINED)
                .with(clock)
                .report()?,
            asleep_traffic: run("traced, asleep", ASLEEP).traffic()?,
            polled_traffic: run("traced, polling", DOZING).traffic()?,
        })
    }

    fn figures(&self) -> Result<Vec<Figure>> {
        let name = self.name;
        let cost = |way: &str, value: f64| {
            let what = format!("4 KiB random read; {way}; {name}");
            Figure::new(Part::Ehci, what, value, "instructions").at_most(REQUEST)
        };
        let asleep = self.asleep.sample(LOAD)?.each("insn")?;
        let (fast, slow) = (self.polled.sample(LOAD)?, self.slow.sample(LOAD)?);
        let polled = without_waiting(fast, cost_of_waiting(fast, slow)?, BARE_WAITS)?;
        let maintained = self.maintained.sample(LOAD)?.each("insn")?;
        let mut figures = vec![
            cost("interrupt, coherent", asleep),
            cost("interrupt, cache maintenance", maintained),
            cost("polling, coherent, less the waiting", polled),
        ];
        figures.extend(self.accesses("interrupt", &self.asleep, &self.asleep_traffic, 1.0)?);
        figures.extend(self.accesses("polling", &self.polled, &self.polled_traffic, 0.0)?);
        Ok(figures)
    }

    fn accesses(
        &self,
        way: &str,
        report: &Report,
        traffic: &BTreeMap<String, Traffic>,
        most: f64,
    ) -> Result<[Figure; 3]> {
        let count = report.sample(LOAD)?.value("n")?.max(1) as f64;
        let traffic = traffic.get(LOAD).copied();
        let traffic = traffic.with_context(|| format!("the trace does not show {LOAD}"))?;
        let figure = |kind: &str, value: u64, unit| {
            let what = format!("4 KiB random read; {way}; {}: {kind}", self.name);
            Figure::new(Part::Ehci, what, value as f64 / count, unit)
        };
        Ok([
            figure("registers written", traffic.writes, "writes").at_most(most),
            figure("registers read", traffic.reads, "reads").at_most(most),
            figure(
                "doorbells to wake an idle schedule",
                traffic.doorbells,
                "doorbells",
            ),
        ])
    }
}
