//! One transfer in flight: how far the controller has come with it, and how it ended.
//!
//! Called by [`endpoint`](super::endpoint), which keeps the transfers of a queue in order. What is read
//! from shared memory, tokens and what each qTD was made for, is believed only as far as the transfer
//! that was submitted allows. `EHCI 1.0 §4.10.3`, `§4.15`.

use super::queue::{Queue, Span};
use super::storage::NO_RECORD;
use super::transfer_descriptor::{TOKEN, Token as QtdToken};
use crate::host::{Outcome, Report, Token};

/// What the driver remembers of a transfer. The caller of the stack provides a slice of them.
#[derive(Clone, Copy, Debug)]
pub struct TransferRecord {
    pub(super) token: Token,
    pub(super) report: Report,
    /// Where its qTDs are.
    pub(super) span: Span,
    /// How many qTDs of the span have ended.
    pub(super) done: u16,
    /// It has a setup and a status stage around its data.
    pub(super) control: bool,
    /// Data bytes asked for.
    pub(super) length: u32,
    /// Data bytes moved, once a short packet has told.
    pub(super) short: Option<u32>,
    /// The record behind it in its line.
    pub(super) next: u16,
}

impl TransferRecord {
    /// An unused record.
    pub const EMPTY: Self = Self {
        token: Token(0),
        report: Report::Always,
        span: Span { first: 0, count: 0 },
        done: 0,
        control: false,
        length: 0,
        short: None,
        next: NO_RECORD,
    };
}

/// How a transfer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ending {
    pub(super) outcome: Outcome,
    /// Data bytes moved.
    pub(super) actual: u32,
}

impl TransferRecord {
    /// Looks how far the controller has come; `None` if it is still at work. One read of memory if
    /// nothing has changed.
    #[inline]
    pub(super) fn progress(&mut self, queue: &Queue) -> Option<Ending> {
        while self.done < self.span.count {
            let token = queue.read_token(queue.after(self.span.first, self.done));
            if token.is_set(TOKEN::ACTIVE) {
                return None;
            }
            if token.get() & (TOKEN::HALTED::SET.value | TOKEN::BYTES.val(0x7fff).value) != 0
                && let Some(ending) = self.irregular(queue, token)
            {
                return Some(ending);
            }
            self.done += 1;
        }
        Some(match self.short {
            Some(actual) => Ending {
                outcome: Outcome::Short,
                actual,
            },
            None => Ending {
                outcome: Outcome::Complete,
                actual: self.length,
            },
        })
    }

    /// How the transfer ended, if it has one qTD, which has ended well with `token`. Bytes that the
    /// controller claims not to have moved count as far as they were asked for.
    #[inline]
    pub(super) fn good_ending(&self, token: QtdToken) -> Option<Ending> {
        if self.span.count != 1 || self.control || token.is_set(TOKEN::HALTED) {
            return None;
        }
        let left = token.read(TOKEN::BYTES);
        if left == 0 {
            return Some(Ending {
                outcome: Outcome::Complete,
                actual: self.length,
            });
        }
        token.matches_all(TOKEN::PID::In).then_some(Ending {
            outcome: Outcome::Short,
            actual: self.length.saturating_sub(left),
        })
    }

    /// A qTD that halted or was not filled. `None` if the transfer goes on behind it.
    #[cold]
    fn irregular(&mut self, queue: &Queue, token: QtdToken) -> Option<Ending> {
        let actual = self.moved(queue, token);
        if token.is_set(TOKEN::HALTED) {
            return Some(Ending {
                outcome: halt_reason(token),
                actual,
            });
        }
        let last = self.span.count - 1;
        let data = !self.control || (self.done != 0 && self.done != last);
        if !data || !token.matches_all(TOKEN::PID::In) {
            return Some(Ending {
                outcome: Outcome::Other(token.get() as u8),
                actual,
            });
        }
        self.short = Some(actual);
        // The controller follows the alternate pointer, so the rest of the data is passed over.
        let end = if self.control { last } else { self.span.count };
        self.done = end - 1;
        None
    }

    /// Data bytes moved until the qTD behind the `done` ones, whose token is `token`.
    fn moved(&self, queue: &Queue, token: QtdToken) -> u32 {
        if let Some(actual) = self.short {
            return actual;
        }
        let stages = u16::from(self.control);
        let data_end = self.span.count - stages;
        // A bad controller may have written over what the qTDs were made for.
        let mut moved = 0_u32;
        for index in stages..self.done.min(data_end) {
            let planned = queue.read_planned(queue.after(self.span.first, index));
            moved = moved.saturating_add(planned);
        }
        if (stages..data_end).contains(&self.done) {
            let planned = queue.read_planned(queue.after(self.span.first, self.done));
            moved = moved.saturating_add(planned.saturating_sub(token.read(TOKEN::BYTES)));
        }
        moved.min(self.length)
    }

    /// How the transfer ended, now that the controller has let go of its queue: as it ended after
    /// all, or cancelled.
    pub(super) fn cancel(&mut self, queue: &Queue) -> Ending {
        if let Some(ending) = self.progress(queue) {
            return ending;
        }
        let position = queue.after(self.span.first, self.done);
        Ending {
            outcome: Outcome::Cancelled,
            actual: self.moved(queue, queue.read_progress(position)),
        }
    }
}

/// What a halted token means. Error bits are sticky over retries, so the error count decides between
/// a stall and a failure (`EHCI 1.0 §4.15.1`; table 3-16).
fn halt_reason(token: QtdToken) -> Outcome {
    if token.is_set(TOKEN::BABBLE) {
        Outcome::Babble
    } else if token.is_set(TOKEN::MISSED) && token.matches_all(TOKEN::PID::In) {
        Outcome::SplitError
    } else if token.read(TOKEN::CERR) != 0 {
        Outcome::Stall
    } else if token.is_set(TOKEN::MISSED) {
        Outcome::SplitError
    } else if token.is_set(TOKEN::DATA_BUFFER) {
        Outcome::HostOverrun
    } else if token.is_set(TOKEN::TRANSACTION_ERROR) {
        Outcome::TransactionError
    } else {
        Outcome::Stall
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halted(bits: u32) -> Outcome {
        halt_reason(QtdToken::new(0x40 | bits))
    }

    #[test]
    fn the_reason_of_a_halt_follows_the_error_count_before_the_sticky_bits() {
        assert_eq!(halted(0x0c00), Outcome::Stall);
        assert_eq!(
            halted(0x0c08),
            Outcome::Stall,
            "an earlier error was retried"
        );
        assert_eq!(halted(0x0008), Outcome::TransactionError);
        assert_eq!(halted(0x0028), Outcome::HostOverrun);
        assert_eq!(halted(0x0c10), Outcome::Babble);
        assert_eq!(halted(0x0d04), Outcome::SplitError, "IN");
        assert_eq!(halted(0x0c04), Outcome::Stall, "OUT that was retried");
        assert_eq!(halted(0x0004), Outcome::SplitError);
        assert_eq!(halted(0x0000), Outcome::Stall);
    }
}
