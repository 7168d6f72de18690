//! Disk images for the demo and the QEMU tests, made and checked with the real tools.
//!
//! The layout is written down in `docs/demo-protocol.md`. [`DemoDisk::make`] writes an image file;
//! after a run [`DemoDisk::check_file_system`], [`DemoDisk::check_copied_file`] and
//! [`DemoDisk::check_scratch`] look at what the board left on it. [`card`] makes the cards that boards
//! boot from.

pub mod card;
pub mod contents;
mod layout;
mod sparse;
mod tools;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use self::layout::{DISK_LENGTH, FAT_LENGTH, FAT_START, SCRATCH_START};
pub use self::layout::{FAT_PARTITION, Layout, Partition, SCRATCH_PARTITION, Table};
use crate::packages;
use crate::workspace;

/// Bytes of a cluster of the demo disk.
const CLUSTER_SIZE: u32 = 4096;

/// An image file with the demo disk's layout.
#[derive(Clone, Debug)]
pub struct DemoDisk {
    path: PathBuf,
    layout: Layout,
}

impl DemoDisk {
    /// Makes the image `name` anew, with 512-byte blocks.
    ///
    /// # Errors
    ///
    /// When a tool is missing and can't be installed, or fails.
    pub fn make(name: &str, table: Table) -> Result<Self> {
        Self::make_with_blocks(name, table, 512)
    }

    /// Makes the image `name` anew, with 4096-byte blocks and a master boot record.
    ///
    /// # Errors
    ///
    /// As [`DemoDisk::make`].
    pub fn make_with_large_blocks(name: &str) -> Result<Self> {
        Self::make_with_blocks(name, Table::Mbr, 4096)
    }

    fn make_with_blocks(name: &str, table: Table, block_size: u32) -> Result<Self> {
        packages::ensure(&packages::DISK_TOOLS)?;
        let path = workspace::output("disks")?.join(format!("{name}.img"));
        let disk = Self {
            path,
            layout: Layout { block_size },
        };
        disk.lay_out(table)
            .with_context(|| format!("cannot make {}", disk.path.display()))?;
        Ok(disk)
    }

    fn lay_out(&self, table: Table) -> Result<()> {
        // A new file, because an old one may be open in a QEMU that is ending.
        let _ = fs::remove_file(&self.path);
        File::create_new(&self.path)?.set_len(DISK_LENGTH)?;
        tools::partition(&self.path, &self.layout.partition_script(table))?;
        let work = tempfile::tempdir_in(workspace::output("disks")?)?;
        let volume = work.path().join("fat.img");
        File::create_new(&volume)?.set_len(FAT_LENGTH)?;
        tools::format_fat(&volume, self.layout.block_size, CLUSTER_SIZE)?;
        let tree = work.path().join("tree");
        contents::write_tree(&tree)?;
        tools::copy_tree_in(&tree, &volume)?;
        sparse::copy((&volume, 0), (&self.path, FAT_START), FAT_LENGTH)
    }

    /// The image file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where everything is on it.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The CRC-32 of the whole disk.
    ///
    /// # Errors
    ///
    /// When the image can't be read.
    pub fn checksum(&self) -> Result<u32> {
        self.checksum_of_start(usize::try_from(DISK_LENGTH)?)
    }

    /// The CRC-32 of the disk's first `length` bytes.
    ///
    /// # Errors
    ///
    /// When the image can't be read.
    pub fn checksum_of_start(&self, length: usize) -> Result<u32> {
        Ok(crc32fast::hash(&sparse::read(&self.path, 0, length)?))
    }

    /// Has `fsck.vfat` look at the FAT partition without changing it.
    ///
    /// # Errors
    ///
    /// With its words, when it finds something.
    pub fn check_file_system(&self) -> Result<()> {
        let work = tempfile::tempdir_in(workspace::output("disks")?)?;
        tools::check_fat(&self.extract_volume(work.path())?)
    }

    /// Compares the file that the board wrote with what it had to copy. Gives back its length.
    ///
    /// # Errors
    ///
    /// When the file is missing or differs; says where.
    pub fn check_copied_file(&self) -> Result<usize> {
        let work = tempfile::tempdir_in(workspace::output("disks")?)?;
        let volume = self.extract_volume(work.path())?;
        let copy = tools::read_file(&volume, contents::COPY_PATH, work.path())?;
        let large = contents::large_file();
        let expected = large.get(..contents::COPY_LENGTH).unwrap_or(&large);
        expect_same(&copy, expected).with_context(|| contents::COPY_PATH.to_owned())?;
        Ok(copy.len())
    }

