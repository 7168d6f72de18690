//! One endpoint's queue: a queue head and a circle of qTDs behind it.
//!
//! Called by [`endpoint`](super::endpoint). Each qTD's next pointer leads to its neighbour for ever,
//! the last one's to the first. The controller stops at the first qTD that is not active, and that
//! is always the one at `tail`: so a transfer is appended to a running queue by writing all that
//! follows first, and the token at `tail` last. No register is touched (`EHCI 1.0 §4.10`).
//!
//! Invariants: every qTD outside the transfers in flight is inactive; the one at `tail` is outside.
//! Positions and lengths live here; what the controller writes are tokens only.

use super::queue_head;
use super::transfer_descriptor::{
    ALTERNATE, Cursor, Cut, LINK_END, NEXT, PAGES, PAGES_HIGH, PLANNED, SETUP, STATUS, STRIDE,
    TOKEN, Token, surely_taken,
};
use crate::dma::{self, Allocation};
use crate::host::{EndpointConfig, EndpointKind, HostError, Report, Transfer};
use crate::usb::setup::{Direction, SetupPacket};

/// Consecutive qTDs of a [`Queue`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    /// Position of the first.
    pub(super) first: u16,
    /// How many.
    pub(super) count: u16,
}

/// A transfer that was written but that the controller cannot see: its first qTD is not active.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Prepared {
    /// Where it lies.
    pub(super) span: Span,
    /// What makes it visible when it is written to the first qTD's token.
    pub(super) token: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Queue {
    memory: Allocation,
    /// Bus address of the first qTD.
    base: u32,
    /// Number of qTDs.
    size: u16,
    /// Where the next transfer begins.
    tail: u16,
    /// How many qTDs transfers may still take.
    free: u16,
    /// qTDs have extended page pointers.
    wide: bool,
}

/// How many qTDs an endpoint needs: for its transfers, and one to stop at. `None` if that is more
/// than a queue can count.
pub(super) fn descriptors(config: &EndpointConfig) -> Option<u16> {
    let stages = match config.kind {
        EndpointKind::Control => 2,
        EndpointKind::Bulk | EndpointKind::Interrupt => 0,
    };
    let data = config.longest.div_ceil(surely_taken(config.max_packet));
    let each = data.max(1).checked_add(stages)?;
    let all = each
        .checked_mul(u32::from(config.transfers.max(1)))?
        .checked_add(1)?;
    u16::try_from(all).ok().filter(|all| *all <= u16::MAX / 2)
}

/// Bytes of the pool for a queue of `size` qTDs.
pub(super) const fn length(size: u16) -> usize {
    queue_head::LENGTH + size as usize * STRIDE
}

impl Queue {
    /// A queue of `size` qTDs in `memory`, which is zeroed, below 4 GiB and `length(size)` long.
    pub(super) fn new(memory: Allocation, size: u16, wide: bool) -> Self {
        let base = memory.bus().offset(queue_head::LENGTH as u64).low();
        let queue = Self {
            memory,
            base,
            size,
            tail: 0,
            free: size.saturating_sub(1),
            wide,
        };
        for position in 0..size {
            let next = queue.address(queue.after(position, 1));
            queue.write(position, NEXT, next);
            queue.write(position, ALTERNATE, LINK_END);
        }
        queue
    }

    /// The queue head's memory, with the qTDs behind it.
    pub(super) fn memory(&self) -> &Allocation {
        &self.memory
    }

    /// Gives the memory up. The controller reaches it no more.
    pub(super) fn into_memory(self) -> Allocation {
        self.memory
    }

    /// The position `count` behind `position`; `count` is at most the size.
    #[inline]
    pub(super) fn after(&self, position: u16, count: u16) -> u16 {
        let sum = position + count;
        if sum >= self.size {
            sum - self.size
        } else {
            sum
        }
    }

    fn address(&self, position: u16) -> u32 {
        self.base + u32::from(position) * STRIDE as u32
    }

    #[inline]
    fn write(&self, position: u16, field: usize, value: u32) {
        self.memory.write32(Self::offset(position) + field, value);
    }

