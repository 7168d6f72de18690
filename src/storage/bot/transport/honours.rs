//! Where a transport honours its device's policies: the pause behind a wrapper, sense data of the
//! right length and at the right time, residues that lie.
//!
//! Called by the transport at the few places that a policy may bend; what is decided there is in
//! [`Habits`]. A part of the transport, so that its usual way stays in view without these.

use super::super::habits::{Habits, LONG_SENSE, PAUSE};
use super::super::machine::{Action, End};
use super::super::wire::{Csw, CswFault, CswStatus, Lun};
use super::{Follows, SENSE_TIMEOUT, Transport, layout};
use crate::dma::Segment;
use crate::host::Report;
use crate::policy::Queueing;
use crate::scsi::cdb::{DataPhase, request_sense};
use crate::scsi::sense::{Sense, Verdict};
use crate::scsi::transport::{Completion, Outcome, Request, Status, TransportError};
use crate::storage::quirks::Quirks;
use crate::time::Instant;
use crate::usb::speed::Speed;
use crate::usb::{Bus, Driver};

/// A REQUEST SENSE that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sensing {
    about: About,
    /// The answer to a longer question has not come, or was refused. What the device had to say went with it: an
    /// answer without a reason, or with one that fits the question, is about that.
    is_second: bool,
}

/// What it asks about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum About {
    /// The request failed, with so many bytes moved.
    Failure(u32),
    /// It was a flush that ended well, of a device that wants to be asked.
    Flush,
}

impl Sensing {
    /// About a request that failed, with so many bytes moved.
    pub(super) const fn failure(moved: u32) -> Self {
        Self {
            about: About::Failure(moved),
            is_second: false,
        }
    }

    /// About a flush that ended well.
    pub(super) const FLUSH: Self = Self {
        about: About::Flush,
        is_second: false,
    };

    /// What an answer says of the command.
    fn weigh(self, answer: Sense) -> Sense {
        let says_nothing = matches!(
            answer.verdict(),
            Verdict::Unexplained | Verdict::Unsupported
        );
        if self.is_second && says_nothing {
            Sense::UNHEARD
        } else {
            answer
        }
    }
}

impl Transport {
    /// Honours a device's policies, from the next command on.
    pub fn set_quirks(&mut self, quirks: Quirks, speed: Speed) {
        self.habits = Habits::new(quirks, speed);
        if self.habits.pauses() {
            self.queueing = Queueing::AfterCommand;
        }
        if self.habits.wants_status_last() {
            self.queueing = self.queueing.with_status_last();
        }
        let length = self.habits.wrapper_length();
        if let Some(wrapper) = self.memory.raw(layout::COMMAND, length) {
            self.wrapper = Segment::from(wrapper);
        }
    }

    /// The policies that are honoured, with what was learnt of the device.
    #[must_use]
    pub fn quirks(&self) -> Quirks {
        self.habits.quirks()
    }

    /// Puts a command's list into the transport's own memory.
    #[cold]
    #[inline(never)]
    pub(super) fn place_list(&self, request: &Request) {
        let (at, length) = (layout::SCRATCH_AT, request.command.data.length());
        request.data.list(length, |offset, bytes| {
            self.memory.write_bytes(at + offset, bytes)
        });
    }

    /// The device has carried out an ATA command: it has more sense data than 18 bytes (as Linux).
    pub fn learn_long_sense(&mut self) {
        self.habits.learn_long_sense();
    }

    /// Whether there is a pause between the present wrapper and its data.
    #[inline]
    pub(super) fn rests(&self) -> bool {
        self.habits.pauses() && self.announced != DataPhase::None
    }

    /// Lets the command rest.
    pub(super) fn pause(&mut self, action: Action, now: Instant) {
        self.paused = Some((action, self.deadline));
        self.deadline = now + PAUSE;
    }

    /// Goes on behind a pause whose time is over. `false` if there was none.
    pub(super) fn go_on<C: Driver>(&mut self, bus: &mut Bus<'_, C>, now: Instant) -> bool {
        let Some((action, deadline)) = self.paused.take() else {
            return false;
        };
        self.deadline = deadline;
        let queued = match action {
            Action::SendData => self.queue_data(bus, Report::Always, Follows::Nothing),
            _ => self.queue_rest(bus),
        };
        if queued.is_err() {
            self.deadline = now;
        }
        true
    }

    /// Whether the command that has ended well is followed by REQUEST SENSE.
    #[inline]
    pub(super) fn wants_sense(&self) -> bool {
        self.habits.asks_sense_after(self.operation)
    }

    #[cold]
    pub(super) fn ask_sense<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        sensing: Sensing,
        now: Instant,
    ) {
        self.sensing = Some(sensing);
        let lun = self.lun.unwrap_or(Lun::ZERO);
        let command = request_sense(self.habits.sense_length());
        self.start_rarely(bus, lun, &command, now + SENSE_TIMEOUT);
    }

    /// REQUEST SENSE has ended: the command ends with what it brought, which may be nothing.
    #[cold]
    pub(super) fn finish_sense<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        sensing: Sensing,
        end: End,
        now: Instant,
    ) -> Option<Outcome> {
        let failed = matches!(end, End::Status(CswStatus::Failed, _) | End::Recovered(_));
        if failed && self.habits.unlearn_sense() {
            // It was the length that the device minded: the usual question is still to be asked.
            let sensing = Sensing {
                is_second: true,
                ..sensing
            };
            self.ask_sense(bus, sensing, now);
            return None;
        }
        let mut bytes = [0; LONG_SENSE as usize];
        let sense = match end {
            End::Status(CswStatus::Passed, came) => {
                self.memory.read_bytes(layout::SENSE, &mut bytes);
                let bytes = bytes.get(..came as usize).unwrap_or(&bytes);
                self.habits.learn_sense(bytes);
                sensing.weigh(Sense::parse(bytes))
            }
            End::Broken(error) => return self.end(Err(TransportError::Broken(error.into()))),
            End::Status(..) | End::Recovered(_) => Sense::UNHEARD,
        };
        let (status, moved) = match sensing.about {
            About::Failure(moved) => (Status::Check(sense), moved),
            // Nothing to say, as of every flush that went well (Linux weighs it so too). Where the answer has
            // not come, it may have been that the flush failed.
            About::Flush
                if !sensing.is_second
                    && matches!(end, End::Status(CswStatus::Passed, _))
                    && matches!(sense.verdict(), Verdict::Unexplained | Verdict::Unheard) =>
            {
                (Status::Good, 0)
            }
            About::Flush => (Status::Check(sense), 0),
        };
        self.end(Ok(Completion { status, moved }))
    }

    /// Reads a status as the device's habits allow.
    #[inline]
    pub(super) fn check_status(&mut self, words: [u32; Csw::ROOM / 4]) -> Result<Csw, CswFault> {
        let requested = self.announced.length();
        let csw = self.habits.check(words, self.tag, requested)?;
        if csw.residue == 0 {
            return Ok(csw);
        }
        Ok(self.weigh_residue(csw))
    }

    /// A residue counts, unless this device's do not.
    #[cold]
    fn weigh_residue(&mut self, csw: Csw) -> Csw {
        let is_false = csw.status == CswStatus::Passed && self.machine.has_all_data();
        if is_false && self.sensing.is_none() {
            self.habits.learn_residue(self.operation, self.announced);
        }
        if self.habits.ignores_residue() {
            Csw { residue: 0, ..csw }
        } else {
            csw
        }
    }
}
