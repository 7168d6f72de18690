//! Transfers in flight: queued, and matched to the events that end them.
//!
//! The fast path of the driver: [`TransferRing::submit`] when something is queued, and
//! [`TransferRing::take`] when an event came. A ring and its chain of records know nothing of slots
//! or commands; [`endpoint`](super::endpoint) does. What an event says is checked against the records:
//! the pointer must name a block of a transfer in flight, and a residue cannot exceed its block.
//! Read `xHCI 1.2 §3.2.9`, `§4.10` and `§4.11`.

use super::capability::Parameters;
use super::encode::{
    Units, Writer, blocks_per_transfer, completion_flags, count_blocks, ring_blocks, single_block,
    whole,
};
use super::records::{Chain, Form, Records, TransferRecord};
use super::ring::{Place, ProducerRing};
use super::trb::{Trb, code};
use crate::dma::{Owner, Pool};
use crate::host::{EndpointConfig, HostError, Outcome, Report, Token, Transfer};

/// The ring of an endpoint, or of one stream of it, with its transfers in flight.
#[derive(Debug)]
pub(super) struct TransferRing {
    ring: ProducerRing,
    chain: Chain,
    /// Blocks that a transfer may have.
    per_transfer: u32,
    /// Where the controller stopped, if an event told.
    stopped_at: Option<u32>,
    /// How many of the oldest transfers ended before the ring was stopped.
    finished: usize,
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

impl TransferRing {
    /// Takes memory for the blocks of a ring, with records for its transfers in `chain`.
    pub(super) fn allocate(
        pool: &mut Pool<'_>,
        owner: Owner,
        config: &EndpointConfig,
        parameters: &Parameters,
        spare: usize,
        chain: Chain,
    ) -> Result<Self, (HostError, Chain)> {
        let ring = match allocate_ring(pool, owner, config, parameters, spare) {
            Ok(ring) => ring,
            Err(error) => return Err((error, chain)),
        };
        Ok(Self::new(ring, chain, config, parameters))
    }

    /// On a ring that is there, with records for its transfers in `chain`.
    pub(super) fn new(
        ring: ProducerRing,
        chain: Chain,
        config: &EndpointConfig,
        parameters: &Parameters,
    ) -> Self {
        let mut ring = Self {
            ring,
            chain,
            per_transfer: blocks_per_transfer(config) as u32,
            stopped_at: None,
            finished: 0,
            units: Units::Kibibytes,
        };
        if parameters.version >= 0x100 {
            ring.set_max_packet(config.max_packet);
        }
        ring
    }

    /// The packet size has changed.
    pub(super) fn set_max_packet(&mut self, bytes: u16) {
        self.units = Units::Packets(bytes.max(1));
    }

