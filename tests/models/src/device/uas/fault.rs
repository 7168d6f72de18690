//! What a faulty UAS disk does differently: by command, and in general.

use super::super::Nanoseconds;
use super::super::scsi::Sense;

/// What happens to a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// It is carried out, and its status never comes.
    LoseStatus,
    /// Nothing comes of it at all.
    Hang,
    /// Its status comes so much later.
    DelayStatus(Nanoseconds),
    /// Its status names this tag.
    WrongTag(u16),
    /// RESPONSE with this code in place of everything.
    Response(u8),
    /// A Bulk-Only status wrapper's signature, over and over, in place of its status.
    BulkOnlyWords,
    /// It fails with this sense, without data.
    Fail(Sense),
    /// The pipe of its data halts, then it fails with 5/24/00.
    HaltData,
    /// This status, without data.
    Status(u8),
    /// Good status without any data.
    SkipData,
    /// The device says that it is ready for this other tag first.
    ReadyForTag(u16),
    /// Its first data packet is longer than a packet may be.
    Babble,
    /// Its data and its status come on this stream.
    WrongStream(u16),
    /// The firmware starts anew in the middle of it: every command, and whatever was not flushed, is
    /// gone without a word; the next command of each unit is told 6/29/00.
    ResetItself,
}

/// A trigger and what follows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    opcode: u8,
    skip: u32,
    times: u32,
    until_power_on: bool,
    what: What,
}

/// Something that happens to every command with this operation code.
#[must_use]
pub const fn on(opcode: u8, what: What) -> Fault {
    Fault {
        opcode,
        skip: 0,
        times: u32::MAX,
        until_power_on: false,
        what,
    }
}

impl Fault {
    /// Not to the first `count` of them.
    #[must_use]
    pub fn after(self, count: u32) -> Self {
        Self {
            skip: count,
            ..self
        }
    }

    /// To so many of them and no more.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self {
            times: count,
            ..self
        }
    }

    /// Only until the device gets its power the next time.
    #[must_use]
    pub fn until_power_on(self) -> Self {
        Self {
            until_power_on: true,
            ..self
        }
    }

    /// Whether a loss of power leaves it there.
    pub(super) fn outlives_power(&self) -> bool {
        !self.until_power_on
    }

    /// What happens to this command, if anything; counts.
    pub(super) fn act(&mut self, cdb: &[u8]) -> Option<What> {
        if cdb.first() != Some(&self.opcode) || self.times == 0 {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        self.times -= 1;
        Some(self.what.clone())
    }
}

/// What a device makes of a task management function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TaskManner {
    /// It carries it out: nothing more is heard of the commands (SAM-5 §7.2).
    #[default]
    Works,
    /// It carries it out, and sends the status of a command that had ended by then all the same.
    LeavesStatus,
    /// It carries it out, and tells the next command of a unit that was reset nothing of it.
    WithoutAttention,
    /// It answers with this response code and does nothing.
    Refuses(u8),
    /// It never answers, and does nothing.
    Ignores,
}

/// What a device with streams does when the host primes a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PrimeManner {
    /// It takes note, and starts streams later.
    #[default]
    Starts,
    /// The pipe halts: it announced streams that it does not have.
    Halts,
    /// It takes no note, and never starts a stream.
    Ignores,
}

/// How a device behaves in general.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manners {
    /// What it makes of ABORT TASK.
    pub abort: TaskManner,
    /// What it makes of LOGICAL UNIT RESET.
    pub unit_reset: TaskManner,
    /// Commands that it holds; one more ends with TASK SET FULL.
    pub room: usize,
    /// Decides which of several commands is served next.
    pub seed: u64,
    /// What it does when a pipe is primed.
    pub prime: PrimeManner,
    /// Streams that it really has: a command with a higher tag is never served.
    pub streams_served: u16,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            abort: TaskManner::Works,
            unit_reset: TaskManner::Works,
            room: usize::MAX,
            seed: 1,
            prime: PrimeManner::Starts,
            streams_served: u16::MAX,
        }
    }
}
