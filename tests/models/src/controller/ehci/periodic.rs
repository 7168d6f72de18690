//! The periodic schedule: the frame list and interrupt queue heads (EHCI 1.0 §4.6, §4.10.7,
//! §4.12.2).

use std::collections::BTreeSet;
use std::ops::Range;

use super::ownership::Held;
use super::queue_head::{Pointer, QUEUE_HEAD};
use super::{Ehci, List, timing};
use crate::broken::{broken, require};
use crate::controller::Surroundings;
use crate::device::Nanoseconds;
use crate::memory::Memory;

/// More queue heads than any frame of a sane driver links.
const ENDLESS: usize = 256;

impl Ehci {
    /// The periodic schedule has just been switched on.
    pub(super) fn begin_periodic(&mut self, around: &mut Surroundings<'_>) {
        self.walk_periodic(around);
        self.plan_turn(timing::next_microframe(around.now));
    }

    fn frame_list(&self) -> u64 {
        self.structure(self.operational.periodic_base)
    }

    /// Whether a store hit the frame list while the schedule is on.
    pub(super) fn is_frame_list(&self, range: &Range<u64>) -> bool {
        let base = self.frame_list();
        let length = 4 * u64::from(self.operational.frame_list_length());
        self.operational.is_on(List::Periodic) && range.start < base + length && base < range.end
    }

    /// The frame list as the CPU shows it.
    fn peek_frame_list(&self, memory: &Memory) -> Vec<Pointer> {
        let mut bytes = vec![0; 4 * self.operational.frame_list_length() as usize];
        require!(
            memory.peek(self.frame_list(), &mut bytes),
            "EHCI 1.0 §4.6",
            "the frame list at {:#x} is no coherent memory",
            self.frame_list()
        );
        let words = bytes.chunks_exact(4);
        words
            .map(|word| Pointer(u32::from_le_bytes([word[0], word[1], word[2], word[3]])))
            .collect()
    }

    /// Follows every frame's list as the CPU shows it.
    pub(super) fn walk_periodic(&mut self, around: &mut Surroundings<'_>) {
        let mut linked = BTreeSet::new();
        let mut known = Vec::new();
        for first in self.peek_frame_list(around.memory) {
            if !known.contains(&first) {
                self.walk_frame(around, first, &mut linked);
                known.push(first);
            }
        }
        self.set_periodic(&linked, around.now);
    }

    fn walk_frame(
        &mut self,
        around: &mut Surroundings<'_>,
        first: Pointer,
        linked: &mut BTreeSet<u64>,
    ) {
        let mut link = first;
        let mut steps = 0;
        while !link.ends() {
            check_periodic_link(link);
            let at = self.structure(link.low());
            if self.held.get(at).is_none() {
                self.discover(around, at, List::Periodic);
            }
            linked.insert(at);
            steps += 1;
            require!(
                steps < ENDLESS,
                "EHCI 1.0 §4.6",
                "the periodic list through the queue head at {at:#x} has no end"
            );
            match self.held.get(at) {
                Some(held) => link = held.head.horizontal(),
                None => return,
            }
        }
    }

    /// The periodic schedule's part of the microframe that begins now.
    pub(super) fn run_periodic(&mut self, around: &mut Surroundings<'_>) -> Option<()> {
        if !self.operational.is_on(List::Periodic) {
            return Some(());
        }
        let index = self.operational.frame_index(around.now);
        let frame = index >> 3 & (self.operational.frame_list_length() - 1);
        self.access(around)?;
        let [first] = around
            .memory
            .read_words(self.frame_list() + 4 * u64::from(frame));
        let begun = around.now;
        let result = self.run_frame(around, Pointer(first), index & 7);
        around.now = begun;
        result
    }

    fn run_frame(
        &mut self,
        around: &mut Surroundings<'_>,
        first: Pointer,
        microframe: u32,
    ) -> Option<()> {
        let mut link = first;
        let mut steps = 0;
        while !link.ends() && steps < ENDLESS {
            let at = self.structure(link.low());
            self.access(around)?;
            // Linked behind the model's back, or the store that linked it is not visible yet.
            let Some(held) = self.held.get(at) else {
                return Some(());
            };
            if is_due(held, microframe) {
                self.visit_interrupt(around, at)?;
            }
            let [next] = around.memory.read_words(at);
            link = Pointer(next);
            steps += 1;
        }
        Some(())
    }

    fn visit_interrupt(&mut self, around: &mut Surroundings<'_>, at: u64) -> Option<()> {
        for _ in 0..self.held.get(at)?.head.mult().max(1) {
            let held = self.held.get(at)?;
            if held.head.token().is_halted() || held.stuck {
                break;
            }
            if held.head.is_idle() && !self.advance(around, at)? {
                break;
            }
            let held = self.held.get(at)?;
            let head = &held.head;
            around.now = self.turn.free_at.max(around.now);
            if !head.token().is_active() || held.stuck || !timing::fits(around.now, head.cost()) {
                break;
            }
            self.execute(around, at, List::Periodic)?;
            if self.held.get(at)?.quiet_until.is_some() {
                break;
            }
        }
        Some(())
    }

    /// When an interrupt queue head that has something to do is due next.
    pub(super) fn next_periodic(&self, around: &Surroundings<'_>) -> Option<Nanoseconds> {
        if !self.operational.is_on(List::Periodic) {
            return None;
        }
        let mut heads = self.held.in_list(List::Periodic);
        if !heads.any(|(_, held)| held.has_work()) {
            return self.unreleased(around);
        }
        let list = self.peek_frame_list(around.memory);
        let next = timing::next_microframe(around.now);
        (0..8 * (list.len() as u64 + 1))
            .map(|ahead| next + ahead * timing::MICROFRAME)
            .find(|&at| self.is_frame_due(&list, at))
    }

    /// Whether a queue head is due in the microframe that begins at `at`.
    fn is_frame_due(&self, list: &[Pointer], at: Nanoseconds) -> bool {
        let index = self.operational.frame_index(at);
        let mut link = list[(index >> 3) as usize % list.len()];
        let mut steps = 0;
        while !link.ends() && steps < ENDLESS {
            let Some(held) = self.held.get(self.structure(link.low())) else {
                return false;
            };
            let quiet = held.quiet_until.is_some_and(|until| until > at);
            if held.has_work() && !quiet && is_due(held, index & 7) {
                return true;
            }
            link = held.head.horizontal();
            steps += 1;
        }
        false
    }
}

/// Whether the masks of an interrupt queue head name this microframe.
fn is_due(held: &Held, microframe: u32) -> bool {
    let head = &held.head;
    let split = if head.is_high_speed() {
        0
    } else {
        head.complete_mask()
    };
    (head.start_mask() | split) & 1 << microframe != 0
}

fn check_periodic_link(link: Pointer) {
    require!(
        link.0 & 0x18 == 0,
        "EHCI 1.0 §3.1",
        "reserved bits of the link {:#x} in the periodic schedule",
        link.0
    );
    if link.kind() != QUEUE_HEAD {
        broken!(
            "model",
            "the link {:#x} in the periodic schedule leads to an iTD, siTD or FSTN, which are not \
             modelled",
            link.0
        )
    }
}