    #[inline]
    fn offset(position: u16) -> usize {
        queue_head::LENGTH + usize::from(position) * STRIDE
    }

    /// The token of the qTD at `position`.
    #[inline]
    pub(super) fn read_token(&self, position: u16) -> Token {
        Token::new(self.memory.read32(Self::offset(position) + STATUS))
    }

    /// How many bytes the qTD at `position` was made for.
    pub(super) fn read_planned(&self, position: u16) -> u32 {
        self.memory.read32(Self::offset(position) + PLANNED)
    }

    /// The token of the qTD at `position` as far as the controller has come with it: while it is at
    /// work on it, progress is in the overlay only. The queue head is out of its schedule.
    pub(super) fn read_progress(&self, position: u16) -> Token {
        if queue_head::read_current(&self.memory) == self.address(position) {
            Token::new(queue_head::read_token(&self.memory))
        } else {
            self.read_token(position)
        }
    }

    /// Makes a prepared transfer visible.
    #[inline]
    pub(super) fn activate(&self, prepared: Prepared) {
        dma::release();
        self.write(prepared.span.first, STATUS, prepared.token);
    }

    /// Takes back the qTDs of the oldest transfer, all of them inactive.
    #[inline]
    pub(super) fn give_back(&mut self, count: u16) {
        self.free += count;
    }

    /// Makes qTDs that the controller has passed over inactive.
    pub(super) fn wipe(&self, span: Span) {
        for index in 0..span.count {
            self.write(self.after(span.first, index), STATUS, 0);
        }
    }

    /// Empties the queue: nothing is in flight, and the controller goes on at `tail` with the toggle
    /// and ping state of `token`. The queue head is out of its schedule.
    pub(super) fn rewind(&mut self, token: u32) {
        self.wipe(Span {
            first: 0,
            count: self.size,
        });
        self.free = self.size.saturating_sub(1);
        queue_head::write_overlay(&self.memory, self.address(self.tail), token);
    }

    /// Writes a transfer behind those in flight, all but its first token.
    ///
    /// Fails with [`HostError::QueueFull`] if it does not fit now, [`HostError::TooLong`] if it does
    /// not fit at all, [`HostError::Unsupported`] if its pieces join inside a packet; then nothing
    /// was changed.
    pub(super) fn prepare(
        &mut self,
        transfer: &Transfer<'_>,
        max_packet: u32,
    ) -> Result<Prepared, HostError> {
        let mut writer = Writer::new(self);
        let written = match transfer.setup {
            Some(setup) => writer.control(&setup, transfer, max_packet),
            None => writer.data(transfer, max_packet, None).map(|()| 0),
        };
        let (count, last, first_token) = (writer.count, writer.last, writer.first_token);
        let span = Span {
            first: self.tail,
            count,
        };
        let stages = match written {
            Ok(stages) => stages,
            Err(error) => {
                self.wipe(span);
                return Err(self.explain(error));
            }
        };
        if transfer.direction == Direction::In {
            let behind = self.after(self.tail, count - stages);
            self.lead_short_packets(self.after(self.tail, stages), behind);
        }
        let interrupt = match transfer.report {
            Report::Always => TOKEN::IOC::SET.value,
            Report::WithoutInterrupt | Report::Unexpected => 0,
        };
        let token = if count == 1 {
            first_token | interrupt
        } else {
            self.write(self.after(self.tail, count - 1), STATUS, last | interrupt);
            first_token
        };
        self.tail = self.after(self.tail, count);
        self.free -= count;
        self.write(self.tail, STATUS, 0);
        Ok(Prepared { span, token })
    }

    /// A transfer that finds an empty queue too small will never fit.
    fn explain(&self, error: HostError) -> HostError {
        match error {
            HostError::QueueFull if self.free + 1 == self.size => HostError::TooLong,
            other => other,
        }
    }

    /// Leads the controller from any data qTD of an IN transfer that ends short to what comes behind
    /// the data: the status stage, or the next transfer (`EHCI 1.0 §4.10.2`).
    fn lead_short_packets(&self, first: u16, behind: u16) {
        let address = self.address(behind);
        let mut position = first;
        while position != behind {
            self.write(position, ALTERNATE, address);
            position = self.after(position, 1);
        }
    }
}

