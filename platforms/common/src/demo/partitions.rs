//! The partition table, MBR or GPT, read by `gpt_disk_io`.
//!
//! Not followed: logical partitions inside an extended one (shown as `other`), and the backup
//! table of a GPT whose first is damaged.

use gpt_disk_io::gpt_disk_types::{
    BlockSize, GptHeader, GptPartitionEntry, GptPartitionType, Lba, MasterBootRecord,
    MbrPartitionRecord, guid,
};
use gpt_disk_io::{BlockIo, DiskError};
use heapless::Vec;
use rootport::block::BlockError;

use super::disk::Disk;
use crate::power::Reason;

/// Policy: partitions that are looked at; a table may have more.
const MOST: usize = 16;
/// Policy: entries of a GPT that are read. Tools make 128; the header could claim four billions.
const MOST_ENTRIES: usize = 256;
/// MBR type of the one partition that a GPT disk shows to old software (UEFI 2.10 table 5-4).
const MBR_PROTECTIVE: u8 = 0xee;
/// MBR type "non-file-system data": the demo's scratch partition.
const MBR_SCRATCH: u8 = 0xda;
/// The first bytes of every MBR's end (UEFI 2.10 table 5-1).
const MBR_SIGNATURE: [u8; 2] = [0x55, 0xaa];
/// GPT type of the demo's scratch partition (`docs/demo-protocol.md`).
const GPT_SCRATCH: GptPartitionType =
    GptPartitionType(guid!("7A3D0C52-5E0B-4C4B-9A63-2D1F5B0E8A11"));

/// What a partition's type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It may hold a FAT: whether it does, only its first sector tells.
    Files,
    /// It is there to be overwritten by the demo.
    Scratch,
    /// Something else.
    Other,
}

/// One partition, in blocks of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number in the table, from 1; 0 for a disk without a table.
    pub number: u32,
    /// First block.
    pub first: u64,
    /// Blocks.
    pub blocks: u64,
    /// What its type says.
    pub purpose: Purpose,
}

/// The partitions of a disk, in the table's order.
pub type Partitions = Vec<Partition, MOST>;

/// Reads the table. A disk without one is a single partition that may hold files. Partitions that
/// reach beyond the disk are left out. `block` holds a block of the disk.
///
/// # Errors
///
/// The disk could not be read, or its blocks are larger than `block`.
pub fn read(disk: &mut Disk<'_>, block: &mut [u8]) -> Result<Partitions, Reason> {
    let blocks = disk.blocks();
    let record = read_record(disk, block)?;
    let gpt = record
        .partitions
        .iter()
        .any(|entry| entry.os_indicator == MBR_PROTECTIVE);
    let mut partitions = Partitions::new();
    if record.signature == MBR_SIGNATURE && gpt {
        read_gpt(disk, block, &mut partitions)?;
    } else if record.signature == MBR_SIGNATURE {
        let entries = (1..).zip(&record.partitions);
        partitions.extend(entries.filter_map(|(number, entry)| from_mbr(number, entry)));
    }
    partitions.retain(|part| {
        part.first
            .checked_add(part.blocks)
            .is_some_and(|end| end <= blocks)
    });
    if partitions.is_empty() {
        let whole = Partition {
            number: 0,
            first: 0,
            blocks,
            purpose: Purpose::Files,
        };
        partitions.extend([whole]);
    }
    Ok(partitions)
}

fn read_record(disk: &mut Disk<'_>, block: &mut [u8]) -> Result<MasterBootRecord, Reason> {
    let block = block
        .get_mut(..disk.block_size())
        .ok_or("the disk's blocks are too large")?;
    disk.read(0, block)
        .map_err(|error| Reason::new(format_args!("reading block 0: {error}")))?;
    // A block has 512 bytes at least.
    Ok(bytemuck::pod_read_unaligned(
        &block[..size_of::<MasterBootRecord>()],
    ))
}

/// An entry of an MBR that makes sense: a boot sector's code in its place does not.
fn from_mbr(number: u32, entry: &MbrPartitionRecord) -> Option<Partition> {
    let plausible = entry.boot_indicator & 0x7f == 0 && entry.os_indicator != 0;
    let purpose = match entry.os_indicator {
        0x01 | 0x04 | 0x06 | 0x0b | 0x0c | 0x0e | 0xef => Purpose::Files,
        MBR_SCRATCH => Purpose::Scratch,
        _ => Purpose::Other,
    };
    let first = u64::from(entry.starting_lba.to_u32());
    let blocks = u64::from(entry.size_in_lba.to_u32());
    (plausible && first > 0 && blocks > 0).then_some(Partition {
        number,
        first,
        blocks,
        purpose,
    })
}

fn read_gpt(
    disk: &mut Disk<'_>,
    block: &mut [u8],
    partitions: &mut Partitions,
) -> Result<(), Reason> {
    let told = |error: DiskError<BlockError>| Reason::new(format_args!("reading the GPT: {error}"));
    let mut disk = gpt_disk_io::Disk::new(Io(disk)).map_err(told)?;
    let header = disk.read_primary_gpt_header(block).map_err(told)?;
    if !header.is_signature_valid() || header.calculate_header_crc32() != header.header_crc32 {
        return Err("the GPT's first header is damaged".into());
    }
    let layout = header
        .get_partition_entry_array_layout()
        .map_err(|_| "the GPT's entries have an impossible size")?;
    let entries = disk
        .gpt_partition_entry_array_iter(layout, block)
        .map_err(told)?;
    for (number, entry) in (1..).zip(entries.take(MOST_ENTRIES)) {
        let partition = from_gpt(number, &entry.map_err(told)?, &header);
        if let Some(partition) = partition
            && partitions.push(partition).is_err()
        {
            break;
        }
    }
    Ok(())
}

fn from_gpt(number: u32, entry: &GptPartitionEntry, header: &GptHeader) -> Option<Partition> {
    let range = entry.lba_range().filter(|_| entry.is_used())?;
    let (first, last) = (range.start().to_u64(), range.end().to_u64());
    let usable = header.first_usable_lba.to_u64()..=header.last_usable_lba.to_u64();
    let purpose = match entry.partition_type_guid {
        GptPartitionType::BASIC_DATA | GptPartitionType::EFI_SYSTEM => Purpose::Files,
        GPT_SCRATCH => Purpose::Scratch,
        _ => Purpose::Other,
    };
    (usable.contains(&first) && usable.contains(&last)).then(|| Partition {
        number,
        first,
        blocks: last - first + 1,
        purpose,
    })
}

/// A [`Disk`] as `gpt_disk_io` wants it; it is only read.
struct Io<'d, 'b>(&'d mut Disk<'b>);

impl BlockIo for Io<'_, '_> {
    type Error = BlockError;

    fn block_size(&self) -> BlockSize {
        u32::try_from(self.0.block_size())
            .ok()
            .and_then(BlockSize::new)
            .unwrap_or(BlockSize::BS_512)
    }

    fn num_blocks(&mut self) -> Result<u64, BlockError> {
        Ok(self.0.blocks())
    }

    fn read_blocks(&mut self, first: Lba, blocks: &mut [u8]) -> Result<(), BlockError> {
        self.0.read(first.to_u64(), blocks)
    }

    fn write_blocks(&mut self, first: Lba, blocks: &[u8]) -> Result<(), BlockError> {
        self.0.write(first.to_u64(), blocks)
    }

    fn flush(&mut self) -> Result<(), BlockError> {
        self.0.flush().map(drop)
    }
}
