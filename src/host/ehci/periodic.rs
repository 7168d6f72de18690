//! The periodic schedule: which frames poll which interrupt endpoint.
//!
//! Called when interrupt endpoints are linked and unlinked. Periods are powers of two of frames, 1 to
//! 32; an endpoint of period p and phase f is polled in the frames that leave f when divided by p.
//! Each frame's list is ordered from the longest period to the shortest. Two endpoints that share a
//! frame share all frames of the longer period, so one pointer behind each queue head serves every
//! frame that it is in: the lists are a forest of intervals that grows together towards period 1.
//!
//! The order is worked out anew from the endpoints at each change, and only pointers are written.
//! There is no account of bandwidth: endpoints are spread, not refused (a boot host has hubs and
//! keyboards only). `EHCI 1.0 §3.3`, `§4.6`, `§4.10.7`, `§4.12.2`.

use super::Ehci;
use super::endpoint::{EndpointRecord, Stage};
use super::queue;
use super::queue_head::{self, Masks};
use super::regs::USBCMD;
use super::transfer_descriptor::LINK_END;
use crate::dma;
use crate::mmio::Bus;
use crate::time::Duration;
use crate::usb::speed::Speed;

/// Entries of the frame list: the reset value of USBCMD.FLS, which every controller has.
pub(super) const FRAMES: usize = 1024;
/// Bytes of the frame list, aligned to as much.
pub(super) const LIST_LENGTH: usize = FRAMES * 4;

/// The longest period in frames. Policy: slower endpoints are polled more often than they ask for,
/// which they must allow (`USB 2.0 §5.7.4`), and a change is found within 32 ms.
const LONGEST_PERIOD: u8 = 32;

/// How long the controller may hold on to an interrupt queue head that was unlinked: until the end
/// of the frame, or of the next one if it fetches ahead (`EHCI 1.0 §4.7.2.1`). Policy: 2 ms.
pub(super) const UNLINK_TIME: Duration = Duration::from_millis(2);

/// Microframes in a frame.
const MICROFRAMES: u8 = 8;

/// When an endpoint is to be polled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    /// Frames from one poll to the next.
    pub(super) period: u8,
    /// In which of them.
    pub(super) phase: u8,
    /// In which microframes.
    pub(super) masks: Masks,
}

/// Frames, or at high speed microframes, between polls: a power of two, as long as the descriptor
/// allows at most.
fn interval(speed: Speed, descriptor: u8) -> u32 {
    match speed {
        // 2^(bInterval - 1) microframes (USB 2.0 §9.6.6).
        Speed::High => 1 << (u32::from(descriptor.clamp(1, 16)) - 1),
        // bInterval frames, rounded down to a power of two.
        _ => 1 << u32::from(descriptor.max(1)).ilog2(),
    }
}

/// Period in frames, and microframes between polls inside a frame (8 if there is one).
fn period(speed: Speed, descriptor: u8) -> (u8, u8) {
    let interval = interval(speed, descriptor);
    let (frames, step) = match speed {
        Speed::High => (interval / 8, interval.min(8)),
        _ => (interval, 8),
    };
    (frames.clamp(1, LONGEST_PERIOD.into()) as u8, step as u8)
}

/// The masks of an endpoint that is polled every `step` microframes, `turn` deciding where.
fn masks(speed: Speed, step: u8, turn: u8) -> Masks {
    match speed {
        Speed::High => {
            let first = turn % step;
            let start = (first..MICROFRAMES)
                .step_by(step.into())
                .fold(0, |mask, microframe| mask | 1 << microframe);
            Masks { start, complete: 0 }
        }
        // The split starts early enough that its three completions, from two microframes later on,
        // lie in the same frame (EHCI 1.0 §4.12.2.1).
        _ => {
            let first = turn % 4;
            Masks {
                start: 1 << first,
                complete: 0b11100 << first,
            }
        }
    }
}

