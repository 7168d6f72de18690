//! The loads: names and shapes are those of the comparison with other stacks.

use core::fmt::{self, Write as _};

use heapless::String;

/// Which blocks a load goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One behind the other.
    Sequential,
    /// All over the disk, the same in every run.
    Random,
}

/// Which way the data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the disk.
    Read,
    /// To the disk.
    Write,
}

/// Whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Borrowed for one call of the blocking face.
    Borrowed,
    /// Owned by the requests of the queue face, and not touched between them.
    Owned,
}

/// One load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Order.
    pub order: Order,
    /// Direction.
    pub direction: Direction,
    /// Bytes of a request, a power of two.
    pub size: usize,
    /// Requests in flight.
    pub depth: usize,
    /// Buffer.
    pub buffer: Buffer,
    /// Requests in all.
    pub count: u32,
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The most requests in flight of any load.
pub const MOST_DEPTH: usize = 32;
/// The most requests in flight on all disks together.
pub const MOST_BUFFERS: usize = 64;
/// Characters of the longest name.
const LONGEST_NAME: usize = 16;
/// Bytes of the longest request.
pub const MOST_BYTES: usize = MIB;

use Buffer::{Borrowed, Owned};
use Direction::{Read, Write};
use Order::{Random, Sequential};

/// Every load, in the order in which they run, at its shortest length.
pub const LOADS: [Load; 16] = [
    Load::new(Sequential, Read, MIB, 1, Borrowed, 64),
    Load::new(Sequential, Write, MIB, 1, Borrowed, 64),
    Load::new(Sequential, Read, 64 * KIB, 1, Borrowed, 512),
    Load::new(Sequential, Write, 64 * KIB, 1, Borrowed, 512),
    Load::new(Sequential, Read, 4 * KIB, 1, Borrowed, 1000),
    Load::new(Sequential, Write, 4 * KIB, 1, Borrowed, 1000),
    Load::new(Random, Read, 4 * KIB, 1, Borrowed, 1000),
    Load::new(Random, Write, 4 * KIB, 1, Borrowed, 1000),
    Load::new(Sequential, Read, MIB, 1, Owned, 64),
    Load::new(Sequential, Write, MIB, 1, Owned, 64),
    Load::new(Random, Read, 4 * KIB, 1, Owned, 1000),
    Load::new(Random, Write, 4 * KIB, 1, Owned, 1000),
    Load::new(Random, Read, 4 * KIB, 4, Owned, 1000),
    Load::new(Random, Read, 4 * KIB, 8, Owned, 1000),
    Load::new(Random, Read, 4 * KIB, 14, Owned, 1000),
    Load::new(Random, Read, 4 * KIB, MOST_DEPTH, Owned, 1000),
];

impl Load {
    const fn new(
        order: Order,
        direction: Direction,
        size: usize,
        depth: usize,
        buffer: Buffer,
        count: u32,
    ) -> Self {
        Self {
            order,
            direction,
            size,
            depth,
            buffer,
            count,
        }
    }

    /// The load of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let is_it = |load: &&Self| {
            let mut written: String<LONGEST_NAME> = String::new();
            write!(written, "{}", load.name()).is_ok() && written == name
        };
        LOADS.iter().find(is_it).copied()
    }

    /// The same, `rounds` times as long.
    #[must_use]
    pub const fn times(self, rounds: u32) -> Self {
        Self {
            count: self.count * rounds,
            ..self
        }
    }

    /// A read into each of its buffers, once.
    #[must_use]
    pub const fn once_each(self) -> Self {
        Self {
            direction: Read,
            count: self.depth as u32,
            ..self
        }
    }

    /// Bytes in all.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.count as u64 * self.size as u64
    }

    /// 4 KiB random reads through the queue face, `depth` of them in flight, as many as every other short
    /// load.
    #[must_use]
    pub const fn short_reads(depth: usize) -> Self {
        Self::new(Random, Read, 4 * KIB, depth, Owned, 1000)
    }

    /// Its name in the lines.
    #[must_use]
    pub const fn name(&self) -> Name<'_> {
        Name(self)
    }

    /// The blocks of its requests on a disk of `blocks` blocks of `block_bytes` bytes: the first of
    /// each.
    pub fn places(&self, blocks: u64, block_bytes: u32) -> Places {
        let step = self.size as u64 / u64::from(block_bytes);
        Places {
            order: self.order,
            step,
            count: (blocks / step.max(1)).max(1),
            next: 0,
            state: SEED,
        }
    }
}

/// `rr4k.1`: order, direction, size and depth, as the other stacks' loads are called.
#[derive(Debug)]
pub struct Name<'l>(&'l Load);

impl fmt::Display for Name<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Load {
            order,
            direction,
            size,
            depth,
            buffer,
            ..
        } = *self.0;
        let order = match order {
            Sequential => 's',
            Random => 'r',
        };
        let direction = match direction {
            Read => 'r',
            Write => 'w',
        };
        let owned = match (buffer, depth) {
            (Owned, 1) => "-owned",
            _ => "",
        };
        match size {
            MIB.. => write!(formatter, "{order}{direction}{}m", size / MIB)?,
            _ => write!(formatter, "{order}{direction}{}k", size / KIB)?,
        }
        write!(formatter, "{owned}.{depth}")
    }
}

/// The generator's first state, as in the other stacks' loads.
const SEED: u32 = 12_345;

/// First blocks, one for each request.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    order: Order,
    step: u64,
    count: u64,
    next: u64,
    state: u32,
}

impl Iterator for Places {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.order == Random {
            // Xorshift (Marsaglia 2003, 13-17-5), as in the other stacks' loads.
            self.state ^= self.state << 13;
            self.state ^= self.state >> 17;
            self.state ^= self.state << 5;
            // In 32 bits, where they will do: some cores divide 64 only by a function, which is none of the
            // stack's cost.
            self.next = match u32::try_from(self.count) {
                Ok(count) => u64::from(self.state % count),
                Err(_) => u64::from(self.state),
            };
        } else if self.next >= self.count {
            self.next = 0;
        }
        let place = self.next;
        self.next += 1;
        Some(place * self.step)
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    use super::{LOADS, Load, Order};

    #[test]
    fn names_are_unique_and_say_what_a_load_is() {
        let mut names: Vec<String> = LOADS
            .iter()
            .map(|load| format!("{}", load.name()))
            .collect();
        for name in ["sr1m.1", "rw4k.1", "sr64k.1", "sr1m-owned.1", "rr4k.32"] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), LOADS.len());
    }

    #[test]
    fn a_load_is_found_by_its_name() {
        for load in LOADS {
            assert_eq!(Load::named(&format!("{}", load.name())), Some(load));
        }
        assert_eq!(Load::named("rr4k"), None);
    }

    #[test]
    fn requests_stay_on_the_disk_and_start_at_multiples_of_their_size() {
        for load in LOADS {
            let step = load.size as u64 / 512;
            for place in load.places(5_000, 512).take(10_000) {
                assert!(
                    place % step == 0 && place + step <= 5_000.max(step),
                    "{load:?}"
                );
            }
        }
    }

    #[test]
    fn a_sequential_load_begins_again_at_the_end() {
        let load = Load {
            order: Order::Sequential,
            ..LOADS[6]
        };
        let places: Vec<u64> = load.places(24, 512).take(4).collect();
        assert_eq!(places, [0, 8, 16, 0]);
    }
}
