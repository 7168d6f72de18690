//! Transfers in flight: what the driver remembers of each, first in, first out for each ring.
//!
//! Called by [`transfer`](super::transfer) only. The records of all rings share one slice of the
//! caller's; they are chained by index, because rings come and go and the slice must not be cut up.
//! How many a ring may hold is reserved when its endpoint is opened.

use crate::host::Token;

/// No record: the end of a chain.
const NONE: u16 = u16::MAX;

/// How a transfer is laid out in its ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// Normal blocks only.
    Plain,
    /// A setup block first and a status block last.
    Control,
}

/// One transfer in flight. The caller of the driver provides a slice of them, one for each transfer
/// that may be in flight at the same time, plus two for endpoint 0 of each device.
#[derive(Clone, Copy, Debug)]
pub struct TransferRecord {
    pub(super) token: Token,
    /// Data bytes that were asked for.
    pub(super) length: u32,
    /// Data bytes that were moved, if an event has told so before the end.
    pub(super) moved: Option<u32>,
    /// The first block that the controller needs: `first`, or the link before it.
    pub(super) needed: u16,
    /// First block in the ring.
    pub(super) first: u16,
    /// Last block in the ring.
    pub(super) last: u16,
    pub(super) form: Form,
    /// No event comes if it ends well.
    pub(super) quiet: bool,
    /// The next younger one in its chain.
    pub(super) next: u16,
}

impl TransferRecord {
    /// An unused record.
    pub const EMPTY: Self = Self {
        token: Token(0),
        length: 0,
        moved: None,
        needed: 0,
        first: 0,
        last: 0,
        form: Form::Plain,
        quiet: false,
        next: NONE,
    };

    /// Whether block `index` belongs to it.
    #[inline]
    pub(super) fn holds(&self, index: u16) -> bool {
        self.first <= index && index <= self.last
    }
}

/// The chain of one ring, oldest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    head: u16,
    tail: u16,
    count: u16,
}

impl Chain {
    pub(super) const EMPTY: Self = Self {
        head: NONE,
        tail: NONE,
        count: 0,
    };

    /// Transfers in the chain.
    #[inline]
    pub(super) fn count(&self) -> u16 {
        self.count
    }
}

/// All records of a controller.
#[derive(Debug)]
pub(super) struct Records<'s> {
    all: &'s mut [TransferRecord],
    free: Chain,
    /// How many the open endpoints may hold.
    reserved: usize,
}

impl<'s> Records<'s> {
    pub(super) fn new(all: &'s mut [TransferRecord]) -> Self {
        let mut records = Self {
            all,
            free: Chain::EMPTY,
            reserved: 0,
        };
        records.reset();
        records
    }

    /// How many there are.
    pub(super) fn capacity(&self) -> usize {
        self.all.len().min(usize::from(NONE))
    }

    /// Takes all of them back.
    pub(super) fn reset(&mut self) {
        self.free = Chain::EMPTY;
        self.reserved = 0;
        for index in 0..self.capacity() as u16 {
            self.append(ChainOf::Free, index);
        }
    }

    /// Reserves `count` of them for an endpoint. Returns whether there are so many.
    pub(super) fn reserve(&mut self, count: u16) -> bool {
        let wanted = self.reserved + usize::from(count);
        let fits = wanted <= self.capacity();
        if fits {
            self.reserved = wanted;
        }
        fits
    }

    /// Ends a reservation.
    pub(super) fn unreserve(&mut self, count: u16) {
        self.reserved = self.reserved.saturating_sub(usize::from(count));
    }

    /// Appends a transfer to a chain. Returns whether a record was free.
    #[inline]
    pub(super) fn push(&mut self, chain: &mut Chain, record: TransferRecord) -> bool {
        let index = self.free.head;
        let Some(slot) = self.all.get_mut(usize::from(index)) else {
            return false;
        };
        self.free.head = slot.next;
        self.free.count -= 1;
        *slot = TransferRecord {
            next: NONE,
            ..record
        };
        self.append(ChainOf::Ring(chain), index);
        true
    }

    /// Takes the oldest transfer out of a chain.
    #[inline]
    pub(super) fn pop(&mut self, chain: &mut Chain) -> Option<TransferRecord> {
        let index = chain.head;
        let record = *self.all.get(usize::from(index))?;
        chain.head = record.next;
        chain.count -= 1;
        self.append(ChainOf::Free, index);
        Some(record)
    }

    /// The oldest transfer of a chain.
    #[inline]
    pub(super) fn head(&mut self, chain: &Chain) -> Option<&mut TransferRecord> {
        self.all.get_mut(usize::from(chain.head))
    }

    /// The transfers of a chain, oldest first.
    pub(super) fn iter<'r>(&'r self, chain: &Chain) -> impl Iterator<Item = &'r TransferRecord> {
        let mut next = chain.head;
        core::iter::from_fn(move || {
            let record = self.all.get(usize::from(next))?;
            next = record.next;
            Some(record)
        })
        .take(usize::from(chain.count))
    }

    /// The transfer of a chain that holds block `index`.
    pub(super) fn find(&mut self, chain: &Chain, index: u16) -> Option<&mut TransferRecord> {
        let mut next = chain.head;
        for _ in 0..chain.count {
            let record = self.all.get(usize::from(next))?;
            if record.holds(index) {
                return self.all.get_mut(usize::from(next));
            }
            next = record.next;
        }
        None
    }

    #[inline]
    fn append(&mut self, which: ChainOf<'_>, index: u16) {
        let chain = match which {
            ChainOf::Free => &mut self.free,
            ChainOf::Ring(chain) => chain,
        };
        if let Some(record) = self.all.get_mut(usize::from(index)) {
            record.next = NONE;
        }
        if chain.count == 0 {
            chain.head = index;
        } else if let Some(last) = self.all.get_mut(usize::from(chain.tail)) {
            last.next = index;
        }
        chain.tail = index;
        chain.count += 1;
    }
}

/// Where [`Records::append`] appends.
enum ChainOf<'c> {
    Free,
    Ring(&'c mut Chain),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(token: u32) -> TransferRecord {
        TransferRecord {
            token: Token(token),
            ..TransferRecord::EMPTY
        }
    }

    #[test]
    fn chains_share_the_records_and_keep_their_order() {
        let mut all = [TransferRecord::EMPTY; 3];
        let mut records = Records::new(&mut all);
        let (mut one, mut two) = (Chain::EMPTY, Chain::EMPTY);
        assert!(records.push(&mut one, record(1)));
        assert!(records.push(&mut two, record(2)));
        assert!(records.push(&mut one, record(3)));
        assert!(!records.push(&mut two, record(4)), "all are in use");
        assert_eq!(one.count(), 2);
        assert_eq!(records.pop(&mut one).unwrap().token, Token(1));
        assert!(records.push(&mut two, record(5)));
        let tokens: Vec<_> = records.iter(&two).map(|record| record.token).collect();
        assert_eq!(tokens, [Token(2), Token(5)]);
        assert_eq!(records.pop(&mut one).unwrap().token, Token(3));
        assert!(records.pop(&mut one).is_none());
    }

    #[test]
    fn more_than_there_are_cannot_be_reserved() {
        let mut all = [TransferRecord::EMPTY; 3];
        let mut records = Records::new(&mut all);
        assert!(records.reserve(2));
        assert!(!records.reserve(2));
        records.unreserve(2);
        assert!(records.reserve(3));
    }
}
