//! The blocks of a modelled medium: sparse, in memory, with a volatile cache in front.
//!
//! Invariant: what [`Image::durable`] returns is what survives a power cut; what [`Image::block`]
//! returns is what the host reads. They differ exactly by the cache.

use core::ops::Range;
use std::collections::BTreeMap;

/// The blocks of a medium, any number of any size. A block that was never written reads as zeros,
/// or as a pattern made of its address.
#[derive(Clone, Debug)]
pub struct Image {
    block_size: usize,
    durable: BTreeMap<u64, Vec<u8>>,
    cache: Option<BTreeMap<u64, Vec<u8>>>,
    patterned: bool,
    lost: u64,
    /// Ranges that were given back, and the byte that their blocks are full of. What was written
    /// since is in `durable` or in the cache.
    given_back: Vec<(Range<u64>, u8)>,
}

impl Image {
    /// An empty image of blocks of `block_size` bytes.
    #[must_use]
    pub const fn new(block_size: usize) -> Self {
        Self {
            block_size,
            durable: BTreeMap::new(),
            cache: None,
            patterned: false,
            lost: 0,
            given_back: Vec::new(),
        }
    }

    /// Bytes of a block.
    #[must_use]
    pub const fn block_size(&self) -> usize {
        self.block_size
    }

    /// Blocks that were never written hold a pattern of their own, so that a read of the wrong block
    /// shows: see [`pattern`].
    pub const fn fill_with_pattern(&mut self) {
        self.patterned = true;
    }

    /// Puts a volatile cache in front.
    pub fn cache_writes(&mut self) {
        self.cache.get_or_insert_default();
    }

    /// Whether writes go to a volatile cache.
    #[must_use]
    pub const fn is_cached(&self) -> bool {
        self.cache.is_some()
    }

    /// The block as the host reads it.
    #[must_use]
    pub fn block(&self, lba: u64) -> Vec<u8> {
        let cached = self.cache.as_ref().and_then(|cache| cache.get(&lba));
        cached.cloned().unwrap_or_else(|| self.durable(lba))
    }

    /// The block as it would be after a power cut.
    #[must_use]
    pub fn durable(&self, lba: u64) -> Vec<u8> {
        let mut given_back = self.given_back.iter().rev();
        let filler = given_back.find(|(range, _)| range.contains(&lba));
        match (self.durable.get(&lba), filler) {
            (Some(block), _) => block.clone(),
            (None, Some((_, byte))) => vec![*byte; self.block_size],
            (None, None) if self.patterned => pattern(lba, self.block_size),
            (None, None) => vec![0; self.block_size],
        }
    }

    /// Writes one block, into the cache if there is one.
    ///
    /// # Panics
    /// If `bytes` is not one block.
    pub fn write(&mut self, lba: u64, bytes: &[u8]) {
        assert_eq!(
            bytes.len(),
            self.block_size,
            "a write must be of whole blocks"
        );
        self.cache
            .as_mut()
            .unwrap_or(&mut self.durable)
            .insert(lba, bytes.to_vec());
    }

    /// Writes past the cache, as with FUA: durable at once.
    pub fn write_through(&mut self, lba: u64, bytes: &[u8]) {
        self.write(lba, bytes);
        self.flush(lba..lba.saturating_add(1));
    }

    /// Puts `bytes` on the medium from block `lba` on, as whoever prepared the disk did. The last
    /// block is filled up with zeros.
    pub fn load(&mut self, lba: u64, bytes: &[u8]) {
        for (lba, chunk) in (lba..).zip(bytes.chunks(self.block_size)) {
            let mut block = chunk.to_vec();
            block.resize(self.block_size, 0);
            self.durable.insert(lba, block);
        }
    }

