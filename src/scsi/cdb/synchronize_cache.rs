//! SYNCHRONIZE CACHE (10) and (16) (SBC-3, operation codes 35 and 91).

use super::{Cdb, Command, DataPhase};

/// Puts the whole write cache of a disk of `disk_blocks` blocks on its medium. No data.
///
/// 10 bytes, or 16 for a disk with blocks beyond 2^32. It waits for the medium, which may take
/// the disk many seconds: give it the flush deadline.
#[must_use]
pub const fn synchronize_cache(disk_blocks: u64) -> Command {
    // First block 0 and count 0 mean everything; the immediate bit stays clear.
    let cdb = if disk_blocks <= 1 << 32 {
        Cdb::ten([0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    } else {
        Cdb::sixteen([0x91, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    };
    Command {
        cdb,
        data: DataPhase::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_follows_the_size_of_the_disk() {
        let small = synchronize_cache(1 << 32);
        assert_eq!(small.cdb.to_bytes(), [0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(small.data, DataPhase::None);
        let large = synchronize_cache((1 << 32) + 1);
        assert_eq!((large.cdb.operation_code(), large.cdb.length()), (0x91, 16));
    }
}
