//! Transfers in flight: what the driver remembers of each, first in, first out for each ring.
//!
//! Called by [`transfer`](super::transfer) only. The records of all rings share one slice of the
//! caller's; a ring's part of it is reserved when its endpoint is opened, and used round and round.

use crate::host::Token;

/// One transfer in flight. The caller of the driver provides a slice of them, one for each transfer
/// that may be in flight at the same time, plus two for endpoint 0 of each device.
///
/// Of a power of two bytes, so that its place needs no multiplication.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct TransferRecord {
    pub(super) token: Token,
    /// Data bytes that were asked for.
    pub(super) length: u32,
    /// Data bytes that were moved, if an event has told so before the end.
    pub(super) moved: Option<u32>,
    /// First block in the ring.
    pub(super) first: u32,
    /// Last block in the ring.
    pub(super) last: u32,
    /// No event comes if it ends well.
    pub(super) quiet: bool,
    /// Belongs to a ring.
    pub(super) reserved: bool,
}

impl TransferRecord {
    /// An unused record.
    pub const EMPTY: Self = Self {
        token: Token(0),
        length: 0,
        moved: None,
        first: 0,
        last: 0,
        quiet: false,
        reserved: false,
    };

    /// A transfer of `length` bytes in `count` blocks from `first` on, which are not written yet.
    #[inline]
    pub(super) fn new(token: Token, length: u32, first: u32, count: u32, quiet: bool) -> Self {
        Self {
            token,
            length,
            moved: None,
            first,
            last: first + count - 1,
            quiet,
            reserved: true,
        }
    }

    /// Whether block `index` belongs to it.
    #[inline]
    pub(super) fn holds(&self, index: u32) -> bool {
        self.first <= index && index <= self.last
    }
}

/// The transfers of one ring, oldest first: a part of the slice, used round and round.
#[derive(Debug)]
pub(super) struct Chain {
    base: usize,
    end: usize,
    capacity: usize,
    /// Where the oldest one is, and where the next one will be.
    head: usize,
    tail: usize,
    count: usize,
    /// The newest one is quiet.
    ends_quietly: bool,
}

impl Chain {
    /// Transfers in the chain.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// No more transfers fit.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.count >= self.capacity
    }

    /// Drops all transfers, if the newest is a quiet one.
    #[inline]
    pub(super) fn drop_quiet(&mut self) -> bool {
        if self.ends_quietly {
            self.head = self.tail;
            self.count = 0;
        }
        self.ends_quietly
    }

    /// Where the `number`-th oldest transfer lies in the slice; `number` is at most `count`.
    #[inline]
    fn place(&self, number: usize) -> usize {
        let place = self.head + number;
        if place >= self.end {
            place - self.capacity
        } else {
            place
        }
    }
}

/// All records of a controller.
#[derive(Debug)]
pub(super) struct Records<'s> {
    all: &'s mut [TransferRecord],
}

impl<'s> Records<'s> {
    pub(super) fn new(all: &'s mut [TransferRecord]) -> Self {
        let mut records = Self { all };
        records.reset();
        records
    }

    /// How many there are.
    pub(super) fn capacity(&self) -> usize {
        self.all.len()
    }

    /// Takes all of them back.
    pub(super) fn reset(&mut self) {
        self.all.fill(TransferRecord::EMPTY);
    }

    /// Reserves `capacity` of them in a row for a ring, if there are so many.
    pub(super) fn reserve(&mut self, capacity: usize) -> Option<Chain> {
        let base = self
            .all
            .windows(capacity.max(1))
            .position(|part| part.iter().all(|record| !record.reserved))?;
        self.mark(base, capacity, true);
        Some(Chain {
            base,
            end: base + capacity,
            capacity,
            head: base,
            tail: base,
            count: 0,
            ends_quietly: false,
        })
    }

    /// Ends the reservation of an empty chain.
    pub(super) fn unreserve(&mut self, chain: Chain) {
        self.mark(chain.base, chain.capacity, false);
    }

    fn mark(&mut self, base: usize, count: usize, reserved: bool) {
        for record in self.all.iter_mut().skip(base).take(count) {
            record.reserved = reserved;
        }
    }

    /// Appends a transfer to a chain that is not full.
    #[inline]
    pub(super) fn push(&mut self, chain: &mut Chain, record: TransferRecord) {
        if let Some(slot) = self.all.get_mut(chain.tail) {
            chain.ends_quietly = record.quiet;
            *slot = record;
            chain.count += 1;
            chain.tail += 1;
            if chain.tail == chain.end {
                chain.tail = chain.base;
            }
        }
    }

    /// Takes the oldest transfer out of a chain.
    pub(super) fn pop(&mut self, chain: &mut Chain) -> Option<TransferRecord> {
        let record = *self.get(chain, 0)?;
        self.drop_oldest(chain, 1);
        Some(record)
    }

    /// Drops the `number` oldest transfers of a chain that has as many.
    #[inline]
    pub(super) fn drop_oldest(&mut self, chain: &mut Chain, number: usize) {
        chain.head = chain.place(number);
        chain.count -= number;
    }

    /// The oldest transfer of a chain.
    #[inline(always)]
    pub(super) fn oldest(&self, chain: &Chain) -> Option<&TransferRecord> {
        if chain.count == 0 {
            return None;
        }
        self.all.get(chain.head)
    }

    /// The `number`-th oldest transfer of a chain.
    #[inline]
    pub(super) fn get(&mut self, chain: &Chain, number: usize) -> Option<&mut TransferRecord> {
        if number >= chain.count {
            return None;
        }
        self.all.get_mut(chain.place(number))
    }

    /// Which transfer of a chain holds block `index`, by its age: the oldest is 0.
    pub(super) fn find(&mut self, chain: &Chain, index: u32) -> Option<usize> {
        (0..chain.count).find(|number| {
            let record = self.get(chain, *number);
            record.is_some_and(|record| record.holds(index))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(token: u32) -> TransferRecord {
        TransferRecord::new(Token(token), 0, 0, 1, false)
    }

    #[test]
    fn a_chain_gives_its_transfers_back_in_order_round_after_round() {
        let mut all = [TransferRecord::EMPTY; 5];
        let mut records = Records::new(&mut all);
        let mut other = records.reserve(2).unwrap();
        let mut chain = records.reserve(3).unwrap();
        records.push(&mut other, record(99));
        for token in 0..20 {
            records.push(&mut chain, record(token));
            records.push(&mut chain, record(token + 100));
            assert_eq!(records.get(&chain, 1).unwrap().token, Token(token + 100));
            assert_eq!(records.pop(&mut chain).unwrap().token, Token(token));
            assert_eq!(records.pop(&mut chain).unwrap().token, Token(token + 100));
            assert!(records.pop(&mut chain).is_none());
        }
        assert_eq!(records.pop(&mut other).unwrap().token, Token(99));
    }

    #[test]
    fn reservations_lie_in_a_row_and_come_back() {
        let mut all = [TransferRecord::EMPTY; 6];
        let mut records = Records::new(&mut all);
        let [first, second, third] = [2; 3].map(|count| records.reserve(count).unwrap());
        assert!(records.reserve(1).is_none());
        records.unreserve(first);
        records.unreserve(third);
        assert!(
            records.reserve(3).is_none(),
            "four are free, but not in a row"
        );
        records.unreserve(second);
        assert_eq!(records.reserve(6).unwrap().base, 0);
    }
}
