//! Transfers in flight: queued, and matched to the events that end them.
//!
//! The fast path of the driver: [`TransferRing::submit`] when something is queued, and
//! [`TransferRing::take`] when an event came. A ring and its chain of records know nothing of slots
//! or commands; [`endpoint`](super::endpoint) does. What an event says is checked against the records:
//! the pointer must name a block of a transfer in flight, and a residue cannot exceed its block.
//! Read `xHCI 1.2 §3.2.9`, `§4.10` and `§4.11`.

use super::capability::Parameters;
use super::encode::{Units, Writer, completion_flags, count_blocks};
use super::records::{Chain, Form, Records, TransferRecord};
use super::ring::{MAX_BLOCKS, ProducerRing};
use super::trb::{Trb, code};
use crate::dma::{Owner, Pool};
use crate::host::{EndpointConfig, EndpointKind, HostError, Outcome, Report, Token, Transfer};

/// The fewest blocks of a ring. Policy.
const MIN_BLOCKS: usize = 16;

/// The ring of an endpoint, or of one stream of it, with its transfers in flight.
#[derive(Debug)]
pub(super) struct TransferRing {
    ring: ProducerRing,
    chain: Chain,
    /// Transfers that may be in flight.
    capacity: u16,
    /// Blocks that a transfer may have.
    per_transfer: u16,
    /// Where the controller stopped, if an event told.
    stopped_at: Option<u16>,
    /// How many of the oldest transfers ended before the ring was stopped.
    finished: u16,
    units: Units,
}

/// How a transfer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ended {
    pub(super) token: Token,
    pub(super) outcome: Outcome,
    pub(super) actual: u32,
}

/// What a transfer event meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// A transfer ended.
    Ended(Ended),
    /// An older transfer's own event never came. The event at hand is still to be taken.
    Missed(Ended),
    /// Something to remember, nothing to report.
    Noted,
    /// No transfer in flight fits it.
    Stray,
}

/// Blocks that a transfer of an endpoint may have: one for each 64 KiB, one more at each end of an
/// unaligned buffer, and one for each of two bounced ends.
fn blocks_per_transfer(config: &EndpointConfig) -> usize {
    let stages = match config.kind {
        EndpointKind::Control => 2,
        EndpointKind::Bulk | EndpointKind::Interrupt => 0,
    };
    (config.longest >> 16) as usize + 4 + stages
}

/// Blocks of a ring for `config.transfers` of the longest transfers: besides theirs, those that
/// are left out before an early link, the link, and the one that stays free. `None`: too many.
pub(super) fn ring_blocks(config: &EndpointConfig) -> Option<u16> {
    let per_transfer = blocks_per_transfer(config);
    let blocks = (usize::from(config.transfers) + 1) * per_transfer + 2;
    let blocks = blocks.max(MIN_BLOCKS).next_multiple_of(8);
    (blocks <= MAX_BLOCKS).then_some(blocks as u16)
}

impl TransferRing {
    pub(super) fn allocate(
        pool: &mut Pool<'_>,
        owner: Owner,
        config: &EndpointConfig,
        parameters: &Parameters,
        spare: usize,
    ) -> Result<Self, HostError> {
        let blocks = ring_blocks(config).ok_or(HostError::Resources)?;
        let ring = ProducerRing::allocate(pool, owner, blocks, spare)?;
        if !ring.bus().reachable(ring.length(), parameters.address_mask) {
            pool.free(ring.into_memory());
            return Err(HostError::Unsupported);
        }
        let mut ring = Self {
            ring,
            chain: Chain::EMPTY,
            capacity: u16::from(config.transfers),
            per_transfer: blocks_per_transfer(config) as u16,
            stopped_at: None,
            finished: 0,
            units: Units::Kibibytes,
        };
        if parameters.version >= 0x100 {
            ring.set_max_packet(config.max_packet);
        }
        Ok(ring)
    }

    /// The packet size has changed.
    pub(super) fn set_max_packet(&mut self, bytes: u16) {
        self.units = Units::Packets(bytes.max(1));
    }

    /// The memory, to be freed.
    pub(super) fn into_ring(self) -> ProducerRing {
        self.ring
    }

