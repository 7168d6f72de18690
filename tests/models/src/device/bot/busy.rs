//! A command that is going on: how far it is, and when it can go further.

use super::super::Nanoseconds;
use super::plan::{Data, Plan};
use super::wire::CommandWrapper;

/// Bytes that a device takes from the host before its slow medium slows the host down.
const WRITE_BUFFER: u64 = 64 * 1024;

/// A command that is going on.
#[derive(Debug)]
pub(super) struct Busy {
    pub(super) wrapper: CommandWrapper,
    pub(super) plan: Plan,
    /// Before that, no data may move.
    pub(super) ripe_at: Nanoseconds,
    pub(super) phase: Phase,
    /// Bytes moved in the data phase.
    pub(super) moved: usize,
    pub(super) received: Vec<u8>,
    /// The command was left over by a bus reset that it should not have survived.
    pub(super) stale: bool,
}

/// How far the command is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Works; nothing moves before the plan's time.
    Waiting,
    DataIn,
    DataOut,
    /// The empty packet after the data.
    EmptyPacket,
    Status {
        at: Nanoseconds,
    },
}

impl Busy {
    /// When the medium has given `moved` bytes, or taken them.
    pub(super) fn due(&self, moved: u64) -> Nanoseconds {
        let start = self.plan.ready_at;
        match self.plan.bytes_per_second {
            Some(rate) => {
                let time = u128::from(moved) * 1_000_000_000 / u128::from(rate.max(1));
                start.saturating_add(u64::try_from(time).unwrap_or(u64::MAX))
            }
            None => start,
        }
    }

    /// Whether data from the host are part of the command.
    pub(super) fn takes_data(&self) -> bool {
        matches!(self.plan.data, Data::Out { .. })
    }

    /// Whether this transaction gets no answer, on the pipe to the host or on the other one; counts.
    /// Only the pipe of the data phase falls silent: a host may ask for the status meanwhile.
    pub(super) fn stays_silent(&mut self, to_host: bool) -> bool {
        let moving = match self.phase {
            Phase::DataIn => to_host,
            Phase::DataOut => !to_host,
            _ => false,
        };
        let silent = self.plan.silent > 0 && moving;
        self.plan.silent -= u32::from(silent);
        silent
    }

    pub(super) fn room_at(&self) -> Nanoseconds {
        self.due((self.moved as u64).saturating_sub(WRITE_BUFFER))
    }

    pub(super) fn has_room(&self, now: Nanoseconds) -> bool {
        now >= self.room_at()
    }

    /// When this pipe will have something to do.
    pub(super) fn ready_at(&self, to_host: bool) -> Option<Nanoseconds> {
        match self.phase {
            Phase::Waiting => Some(self.plan.ready_at),
            Phase::DataIn if to_host => Some(self.due(self.next_end())),
            Phase::DataOut if !to_host => Some(self.room_at()),
            Phase::EmptyPacket if to_host => Some(0),
            Phase::Status { at } if to_host => Some(at),
            _ => None,
        }
    }

    /// The end of the next packet to the host, for the largest packet that there is.
    pub(super) fn next_end(&self) -> u64 {
        let length = if let Data::In(bytes) = &self.plan.data {
            bytes.len()
        } else {
            0
        };
        (self.moved + 1024).min(length) as u64
    }
}