/// Writes the qTDs of one transfer from a queue's `tail` on.
struct Writer<'q> {
    queue: &'q Queue,
    position: u16,
    count: u16,
    first_token: u32,
    last: u32,
}

impl<'q> Writer<'q> {
    fn new(queue: &'q Queue) -> Self {
        Self {
            queue,
            position: queue.tail,
            count: 0,
            first_token: 0,
            last: 0,
        }
    }

    /// Setup, data and status stages. Returns how many qTDs there are at each end of the data.
    fn control(
        &mut self,
        setup: &SetupPacket,
        transfer: &Transfer<'_>,
        max_packet: u32,
    ) -> Result<u16, HostError> {
        let bytes = setup.to_bytes();
        let memory = &self.queue.memory;
        let offset = Queue::offset(self.position) + SETUP;
        let [low, high] = [
            [bytes[0], bytes[1], bytes[2], bytes[3]],
            [bytes[4], bytes[5], bytes[6], bytes[7]],
        ]
        .map(u32::from_le_bytes);
        memory.write_words(offset, &[low, high]);
        let cut = Cut::single(memory.bus().offset(offset as u64), 8);
        self.put(TOKEN::PID::Setup.value, &cut)?;
        let status = if transfer.length() == 0 {
            Direction::In
        } else {
            self.data(transfer, max_packet, Some(1))?;
            transfer.direction.reversed()
        };
        let toggle = TOKEN::TOGGLE::SET.value;
        self.put(pid(status) | toggle, &Cut::EMPTY)?;
        Ok(1)
    }

    /// The data. `toggle` is that of the first packet where each qTD carries it (control), `None`
    /// where the overlay does.
    fn data(
        &mut self,
        transfer: &Transfer<'_>,
        max_packet: u32,
        mut toggle: Option<u32>,
    ) -> Result<(), HostError> {
        let segments = transfer.segments;
        let mut cursor = Cursor::START;
        loop {
            let cut = Cut::from(segments, cursor, max_packet).ok_or(HostError::Unsupported)?;
            let bit = TOKEN::TOGGLE.val(toggle.unwrap_or(0)).value;
            self.put(pid(transfer.direction) | bit, &cut)?;
            cursor = cut.next;
            if cursor.at_end(segments) {
                return Ok(());
            }
            // All packets of a qTD that is not the last are full.
            toggle = toggle.map(|bit| bit ^ ((cut.bytes / max_packet) & 1));
        }
    }

    /// Writes one qTD. It is active at once, unless it is the first, which nothing but it leads to
    /// the others.
    fn put(&mut self, token: u32, cut: &Cut) -> Result<(), HostError> {
        if self.count == self.queue.free {
            return Err(HostError::QueueFull);
        }
        let Queue { memory, wide, .. } = self.queue;
        let offset = Queue::offset(self.position);
        memory.write32(offset + ALTERNATE, LINK_END);
        for (index, page) in cut.pages.iter().take(cut.used).enumerate() {
            memory.write32(offset + PAGES + 4 * index, page.low());
            if *wide {
                memory.write32(offset + PAGES_HIGH + 4 * index, page.high());
            }
        }
        memory.write32(offset + PLANNED, cut.bytes);
        let token = token | ready(cut.bytes);
        if self.count == 0 {
            self.first_token = token;
        } else {
            memory.write32(offset + STATUS, token);
        }
        self.last = token;
        self.count += 1;
        self.position = self.queue.after(self.position, 1);
        Ok(())
    }
}

/// What every active token has.
fn ready(bytes: u32) -> u32 {
    (TOKEN::ACTIVE::SET + TOKEN::CERR.val(3) + TOKEN::BYTES.val(bytes)).value
}

fn pid(direction: Direction) -> u32 {
    match direction {
        Direction::In => TOKEN::PID::In.value,
        Direction::Out => TOKEN::PID::Out.value,
    }
}

/// The devices' address of the queue head in `memory`, for a schedule's pointer.
pub(super) fn link(memory: &Allocation) -> u32 {
    queue_head::link_to(memory.bus())
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