    /// Transfers that may be in flight.
    pub(super) fn capacity(&self) -> u16 {
        self.capacity
    }

    /// Whether nothing is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.chain.count() == 0
    }

    /// Where the controller is to begin, with the cycle state.
    pub(super) fn start_pointer(&mut self) -> u64 {
        self.ring.start_pointer()
    }

    /// Writes a transfer into the ring.
    pub(super) fn submit(
        &mut self,
        records: &mut Records<'_>,
        transfer: &Transfer<'_>,
    ) -> Result<(), HostError> {
        let (length, form) = match transfer.setup {
            None => (transfer.length(), Form::Plain),
            Some(packet) => (u32::from(packet.length), Form::Control),
        };
        let count = count_blocks(transfer.segments, length, form)?;
        if count > self.per_transfer {
            return Err(HostError::TooLong);
        }
        if self.chain.count() >= self.capacity {
            return Err(HostError::QueueFull);
        }
        let oldest = records.head(&self.chain).map(|record| record.needed);
        let place = self
            .ring
            .reserve(count, oldest)
            .ok_or(HostError::QueueFull)?;
        let record = TransferRecord {
            token: transfer.token,
            length,
            needed: place.needed,
            first: place.first,
            last: place.first + count - 1,
            form,
            quiet: transfer.report == Report::Unexpected,
            ..TransferRecord::EMPTY
        };
        if !records.push(&mut self.chain, record) {
            return Err(HostError::QueueFull);
        }
        let mut writer = Writer::new(&self.ring, self.units, place.first);
        let flags = completion_flags(transfer.report);
        match transfer.setup {
            None => writer.data(transfer, length, None, flags),
            Some(packet) => writer.control(transfer, packet, flags),
        }
        writer.finish();
        self.ring.advance(count);
        Ok(())
    }

    /// Takes a transfer event of this ring.
    #[inline]
    pub(super) fn take(&mut self, records: &mut Records<'_>, event: &Trb) -> Verdict {
        let code = event.completion_code();
        let stopped = matches!(
            code,
            code::STOPPED | code::STOPPED_LENGTH_INVALID | code::STOPPED_SHORT_PACKET
        );
        // A ring that was stopped while idle may be reported without a block (field: null).
        let Some(at) = self.ring.index_of(event.parameter) else {
            return if stopped {
                Verdict::Noted
            } else {
                Verdict::Stray
            };
        };
        if stopped {
            self.note_stop(records, at, event);
            return Verdict::Noted;
        }
        match records.head(&self.chain) {
            Some(head) if head.holds(at) => {}
            _ => match self.pass_to(records, at) {
                None => {}
                Some(verdict) => return verdict,
            },
        }
        self.end(records, at, event)
    }

    /// Passes over the transfers before the one with block `at`: the quiet ones are done. `None`
    /// when the one with the block is the oldest.
    fn pass_to(&mut self, records: &mut Records<'_>, at: u16) -> Option<Verdict> {
        if records.find(&self.chain, at).is_none() {
            return Some(Verdict::Stray);
        }
        while records
            .head(&self.chain)
            .is_some_and(|head| !head.holds(at))
        {
            let passed = records.pop(&mut self.chain)?;
            if !passed.quiet {
                // Rings are worked in order, so it has ended; nobody knows how.
                return Some(Verdict::Missed(Ended {
                    token: passed.token,
                    outcome: Outcome::Other(code::INVALID),
                    actual: passed.moved.unwrap_or(0),
                }));
            }
        }
        None
    }

    /// Takes an event for block `at` of the oldest transfer.
    #[inline]
    fn end(&mut self, records: &mut Records<'_>, at: u16, event: &Trb) -> Verdict {
        let code = event.completion_code();
        let Some(record) = records.head(&self.chain) else {
            return Verdict::Stray;
        };
        let is_last = at == record.last;
        let good = matches!(code, code::SUCCESS | code::SHORT_PACKET);
        let actual = if is_last && code == code::SUCCESS && event.residue() == 0 {
            record.moved.unwrap_or(record.length)
        } else {
            moved(&self.ring, record, at, event.residue())
        };
        if good && !is_last && record.form == Form::Control {
            // A short data stage: the status stage follows, and is reported.
            record.moved = Some(actual);
            return Verdict::Noted;
        }
        if code == code::SUCCESS && !is_last {
            return Verdict::Stray;
        }
        let ended = Ended {
            token: record.token,
            outcome: match outcome(code) {
                Outcome::Complete if actual < record.length => Outcome::Short,
                outcome => outcome,
            },
            actual,
        };
        records.pop(&mut self.chain);
        Verdict::Ended(ended)
    }

    /// Remembers where the controller stopped, and how far it had come there.
    fn note_stop(&mut self, records: &mut Records<'_>, at: u16, event: &Trb) {
        self.stopped_at = Some(at);
        let Some(record) = records.find(&self.chain, at) else {
            return;
        };
        let count = match event.completion_code() {
            // The length is that of the whole transfer (`xHCI 1.2 §4.6.9`, EDTLA).
            code::STOPPED_SHORT_PACKET => event.residue().min(record.length),
            code::STOPPED_LENGTH_INVALID => moved(&self.ring, record, at, u32::MAX),
            _ => moved(&self.ring, record, at, event.residue()),
        };
        record.moved = Some(count);
    }

    /// Forgets an earlier stop.
    pub(super) fn forget_stop(&mut self) {
        self.stopped_at = None;
        self.finished = 0;
    }

    /// The controller has stopped, where an event told or else at `position`: finds out which
    /// transfers had ended before.
    pub(super) fn settle_stop(&mut self, records: &Records<'_>, position: u64) {
        let Some(at) = self.stopped_at.or(self.ring.index_of(position)) else {
            return;
        };
        let before = records
            .iter(&self.chain)
            .take_while(|record| !record.holds(at))
            .count() as u16;
        let held = before < self.chain.count();
        if held || at == self.ring.enqueue() {
            self.finished = before;
        }
    }

    /// Takes the oldest transfer back.
    pub(super) fn drain(&mut self, records: &mut Records<'_>) -> Option<Ended> {
        let record = records.pop(&mut self.chain)?;
        let (outcome, actual) = if self.finished != 0 {
            self.finished -= 1;
            (Outcome::Complete, record.moved.unwrap_or(record.length))
        } else {
            (Outcome::Cancelled, record.moved.unwrap_or(0))
        };
        Some(Ended {
            token: record.token,
            outcome,
            actual,
        })
    }

    /// Counts all transfers up to the newest quiet one as done.
    pub(super) fn retire(&mut self, records: &mut Records<'_>) {
        let mut done = 0;
        for (index, record) in records.iter(&self.chain).enumerate() {
            if record.quiet {
                done = index + 1;
            }
        }
        for _ in 0..done {
            records.pop(&mut self.chain);
        }
    }

    /// Takes all transfers back without a word.
    pub(super) fn clear(&mut self, records: &mut Records<'_>) {
        while records.pop(&mut self.chain).is_some() {}
    }
}

/// Data bytes that a transfer had moved when block `at` ended with `residue` bytes to go.
fn moved(ring: &ProducerRing, record: &TransferRecord, at: u16, residue: u32) -> u32 {
    let data = match record.form {
        Form::Plain => record.first,
        Form::Control if at == record.first => return 0,
        Form::Control if at == record.last => return record.moved.unwrap_or(record.length),
        Form::Control => record.first + 1,
    };
    let before: u32 = (data..at).map(|index| ring.block_length(index)).sum();
    let here = ring.block_length(at).saturating_sub(residue);
    (before + here).min(record.length)
}

/// What a completion code means for a transfer (`xHCI 1.2 table 6-90`).
fn outcome(code: u8) -> Outcome {
    match code {
        code::SUCCESS | code::SHORT_PACKET => Outcome::Complete,
        code::STALL => Outcome::Stall,
        code::BABBLE => Outcome::Babble,
        code::TRANSACTION => Outcome::TransactionError,
        code::SPLIT => Outcome::SplitError,
        code::DATA_BUFFER => Outcome::HostOverrun,
        other => Outcome::Other(other),
    }
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
