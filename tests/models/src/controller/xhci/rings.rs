//! [`Ring`]: how a command or transfer ring is consumed (xHCI 1.2 §4.9, §4.11.5.1).
//!
//! A TRB belongs to the controller from the moment when its cycle bit says so, and may be read from
//! then on at any time. So the model takes a copy at that very moment, and whoever changes the TRB
//! afterwards, or hands over one whose words may not be visible yet, breaks the run.

use std::collections::VecDeque;

use super::trb::{RingKind, Trb, kind};
use crate::broken::{broken, require};
use crate::memory::Memory;

const TRB: u64 = 16;
const SEGMENT_BOUNDARY: u64 = 0x1_0000;
/// More TRBs than any ring of a sane driver holds.
const ENDLESS: usize = 1 << 16;

/// The consumer's side of a ring.
#[derive(Debug)]
pub(super) struct Ring {
    kind: RingKind,
    /// The next TRB to execute, and the cycle bit that makes it the controller's.
    dequeue: u64,
    cycle: bool,
    /// TRBs that the driver has handed over, links left out, oldest first; and for each the
    /// position behind it.
    taken: VecDeque<(Trb, Position)>,
    /// Where the next copy will be taken.
    next: Position,
}

/// A place on a ring with its cycle bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Position {
    pub(super) address: u64,
    pub(super) cycle: bool,
}

impl Ring {
    /// A ring that goes on at `address`.
    pub(super) fn new(kind: RingKind, address: u64, cycle: bool) -> Self {
        let next = Position { address, cycle };
        Self {
            kind,
            dequeue: address,
            cycle,
            taken: VecDeque::new(),
            next,
        }
    }

    /// Where execution goes on.
    pub(super) fn position(&self) -> Position {
        Position {
            address: self.dequeue,
            cycle: self.cycle,
        }
    }

    /// Whether a store of `length` bytes at `at` touches the TRB that will be looked at next.
    pub(super) fn is_next(&self, at: u64, length: u64) -> bool {
        at < self.next.address + TRB && self.next.address < at + length
    }

    /// Forgets the copies, as a stopped endpoint does: the driver may change the ring now.
    pub(super) fn forget(&mut self) {
        *self = Self::new(self.kind, self.dequeue, self.cycle);
    }

    /// Takes copies of all that the driver has handed over.
    pub(super) fn look(&mut self, memory: &mut Memory, addresses_64: bool) {
        let first = self.taken.len();
        let mut steps = 0;
        let mut open = None;
        while let Some(trb) = self.peek(memory) {
            let is_first = self.taken.len() == first && steps == 0;
            check_visible(memory, &trb, is_first);
            trb.check(self.kind);
            open = trb.is_chained().then_some(trb.address);
            if trb.kind() == kind::LINK {
                self.follow(&trb, addresses_64);
            } else {
                self.next = self.behind(&trb);
                self.taken.push_back((trb, self.next));
            }
            steps += 1;
            require!(
                steps < ENDLESS,
                "xHCI 1.2 §4.9.2",
                "all TRBs of the ring belong to the controller: the last must be left free"
            );
        }
        if let Some(address) = open {
            broken!(
                "xHCI 1.2 §4.9.2",
                "the TD that the TRB at {address:#x} is chained into was handed over before it was \
                 whole"
            )
        }
    }

    fn peek(&mut self, memory: &Memory) -> Option<Trb> {
        let address = self.next.address;
        let mut bytes = [0; TRB as usize];
        require!(
            memory.peek(address, &mut bytes),
            "xHCI 1.2 §4.9.2",
            "the ring runs out of coherent memory at {address:#x}"
        );
        let mut words = [0; 4];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        }
        let trb = Trb { address, words };
        (trb.cycle() == self.next.cycle).then_some(trb)
    }

    fn behind(&self, trb: &Trb) -> Position {
        let address = trb.address + TRB;
        require!(
            !address.is_multiple_of(SEGMENT_BOUNDARY),
            "xHCI 1.2 table 6-1",
            "a ring segment crosses a multiple of 64 KiB at {address:#x}"
        );
        Position {
            address,
            cycle: self.next.cycle,
        }
    }

    fn follow(&mut self, link: &Trb, addresses_64: bool) {
        let target = link.pointer();
        require!(
            !link.interrupts(),
            "Policy: no IOC on a link",
            "the Link TRB at {:#x} asks for an event that real controllers write wrongly or not",
            link.address
        );
        require!(
            addresses_64 || target >> 32 == 0,
            "xHCI 1.2 §5.3.6",
            "the link at {:#x} leads beyond a controller without AC64",
            link.address
        );
        require!(
            self.kind != RingKind::Command || !link.is_chained(),
            "xHCI 1.2 §6.4.4.1",
            "the link at {:#x} on the command ring is chained",
            link.address
        );
        self.next = Position {
            address: target,
            cycle: self.next.cycle ^ link.toggles(),
        };
    }

    /// The next TRB, if it has become visible.
    pub(super) fn front(&self, memory: &mut Memory) -> Option<Trb> {
        self.nth(memory, 0)
    }

    /// The TRB `index` places behind the next one.
    pub(super) fn nth(&self, memory: &mut Memory, index: usize) -> Option<Trb> {
        let (copy, _) = self.taken.get(index)?;
        let words: [u32; 4] = memory.read_words(copy.address);
        if words[3] & 1 != copy.words[3] & 1 {
            return None;
        }
        require!(
            words == copy.words,
            "xHCI 1.2 §4.9.2",
            "the TRB at {:#x} was changed after its cycle bit had given it to the controller: \
             {:08x?} became {words:08x?}",
            copy.address,
            copy.words
        );
        Some(*copy)
    }

    /// Whether a chained link lies between the TRB `index` and the one before it.
    pub(super) fn is_behind_link(&self, index: usize) -> bool {
        let Some((trb, _)) = self.taken.get(index) else {
            return false;
        };
        index
            .checked_sub(1)
            .and_then(|before| self.taken.get(before))
            .is_some_and(|(before, _)| before.address + TRB != trb.address)
    }

    /// Goes on behind the next `count` TRBs.
    pub(super) fn advance(&mut self, count: usize) {
        for _ in 0..count {
            if let Some((_, behind)) = self.taken.pop_front() {
                self.dequeue = behind.address;
                self.cycle = behind.cycle;
            }
        }
    }
}

/// What the CPU shows of a TRB must have been released, but for the cycle bit that hands over.
fn check_visible(memory: &Memory, trb: &Trb, is_first: bool) {
    let visible = memory.visible_words(trb.address);
    let words = if is_first { 3 } else { 4 };
    require!(
        visible[..words] == trb.words[..words],
        "Policy: release before the cycle bit",
        "the TRB at {:#x} was handed over while its words {:08x?} may still be under way (visible: \
         {visible:08x?})",
        trb.address,
        trb.words
    );
}
