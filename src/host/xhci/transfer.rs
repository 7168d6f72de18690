//! Transfers in flight: queued, and matched to the events that end them.
//!
//! The fast path of the driver: [`TransferRing::submit`] when something is queued, and
//! [`TransferRing::take`] when an event came. A ring and its chain of records know nothing of slots
//! or commands; [`endpoint`](super::endpoint) does. What an event says is checked against the records:
//! the pointer must name a block of a transfer in flight, and a residue cannot exceed its block.
//! Read `xHCI 1.2 §3.2.9`, `§4.10` and `§4.11`.

use super::capability::Parameters;
use super::encode::{
    Form, LastWords, Units, Writer, blocks_per_transfer, completion_flags, count_blocks,
    fits_one_block, ring_blocks,
};
use super::records::{Chain, Records, TransferRecord};
use super::ring::ProducerRing;
use super::trb::{Trb, code};
use crate::dma::{Owner, Pool, Segment, release};
use crate::host::{
    EndpointConfig, EndpointKind, Handling, HostError, Outcome, Report, Token, Transfer,
    TransferEnd,
};

/// The ring of an endpoint, or of one stream of it, with its transfers in flight.
#[derive(Debug)]
pub(super) struct TransferRing {
    ring: ProducerRing,
    chain: Chain,
    form: Form,
    last_words: LastWords,
    /// The newest transfer, while it is kept from the controller.
    held: Option<Held>,
    /// Blocks that a transfer may have.
    per_transfer: u32,
    /// Where the controller stopped, if an event told.
    stopped_at: Option<u32>,
    /// How many of the oldest transfers ended before the ring was stopped.
    finished: usize,
    units: Units,
}

/// A block that the controller is not to see yet.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// The last block of the transfer that it waits for.
    behind: u32,
    index: u32,
    /// Its last word, without the cycle bit.
    control: u32,
}

