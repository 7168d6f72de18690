//! Streams as a UAS device keeps them (UAS §4.2, USB 3.2 §8.12.1.4): which pipes are primed, and which
//! stream it wants to start next. Below SuperSpeed, and without streams, nothing here is asked.

use super::super::Nanoseconds;
use super::super::base::{Taken, Wire};
use super::fault::PrimeManner;
use super::function::{COMMAND, DATA_IN, DATA_OUT};
use super::machine::{Phase, Running, Uas};

impl Uas {
    pub(super) fn has_streams(&self, wire: &Wire<'_>) -> bool {
        wire.link.is_super() && self.streams > 0
    }

    /// Checks the stream of a packet on a pipe that has them or not.
    pub(super) fn check_stream(&self, wire: &Wire<'_>, endpoint: u8, stream: u16) {
        let streams = self.has_streams(wire) && endpoint != COMMAND;
        let allowed = match streams {
            true => (1..=self.streams).contains(&stream),
            false => stream == 0,
        };
        if !allowed {
            let text = format!("a packet on stream {stream} of endpoint {endpoint:#04x}");
            wire.violations.record(wire.now, "UAS §4.2", text);
        }
        if streams && !self.primed.contains(&endpoint) {
            let text = format!("stream {stream} of endpoint {endpoint:#04x}, which was not primed");
            wire.violations.record(wire.now, "USB 3.2 §8.12.1.4", text);
        }
    }

    pub(super) fn take_prime(&mut self, wire: &Wire<'_>, endpoint: u8) -> Taken {
        if !self.has_streams(wire) || endpoint == COMMAND {
            let text = format!("endpoint {endpoint:#04x} has no streams to prime");
            wire.violations.record(wire.now, "USB 3.2 §8.12.1.4", text);
            return Taken::Silent;
        }
        if self.manners.prime == PrimeManner::Halts {
            return Taken::Halt;
        }
        if !self.primed.contains(&endpoint) {
            self.primed.push(endpoint);
        }
        Taken::Busy
    }

    /// The streams of a pipe that the device starts, in its order: the one that it is in the middle
    /// of, then those that are ready as the seed decides, then the others by time.
    pub(super) fn wants_to_start(&self, now: Nanoseconds, endpoint: u8) -> Vec<(Nanoseconds, u16)> {
        if self.manners.prime == PrimeManner::Ignores || !self.primed.contains(&endpoint) {
            return Vec::new();
        }
        let mut wanted: Vec<_> = match endpoint {
            DATA_IN => self.data_to_move(true).collect(),
            DATA_OUT => self.data_to_move(false).collect(),
            _ => self.units_to_say().collect(),
        };
        wanted.sort_by_key(|&(begun, at, stream)| (!begun, at.max(now), self.lot(stream)));
        let shown = wanted.into_iter().map(|(_, at, stream)| (at, stream));
        shown.collect()
    }

    /// Commands whose data move or will: whether they have begun, from when on, on which stream.
    fn data_to_move(&self, to_host: bool) -> impl Iterator<Item = (bool, Nanoseconds, u16)> {
        let moves = move |command: &&Running| {
            command.phase != Phase::Stuck && command.direction() == Some(to_host)
        };
        let commands = self.commands.iter().filter(moves);
        commands.map(|one| (one.moved > 0, one.execution.ready_at, one.stream))
    }

    /// What was said, and the status that commands without data will end with.
    fn units_to_say(&self) -> impl Iterator<Item = (bool, Nanoseconds, u16)> {
        let said = self.outgoing.iter();
        let ends =
            |command: &&Running| command.phase == Phase::Waiting && command.direction().is_none();
        let ending = self.commands.iter().filter(ends);
        said.map(|unit| (false, unit.at, unit.stream))
            .chain(ending.map(|one| (false, one.execution.ready_at, one.stream)))
    }

    /// A number that the seed gives a stream: which of several goes first.
    fn lot(&self, stream: u16) -> u64 {
        let mixed = (self.manners.seed ^ u64::from(stream)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed >> 32
    }
}
