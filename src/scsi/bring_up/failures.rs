//! What a bring-up makes of a command that failed: the same question again, another one, a pause, or the end.
//!
//! Every number here is a bound: whatever a unit answers, its bring-up ends.

use super::super::sense::{Sense, SenseKey, Verdict};
use super::super::transport::TransportError;
use super::{Action, BringUp, BringUpError, NO_MEDIUM_TRIES, Phase, Questions};
use crate::time::{Duration, Instant};

/// Pause between questions for readiness. Policy: other hosts wait 100 to 500 ms; at the quick end.
pub(super) const READY_POLL: Duration = Duration::from_millis(100);

/// How often a command is tried that fails for no lasting reason. Policy.
const TRIES: u8 = 3;

/// How many unit attentions of a bring-up are taken before they count as a fault. Policy: a device
/// has a handful of them after power-on, one for each cause.
const ATTENTIONS: u8 = 8;

/// How often block 0 is read. Policy: a second time where the first fails (090c:6000 refuses the
/// first, 1b1c:1ab5 sends junk).
const FIRST_READS: u8 = 2;

impl BringUp {
    pub(super) fn check(&mut self, sense: Sense, data: &[u8], now: Instant) -> Action {
        match (self.phase, sense.verdict()) {
            // Done all the same, as the sense data says.
            (_, Verdict::Success) => self.good(data),
            (
                Phase::Units
                | Phase::MoreCapacity(_)
                | Phase::FirstRead
                | Phase::ModeSense
                | Phase::Caching
                | Phase::Details,
                verdict,
            ) => self.optional_failed(sense, verdict, now),
            (_, Verdict::NoSuchUnit) | (Phase::Inquiry, Verdict::Unsupported) => self.denied(),
            (_, Verdict::NoMedium) => self.empty(sense, now),
            (_, Verdict::BecomingReady | Verdict::NotReady) => self.not_ready(sense, now),
            (Phase::Ready, Verdict::NeedsStart) => self.start(sense, now),
            (_, Verdict::NeedsStart) => self.not_ready(sense, now),
            // A device without these commands is ready as it is.
            (Phase::Ready, Verdict::Unsupported) => self.ask_capacity(),
            (Phase::Start, Verdict::Unsupported) => self.not_ready(sense, now),
            (Phase::Capacity16 { block_length }, Verdict::Unsupported) => {
                self.at_least(block_length)
            }
            (
                _,
                Verdict::Retry
                | Verdict::MediaChanged
                | Verdict::CapacityChanged
                | Verdict::ResetHappened
                | Verdict::EarlierCommandFailed,
            ) => self.attention(sense),
            // A device that cannot say whether it is ready may still have a capacity.
            (Phase::Ready, _) if self.failures + 1 >= TRIES => self.ask_capacity(),
            _ => self.again(BringUpError::Failed(sense)),
        }
    }

    /// A unit that tells something first, or has lost its medium, has not refused the question. One
    /// that has is not asked again: it can be used all the same.
    fn optional_failed(&mut self, sense: Sense, verdict: Verdict, now: Instant) -> Action {
        match verdict {
            _ if self.phase == Phase::Units && sense.key != SenseKey::UnitAttention => {
                self.go_without()
            }
            Verdict::NoMedium => self.empty(sense, now),
            // The capacity was another medium's.
            Verdict::MediaChanged | Verdict::CapacityChanged if self.phase != Phase::Units => {
                self.phase = Phase::Ready;
                self.attention(sense)
            }
            _ if sense.key == SenseKey::UnitAttention && self.attentions < ATTENTIONS => {
                self.attention(sense)
            }
            _ if self.phase == Phase::FirstRead && self.failures + 1 < FIRST_READS => {
                self.failures += 1;
                Action::Issue(self.command())
            }
            Verdict::Retry | Verdict::EarlierCommandFailed if self.must_be_told() => {
                self.failures += 1;
                Action::Issue(self.command())
            }
            _ => self.go_without(),
        }
    }

    /// Whether a page that proves which unit this is should be asked for once more: without it, all that waits for
    /// the unit ends.
    fn must_be_told(&self) -> bool {
        self.phase == Phase::Details && self.has_name && self.failures == 0
    }

    /// Goes on without the answer to a question that a disk can be used without.
    fn go_without(&mut self) -> Action {
        match self.phase {
            Phase::MoreCapacity(known) => self.no_more_capacity(known),
            Phase::Units => self.units_unknown(),
            Phase::FirstRead => self.ask_mode(),
            Phase::ModeSense => self.ask_caching(),
            Phase::Details => {
                self.pages.pass();
                self.next_detail()
            }
            _ => self.ask_details(),
        }
    }

    /// Starts a stopped unit. One that has taken START and is still stopped gets a pause before the
    /// next.
    fn start(&mut self, sense: Sense, now: Instant) -> Action {
        if self.start_sent {
            self.start_sent = false;
            return self.not_ready(sense, now);
        }
        self.start_sent = true;
        self.go_on(Phase::Start)
    }

    /// Something happened to the unit that it had to tell first. Then the same question again.
    fn attention(&mut self, sense: Sense) -> Action {
        self.attentions += 1;
        if self.attentions > ATTENTIONS {
            return Action::Fail(BringUpError::Failed(sense));
        }
        Action::Issue(self.command())
    }

    fn empty(&mut self, sense: Sense, now: Instant) -> Action {
        self.no_medium += 1;
        match self.inquiry {
            Some(_) if self.no_medium < NO_MEDIUM_TRIES => {
                self.phase = Phase::Ready;
                Action::Wait(now + READY_POLL)
            }
            Some(inquiry) => Action::Empty(inquiry),
            None => Action::Fail(BringUpError::Failed(sense)),
        }
    }

    fn not_ready(&mut self, sense: Sense, now: Instant) -> Action {
        if now >= self.deadline {
            return Action::Fail(BringUpError::NotReady(sense));
        }
        if self.phase != Phase::Inquiry {
            self.phase = Phase::Ready;
        }
        Action::Wait(now + READY_POLL)
    }

    /// It says that it is not there, or does not know the question that every unit must know. That may
    /// be what is left of an earlier command, and QEMU's `usb-bot` says so of every unit but 0 that
    /// has an attention to tell: it is asked a few times.
    fn denied(&mut self) -> Action {
        self.failures += 1;
        if self.failures >= TRIES {
            Action::Skip
        } else {
            Action::Issue(self.command())
        }
    }

    /// The same question again, a few times.
    pub(super) fn again(&mut self, error: BringUpError) -> Action {
        self.failures += 1;
        if self.failures >= TRIES {
            Action::Fail(error)
        } else {
            Action::Issue(self.command())
        }
    }

    pub(super) fn transport_failed(&mut self, error: TransportError, now: Instant) -> Action {
        match (self.phase, error) {
            (_, TransportError::Disconnected | TransportError::Broken(_)) => {
                Action::Fail(BringUpError::Transport(error))
            }
            (Phase::Details, _) if self.must_be_told() && now < self.deadline => {
                self.failures += 1;
                Action::Issue(self.command())
            }
            // A device that is upset by a question is not asked again, nor for more.
            (Phase::Details, _) => self.found(),
            (Phase::ModeSense | Phase::Caching, _) => {
                self.questions = Questions::Essential;
                self.ask_details()
            }
            (Phase::Units | Phase::MoreCapacity(_) | Phase::FirstRead, _) => self.go_without(),
            // Each failure may have cost a command's deadline: they share the budget.
            _ if now >= self.deadline => Action::Fail(BringUpError::Transport(error)),
            _ => self.again(BringUpError::Transport(error)),
        }
    }
}
