//! Translation tables: 4 KiB granule, one to one, in the 64-bit descriptors that AArch64 and the
//! Large Physical Address Extension of ARMv7 share.
//!
//! Who calls it: `AddressSpace`, before the MMU is on and after. It builds with plain stores of
//! aligned words, so that it runs with the MMU off. Invariants: what is mapped stays mapped, with
//! the attributes that it has (a change would need break-before-make); nothing is mapped both
//! writable and executable.
//! Read first: ARM DDI 0487 §D8.3 (descriptor formats), §D8.2.7 (4 KiB granule); for 32 bits ARM DDI
//! 0406C §B3.6 (long-descriptor format).

use core::ops::Range;

use tock_registers::fields::FieldValue;
use tock_registers::register_bitfields;

use crate::region::{PAGE, Region};

register_bitfields! {u64,
    /// DDI 0487 figures D8-12 to D8-16: table, block and page descriptors of stage 1.
    Descriptor [
        VALID OFFSET(0) NUMBITS(1) [],
        /// A table in levels 0 to 2, a page in level 3; clear: a block.
        TABLE_OR_PAGE OFFSET(1) NUMBITS(1) [],
        /// Index into MAIR_EL1.
        ATTRIBUTES OFFSET(2) NUMBITS(3) [
            Cached = 0,
            Uncached = 1,
            Device = 2,
            StronglyOrdered = 3,
        ],
        ACCESS OFFSET(6) NUMBITS(2) [
            ReadWrite = 0,
            ReadOnly = 2,
        ],
        SHAREABILITY OFFSET(8) NUMBITS(2) [
            Outer = 2,
            Inner = 3,
        ],
        /// Set by us: the first access does not fault.
        ACCESSED OFFSET(10) NUMBITS(1) [],
        ADDRESS OFFSET(12) NUMBITS(36) [],
        PRIVILEGED_NO_EXECUTE OFFSET(53) NUMBITS(1) [],
        /// In AArch64 for unprivileged code, which there is none of; in ARMv7 for all.
        NO_EXECUTE OFFSET(54) NUMBITS(1) [],
    ]
}

/// Value of MAIR_EL1 or MAIR0 for the attribute indices of [`Memory`]: normal write-back (0xff), normal
/// non-cacheable (0x44), device nGnRE (0x04), device nGnRnE (0x00). DDI 0487 §D17.2.97.
pub const MEMORY_ATTRIBUTES: u64 = 0x00_04_44_ff;

/// What a mapping is for; each kind has its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Code: cached, read-only, executable.
    Code,
    /// Constants: cached, read-only.
    Constants,
    /// Data: cached, writable.
    Data,
    /// Memory shared with devices that do not snoop: normal non-cacheable, writable.
    Uncached,
    /// Device registers (nGnRE: writes may be acknowledged on the way).
    Device,
    /// Configuration space (nGnRnE: a write has arrived when the next instruction runs).
    Configuration,
}

impl Memory {
    /// The attribute bits of a block or page of this kind.
    fn attributes(self) -> FieldValue<u64, Descriptor::Register> {
        let data = Descriptor::PRIVILEGED_NO_EXECUTE::SET + Descriptor::NO_EXECUTE::SET;
        let cached = Descriptor::ATTRIBUTES::Cached + Descriptor::SHAREABILITY::Inner;
        let kind = match self {
            Self::Code => cached + Descriptor::ACCESS::ReadOnly,
            Self::Constants => cached + Descriptor::ACCESS::ReadOnly + data,
            Self::Data => cached + data,
            Self::Uncached => {
                Descriptor::ATTRIBUTES::Uncached + Descriptor::SHAREABILITY::Outer + data
            }
            Self::Device => Descriptor::ATTRIBUTES::Device + data,
            Self::Configuration => Descriptor::ATTRIBUTES::StronglyOrdered + data,
        };
        Descriptor::VALID::SET + Descriptor::ACCESSED::SET + kind
    }
}

