//! SD cards for boards with Allwinner chips: U-Boot where the boot ROM looks for it, and a FAT
//! partition with our image, the script that starts it, and the words that it is started with.
//!
//! | place | what |
//! |---|---|
//! | sector 0 | master boot record, one FAT32 partition |
//! | 8 KiB | U-Boot with its SPL (linux-sunxi.org, "Bootable SD card") |
//! | 1 MiB | the partition: `boot.scr`, `rootport.bin` for `go`, `rootport.img` for `bootm`, `rootport.txt` |
//!
//! [`make`] writes the card that a user writes to a real one; [`Card::with_words`] is a copy of it with
//! other words.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use tempfile::TempPath;

use super::{sparse, tools};
use crate::packages;
use crate::u_boot::{self, Wrap};
use crate::workspace;

const MIB: u64 = 1 << 20;
/// QEMU wants a power of two.
const CARD_LENGTH: u64 = 64 * MIB;
const U_BOOT_START: u64 = 8 << 10;
const FAT_START: u64 = MIB;
const FAT_LENGTH: u64 = CARD_LENGTH - FAT_START;
const SECTOR: u32 = 512;

/// What is started, and how, unless `rootport.txt` says otherwise. Scratch addresses are U-Boot's
/// own for the chip; the kernel image is unpacked from where the ramdisk would be.
const SCRIPT: &str = "\
echo rootport: starting
setenv handoff bootm
setenv bootargs rootport.mode=read
if load ${devtype} ${devnum}:${distro_bootpart} ${pxefile_addr_r} rootport.txt; then
  env import -t ${pxefile_addr_r} ${filesize}
fi
if test \"${handoff}\" = go; then
  load ${devtype} ${devnum}:${distro_bootpart} ${kernel_addr_r} rootport.bin
  go ${kernel_addr_r} ${bootargs}
else
  load ${devtype} ${devnum}:${distro_bootpart} ${ramdisk_addr_r} rootport.img
  bootm ${ramdisk_addr_r} - ${fdtcontroladdr}
fi
";

/// How U-Boot hands over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handoff {
    /// As to Linux: Hyp mode, caches off, with a device tree.
    #[default]
    Bootm,
    /// As to any program: supervisor mode, caches on.
    Go,
}

impl Handoff {
    const fn word(self) -> &'static str {
        match self {
            Self::Bootm => "bootm",
            Self::Go => "go",
        }
    }
}

/// Makes the card of a board anew: `image` runs at `address`, `build` names its U-Boot.
///
/// # Errors
///
/// When a tool or U-Boot can't be had.
pub fn make(card: &Path, build: &str, image: &[u8], address: u64) -> Result<()> {
    packages::ensure(&packages::CARD_TOOLS)?;
    let u_boot = u_boot::sunxi(build)?;
    let work = tempfile::tempdir_in(workspace::output("images")?)?;
    let tree = work.path().join("tree");
    fs::create_dir(&tree)?;
    let script = work.path().join("boot.cmd");
    fs::write(&script, SCRIPT)?;
    u_boot::wrap(Wrap::Script, &script, &tree.join("boot.scr"))?;
    let raw = tree.join("rootport.bin");
    fs::write(&raw, image)?;
    u_boot::wrap(Wrap::Kernel(address), &raw, &tree.join("rootport.img"))?;
    fs::write(
        tree.join("rootport.txt"),
        words("rootport.mode=read", Handoff::default()),
    )?;

    let volume = work.path().join("fat");
    File::create_new(&volume)?.set_len(FAT_LENGTH)?;
    tools::format_fat(&volume, SECTOR, SECTOR)?;
    tools::copy_tree_in(&tree, &volume)?;

    let new = work.path().join("card");
    File::create_new(&new)?.set_len(CARD_LENGTH)?;
    tools::partition(&new, &partition_script())?;
    sparse::copy((&volume, 0), (&new, FAT_START), FAT_LENGTH)?;
    write_u_boot(&new, &fs::read(u_boot)?)?;
    fs::rename(&new, card).with_context(|| format!("cannot write {}", card.display()))
}

/// Puts U-Boot where the boot ROM looks for it, in front of the partition.
fn write_u_boot(card: &Path, u_boot: &[u8]) -> Result<()> {
    let room = FAT_START - U_BOOT_START;
    ensure!(
        u_boot.len() as u64 <= room,
        "U-Boot has {} bytes, and {room} fit in front of the card's partition: let FAT_START be greater",
        u_boot.len()
    );
    let mut file = File::options().write(true).open(card)?;
    file.seek(SeekFrom::Start(U_BOOT_START))?;
    file.write_all(u_boot)?;
    Ok(())
}

