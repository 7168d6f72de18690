//! The coherent pool: first fit with alignment and boundary rules, and a ledger of who holds what.
//!
//! Called when a controller starts and when a device or endpoint is opened, never on the path of a
//! read: what a device needs at its depth is reserved when it is opened. The ledger lives in
//! [`PoolRecord`]s that the caller of the stack provides, outside of the memory that devices can
//! write. Everything of one [`Owner`] goes back with one [`Pool::reclaim`], so that an open that
//! fails half-way leaks nothing.

use core::ptr::NonNull;

use super::{Block, BusAddress, CoherentRegion, Row};
use crate::arch;

/// What a piece of the pool is, for the ledger and its diagnostics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// xHCI device context base address array, or an EHCI or OHCI list base.
    Base,
    /// xHCI device or input contexts.
    Context,
    /// A command or transfer ring.
    Ring,
    /// An event ring segment or its table.
    EventRing,
    /// Memory that the controller keeps to itself.
    Scratchpad,
    /// EHCI queue heads and qTDs, OHCI endpoint and transfer descriptors.
    Queue,
    /// Command and status wrappers, information units, control data.
    Command,
    /// Bounce lines and staging buffers.
    Bounce,
}

impl Class {
    /// Every class, in the order of [`PoolUsage::by_class`].
    pub const ALL: [Self; 8] = [
        Self::Base,
        Self::Context,
        Self::Ring,
        Self::EventRing,
        Self::Scratchpad,
        Self::Queue,
        Self::Command,
        Self::Bounce,
    ];
}

/// Who holds a piece of the pool. All of an owner's pieces can be reclaimed at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// The host itself.
    Host,
    /// The controller with this index in its host.
    Controller(u8),
    /// A device of a controller: the controller's index and the device's slot there.
    Device(u8, u8),
    /// The function of a device that the host drives, by its index in the host's table.
    Function(u8),
}

/// Where a structure may lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// The first byte's address is a multiple of this power of two.
    pub alignment: usize,
    /// The structure does not cross a multiple of this power of two; 0 for no such rule.
    pub boundary: usize,
}

impl Rules {
    /// Aligned to `alignment`, a power of two, with no boundary.
    #[must_use]
    pub const fn aligned(alignment: usize) -> Self {
        Self {
            alignment,
            boundary: 0,
        }
    }

    /// The same, not crossing a multiple of `boundary`, a power of two.
    #[must_use]
    pub const fn within(self, boundary: usize) -> Self {
        Self { boundary, ..self }
    }
}

/// One line of the ledger. The caller of the stack provides a slice of them: one for each piece
/// that may be held at the same time.
#[derive(Clone, Copy, Debug)]
pub struct PoolRecord {
    offset: usize,
    length: usize,
    class: Class,
    owner: Owner,
}

impl PoolRecord {
    /// An unused line.
    pub const EMPTY: Self = Self {
        offset: 0,
        length: 0,
        class: Class::Base,
        owner: Owner::Host,
    };
}

/// Why the pool has no memory to give.
///
/// A whole word: a piece of memory comes in a `Result` with it, whose words the compiler would take apart
/// byte by byte to tell a single byte from them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum PoolError {
    /// No gap is long enough. Give the platform's coherent region more bytes: at least those of
    /// [`PoolUsage::refused`] more than now.
    Exhausted,
    /// The ledger is full: give the host's storage more [`PoolRecord`]s.
    LedgerFull,
}

/// How much of the pool is in use, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolUsage {
    /// Length of the region.
    pub capacity: usize,
    /// Bytes held now, with what alignment costs.
    pub used: usize,
    /// The most that was ever held.
    pub high_water: usize,
    /// Bytes of the longest piece that was asked for in vain; 0 if none was.
    pub refused: usize,
    /// Bytes held by each [`Class`], in the order of [`Class::ALL`].
    pub by_class: [usize; 8],
}

/// Pieces are multiples of this, so that no two of them share a cache line of any CPU that the
/// stack runs on.
const GRANULE: usize = 128;

/// The coherent pool of one host.
#[derive(Debug)]
pub struct Pool<'s> {
    region: CoherentRegion,
    /// Sorted by offset; the first `held` lines are in use.
    records: &'s mut [PoolRecord],
    held: usize,
    high_water: usize,
    refused: usize,
}

