//! The boards: every directory of `platforms/` that has a `board.toml`.
//!
//! The file's form is described in `docs/demo-protocol.md`. There is no list of boards in code.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::workspace;

/// What `board.toml` says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Board {
    /// The name on the command line.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// The target triple that its crate is built for.
    pub target: String,
    /// The cargo package; its binary has the same name.
    pub package: String,
    /// What is made of the binary.
    pub image: ImageKind,
    /// For cards: the directory of Debian's U-Boot package that has the board's build.
    pub u_boot: Option<String>,
    /// How it is emulated, for boards that can be.
    pub qemu: Option<Emulation>,
}

/// What is made of a board's ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageKind {
    /// A raw arm64 Image with the 64-byte header that Linux's `booting.rst` describes.
    Arm64,
    /// An SD card for an Allwinner chip, with the board's U-Boot and our image on it.
    SunxiCard,
}

/// How QEMU emulates a board.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Emulation {
    /// The emulator's program name.
    pub program: String,
    /// The machine, CPU and memory.
    pub arguments: Vec<String>,
    /// Whether the board's power-off ends the emulator; else its last word does.
    #[serde(default = "yes")]
    pub powers_off: bool,
    /// The USB host controllers that `--controller` takes; the first is the default.
    #[serde(rename = "controller")]
    pub controllers: Vec<ControllerChoice>,
}

fn yes() -> bool {
    true
}

/// A USB host controller to put into the machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerChoice {
    /// The name on the command line.
    pub name: String,
    /// QEMU's `-device` value; nothing where the machine has the controller already.
    pub device: Option<String>,
    /// The name of its USB bus.
    pub bus: String,
}

impl Board {
    /// The emulation.
    ///
    /// # Errors
    ///
    /// When the board can't be emulated.
    pub fn emulation(&self) -> Result<&Emulation> {
        self.qemu
            .as_ref()
            .with_context(|| format!("QEMU can't emulate the board {}", self.name))
    }
}

impl Emulation {
    /// The controller of that name, or the first one.
    ///
    /// # Errors
    ///
    /// When there is none of that name; says which there are.
    pub fn controller(&self, name: Option<&str>) -> Result<&ControllerChoice> {
        let names = || self.controllers.iter().map(|choice| choice.name.as_str());
        let found = match name {
            Some(name) => self.controllers.iter().find(|choice| choice.name == name),
            None => self.controllers.first(),
        };
        found.with_context(|| {
            let names: Vec<_> = names().collect();
            format!(
                "no controller {}; there are: {}",
                name.unwrap_or("at all"),
                names.join(", ")
            )
        })
    }
}

/// All boards, sorted by name.
///
/// # Errors
///
/// When a `board.toml` can't be read.
pub fn all() -> Result<Vec<Board>> {
    all_in(&workspace::root().join("platforms"))
}

/// The board of that name.
///
/// # Errors
///
/// When there is none; says which there are.
pub fn named(name: &str) -> Result<Board> {
    pick(all()?, name)
}

fn pick(boards: Vec<Board>, name: &str) -> Result<Board> {
    let names: Vec<_> = boards.iter().map(|board| board.name.clone()).collect();
    match boards.into_iter().find(|board| board.name == name) {
        Some(board) => Ok(board),
        None => bail!("no board {name}; there are: {}", names.join(", ")),
    }
}

fn all_in(platforms: &Path) -> Result<Vec<Board>> {
    let entries =
        fs::read_dir(platforms).with_context(|| format!("cannot read {}", platforms.display()))?;
    let files = entries
        .flatten()
        .map(|entry| entry.path().join("board.toml"));
    let mut files: Vec<PathBuf> = files.filter(|file| file.is_file()).collect();
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> Result<Board> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let parsed = toml::from_str(&text);
    parsed.map_err(|error| {
        anyhow::anyhow!("{}: {}", file.display(), error.message().replace('\n', " "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOARD: &str = r#"
name = "pigeon"
description = "A board for tests"
target = "aarch64-unknown-none"
package = "pigeon"
image = "arm64"
[qemu]
program = "qemu-system-aarch64"
arguments = ["-machine", "virt"]
[[qemu.controller]]
name = "first"
device = "qemu-xhci,id=usb"
bus = "usb.0"
[[qemu.controller]]
name = "built-in"
bus = "usb-bus.0"
"#;

    fn platforms_with(text: &str) -> tempfile::TempDir {
        let platforms = tempfile::tempdir().unwrap();
        fs::create_dir_all(platforms.path().join("common")).unwrap();
        fs::create_dir_all(platforms.path().join("pigeon")).unwrap();
        fs::write(platforms.path().join("pigeon/board.toml"), text).unwrap();
        platforms
    }

    #[test]
    fn boards_are_the_directories_with_a_board_file() {
        let boards = all_in(platforms_with(BOARD).path()).unwrap();
        assert_eq!(boards.len(), 1);
        assert_eq!(boards[0].name, "pigeon");
    }

    #[test]
    fn an_unknown_board_is_answered_with_the_known_ones() {
        let boards = all_in(platforms_with(BOARD).path()).unwrap();
        let error = pick(boards, "dove").unwrap_err();
        assert_eq!(error.to_string(), "no board dove; there are: pigeon");
    }

    #[test]
    fn a_controller_is_chosen_by_name_and_the_first_is_the_default() {
        let board = all_in(platforms_with(BOARD).path()).unwrap().remove(0);
        let emulation = board.emulation().unwrap();
        assert_eq!(emulation.controller(None).unwrap().name, "first");
        assert_eq!(emulation.controller(Some("built-in")).unwrap().device, None);
        let error = emulation.controller(Some("ohci")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no controller ohci; there are: first, built-in"
        );
    }

    #[test]
    fn a_misspelt_key_is_named_with_its_file() {
        let platforms = platforms_with(&BOARD.replace("target =", "tarhget ="));
        let error = all_in(platforms.path()).unwrap_err().to_string();
        assert!(
            error.contains("board.toml: unknown field `tarhget`"),
            "{error}"
        );
    }

    #[test]
    fn every_board_of_the_repository_has_a_readable_file() {
        let boards = all().unwrap();
        assert!(boards.iter().any(|board| board.name == "qemu-virt"));
    }
}
