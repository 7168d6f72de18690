//! A plain run of a board image, with its console on the terminal.

use std::path::PathBuf;

use anyhow::Result;

use crate::demo::{Devices, expect_readable_image};
use crate::progress::say;
use crate::qemu::{Access, Echo, Setup, UsbDisk};
use crate::transcript::{Patience, Transcript};
use crate::{board, image, packages};

/// What the user chose.
#[derive(Clone, Debug)]
pub struct Options {
    /// The board's name.
    pub board: String,
    /// The controller's name; the board's first one where there is none.
    pub controller: Option<String>,
    /// What the disk speaks.
    pub device: Devices,
    /// A disk image of the user's, opened read-only.
    pub disk: Option<PathBuf>,
    /// The kernel command line; where there is none, the reading part with a disk, else a greeting.
    pub append: Option<String>,
}

/// Builds the image, boots it and waits for its power-off.
///
/// # Errors
///
/// On everything that keeps the board from ending with `@done result=ok`, in one line.
pub fn run(options: &Options) -> Result<()> {
    let board = board::named(&options.board)?;
    let emulation = board.emulation()?;
    let controller = emulation.controller(options.controller.as_deref())?;
    if let Some(disk) = &options.disk {
        expect_readable_image(disk)?;
    }
    packages::ensure(&packages::QEMU)?;
    let image = image::build(&board)?;
    let mut setup = Setup::new(emulation, controller)
        .with_image(&board, &image, options.command_line())?
        .with_echo(Echo::On);
    if let Some(disk) = &options.disk {
        let usb_disk = UsbDisk::new("disk0", disk, Access::ReadOnly);
        setup = setup.with_disk(&usb_disk.speaking(options.device.only()?));
    }
    say(format!(
        "Booting {} with {}; its console follows",
        board.name, controller.name
    ));
    let mut machine = setup.start("run")?;
    Transcript::of_run(&mut machine, Patience::default()).map(|_| ())
}

impl Options {
    fn command_line(&self) -> &str {
        match (&self.append, &self.disk) {
            (Some(words), _) => words,
            (None, Some(_)) => "rootport.mode=read",
            (None, None) => "rootport.mode=hello",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_only_read_unless_the_user_says_otherwise() {
        let mut options = Options {
            board: "qemu-virt".into(),
            controller: None,
            device: Devices::Bot,
            disk: None,
            append: None,
        };
        assert_eq!(options.command_line(), "rootport.mode=hello");
        options.disk = Some("x.img".into());
        assert_eq!(options.command_line(), "rootport.mode=read");
        options.append = Some("rootport.mode=raw".into());
        assert_eq!(options.command_line(), "rootport.mode=raw");
    }
}