impl<'s> Pool<'s> {
    /// A pool of all of `region`, with a ledger in `records`.
    #[must_use]
    pub fn new(region: CoherentRegion, records: &'s mut [PoolRecord]) -> Self {
        Self {
            region,
            records,
            held: 0,
            high_water: 0,
            refused: 0,
        }
    }

    /// Takes `length` bytes, zeroed, under `rules`.
    ///
    /// # Errors
    ///
    /// [`PoolError`] says what is short and what to enlarge.
    pub fn allocate(
        &mut self,
        owner: Owner,
        class: Class,
        length: usize,
        rules: Rules,
    ) -> Result<Allocation, PoolError> {
        let length = length.max(1).next_multiple_of(GRANULE);
        let Some((index, offset)) = self.find_gap(length, rules) else {
            self.refused = self.refused.max(length);
            return Err(PoolError::Exhausted);
        };
        self.insert(
            index,
            PoolRecord {
                offset,
                length,
                class,
                owner,
            },
        )?;
        self.high_water = self.high_water.max(self.used());
        let allocation = Allocation {
            // SAFETY: `find_gap` keeps `offset + length` inside the region.
            cpu: unsafe { self.region.cpu().add(offset) },
            bus: self.region.bus().offset(offset as u64),
            length,
        };
        allocation.fill_zero();
        Ok(allocation)
    }

    /// Gives one piece back. The device must not reach it any more.
    pub fn free(&mut self, allocation: Allocation) {
        let offset = (allocation.bus.get().wrapping_sub(self.region.bus().get())) as usize;
        self.retain(&|record| record.offset != offset);
    }

    /// Gives back all that `owner` holds. The device must not reach it any more.
    pub fn reclaim(&mut self, owner: Owner) {
        self.retain(&|record| record.owner != owner);
    }

    /// Gives back all that a controller and its devices hold. The controller has stopped.
    pub fn reclaim_controller(&mut self, index: u8) {
        self.retain(&|record| match record.owner {
            Owner::Controller(controller) | Owner::Device(controller, _) => controller != index,
            Owner::Host | Owner::Function(_) => true,
        });
    }

    /// How much is in use, and by which class.
    #[must_use]
    pub fn usage(&self) -> PoolUsage {
        let mut by_class = [0; 8];
        for record in self.lines() {
            for (class, bytes) in Class::ALL.iter().zip(by_class.iter_mut()) {
                if *class == record.class {
                    *bytes += record.length;
                }
            }
        }
        PoolUsage {
            capacity: self.region.length(),
            used: self.used(),
            high_water: self.high_water,
            refused: self.refused,
            by_class,
        }
    }

    /// Whether a controller reaches all of it: none of it lies above `mask`, the highest address that it can form.
    #[must_use]
    pub fn is_reachable(&self, mask: u64) -> bool {
        self.region.bus().reachable(self.region.length(), mask)
    }

    /// Whether all of it lies between two multiples of 4 GiB.
    #[must_use]
    pub fn is_in_one_segment(&self) -> bool {
        let first = self.region.bus();
        let last = first.offset(self.region.length().saturating_sub(1) as u64);
        first.high() == last.high()
    }

    /// Bytes that `owner` holds.
    #[must_use]
    pub fn held_by(&self, owner: Owner) -> usize {
        self.lines()
            .iter()
            .filter(|line| line.owner == owner)
            .map(|line| line.length)
            .sum()
    }

    /// Ends the pool and returns its region. No device may reach it any more.
    #[must_use]
    pub fn into_region(self) -> CoherentRegion {
        self.region
    }

    fn lines(&self) -> &[PoolRecord] {
        self.records.get(..self.held).unwrap_or_default()
    }

    fn used(&self) -> usize {
        self.lines().iter().map(|line| line.length).sum()
    }

    /// The first gap that fits: the ledger line to insert before, and the offset.
    fn find_gap(&self, length: usize, rules: Rules) -> Option<(usize, usize)> {
        let mut start = 0;
        for (index, line) in self.lines().iter().enumerate() {
            if let Some(offset) = self.place(start, line.offset, length, rules) {
                return Some((index, offset));
            }
            start = line.offset + line.length;
        }
        let offset = self.place(start, self.region.length(), length, rules)?;
        Some((self.held, offset))
    }

