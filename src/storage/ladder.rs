//! The ladder of recovery: what is tried after a device did not end a command, in which order.
//!
//! | rung | what is done | what it costs |
//! |---|---|---|
//! | 1 | the protocol's own reset, by the transport; then the command again | the command under way |
//! | 1b | over UAS, whose first reset is ABORT TASK: LOGICAL UNIT RESET, likewise | all commands on the unit |
//! | 2 | a reset of the device's port, and the device opened again | all commands on the device |
//! | 3 | its power off and on, where only it or nothing unsafe shares the switch | all that shares it |
//! | 4 | its controller started again, where nothing on it has anything to lose | all on the controller |
//! | 5 | the device is given up | the device |
//!
//! Each rung is tried once in an episode, and none is begun after the episode's time. An episode
//! begins with the first fault and ends when the device ends a command, well or badly: but not when all that it
//! says is that it was reset, as it must behind a rung. A machine
//! without I/O; the stack carries out what it answers.

use crate::time::{Duration, Instant};

/// What giving a device up may take at the end of an episode. Policy: its pipes are stopped and its
/// slot is closed in far less.
const CLOSING: Duration = Duration::from_secs(1);

/// What went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// The device did not end a command, and took its protocol's reset.
    Reset,
    /// It did not take that either, or did not come back from a higher rung.
    Broken,
}

/// What to do about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Climb {
    /// Issue the command again.
    Retry,
    /// Reset the port and open the device again.
    ResetPort,
    /// Take the power away and give it back.
    CyclePower,
    /// Stop the controller and start it again.
    RestartController,
    /// Give the device up.
    GiveUp,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Rung {
    None,
    ProtocolReset,
    UnitReset,
    PortReset,
    PowerCycle,
    ControllerRestart,
}

/// Which rungs are there, beside those that always are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Allowed {
    /// The transport has a second reset of its own, and has just come to that.
    pub(crate) unit_reset: bool,
    /// The device's power may be taken away.
    pub(crate) power_cycle: bool,
    /// Its controller may be started again.
    pub(crate) restart: bool,
}

/// The ladder of one device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ladder {
    rung: Rung,
    began: Option<Instant>,
}

impl Ladder {
    /// No episode.
    pub(crate) const DOWN: Self = Self {
        rung: Rung::None,
        began: None,
    };

    /// Whether there is an episode.
    #[inline]
    #[must_use]
    pub(crate) fn is_climbed(&self) -> bool {
        self.began.is_some()
    }

    /// The device has ended a command: the episode is over, if there was one.
    #[inline]
    pub(crate) fn succeeded(&mut self) {
        if self.began.is_some() {
            *self = Self::DOWN;
        }
    }

    /// How much time the episode leaves a command that is issued again in it: half of what is left, so
    /// that the rungs above have some too if the device hangs once more. A device that answers at all
    /// ends the episode; what was interrupted has no longer than another one then, whatever its own
    /// deadline.
    #[must_use]
    pub(crate) fn time_left(&self, episode: Duration, now: Instant) -> Duration {
        match self.began {
            Some(began) => (began + episode - (now + CLOSING)).half(),
            None => episode,
        }
    }

    /// Whether the port may be reset once more at the end of the ladder, because the device will be used
    /// in another way then: if the episode's time is not over.
    #[must_use]
    pub(crate) fn has_time(&self, episode: Duration, now: Instant) -> bool {
        self.began.is_none_or(|began| now - began < episode)
    }

