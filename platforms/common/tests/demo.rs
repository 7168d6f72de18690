//! The demo's parts on disks in memory: 512-byte and 4096-byte blocks, MBR and GPT, disks that
//! fail. The file systems are made by `hadris-fat` here; the demo itself runs on ones that
//! mkfs.vfat made.

use board_common::demo::buffers::Buffers;
use board_common::demo::disk::{Access, Disk};
use board_common::demo::options::{Mode, Options};
use board_common::demo::partitions::{self, Partition, Purpose};
use board_common::demo::{examine, offsets, sectors};
use board_common::power::Reason;
use gpt_disk_io::gpt_disk_types::{MasterBootRecord, MbrPartitionRecord, U32Le};
use hadris_fat::FatOptions;
use hadris_fat::embedded::MountToken;
use hadris_fat::embedded::sync::Fat;
use hadris_fs::OpenOptions;
use rootport::block::{
    BlockDevice, BlockError, FlushSupport, Geometry, Lba, SenseCode, WriteCache,
};

const FAT_START: u64 = 2048 * 512;
const FAT_BYTES: u64 = 8 << 20;
const SCRATCH_START: u64 = FAT_START + FAT_BYTES;
const SCRATCH_BYTES: u64 = 2 << 20;
const DISK_BYTES: usize = (SCRATCH_START + SCRATCH_BYTES) as usize;

/// What the disk in memory says about a bad block.
fn broken(lba: u64) -> BlockError {
    let sense = SenseCode {
        key: 3,
        asc: 0x11,
        ascq: 0,
    };
    BlockError::Medium {
        lba: Some(Lba(lba)),
        sense,
    }
}

/// A disk in memory. It counts writes and can have a bad block.
struct Memory {
    bytes: Vec<u8>,
    block: usize,
    bad: Option<u64>,
    reads: usize,
    writes: usize,
}

impl Memory {
    fn new(block: usize) -> Self {
        Self {
            bytes: vec![0; DISK_BYTES],
            block,
            bad: None,
            reads: 0,
            writes: 0,
        }
    }

    /// An MBR with a FAT and a scratch partition.
    fn partitioned(block: usize) -> Self {
        let mut disk = Self::new(block);
        let entry = |kind, start: u64, bytes: u64| MbrPartitionRecord {
            os_indicator: kind,
            starting_lba: U32Le::from_u32((start / block as u64) as u32),
            size_in_lba: U32Le::from_u32((bytes / block as u64) as u32),
            ..MbrPartitionRecord::default()
        };
        let mut record = MasterBootRecord {
            signature: [0x55, 0xaa],
            ..MasterBootRecord::default()
        };
        record.partitions[0] = entry(0x0c, FAT_START, FAT_BYTES);
        record.partitions[1] = entry(0xda, SCRATCH_START, SCRATCH_BYTES);
        disk.bytes[..512].copy_from_slice(bytemuck::bytes_of(&record));
        disk
    }

    /// The same, with a file system and a few files.
    fn with_files(block: usize) -> Self {
        let mut disk = Self::partitioned(block);
        let partition = disk.fat_partition();
        let mut window = vec![0; 64 << 10];
        let mut handle = Disk::new(&mut disk, Access::ReadWrite).unwrap();
        let mut sectors = sectors::Sectors::new(&mut handle, &partition, &mut window, true);
        hadris_fat::sync::format(&mut sectors, &FatOptions::new()).unwrap();
        let mut token = MountToken::new();
        let mut fat: Fat<_> = Fat::mount(sectors, &mut token).unwrap();
        let inner = fat.create_dir_all(fat.root(), "DOCS/GUIDE").unwrap();
        for (directory, name, length) in [
            (fat.root(), "BIG.BIN", 1_500_000),
            (inner, "A longer name.txt", 700),
        ] {
            let file = fat
                .open(directory, name, OpenOptions::new().write().create())
                .unwrap();
            assert_eq!(fat.write(&file, &content(length)).unwrap(), length);
            fat.close(file).unwrap();
        }
        fat.unmount().unwrap();
        disk.writes = 0;
        disk
    }