    /// Where in `start..end` a piece fits. The rules hold for bus addresses: the region's start is
    /// a multiple of 4096 on both sides, and larger alignments are the device's affair.
    fn place(&self, start: usize, end: usize, length: usize, rules: Rules) -> Option<usize> {
        let base = self.region.bus().get() as usize;
        let alignment = rules.alignment.max(GRANULE);
        let mut at = base
            .checked_add(start)?
            .checked_next_multiple_of(alignment)?;
        if rules.boundary != 0 {
            let left = rules.boundary - (at & (rules.boundary - 1));
            if left < length {
                at = at.checked_add(left)?.checked_next_multiple_of(alignment)?;
                if length > rules.boundary {
                    return None;
                }
            }
        }
        let offset = at - base;
        (offset.checked_add(length)? <= end).then_some(offset)
    }

    fn insert(&mut self, index: usize, record: PoolRecord) -> Result<(), PoolError> {
        let lines = self
            .records
            .get_mut(..=self.held)
            .ok_or(PoolError::LedgerFull)?;
        // Each line takes what stood before it; the last one was not in use.
        let mut carried = record;
        for line in lines.iter_mut().skip(index) {
            core::mem::swap(line, &mut carried);
        }
        self.held += 1;
        Ok(())
    }

    #[inline(never)]
    fn retain(&mut self, keep: &dyn Fn(&PoolRecord) -> bool) {
        let mut kept = 0;
        for index in 0..self.held {
            let Some(record) = self.records.get(index).copied() else {
                break;
            };
            if keep(&record) {
                if let Some(line) = self.records.get_mut(kept) {
                    *line = record;
                }
                kept += 1;
            }
        }
        self.held = kept;
    }
}

/// A piece of the pool, accessed with single volatile loads and stores of little-endian values.
///
/// An offset outside the piece reads as zero and is not written; drivers do not rely on it.
/// Dropping the handle does not give the memory back: [`Pool::free`] or [`Pool::reclaim`] does.
#[derive(Debug)]
pub struct Allocation {
    pub(super) cpu: NonNull<u8>,
    bus: BusAddress,
    length: usize,
}

// SAFETY: a piece is memory with no tie to a thread; the handle is not `Clone`, and accesses are
// single volatile loads and stores.
unsafe impl Send for Allocation {}

impl Allocation {
    /// The devices' address of the first byte.
    #[must_use]
    pub fn bus(&self) -> BusAddress {
        self.bus
    }

    /// Length in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// A handle of its own on a part, which lies at a multiple of 128 bytes. It is not to be freed: the
    /// part ends with the whole.
    #[must_use]
    pub(crate) fn part(&self, offset: usize, length: usize) -> Option<Self> {
        let part = self.raw(offset, length)?;
        offset.is_multiple_of(128).then_some(Self {
            cpu: part.cpu,
            bus: part.bus,
            length,
        })
    }

    /// The memory as a raw buffer in coherent memory: `length` bytes from `offset`, if they fit.
    #[must_use]
    pub fn raw(&self, offset: usize, length: usize) -> Option<RawCoherent> {
        let end = offset.checked_add(length)?;
        (end <= self.length).then(|| RawCoherent {
            // SAFETY: `offset <= self.length`, inside the piece.
            cpu: unsafe { self.cpu.add(offset) },
            bus: self.bus.offset(offset as u64),
            length,
        })
    }

