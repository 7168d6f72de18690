//! How long transactions take on a high-speed bus.
//!
//! A microframe has 7500 byte times (USB 2.0 §5.8.4). A bulk transaction costs 55 besides its data
//! (table 5-10), so that 13 of 512 bytes fit into one; a transaction must end in the microframe in
//! which it began.

use crate::device::{MICROSECOND, MILLISECOND, Nanoseconds};

/// A microframe.
pub(super) const MICROFRAME: Nanoseconds = 125 * MICROSECOND;
/// Byte times of a microframe.
const CAPACITY: u64 = 7_500;
/// Token, data framing and handshake (USB 2.0 table 5-10).
const OVERHEAD: u64 = 55;
/// Token and handshake without data: a NAK, a STALL, a PING.
const NO_DATA: u64 = 45;
/// What a split token adds.
const SPLIT: u64 = 4;
/// An idle asynchronous schedule is looked at again after this time (EHCI 1.0 §4.8.4,
/// AsyncSchedSleepTime).
pub(super) const SLEEP: Nanoseconds = 10 * MICROSECOND;
/// The longest leap over polls of an endpoint that is not ready.
pub(super) const PATIENCE: Nanoseconds = MILLISECOND;

fn byte_times(count: u64) -> Nanoseconds {
    (count * MICROFRAME).div_ceil(CAPACITY)
}

/// A transaction with `bytes` of data.
pub(super) fn with_data(bytes: usize) -> Nanoseconds {
    byte_times(bytes as u64 + OVERHEAD)
}

/// A transaction that only a handshake ended.
pub(super) fn without_data() -> Nanoseconds {
    byte_times(NO_DATA)
}

/// A start-split or complete-split with `bytes` of data.
pub(super) fn split(bytes: usize) -> Nanoseconds {
    byte_times(bytes as u64 + OVERHEAD + SPLIT)
}

/// A transaction on the full- or low-speed bus below a transaction translator: 1500 byte times a
/// frame at full speed, an eighth of it at low speed, 13 of overhead.
pub(super) fn slow(bytes: usize, low_speed: bool) -> Nanoseconds {
    let full = (bytes as u64 + 13) * MILLISECOND / 1_500;
    if low_speed { 8 * full } else { full }
}

/// When the microframe after `now` begins.
pub(super) fn next_microframe(now: Nanoseconds) -> Nanoseconds {
    (now / MICROFRAME + 1) * MICROFRAME
}

/// Whether a transaction of this length that begins at `now` ends in the same microframe.
pub(super) fn fits(now: Nanoseconds, cost: Nanoseconds) -> bool {
    now + cost <= next_microframe(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirteen_bulk_packets_fit_into_a_microframe() {
        let mut now = 0;
        let mut count = 0;
        while fits(now, with_data(512)) {
            now += with_data(512);
            count += 1;
        }
        assert_eq!(count, 13);
    }
}