/// Why a region was not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// The region does not start and end on a page, or reaches beyond the address space.
    BadRegion(Region),
    /// The address is mapped already, with other attributes. Map it once, as what it is.
    Conflict(usize),
    /// No table is left: raise the number of tables.
    NoTables,
}

/// The level of the root table, and with it the size of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// 48 bits of AArch64, four levels.
    Level0,
    /// 32 bits of ARMv7, three levels; the root has four entries that count (DDI 0406C §B3.6.5).
    Level1,
}

impl Root {
    const fn level(self) -> u32 {
        match self {
            Self::Level0 => 0,
            Self::Level1 => 1,
        }
    }

    const fn address_bits(self) -> u32 {
        match self {
            Self::Level0 => 48,
            Self::Level1 => 32,
        }
    }
}

const ENTRIES: usize = 512;
const LAST_LEVEL: u32 = 3;
const ADDRESS_MASK: u64 = ((1 << 48) - 1) & !(PAGE as u64 - 1);

/// Bytes that one entry of a table covers: 512 GiB at level 0, 4 KiB at level 3.
const fn span(level: u32) -> u64 {
    1 << (39 - 9 * level)
}

#[derive(Debug)]
#[repr(C, align(4096))]
struct Table([u64; ENTRIES]);

/// The tables of one address space, at most `N` of them; the first is the root.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct Tables<const N: usize> {
    tables: [Table; N],
    root: Root,
    /// Tables in use beyond the root.
    used: usize,
}

impl<const N: usize> Tables<N> {
    /// An empty address space.
    #[must_use]
    pub const fn new(root: Root) -> Self {
        assert!(N > 0, "the root needs a table");
        Self {
            tables: [const { Table([0; ENTRIES]) }; N],
            root,
            used: 0,
        }
    }

    /// The address of the root table, for TTBR0_EL1 or TTBR0.
    #[must_use]
    pub fn root(&self) -> usize {
        self.address(0)
    }

    /// Maps `region` one to one as `memory`, in the largest blocks that fit. Mapping a part of it
    /// again as the same kind changes nothing.
    ///
    /// # Errors
    ///
    /// [`MapError`]; what was mapped before the error stays mapped.
    pub fn map(&mut self, region: Region, memory: Memory) -> Result<(), MapError> {
        let (start, end) = (region.start as u64, region.end() as u64);
        if region.to_pages() != region || end > 1 << self.root.address_bits() {
            return Err(MapError::BadRegion(region));
        }
        let level = self.root.level();
        self.fill(0, level, start..end, memory.attributes().value)
    }

    fn fill(
        &mut self,
        table: usize,
        level: u32,
        range: Range<u64>,
        attributes: u64,
    ) -> Result<(), MapError> {
        let span = span(level);
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min((start & !(span - 1)) + span);
            let index = (start / span) as usize % ENTRIES;
            if end - start == span && self.set_leaf(table, level, index, start, attributes)? {
            } else if !self.is_covered(table, level, index, attributes) {
                let child = self.child(table, level, index, start)?;
                self.fill(child, level + 1, start..end, attributes)?;
            }
            start = end;
        }
        Ok(())
    }

    /// Tries to map a whole entry; `false` where tables are needed below.
    fn set_leaf(
        &mut self,
        table: usize,
        level: u32,
        index: usize,
        address: u64,
        attributes: u64,
    ) -> Result<bool, MapError> {
        // Level 0 has no blocks (DDI 0487 §D8.3.1).
        if level == 0 {
            return Ok(false);
        }
        let page = if level == LAST_LEVEL {
            Descriptor::TABLE_OR_PAGE::SET.value
        } else {
            0
        };
        let leaf = address | attributes | page;
        let entry = &mut self.tables[table].0[index];
        match *entry {
            0 => store(entry, leaf),
            present if present == leaf => {}
            present if level < LAST_LEVEL && is_table(present) => return Ok(false),
            _ => return Err(MapError::Conflict(address as usize)),
        }
        Ok(true)
    }

    /// Whether the entry is a block that has these attributes already.
    fn is_covered(&self, table: usize, level: u32, index: usize, attributes: u64) -> bool {
        let entry = self.tables[table].0[index];
        (1..LAST_LEVEL).contains(&level) && !is_table(entry) && entry & !ADDRESS_MASK == attributes
    }

    /// The table below an entry, made if there is none.
    fn child(
        &mut self,
        table: usize,
        level: u32,
        index: usize,
        address: u64,
    ) -> Result<usize, MapError> {
        let entry = self.tables[table].0[index];
        if is_table(entry) && level < LAST_LEVEL {
            return Ok(((entry & ADDRESS_MASK) as usize - self.root()) / PAGE);
        }
        if entry != 0 {
            return Err(MapError::Conflict(address as usize));
        }
        let child = self.used + 1;
        if child >= N {
            return Err(MapError::NoTables);
        }
        self.used = child;
        let next = Descriptor::VALID::SET + Descriptor::TABLE_OR_PAGE::SET;
        let entry = self.address(child) as u64 | next.value;
        store(&mut self.tables[table].0[index], entry);
        Ok(child)
    }

    fn address(&self, table: usize) -> usize {
        &raw const self.tables[table] as usize
    }
}