    /// The structure of `N` bytes at byte `offset`, if it lies in the piece.
    #[inline]
    #[must_use]
    pub fn block<const N: usize>(&self, offset: usize) -> Option<Block<'_, N>> {
        let fits = self.length >= N && offset <= self.length - N && offset.is_multiple_of(4);
        // SAFETY: inside the piece, which is aligned to 128 bytes; the block borrows its handle.
        fits.then(|| unsafe { Block::new(self.cpu.add(offset)) })
    }

    /// Its first structures of `N` bytes: `count` of them, or as many as it holds, and one at least.
    /// `N` is a multiple of 4, and at most 128.
    #[must_use]
    pub fn row<const N: usize>(&self, count: u32) -> Row<N> {
        const { assert!(N.is_multiple_of(4) && N <= GRANULE) }
        let most = (self.length / N) as u32;
        // SAFETY: at least one, and inside the piece, which has at least 128 bytes and is aligned to as many.
        unsafe { Row::new(self.cpu, count.clamp(1, most.max(1))) }
    }

    #[inline]
    fn at<T>(&self, offset: usize) -> Option<NonNull<T>> {
        let end = offset.checked_add(size_of::<T>())?;
        let fits = end <= self.length && offset.is_multiple_of(align_of::<T>());
        // SAFETY: `offset` lies inside the piece; the piece is aligned to 128 bytes.
        fits.then(|| unsafe { self.cpu.add(offset) }.cast())
    }

    /// Reads 32 bits at byte `offset`.
    #[inline]
    #[must_use]
    pub fn read32(&self, offset: usize) -> u32 {
        match self.at::<u32>(offset) {
            // SAFETY: aligned and inside the piece, which nothing borrows.
            Some(at) => u32::from_le(unsafe { at.read_volatile() }),
            None => 0,
        }
    }

    /// Writes 32 bits at byte `offset`.
    #[inline]
    pub fn write32(&self, offset: usize, value: u32) {
        if let Some(at) = self.at::<u32>(offset) {
            // SAFETY: aligned and inside the piece, which nothing borrows.
            unsafe { at.write_volatile(value.to_le()) }
            arch::stored(at.cast(), size_of_val(&value));
        }
    }

    /// Reads 64 bits at byte `offset`.
    #[inline]
    #[must_use]
    pub fn read64(&self, offset: usize) -> u64 {
        match self.at::<u64>(offset) {
            // SAFETY: aligned and inside the piece, which nothing borrows.
            Some(at) => u64::from_le(unsafe { at.read_volatile() }),
            None => 0,
        }
    }

    /// Writes 64 bits at byte `offset`.
    #[inline]
    pub fn write64(&self, offset: usize, value: u64) {
        if let Some(at) = self.at::<u64>(offset) {
            // SAFETY: aligned and inside the piece, which nothing borrows.
            unsafe { at.write_volatile(value.to_le()) }
            arch::stored(at.cast(), size_of_val(&value));
        }
    }

    /// Reads `N` 32-bit words from byte `offset`, lowest first.
    #[inline]
    #[must_use]
    pub fn read_words<const N: usize>(&self, offset: usize) -> [u32; N] {
        let mut words = [0; N];
        for (index, word) in words.iter_mut().enumerate() {
            *word = self.read32(offset + 4 * index);
        }
        words
    }

    /// Writes words from byte `offset`, lowest first.
    #[inline]
    pub fn write_words(&self, offset: usize, words: &[u32]) {
        for (index, word) in words.iter().enumerate() {
            self.write32(offset + 4 * index, *word);
        }
    }

    /// Copies `bytes` in, from byte `offset`.
    pub fn write_bytes(&self, offset: usize, bytes: &[u8]) {
        for (index, byte) in bytes.iter().enumerate() {
            if let Some(at) = self.at::<u8>(offset + index) {
                // SAFETY: inside the piece, which nothing borrows.
                unsafe { at.write_volatile(*byte) }
                arch::stored(at, 1);
            }
        }
    }

    /// Copies out from byte `offset` until `bytes` is full.
    pub fn read_bytes(&self, offset: usize, bytes: &mut [u8]) {
        for (index, byte) in bytes.iter_mut().enumerate() {
            if let Some(at) = self.at::<u8>(offset + index) {
                // SAFETY: inside the piece, which nothing borrows.
                *byte = unsafe { at.read_volatile() };
            }
        }
    }

    fn fill_zero(&self) {
        for offset in (0..self.length).step_by(8) {
            self.write64(offset, 0);
        }
    }
}

/// A stretch of coherent memory as an address pair, for a transfer to or from it.
#[derive(Clone, Copy, Debug)]
pub struct RawCoherent {
    pub(super) cpu: NonNull<u8>,
    /// The devices' address.
    pub bus: BusAddress,
    /// Length in bytes.
    pub length: usize,
}

// SAFETY: an address pair and a length, as the piece that it is a part of.
unsafe impl Send for RawCoherent {}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
