//! A small throughput table on the scratch partition.
//!
//! One request at a time, each timed with its completion. Sequential runs start at the partition's
//! first block; random ones go to multiples of their size all over it, in an order that is the
//! same in every run.

use super::disk::Disk;
use super::partitions::Partition;
use crate::power::Reason;
use crate::{print, println};

/// Bytes of a request, from small to large.
const SIZES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Policy: a cell moves this much, or as many requests as the next line says if that is less.
const BYTES: usize = 8 << 20;
/// Policy: enough for a mean, short enough for an emulator.
const MOST_OPERATIONS: usize = 256;

#[derive(Clone, Copy)]
enum Order {
    Sequential,
    Random,
}

#[derive(Clone, Copy)]
enum Direction {
    Read,
    Write,
}

const ROWS: [(&str, Order, Direction); 4] = [
    ("sequential-read", Order::Sequential, Direction::Read),
    ("random-read", Order::Random, Direction::Read),
    ("sequential-write", Order::Sequential, Direction::Write),
    ("random-write", Order::Random, Direction::Write),
];

/// Measures and prints the table. `clock` tells microseconds; `buffer` holds the largest request.
///
/// # Errors
///
/// The disk's own error. A partition or a buffer smaller than a request leaves its cells out.
pub fn run(
    disk: &mut Disk<'_>,
    number: usize,
    partition: &Partition,
    buffer: &mut [u8],
    clock: fn() -> u64,
) -> Result<(), Reason> {
    println!(
        "throughput on partition {}, one request at a time, kB/s:",
        partition.number
    );
    print!("  {:>16}", "bytes");
    SIZES.iter().for_each(|size| print!(" {size:>9}"));
    println!();
    let mut cells = heapless::Vec::<Cell, { ROWS.len() * SIZES.len() }>::new();
    for (name, order, direction) in ROWS {
        print!("  {name:>16}");
        for size in SIZES {
            let Some(run) = Run::new(disk, partition, size, order) else {
                continue;
            };
            let Some(buffer) = buffer.get_mut(..size) else {
                continue;
            };
            let microseconds = run.measure(disk, buffer, direction, clock)?;
            let cell = Cell {
                name,
                size,
                operations: run.operations,
                microseconds,
            };
            print!(" {:>9}", cell.kilobytes_per_second());
            // There is room for every cell.
            let _ = cells.push(cell);
        }
        println!();
    }
    cells.iter().for_each(|cell| cell.mark(number));
    Ok(())
}

struct Cell {
    name: &'static str,
    size: usize,
    operations: u64,
    microseconds: u64,
}

impl Cell {
    fn bytes(&self) -> u64 {
        self.operations * self.size as u64
    }

    fn kilobytes_per_second(&self) -> u64 {
        self.bytes() * 1_000 / self.microseconds.max(1)
    }

    fn mark(&self, disk: usize) {
        println!(
            "@perf disk={disk} name={} block={} operations={} bytes={} microseconds={}",
            self.name,
            self.size,
            self.operations,
            self.bytes(),
            self.microseconds
        );
    }
}

/// The requests of one cell.
struct Run {
    first: u64,
    /// Blocks of a request.
    blocks: u64,
    /// Requests' places in the partition.
    places: u64,
    operations: u64,
    order: Order,
}

impl Run {
    /// `None` where requests of this size are no whole blocks, or do not fit the partition.
    fn new(disk: &Disk<'_>, partition: &Partition, size: usize, order: Order) -> Option<Self> {
        let blocks = (size / disk.block_size()) as u64;
        let places = partition.blocks.checked_div(blocks)?;
        let operations = (BYTES / size).min(MOST_OPERATIONS) as u64;
        (places > 0 && size.is_multiple_of(disk.block_size())).then_some(Self {
            first: partition.first,
            blocks,
            places,
            operations,
            order,
        })
    }

    fn measure(
        &self,
        disk: &mut Disk<'_>,
        buffer: &mut [u8],
        direction: Direction,
        clock: fn() -> u64,
    ) -> Result<u64, Reason> {
        let start = clock();
        for operation in 0..self.operations {
            let block = self.first + self.place(operation) * self.blocks;
            match direction {
                Direction::Read => disk.read(block, buffer),
                Direction::Write => disk.write(block, buffer),
            }
            .map_err(|error| Reason::new(format_args!("throughput, block {block}: {error}")))?;
        }
        Ok(clock() - start)
    }

    /// Where a request goes, as a multiple of its size.
    fn place(&self, operation: u64) -> u64 {
        match self.order {
            Order::Sequential => operation % self.places,
            Order::Random => scramble(operation) % self.places,
        }
    }
}

/// SplitMix64's output function (Steele, Lea, Flood, OOPSLA 2014): the same for every run.
fn scramble(index: u64) -> u64 {
    let mut value = (index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}