    /// Compares the start of the scratch partition with the pattern that the board writes there.
    ///
    /// # Errors
    ///
    /// When it differs; says where.
    pub fn check_scratch(&self) -> Result<()> {
        let expected = contents::scratch_pattern();
        let found = sparse::read(&self.path, SCRATCH_START, expected.len())?;
        expect_same(&found, &expected).context("the scratch partition")
    }

    fn extract_volume(&self, into: &Path) -> Result<PathBuf> {
        let volume = into.join("fat.img");
        File::create_new(&volume)?.set_len(FAT_LENGTH)?;
        sparse::copy((&self.path, FAT_START), (&volume, 0), FAT_LENGTH)?;
        Ok(volume)
    }
}

fn expect_same(found: &[u8], expected: &[u8]) -> Result<()> {
    if found.len() != expected.len() {
        bail!("{} bytes long instead of {}", found.len(), expected.len());
    }
    match found
        .iter()
        .zip(expected)
        .position(|(found, expected)| found != expected)
    {
        Some(place) => bail!("differs from byte {place} on"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_disk_has_a_sound_file_system_and_its_files() {
        for table in [Table::Mbr, Table::Gpt] {
            let disk = DemoDisk::make(&format!("test-fresh-{table:?}"), table).unwrap();
            disk.check_file_system().unwrap();
            let work = tempfile::tempdir().unwrap();
            let volume = disk.extract_volume(work.path()).unwrap();
            let large = tools::read_file(&volume, contents::LARGE_PATH, work.path()).unwrap();
            assert!(large == contents::large_file());
        }
    }

    #[test]
    fn a_disk_with_large_blocks_has_its_table_in_its_own_blocks() {
        let disk = DemoDisk::make_with_large_blocks("test-large-blocks").unwrap();
        disk.check_file_system().unwrap();
        let table = sparse::read(disk.path(), 0, 512).unwrap();
        // First entry of the table: type at byte 4, first block at bytes 8 to 11.
        assert_eq!(table[446 + 4], 0x0c);
        assert_eq!(table[446 + 8..446 + 12], 256_u32.to_le_bytes());
    }

    #[test]
    fn a_damaged_file_system_is_found() {
        let disk = DemoDisk::make("test-damaged", Table::Mbr).unwrap();
        // Over the first entries of the first FAT copy (after 32 reserved sectors).
        sparse::write(disk.path(), FAT_START + 32 * 512 + 12, &[0x55; 64]).unwrap();
        assert!(disk.check_file_system().is_err());
    }

    #[test]
    fn a_missing_copy_and_an_empty_scratch_partition_are_found() {
        let disk = DemoDisk::make("test-nothing-written", Table::Mbr).unwrap();
        assert!(disk.check_copied_file().is_err());
        let error = format!("{:#}", disk.check_scratch().unwrap_err());
        assert_eq!(error, "the scratch partition: differs from byte 0 on");
    }

    #[test]
    fn a_copy_that_differs_in_one_byte_is_found() {
        let disk = DemoDisk::make("test-copy", Table::Mbr).unwrap();
        let write_copy = |bytes: &[u8]| {
            let work = tempfile::tempdir().unwrap();
            let tree = work.path().join("tree");
            fs::create_dir(&tree).unwrap();
            fs::write(tree.join("COPY.BIN"), bytes).unwrap();
            let volume = disk.extract_volume(work.path()).unwrap();
            tools::copy_tree_in(&tree, &volume).unwrap();
            sparse::copy((&volume, 0), (disk.path(), FAT_START), FAT_LENGTH).unwrap();
        };
        let mut copy = contents::large_file()[..contents::COPY_LENGTH].to_vec();
        write_copy(&copy);
        assert_eq!(disk.check_copied_file().unwrap(), contents::COPY_LENGTH);
        copy[100_000] ^= 1;
        write_copy(&copy);
        let error = format!("{:#}", disk.check_copied_file().unwrap_err());
        assert_eq!(error, "/COPY.BIN: differs from byte 100000 on");
    }
}
