//! The runs: the bench image, booted in one way after another.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::figures::{WAITING, WAITING_OWNED};
use super::sample::Report;
use super::traffic::{self, Traffic};
use super::weight::{self, Weights};
use super::{Options, ehci};
use crate::board::{self, Board, ControllerChoice};
use crate::image::{self, Flavour};
use crate::progress::Step;
use crate::qemu::Setup;

/// The image that is measured: for speed.
pub(super) const FAST: Flavour = Flavour {
    name: "-bench",
    profile: "board-fast",
    features: &["bench"],
};
/// The same for size, as boards are built.
const SMALL: Flavour = Flavour {
    name: "-bench-small",
    profile: "board",
    features: &["bench"],
};

/// What is behind the disk: no host file is in the figures.
const NOTHING: &str = "driver=null-co,size=536870912,read-zeroes=on";
/// One instruction is one nanosecond. QEMU counts INST_RETIRED only so. Where the core sleeps, the
/// clock follows the host's: with `sleep=off` it would leap to the next deadline instead, and
/// commands would time out.
pub(super) const COUNTED: [&str; 2] = ["-icount", "shift=0"];
/// The same for a core that never sleeps.
pub(super) const COUNTED_AWAKE: [&str; 2] = ["-icount", "shift=0,sleep=off"];
/// Idle controllers of the run that has some.
pub const IDLE: usize = 7;
/// How many times the loads' shortest length a timed run has.
const LONG: u32 = 10;
/// Policy: the longest load takes seconds, on a busy machine a minute.
const PATIENCE: Duration = Duration::from_secs(300);

/// What all runs brought.
#[derive(Debug)]
pub struct Runs {
    /// Asleep until the interrupt, hardware-coherent.
    pub coherent: Report,
    /// Asleep until the interrupt, with cache maintenance.
    pub maintained: Report,
    /// Polling, hardware-coherent.
    pub polled: Report,
    /// As `polled`, with a slower disk: one load through each face, whose loops wait at a cost of their own.
    pub slow: [Report; 2],
    /// Polling, beside [`IDLE`] idle controllers.
    pub crowded: Report,
    /// As `coherent`, built for size.
    pub small: Report,
    /// As `coherent`, behind ports without SuperSpeed.
    pub high_speed: Report,
    /// Register accesses, asleep until the interrupt.
    pub asleep_traffic: BTreeMap<String, Traffic>,
    /// Register accesses, polling.
    pub polled_traffic: BTreeMap<String, Traffic>,
    /// By the clock: polling, with cache maintenance.
    pub timed: Report,
    /// The smallest images.
    pub weights: Weights,
}

impl Runs {
    /// Builds what is missing and performs all runs of an xHCI; `fast` is the image for speed.
    ///
    /// # Errors
    ///
    /// At the first run that fails.
    pub fn perform(board: &Board, fast: &Path, options: Options) -> Result<Self> {
        let small = image::build_flavour(board, &SMALL)?;
        let weights = weight::weigh_all(board, &board::named(ehci::BOARD)?)?;
        let long = if options.quick { 1 } else { LONG };
        let slow = |load: &str| {
            Run::new(board, format!("polling, coherent, slow disk, {load}"), fast)
                .words(&format!(
                    "rootport.wait=polling rootport.dma=coherent rootport.only={load}"
                ))
                .slow()
                .with(&COUNTED_AWAKE)
                .report()
        };
        Ok(Self {
            coherent: Run::new(board, "asleep, coherent", fast)
                .words("rootport.wait=asleep rootport.dma=coherent")
                .with(&COUNTED)
                .report()?,
            maintained: Run::new(board, "asleep, with cache maintenance", fast)
                .words("rootport.wait=asleep rootport.dma=maintained")
                .with(&COUNTED)
                .report()?,
            polled: Run::new(board, "polling, coherent", fast)
                .words("rootport.wait=polling rootport.dma=coherent")
                .with(&COUNTED_AWAKE)
                .report()?,
            slow: [slow(WAITING)?, slow(WAITING_OWNED)?],
            crowded: Run::new(board, "polling, beside idle controllers", fast)
                .words("rootport.wait=polling rootport.dma=coherent")
                .with(&COUNTED_AWAKE)
                .with(&["-device", "qemu-xhci"].repeat(IDLE))
                .report()?,
            small: Run::new(board, "asleep, coherent, built for size", &small)
                .words("rootport.wait=asleep rootport.dma=coherent")
                .with(&COUNTED)
                .report()?,
            high_speed: Run::new(board, "asleep, coherent, high speed", fast)
                .words("rootport.wait=asleep rootport.dma=coherent")
                .controller("qemu-xhci,id=usb,p3=0")
                .with(&COUNTED)
                .report()?,
            asleep_traffic: Run::new(board, "traced, asleep", fast)
                .words("rootport.wait=asleep rootport.dma=coherent")
                .traffic()?,
            polled_traffic: Run::new(board, "traced, polling", fast)
                .words("rootport.wait=polling rootport.dma=coherent")
                .traffic()?,
            timed: Run::new(board, "timed, polling, with cache maintenance", fast)
                .words("rootport.wait=polling rootport.dma=maintained")
                .rounds(long)
                .report()?,
            weights,
        })
    }
}

