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
    ALTERNATE, Cursor, LINK_END, NEXT, PAGE_COUNT, PAGES, PAGES_HIGH, PLANNED, SETUP, STATUS,
    STRIDE, TOKEN, Token, cut, surely_taken,
};
use crate::dma::{self, Allocation, Block, BusAddress};
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

    fn write(&self, position: u16, field: usize, value: u32) {
        self.memory.write32(Self::offset(position) + field, value);
    }

    #[inline]
    fn offset(position: u16) -> usize {
        queue_head::LENGTH + usize::from(position) * STRIDE
    }

    #[inline]
    fn write_token(&self, position: u16, token: u32) {
        if let Some(block) = self.memory.block::<STRIDE>(Self::offset(position)) {
            block.write32::<STATUS>(token);
        }
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
        self.write_token(prepared.span.first, prepared.token);
    }

    /// Takes back the qTDs of the oldest transfer, all of them inactive.
    #[inline]
    pub(super) fn give_back(&mut self, count: u16) {
        self.free += count;
    }

    /// Makes qTDs that the controller has passed over inactive.
    pub(super) fn wipe(&self, span: Span) {
        for index in 0..span.count {
            self.write_token(self.after(span.first, index), 0);
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
        let mut writer = Writer::new(self, transfer.report);
        let written = match transfer.setup {
            Some(setup) => writer.control(&setup, transfer, max_packet),
            None => writer.data(transfer, max_packet, DataToggle::Overlay),
        };
        let (count, token) = (writer.count, writer.first_token);
        let span = Span {
            first: self.tail,
            count,
        };
        if let Err(error) = written {
            self.wipe(span);
            return Err(self.explain(error));
        }
        self.tail = self.after(self.tail, count);
        self.free -= count;
        self.write_token(self.tail, 0);
        Ok(Prepared { span, token })
    }

    /// A transfer that finds an empty queue too small will never fit.
    fn explain(&self, error: HostError) -> HostError {
        match error {
            HostError::QueueFull if self.free + 1 == self.size => HostError::TooLong,
            other => other,
        }
    }
}

/// Where the toggle of a data packet comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DataToggle {
    /// From the queue head's overlay.
    Overlay,
    /// From each qTD (control); the first packet is DATA1.
    Descriptor,
}

/// Writes the qTDs of one transfer from a queue's `tail` on.
struct Writer<'q> {
    queue: &'q Queue,
    /// Where the next qTD goes.
    position: u16,
    /// How many were written.
    count: u16,
    first_token: u32,
    /// IOC, if the transfer's last qTD is to have it.
    interrupt: u32,
}

impl<'q> Writer<'q> {
    fn new(queue: &'q Queue, report: Report) -> Self {
        let interrupt = match report {
            Report::Always => TOKEN::IOC::SET.value,
            Report::WithoutInterrupt | Report::Unexpected => 0,
        };
        Self {
            queue,
            position: queue.tail,
            count: 0,
            first_token: 0,
            interrupt,
        }
    }

    /// Setup, data and status stages.
    #[cold]
    fn control(
        &mut self,
        setup: &SetupPacket,
        transfer: &Transfer<'_>,
        max_packet: u32,
    ) -> Result<(), HostError> {
        let interrupt = core::mem::take(&mut self.interrupt);
        let block = self.place()?;
        let [a, b, c, d, e, f, g, h] = setup.to_bytes();
        block.write_element::<SETUP, 2>(0, u32::from_le_bytes([a, b, c, d]));
        block.write_element::<SETUP, 2>(1, u32::from_le_bytes([e, f, g, h]));
        let data = u64::from(self.queue.address(self.position)) + SETUP as u64;
        self.write_page(block, 0, BusAddress::new(data));
        self.put(block, TOKEN::PID::Setup.value, 8, LINK_END);
        let mut status = Direction::In;
        if transfer.length() != 0 {
            self.data(transfer, max_packet, DataToggle::Descriptor)?;
            status = transfer.direction.reversed();
        }
        let block = self.place()?;
        let token = pid(status) | TOKEN::TOGGLE::SET.value | interrupt;
        self.put(block, token, 0, LINK_END);
        Ok(())
    }

    /// The data.
    ///
    /// A short packet leads the controller from any qTD of an IN transfer to what comes behind the
    /// data: the status stage, or the next transfer (`EHCI 1.0 §4.10.2`).
    #[inline]
    fn data(
        &mut self,
        transfer: &Transfer<'_>,
        max_packet: u32,
        toggle: DataToggle,
    ) -> Result<(), HostError> {
        let (first, packet) = (self.position, pid(transfer.direction));
        let mut cursor = Cursor::START;
        let mut bit = match toggle {
            DataToggle::Overlay => 0,
            DataToggle::Descriptor => TOKEN::TOGGLE::SET.value,
        };
        loop {
            let block = self.place()?;
            let reach = cut(transfer.segments, cursor, max_packet, |index, page| {
                self.write_page(block, index, page);
            })
            .ok_or(HostError::Unsupported)?;
            let behind = match transfer.direction {
                Direction::In => self.queue.address(self.queue.after(self.position, 1)),
                Direction::Out => LINK_END,
            };
            if reach.last {
                self.put(block, packet | bit | self.interrupt, reach.bytes, behind);
                self.lead_short_packets(first, behind);
                return Ok(());
            }
            self.put(block, packet | bit, reach.bytes, behind);
            cursor = reach.next;
            if toggle == DataToggle::Descriptor {
                // All packets of a qTD that is not the last are full.
                bit ^= ((reach.bytes / max_packet) & 1) << 31;
            }
        }
    }

    /// Corrects the alternate pointers of all qTDs from `first` on but the last, which has it.
    #[inline]
    fn lead_short_packets(&self, first: u16, behind: u32) {
        if behind == LINK_END {
            return;
        }
        let mut position = first;
        loop {
            let next = self.queue.after(position, 1);
            if next == self.position {
                return;
            }
            self.queue.write(position, ALTERNATE, behind);
            position = next;
        }
    }

    /// Where the next qTD goes, if there is room for one.
    #[inline(always)]
    fn place(&self) -> Result<Block<'q, STRIDE>, HostError> {
        if self.count == self.queue.free {
            return Err(HostError::QueueFull);
        }
        let offset = Queue::offset(self.position);
        self.queue.memory.block(offset).ok_or(HostError::QueueFull)
    }

    #[inline(always)]
    fn write_page(&self, block: Block<'_, STRIDE>, index: usize, page: BusAddress) {
        block.write_element::<PAGES, PAGE_COUNT>(index, page.low());
        if self.queue.wide {
            block.write_element::<PAGES_HIGH, PAGE_COUNT>(index, page.high());
        }
    }

    /// Completes a qTD. It is active at once, unless it is the first, which nothing but it leads to
    /// the others.
    #[inline(always)]
    fn put(&mut self, block: Block<'_, STRIDE>, token: u32, bytes: u32, alternate: u32) {
        block.write32::<ALTERNATE>(alternate);
        block.write32::<PLANNED>(bytes);
        let ready = TOKEN::ACTIVE::SET + TOKEN::CERR.val(3) + TOKEN::BYTES.val(bytes);
        let token = token | ready.value;
        if self.count == 0 {
            self.first_token = token;
        } else {
            block.write32::<STATUS>(token);
        }
        self.count += 1;
        self.position = self.queue.after(self.position, 1);
    }
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
