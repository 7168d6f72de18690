//! What is counted around a load.

use core::fmt;

/// Where the counters are read.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// Instructions so far; wraps. Always 0 where the machine does not count them.
    pub instructions: fn() -> u32,
    /// Ticks of the machine's timer so far.
    pub ticks: fn() -> u64,
    /// Waits of the blocking face so far; wraps.
    pub waits: fn() -> u32,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    instructions: u32,
    ticks: u64,
    waits: u32,
}

/// What was counted between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    instructions: u32,
    ticks: u64,
    waits: u32,
}

impl Meter {
    /// Reads all of them.
    #[must_use]
    pub fn read(&self) -> Reading {
        Reading {
            waits: (self.waits)(),
            ticks: (self.ticks)(),
            instructions: (self.instructions)(),
        }
    }
}

impl Reading {
    /// What was counted since `start`.
    #[must_use]
    pub fn since(&self, start: &Self) -> Counted {
        Counted {
            instructions: self.instructions.wrapping_sub(start.instructions),
            ticks: self.ticks.wrapping_sub(start.ticks),
            waits: self.waits.wrapping_sub(start.waits),
        }
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "cnt={} insn={} waits={}",
            self.ticks, self.instructions, self.waits
        )
    }
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::Reading;

    #[test]
    fn counters_that_wrap_are_told_apart_all_the_same() {
        let start = Reading {
            instructions: u32::MAX,
            ticks: 10,
            waits: u32::MAX - 1,
        };
        let end = Reading {
            instructions: 4,
            ticks: 30,
            waits: 0,
        };
        assert_eq!(format!("{}", end.since(&start)), "cnt=20 insn=5 waits=2");
    }
}