/// One boot of the image.
#[derive(Clone)]
pub(super) struct Run<'r> {
    board: &'r Board,
    what: String,
    image: &'r Path,
    controller: ControllerChoice,
    words: String,
    rounds: u32,
    /// More of what is behind the disk.
    medium: &'static str,
    /// So many disks are behind a UAS bridge each; none: the disk speaks Bulk-Only.
    attached: usize,
    mode: &'static str,
    /// Whether the emulator is kept on one processor.
    alone: bool,
    arguments: Vec<String>,
}

impl<'r> Run<'r> {
    pub(super) fn new(board: &'r Board, what: impl Into<String>, image: &'r Path) -> Self {
        Self {
            board,
            what: what.into(),
            image,
            controller: ControllerChoice {
                name: "-bench".into(),
                device: Some("qemu-xhci,id=usb".into()),
                bus: "usb.0".into(),
            },
            words: String::new(),
            rounds: 1,
            medium: "",
            attached: 0,
            mode: "bench",
            alone: false,
            arguments: Vec::new(),
        }
    }

    pub(super) fn words(mut self, words: &str) -> Self {
        self.words = words.to_owned();
        self
    }

    pub(super) fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }

    pub(super) fn controller(mut self, device: &str) -> Self {
        self.controller.device = Some(device.into());
        self
    }

    /// Has each request take half a millisecond longer.
    pub(super) fn slow(mut self) -> Self {
        self.medium = ",latency-ns=500000";
        self
    }

    /// Has so many disks, which speak UAS in place of Bulk-Only.
    pub(super) fn attached(mut self, disks: usize) -> Self {
        self.attached = disks;
        self
    }

    /// Keeps the emulator on one processor of this machine.
    pub(super) fn on_one_processor(mut self) -> Self {
        self.alone = true;
        self
    }

    /// In this mode of the image.
    pub(super) fn mode(mut self, mode: &'static str) -> Self {
        self.mode = mode;
        self
    }

    /// The words that make the disks and put them on the bus.
    fn disks(&self) -> Vec<String> {
        let bus = &self.controller.bus;
        let medium = |number: usize| {
            let node = if number == 0 {
                "nothing".to_owned()
            } else {
                format!("nothing{number}")
            };
            let words = format!("{NOTHING}{},node-name={node}", self.medium);
            (node, ["-blockdev".to_owned(), words])
        };
        let device = |words: String| ["-device".to_owned(), words];
        if self.attached == 0 {
            let (node, blocks) = medium(0);
            let disk = device(format!("usb-storage,bus={bus},drive={node}"));
            return [blocks, disk].concat();
        }
        let attached = |number| {
            let (node, blocks) = medium(number);
            let bridge = device(format!("usb-uas,id=bridge{number},bus={bus}"));
            let disk = device(format!("scsi-hd,bus=bridge{number}.0,drive={node}"));
            [blocks, bridge, disk].concat()
        };
        (0..self.attached).flat_map(attached).collect()
    }

    /// One that the machine has already.
    pub(super) fn on(mut self, controller: &ControllerChoice) -> Self {
        self.controller = controller.clone();
        self
    }

    pub(super) fn with(mut self, words: &[&str]) -> Self {
        self.arguments
            .extend(words.iter().map(|&word| word.to_owned()));
        self
    }

    /// Boots it and listens until it powers off.
    pub(super) fn report(&self) -> Result<Report> {
        let step = Step::start(format!("Measuring: {}", self.what));
        let report = self.listen().with_context(|| self.what.clone())?;
        step.done();
        Ok(report)
    }

    /// The machine with its disks, and nothing that it starts.
    pub(super) fn setup(&self) -> Result<Setup> {
        let setup = Setup::new(self.board.emulation()?, &self.controller)
            .with(&self.arguments)
            .with(self.disks());
        match self.alone {
            true => setup.on_one_processor(),
            false => Ok(setup),
        }
    }

    pub(super) fn listen(&self) -> Result<Report> {
        let line = format!(
            "rootport.mode={} rootport.rounds={} {}",
            self.mode, self.rounds, self.words
        );
        let mut machine = self
            .setup()?
            .with_image(self.board, self.image, &line)?
            .start(&format!("bench {}", self.what))?;
        let deadline = Instant::now() + PATIENCE;
        let mut report = Report::default();
        while let Some(line) = machine.console.next_line(deadline)? {
            let was_done = report.has("done");
            report.take(&line)?;
            if report.has("done") && !was_done {
                machine.end_after_last_word()?;
            }
        }
        report.marker("done", "result", "ok")?;
        Ok(report)
    }

    /// Boots it with QEMU's trace on, and counts what the trace says.
    pub(super) fn traffic(mut self) -> Result<BTreeMap<String, Traffic>> {
        let directory = tempfile::Builder::new()
            .prefix("rootport-trace-")
            .tempdir()?;
        let (events, log) = (
            directory.path().join("events"),
            directory.path().join("log"),
        );
        // QEMU cuts the last character off each line, whatever it is.
        std::fs::write(
            &events,
            traffic::EVENTS.map(|event| format!("{event}\n")).concat(),
        )?;
        self.arguments.extend([
            "-trace".to_owned(),
            format!("events={}", events.display()),
            "-D".to_owned(),
            log.display().to_string(),
        ]);
        self.report()?;
        let trace = File::open(&log).context("QEMU has written no trace")?;
        traffic::read(BufReader::new(trace))
    }
}
