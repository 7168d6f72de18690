//! Disks whose capacity is large, odd, or a lie.

use super::super::bot::{Action, Until, opcode};
use super::super::scsi::{LogicalUnit, Scripted, Sense};
use super::super::{Disk, Script};

/// 0xEE7752B0 blocks: the last address has bit 31 set. libaums pull request 441.
#[must_use]
pub fn has_bit_31_in_its_last_block() -> Disk {
    Script::new()
        .unit(LogicalUnit::disk(0xee77_52b0, 512))
        .build()
}

/// 5 TB: READ CAPACITY(10) answers FFFFFFFF. Haiku ticket 14670.
#[must_use]
pub fn has_five_terabytes() -> Disk {
    Script::new()
        .unit(LogicalUnit::disk(9_767_541_168, 512))
        .build()
}

/// 3 TB, but READ CAPACITY(10) answers them modulo 2 TiB; only (16) tells the truth. Linux quirk
/// NEEDS_CAP16, 174c:55aa release 0100.
#[must_use]
pub fn wraps_its_capacity_at_two_tebibytes() -> Disk {
    let blocks: u64 = 5_860_533_168;
    let wrapped = u32::try_from((blocks - 1) & 0xffff_ffff).expect("masked");
    let unit = LogicalUnit::disk(blocks, 512).script(0x25, capacity(wrapped, 512));
    Script::new()
        .ids(0x174c, 0x55aa)
        .release(0x0100)
        .unit(unit)
        .build()
}

/// READ CAPACITY(10) answers FFFFFFFF and (16) is unknown (5/20/00).
#[must_use]
pub fn sends_to_a_long_capacity_that_it_does_not_know() -> Disk {
    let unit = LogicalUnit::disk(1 << 33, 512)
        .script(0x9e, Scripted::Fail(Sense::UNKNOWN_COMMAND))
        .script(0x25, capacity(u32::MAX, 512));
    Script::new().unit(unit).build()
}

/// Dies in a read of several blocks that touches the last one, as some readers of SD cards do. Linux reads the
/// last blocks of such disks one by one (`last_sector_bug`).
#[must_use]
pub fn dies_in_a_long_read_of_its_last_block(blocks: u64) -> Disk {
    let long = opcode(0x28).touching(blocks - 1..blocks).longer_than(1);
    Script::new()
        .unit(LogicalUnit::disk(blocks, 512))
        .on(long, Action::Hang(Until::PowerCycle))
        .build()
}

/// The count in place of the last block: one block too many. Linux quirk FIX_CAPACITY.
#[must_use]
pub fn counts_one_block_too_many() -> Disk {
    let unit = LogicalUnit::disk(65536, 512).script(0x25, capacity(65536, 512));
    Script::new().unit(unit).build()
}

/// A good disk of blocks of `block_size` bytes: 2048 and 4096 are met. Open-PS2-Loader issue 651,
/// U-Boot mailing list 2009-June/053550, grub4dos issue 47 (Seagate 0bc2:3312).
///
/// # Panics
/// Unless the size is a power of two from 512 to 65536.
#[must_use]
pub fn has_blocks_of(block_size: usize) -> Disk {
    Script::new()
        .unit(LogicalUnit::disk(65536, block_size))
        .build()
}

/// READ CAPACITY(10) answers so, true or not: block lengths 0, 1, 511 and 263520264 were seen. Zephyr
/// issue 77175, edk2 commits 4f8b2f9d72 and 25d310d9b6.
#[must_use]
pub fn tells_capacity(last_block: u32, block_length: u32) -> Disk {
    let unit = LogicalUnit::stick(65536).script(0x25, capacity(last_block, block_length));
    Script::new().unit(unit).build()
}

fn capacity(last_block: u32, block_length: u32) -> Scripted {
    Scripted::Data([last_block.to_be_bytes(), block_length.to_be_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::super::super::packet_host::Data;
    use super::super::testing::{CAPACITY, CAPACITY_16, TEST, plugged};
    use super::*;

    /// The answers to READ CAPACITY(10) and (16); empty if the command failed.
    fn capacities(disk: Disk) -> (Vec<u8>, Vec<u8>) {
        let mut host = plugged(disk);
        let _attention = host.simple(&TEST);
        let (short, _) = host.command(&CAPACITY, Data::In(8)).expect("a status");
        let (long, _) = host.command(&CAPACITY_16, Data::In(32)).expect("a status");
        (short, long)
    }

    fn block(bytes: &[u8]) -> u64 {
        bytes
            .iter()
            .fold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    #[test]
    fn large_disks_tell_their_last_block_where_it_fits() {
        let (short, _) = capacities(has_bit_31_in_its_last_block());
        assert_eq!(short, [0xee, 0x77, 0x52, 0xaf, 0, 0, 2, 0]);
        let (short, long) = capacities(has_five_terabytes());
        assert_eq!(
            (block(&short[..4]), block(&long[..8])),
            (0xffff_ffff, 9_767_541_167)
        );
    }

    #[test]
    fn a_wrapped_capacity_is_small_in_the_short_answer_only() {
        let (short, long) = capacities(wraps_its_capacity_at_two_tebibytes());
        assert_eq!(
            (block(&short[..4]), block(&long[..8])),
            (1_565_565_871, 5_860_533_167)
        );
    }

    #[test]
    fn a_long_capacity_may_be_unknown_although_it_is_needed() {
        let (short, long) = capacities(sends_to_a_long_capacity_that_it_does_not_know());
        assert_eq!((block(&short[..4]), long.len()), (0xffff_ffff, 0));
    }

    #[test]
    fn told_capacities_are_told_whatever_they_are() {
        assert_eq!(capacities(counts_one_block_too_many()).0[..4], [0, 1, 0, 0]);
        assert_eq!(
            capacities(has_blocks_of(4096)).0,
            [0, 0, 255, 255, 0, 0, 16, 0]
        );
        assert_eq!(
            block(&capacities(tells_capacity(7, 263_520_264)).0[4..]),
            263_520_264
        );
    }
}
