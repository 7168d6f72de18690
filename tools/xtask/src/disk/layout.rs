//! Where everything is on a demo disk.

const MIB: u64 = 1 << 20;
pub(super) const DISK_LENGTH: u64 = 320 * MIB;
pub(super) const FAT_START: u64 = MIB;
pub(super) const FAT_LENGTH: u64 = 288 * MIB;
pub(super) const SCRATCH_START: u64 = FAT_START + FAT_LENGTH;
const SCRATCH_LENGTH: u64 = 24 * MIB;

/// The number of the FAT partition in the table.
pub const FAT_PARTITION: u32 = 1;
/// The number of the scratch partition in the table.
pub const SCRATCH_PARTITION: u32 = 2;

/// The kind of partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Master boot record.
    Mbr,
    /// GUID partition table.
    Gpt,
}

/// Where a partition is, in the disk's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number in the table, from 1.
    pub number: u32,
    /// Its first block.
    pub first: u64,
    /// How many blocks it has.
    pub blocks: u64,
    /// The demo's word for it: `fat` or `scratch`.
    pub kind: &'static str,
}

/// The demo disk's layout for one block size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes in a block: 512 or 4096.
    pub block_size: u32,
}

impl Layout {
    /// Blocks on the disk.
    pub fn blocks(&self) -> u64 {
        DISK_LENGTH / u64::from(self.block_size)
    }

    /// The FAT partition and the scratch partition.
    pub fn partitions(&self) -> [Partition; 2] {
        let partition = |number, start: u64, length: u64, kind| Partition {
            number,
            first: start / u64::from(self.block_size),
            blocks: length / u64::from(self.block_size),
            kind,
        };
        [
            partition(FAT_PARTITION, FAT_START, FAT_LENGTH, "fat"),
            partition(SCRATCH_PARTITION, SCRATCH_START, SCRATCH_LENGTH, "scratch"),
        ]
    }

    /// sfdisk's input. It counts in 512-byte sectors, but a master boot record holds block numbers
    /// only, so the numbers of larger blocks can be given to it as they are.
    pub(super) fn partition_script(&self, table: Table) -> String {
        let (label, types) = match table {
            Table::Mbr => ("dos", ["c", "da"]),
            Table::Gpt => (
                "gpt",
                [
                    "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7",
                    "7A3D0C52-5E0B-4C4B-9A63-2D1F5B0E8A11",
                ],
            ),
        };
        let mut script = format!("label: {label}\n");
        for (Partition { first, blocks, .. }, kind) in self.partitions().into_iter().zip(types) {
            script += &format!("start={first}, size={blocks}, type={kind}\n");
        }
        script
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_counts_in_the_blocks_of_the_disk() {
        let small = Layout { block_size: 512 }.partition_script(Table::Mbr);
        assert!(
            small.contains("start=2048, size=589824, type=c\n"),
            "{small}"
        );
        let large = Layout { block_size: 4096 }.partition_script(Table::Mbr);
        assert!(large.contains("start=256, size=73728, type=c\n"), "{large}");
    }
}
