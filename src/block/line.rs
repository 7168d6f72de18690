//! Requests in line, by their places in the table: each knows who is behind it.
//!
//! Called by the stack, so that nobody is looked for: the free places are a line, the requests that have ended are
//! one, and each disk has one of those that want a command. A request stands in one line at most, so one link
//! is enough. Joining at the end and leaving at the front take the same few steps however long the table is.

use super::queue::RequestSlot;

/// Behind the last one. No place has this number: a table has 255 places at most.
pub(crate) const NOBODY: u8 = u8::MAX;

/// A line of requests, in the order in which they are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    first: u8,
    /// Means nothing while there is no first.
    last: u8,
}

impl Line {
    /// Nobody.
    pub(crate) const EMPTY: Self = Self {
        first: NOBODY,
        last: NOBODY,
    };

    /// All places of a table for which `stands` holds.
    pub(crate) fn of(requests: &mut [RequestSlot], stands: impl Fn(&RequestSlot) -> bool) -> Self {
        let mut line = Self::EMPTY;
        for index in (0..requests.len()).rev() {
            if requests.get(index).is_some_and(&stands) {
                line.cut_in(requests, index as u8);
            }
        }
        line
    }

    /// Whether nobody stands in it.
    #[inline]
    pub(crate) const fn is_empty(self) -> bool {
        self.first == NOBODY
    }

    /// Who is first.
    #[inline]
    pub(crate) const fn first(self) -> Option<u8> {
        match self.first {
            NOBODY => None,
            index => Some(index),
        }
    }

    /// Who is last.
    #[inline]
    pub(crate) const fn last(self) -> Option<u8> {
        match self.first {
            NOBODY => None,
            _ => Some(self.last),
        }
    }

    /// Puts a request at the end. It stands in no line.
    #[inline]
    pub(crate) fn join(&mut self, requests: &mut [RequestSlot], index: u8) {
        if let Some(slot) = requests.get_mut(usize::from(index)) {
            slot.behind = NOBODY;
        }
        match self
            .last()
            .and_then(|last| requests.get_mut(usize::from(last)))
        {
            Some(last) => last.behind = index,
            None => self.first = index,
        }
        self.last = index;
    }

    /// Puts a request at the front. It stands in no line.
    #[inline]
    pub(crate) fn cut_in(&mut self, requests: &mut [RequestSlot], index: u8) {
        let Some(slot) = requests.get_mut(usize::from(index)) else {
            return;
        };
        slot.behind = self.first;
        if self.is_empty() {
            self.last = index;
        }
        self.first = index;
    }

    /// Takes the first one out.
    #[inline]
    pub(crate) fn take(&mut self, requests: &[RequestSlot]) -> Option<u8> {
        let index = self.first()?;
        self.first = requests
            .get(usize::from(index))
            .map_or(NOBODY, |slot| slot.behind);
        Some(index)
    }

    /// Puts a request in front of the first one for which `is_later` holds. It stands in no line.
    #[cold]
    pub(crate) fn join_before(
        &mut self,
        requests: &mut [RequestSlot],
        index: u8,
        is_later: impl Fn(&RequestSlot) -> bool,
    ) {
        let mut before = None;
        let mut here = self.first;
        while let Some(slot) = requests.get(usize::from(here)) {
            if is_later(slot) {
                break;
            }
            before = Some(here);
            here = slot.behind;
        }
        let Some(before) = before else {
            return self.cut_in(requests, index);
        };
        if here == NOBODY {
            return self.join(requests, index);
        }
        for (place, behind) in [(before, index), (index, here)] {
            if let Some(slot) = requests.get_mut(usize::from(place)) {
                slot.behind = behind;
            }
        }
    }

    /// Takes a request out that stands in it.
    #[inline]
    pub(crate) fn leave(&mut self, requests: &mut [RequestSlot], index: u8) {
        if self.first == index {
            self.take(requests);
        } else {
            self.leave_the_middle(requests, index);
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_the_middle(&mut self, requests: &mut [RequestSlot], index: u8) {
        let behind = requests
            .get(usize::from(index))
            .map_or(NOBODY, |slot| slot.behind);
        let mut here = self.first;
        while let Some(slot) = requests.get_mut(usize::from(here)) {
            if slot.behind == index {
                slot.behind = behind;
                if self.last == index {
                    self.last = here;
                }
                return;
            }
            here = slot.behind;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> [RequestSlot; 8] {
        [const { RequestSlot::EMPTY }; 8]
    }

    fn all(line: Line, requests: &[RequestSlot]) -> Vec<u8> {
        let mut line = line;
        core::iter::from_fn(|| line.take(requests)).collect()
    }

    #[test]
    fn whoever_joins_first_is_taken_first() {
        let mut requests = table();
        let mut line = Line::EMPTY;
        for round in [[3, 0, 7], [0, 5, 3]] {
            for index in round {
                line.join(&mut requests, index);
            }
            assert_eq!(line.last(), Some(round[2]));
            for index in round {
                assert_eq!(line.take(&requests), Some(index));
            }
            assert_eq!((line.take(&requests), line.last()), (None, None));
            assert!(line.is_empty());
        }
    }

    #[test]
    fn whoever_leaves_is_missed_by_nobody_else() {
        for gone in 0..4 {
            let mut requests = table();
            let mut line = Line::EMPTY;
            for index in 0..4 {
                line.join(&mut requests, index);
            }
            line.leave(&mut requests, gone);
            line.join(&mut requests, 6);
            let left: Vec<u8> = [0, 1, 2, 3, 6]
                .into_iter()
                .filter(|it| *it != gone)
                .collect();
            assert_eq!(all(line, &requests), left);
        }
    }

    #[test]
    fn a_request_that_comes_back_stands_where_it_stood() {
        for (sequence, expected) in [(5, [6, 0, 1, 2]), (15, [0, 6, 1, 2]), (35, [0, 1, 2, 6])] {
            let mut requests = table();
            let mut line = Line::EMPTY;
            for index in 0..3_u8 {
                requests[usize::from(index)].sequence = 10 * (u32::from(index) + 1);
                line.join(&mut requests, index);
            }
            line.join_before(&mut requests, 6, |other| other.sequence > sequence);
            assert_eq!(all(line, &requests), expected);
            line.join(&mut requests, 7);
            assert_eq!(line.last(), Some(7));
            assert_eq!(all(line, &requests).len(), 5);
        }
        let mut requests = table();
        let mut line = Line::EMPTY;
        line.join_before(&mut requests, 4, |_| true);
        assert_eq!((line.first(), line.last()), (Some(4), Some(4)));
    }

    #[test]
    fn a_line_of_some_places_has_them_in_order() {
        let mut requests = table();
        requests[2].sequence = 1;
        let line = Line::of(&mut requests, |slot| slot.sequence == 0);
        assert_eq!(all(line, &requests), [0, 1, 3, 4, 5, 6, 7]);
        assert_eq!(line.last(), Some(7));
    }
}