/// Fills an entry that was invalid; the MMU may walk over it at any moment.
fn store(entry: &mut u64, value: u64) {
    let halves = core::ptr::from_mut(entry).cast::<u32>();
    // A 32-bit core may need two stores: the half with the valid bit comes last.
    // SAFETY: both are the halves of `entry`, which is borrowed for writing.
    unsafe {
        if cfg!(target_pointer_width = "32") {
            halves.add(1).write_volatile((value >> 32) as u32);
            halves.write_volatile(value as u32);
        } else {
            halves.cast::<u64>().write_volatile(value);
        }
    }
}

/// Whether an entry of levels 0 to 2 points to a table.
fn is_table(entry: u64) -> bool {
    let table = (Descriptor::VALID::SET + Descriptor::TABLE_OR_PAGE::SET).value;
    entry & table == table
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use super::{MapError, Memory, Root, Tables, is_table, span};
    use crate::region::Region;

    const MIB: usize = 1 << 20;
    const GIB: usize = 1 << 30;

    /// Walks the tables as the MMU does: the leaf's level and value for an address.
    fn walk<const N: usize>(tables: &Tables<N>, address: usize) -> Option<(u32, u64)> {
        let mut table = 0;
        for level in tables.root.level()..4 {
            let entry = tables.tables[table].0[(address as u64 / span(level)) as usize % 512];
            if entry & 1 == 0 {
                return None;
            }
            if level == 3 || !is_table(entry) {
                assert_eq!(
                    entry & 2 != 0,
                    level == 3,
                    "a page has bit 1 set, a block has not"
                );
                let target = entry as usize & 0x0000_ffff_ffff_f000;
                let page = address & !(span(level) as usize - 1);
                assert_eq!(target, page, "mapped one to one");
                return Some((level, entry));
            }
            table = (entry as usize - tables.root()) / 4096;
        }
        None
    }

    #[test]
    fn large_aligned_regions_use_blocks() {
        let mut tables = Box::new(Tables::<4>::new(Root::Level0));
        tables.map(Region::new(GIB, 2 * GIB), Memory::Data).unwrap();
        tables
            .map(Region::new(4 * MIB, 2 * MIB), Memory::Device)
            .unwrap();
        assert_eq!(walk(&tables, GIB).unwrap().0, 1);
        assert_eq!(walk(&tables, 3 * GIB - 1).unwrap().0, 1);
        assert_eq!(walk(&tables, 4 * MIB).unwrap().0, 2);
        assert_eq!(walk(&tables, 6 * MIB), None);
    }

    #[test]
    fn odd_ends_use_pages() {
        let mut tables = Box::new(Tables::<6>::new(Root::Level0));
        tables
            .map(
                Region::between(2 * MIB - 0x1000, 4 * MIB + 0x2000),
                Memory::Data,
            )
            .unwrap();
        assert_eq!(walk(&tables, 2 * MIB - 1).unwrap().0, 3);
        assert_eq!(walk(&tables, 2 * MIB).unwrap().0, 2);
        assert_eq!(walk(&tables, 4 * MIB + 0x1fff).unwrap().0, 3);
        assert_eq!(walk(&tables, 4 * MIB + 0x2000), None);
        assert_eq!(walk(&tables, 2 * MIB - 0x1001), None);
    }

    #[test]
    fn code_cannot_be_written_and_data_cannot_be_executed() {
        let mut tables = Box::new(Tables::<4>::new(Root::Level0));
        tables
            .map(Region::new(0x1000, 0x1000), Memory::Code)
            .unwrap();
        tables
            .map(Region::new(0x2000, 0x1000), Memory::Data)
            .unwrap();
        tables
            .map(Region::new(0x3000, 0x1000), Memory::Uncached)
            .unwrap();
        let attributes = |address| walk(&tables, address).unwrap().1;
        assert_eq!(attributes(0x1000) >> 6 & 3, 2, "AP[2:1]: read-only at EL1");
        assert_eq!(attributes(0x1000) >> 53 & 3, 0, "PXN, and XN of ARMv7");
        assert_eq!(attributes(0x2000) >> 6 & 3, 0);
        assert_eq!(attributes(0x2000) >> 53 & 1, 1);
        assert_eq!(attributes(0x3000) >> 2 & 7, 1, "AttrIndx");
        assert_eq!(attributes(0x3000) >> 53 & 1, 1);
    }

    #[test]
    fn the_same_again_changes_nothing_inside_a_block_either() {
        let mut tables = Box::new(Tables::<4>::new(Root::Level0));
        tables.map(Region::new(GIB, GIB), Memory::Data).unwrap();
        tables
            .map(Region::new(GIB + 0x5000, 0x1000), Memory::Data)
            .unwrap();
        tables.map(Region::new(GIB, GIB), Memory::Data).unwrap();
        assert_eq!(walk(&tables, GIB + 0x5000).unwrap().0, 1);
    }

    #[test]
    fn another_kind_over_a_mapping_is_a_conflict() {
        let mut tables = Box::new(Tables::<8>::new(Root::Level0));
        tables.map(Region::new(GIB, GIB), Memory::Data).unwrap();
        let device = tables.map(Region::new(GIB + 0x5000, 0x1000), Memory::Device);
        assert_eq!(device, Err(MapError::Conflict(GIB + 0x5000)));
        tables
            .map(Region::new(0x1000, 0x1000), Memory::Code)
            .unwrap();
        let data = tables.map(Region::new(0, 2 * MIB), Memory::Data);
        assert_eq!(data, Err(MapError::Conflict(0x1000)));
    }

    #[test]
    fn no_table_left_is_an_error() {
        let mut tables = Box::new(Tables::<3>::new(Root::Level0));
        let page = tables.map(Region::new(0x1000, 0x1000), Memory::Data);
        assert_eq!(page, Err(MapError::NoTables));
    }

    #[test]
    fn half_pages_and_addresses_beyond_48_bits_are_refused() {
        let mut tables = Box::new(Tables::<4>::new(Root::Level0));
        for region in [Region::new(0x800, 0x1000), Region::new(1 << 48, 0x1000)] {
            assert_eq!(
                tables.map(region, Memory::Data),
                Err(MapError::BadRegion(region))
            );
        }
    }

    #[test]
    fn a_32_bit_space_starts_at_level_1_and_ends_at_4_gib() {
        let mut tables = Box::new(Tables::<4>::new(Root::Level1));
        tables.map(Region::new(GIB, GIB), Memory::Data).unwrap();
        tables
            .map(Region::new(28 * MIB, 0x1000), Memory::Device)
            .unwrap();
        assert_eq!(walk(&tables, GIB).unwrap().0, 1);
        assert_eq!(walk(&tables, 28 * MIB).unwrap().0, 3);
        assert_eq!(walk(&tables, 2 * GIB), None);
        let beyond = Region::new(4 * GIB, 0x1000);
        let refused = tables.map(beyond, Memory::Data);
        assert_eq!(refused, Err(MapError::BadRegion(beyond)));
    }
}
