//! Queue element transfer descriptors (qTDs): their fields, and how memory is cut into them.
//!
//! Called by [`queue`](super::queue). A qTD moves up to five 4 KiB pages: the first pointer may point
//! anywhere into its page, the others point to page starts. So one qTD takes at most 20 KiB, and the
//! pieces of a transfer may join only at page boundaries. A qTD that is not the last one of its
//! transfer ends at a multiple of the packet size, because no packet spans two qTDs.
//! `EHCI 1.0 §3.5`, appendix B for the extended pointers.

use tock_registers::LocalRegisterCopy;
use tock_registers::register_bitfields;

use crate::dma::{BusAddress, Segment};

register_bitfields! [u32,
    /// The token of a qTD, and of a queue head's overlay (§3.5.3).
    pub(super) TOKEN [
        /// High-speed OUT: ask before sending.
        PING OFFSET(0) NUMBITS(1) [],
        /// Split transaction state.
        SPLIT OFFSET(1) NUMBITS(1) [],
        /// A complete-split microframe was missed.
        MISSED OFFSET(2) NUMBITS(1) [],
        /// Timeout, bad CRC or bad packet; may have been retried since.
        TRANSACTION_ERROR OFFSET(3) NUMBITS(1) [],
        /// The device sent too much.
        BABBLE OFFSET(4) NUMBITS(1) [],
        /// The controller could not keep up.
        DATA_BUFFER OFFSET(5) NUMBITS(1) [],
        /// The queue stopped here.
        HALTED OFFSET(6) NUMBITS(1) [],
        /// The controller's to execute.
        ACTIVE OFFSET(7) NUMBITS(1) [],
        /// Kind of transaction.
        PID OFFSET(8) NUMBITS(2) [
            /// To the device.
            Out = 0,
            /// From the device.
            In = 1,
            /// Start of a control transfer.
            Setup = 2,
        ],
        /// Errors in a row that are still allowed.
        CERR OFFSET(10) NUMBITS(2) [],
        /// Current page.
        PAGE OFFSET(12) NUMBITS(3) [],
        /// Interrupt on completion.
        IOC OFFSET(15) NUMBITS(1) [],
        /// Bytes still to be moved.
        BYTES OFFSET(16) NUMBITS(15) [],
        /// Data toggle.
        TOGGLE OFFSET(31) NUMBITS(1) [],
    ],
];

/// A token as read from memory.
pub(super) type Token = LocalRegisterCopy<u32, TOKEN::Register>;

/// Bytes from one qTD to the next. 32 bytes are used on 32-bit controllers, 52 on 64-bit ones, and
/// the last twelve by the driver; a power of two, so that none spans a 4 KiB page (§3).
pub(super) const STRIDE: usize = 64;

/// Byte offset of the next pointer.
pub(super) const NEXT: usize = 0x00;
/// Byte offset of the pointer that is followed after a short packet.
pub(super) const ALTERNATE: usize = 0x04;
/// Byte offset of the token.
pub(super) const STATUS: usize = 0x08;
/// Byte offset of the five page pointers.
pub(super) const PAGES: usize = 0x0c;
/// Byte offset of bits 63..32 of the five page pointers.
pub(super) const PAGES_HIGH: usize = 0x20;
/// Byte offset of eight bytes that no controller uses as its own: the data of a setup stage.
pub(super) const SETUP: usize = 0x34;
/// Byte offset of a word that no controller uses: how many bytes the qTD was made for.
pub(super) const PLANNED: usize = 0x3c;

/// A pointer that leads nowhere (`T` set).
pub(super) const LINK_END: u32 = 1;

/// Page pointers of a qTD.
pub(super) const PAGE_COUNT: usize = 5;
/// Bytes of a page.
pub(super) const PAGE: u32 = 0x1000;
/// Bytes of all pages of a qTD.
pub(super) const MOST: u32 = PAGE_COUNT as u32 * PAGE;

/// What every qTD takes at least, wherever it starts, of a transfer that goes on behind it: four
/// pages, less what is no whole packet.
pub(super) const fn surely_taken(max_packet: u16) -> u32 {
    let four_pages = 4 * PAGE;
    four_pages - four_pages % max_packet as u32
}

/// A place in the pieces of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cursor {
    segment: usize,
    offset: u32,
}

impl Cursor {
    /// Before the first byte.
    pub(super) const START: Self = Self {
        segment: 0,
        offset: 0,
    };

    /// Where the next byte is, and how many follow it in the same piece.
    fn piece(&mut self, segments: &[Segment]) -> Option<(BusAddress, u32)> {
        loop {
            let segment = segments.get(self.segment)?;
            let rest = segment.length().saturating_sub(self.offset);
            if rest != 0 {
                return Some((segment.bus().offset(u64::from(self.offset)), rest));
            }
            self.segment += 1;
            self.offset = 0;
        }
    }

    /// The place `bytes` further on.
    fn forward(mut self, segments: &[Segment], mut bytes: u32) -> Self {
        while let Some((_, rest)) = self.piece(segments) {
            if bytes <= rest {
                break;
            }
            bytes -= rest;
            self.offset += rest;
        }
        self.offset += bytes;
        self
    }
}

/// How far one qTD reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reach {
    /// Bytes.
    pub(super) bytes: u32,
    /// Where the next qTD begins.
    pub(super) next: Cursor,
    /// There is nothing behind it.
    pub(super) last: bool,
}

/// Fills one qTD from `start` on: hands `page` the index and value of each page pointer, and returns
/// how far it reaches, or `None` if the pieces join where neither a page nor a packet ends.
#[inline]
pub(super) fn cut(
    segments: &[Segment],
    start: Cursor,
    max_packet: u32,
    mut page: impl FnMut(usize, BusAddress),
) -> Option<Reach> {
    let mut cursor = start;
    // The first pointer has an offset, as if so many bytes of its page were taken already.
    let mut offset = 0;
    let mut taken = 0;
    while let Some((bus, rest)) = cursor.piece(segments) {
        let inside = bus.low() % PAGE;
        if taken == 0 {
            offset = inside;
        }
        let used = offset + taken;
        let joins = taken == 0 || (inside == 0 && used.is_multiple_of(PAGE));
        let room = if joins { MOST - used } else { 0 };
        let bytes = rest.min(room);
        let mut at = used;
        while at < used + bytes {
            page((at / PAGE) as usize, bus.offset(u64::from(at - used)));
            at = (at / PAGE + 1) * PAGE;
        }
        taken += bytes;
        cursor.offset += bytes;
        if bytes != rest {
            let bytes = taken - taken % max_packet;
            let next = start.forward(segments, bytes);
            let last = false;
            return (bytes != 0).then_some(Reach { bytes, next, last });
        }
    }
    Some(Reach {
        bytes: taken,
        next: cursor,
        last: true,
    })
}

#[cfg(test)]
#[path = "transfer_descriptor_tests.rs"]
mod tests;
