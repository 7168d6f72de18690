//! How a transfer becomes qTDs, behind those that the controller may be at work on.
//!
//! Called by [`endpoint`](super::endpoint) for each transfer. What is written here the controller
//! cannot see until the first token of the transfer is written, by [`Queue::activate`]; a transfer that
//! does not fit leaves nothing behind. `EHCI 1.0 §4.10`.

use super::queue::{Prepared, Queue, Span};
use super::transfer_descriptor::{
    ALTERNATE, Cursor, LINK_END, MOST, PAGE, PAGE_COUNT, PAGES, PAGES_HIGH, PLANNED, SETUP, STATUS,
    STRIDE, TOKEN, cut,
};
use crate::dma::{Block, BusAddress, Segment};
use crate::host::{HostError, Report, Transfer};
use crate::usb::setup::{Direction, SetupPacket};

impl Queue {
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
        if let ([piece], None) = (transfer.segments, transfer.setup)
            && let Some(prepared) = self.prepare_one(transfer.direction, transfer.report, piece)
        {
            return Ok(prepared);
        }
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
        written.map_err(|error| self.explain(error))?;
        self.tail = self.after(self.tail, count);
        self.free -= count;
        self.write_token(self.tail, 0);
        Ok(Prepared { span, token })
    }

    /// The same for one piece of memory that fits one qTD, as most do. `None` if it does not, or if
    /// there is no room; then nothing was changed.
    #[inline]
    pub(super) fn prepare_one(
        &mut self,
        direction: Direction,
        report: Report,
        piece: &Segment,
    ) -> Option<Prepared> {
        let (bus, bytes) = (piece.bus(), piece.length());
        let offset = bus.low() % PAGE;
        if self.free == 0 || bytes > MOST - offset {
            return None;
        }
        let first = self.tail;
        let row = self.row;
        let block = row.get(Self::place(first))?;
        write_page(block, self.wide, 0, bus);
        let mut at = PAGE - offset;
        let mut index = 1;
        while at < bytes {
            write_page(block, self.wide, index, bus.offset(at.into()));
            at += PAGE;
            index += 1;
        }
        self.tail = self.after(first, 1);
        self.free -= 1;
        block.write32::<ALTERNATE>(LINK_END);
        block.write32::<PLANNED>(bytes);
        self.write_token(self.tail, 0);
        Some(Prepared {
            span: Span { first, count: 1 },
            token: pid(direction) | interrupt(report) | ready(bytes),
        })
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
        Self {
            queue,
            position: queue.tail,
            count: 0,
            first_token: 0,
            interrupt: interrupt(report),
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
        let offset = Queue::offset(self.position) + SETUP;
        let data = self.queue.memory.bus().offset(offset as u64);
        write_page(block, self.queue.wide, 0, data);
        self.put(block, TOKEN::PID::Setup.value, 8);
        let mut status = Direction::In;
        if transfer.length() != 0 {
            self.data(transfer, max_packet, DataToggle::Descriptor)?;
            status = transfer.direction.reversed();
        }
        let block = self.place()?;
        let token = pid(status) | TOKEN::TOGGLE::SET.value | interrupt;
        self.put(block, token, 0);
        Ok(())
    }

    /// The data.
    ///
    /// A short packet leads the controller from any qTD of an IN transfer to what comes behind the
    /// data: the status stage, or the next transfer (`EHCI 1.0 §4.10.2`). From the last one the next
    /// pointer leads there.
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
                write_page(block, self.queue.wide, index, page);
            })
            .ok_or(HostError::Unsupported)?;
            if reach.last {
                self.put(block, packet | bit | self.interrupt, reach.bytes);
                if transfer.direction == Direction::In {
                    self.lead_short_packets(first);
                }
                return Ok(());
            }
            self.put(block, packet | bit, reach.bytes);
            cursor = reach.next;
            if toggle == DataToggle::Descriptor {
                // All packets of a qTD that is not the last are full.
                bit ^= ((reach.bytes / max_packet) & 1) << 31;
            }
        }
    }

    /// Points the alternate pointers of all qTDs from `first` on but the last to what comes next.
    #[inline]
    fn lead_short_packets(&self, first: u16) {
        let behind = self.queue.address(self.position);
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
    #[inline]
    fn place(&self) -> Result<Block<'q, STRIDE>, HostError> {
        if self.count == self.queue.free {
            return Err(HostError::QueueFull);
        }
        self.queue
            .descriptor(self.position)
            .ok_or(HostError::QueueFull)
    }

    /// Completes a qTD. It is active at once, unless it is the first, which nothing but it leads to
    /// the others.
    #[inline]
    fn put(&mut self, block: Block<'_, STRIDE>, token: u32, bytes: u32) {
        block.write32::<ALTERNATE>(LINK_END);
        block.write32::<PLANNED>(bytes);
        let token = token | ready(bytes);
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

/// IOC, where a transfer's end is to interrupt.
fn interrupt(report: Report) -> u32 {
    match report {
        Report::Always => TOKEN::IOC::SET.value,
        Report::WithoutInterrupt | Report::Unexpected => 0,
    }
}

/// What every active token has.
fn ready(bytes: u32) -> u32 {
    (TOKEN::ACTIVE::SET + TOKEN::CERR.val(3) + TOKEN::BYTES.val(bytes)).value
}

#[inline(always)]
fn write_page(block: Block<'_, STRIDE>, wide: bool, index: usize, page: BusAddress) {
    block.write_element::<PAGES, PAGE_COUNT>(index, page.low());
    if wide {
        block.write_element::<PAGES_HIGH, PAGE_COUNT>(index, page.high());
    }
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
