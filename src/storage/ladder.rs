//! The ladder of recovery: what is tried after a device did not end a command, in which order.
//!
//! | rung | what is done | what it costs |
//! |---|---|---|
//! | 1 | the protocol's own reset, by the transport; then the command again | the command under way |
//! | 2 | a reset of the device's port, and the device opened again | all commands on the device |
//! | 3 | its power off and on, where only it or nothing unsafe shares the switch | all that shares it |
//! | 4 | the device is given up | the device |
//!
//! Each rung is tried once in an episode, and none is begun after the episode's time. An episode
//! begins with the first fault and ends when the device ends a command, well or badly. A machine
//! without I/O; the stack carries out what it answers.

use crate::time::{Duration, Instant};

/// What giving a device up may take at the end of an episode. Policy: its pipes are stopped and its
/// slot is closed in far less.
const CLOSING: Duration = Duration::from_secs(1);

/// What went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The device did not end a command, and took its protocol's reset.
    Reset,
    /// It did not take that either, or did not come back from a higher rung.
    Broken,
}

/// What to do about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Climb {
    /// Issue the command again.
    Retry,
    /// Reset the port and open the device again.
    ResetPort,
    /// Take the power away and give it back.
    CyclePower,
    /// Give the device up.
    GiveUp,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Rung {
    None,
    ProtocolReset,
    PortReset,
    PowerCycle,
}

/// The ladder of one device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ladder {
    rung: Rung,
    began: Option<Instant>,
}

impl Ladder {
    /// No episode.
    pub const DOWN: Self = Self {
        rung: Rung::None,
        began: None,
    };

    /// The device has ended a command: the episode is over, if there was one.
    #[inline]
    pub fn succeeded(&mut self) {
        if self.began.is_some() {
            *self = Self::DOWN;
        }
    }

    /// How much time the episode leaves a command that is issued again in it.
    #[must_use]
    pub fn time_left(&self, episode: Duration, now: Instant) -> Duration {
        match self.began {
            Some(began) => began + episode - (now + CLOSING),
            None => Duration::MAX,
        }
    }

    /// Whether the port may be reset once more at the end of the ladder, because the device will be used
    /// in another way then: if the episode's time is not over.
    #[must_use]
    pub fn has_time(&self, episode: Duration, now: Instant) -> bool {
        self.began.is_none_or(|began| now - began < episode)
    }

    /// The next rung. `may_cycle` says whether the device's power may be taken away now.
    pub fn climb(
        &mut self,
        failure: Failure,
        may_cycle: bool,
        episode: Duration,
        now: Instant,
    ) -> Climb {
        let began = *self.began.get_or_insert(now);
        if now - began >= episode {
            return Climb::GiveUp;
        }
        let (rung, climb) = match (self.rung, failure) {
            (Rung::None, Failure::Reset) => (Rung::ProtocolReset, Climb::Retry),
            (Rung::None | Rung::ProtocolReset, _) => (Rung::PortReset, Climb::ResetPort),
            (Rung::PortReset, _) if may_cycle => (Rung::PowerCycle, Climb::CyclePower),
            (rung, _) => (rung, Climb::GiveUp),
        };
        self.rung = rung;
        climb
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPISODE: Duration = Duration::from_secs(20);

    fn at(seconds: u64) -> Instant {
        Instant::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn every_rung_is_tried_once_and_then_the_device_is_given_up() {
        let mut ladder = Ladder::DOWN;
        let climbs = [0, 1, 2, 3, 4].map(|s| ladder.climb(Failure::Reset, true, EPISODE, at(s)));
        let expected = [
            Climb::Retry,
            Climb::ResetPort,
            Climb::CyclePower,
            Climb::GiveUp,
        ];
        assert_eq!(climbs[..4], expected);
        assert_eq!(climbs[4], Climb::GiveUp);
    }

    #[test]
    fn a_device_that_takes_no_protocol_reset_has_its_port_reset_at_once() {
        let mut ladder = Ladder::DOWN;
        assert_eq!(
            ladder.climb(Failure::Broken, true, EPISODE, at(0)),
            Climb::ResetPort
        );
    }

    #[test]
    fn power_that_may_not_be_cut_is_not_cut() {
        let mut ladder = Ladder::DOWN;
        ladder.climb(Failure::Broken, false, EPISODE, at(0));
        assert_eq!(
            ladder.climb(Failure::Broken, false, EPISODE, at(1)),
            Climb::GiveUp
        );
    }

    #[test]
    fn an_episode_ends_with_a_command_that_the_device_ended() {
        let mut ladder = Ladder::DOWN;
        ladder.climb(Failure::Reset, true, EPISODE, at(0));
        ladder.succeeded();
        assert_eq!(ladder, Ladder::DOWN);
        assert_eq!(
            ladder.climb(Failure::Reset, true, EPISODE, at(1)),
            Climb::Retry
        );
    }

    #[test]
    fn no_rung_is_begun_after_the_episode_s_time() {
        let mut ladder = Ladder::DOWN;
        ladder.climb(Failure::Reset, true, EPISODE, at(0));
        assert_eq!(
            ladder.climb(Failure::Reset, true, EPISODE, at(21)),
            Climb::GiveUp
        );
    }
}
