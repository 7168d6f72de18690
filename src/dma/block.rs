//! [`Block`]: one small structure in a piece of the pool, checked once.

use core::marker::PhantomData;
use core::ptr::NonNull;

use crate::arch;

/// `N` bytes of an [`Allocation`](super::Allocation), for structures that are written field by field
/// on the way of a transfer.
///
/// That the structure lies in the piece is checked when the block is made; that a field lies in the
/// structure, when the driver is compiled. Accesses are single volatile loads and stores of
/// little-endian values, as with the piece itself.
#[derive(Clone, Copy, Debug)]
pub struct Block<'p, const N: usize> {
    start: NonNull<u8>,
    piece: PhantomData<&'p ()>,
}

impl<const N: usize> Block<'_, N> {
    /// # Safety
    ///
    /// `N` bytes at `start`, which is a multiple of 4, lie in a piece of the pool that lives as long
    /// as the block.
    #[inline]
    pub(super) unsafe fn new(start: NonNull<u8>) -> Self {
        Self {
            start,
            piece: PhantomData,
        }
    }

    /// Reads the 32-bit field at byte `OFFSET`.
    #[inline]
    #[must_use]
    pub fn read32<const OFFSET: usize>(&self) -> u32 {
        const { assert!(OFFSET.is_multiple_of(4) && OFFSET + 4 <= N) }
        // SAFETY: aligned and inside the block, as just asserted; nothing borrows the piece.
        u32::from_le(unsafe { self.start.add(OFFSET).cast::<u32>().read_volatile() })
    }

    /// Writes the 32-bit field at byte `OFFSET`.
    #[inline]
    pub fn write32<const OFFSET: usize>(&self, value: u32) {
        const { assert!(OFFSET.is_multiple_of(4) && OFFSET + 4 <= N) }
        // SAFETY: as for the read.
        unsafe { self.store(OFFSET, value) }
    }

    /// Reads the first `COUNT` 32-bit fields.
    #[inline]
    #[must_use]
    pub fn read<const COUNT: usize>(&self) -> [u32; COUNT] {
        const { assert!(4 * COUNT <= N) }
        core::array::from_fn(|index| {
            // SAFETY: aligned and inside the block; nothing borrows the piece.
            u32::from_le(unsafe { self.start.add(4 * index).cast::<u32>().read_volatile() })
        })
    }

    /// Writes the first `COUNT` 32-bit fields, in their order.
    #[inline]
    pub fn write<const COUNT: usize>(&self, fields: [u32; COUNT]) {
        const { assert!(4 * COUNT <= N) }
        for (index, field) in fields.into_iter().enumerate() {
            // SAFETY: aligned and inside the block, as just asserted.
            unsafe { self.store(4 * index, field) }
        }
    }

    /// Writes element `index` of the array of `COUNT` 32-bit fields at byte `OFFSET`. An index
    /// outside of the array is not written.
    #[inline]
    pub fn write_element<const OFFSET: usize, const COUNT: usize>(&self, index: usize, value: u32) {
        const { assert!(OFFSET.is_multiple_of(4) && OFFSET + 4 * COUNT <= N) }
        if index < COUNT {
            // SAFETY: aligned, and inside the block, because the whole array is.
            unsafe { self.store(OFFSET + 4 * index, value) }
        }
    }

    /// # Safety
    ///
    /// `offset` is a multiple of 4, and four bytes from there lie in the block.
    #[inline]
    unsafe fn store(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        let at = unsafe { self.start.add(offset) };
        // SAFETY: inside the block and aligned; nothing borrows the piece.
        unsafe { at.cast::<u32>().write_volatile(value.to_le()) };
        arch::stored(at, size_of_val(&value));
    }
}

/// Structures of `N` bytes, one behind the other from the start of a piece of the pool: a ring. That
/// they lie in the piece was checked when the row was made; an index is checked by one comparison.
///
/// It stays valid as the piece's own handle does: memory of the pool is memory of the pool, also
/// when it was given back.
#[derive(Clone, Copy, Debug)]
pub struct Row<const N: usize> {
    start: NonNull<u8>,
    count: u32,
}

// SAFETY: an address in the pool, accessed with single volatile loads and stores; no tie to a thread.
unsafe impl<const N: usize> Send for Row<N> {}

impl<const N: usize> Row<N> {
    /// # Safety
    ///
    /// `count`, at least 1, times `N` bytes at `start`, which is a multiple of 4 as `N` is, lie in a piece
    /// of the pool.
    pub(super) unsafe fn new(start: NonNull<u8>, count: u32) -> Self {
        const { assert!(N.is_multiple_of(4)) }
        Self { start, count }
    }

    /// The structure with this index, if there are so many.
    #[inline]
    #[must_use]
    pub fn get(&self, index: u32) -> Option<Block<'_, N>> {
        // SAFETY: inside the row, which lies in the pool.
        (index < self.count).then(|| unsafe { Block::new(self.start.add(index as usize * N)) })
    }

    /// The structure with this index, to be looked at often. An index outside means the first one.
    #[inline]
    #[must_use]
    pub fn pin(&self, index: u32) -> Pinned<N> {
        let index = if index < self.count { index } else { 0 };
        // SAFETY: inside the row, which has at least one structure ([`Row::new`]).
        let start = unsafe { self.start.add(index as usize * N) };
        Pinned { start }
    }
}

/// A walk along a [`Row`], round and round: where its next structure lies needs no look at an index.
///
/// It stays valid as the row does.
#[derive(Clone, Copy, Debug)]
pub struct Walk<const N: usize> {
    row: Row<N>,
    /// Less than the row's count.
    index: u32,
    /// The structure with that index.
    here: NonNull<u8>,
}

// SAFETY: as for the row itself.
unsafe impl<const N: usize> Send for Walk<N> {}

impl<const N: usize> Walk<N> {
    /// From the first structure on.
    #[must_use]
    pub fn along(row: Row<N>) -> Self {
        Self {
            row,
            index: 0,
            here: row.start,
        }
    }

    /// The structure that comes next.
    #[inline]
    #[must_use]
    pub fn block(&self) -> Block<'_, N> {
        // SAFETY: `index` is inside the row, and `here` is the structure with that index.
        unsafe { Block::new(self.here) }
    }

    /// Its index.
    #[inline]
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// How many structures there are.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u32 {
        self.row.count
    }

    /// Goes on to the next structure. `true`: that is the first one again.
    #[inline(always)]
    pub fn advance(&mut self) -> bool {
        self.index += 1;
        if self.index >= self.row.count {
            self.index = 0;
            self.here = self.row.start;
            return true;
        }
        // SAFETY: the structure before it is not the last of the row.
        self.here = unsafe { self.here.add(N) };
        false
    }
}

/// One structure of a [`Row`] that a device writes and the driver looks at again and again. Where it lies
/// was checked when it was made.
///
/// It stays valid as the row does.
#[derive(Clone, Copy, Debug)]
pub struct Pinned<const N: usize> {
    start: NonNull<u8>,
}

// SAFETY: an address in the pool, read with single volatile loads; no tie to a thread.
unsafe impl<const N: usize> Send for Pinned<N> {}

impl<const N: usize> Pinned<N> {
    /// The structure.
    #[inline]
    #[must_use]
    pub fn block(&self) -> Block<'_, N> {
        // SAFETY: made by `Row::pin` of a structure in the row, which lies in the pool.
        unsafe { Block::new(self.start) }
    }
}
