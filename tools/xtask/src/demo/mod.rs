//! The demo: a board image reads a disk that we made, and we check every word of it.
//!
//! Without a disk of the user's the whole demo runs on a fresh disk and the verdict is ours; with
//! one only the reading part runs, and the file is opened read-only.

pub mod verdict;

use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use self::verdict::Verdict;
use crate::board::{self, Board, ControllerChoice};
use crate::disk::{DemoDisk, Table};
use crate::progress::{Step, say};
use crate::qemu::{Access, Device, Echo, Setup, UsbDisk};
use crate::transcript::{Patience, Transcript};
use crate::{image, packages};

/// Which disks are plugged in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Devices {
    /// One that speaks Bulk-Only.
    #[default]
    Bot,
    /// One that speaks UAS.
    Uas,
    /// One of each.
    Both,
}

impl Devices {
    fn all(self) -> &'static [Device] {
        match self {
            Self::Bot => &[Device::Bot],
            Self::Uas => &[Device::Uas],
            Self::Both => &[Device::Bot, Device::Uas],
        }
    }

    /// The only one.
    ///
    /// # Errors
    ///
    /// When there are several: an image of the user's is behind one bridge.
    pub fn only(self) -> Result<Device> {
        match self.all() {
            [device] => Ok(*device),
            _ => bail!("your disk image can be behind one bridge only: choose bot or uas"),
        }
    }
}

/// What the user chose.
#[derive(Clone, Debug)]
pub struct Options {
    /// The board's name.
    pub board: String,
    /// The controller's name; the board's first one where there is none.
    pub controller: Option<String>,
    /// What is plugged in.
    pub device: Devices,
    /// An image of the user's.
    pub disk: Option<PathBuf>,
}

/// Runs the demo.
///
/// # Errors
///
/// On everything that is not as it must be, in one line.
pub fn run(options: &Options) -> Result<()> {
    let started = Instant::now();
    let board = board::named(&options.board)?;
    let controller = board
        .emulation()?
        .controller(options.controller.as_deref())?;
    let summary = match &options.disk {
        Some(disk) => read_users_disk(&board, controller, options.device.only()?, disk)?,
        None => whole_demo(&board, controller, options.device)?,
    };
    say(format!(
        "demo passed: {} with {}: {summary} ({:.0} s)",
        board.name,
        controller.name,
        started.elapsed().as_secs_f32()
    ));
    Ok(())
}

fn whole_demo(board: &Board, controller: &ControllerChoice, devices: Devices) -> Result<String> {
    packages::ensure(&packages::QEMU)?;
    let image = image::build(board)?;
    let step = Step::start("Making the demo disk (sfdisk, mkfs.vfat, mcopy)");
    let disks: Vec<_> = devices
        .all()
        .iter()
        .enumerate()
        .map(|(index, device)| PlannedDisk::make(index, *device))
        .collect::<Result<_>>()?;
    step.done();

    let words = format!("rootport.mode=demo rootport.disks={}", disks.len());
    let setup = Setup::new(board.emulation()?, controller).with_image(board, &image, &words)?;
    let setup = disks
        .iter()
        .fold(setup, |setup, disk| setup.with_disk(&disk.usb));
    let transcript = boot(&setup)?;
    let summaries = disks
        .iter()
        .map(|disk| disk.judge(&transcript))
        .collect::<Result<Vec<_>>>()?;
    Ok(summaries.join("; "))
}

/// A disk of the demo's own.
struct PlannedDisk {
    image: DemoDisk,
    usb: UsbDisk,
    /// What the board must say of it.
    driver: &'static str,
}

impl PlannedDisk {
    fn make(index: usize, device: Device) -> Result<Self> {
        let (name, driver) = match device {
            Device::Bot => ("demo", "bot"),
            Device::Uas => ("demo-uas", "uas"),
        };
        let image = DemoDisk::make(name, Table::Mbr)?;
        let usb = UsbDisk::new(&format!("disk{index}"), image.path(), Access::ReadWrite);
        Ok(Self {
            usb: usb.speaking(device),
            image,
            driver,
        })
    }

