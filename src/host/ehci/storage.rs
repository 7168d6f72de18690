//! What a caller lends to the driver: places for devices, endpoints and transfers.
//!
//! No size is in a public type: a caller passes slices of elements that it cannot look into, or one
//! [`EhciMemory`] that has them all. [`Records`] hands transfer records out to endpoints;
//! [`IndexSet`] remembers which endpoints have something to be looked at, so that an idle one costs
//! nothing.

use core::sync::atomic::{AtomicU32, Ordering};

use super::device::DeviceRecord;
use super::endpoint::EndpointRecord;
use super::transfer::TransferRecord;

/// Not of the status register: the driver itself wants to be polled, which began something when the core
/// asked for something else.
pub(super) const CALL: u32 = 1 << 31;

/// What the interrupt half tells the driver: status bits other than completions, which memory
/// tells by itself.
#[derive(Debug)]
pub struct Signal(AtomicU32);

impl Signal {
    /// Nothing to tell.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(super) fn raise(&self, bits: u32) {
        self.0.fetch_or(bits, Ordering::AcqRel);
    }

    #[inline]
    pub(super) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    pub(super) fn take(&self) -> u32 {
        self.0.swap(0, Ordering::AcqRel)
    }
}

impl Default for Signal {
    fn default() -> Self {
        Self::new()
    }
}

/// The storage of one controller.
#[derive(Debug)]
pub struct EhciStorage<'s> {
    /// One element a device that may be open at the same time, at most 255.
    pub devices: &'s mut [DeviceRecord],
    /// One element an open endpoint, endpoint 0 of each device included, at most 255.
    pub endpoints: &'s mut [EndpointRecord],
    /// One element a transfer in flight: the sum of `transfers` of all open endpoints, and one for
    /// endpoint 0 of each device.
    pub transfers: &'s mut [TransferRecord],
    /// Shared with the interrupt half.
    pub signal: &'s Signal,
}

/// Storage for `DEVICES` devices with `ENDPOINTS` endpoints and `TRANSFERS` transfers in flight.
#[derive(Debug)]
pub struct EhciMemory<const DEVICES: usize, const ENDPOINTS: usize, const TRANSFERS: usize> {
    devices: [DeviceRecord; DEVICES],
    endpoints: [EndpointRecord; ENDPOINTS],
    transfers: [TransferRecord; TRANSFERS],
    signal: Signal,
}

impl<const DEVICES: usize, const ENDPOINTS: usize, const TRANSFERS: usize>
    EhciMemory<DEVICES, ENDPOINTS, TRANSFERS>
{
    /// Unused storage.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            devices: [const { DeviceRecord::EMPTY }; DEVICES],
            endpoints: [const { EndpointRecord::EMPTY }; ENDPOINTS],
            transfers: [TransferRecord::EMPTY; TRANSFERS],
            signal: Signal::new(),
        }
    }

    /// The slices for a driver.
    pub fn slices(&mut self) -> EhciStorage<'_> {
        EhciStorage {
            devices: &mut self.devices,
            endpoints: &mut self.endpoints,
            transfers: &mut self.transfers,
            signal: &self.signal,
        }
    }
}

impl<const DEVICES: usize, const ENDPOINTS: usize, const TRANSFERS: usize> Default
    for EhciMemory<DEVICES, ENDPOINTS, TRANSFERS>
{
    fn default() -> Self {
        Self::new()
    }
}

/// No record.
pub(super) const NO_RECORD: u16 = u16::MAX;

/// The transfer records: chained by index, in an endpoint's line or in the free chain.
#[derive(Debug)]
pub(super) struct Records<'s> {
    slots: &'s mut [TransferRecord],
    free: u16,
    /// Records that no endpoint has been promised.
    unpromised: usize,
}

impl<'s> Records<'s> {
    pub(super) fn new(slots: &'s mut [TransferRecord]) -> Self {
        let mut records = Self {
            slots,
            free: NO_RECORD,
            unpromised: 0,
        };
        records.clear();
        records
    }