    fn fat_partition(&self) -> Partition {
        Partition {
            number: 1,
            first: FAT_START / self.block as u64,
            blocks: FAT_BYTES / self.block as u64,
            purpose: Purpose::Files,
        }
    }

    /// The content of a file in the root directory.
    fn read_file(&mut self, name: &str) -> Option<Vec<u8>> {
        let partition = self.fat_partition();
        let mut window = vec![0; 64 << 10];
        let mut handle = Disk::new(self, Access::ReadOnly).unwrap();
        let sectors = sectors::Sectors::new(&mut handle, &partition, &mut window, false);
        let mut token = MountToken::new();
        let mut fat: Fat<_> = Fat::mount(sectors, &mut token).unwrap();
        let file = fat.open(fat.root(), name, OpenOptions::new().read()).ok()?;
        let mut bytes = vec![0; 4 << 20];
        let count = fat.read(&file, &mut bytes).unwrap();
        bytes.truncate(count);
        Some(bytes)
    }

    fn range(&self, first: u64, length: usize) -> std::ops::Range<usize> {
        let start = first as usize * self.block;
        assert!(
            length.is_multiple_of(self.block) && length > 0,
            "whole blocks"
        );
        start..start + length
    }

    fn check(&self, first: u64, length: usize) -> Result<(), BlockError> {
        let blocks = first..first + (length / self.block) as u64;
        match self.bad {
            Some(bad) if blocks.contains(&bad) => Err(broken(bad)),
            _ => Ok(()),
        }
    }
}

impl BlockDevice for Memory {
    fn geometry(&self) -> Result<Geometry, BlockError> {
        Ok(Geometry {
            blocks: (self.bytes.len() / self.block) as u64,
            block_bytes: self.block as u32,
            physical_exponent: 0,
            writable: true,
            removable: false,
            flush: FlushSupport::Command,
            cache: WriteCache::Unknown,
            transfer_blocks: 2048,
        })
    }

    fn read(&mut self, first: Lba, blocks: &mut [u8]) -> Result<(), BlockError> {
        self.check(first.0, blocks.len())?;
        self.reads += 1;
        blocks.copy_from_slice(&self.bytes[self.range(first.0, blocks.len())]);
        Ok(())
    }

    fn write(&mut self, first: Lba, blocks: &[u8]) -> Result<(), BlockError> {
        self.check(first.0, blocks.len())?;
        self.writes += 1;
        let range = self.range(first.0, blocks.len());
        self.bytes[range].copy_from_slice(blocks);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), BlockError> {
        Ok(())
    }
}

fn content(length: usize) -> Vec<u8> {
    (0..length)
        .map(|index| (index * 7 + index / 251) as u8)
        .collect()
}

fn run(disk: &mut Memory, mode: Mode) -> Result<(), String> {
    let options = Options {
        mode,
        ..Options::default()
    };
    let [mut transfer, mut window, mut block] = [1 << 20, 64 << 10, 4096].map(|n| vec![0; n]);
    let mut buffers = Buffers {
        transfer: &mut transfer,
        window: &mut window,
        block: &mut block,
    };
    let access = if mode.writes() {
        Access::ReadWrite
    } else {
        Access::ReadOnly
    };
    let mut disk = Disk::new(disk, access).unwrap();
    examine(&mut disk, 0, &options, &mut buffers, || 0).map_err(|reason| reason.to_string())
}

fn table(disk: &mut Memory) -> Result<partitions::Partitions, Reason> {
    partitions::read(
        &mut Disk::new(disk, Access::ReadOnly).unwrap(),
        &mut vec![0; 512],
    )
}

#[test]
fn the_demo_copies_the_beginning_of_the_largest_file() {
    for block in [512, 4096] {
        let mut disk = Memory::with_files(block);
        run(&mut disk, Mode::Demo).unwrap();
        let copy = disk.read_file("COPY.BIN").unwrap();
        assert!(
            copy == content(1_500_000)[..1_048_699],
            "blocks of {block} bytes"
        );
    }
}

#[test]
fn the_scratch_partition_ends_up_with_the_pattern() {
    let mut disk = Memory::with_files(512);
    run(&mut disk, Mode::Demo).unwrap();
    let second = &disk.bytes[SCRATCH_START as usize + 8..][..8];
    assert_eq!(second, 0x3c6e_f372_fe94_f82a_u64.to_le_bytes());
}

