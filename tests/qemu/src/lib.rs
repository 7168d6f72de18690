//! What the scenarios in `tests/` share: the board under test, its start by QEMU and by U-Boot.
//!
//! `cargo xtask test` builds the image first and passes its path in the environment; a plain
//! `cargo test` builds it itself. Nothing here skips: where QEMU or U-Boot can't be had, the tests
//! fail with the line that says what to type.

mod u_boot;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use xtask::board::{self, Board};
use xtask::qemu::{Machine, Setup, UsbDisk};
use xtask::transcript::{Patience, Transcript};
use xtask::{image, packages, test};

pub use u_boot::boot_by_u_boot;

/// A board with its image, and the controller that it is tested with.
#[derive(Clone, Debug)]
pub struct Bench {
    board: &'static Board,
    image: PathBuf,
    controller: String,
}

impl Bench {
    /// The board `qemu-virt` with one of its controllers.
    ///
    /// # Errors
    ///
    /// When QEMU can't be had or the image does not build.
    pub fn virt(controller: &str) -> Result<Self> {
        Self::of("qemu-virt", controller)
    }

    /// A board with one of its controllers.
    ///
    /// # Errors
    ///
    /// When QEMU can't be had or the image does not build.
    pub fn of(board: &str, controller: &str) -> Result<Self> {
        let prepared = prepared(board)?;
        Ok(Self {
            board: &prepared.0,
            image: prepared.1.clone(),
            controller: controller.to_owned(),
        })
    }

    /// The machine with the controller and these disks, not started, and started by nothing.
    ///
    /// # Errors
    ///
    /// When the board has no such controller.
    pub fn machine(&self, disks: &[&UsbDisk]) -> Result<Setup> {
        let emulation = self.board.emulation()?;
        let controller = emulation.controller(Some(&self.controller))?;
        let setup = Setup::new(emulation, controller);
        Ok(disks
            .iter()
            .fold(setup, |setup, disk| setup.with_disk(disk)))
    }

    /// The machine with the controller and these disks, to be started with this kernel command line.
    ///
    /// # Errors
    ///
    /// When the board has no such controller, or its card can't be made.
    pub fn setup(&self, command_line: &str, disks: &[&UsbDisk]) -> Result<Setup> {
        self.machine(disks)?
            .with_image(self.board, &self.image, command_line)
    }

    /// Boots and listens until the board has powered off well.
    ///
    /// # Errors
    ///
    /// When it does not; the console is in the log `log`.
    pub fn run(&self, log: &str, command_line: &str, disks: &[&UsbDisk]) -> Result<Transcript> {
        listen(&mut self.setup(command_line, disks)?.start(log)?)
    }

    /// The image file.
    pub fn image(&self) -> &std::path::Path {
        &self.image
    }
}

/// Listens until the board has powered off well.
///
/// # Errors
///
/// When it does not.
pub fn listen(machine: &mut Machine) -> Result<Transcript> {
    Transcript::of_run(machine, Patience::default())
}

/// The board of that name and its image, built once in this process.
fn prepared(name: &str) -> Result<&'static (Board, PathBuf)> {
    type Prepared = Result<&'static (Board, PathBuf), String>;
    static BOARDS: Mutex<BTreeMap<String, Prepared>> = Mutex::new(BTreeMap::new());
    let mut boards = BOARDS.lock().unwrap_or_else(PoisonError::into_inner);
    let prepared = boards.entry(name.to_owned()).or_insert_with(|| {
        let prepared = prepare(name).map_err(|error| format!("{error:#}"))?;
        Ok(Box::leak(Box::new(prepared)))
    });
    prepared.clone().map_err(|line| anyhow!(line))
}

fn prepare(name: &str) -> Result<(Board, PathBuf)> {
    packages::ensure(&packages::QEMU)?;
    let board = board::named(name)?;
    let image = match std::env::var_os(test::image_variable(&board)) {
        Some(path) => PathBuf::from(path),
        None => image::build(&board).context("cannot build the image")?,
    };
    Ok((board, image))
}