    /// The memory to be freed, and the records to be given back.
    pub(super) fn into_parts(self) -> (ProducerRing, Chain) {
        (self.ring, self.chain)
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
    #[inline(always)]
    pub(super) fn submit(
        &mut self,
        records: &mut Records<'_>,
        transfer: &Transfer<'_>,
    ) -> Result<(), HostError> {
        if self.chain.is_full() {
            return Err(HostError::QueueFull);
        }
        let Some(segment) = single_block(transfer) else {
            return self.submit_blocks(records, transfer);
        };
        let place = self.ring.reserve(1).ok_or(HostError::QueueFull)?;
        self.remember(records, transfer, place, 1, segment.length());
        let trb = whole(segment, transfer.direction, transfer.report);
        self.ring.put(place.first, &trb);
        Ok(())
    }

    /// A transfer of any number of blocks.
    #[inline(never)]
    fn submit_blocks(
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
        let place = self.ring.reserve(count).ok_or(HostError::QueueFull)?;
        self.remember(records, transfer, place, count, length);
        let mut writer = Writer::new(&self.ring, self.units, place.first);
        let flags = completion_flags(transfer.report);
        match transfer.setup {
            None => writer.data(transfer, length, None, flags),
            Some(packet) => writer.control(transfer, packet, flags),
        }
        writer.finish();
        Ok(())
    }

    #[inline(always)]
    fn remember(
        &mut self,
        records: &mut Records<'_>,
        transfer: &Transfer<'_>,
        place: Place,
        count: u32,
        length: u32,
    ) {
        let form = match transfer.setup {
            None => Form::Plain,
            Some(_) => Form::Control,
        };
        let quiet = transfer.report == Report::Unexpected;
        let record = TransferRecord {
            first: place.first,
            last: place.first + count - 1,
            blocks: place.blocks,
            ..TransferRecord::new(transfer.token, length, form, quiet)
        };
        records.push(&mut self.chain, record);
    }

    /// Takes a transfer event of this ring.
    #[inline]
    pub(super) fn take(&mut self, records: &mut Records<'_>, event: &Trb) -> Verdict {
        let code = event.completion_code();
        let Some(at) = self.ring.index_of(event.parameter) else {
            // A ring that was stopped while idle may be reported without a block.
            return if is_stop(code) {
                Verdict::Noted
            } else {
                Verdict::Stray
            };
        };
        if is_stop(code) {
            self.note_stop(records, at, event);
            return Verdict::Noted;
        }
        // Almost always the oldest one, or the next behind a quiet one.
        let (mut older, mut blocks, mut all_quiet) = (0, 0, true);
        let record = loop {
            let Some(record) = records.get(&self.chain, older) else {
                return Verdict::Stray;
            };
            blocks += record.blocks;
            if record.holds(at) {
                break record;
            }
            all_quiet &= record.quiet;
            older += 1;
        };
        if !all_quiet {
            return self.miss(records);
        }
        let verdict = conclude(&self.ring, record, at, event);
        if let Verdict::Ended(_) = verdict {
            // The quiet ones before it are done too.
            records.drop_oldest(&mut self.chain, older + 1);
            self.ring.give_back(blocks);
        }
        verdict
    }

    /// Gives the oldest transfer up that was to be reported, and was not although a later one is.
    /// Rings are worked in order, so it has ended; nobody knows how.
    #[cold]
    fn miss(&mut self, records: &mut Records<'_>) -> Verdict {
        while let Some(record) = self.pop(records) {
            if !record.quiet {
                return Verdict::Missed(Ended {
                    token: record.token,
                    outcome: Outcome::Other(code::INVALID),
                    actual: record.moved.unwrap_or(0),
                });
            }
        }
        Verdict::Stray
    }

    /// Takes the oldest transfer out.
    fn pop(&mut self, records: &mut Records<'_>) -> Option<TransferRecord> {
        let record = records.pop(&mut self.chain)?;
        self.ring.give_back(record.blocks);
        Some(record)
    }

    /// Remembers where the controller stopped, and how far it had come there.
    #[cold]
    fn note_stop(&mut self, records: &mut Records<'_>, at: u32, event: &Trb) {
        self.stopped_at = Some(at);
        let number = records.find(&self.chain, at);
        let Some(record) = number.and_then(|number| records.get(&self.chain, number)) else {
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

    /// Forgets an earlier stop, from which the transfers in flight have gone on.
    pub(super) fn forget_progress(&mut self, records: &mut Records<'_>) {
        self.forget_stop();
        for number in 0..self.chain.count() {
            if let Some(record) = records.get(&self.chain, number) {
                record.moved = None;
            }
        }
    }

    /// The controller has stopped, where an event told or else at `position`: finds out which
    /// transfers had ended before.
    pub(super) fn settle_stop(&mut self, records: &mut Records<'_>, position: u64) {
        let Some(at) = self.stopped_at.or(self.ring.index_of(position)) else {
            return;
        };
        self.finished = match records.find(&self.chain, at) {
            Some(before) => before,
            None if at == self.ring.enqueue() => self.chain.count(),
            None => 0,
        };
    }

    /// Takes the oldest transfer back. A quiet one that has ended well is not told of here either.
    pub(super) fn drain(&mut self, records: &mut Records<'_>) -> Option<Ended> {
        loop {
            let record = self.pop(records)?;
            let has_finished = self.finished != 0;
            self.finished = self.finished.saturating_sub(1);
            if has_finished && record.quiet {
                continue;
            }
            let (outcome, actual) = match has_finished {
                true => (Outcome::Complete, record.moved.unwrap_or(record.length)),
                false => (Outcome::Cancelled, record.moved.unwrap_or(0)),
            };
            return Some(Ended {
                token: record.token,
                outcome,
                actual,
            });
        }
    }

    /// Counts all transfers up to the newest quiet one as done.
    pub(super) fn retire(&mut self, records: &mut Records<'_>) {
        let (mut number, mut blocks) = (0, 0);
        let mut done = (0, 0);
        while let Some(record) = records.get(&self.chain, number) {
            number += 1;
            blocks += record.blocks;
            if record.quiet {
                done = (number, blocks);
            }
        }
        records.drop_oldest(&mut self.chain, done.0);
        self.ring.give_back(done.1);
    }

    /// Takes all transfers back without a word.
    pub(super) fn clear(&mut self, records: &mut Records<'_>) {
        while self.pop(records).is_some() {}
    }
}

fn allocate_ring(
    pool: &mut Pool<'_>,
    owner: Owner,
    config: &EndpointConfig,
    parameters: &Parameters,
    spare: usize,
) -> Result<ProducerRing, HostError> {
    let blocks = ring_blocks(config).ok_or(HostError::Resources)?;
    let ring = ProducerRing::allocate(pool, owner, blocks, spare)?;
    if !ring.bus().reachable(ring.length(), parameters.address_mask) {
        pool.free(ring.into_memory());
        return Err(HostError::Unsupported);
    }
    Ok(ring)
}

/// Whether a code tells of a stopped ring.
#[inline]
pub(super) fn is_stop(code: u8) -> bool {
    (code::STOPPED..=code::STOPPED_SHORT_PACKET).contains(&code)
}

/// Whether a transfer went well.
#[inline]
fn is_good(code: u8) -> bool {
    code == code::SUCCESS || code == code::SHORT_PACKET
}

/// What an event for block `at` of a transfer means.
#[inline]
fn conclude(ring: &ProducerRing, record: &mut TransferRecord, at: u32, event: &Trb) -> Verdict {
    let code = event.completion_code();
    let actual = if record.first == record.last {
        record.length.saturating_sub(event.residue())
    } else if at == record.last && code == code::SUCCESS && event.residue() == 0 {
        record.moved.unwrap_or(record.length)
    } else {
        moved(ring, record, at, event.residue())
    };
    if at != record.last && is_good(code) {
        if record.form == Form::Control {
            // A short data stage: the status stage follows, and is reported.
            record.moved = Some(actual);
            return Verdict::Noted;
        }
        if code == code::SUCCESS {
            return Verdict::Stray;
        }
    }
    Verdict::Ended(Ended {
        token: record.token,
        outcome: if !is_good(code) {
            failure(code)
        } else if actual < record.length {
            Outcome::Short
        } else {
            Outcome::Complete
        },
        actual,
    })
}

/// Data bytes that a transfer had moved when block `at` ended with `residue` bytes to go.
#[inline(never)]
fn moved(ring: &ProducerRing, record: &TransferRecord, at: u32, residue: u32) -> u32 {
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

/// What a completion code that is not good means for a transfer (`xHCI 1.2 table 6-90`).
#[cold]
fn failure(code: u8) -> Outcome {
    match code {
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