/// The pieces of every offset, one behind the other, are the pattern; nothing else is written.
#[test]
fn pieces_from_every_offset_make_one_pattern() {
    for block in [512, 4096] {
        let mut disk = Memory::new(block);
        let result = every_offset(&mut disk, 5);
        assert_eq!(result, Ok(()), "blocks of {block} bytes");
        let (before, rest) = disk.bytes.split_at(5 * block);
        let (pattern, after) = rest.split_at(64 * 15 * block);
        assert!(before.iter().chain(after).all(|byte| *byte == 0));
        for (word, place) in pattern.chunks_exact(8).zip(1_u64..) {
            assert_eq!(
                word,
                place.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
            );
        }
    }
}

#[test]
fn a_piece_that_fails_is_named_by_its_offset() {
    let mut disk = Memory::new(512);
    // Behind 15 blocks of offset 0 come 1 and 3 of offset 1.
    disk.bad = Some(15 + 4);
    let result = every_offset(&mut disk, 0).unwrap_err();
    assert!(result.starts_with("offset 1, 5632 bytes: "), "{result}");
}

fn every_offset(disk: &mut Memory, first: u64) -> Result<(), String> {
    let options = Options {
        mode: Mode::Offsets,
        first,
        ..Options::default()
    };
    let mut transfer = vec![0; 1 << 20];
    let mut buffers = Buffers {
        transfer: &mut transfer,
        window: &mut [],
        block: &mut [],
    };
    let mut disk = Disk::new(disk, Access::ReadWrite).unwrap();
    offsets::run(&mut disk, 0, &options, &mut buffers).map_err(|reason| reason.to_string())
}

#[test]
fn reading_writes_nothing() {
    let mut disk = Memory::with_files(512);
    let before = disk.bytes.clone();
    run(&mut disk, Mode::Read).unwrap();
    assert_eq!(disk.writes, 0);
    assert!(disk.bytes == before);
}

#[test]
fn a_run_that_may_not_write_refuses_writes_of_its_own_parts() {
    let mut disk = Memory::new(512);
    let mut handle = Disk::new(&mut disk, Access::ReadOnly).unwrap();
    assert_eq!(handle.write(0, &[0; 512]), Err(BlockError::WriteProtected));
    assert_eq!(disk.writes, 0);
}

#[test]
fn a_copy_that_is_there_already_is_not_overwritten() {
    let mut disk = Memory::with_files(512);
    run(&mut disk, Mode::Demo).unwrap();
    assert!(run(&mut disk, Mode::Demo).unwrap_err().contains("copying"));
}

#[test]
fn small_reads_of_a_file_system_go_through_the_window() {
    let mut disk = Memory::with_files(512);
    disk.reads = 0;
    run(&mut disk, Mode::Read).unwrap();
    assert!(disk.reads < 60, "{} reads", disk.reads);
}

#[test]
fn a_disk_error_ends_the_demo_with_its_words() {
    let mut disk = Memory::with_files(512);
    disk.bad = Some(0);
    assert_eq!(
        run(&mut disk, Mode::Read).unwrap_err(),
        "reading block 0: the medium is bad at block 0 (3/11/00)"
    );
    disk.bad = Some(SCRATCH_START / 512 + 8);
    assert!(
        run(&mut disk, Mode::Demo)
            .unwrap_err()
            .contains("the medium is bad")
    );
}

#[test]
fn a_disk_without_files_or_scratch_is_no_failure() {
    run(&mut Memory::new(512), Mode::Demo).unwrap();
    run(&mut Memory::partitioned(512), Mode::Read).unwrap();
}