    /// Forgets the blocks of `range`, cached or not: they are full of `byte` until they are written
    /// again. Durable at once.
    pub fn give_back(&mut self, range: Range<u64>, byte: u8) {
        let inside: Vec<u64> = self
            .durable
            .range(range.clone())
            .map(|(lba, _)| *lba)
            .collect();
        for lba in inside {
            self.durable.remove(&lba);
        }
        if let Some(cache) = &mut self.cache {
            cache.retain(|lba, _| !range.contains(lba));
        }
        self.given_back.push((range, byte));
    }

    /// Whether a block was given back and not written since.
    #[must_use]
    pub fn is_given_back(&self, lba: u64) -> bool {
        let cached = self
            .cache
            .as_ref()
            .is_some_and(|cache| cache.contains_key(&lba));
        !cached
            && !self.durable.contains_key(&lba)
            && self
                .given_back
                .iter()
                .any(|(range, _)| range.contains(&lba))
    }

    /// Makes the cached blocks of `range` durable.
    pub fn flush(&mut self, range: Range<u64>) {
        if let Some(cache) = &mut self.cache {
            let kept = cache.split_off(&range.start);
            for (lba, block) in kept {
                if lba < range.end {
                    self.durable.insert(lba, block);
                } else {
                    cache.insert(lba, block);
                }
            }
        }
    }

    /// Forgets the cache, as a power cut does; counts what was lost.
    pub fn drop_cache(&mut self) {
        if let Some(cache) = &mut self.cache {
            self.lost += cache.len() as u64;
            cache.clear();
        }
    }

    /// Blocks that are in the cache only.
    #[must_use]
    pub fn unflushed(&self) -> u64 {
        self.cache.as_ref().map_or(0, |cache| cache.len() as u64)
    }

    /// Blocks that were lost so far.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

/// A block of `size` bytes that names its address: each eight bytes are, big-endian, 8191 times the
/// address plus their own place counted in eights.
#[must_use]
pub fn pattern(lba: u64, size: usize) -> Vec<u8> {
    let words = (0..size.div_ceil(8) as u64).map(|word| lba.wrapping_mul(8191).wrapping_add(word));
    let mut bytes: Vec<u8> = words.flat_map(u64::to_be_bytes).collect();
    bytes.truncate(size);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cached_block_is_read_but_lost_with_the_power() {
        let mut image = Image::new(512);
        image.cache_writes();
        image.write(7, &[1; 512]);
        image.write(9, &[2; 512]);
        image.flush(0..8);
        assert_eq!(
            (image.block(9)[0], image.durable(9)[0], image.durable(7)[0]),
            (2, 0, 1)
        );
        image.drop_cache();
        assert_eq!(
            (image.block(9)[0], image.block(7)[0], image.lost()),
            (0, 1, 1)
        );
    }

    #[test]
    fn a_forced_write_is_durable_at_once() {
        let mut image = Image::new(512);
        image.cache_writes();
        image.write_through(u64::MAX - 1, &[3; 512]);
        assert_eq!((image.durable(u64::MAX - 1)[0], image.unflushed()), (3, 0));
    }

    #[test]
    fn what_was_given_back_is_filler_until_it_is_written_again() {
        let mut image = Image::new(512);
        image.fill_with_pattern();
        image.cache_writes();
        image.write(7, &[1; 512]);
        image.give_back(5..9, 0xdb);
        assert_eq!((image.block(7)[0], image.durable(8)[0]), (0xdb, 0xdb));
        assert_eq!(image.block(9), pattern(9, 512));
        image.write(7, &[2; 512]);
        assert_eq!((image.block(7)[0], image.durable(7)[0]), (2, 0xdb));
        assert!(!image.is_given_back(7) && image.is_given_back(8));
        image.give_back(7..8, 0);
        assert_eq!(image.block(7), vec![0; 512]);
    }

    #[test]
    fn patterns_of_neighbours_differ() {
        let mut image = Image::new(4096);
        image.fill_with_pattern();
        assert_ne!(image.block(0), image.block(1));
        assert_eq!(image.block(5), pattern(5, 4096));
    }
}
