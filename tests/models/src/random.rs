//! The one source of chance in a run: a small generator that is fixed by its seed.
//!
//! Used by the memory (evictions), the controllers (delays) and whoever scatters faults. Two runs
//! with the same seed and the same driver are the same run.

/// A deterministic stream of numbers (splitmix64 by Sebastiano Vigna, public domain).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits().checked_rem(bound).unwrap_or(0)
    }

    /// Whether something happens that happens once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_stream() {
        let (mut one, mut other) = (Random::new(7), Random::new(7));
        assert!((0..100).all(|_| one.bits() == other.bits()));
        assert_ne!(Random::new(8).bits(), Random::new(7).bits());
    }

    #[test]
    fn a_bound_is_kept() {
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| random.below(13) < 13));
        assert_eq!(random.below(0), 0);
    }
}