#[test]
fn a_write_of_half_a_block_keeps_the_other_half() {
    use hadris_storage::BlockIndex;
    use hadris_storage::sync::BlockDevice;
    let mut disk = Memory::new(4096);
    disk.bytes.fill(0x55);
    let partition = disk.fat_partition();
    let mut window = vec![0; 8192];
    let mut handle = Disk::new(&mut disk, Access::ReadWrite).unwrap();
    let mut sectors = sectors::Sectors::new(&mut handle, &partition, &mut window, true);
    sectors
        .write_blocks(BlockIndex::new(7), &[0xaa; 1024])
        .unwrap();
    let mut back = [0; 512];
    sectors.read_blocks(BlockIndex::new(8), &mut back).unwrap();
    assert_eq!(back, [0xaa; 512]);
    let start = FAT_START as usize;
    assert_eq!(disk.bytes[start + 7 * 512 - 1], 0x55);
    assert_eq!(disk.bytes[start + 7 * 512..start + 9 * 512], [0xaa; 1024]);
    assert_eq!(disk.bytes[start + 9 * 512], 0x55);
}

#[test]
fn a_partition_that_reaches_beyond_the_disk_is_left_out() {
    let mut disk = Memory::partitioned(512);
    disk.bytes.truncate(DISK_BYTES - 512);
    let found = table(&mut disk).unwrap();
    assert_eq!(
        found
            .iter()
            .map(|partition| partition.number)
            .collect::<Vec<_>>(),
        [1]
    );
}

#[test]
fn a_disk_without_a_table_is_one_partition() {
    let mut disk = Memory::new(512);
    let found = table(&mut disk).unwrap();
    assert_eq!(
        (found.len(), found[0].number, found[0].blocks),
        (1, 0, DISK_BYTES as u64 / 512)
    );
}

#[test]
fn a_gpt_is_read_and_a_damaged_one_is_told() {
    let mut disk = Memory::new(512);
    gpt::write(&mut disk.bytes);
    let found = table(&mut disk).unwrap();
    let kinds: Vec<_> = found
        .iter()
        .map(|part| (part.number, part.purpose))
        .collect();
    assert_eq!(kinds, [(1, Purpose::Files), (2, Purpose::Scratch)]);
    disk.bytes[512 + 40] ^= 1;
    let reason = table(&mut disk).unwrap_err();
    assert!(reason.to_string().contains("damaged"));
}

mod gpt {
    use gpt_disk_io::gpt_disk_types::{
        BlockSize, GptHeader, GptPartitionEntry, GptPartitionEntryArray, GptPartitionType, LbaLe,
        U32Le, guid,
    };
    use gpt_disk_io::{BlockIoAdapter, Disk};

    /// A GPT with a basic data partition and a scratch one.
    pub(super) fn write(bytes: &mut [u8]) {
        let last = (bytes.len() / 512 - 1) as u64;
        let mut header = GptHeader {
            my_lba: LbaLe::from_u64(1),
            alternate_lba: LbaLe::from_u64(last),
            first_usable_lba: LbaLe::from_u64(34),
            last_usable_lba: LbaLe::from_u64(last - 33),
            partition_entry_lba: LbaLe::from_u64(2),
            number_of_partition_entries: U32Le::from_u32(128),
            ..GptHeader::default()
        };
        let mut storage = vec![0; 128 * 128];
        let layout = header.get_partition_entry_array_layout().unwrap();
        let mut array =
            GptPartitionEntryArray::new(layout, BlockSize::BS_512, &mut storage).unwrap();
        let scratch = GptPartitionType(guid!("7A3D0C52-5E0B-4C4B-9A63-2D1F5B0E8A11"));
        for (index, (kind, start)) in
            (0..).zip([(GptPartitionType::BASIC_DATA, 2048_u64), (scratch, 8192)])
        {
            *array.get_partition_entry_mut(index).unwrap() = GptPartitionEntry {
                partition_type_guid: kind,
                starting_lba: LbaLe::from_u64(start),
                ending_lba: LbaLe::from_u64(start + 1023),
                ..GptPartitionEntry::default()
            };
        }
        header.partition_entry_array_crc32 = array.calculate_crc32();
        header.update_header_crc32();
        let mut disk = Disk::new(BlockIoAdapter::new(bytes, BlockSize::BS_512)).unwrap();
        let mut block = [0; 512];
        disk.write_protective_mbr(&mut block).unwrap();
        disk.write_primary_gpt_header(&header, &mut block).unwrap();
        disk.write_gpt_partition_entry_array(&array).unwrap();
    }
}
