//! What `cargo xtask check` holds: format, rooms, lints, builds without an operating system, docs.
//!
//! | check | fails when |
//! |---|---|
//! | format | `cargo fmt` would change something |
//! | [`layers`] | a room of the library imports upward, or a new room is not in the table |
//! | [`unsafe_rooms`] | `unsafe` stands outside its rooms |
//! | [`mutants`] | the lines that a mutant changes, or its test, are not there |
//! | lints | clippy has a warning, on the host, on a board, in U-Boot's program, or in the library on a bare-metal target |
//! | builds | the library does not build for one of [`LIBRARY_TARGETS`], without, with some or with all features |
//! | docs | rustdoc has a warning |

pub mod layers;
mod scan;
pub mod unsafe_rooms;

use anyhow::{Result, bail};

use crate::bench::beside;
use crate::board::{self, Board};
use crate::progress::say;
use crate::toolchain::{self, Core};
use crate::{command, mutants, workspace};

/// Sets of features that a program may be built with, each of which leaves something out that others use.
const PARTS: [&str; 4] = ["xhci", "ehci", "xhci,uas", "ehci,rare"];

/// The targets that the library must build for.
pub const LIBRARY_TARGETS: [&str; 4] = [
    "aarch64-unknown-none",
    "aarch64-unknown-none-softfloat",
    "armv7a-none-eabi",
    "thumbv7a-none-eabi",
];

/// Something that breaks a rule, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, from the root of the repository.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub what: String,
}

/// Runs all checks, also after one that fails.
///
/// # Errors
///
/// Names the checks that failed; what they found was printed.
pub fn run() -> Result<()> {
    let boards = board::all()?;
    let mut failed = Failed::default();
    failed.note(
        "format",
        command::loud(command::cargo().args(["fmt", "--all", "--check"])),
    );
    failed.note("rooms", check_rooms());
    failed.note("mutants", check_mutants());
    failed.note("lints", check_host_lints());
    check_bare_metal(&boards, &mut failed)?;
    failed.note("docs", check_docs());
    failed.verdict()
}

/// The checks that failed.
#[derive(Default)]
struct Failed {
    names: Vec<String>,
}

impl Failed {
    fn note(&mut self, name: impl Into<String>, result: Result<()>) {
        if let Err(error) = result {
            say(format!("{error:#}"));
            self.names.push(name.into());
        }
    }

    fn verdict(self) -> Result<()> {
        if !self.names.is_empty() {
            bail!("check failed: {}", self.names.join(", "));
        }
        say("check passed");
        Ok(())
    }
}

fn check_rooms() -> Result<()> {
    say("Checking the rooms (imports, unsafe)");
    let root = workspace::root();
    let findings = [layers::findings(&root)?, unsafe_rooms::findings(&root)?].concat();
    for Finding { file, line, what } in &findings {
        say(format!("{file}:{line}: {what}"));
    }
    match findings.len() {
        0 => Ok(()),
        count => bail!("{count} places break the rules of the rooms"),
    }
}

fn check_mutants() -> Result<()> {
    say("Checking the list of mutants");
    let findings = mutants::findings(&workspace::root())?;
    for Finding { file, what, .. } in &findings {
        say(format!("{file}: {what}"));
    }
    match findings.len() {
        0 => Ok(()),
        count => bail!("{count} mutants do not fit the code or the tests any more"),
    }
}

fn check_host_lints() -> Result<()> {
    say("Checking the lints (cargo clippy)");
    command::loud(command::cargo().args(["clippy", "--all-targets", "--", "-D", "warnings"]))
}

fn check_docs() -> Result<()> {
    say("Checking the docs (cargo doc)");
    let mut doc = command::cargo();
    command::loud(
        doc.args(["doc", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

fn check_bare_metal(boards: &[Board], failed: &mut Failed) -> Result<()> {
    let mut targets = LIBRARY_TARGETS.to_vec();
    targets.extend(boards.iter().map(|board| board.target.as_str()));
    let core = toolchain::bare_metal_core(&targets)?;
    for target in LIBRARY_TARGETS {
        say(format!(
            "Checking the library for {target} (no features, then the lints of all)"
        ));
        let mut bare = bare_metal_cargo(core, "check", "rootport", target);
        let result = command::loud(bare.arg("--no-default-features"));
        failed.note(format!("{target} without features"), result);
        let mut full = bare_metal_cargo(core, "clippy", "rootport", target);
        let result = command::loud(full.args(["--all-features", "--", "-D", "warnings"]));
        failed.note(format!("{target} with all features"), result);
    }
    for parts in PARTS {
        say(format!(
            "Checking the lints of the library with {parts} alone"
        ));
        let mut part = bare_metal_cargo(core, "clippy", "rootport", LIBRARY_TARGETS[0]);
        part.args(["--no-default-features", "--features", parts]);
        let result = command::loud(part.args(["--", "-D", "warnings"]));
        failed.note(format!("the library with {parts} alone"), result);
    }
    for board in boards {
        say(format!(
            "Checking the lints of {} (cargo clippy)",
            board.name
        ));
        let mut cargo = bare_metal_cargo(core, "clippy", &board.package, &board.target);
        let result = command::loud(cargo.args(["--", "-D", "warnings"]));
        failed.note(format!("lints of {}", board.name), result);
    }
    let (package, target) = (beside::PROGRAM.package, beside::PROGRAM.target);
    say(format!("Checking the lints of {package} (cargo clippy)"));
    let core = toolchain::bare_metal_core(&[target])?;
    let mut cargo = bare_metal_cargo(core, "clippy", package, target);
    let result = command::loud(cargo.args(["--", "-D", "warnings"]));
    failed.note(format!("lints of {package}"), result);
    Ok(())
}

/// In the profile of the images, so that one `core` serves both.
fn bare_metal_cargo(core: Core, task: &str, package: &str, target: &str) -> std::process::Command {
    let mut cargo = core.cargo(task);
    cargo.args([
        "--package",
        package,
        "--target",
        target,
        "--profile",
        "board",
    ]);
    cargo
}