/// Chooses where a new endpoint goes: the phase that fewest others share.
pub(super) fn choose(speed: Speed, descriptor: u8, others: &[EndpointRecord]) -> Slot {
    let (period, step) = period(speed, descriptor);
    let sharing = |phase: u8| {
        others
            .iter()
            .filter(|other| other.period != 0 && meet((period, phase), (other.period, other.phase)))
            .count()
    };
    let phase = (0..period).min_by_key(|phase| sharing(*phase)).unwrap_or(0);
    Slot {
        period,
        phase,
        masks: masks(speed, step, sharing(phase) as u8),
    }
}

/// Whether two (period, phase) pairs have a frame in common: the shorter period decides.
fn meet(one: (u8, u8), other: (u8, u8)) -> bool {
    let shorter = one.0.min(other.0).max(1);
    one.1 % shorter == other.1 % shorter
}

/// The endpoint that follows `after` in the list of a frame, or that is first in it for `None`.
/// `frame` is given as a (period, phase) pair: a single one of the 32, or all that `after` is in.
fn follower(endpoints: &[EndpointRecord], frame: (u8, u8), after: Option<u8>) -> Option<u8> {
    // Longest period first; of the same period, lowest index first.
    let rank = |index: u8, period: u8| (u8::MAX - period, index);
    let floor = after.and_then(|after| {
        let endpoint = endpoints.get(usize::from(after))?;
        Some(rank(after, endpoint.period))
    });
    (0_u8..=u8::MAX)
        .zip(endpoints)
        .filter(|(_, endpoint)| endpoint.stage == Stage::Linked && endpoint.period != 0)
        .filter(|(_, endpoint)| meet(frame, (endpoint.period, endpoint.phase)))
        .map(|(index, endpoint)| rank(index, endpoint.period))
        .filter(|rank| floor.is_none_or(|floor| *rank > floor))
        .min()
        .map(|(_, index)| index)
}

impl<B: Bus> Ehci<'_, B> {
    /// Puts an endpoint, whose stage says linked, into the frames that it has.
    pub(super) fn link_periodic(&mut self, index: u8) {
        // Its own pointer first: nothing leads to it yet.
        self.write_follower(index);
        dma::release();
        self.write_frames();
        dma::release();
        if self.command & USBCMD::PSE::SET.value == 0 {
            self.command |= USBCMD::PSE::SET.value;
            self.write_command();
        }
    }

    /// Takes an endpoint, whose stage says so, out of its frames.
    pub(super) fn unlink_periodic(&mut self) {
        self.write_frames();
        dma::release();
    }

    /// Writes every pointer of the schedule. Those that do not change are written as they were.
    fn write_frames(&self) {
        for (index, endpoint) in (0_u8..=u8::MAX).zip(self.endpoints.iter()) {
            if endpoint.period != 0 && endpoint.stage == Stage::Linked {
                self.write_follower(index);
            }
        }
        let Some(frames) = &self.frames else { return };
        for phase in 0..LONGEST_PERIOD {
            let first = follower(self.endpoints, (LONGEST_PERIOD, phase), None);
            let link = self.periodic_link(first);
            for frame in (usize::from(phase)..FRAMES).step_by(LONGEST_PERIOD.into()) {
                frames.write32(4 * frame, link);
            }
        }
    }

    fn write_follower(&self, index: u8) {
        let Some(endpoint) = self.endpoint(index) else {
            return;
        };
        let next = follower(
            self.endpoints,
            (endpoint.period, endpoint.phase),
            Some(index),
        );
        if let Some(queue) = &endpoint.queue {
            queue
                .memory()
                .write32(queue_head::LINK, self.periodic_link(next));
        }
    }

    fn periodic_link(&self, index: Option<u8>) -> u32 {
        index
            .and_then(|index| self.endpoint(index))
            .and_then(|endpoint| endpoint.queue.as_ref())
            .map_or(LINK_END, |queue| queue::link(queue.memory()))
    }
}

#[cfg(test)]
#[path = "periodic_tests.rs"]
mod tests;