    /// The device has not ended a command in time: the episode begins, if there was none. What the transport
    /// does about it takes time of it already.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.began.get_or_insert(now);
    }

    /// When the time of the episode is over, of one that begins now if there is none.
    #[must_use]
    pub(crate) fn end(&self, episode: Duration, now: Instant) -> Instant {
        self.began.unwrap_or(now) + episode
    }

    /// The port is reset for the episode's fault although this rung was not come to: so it has been tried.
    pub(crate) fn port_is_reset(&mut self) {
        self.rung = self.rung.max(Rung::PortReset);
    }

    /// Whether it has come to the transport's second reset, and no further.
    #[must_use]
    pub(crate) fn is_at_unit_reset(&self) -> bool {
        self.rung == Rung::UnitReset
    }

    /// The next rung.
    pub(crate) fn climb(
        &mut self,
        failure: Failure,
        allowed: Allowed,
        episode: Duration,
        now: Instant,
    ) -> Climb {
        let began = *self.began.get_or_insert(now);
        if now - began >= episode {
            return Climb::GiveUp;
        }
        let (rung, climb) = match (self.rung, failure) {
            (Rung::None, Failure::Reset) => (Rung::ProtocolReset, Climb::Retry),
            (Rung::ProtocolReset, Failure::Reset) if allowed.unit_reset => {
                (Rung::UnitReset, Climb::Retry)
            }
            (Rung::None | Rung::ProtocolReset | Rung::UnitReset, _) => {
                (Rung::PortReset, Climb::ResetPort)
            }
            (Rung::PortReset, _) if allowed.power_cycle => (Rung::PowerCycle, Climb::CyclePower),
            (Rung::PortReset | Rung::PowerCycle, _) if allowed.restart => {
                (Rung::ControllerRestart, Climb::RestartController)
            }
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

    const ALL: Allowed = Allowed {
        unit_reset: false,
        power_cycle: true,
        restart: true,
    };

    #[test]
    fn every_rung_is_tried_once_and_then_the_device_is_given_up() {
        let mut ladder = Ladder::DOWN;
        let climbs = [0, 1, 2, 3, 4, 5].map(|s| ladder.climb(Failure::Reset, ALL, EPISODE, at(s)));
        let expected = [
            Climb::Retry,
            Climb::ResetPort,
            Climb::CyclePower,
            Climb::RestartController,
            Climb::GiveUp,
            Climb::GiveUp,
        ];
        assert_eq!(climbs, expected);
    }

    #[test]
    fn a_transport_with_a_second_reset_has_one_rung_more() {
        let second = Allowed {
            unit_reset: true,
            ..ALL
        };
        let mut ladder = Ladder::DOWN;
        let climbs = [0, 1, 2].map(|s| ladder.climb(Failure::Reset, second, EPISODE, at(s)));
        assert_eq!(climbs, [Climb::Retry, Climb::Retry, Climb::ResetPort]);
        // It may come to that at once, and has none left then.
        let mut ladder = Ladder::DOWN;
        ladder.climb(Failure::Reset, second, EPISODE, at(0));
        let climb = ladder.climb(Failure::Broken, second, EPISODE, at(1));
        assert_eq!(climb, Climb::ResetPort);
    }

    #[test]
    fn what_the_transport_does_takes_time_of_the_episode() {
        let mut ladder = Ladder::DOWN;
        ladder.begin(at(0));
        assert_eq!(ladder.end(EPISODE, at(3)), at(20));
        assert_eq!(
            ladder.climb(Failure::Broken, ALL, EPISODE, at(4)),
            Climb::ResetPort
        );
        assert_eq!(
            ladder.climb(Failure::Broken, ALL, EPISODE, at(20)),
            Climb::GiveUp
        );
    }

    #[test]
    fn a_device_that_takes_no_protocol_reset_has_its_port_reset_at_once() {
        let mut ladder = Ladder::DOWN;
        assert_eq!(
            ladder.climb(Failure::Broken, ALL, EPISODE, at(0)),
            Climb::ResetPort
        );
    }

    #[test]
    fn rungs_that_are_not_allowed_are_left_out() {
        let second = |power_cycle, restart| {
            let allowed = Allowed {
                unit_reset: false,
                power_cycle,
                restart,
            };
            let mut ladder = Ladder::DOWN;
            ladder.climb(Failure::Broken, allowed, EPISODE, at(0));
            ladder.climb(Failure::Broken, allowed, EPISODE, at(1))
        };
        assert_eq!(second(true, false), Climb::CyclePower);
        assert_eq!(second(false, true), Climb::RestartController);
        assert_eq!(second(false, false), Climb::GiveUp);
    }

    #[test]
    fn a_rung_that_becomes_allowed_is_tried_before_the_device_is_given_up_and_no_lower_one_again() {
        let none = Allowed {
            unit_reset: false,
            power_cycle: false,
            restart: false,
        };
        let mut ladder = Ladder::DOWN;
        ladder.climb(Failure::Broken, none, EPISODE, at(0));
        assert_eq!(
            ladder.climb(Failure::Broken, none, EPISODE, at(1)),
            Climb::GiveUp
        );
        let restart = Allowed {
            restart: true,
            ..none
        };
        let climb = ladder.climb(Failure::Broken, restart, EPISODE, at(2));
        assert_eq!(climb, Climb::RestartController);
        assert_eq!(
            ladder.climb(Failure::Broken, ALL, EPISODE, at(3)),
            Climb::GiveUp
        );
    }

    #[test]
    fn a_device_that_hangs_at_every_rung_leaves_time_to_the_next() {
        let mut ladder = Ladder::DOWN;
        let mut now = at(100);
        for _ in 0..4 {
            let climb = ladder.climb(Failure::Reset, ALL, EPISODE, now);
            assert_ne!(climb, Climb::GiveUp);
            let left = ladder.time_left(EPISODE, now);
            assert!(left >= Duration::from_millis(500), "{climb:?}: {left:?}");
            // It comes back, and hangs again.
            now = now + Duration::from_millis(500) + left;
        }
        assert!(now < at(100) + EPISODE);
        let calm = Ladder::DOWN.time_left(EPISODE, now);
        assert_eq!(calm, EPISODE);
    }

    #[test]
    fn a_port_that_was_reset_ahead_of_its_rung_is_not_reset_again_and_no_higher_rung_is_forgotten()
    {
        let mut ladder = Ladder::DOWN;
        ladder.climb(Failure::Reset, ALL, EPISODE, at(0));
        ladder.port_is_reset();
        assert_eq!(
            ladder.climb(Failure::Broken, ALL, EPISODE, at(1)),
            Climb::CyclePower
        );
        ladder.port_is_reset();
        assert_eq!(
            ladder.climb(Failure::Broken, ALL, EPISODE, at(2)),
            Climb::RestartController
        );
    }

    #[test]
    fn an_episode_ends_with_a_command_that_the_device_ended() {
        let mut ladder = Ladder::DOWN;
        ladder.climb(Failure::Reset, ALL, EPISODE, at(0));
        ladder.succeeded();
        assert_eq!(ladder, Ladder::DOWN);
        assert_eq!(
            ladder.climb(Failure::Reset, ALL, EPISODE, at(1)),
            Climb::Retry
        );
    }

    #[test]
    fn no_rung_is_begun_after_the_episode_s_time() {
        let mut ladder = Ladder::DOWN;
        ladder.climb(Failure::Reset, ALL, EPISODE, at(0));
        assert_eq!(
            ladder.climb(Failure::Reset, ALL, EPISODE, at(21)),
            Climb::GiveUp
        );
    }
}
