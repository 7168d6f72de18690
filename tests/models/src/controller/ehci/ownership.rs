//! [`Ownership`]: what the controller may hold of memory, and who changed it meanwhile.
//!
//! From the moment when software links a queue head, the controller may have read it, and may write
//! its overlay. It lets go of it when the doorbell is answered that was rung after the unlinking
//! (EHCI 1.0 §4.8.2), in the periodic schedule after the frame in which it was unlinked; or when the
//! schedule is off. From the moment when a reachable qTD has its Active bit set it is the
//! controller's, until it is retired. So the model takes copies at those very moments, and whoever
//! changes the original, or hands over what may not be visible yet, breaks the run.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::queue_head::{self, Pointer, QueueHead, check_asynchronous_link};
use super::transfer_descriptor::{self, TOKEN, TransferDescriptor};
use super::{Ehci, List, timing};
use crate::broken::{broken, require};
use crate::controller::Surroundings;
use crate::device::Nanoseconds;
use crate::memory::Memory;

const PAGE: u64 = 4096;

/// A queue head in the controller's hands.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) list: List,
    pub(super) head: QueueHead,
    /// qTDs that were handed over and are not retired.
    given: BTreeMap<u64, TransferDescriptor>,
    /// Inactive qTDs that execution will come to: software's, until it sets their Active bit.
    open: BTreeSet<u64>,
    /// When software took it out of the list.
    unlinked: Option<Nanoseconds>,
    /// It was out of the list when the doorbell was rung.
    marked: bool,
    /// A NAK came, and nothing else is to be expected before.
    pub(super) quiet_until: Option<Nanoseconds>,
    /// Where the horizontal link led at the last visit.
    pub(super) last_link: Option<Pointer>,
    /// The qTD in the overlay is a fault of [`super::TransferFault::Never`].
    pub(super) stuck: bool,
}

impl Held {
    /// The copy of a qTD that was handed over.
    pub(super) fn given(&self, at: u64) -> Option<&TransferDescriptor> {
        self.given.get(&at)
    }

    pub(super) fn retire(&mut self, at: u64) {
        self.given.remove(&at);
    }

    pub(super) fn is_linked(&self) -> bool {
        self.unlinked.is_none()
    }

    /// Whether a visit could lead to a transaction without anything that software still does.
    pub(super) fn has_work(&self) -> bool {
        let token = self.head.token();
        if token.is_halted() || self.stuck {
            return false;
        }
        token.is_active() || !self.given.is_empty()
    }
}

/// All that the controller may hold.
#[derive(Debug, Default)]
pub(super) struct Ownership {
    heads: BTreeMap<u64, Held>,
}

impl Ownership {
    pub(super) fn clear(&mut self) {
        self.heads.clear();
    }

    pub(super) fn clear_list(&mut self, list: List) {
        self.heads.retain(|_, held| held.list != list);
    }

    pub(super) fn get(&self, at: u64) -> Option<&Held> {
        self.heads.get(&at)
    }

    pub(super) fn get_mut(&mut self, at: u64) -> Option<&mut Held> {
        self.heads.get_mut(&at)
    }

    pub(super) fn in_list(&self, list: List) -> impl Iterator<Item = (u64, &Held)> {
        let all = self.heads.iter().map(|(&at, held)| (at, held));
        all.filter(move |(_, held)| held.list == list)
    }

    /// The head of the reclamation list.
    pub(super) fn list_head(&self) -> Option<u64> {
        self.in_list(List::Asynchronous)
            .find(|(_, held)| held.head.is_list_head() && held.is_linked())
            .map(|(at, _)| at)
    }

    pub(super) fn mark_for_doorbell(&mut self) {
        for held in self.heads.values_mut() {
            held.marked = held.list == List::Asynchronous && !held.is_linked();
        }
    }

    pub(super) fn evict_marked(&mut self) {
        self.heads
            .retain(|_, held| !held.marked || held.is_linked());
    }

    /// Periodic queue heads are held to the end of the frame in which they were unlinked, as long as
    /// a controller may cache a frame (§2.2.4).
    fn evict_periodic(&mut self, frame: impl Fn(Nanoseconds) -> u64, now: Nanoseconds) {
        self.heads.retain(|_, held| {
            let gone = held.unlinked.is_some_and(|at| frame(now) > frame(at));
            held.list != List::Periodic || !gone
        });
    }

    /// These queue heads are in the list, all others of it are not.
    fn set_linked(&mut self, list: List, linked: &BTreeSet<u64>, now: Nanoseconds) {
        for (at, held) in &mut self.heads {
            if held.list != list {
                continue;
            }
            held.unlinked = match (linked.contains(at), held.unlinked) {
                (true, _) => None,
                (false, since) => since.or(Some(now)),
            };
        }
    }
}

fn overlap(one: &Range<u64>, start: u64, length: usize) -> bool {
    one.start < start + length as u64 && start < one.end
}

/// What the CPU shows of `N` words, of which the first `count` are there.
fn peek<const N: usize>(memory: &Memory, at: u64, count: usize) -> Option<[u32; N]> {
    let mut bytes = vec![0; 4 * count];
    if !memory.peek(at, &mut bytes) {
        return None;
    }
    let mut words = [0; N];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
    }
    Some(words)
}