/// What a transfer event meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// A transfer ended.
    Ended(TransferEnd),
    /// An older transfer's own event never came. The event at hand is still to be taken.
    Missed(TransferEnd),
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
            form: match config.kind {
                EndpointKind::Control => Form::Control,
                EndpointKind::Bulk | EndpointKind::Interrupt => Form::Plain,
            },
            last_words: LastWords::new(config.direction),
            held: None,
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

    /// Writes a transfer of one segment into the ring of an endpoint that is no control endpoint, if it
    /// fits one block and there is room for it before the ring's end, as most do. `false`: nothing was
    /// done, and [`TransferRing::submit`] finds out why.
    #[inline(always)]
    pub(super) fn submit_segment(
        &mut self,
        records: &mut Records<'_>,
        token: Token,
        segment: Segment,
        report: Report,
    ) -> bool {
        if !self.takes_block(segment) {
            return false;
        }
        let Some(index) = self.ring.take_next() else {
            return false;
        };
        let quiet = report == Report::Unexpected;
        let record = TransferRecord::new(token, segment.length(), index, 1, quiet);
        records.push(&mut self.chain, record);
        self.ring.put(index, segment, self.last_words.of(report));
        true
    }

    /// Writes a transfer of one segment into the ring of an endpoint that is no control endpoint, however
    /// many blocks it needs.
    #[inline]
    pub(super) fn submit_whole(
        &mut self,
        records: &mut Records<'_>,
        token: Token,
        segment: Segment,
        handling: Handling,
    ) -> Result<(), HostError> {
        if self.submit_segment(records, token, segment, handling.report) {
            return Ok(());
        }
        self.submit_otherwise(records, token, segment, handling)
    }

    #[cold]
    #[inline(never)]
    fn submit_otherwise(
        &mut self,
        records: &mut Records<'_>,
        token: Token,
        segment: Segment,
        handling: Handling,
    ) -> Result<(), HostError> {
        self.submit(records, &handling.of(token, &segment))
    }

    /// Whether a segment can be the only block of the next transfer, if there is a place for it.
    #[inline(always)]
    fn takes_block(&self, segment: Segment) -> bool {
        self.form == Form::Plain
            && self.held.is_none()
            && !self.chain.is_full()
            && fits_one_block(segment)
    }

    /// Writes a transfer of one segment behind the newest one, but keeps it from the controller until
    /// [`TransferRing::let_go`]. `false`: nothing was done.
    #[inline]
    pub(super) fn hold_segment(
        &mut self,
        records: &mut Records<'_>,
        token: Token,
        segment: Segment,
    ) -> bool {
        // The newest transfer ends right before the next block.
        let behind = self.ring.enqueue().checked_sub(1);
        let Some(behind) = behind.filter(|_| self.chain.count() != 0) else {
            return false;
        };
        if !self.takes_block(segment) {
            return false;
        }
        let index = self.ring.take(1);
        let record = TransferRecord::new(token, segment.length(), index, 1, false);
        records.push(&mut self.chain, record);
        let control = self.last_words.of(Report::Always);
        self.ring.hold(index, segment, control);
        self.held = Some(Held {
            behind,
            index,
            control,
        });
        true
    }

    /// The transfer whose last block is `at` has ended well: hands the one over that was held behind it.
    /// `true` if there was one: the doorbell is to be rung.
    #[inline(always)]
    pub(super) fn let_go(&mut self, at: u32) -> bool {
        match self.held {
            Some(held) if held.behind == at => {
                self.held = None;
                release();
                self.ring.hand_over(held.index, held.control);
                true
            }
            _ => false,
        }
    }

    /// The same where it is known that what has ended is all that was in front of it.
    pub(super) fn let_go_next(&mut self) -> bool {
        match self.held {
            Some(held) if self.chain.count() == 1 => self.let_go(held.behind),
            _ => false,
        }
    }

    /// The endpoint is to be stopped: no event lets go of what is held from here on, whose doorbell would
    /// start the endpoint again. So that the block is not taken for a new one in the next lap, it gets this
    /// lap's cycle bit.
    pub(super) fn forget_held(&mut self) {
        if let Some(held) = self.held.take() {
            release();
            self.ring.hand_over(held.index, held.control);
        }
    }

    /// Writes a transfer into the ring.
    #[inline(never)]
    pub(super) fn submit(
        &mut self,
        records: &mut Records<'_>,
        transfer: &Transfer<'_>,
    ) -> Result<(), HostError> {
        if self.chain.is_full() || self.held.is_some() {
            return Err(HostError::QueueFull);
        }
        let (length, form) = match transfer.setup {
            None => (transfer.length(), Form::Plain),
            Some(packet) => (u32::from(packet.length), Form::Control),
        };
        if form != self.form {
            return Err(HostError::Unsupported);
        }
        let count = count_blocks(transfer.segments, length, form)?;
        if count > self.per_transfer {
            return Err(HostError::TooLong);
        }
        let first = self.ring.take(count);
        let quiet = transfer.report == Report::Unexpected;
        let record = TransferRecord::new(transfer.token, length, first, count, quiet);
        records.push(&mut self.chain, record);
        if let (None, [segment], 1) = (transfer.setup, transfer.segments, count) {
            let control = self.last_words.of(transfer.report);
            self.ring.put(first, *segment, control);
            return Ok(());
        }
        let mut writer = Writer::new(&self.ring, self.units, first);
        let flags = completion_flags(transfer.report);
        match transfer.setup {
            None => writer.data(transfer, length, None, flags),
            Some(packet) => writer.control(transfer, packet, flags),
        }
        writer.finish();
        Ok(())
    }

    /// Takes the event of the oldest transfer if that has ended well, and tells all there is to know: writes
    /// it to `end`, and returns its last block. `None`: nothing was done, and [`TransferRing::take_quiet_ones`] or
    /// [`TransferRing::take`] finds out what it means.
    #[inline(always)]
    pub(super) fn take_end(
        &mut self,
        records: &mut Records<'_>,
        event: &Trb,
        end: &mut TransferEnd,
    ) -> Option<u32> {
        let oldest = records.oldest(&self.chain)?;
        let is_its_own = event.parameter == self.ring.bus_of(oldest.last).get();
        if !is_its_own || self.form != Form::Plain || !is_good(event.completion_code()) {
            return None;
        }
        // Where bytes are missing of a transfer of several blocks, they are to be counted.
        let residue = event.residue();
        if oldest.first != oldest.last && (residue != 0 || oldest.moved.is_some()) {
            return None;
        }
        let actual = oldest.length.saturating_sub(residue);
        *end = TransferEnd {
            token: oldest.token,
            actual,
            outcome: match actual < oldest.length {
                true => Outcome::Short,
                false => Outcome::Complete,
            },
        };
        let last = oldest.last;
        records.drop_oldest(&mut self.chain, 1);
        Some(last)
    }

    /// Drops the quiet transfers before one that has ended well, if nothing but such are before it: it is the
    /// oldest then. `false`: nothing was done.
    pub(super) fn take_quiet_ones(&mut self, records: &mut Records<'_>, event: &Trb) -> bool {
        let Some(at) = self.ring.index_of(event.parameter) else {
            return false;
        };
        if self.form != Form::Plain || !is_good(event.completion_code()) {
            return false;
        }
        let mut number = 0;
        while let Some(record) = records.get(&self.chain, number) {
            if record.last == at {
                records.drop_oldest(&mut self.chain, number);
                return number != 0;
            }
            if !record.quiet {
                break;
            }
            number += 1;
        }
        false
    }

    /// Takes any event of a transfer of this ring.
    #[inline(never)]
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
        let (mut older, mut all_quiet) = (0, true);
        let record = loop {
            let Some(record) = records.get(&self.chain, older) else {
                return Verdict::Stray;
            };
            if record.holds(at) {
                break record;
            }
            all_quiet &= record.quiet;
            older += 1;
        };
        if !all_quiet {
            return self.miss(records);
        }
        let verdict = conclude(&self.ring, self.form, record, at, event);
        if let Verdict::Ended(_) = verdict {
            // The quiet ones before it are done too.
            records.drop_oldest(&mut self.chain, older + 1);
        }
        verdict
    }

    /// Gives the oldest transfer up that was to be reported, and was not although a later one is.
    /// Rings are worked in order, so it has ended; nobody knows how.
    #[cold]
    fn miss(&mut self, records: &mut Records<'_>) -> Verdict {
        while let Some(record) = records.pop(&mut self.chain) {
            if !record.quiet {
                return Verdict::Missed(TransferEnd {
                    token: record.token,
                    outcome: Outcome::Other(code::INVALID),
                    actual: record.moved.unwrap_or(0),
                });
            }
        }
        Verdict::Stray
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
            code::STOPPED_LENGTH_INVALID => moved(&self.ring, self.form, record, at, u32::MAX),
            _ => moved(&self.ring, self.form, record, at, event.residue()),
        };
        record.moved = Some(count);
    }

    /// Forgets an earlier stop.
    pub(super) fn forget_stop(&mut self) {
        self.stopped_at = None;
        self.finished = 0;
    }

    /// Forgets an earlier stop, from which the transfers in flight have gone on.
    #[cfg(feature = "uas")]
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
    pub(super) fn drain(&mut self, records: &mut Records<'_>) -> Option<TransferEnd> {
        self.forget_held();
        loop {
            let record = records.pop(&mut self.chain)?;
            let has_finished = self.finished != 0;
            self.finished = self.finished.saturating_sub(1);
            if has_finished && record.quiet {
                continue;
            }
            let (outcome, actual) = match has_finished {
                true => (Outcome::Complete, record.moved.unwrap_or(record.length)),
                false => (Outcome::Cancelled, record.moved.unwrap_or(0)),
            };
            return Some(TransferEnd {
                token: record.token,
                outcome,
                actual,
            });
        }
    }

    /// Counts all transfers as done, if the newest is a quiet one. `false`: nothing was done.
    #[inline]
    pub(super) fn retire_all(&mut self) -> bool {
        self.chain.drop_quiet()
    }

    /// Counts all transfers up to the newest quiet one as done.
    pub(super) fn retire(&mut self, records: &mut Records<'_>) {
        let (mut number, mut done) = (0, 0);
        while let Some(record) = records.get(&self.chain, number) {
            number += 1;
            if record.quiet {
                done = number;
            }
        }
        records.drop_oldest(&mut self.chain, done);
    }

    /// Takes all transfers back without a word.
    pub(super) fn clear(&mut self, records: &mut Records<'_>) {
        while records.pop(&mut self.chain).is_some() {}
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
fn conclude(
    ring: &ProducerRing,
    form: Form,
    record: &mut TransferRecord,
    at: u32,
    event: &Trb,
) -> Verdict {
    let code = event.completion_code();
    let actual = if record.first == record.last {
        record.length.saturating_sub(event.residue())
    } else if at == record.last && code == code::SUCCESS && event.residue() == 0 {
        record.moved.unwrap_or(record.length)
    } else {
        moved(ring, form, record, at, event.residue())
    };
    if at != record.last && is_good(code) {
        if form == Form::Control {
            // A short data stage: the status stage follows, and is reported.
            record.moved = Some(actual);
            return Verdict::Noted;
        }
        if code == code::SUCCESS {
            return Verdict::Stray;
        }
    }
    Verdict::Ended(TransferEnd {
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
fn moved(ring: &ProducerRing, form: Form, record: &TransferRecord, at: u32, residue: u32) -> u32 {
    let data = match form {
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
#[path = "transfer_tests/mod.rs"]
mod tests;
