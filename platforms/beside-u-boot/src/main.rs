//! Reads a disk through U-Boot's own USB and SCSI drivers, to be timed beside this stack.
//!
//! Who calls it: U-Boot's `bootefi`, for `cargo xtask bench`. An EFI program asks for blocks, and
//! U-Boot hands each request straight to its disk driver (UEFI 2.10 §13.9). The load and the lines
//! around it are those of the bench image (`platforms/common/src/bench`), so that the two differ in
//! nothing but whose drivers they time. It reads only, and the first whole disk that there is.
#![no_std]
#![no_main]

use core::fmt;

use aarch64_cpu::asm::barrier;
use aarch64_cpu::registers::{CNTVCT_EL0, Readable};
use uefi::boot::{self, SearchType};
use uefi::proto::media::block::BlockIO;
use uefi::{Identify, Status, entry, println};

/// Bytes of a request.
const REQUEST: usize = 4096;
/// Requests, as in ten rounds of the bench image's load.
const COUNT: u32 = 10_000;
/// The generator's first state, as in the bench image.
const SEED: u32 = 12_345;

/// Where a request's data go.
#[repr(align(4096))]
struct Page([u8; REQUEST]);

/// Why nothing was measured.
enum Failure {
    NoDisk,
    OddBlocks(u32),
    Firmware(Status),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDisk => formatter.write_str("no-disk"),
            Self::OddBlocks(bytes) => write!(formatter, "blocks-of-{bytes}-bytes"),
            Self::Firmware(status) => write!(formatter, "{status:?}"),
        }
    }
}

impl From<uefi::Error> for Failure {
    fn from(error: uefi::Error) -> Self {
        Self::Firmware(error.status())
    }
}

#[entry]
fn main() -> Status {
    match run() {
        Ok(()) => println!("@done result=ok"),
        Err(failure) => println!("@fail reason={failure}"),
    }
    Status::SUCCESS
}

fn run() -> Result<(), Failure> {
    let handles = boot::locate_handle_buffer(SearchType::ByProtocol(&BlockIO::GUID))?;
    for &handle in handles.iter() {
        let mut disk = boot::open_protocol_exclusive::<BlockIO>(handle)?;
        let media = disk.media();
        if media.is_media_present() && !media.is_logical_partition() {
            return measure(&mut disk);
        }
    }
    Err(Failure::NoDisk)
}

/// Reads at random places, one request at a time.
fn measure(disk: &mut BlockIO) -> Result<(), Failure> {
    let media = disk.media();
    let (medium, block_bytes) = (media.media_id(), media.block_size());
    let step = REQUEST as u32 / block_bytes.max(1);
    if step * block_bytes != REQUEST as u32 {
        return Err(Failure::OddBlocks(block_bytes));
    }
    let step = u64::from(step);
    let places = Places {
        state: SEED,
        count: ((media.last_block() + 1) / step).max(1),
    };
    let mut page = Page([0; REQUEST]);
    // So that what happens only once is over.
    disk.read_blocks(medium, 0, &mut page.0)?;
    println!("@@B bare.rr4k.1");
    let start = ticks();
    let mut errors = 0;
    for place in places.take(COUNT as usize) {
        let result = disk.read_blocks(medium, place * step, &mut page.0);
        errors += u32::from(result.is_err());
    }
    let took = ticks() - start;
    let bytes = REQUEST as u64 * u64::from(COUNT);
    println!("@@E bare.rr4k.1 n={COUNT} bytes={bytes} cnt={took} err={errors}");
    Ok(())
}

/// Places of requests, the same as the bench image's.
struct Places {
    state: u32,
    count: u64,
}

impl Iterator for Places {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        // Xorshift (Marsaglia 2003, 13-17-5).
        self.state ^= self.state << 13;
        self.state ^= self.state >> 17;
        self.state ^= self.state << 5;
        Some(u64::from(self.state) % self.count)
    }
}

fn ticks() -> u64 {
    // Else the counter may be read before what stands in front of it is done.
    barrier::isb(barrier::SY);
    CNTVCT_EL0.get()
}