    /// Takes all records and promises back.
    pub(super) fn clear(&mut self) {
        self.free = NO_RECORD;
        let usable = self.slots.len().min(usize::from(NO_RECORD));
        self.unpromised = usable;
        for index in (0..usable).rev() {
            self.put(index as u16);
        }
    }

    /// Promises `count` records to an endpoint. Returns whether there are so many.
    pub(super) fn promise(&mut self, count: u8) -> bool {
        match self.unpromised.checked_sub(usize::from(count)) {
            Some(rest) => {
                self.unpromised = rest;
                true
            }
            None => false,
        }
    }

    /// Ends a promise of `count` records, all of which have been put back.
    pub(super) fn release(&mut self, count: u8) {
        self.unpromised += usize::from(count);
    }

    /// Takes a free record, filled with `record`.
    #[inline]
    pub(super) fn take(&mut self, record: TransferRecord) -> Option<u16> {
        let index = self.free;
        let slot = self.slots.get_mut(usize::from(index))?;
        self.free = slot.next;
        *slot = TransferRecord {
            next: NO_RECORD,
            ..record
        };
        Some(index)
    }

    /// Puts a record back.
    #[inline]
    pub(super) fn put(&mut self, index: u16) {
        if let Some(slot) = self.slots.get_mut(usize::from(index)) {
            slot.next = self.free;
            self.free = index;
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: u16) -> Option<&mut TransferRecord> {
        self.slots.get_mut(usize::from(index))
    }
}

/// A set of the indices 0 to 255.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct IndexSet {
    /// Bit n: `words[n]` is not zero.
    summary: u8,
    words: [u32; 8],
}

impl IndexSet {
    /// Nothing.
    pub(super) const EMPTY: Self = Self {
        summary: 0,
        words: [0; 8],
    };

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.summary == 0
    }

    #[inline]
    pub(super) fn insert(&mut self, index: u8) {
        if let Some(word) = self.words.get_mut(usize::from(index / 32)) {
            *word |= 1 << (index % 32);
            self.summary |= 1 << (index / 32);
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, index: u8) {
        if let Some(word) = self.words.get_mut(usize::from(index / 32)) {
            *word &= !(1 << (index % 32));
            if *word == 0 {
                self.summary &= !(1 << (index / 32));
            }
        }
    }

    /// Whether any index in the set is one for which `holds`.
    #[inline]
    pub(super) fn any(&self, mut holds: impl FnMut(u8) -> bool) -> bool {
        let mut summary = u32::from(self.summary);
        while summary != 0 {
            let at = summary.trailing_zeros() as u8;
            summary &= summary - 1;
            let mut word = self.words.get(usize::from(at)).copied().unwrap_or(0);
            while word != 0 {
                if holds(at * 32 + word.trailing_zeros() as u8) {
                    return true;
                }
                word &= word - 1;
            }
        }
        false
    }

    /// The first index in the set that is `from` or more.
    #[inline]
    pub(super) fn first_from(&self, from: u16) -> Option<u8> {
        let mut at = usize::from(from / 32);
        let mut word = self.words.get(at)? & (u32::MAX << (from % 32));
        if word == 0 {
            let later = u32::from(self.summary) >> at >> 1;
            if later == 0 {
                return None;
            }
            at += 1 + later.trailing_zeros() as usize;
            word = *self.words.get(at)?;
        }
        Some((at * 32) as u8 + word.trailing_zeros() as u8)
    }
}

/// A set whose members have their turns, one round after the other, while it changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Round {
    set: IndexSet,
    /// The word of the set that comes after the present one.
    next: u8,
    /// Of the present word: members that have not had their turn.
    left: u32,
}

impl Round {
    /// Nothing.
    pub(super) const EMPTY: Self = Self {
        set: IndexSet::EMPTY,
        next: 0,
        left: 0,
    };

    /// The members.
    #[inline]
    pub(super) fn set(&self) -> &IndexSet {
        &self.set
    }

