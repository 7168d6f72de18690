//! From a transfer's segments to its blocks.
//!
//! Called by [`transfer`](super::transfer) with room already made in the ring: count first, then
//! write, then hand over. Data is cut only where it crosses 64 KiB. Read `xHCI 1.2 §4.11` and
//! `§6.4.1`.

use super::ring::{MAX_BLOCKS, ProducerRing};
use super::trb::{Flags, Trb};
use crate::dma::{BusAddress, Segment, release};
use crate::host::{EndpointConfig, EndpointKind, HostError, Report, Transfer};
use crate::usb::setup::{Direction, SetupPacket};

/// No block's data crosses a multiple of this (`xHCI 1.2 §6.4.1`).
const BLOCK_BOUNDARY: u64 = 0x1_0000;
/// The largest value of the TD size field.
const TD_SIZE_MAX: u32 = 31;

/// The fewest blocks of a ring. Policy.
const MIN_BLOCKS: usize = 16;

/// How the transfers of a ring are laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// Normal blocks only.
    Plain,
    /// A setup block first and a status block last.
    Control,
}

/// What the TD size field counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Units {
    /// Packets of so many bytes that come after the block (`xHCI 1.2 §4.11.2.4`).
    Packets(u16),
    /// KiB from the block on, in controllers before 1.0 (`xHCI 0.96 §4.11.2.4`).
    Kibibytes,
}

impl Units {
    /// The TD size field of a block of `piece` bytes with `left` bytes after it.
    #[inline]
    fn td_size(self, length: u32, piece: u32, left: u32) -> u32 {
        if left == 0 {
            return 0;
        }
        match self {
            Self::Kibibytes => ((left + piece) >> 10).min(TD_SIZE_MAX),
            Self::Packets(bytes) => {
                let bytes = u32::from(bytes);
                if left > TD_SIZE_MAX * bytes {
                    return TD_SIZE_MAX;
                }
                (length.div_ceil(bytes) - (length - left) / bytes).min(TD_SIZE_MAX)
            }
        }
    }
}

/// Writes the blocks of a transfer in order, handing the first one over last.
pub(super) struct Writer<'r> {
    ring: &'r ProducerRing,
    units: Units,
    first: u32,
    next: u32,
    /// Last word of the first block.
    held: u32,
}

impl<'r> Writer<'r> {
    /// Writes from block `first` on, which is reserved.
    #[inline]
    pub(super) fn new(ring: &'r ProducerRing, units: Units, first: u32) -> Self {
        Self {
            ring,
            units,
            first,
            next: first,
            held: 0,
        }
    }

    /// Writes the stages of a control transfer.
    pub(super) fn control(&mut self, transfer: &Transfer<'_>, packet: SetupPacket, flags: Flags) {
        self.put(&Trb::setup(packet));
        if packet.length != 0 {
            let length = u32::from(packet.length);
            let stage = Some(packet.direction());
            self.data(transfer, length, stage, Flags::empty());
        }
        self.put(&Trb::status(packet, flags));
    }

    /// Writes `length` bytes of data: a chain of blocks of which the last has `last_flags`.
    #[inline]
    pub(super) fn data(
        &mut self,
        transfer: &Transfer<'_>,
        length: u32,
        mut stage: Option<Direction>,
        last_flags: Flags,
    ) {
        let direction = stage.unwrap_or(transfer.direction);
        let short = short_flag(direction);
        let mut put = |data: BusAddress, piece: u32, left: u32| {
            let flags = if left == 0 { last_flags } else { Flags::CHAIN };
            let size = self.units.td_size(length, piece, left);
            let trb = Trb::normal(data, piece, size, flags | short);
            match stage.take() {
                None => self.put(&trb),
                Some(direction) => self.put(&trb.into_data_stage(direction)),
            }
        };
        if length == 0 {
            put(BusAddress::new(0), 0, 0);
        }
        let mut left = length;
        for segment in transfer.segments {
            let mut data = segment.bus();
            let mut rest = segment.length().min(left);
            while rest != 0 {
                let piece = rest.min(data.until_boundary(BLOCK_BOUNDARY) as u32);
                rest -= piece;
                left -= piece;
                put(data, piece, left);
                data = data.offset(u64::from(piece));
            }
        }
    }

