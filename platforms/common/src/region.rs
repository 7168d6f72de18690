//! A span of physical addresses. Everything is mapped one to one, so that it is also the span of
//! virtual addresses once it is mapped.

/// Bytes of a page: the granule of every mapping.
pub const PAGE: usize = 4096;

/// `length` bytes from the physical address `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub start: usize,
    /// Bytes; 0 is an empty region.
    pub length: usize,
}

impl Region {
    /// The region of `length` bytes from `start`.
    #[must_use]
    pub const fn new(start: usize, length: usize) -> Self {
        Self { start, length }
    }

    /// The region from `start` up to, not including, `end`; empty when `end` is not above `start`.
    #[must_use]
    pub const fn between(start: usize, end: usize) -> Self {
        Self::new(start, end.saturating_sub(start))
    }

    /// The first address behind the region, or the last address there is.
    #[must_use]
    pub const fn end(self) -> usize {
        self.start.saturating_add(self.length)
    }

    /// Whether `other` lies in this region as a whole.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        other.start >= self.start && other.end() <= self.end()
    }

    /// The smallest region of whole pages around this one.
    #[must_use]
    pub const fn to_pages(self) -> Self {
        let start = self.start & !(PAGE - 1);
        let end = self.end().saturating_add(PAGE - 1) & !(PAGE - 1);
        Self::between(start, end)
    }

    /// What is left of this region below and above `hole`; either part may be empty.
    #[must_use]
    pub const fn without(self, hole: Self) -> [Self; 2] {
        let below = if hole.start < self.end() {
            hole.start
        } else {
            self.end()
        };
        let above = if hole.end() > self.start {
            hole.end()
        } else {
            self.start
        };
        [
            Self::between(self.start, below),
            Self::between(above, self.end()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::Region;

    #[test]
    fn a_hole_in_the_middle_leaves_both_ends() {
        let [below, above] = Region::new(0x1000, 0x9000).without(Region::new(0x3000, 0x1000));
        assert_eq!(below, Region::between(0x1000, 0x3000));
        assert_eq!(above, Region::between(0x4000, 0xa000));
    }

    #[test]
    fn a_hole_elsewhere_leaves_everything() {
        let region = Region::new(0x4000, 0x1000);
        assert_eq!(region.without(Region::new(0, 0x1000))[1], region);
        assert_eq!(region.without(Region::new(0x8000, 0x1000))[0], region);
        assert_eq!(region.without(Region::new(0x8000, 0x1000))[1].length, 0);
    }

    #[test]
    fn whole_pages_reach_around_both_ends() {
        assert_eq!(
            Region::new(0x1fff, 2).to_pages(),
            Region::new(0x1000, 0x2000)
        );
    }
}
