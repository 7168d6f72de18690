//! How long packets take on each kind of bus.
//!
//! Up to high speed, time is cut into frames or microframes, and a packet must fit into the one that
//! it begins in: that is what limits high speed to 13 bulk packets of 512 bytes a microframe (USB
//! 2.0 §5.8.4, table 5-10: 7500 bytes of 125 µs, 55 bytes of overhead a packet) and full speed to 19
//! of 64 bytes a frame (table 5-9: 1500 bytes, 13 of overhead). At SuperSpeed a symbol takes 2 ns,
//! and a packet costs its header, framing and acknowledgement besides its bytes; without a burst,
//! the next packet waits for the acknowledgement's way back.

use super::ports::Port;
use crate::device::{Link, MICROSECOND, MILLISECOND, Nanoseconds};

/// A microframe (USB 2.0 §4.4.2... 125 µs).
pub(super) const MICROFRAME: Nanoseconds = 125 * MICROSECOND;
/// Before a transaction that failed, or was put off without a hint, is tried again.
pub(super) const RETRY: Nanoseconds = 10 * MICROSECOND;
/// Before an endpoint that nobody knows the readiness of is asked again.
pub(super) const PATIENCE: Nanoseconds = MILLISECOND;
/// SuperSpeed: from the moment when a device has something to when its ERDY has arrived.
pub(super) const ERDY: Nanoseconds = MICROSECOND;
/// From an ERDY that starts a stream to the first data packet: the acknowledgement that accepts it,
/// and the device's answer.
pub(super) const STREAM_START: Nanoseconds = 2 * MICROSECOND;
/// From the doorbell to the first packet.
pub(super) const DOORBELL: Nanoseconds = MICROSECOND;

/// Symbols of a SuperSpeed data packet besides its payload: header, framing, CRC, and its share of
/// acknowledgements and SKP sets. 1024 bytes then take 2.16 µs, 474 MB/s.
const SUPER_OVERHEAD: u64 = 56;
/// From the start of a packet to the moment when its acknowledgement has arrived and the next one
/// may follow, if only one may be under way.
const ROUND_TRIP: Nanoseconds = 3_660;

/// A link's unit of time, how many bytes fit in it, and how many a packet costs besides its own.
fn budget(link: Link) -> (Nanoseconds, u64, u64) {
    match link {
        Link::Low => (MILLISECOND, 187, 13),
        Link::Full => (MILLISECOND, 1_500, 13),
        Link::High => (MICROFRAME, 7_500, 55),
        Link::Super | Link::SuperPlus => (MICROFRAME, 62_500, SUPER_OVERHEAD),
    }
}

/// Time on the bus of a packet with `bytes` of payload.
pub(super) fn packet(link: Link, bytes: usize) -> Nanoseconds {
    let (unit, capacity, overhead) = budget(link);
    let cost = (bytes as u64 + overhead) * unit / capacity;
    if link == Link::SuperPlus {
        cost / 2
    } else {
        cost
    }
}

/// How long an endpoint waits after a packet beyond the packet's own time, for want of a burst.
pub(super) fn turnaround(link: Link, bytes: usize, max_burst: u32) -> Nanoseconds {
    if !link.is_super() {
        return 0;
    }
    let spacing = ROUND_TRIP / (u64::from(max_burst) + 1);
    spacing.saturating_sub(packet(link, bytes))
}

impl Port {
    /// Takes the bus for a packet that can begin at `from`: when it ends.
    pub(super) fn reserve(&mut self, from: Nanoseconds, link: Link, bytes: usize) -> Nanoseconds {
        let cost = packet(link, bytes);
        let mut start = from.max(self.free_at);
        if !link.is_super() {
            let (unit, ..) = budget(link);
            let left = unit - start % unit;
            if left < cost {
                start += left;
            }
        }
        self.free_at = start + cost;
        self.free_at
    }

    /// The packet that ended at `end` was only a token and a handshake.
    pub(super) fn give_back(&mut self, end: Nanoseconds, link: Link, bytes: usize) {
        if self.free_at == end {
            self.free_at -= packet(link, bytes) - packet(link, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::xhci::{Protocol, Traits};

    fn packets_in(link: Link, bytes: usize, span: Nanoseconds) -> u32 {
        let mut port = Port::new(Protocol::Usb2, &Traits::default());
        let mut count = 0;
        while port.reserve(0, link, bytes) <= span {
            count += 1;
        }
        count
    }

    #[test]
    fn high_speed_fits_thirteen_bulk_packets_into_a_microframe() {
        assert_eq!(packets_in(Link::High, 512, MICROFRAME), 13);
        assert_eq!(packets_in(Link::High, 512, 8 * MICROFRAME), 104);
    }

    #[test]
    fn full_speed_fits_nineteen_bulk_packets_into_a_frame() {
        assert_eq!(packets_in(Link::Full, 64, MILLISECOND), 19);
    }

    #[test]
    fn superspeed_moves_474_megabytes_a_second_with_bursts_and_a_third_less_without() {
        let packets = packets_in(Link::Super, 1024, 1_000 * MILLISECOND);
        assert_eq!(u64::from(packets) * 1024 / 1_000_000, 474);
        assert_eq!(turnaround(Link::Super, 1024, 3), 0);
        let alone = packet(Link::Super, 1024) + turnaround(Link::Super, 1024, 0);
        assert!(alone * 2 > packet(Link::Super, 1024) * 3);
    }
}
