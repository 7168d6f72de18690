//! The pattern that is written to the scratch partition and read back
//! (`docs/demo-protocol.md`, "Scratch pattern").

use super::checksum::Checksum;
use super::disk::Disk;
use super::partitions::Partition;
use crate::power::Reason;
use crate::println;

/// Bytes of the pattern.
const BYTES: u64 = 1 << 20;
/// The word at index i is (i + 1) times this, modulo 2^64.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Writes the pattern to the start of the partition, flushes, reads it back and says what came.
///
/// # Errors
///
/// The disk's own error, or the first byte that came back wrong.
pub fn run(
    disk: &mut Disk<'_>,
    number: usize,
    partition: &Partition,
    buffer: &mut [u8],
) -> Result<(), Reason> {
    let bytes = BYTES.min(partition.blocks * disk.block_size() as u64);
    let told = |what, error| Reason::new(format_args!("scratch: {what}: {error}"));
    pieces(disk, partition, bytes, buffer, |disk, block, at, piece| {
        fill(piece, at);
        disk.write(block, piece)
            .map_err(|error| told("writing", error))
    })?;
    disk.flush().map_err(|error| told("flushing", error))?;
    let mut sum = Checksum::default();
    pieces(disk, partition, bytes, buffer, |disk, block, at, piece| {
        disk.read(block, piece)
            .map_err(|error| told("reading", error))?;
        sum.update(piece);
        check(piece, at)
    })?;
    println!("scratch pattern: {bytes} bytes written, read back and compared");
    println!(
        "@scratch disk={number} partition={} bytes={bytes} crc32={:08x}",
        partition.number,
        sum.value()
    );
    Ok(())
}

/// Goes through the first `bytes` of the partition by buffers: the disk, the block, the byte of
/// the partition, the buffer.
fn pieces(
    disk: &mut Disk<'_>,
    partition: &Partition,
    bytes: u64,
    buffer: &mut [u8],
    mut each: impl FnMut(&mut Disk<'_>, u64, u64, &mut [u8]) -> Result<(), Reason>,
) -> Result<(), Reason> {
    let mut at = 0;
    while at < bytes {
        let length = (bytes - at).min(buffer.len() as u64) as usize;
        let block = partition.first + at / disk.block_size() as u64;
        each(disk, block, at, &mut buffer[..length])?;
        at += length as u64;
    }
    Ok(())
}

/// The pattern's word that begins at byte `at`, a multiple of 8.
fn word(at: u64) -> [u8; 8] {
    (at / 8 + 1).wrapping_mul(FACTOR).to_le_bytes()
}

/// Fills a piece, of whole words, with the pattern from byte `at` on.
pub(super) fn fill(piece: &mut [u8], at: u64) {
    for (index, bytes) in piece.chunks_exact_mut(8).enumerate() {
        bytes.copy_from_slice(&word(at + 8 * index as u64));
    }
}

/// Whether a piece, of whole words, is the pattern's from byte `at` on.
pub(super) fn check(piece: &[u8], at: u64) -> Result<(), Reason> {
    for (index, bytes) in piece.chunks_exact(8).enumerate() {
        let at = at + 8 * index as u64;
        if bytes != word(at) {
            return Err(Reason::new(format_args!(
                "scratch: wrong data at byte {at}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{check, fill, word};

    #[test]
    fn the_pattern_starts_with_the_factor() {
        assert_eq!(word(0), [0x15, 0x7c, 0x4a, 0x7f, 0xb9, 0x79, 0x37, 0x9e]);
        assert_eq!(u64::from_le_bytes(word(8)), 0x3c6e_f372_fe94_f82a);
    }

    #[test]
    fn a_byte_that_differs_is_found() {
        let mut piece = [0; 64];
        fill(&mut piece, 4096);
        assert!(check(&piece, 4096).is_ok());
        piece[40] ^= 1;
        assert!(check(&piece, 4096).is_err());
    }
}
