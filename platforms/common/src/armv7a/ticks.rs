//! Microseconds of the 24 MHz crystal that every board here has.
//!
//! Called by `timer` for every reading of the clock, so more often than anything else of the
//! platform. These cores have no instruction that divides 64 bits; this takes a third fewer
//! instructions than what the compiler makes of the division.

/// Ticks of a microsecond.
pub const CRYSTAL: u32 = 24;

/// What so many ticks are in microseconds, rounded down.
#[inline]
#[must_use]
pub const fn microseconds(ticks: u64) -> u64 {
    // 2^32 ticks are so many microseconds, and so many ticks.
    const WHOLE: u32 = ((1 << 32) / CRYSTAL as u64) as u32;
    const REST: u32 = ((1 << 32) % CRYSTAL as u64) as u32;
    let (high, low) = ((ticks >> 32) as u32, ticks as u32);
    // Schoolbook division, digits of 32 bits: `left` of the upper one go into the lower one.
    let left = high % CRYSTAL;
    let below = left * WHOLE + low / CRYSTAL + (left * REST + low % CRYSTAL) / CRYSTAL;
    ((high / CRYSTAL) as u64) << 32 | below as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_division_wherever_a_digit_ends() {
        let mut edges = std::vec![0, u64::MAX];
        for bit in 0..64 {
            edges.push(1 << bit);
        }
        for left in 0..=24 {
            edges.push(left << 32);
            edges.push((left << 32) + (left * 16) % 24);
            edges.push(u64::MAX - (left << 32));
        }
        for edge in edges {
            for near in 0..100 {
                for ticks in [edge.saturating_add(near), edge.saturating_sub(near)] {
                    assert_eq!(microseconds(ticks), ticks / 24, "{ticks:#x}");
                }
            }
        }
    }
}
