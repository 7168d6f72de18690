//! The tools that everybody's disks are made with: sfdisk, mkfs.vfat, fsck.vfat and mtools.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::command;

/// Writes a partition table.
pub(super) fn partition(image: &Path, script: &str) -> Result<()> {
    let mut child = command::tool("sfdisk")
        .args(["--quiet", "--no-reread", "--no-tell-kernel"])
        .arg(image)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start sfdisk")?;
    child
        .stdin
        .take()
        .context("sfdisk has no input")?
        .write_all(script.as_bytes())?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!(
            "sfdisk failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

/// Makes a FAT32 file system over a whole file, the same identity every time.
pub(super) fn format_fat(volume: &Path, sector_size: u32, cluster_size: u32) -> Result<()> {
    let sectors_in_cluster = (cluster_size / sector_size).to_string();
    let mut command = command::tool("mkfs.vfat");
    command
        .args([
            "-F",
            "32",
            "-n",
            "ROOTPORT",
            "-i",
            "524F4F54",
            "-s",
            &sectors_in_cluster,
        ])
        .args(["-S", &sector_size.to_string()])
        .arg(volume);
    command::quiet(&mut command, "mkfs").map(|_| ())
}

/// Copies what is in a directory into the root of a FAT volume, replacing files of the same name.
pub(super) fn copy_tree_in(tree: &Path, volume: &Path) -> Result<()> {
    let entries = fs::read_dir(tree)?.map(|entry| Ok(entry?.path()));
    let entries: Vec<_> = entries.collect::<Result<_>>()?;
    let mut command = mtools("mcopy", volume);
    command.arg("-so").args(&entries).arg("::/");
    command::quiet(&mut command, "mcopy-in").map(|_| ())
}

/// Reads a file of a FAT volume by way of a file in the directory `work`.
pub(super) fn read_file(volume: &Path, path: &str, work: &Path) -> Result<Vec<u8>> {
    let target = work.join("copied-out");
    let mut command = mtools("mcopy", volume);
    command.arg("-n").arg(format!("::{path}")).arg(&target);
    command::quiet(&mut command, "mcopy-out")?;
    fs::read(&target).with_context(|| format!("mcopy did not bring {path}"))
}

/// Checks a FAT volume without changing it.
pub(super) fn check_fat(volume: &Path) -> Result<()> {
    let mut command = command::tool("fsck.vfat");
    command::quiet(command.arg("-n").arg(volume), "fsck").map(|_| ())
}

fn mtools(program: &str, volume: &Path) -> Command {
    let mut command = command::tool(program);
    command.arg("-i").arg(volume);
    command
}
