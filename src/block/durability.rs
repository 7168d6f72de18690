//! What a flush promises, per disk: nothing that a good flush covers is lost, and no loss is silent.
//!
//! A good status on a write may mean no more than the bridge's memory. So each disk keeps whether
//! it is *dirty* (writes were begun since the last good flush), and a *loss epoch* that rises when
//! a dirty disk is reset, loses its power or is opened again. Whoever holds the disk learns of it by
//! the next flush, once: see [`Durability::flushed`].

/// The state of one disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Durability {
    /// Writes begun since the disk was found. Wraps.
    writes: u32,
    /// The value of `writes` when the newest good flush was begun.
    flushed: u32,
    /// Rises with every loss. Wraps.
    epoch: u32,
}

/// Where a flush began: see [`Durability::flush_begins`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct FlushMark(u32);

impl FlushMark {
    /// No flush was begun.
    pub(crate) const NONE: Self = Self(0);
}

impl Durability {
    /// A disk of which nothing was asked yet.
    pub(crate) const NEW: Self = Self {
        writes: 0,
        flushed: 0,
        epoch: 0,
    };

    /// Whether writes may be in no safer place than a cache.
    #[must_use]
    pub(crate) const fn is_dirty(&self) -> bool {
        self.writes != self.flushed
    }

    /// The loss epoch. A holder that has seen another one has missed a loss.
    #[must_use]
    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// A write command is about to be issued.
    #[inline]
    pub(crate) const fn write_begins(&mut self) {
        self.writes = self.writes.wrapping_add(1);
    }

    /// A flush command is about to be issued: it covers all writes that have ended.
    #[must_use]
    pub(crate) const fn flush_begins(&self) -> FlushMark {
        FlushMark(self.writes)
    }

    /// The flush has ended well. Returns the epoch, for the holder that flushed.
    pub(crate) const fn flushed(&mut self, mark: FlushMark) -> u32 {
        self.flushed = mark.0;
        self.epoch
    }

    /// The disk was reset or lost its power: if it was dirty, writes may be lost.
    pub(crate) const fn interrupted(&mut self) {
        self.doubted();
        self.flushed = self.writes;
    }

    /// The disk may have been reset, or may have lost writes, and have said so where it was not heard: if it
    /// was dirty, writes may be lost. Those that are not are still to be flushed.
    pub(crate) const fn doubted(&mut self) {
        if self.is_dirty() {
            self.epoch = self.epoch.wrapping_add(1);
        }
    }

    /// Writes begun since the newest good flush, or since the newest loss that is certain.
    #[must_use]
    pub(crate) const fn unflushed(&self) -> u32 {
        self.writes.wrapping_sub(self.flushed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_dirty_from_a_write_to_the_flush_that_covers_it() {
        let mut disk = Durability::default();
        assert!(!disk.is_dirty());
        disk.write_begins();
        let mark = disk.flush_begins();
        disk.write_begins();
        disk.flushed(mark);
        assert!(
            disk.is_dirty(),
            "the second write was begun after the flush"
        );
        let mark = disk.flush_begins();
        disk.flushed(mark);
        assert!(!disk.is_dirty());
    }

    #[test]
    fn only_a_dirty_disk_can_lose_writes() {
        let mut disk = Durability::default();
        disk.interrupted();
        assert_eq!(disk.epoch(), 0);
        disk.write_begins();
        disk.interrupted();
        assert_eq!(disk.epoch(), 1);
        disk.interrupted();
        assert_eq!(disk.epoch(), 1, "the same loss is counted once");
    }

    #[test]
    fn a_loss_that_is_not_certain_is_told_and_leaves_the_disk_dirty() {
        let mut disk = Durability::default();
        disk.doubted();
        assert_eq!(disk.epoch(), 0, "it was clean");
        disk.write_begins();
        disk.doubted();
        assert_eq!(disk.epoch(), 1);
        assert_eq!(disk.unflushed(), 1, "what is not lost is to be flushed");
        let mark = disk.flush_begins();
        assert_eq!(disk.flushed(mark), 1);
        assert!(!disk.is_dirty());
    }

    #[test]
    fn a_loss_during_a_flush_is_seen_by_that_flush() {
        let mut disk = Durability::default();
        let seen = disk.epoch();
        disk.write_begins();
        let mark = disk.flush_begins();
        disk.interrupted();
        assert_ne!(disk.flushed(mark), seen);
    }
}
