//! What CI runs: the checks, the tests of the host, and the tests in QEMU.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::board::Board;
use crate::progress::say;
use crate::{board, check, command, image, packages};

/// The package of the tests that start emulators; it runs last, with the images built.
const QEMU_TESTS: &str = "rootport-qemu-tests";

/// Runs everything; the last lines are those of the test runner.
///
/// # Errors
///
/// At the first part that fails.
pub fn run() -> Result<()> {
    packages::ensure(&needs())?;
    check::run()?;
    say("Testing on the host (cargo test)");
    let mut host = command::cargo();
    host.arg("test");
    for package in host_packages()? {
        host.args(["--package", &package]);
    }
    command::loud(&mut host)?;
    say("Testing the scenarios as the boards queue (cargo test)");
    command::loud(&mut eager_scenarios())?;
    let boards = board::all()?;
    let mut qemu = command::cargo();
    qemu.args(["test", "--package", QEMU_TESTS]);
    for board in boards.iter().filter(|board| board.qemu.is_some()) {
        say(format!("Building the image of {}", board.name));
        qemu.env(image_variable(board), image::build(board)?);
    }
    say("Testing in QEMU (cargo test)");
    command::loud(&mut qemu)
}

/// The scenarios once more, with the transfers of Bulk-Only commands queued as the boards do and not as the library
/// does where nobody says otherwise. Those that choose for themselves are left out.
fn eager_scenarios() -> Command {
    let mut cargo = command::cargo();
    cargo.args(["test", "--package", "rootport"]);
    cargo.args(["--test", "scenarios_xhci", "--test", "scenarios_ehci", "--"]);
    for room in ["every_step", "trials", "soak"] {
        cargo.args(["--skip", room]);
    }
    cargo.env("ROOTPORT_QUEUEING", "eager");
    cargo
}

/// Everything that the tests need from the system's packages.
fn needs() -> Vec<packages::Need> {
    [
        &packages::QEMU[..],
        &packages::DISK_TOOLS[..],
        &packages::CARD_TOOLS[..],
        &[packages::U_BOOT_QEMU],
    ]
    .concat()
}

/// The environment variable that tells the QEMU tests where a board's image is.
pub fn image_variable(board: &Board) -> String {
    format!(
        "ROOTPORT_IMAGE_{}",
        board.name.to_uppercase().replace('-', "_")
    )
}

/// The packages that build on the host, less the QEMU tests.
fn host_packages() -> Result<Vec<String>> {
    let mut command = command::cargo();
    command.args(["metadata", "--format-version=1", "--no-deps", "--offline"]);
    let metadata: Value = serde_json::from_str(&command::quiet(&mut command, "metadata")?)?;
    names_of_default_members(&metadata).context("cargo metadata has another form")
}

fn names_of_default_members(metadata: &Value) -> Option<Vec<String>> {
    let default_members = metadata.get("workspace_default_members")?.as_array()?;
    let packages = metadata.get("packages")?.as_array()?.iter();
    let here = packages.filter(|package| default_members.contains(&package["id"]));
    let names = here.map(|package| Some(package.get("name")?.as_str()?.to_owned()));
    Some(
        names
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .filter(|name| name != QEMU_TESTS)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_of_the_host_are_found_by_looking() {
        let packages = host_packages().unwrap();
        assert!(packages.iter().any(|name| name == "rootport"));
        assert!(packages.iter().any(|name| name == "xtask"));
        assert!(
            !packages
                .iter()
                .any(|name| name == QEMU_TESTS || name == "qemu-virt")
        );
    }

    #[test]
    fn a_boards_image_variable_is_a_name_that_shells_take() {
        let board = board::named("qemu-virt").unwrap();
        assert_eq!(image_variable(&board), "ROOTPORT_IMAGE_QEMU_VIRT");
    }
}