    /// Adds a member. It has a turn in this round yet if its word's turn is not over.
    #[inline]
    pub(super) fn insert(&mut self, index: u8) {
        self.set.insert(index);
        if index / 32 + 1 == self.next {
            self.left |= 1 << (index % 32);
        }
    }

    /// Takes a member out, with its turn. When the last one goes, the round is over.
    #[inline]
    pub(super) fn remove(&mut self, index: u8) {
        self.set.remove(index);
        if self.set.is_empty() {
            self.restart();
        } else if index / 32 + 1 == self.next {
            self.left &= !(1 << (index % 32));
        }
    }

    /// Whose turn it is; `None` at the end of the round.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        if self.left == 0 {
            let later = u32::from(self.set.summary) >> self.next;
            if later == 0 {
                return None;
            }
            let word = self.next + later.trailing_zeros() as u8;
            self.left = *self.set.words.get(usize::from(word))?;
            self.next = word + 1;
        }
        Some((self.next - 1) * 32 + self.left.trailing_zeros() as u8)
    }

    /// Ends the turn of the one that [`Round::peek`] has named.
    #[inline]
    pub(super) fn step(&mut self) {
        self.left &= self.left.wrapping_sub(1);
    }

    /// Begins the next round.
    #[inline]
    pub(super) fn restart(&mut self) {
        self.next = 0;
        self.left = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_round_every_member_has_its_turn_while_the_set_changes() {
        let mut round = Round::EMPTY;
        assert_eq!(round.peek(), None);
        for index in [0, 31, 32, 33, 200, 255] {
            round.insert(index);
        }
        let mut seen = Vec::new();
        while let Some(index) = round.peek() {
            assert_eq!(round.peek(), Some(index), "until its turn is over");
            if index == 32 {
                round.remove(33);
                round.remove(0);
            }
            if index == 200 {
                round.remove(200);
            } else {
                round.step();
            }
            seen.push(index);
        }
        assert_eq!(seen, [0, 31, 32, 200, 255]);
        assert_eq!(round.peek(), None, "until it begins again");
        round.insert(201);
        assert_eq!(round.peek(), None, "the word's turn is over");
        round.insert(254);
        assert_eq!(round.peek(), Some(254), "in the present word");
        round.restart();
        assert_eq!(round.peek(), Some(31));
        assert!(round.set().any(|index| index == 255));
        assert!(!round.set().any(|index| index == 33));
        for index in [31, 32, 201, 254, 255] {
            round.remove(index);
        }
        assert!(round.set().is_empty());
        round.insert(3);
        assert_eq!(round.peek(), Some(3), "an empty set begins anew");
    }

    #[test]
    fn a_set_is_walked_in_order_from_anywhere() {
        let mut set = IndexSet::EMPTY;
        let members = [0, 31, 32, 63, 200, 255];
        for index in members {
            set.insert(index);
        }
        let mut from = 0;
        let mut seen = Vec::new();
        while let Some(index) = set.first_from(from) {
            seen.push(index);
            from = u16::from(index) + 1;
        }
        assert_eq!(seen, members);
        assert_eq!(set.first_from(64), Some(200));
        for index in members {
            set.remove(index);
        }
        assert!(set.is_empty());
        assert_eq!(set.first_from(0), None);
    }

    #[test]
    fn records_are_promised_before_they_are_taken() {
        let mut slots = [TransferRecord::EMPTY; 3];
        let mut records = Records::new(&mut slots);
        assert!(records.promise(2));
        assert!(!records.promise(2), "only one is left");
        records.release(2);
        assert!(records.promise(3));
        let taken: Vec<_> = (0..3)
            .map(|_| records.take(TransferRecord::EMPTY))
            .collect();
        assert_eq!(taken, [Some(0), Some(1), Some(2)]);
        assert_eq!(records.take(TransferRecord::EMPTY), None);
        records.put(1);
        assert_eq!(records.take(TransferRecord::EMPTY), Some(1));
    }
}