/// Whether devices see the same words as the CPU, but for the one at `except`.
fn is_visible(memory: &Memory, at: u64, words: &[u32], except: Option<usize>) -> bool {
    (0..words.len()).step_by(4).all(|chunk| {
        let first = chunk.min(words.len() - 4);
        let seen = memory.visible_words(at + 4 * first as u64);
        (0..4).all(|index| Some(first + index) == except || seen[index] == words[first + index])
    })
}

fn check_page(at: u64, length: usize, what: &str) {
    require!(
        at / PAGE == (at + length as u64 - 1) / PAGE,
        "EHCI 1.0 §3",
        "{what} at {at:#x} of {length} bytes crosses a page"
    );
}

impl Ehci {
    /// Bytes of a queue head and of a qTD of this controller.
    pub(super) fn head_words(&self) -> usize {
        if self.traits.addresses_64 {
            queue_head::WORDS_64
        } else {
            queue_head::WORDS
        }
    }

    pub(super) fn descriptor_words(&self) -> usize {
        if self.traits.addresses_64 {
            transfer_descriptor::WORDS_64
        } else {
            transfer_descriptor::WORDS
        }
    }

    fn peek_head(&self, memory: &Memory, at: u64) -> QueueHead {
        match peek(memory, at, self.head_words()) {
            Some(words) => QueueHead { words },
            None => broken!(
                "EHCI 1.0 §3.6",
                "a schedule leads to {at:#x}, which is no coherent memory"
            ),
        }
    }

    /// Software made a queue head reachable.
    pub(super) fn discover(&mut self, around: &mut Surroundings<'_>, at: u64, list: List) {
        let words = self.head_words();
        check_page(at, 4 * words, "the queue head");
        let head = self.peek_head(around.memory, at);
        require!(
            is_visible(around.memory, at, &head.words[..words], None),
            "Policy: release before linking",
            "the queue head at {at:#x} was linked while its words may still be under way"
        );
        head.check_reachable(at, list);
        let held = Held {
            list,
            head,
            given: BTreeMap::new(),
            open: BTreeSet::new(),
            unlinked: None,
            marked: false,
            quiet_until: None,
            last_link: None,
            stuck: false,
        };
        self.held.heads.insert(at, held);
        self.look(around, at);
    }

    /// Takes copies of all qTDs of a queue head that are the controller's now.
    pub(super) fn look(&mut self, around: &mut Surroundings<'_>, at: u64) {
        let Some(mut held) = self.held.heads.remove(&at) else {
            return;
        };
        let head = held.head;
        let token = head.token();
        let mut ahead = Vec::new();
        if token.is_active() {
            ahead.extend([head.current(), head.next(), head.alternate()]);
        } else if !token.is_halted() {
            ahead.push(head.advance_pointer());
        }
        held.open.clear();
        let mut reached = BTreeSet::new();
        while let Some(pointer) = ahead.pop() {
            let place = self.structure(pointer.low());
            if pointer.ends() || reached.contains(&place) {
                continue;
            }
            let descriptor = self.peek_descriptor(around.memory, place);
            if !descriptor.token().is_active() {
                held.open.insert(place);
                continue;
            }
            reached.insert(place);
            held.given.entry(place).or_insert_with(|| {
                self.take_over(around.memory, place, &descriptor);
                descriptor
            });
            ahead.extend([descriptor.next(), descriptor.alternate()]);
        }
        held.given.retain(|place, _| reached.contains(place));
        self.held.heads.insert(at, held);
    }

    fn peek_descriptor(&self, memory: &Memory, at: u64) -> TransferDescriptor {
        match peek(memory, at, self.descriptor_words()) {
            Some(words) => TransferDescriptor { words },
            None => broken!(
                "EHCI 1.0 §3.5",
                "a queue leads to {at:#x}, which is no coherent memory"
            ),
        }
    }

    fn take_over(&self, memory: &Memory, at: u64, descriptor: &TransferDescriptor) {
        let words = self.descriptor_words();
        check_page(at, 4 * words, "the qTD");
        require!(
            is_visible(memory, at, &descriptor.words[..words], Some(TOKEN)),
            "Policy: release before the Active bit",
            "the qTD at {at:#x} was handed over while its other words may still be under way"
        );
        descriptor.check(at, memory);
    }

    /// The CPU stored to coherent memory.
    pub(super) fn watch_store(&mut self, around: &mut Surroundings<'_>, bus: u64, length: u64) {
        let operational = &self.operational;
        self.held
            .evict_periodic(|at| operational.frame_number(at), around.now);
        let range = bus..bus + length;
        let (head_bytes, descriptor_bytes) = (4 * self.head_words(), 4 * self.descriptor_words());
        let mut relinked = [false; 2];
        for at in self.held.heads.keys().copied().collect::<Vec<_>>() {
            if overlap(&range, at, head_bytes) && self.check_head_store(around, at) {
                let list = self.held.heads[&at].list;
                relinked[usize::from(list == List::Periodic)] = true;
            }
            let held = &self.held.heads[&at];
            let is_hit = |place: &u64| overlap(&range, *place, descriptor_bytes);
            if let Some(&place) = held.given.keys().find(|place| is_hit(place)) {
                self.check_descriptor_store(around, at, place);
            }
            if self.held.heads[&at].open.iter().any(is_hit) {
                self.look(around, at);
            }
        }
        if relinked[0] {
            self.walk_asynchronous(around);
        }
        if relinked[1] || self.is_frame_list(&range) {
            self.walk_periodic(around);
        }
        self.wake(around);
    }

