//! [`BusAddress`]: where a device finds memory.

/// An address as a DMA master sees it. It need not equal the CPU's address of the same byte, and
/// no arithmetic mixes the two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(transparent)]
pub struct BusAddress(u64);

impl BusAddress {
    /// The bus address `value`.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// All 64 bits.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Bits 31..0, for the low half of a split field.
    #[must_use]
    pub const fn low(self) -> u32 {
        self.0 as u32
    }

    /// Bits 63..32, for the high half of a split field.
    #[must_use]
    pub const fn high(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// `bytes` further on. Wraps only where the memory behind it would, which no mapping does.
    #[must_use]
    pub const fn offset(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// How many bytes from here to the next multiple of `boundary`, a power of two: 1 to
    /// `boundary`.
    #[must_use]
    pub const fn until_boundary(self, boundary: u64) -> u64 {
        boundary - (self.0 & (boundary - 1))
    }

    /// Whether `length` bytes from here lie at or below `mask`, the highest address that a
    /// controller can form.
    #[must_use]
    pub const fn reachable(self, length: usize, mask: u64) -> bool {
        let last = self.0.checked_add((length as u64).saturating_sub(1));
        matches!(last, Some(last) if last <= mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_to_a_boundary_is_never_zero() {
        assert_eq!(BusAddress::new(0x1_0000).until_boundary(0x1_0000), 0x1_0000);
        assert_eq!(BusAddress::new(0x1_ffff).until_boundary(0x1_0000), 1);
    }

    #[test]
    fn the_last_byte_decides_reach() {
        let top = BusAddress::new(0xffff_f000);
        assert!(top.reachable(0x1000, 0xffff_ffff));
        assert!(!top.reachable(0x1001, 0xffff_ffff));
        assert!(!BusAddress::new(u64::MAX).reachable(2, u64::MAX));
    }
}
