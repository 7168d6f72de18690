//! The time of a request beside U-Boot's, which reads the same disk with drivers of its own.
//!
//! A round boots each way once, so that whatever else the machine does meets all of them; the medians
//! of the rounds are compared. U-Boot is asked by an EFI program (`platforms/beside-u-boot`). All
//! emulators are kept on one processor of this machine: waking a thread on another one takes longer
//! than a request, and how often that happens depends on what else runs.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::figures::{Figure, Part, TICKS};
use super::runs::Run;
use super::sample::Report;
use crate::board::Board;
use crate::image::{Build, build_program};
use crate::progress::Step;
use crate::{toolchain, u_boot};

/// Rounds; the medians of fewer say little.
const ROUNDS: usize = 9;
/// What asks U-Boot for blocks.
pub(crate) const PROGRAM: Build<'static> = Build {
    package: "beside-u-boot",
    target: "aarch64-unknown-uefi",
    profile: "board-fast",
    features: &[],
};
/// Where that lies in the machine's memory: beyond U-Boot's own scratch addresses.
const PROGRAM_START: u64 = 0x4800_0000;
/// What U-Boot prints when it waits for a command line.
const PROMPT: &str = "=> ";
/// Policy: U-Boot is at its prompt in some seconds, on a busy machine in some more.
const PATIENCE: Duration = Duration::from_secs(120);
/// As many requests as the program asks for.
const TIMES: u32 = 10;

/// Ours, in the ways that are timed: what it is, the load, the words, disks over UAS.
const WAYS: [(&str, &str, &str, usize); 4] = [
    ("Bulk-Only, interrupts", "rr4k.1", "rootport.wait=asleep", 0),
    ("Bulk-Only, polling", "rr4k.1", "rootport.wait=polling", 0),
    (
        "UAS, 14 requests in the queue, interrupts",
        "rr4k.14",
        "rootport.wait=asleep",
        1,
    ),
    (
        "UAS, 14 requests in the queue, polling",
        "rr4k.14",
        "rootport.wait=polling",
        1,
    ),
];
/// Places in [`WAYS`].
const BULK_ONLY: usize = 0;
const UAS: usize = 2;

/// Microseconds of a request, one for each round.
#[derive(Debug, Default)]
pub struct Rounds {
    u_boot: Vec<f64>,
    /// As [`WAYS`].
    ours: [Vec<f64>; WAYS.len()],
}

impl Rounds {
    /// Performs the rounds on `virt`; `fast` is the image for speed.
    ///
    /// # Errors
    ///
    /// When U-Boot can't be had, or at the first run that fails.
    pub fn perform(virt: &Board, fast: &Path) -> Result<Self> {
        let core = toolchain::bare_metal_core(&[PROGRAM.target])?;
        let peer = UBoot {
            firmware: u_boot::qemu_arm64()?.display().to_string(),
            program: build_program(&PROGRAM, core)?,
        };
        let mut rounds = Self::default();
        for round in 1..=ROUNDS {
            let step = Step::start(format!("Timing beside U-Boot: round {round} of {ROUNDS}"));
            rounds.u_boot.push(peer.time(virt, fast)?);
            for (way, times) in WAYS.iter().zip(&mut rounds.ours) {
                times.push(ours(virt, fast, way)?);
            }
            step.done();
        }
        Ok(rounds)
    }

    /// The figures.
    ///
    /// # Errors
    ///
    /// When there was no round.
    pub fn figures(&self) -> Result<Vec<Figure>> {
        let mut figures = vec![time("U-Boot, Bulk-Only, polling", &self.u_boot)?];
        for ((what, ..), times) in WAYS.iter().zip(&self.ours) {
            figures.push(time(what, times)?);
        }
        let u_boot = median(&self.u_boot)?;
        let bulk_only = median(&self.ours[BULK_ONLY])?;
        let uas = median(&self.ours[UAS])?;
        let ratio = |what: &str, value| Figure::new(Part::Beside, what, value, "times");
        figures.extend([
            ratio(
                "the time of Bulk-Only with interrupts beside U-Boot's",
                bulk_only / u_boot,
            )
            .at_most(1.05),
            ratio(
                "requests a second of UAS with interrupts beside U-Boot's",
                u_boot / uas,
            )
            .at_least(2.5),
            ratio(
                "requests a second of UAS with interrupts beside our Bulk-Only",
                bulk_only / uas,
            )
            .at_least(2.0),
        ]);
        Ok(figures)
    }
}