    /// A queue head that the controller holds was stored to: whether its link has changed.
    fn check_head_store(&mut self, around: &mut Surroundings<'_>, at: u64) -> bool {
        let now = self.peek_head(around.memory, at);
        let held = self.held.heads.get_mut(&at).expect("asked for its keys");
        let before = held.head;
        if now == before {
            return false;
        }
        if held.unlinked.is_some() {
            broken_after_unlinking(held.list, at);
        }
        let changed = (1..now.words.len()).find(|&index| now.words[index] != before.words[index]);
        match changed {
            Some(index @ 1..=2) => broken!(
                "EHCI 1.0 §4.8.2",
                "word {index} of the queue head at {at:#x} was changed while the controller holds \
                 it: unlink it and wait for the doorbell's answer first"
            ),
            Some(index) => broken!(
                "EHCI 1.0 §3.6.3",
                "word {index} of the queue head at {at:#x}, in its overlay, was changed while the \
                 controller holds it"
            ),
            None => {
                held.head.words[0] = now.words[0];
                true
            }
        }
    }

    fn check_descriptor_store(&mut self, around: &mut Surroundings<'_>, at: u64, place: u64) {
        let now = self.peek_descriptor(around.memory, place);
        let held = self.held.heads.get_mut(&at).expect("asked for its keys");
        let given = held.given[&place];
        if now == given {
            return;
        }
        if held.unlinked.is_some() {
            broken_after_unlinking(held.list, place);
        }
        let current = held.head.token().is_active()
            && self.operational.segment == (place >> 32) as u32
            && held.head.current().low() == place as u32;
        require!(
            given.is_deactivated_as(&now) && !current,
            "EHCI 1.0 §4.10.2",
            "the qTD at {place:#x} was changed after its Active bit had given it to the controller"
        );
        held.given.remove(&place);
        self.look(around, at);
    }

    /// Follows the asynchronous list from its start as the CPU shows it: all that is linked is found,
    /// all that is not any more is noted.
    pub(super) fn walk_asynchronous(&mut self, around: &mut Surroundings<'_>) {
        let start = self
            .held
            .list_head()
            .unwrap_or_else(|| self.structure(self.operational.async_address));
        let mut linked = BTreeSet::new();
        let mut at = start;
        loop {
            if !self.held.heads.contains_key(&at) {
                self.discover(around, at, List::Asynchronous);
            }
            linked.insert(at);
            let link = self.held.heads[&at].head.horizontal();
            check_asynchronous_link(link, at);
            at = self.structure(link.low());
            if linked.contains(&at) {
                break;
            }
        }
        require!(
            at == start,
            "EHCI 1.0 §4.8.3",
            "the asynchronous list from {start:#x} does not come back to it but to {at:#x}: the \
             head of the list was taken out, or the list is no ring"
        );
        let heads = linked
            .iter()
            .filter(|at| self.held.heads[*at].head.is_list_head())
            .count();
        require!(
            heads == 1,
            "EHCI 1.0 §4.8.3",
            "{heads} queue heads of the asynchronous list have their H bit set, not one"
        );
        self.held
            .set_linked(List::Asynchronous, &linked, around.now);
    }

    /// These queue heads are reachable from the frame list.
    pub(super) fn set_periodic(&mut self, linked: &BTreeSet<u64>, now: Nanoseconds) {
        self.held.set_linked(List::Periodic, linked, now);
    }

    /// Writes what the controller keeps in a queue head: all words but the static ones.
    pub(super) fn store_overlay(&self, around: &mut Surroundings<'_>, at: u64) {
        if let Some(held) = self.held.heads.get(&at) {
            let words = &held.head.words[3..self.head_words()];
            around.memory.write_words(at + 12, words);
        }
    }

    /// When an idle schedule is worth another look although nothing was stored: stores that no
    /// release has covered yet come through at some time.
    pub(super) fn unreleased(&self, around: &Surroundings<'_>) -> Option<Nanoseconds> {
        around
            .memory
            .has_unreleased_stores()
            .then_some(around.now + timing::PATIENCE)
    }
}

fn broken_after_unlinking(list: List, at: u64) -> ! {
    match list {
        List::Asynchronous => broken!(
            "EHCI 1.0 §4.8.2",
            "{at:#x} was used again before Interrupt on Async Advance had followed the unlinking of \
             its queue head"
        ),
        List::Periodic => broken!(
            "EHCI 1.0 §2.2.4",
            "{at:#x} was used again in the frame in which its queue head left the periodic schedule"
        ),
    }
}