    #[inline]
    fn put(&mut self, trb: &Trb) {
        self.ring.write(self.next, trb);
        if self.next == self.first {
            self.held = trb.control;
        } else {
            self.ring.hand_over(self.next, trb.control);
        }
        self.next += 1;
    }

    #[inline]
    /// Hands the transfer over.
    pub(super) fn finish(self) {
        // The controller may be reading the ring already: it must not see the first block as its
        // own before it can see everything else.
        release();
        self.ring.hand_over(self.first, self.held);
    }
}

/// Blocks that a transfer of an endpoint may have: one for each 64 KiB, one more at each end of an
/// unaligned buffer, and one for each of two bounced ends.
pub(super) fn blocks_per_transfer(config: &EndpointConfig) -> usize {
    let stages = match config.kind {
        EndpointKind::Control => 2,
        EndpointKind::Bulk | EndpointKind::Interrupt => 0,
    };
    (config.longest >> 16) as usize + 4 + stages
}

/// Blocks of a ring for `config.transfers` of the longest transfers. `None`: too many.
pub(super) fn ring_blocks(config: &EndpointConfig) -> Option<u32> {
    let blocks = least_blocks(usize::from(config.transfers), blocks_per_transfer(config));
    let blocks = blocks.max(MIN_BLOCKS).next_multiple_of(8);
    (blocks <= MAX_BLOCKS).then_some(blocks as u32)
}

/// What a ring must have for so many transfers: besides their own blocks, those that are left out before
/// an early link, the link, and one that stays free. So there is room for one more transfer as long as
/// fewer are in flight, and the ring itself need not count.
pub(super) fn least_blocks(transfers: usize, per_transfer: usize) -> usize {
    (transfers + 1) * per_transfer + 2
}

/// Whether a segment can be described by one block.
#[inline]
pub(super) fn fits_one_block(segment: Segment) -> bool {
    let room = BLOCK_BOUNDARY - (segment.bus().get() & (BLOCK_BOUNDARY - 1));
    u64::from(segment.length()) <= room
}

/// The last word of a transfer's only block, without its cycle bit, for each thing that may be reported.
/// Made once for a ring, because nearly every transfer has one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastWords([u32; 3]);

impl LastWords {
    /// For transfers in this direction.
    pub(super) fn new(direction: Direction) -> Self {
        let word = |report| {
            let flags = completion_flags(report) | short_flag(direction);
            Trb::normal(BusAddress::new(0), 0, 0, flags).control
        };
        Self(Report::ALL.map(word))
    }

    #[inline]
    pub(super) fn of(&self, report: Report) -> u32 {
        self.0.get(report as usize).copied().unwrap_or_default()
    }
}

/// An IN block reports a short packet.
#[inline]
fn short_flag(direction: Direction) -> Flags {
    match direction {
        Direction::In => Flags::INTERRUPT_ON_SHORT,
        Direction::Out => Flags::empty(),
    }
}

/// Blocks of a transfer of `length` bytes.
#[inline]
pub(super) fn count_blocks(
    segments: &[Segment],
    length: u32,
    form: Form,
) -> Result<u32, HostError> {
    let mut left = length;
    let mut blocks = 0_u32;
    for segment in segments {
        let bytes = segment.length().min(left);
        left -= bytes;
        if bytes != 0 {
            let end = (segment.bus().get() & (BLOCK_BOUNDARY - 1)) + u64::from(bytes);
            blocks += end.div_ceil(BLOCK_BOUNDARY) as u32;
        }
    }
    if left != 0 {
        // A control transfer with less memory than its data stage has bytes.
        return Err(HostError::Unsupported);
    }
    Ok(match form {
        Form::Plain => blocks.max(1),
        Form::Control => blocks + 2,
    })
}

/// What the last block of a transfer asks for.
pub(super) fn completion_flags(report: Report) -> Flags {
    match report {
        Report::Always => Flags::INTERRUPT_ON_COMPLETION,
        Report::WithoutInterrupt => Flags::INTERRUPT_ON_COMPLETION | Flags::BLOCK_INTERRUPT,
        Report::Unexpected => Flags::empty(),
    }
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