fn partition_script() -> String {
    let sectors = |bytes: u64| bytes / u64::from(SECTOR);
    let (start, size) = (sectors(FAT_START), sectors(FAT_LENGTH));
    format!("label: dos\nstart={start}, size={size}, type=c, bootable\n")
}

/// `rootport.txt`: what `env import -t` takes.
fn words(command_line: &str, handoff: Handoff) -> String {
    format!("handoff={}\nbootargs={command_line}\n", handoff.word())
}

/// A copy of a card that goes away with its last owner.
#[derive(Clone, Debug)]
pub struct Card(Arc<TempPath>);

impl Card {
    /// A copy of the card image `original` that is started with other words.
    ///
    /// # Errors
    ///
    /// When a tool is missing or fails.
    pub fn with_words(original: &Path, command_line: &str, handoff: Handoff) -> Result<Self> {
        packages::ensure(&packages::CARD_TOOLS)?;
        let work = tempfile::tempdir_in(workspace::output("images")?)?;
        fs::write(
            work.path().join("rootport.txt"),
            words(command_line, handoff),
        )?;
        let copy = tempfile::Builder::new()
            .prefix("card-")
            .tempfile_in(workspace::output("images")?)?
            .into_temp_path();
        fs::copy(original, &copy).with_context(|| format!("cannot copy {}", original.display()))?;
        // mtools' own way to name a part of a file.
        let volume = format!("{}@@{FAT_START}", copy.display());
        tools::copy_tree_in(work.path(), Path::new(&volume))?;
        Ok(Self(Arc::new(copy)))
    }

    /// The image file.
    pub fn path(&self) -> PathBuf {
        self.0.to_path_buf()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the chip's boot ROM looks for, 4 bytes into the first sector that it reads.
    const BOOT_MAGIC: &[u8] = b"eGON.BT0";

    fn file(card: &Path, name: &str) -> Vec<u8> {
        let work = tempfile::tempdir().unwrap();
        let volume = format!("{}@@{FAT_START}", card.display());
        tools::read_file(Path::new(&volume), name, work.path()).unwrap()
    }

    #[test]
    fn a_card_has_the_boot_loader_where_the_chip_looks_and_our_files_on_its_partition() {
        packages::ensure(&packages::CARD_TOOLS).unwrap();
        let work = tempfile::tempdir().unwrap();
        let path = work.path().join("card.img");
        make(&path, "orangepi_zero", b"the image", 0x4200_0000).unwrap();
        assert_eq!(path.metadata().unwrap().len(), CARD_LENGTH);
        let start = sparse::read(&path, U_BOOT_START + 4, BOOT_MAGIC.len()).unwrap();
        assert_eq!(start, BOOT_MAGIC);
        let table = sparse::read(&path, 0, 512).unwrap();
        // First entry of the table: bootable, type, first block.
        let entry = &table[446..462];
        assert_eq!((entry[0], entry[4]), (0x80, 0x0c));
        assert_eq!(entry[8..12], 2048_u32.to_le_bytes());
        assert_eq!(file(&path, "/rootport.bin"), b"the image");
        assert!(file(&path, "/rootport.img").ends_with(b"the image"));
        let script = file(&path, "/boot.scr");
        assert!(script.ends_with(SCRIPT.as_bytes()));

        let copy = Card::with_words(&path, "rootport.mode=hello", Handoff::Go).unwrap();
        let words = file(&copy.path(), "/rootport.txt");
        assert_eq!(words, b"handoff=go\nbootargs=rootport.mode=hello\n");
        let plain = file(&path, "/rootport.txt");
        assert_eq!(plain, b"handoff=bootm\nbootargs=rootport.mode=read\n");
        let gone = copy.path();
        drop(copy);
        assert!(!gone.exists());
    }

    #[test]
    fn a_u_boot_that_would_reach_into_the_partition_is_not_written() {
        let work = tempfile::tempdir().unwrap();
        let path = work.path().join("card.img");
        fs::write(&path, b"as it was").unwrap();
        let room = (FAT_START - U_BOOT_START) as usize;
        let error = write_u_boot(&path, &vec![1; room + 1]).unwrap_err();
        assert!(error.to_string().contains("FAT_START"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"as it was");
        write_u_boot(&path, &vec![1; room]).unwrap();
        assert_eq!(path.metadata().unwrap().len(), FAT_START);
    }

    #[test]
    fn a_board_without_a_build_in_the_package_is_named() {
        let work = tempfile::tempdir().unwrap();
        let path = work.path().join("card.img");
        let error = make(&path, "no_such_board", b"", 0).unwrap_err();
        let line = format!("{error:#}");
        assert!(line.starts_with("no U-Boot for no_such_board: "), "{line}");
        assert!(line.contains("has no build no_such_board"), "{line}");
    }
}