/// The median of a way's rounds.
fn time(what: &str, times: &[f64]) -> Result<Figure> {
    let rounds = times.len();
    let what = format!("4 KiB random read; {what}; median of {rounds} rounds");
    let value = median(times)?;
    Ok(Figure::new(Part::Beside, what, value, "µs a request"))
}

/// One boot of ours.
fn ours(virt: &Board, fast: &Path, way: &(&str, &str, &str, usize)) -> Result<f64> {
    let &(what, load, words, attached) = way;
    let run = Run::new(virt, format!("beside U-Boot, {what}"), fast)
        .attached(attached)
        .words(&format!(
            "{words} rootport.dma=coherent rootport.only={load}"
        ))
        .rounds(TIMES)
        .on_one_processor();
    each(&run.listen()?, load)
}

/// Microseconds of a request of one load.
fn each(report: &Report, load: &str) -> Result<f64> {
    Ok(report.sample(load)?.each("cnt")? / TICKS)
}

/// U-Boot, and what asks it for blocks.
struct UBoot {
    firmware: String,
    program: std::path::PathBuf,
}

impl UBoot {
    /// One boot, with the disk of a Bulk-Only run.
    fn time(&self, virt: &Board, fast: &Path) -> Result<f64> {
        let length = fs::metadata(&self.program)?.len();
        let loader = format!(
            "loader,file={},addr={PROGRAM_START:#x},force-raw=on",
            self.program.display()
        );
        let mut machine = Run::new(virt, "U-Boot", fast)
            .on_one_processor()
            .setup()?
            .with(["-bios", &self.firmware, "-device", &loader])
            .start("bench U-Boot")?;
        let console = &mut machine.console;
        console.wait_for("Hit any key", PATIENCE)?;
        console.send("\n")?;
        console.wait_for(PROMPT, PATIENCE)?;
        // Its cache would answer some requests by itself, and costs time at all others.
        console.send(&format!(
            "usb start; blkcache configure 0 0; bootefi {PROGRAM_START:x}:{length:x}\n"
        ))?;
        let deadline = Instant::now() + PATIENCE;
        let mut report = Report::default();
        while !report.has("done") {
            let line = console.next_line(deadline)?;
            report.take(&line.context("U-Boot's machine has ended")?)?;
        }
        each(&report, "rr4k.1")
    }
}

/// The value in the middle.
fn median(values: &[f64]) -> Result<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.get(sorted.len() / 2);
    middle.copied().context("no round was timed")
}

#[cfg(test)]
mod tests {
    use super::{Rounds, median};

    #[test]
    fn a_median_is_not_moved_by_one_slow_round() {
        assert_eq!(median(&[30.0, 28.0, 900.0]).unwrap(), 30.0);
        assert!(median(&[]).is_err());
    }

    #[test]
    fn a_slower_bulk_only_and_a_slower_queue_miss_their_ratios() {
        let rounds = |bulk_only: f64, uas: f64| Rounds {
            u_boot: vec![30.0],
            ours: [vec![bulk_only], vec![99.0], vec![uas], vec![99.0]],
        };
        let missed = |rounds: Rounds| {
            let figures = rounds.figures().unwrap();
            figures.iter().filter(|figure| figure.misses()).count()
        };
        assert_eq!(missed(rounds(31.0, 12.0)), 0);
        assert_eq!(missed(rounds(32.0, 12.0)), 1);
        assert_eq!(missed(rounds(31.0, 15.5)), 1);
        assert_eq!(missed(rounds(31.0, 16.0)), 2);
    }
}