    /// Judges what the board has said of the disk, and what it has done to it.
    fn judge(&self, transcript: &Transcript) -> Result<String> {
        let driver = self.driver;
        let found = transcript.with("disk", "driver", driver).next();
        let number = found
            .with_context(|| format!("the board found no disk with the driver {driver}"))?
            .number("number")?;
        let verdict = Verdict::of_demo(&transcript.of_disk(number), &self.image.layout())?;
        let step = Step::start("Checking the disk (fsck.vfat, mcopy)");
        self.image.check_file_system()?;
        let copied = self.image.check_copied_file()?;
        self.image.check_scratch()?;
        step.done();
        verdict.say();
        say(format!(
            "  file system sound by fsck.vfat; the {copied} bytes written are as they must be"
        ));
        Ok(format!(
            "{} files listed over {driver}, checksum right, disk written and sound",
            verdict.files
        ))
    }
}

fn read_users_disk(
    board: &Board,
    controller: &ControllerChoice,
    device: Device,
    disk: &Path,
) -> Result<String> {
    expect_readable_image(disk)?;
    packages::ensure(&packages::QEMU)?;
    let image = image::build(board)?;
    let usb_disk = UsbDisk::new("disk0", disk, Access::ReadOnly).speaking(device);
    let setup = Setup::new(board.emulation()?, controller)
        .with_image(board, &image, "rootport.mode=read")?
        .with_disk(&usb_disk);
    let before = Fingerprint::of(disk)?;
    let transcript = boot(&setup)?;
    if Fingerprint::of(disk)? != before {
        bail!(
            "{} was changed while the demo ran (by another program: ours had it read-only)",
            disk.display()
        );
    }
    verdict::expect_users_disk(&transcript, usb_disk.length())?;
    for skip in transcript.all("skip") {
        say(format!(
            "  left out: {}: {}",
            skip.value("what")?,
            skip.reason()
        ));
    }
    let partitions = transcript.all("partition").count();
    let files = transcript.all("file").count();
    Ok(format!(
        "{partitions} partitions and {files} files listed, {} unchanged",
        disk.display()
    ))
}

fn boot(setup: &Setup) -> Result<Transcript> {
    say("Booting the board; its console follows");
    let mut machine = setup.clone().with_echo(Echo::On).start("demo")?;
    Transcript::of_run(&mut machine, Patience::default())
}

/// Whether a disk image of the user's can be read, before anything is built for it.
///
/// # Errors
///
/// In one line, when it can't.
pub fn expect_readable_image(path: &Path) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        bail!("{} is no disk image", path.display());
    }
    if kind.is_file() && metadata.len() == 0 {
        bail!("{} is empty", path.display());
    }
    Ok(())
}

/// What changes when a file is written: its length and its time of change.
#[derive(PartialEq, Eq)]
struct Fingerprint {
    length: u64,
    changed: Option<std::time::SystemTime>,
}

impl Fingerprint {
    fn of(path: &Path) -> Result<Self> {
        let metadata = path.metadata()?;
        Ok(Self {
            length: metadata.len(),
            changed: metadata.modified().ok(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(board: &str, disk: Option<&Path>) -> Options {
        Options {
            board: board.into(),
            controller: None,
            device: Devices::Bot,
            disk: disk.map(Path::to_owned),
        }
    }

    #[test]
    fn a_missing_image_is_one_line_with_its_name() {
        let missing = Path::new("/no/such/disk.img");
        let error = format!(
            "{:#}",
            run(&options("qemu-virt", Some(missing))).unwrap_err()
        );
        assert!(
            error.starts_with("cannot read /no/such/disk.img: "),
            "{error}"
        );
        assert!(!error.contains('\n'));
    }

    #[test]
    fn an_empty_image_and_a_directory_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let error = run(&options("qemu-virt", Some(directory.path()))).unwrap_err();
        assert!(error.to_string().ends_with("is no disk image"), "{error}");
        let empty = directory.path().join("empty.img");
        File::create(&empty).unwrap();
        let error = run(&options("qemu-virt", Some(&empty))).unwrap_err();
        assert!(error.to_string().ends_with("empty.img is empty"), "{error}");
    }

    #[test]
    fn an_image_of_the_users_is_behind_one_bridge() {
        let image = tempfile::NamedTempFile::new().unwrap();
        let options = Options {
            device: Devices::Both,
            ..options("qemu-virt", Some(image.path()))
        };
        let error = run(&options).unwrap_err().to_string();
        assert!(error.ends_with("choose bot or uas"), "{error}");
    }

    #[test]
    fn an_unknown_board_is_refused_before_anything_is_built() {
        let error = run(&options("pigeon", None)).unwrap_err().to_string();
        assert!(error.starts_with("no board pigeon; there are: "), "{error}");
    }
}
