//! Interrupters: events written, interrupts raised (xHCI 1.2 §4.9.4, §4.17). Where the rings are and
//! how the driver empties them is in [`event_tables`](super::event_tables).
//!
//! The controller produces: it writes an event TRB with its cycle bit, never more than the driver
//! has left room for. With one place left it writes Event Ring Full and holds the rest back.

use std::collections::{BTreeMap, VecDeque};

use super::operational::EVENT_INTERRUPT;
use super::traits::Signal;
use super::{Due, Xhci};
use crate::broken::require;
use crate::controller::Surroundings;
use crate::device::Nanoseconds;

const PENDING: u32 = 1;
const ENABLE: u32 = 1 << 1;
pub(super) const BUSY: u64 = 1 << 3;
pub(super) const TRB: u64 = 16;

const HOST_CONTROLLER_EVENT: u32 = 37;
const EVENT_RING_FULL: u32 = 21;

#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) base: u64,
    pub(super) trbs: u64,
}

/// An event that waits for room.
#[derive(Clone, Copy, Debug)]
struct Held {
    words: [u32; 4],
    interrupts: bool,
}

/// One interrupter's registers, and the producer side of its event ring.
#[derive(Debug, Default)]
pub(super) struct Interrupter {
    management: u32,
    pub(super) moderation: u32,
    pub(super) table_size: u32,
    pub(super) table: u64,
    pub(super) dequeue: u64,
    pub(super) dequeue_written: bool,
    pub(super) busy: bool,
    pub(super) segments: Vec<Segment>,
    /// What was written to each place.
    written: BTreeMap<u64, [u32; 4]>,
    /// Where the next event goes: a place counted over all segments.
    pub(super) enqueue: u64,
    pub(super) cycle_is_zero: bool,
    held: VecDeque<Held>,
    pub(super) full: bool,
    /// An event that may interrupt was written, and none has (IPE, §4.17.2).
    pub(super) wants: bool,
    quiet_until: Nanoseconds,
    lost: bool,
}

impl Interrupter {
    pub(super) fn read(&self, local: usize) -> u32 {
        match local {
            0x00 => self.management,
            0x04 => self.moderation,
            0x08 => self.table_size,
            0x10 => self.table as u32,
            0x14 => (self.table >> 32) as u32,
            0x18 => self.dequeue as u32 & !0xf | u32::from(self.busy) << 3,
            0x1c => (self.dequeue >> 32) as u32,
            _ => 0,
        }
    }

    pub(super) fn places(&self) -> u64 {
        self.segments.iter().map(|segment| segment.trbs).sum()
    }

    fn address_of(&self, mut place: u64) -> u64 {
        for segment in &self.segments {
            if place < segment.trbs {
                return segment.base + TRB * place;
            }
            place -= segment.trbs;
        }
        unreachable!("places are taken modulo their number")
    }

    /// The place of an address, and the segment that it is in.
    pub(super) fn place_of(&self, address: u64) -> Option<(u64, usize)> {
        let mut before = 0;
        for (index, segment) in self.segments.iter().enumerate() {
            let end = segment.base + TRB * segment.trbs;
            if (segment.base..end).contains(&address) {
                return Some((before + (address - segment.base) / TRB, index));
            }
            before += segment.trbs;
        }
        None
    }

    pub(super) fn used(&self) -> u64 {
        let (taken, _) = self.place_of(self.dequeue).unwrap_or((0, 0));
        (self.enqueue + self.places() - taken) % self.places()
    }

    fn advance(&mut self) {
        self.enqueue += 1;
        if self.enqueue == self.places() {
            self.enqueue = 0;
            self.cycle_is_zero = !self.cycle_is_zero;
        }
    }
}

impl Xhci {
    pub(super) fn write_management(
        &mut self,
        around: &mut Surroundings<'_>,
        index: usize,
        value: u32,
    ) {
        require!(
            value & !(PENDING | ENABLE) == 0,
            "xHCI 1.2 §5.5.2.1",
            "IMAN = {value:#x}: bits 31:2 are reserved"
        );
        let event_interrupt = self.operational.status & EVENT_INTERRUPT != 0;
        let interrupter = &mut self.interrupters[index];
        if value & PENDING != 0 && interrupter.management & PENDING != 0 {
            require!(
                !event_interrupt,
                "xHCI 1.2 §5.4.2",
                "IMAN.IP was cleared before USBSTS.EINT: an interrupt between the two is lost"
            );
            interrupter.management &= !PENDING;
            interrupter.lost = false;
            self.begin_moderation(around, index);
        }
        let interrupter = &mut self.interrupters[index];
        interrupter.management = interrupter.management & PENDING | value & ENABLE;
        self.try_interrupt(around, index);
    }

    /// §4.17.2: IMODI counts in units of 250 ns from the moment when IP was cleared.
    fn begin_moderation(&mut self, around: &mut Surroundings<'_>, index: usize) {
        let interval = u64::from(self.interrupters[index].moderation & 0xffff) * 250;
        self.interrupters[index].quiet_until = around.now + interval;
        if interval != 0 {
            self.agenda
                .add(around.now + interval, Due::Moderated(index));
        }
    }

    pub(super) fn moderation_ends(&mut self, around: &mut Surroundings<'_>, index: usize) {
        self.try_interrupt(around, index);
    }

    /// Writes an event, or holds it back until there is room. `words` come without type-specific
    /// checks and without the cycle bit.
    pub(super) fn post_event(
        &mut self,
        around: &mut Surroundings<'_>,
        index: usize,
        words: [u32; 4],
        interrupts: bool,
    ) {
        if self.dma_cut || self.interrupters[index].segments.is_empty() {
            return;
        }
        self.interrupters[index]
            .held
            .push_back(Held { words, interrupts });
        self.write_held(around, index);
        self.try_interrupt(around, index);
        self.scribble(around);
    }

    pub(super) fn write_held(&mut self, around: &mut Surroundings<'_>, index: usize) {
        if !self.operational.is_running() {
            return;
        }
        loop {
            let interrupter = &mut self.interrupters[index];
            let free = interrupter.places() - 1 - interrupter.used();
            if free >= 2 {
                interrupter.full = false;
            }
            if interrupter.full || free == 0 {
                return;
            }
            if free == 1 && !interrupter.held.is_empty() {
                interrupter.full = true;
                let words = [0, 0, EVENT_RING_FULL << 24, HOST_CONTROLLER_EVENT << 10];
                self.write_event(
                    around,
                    index,
                    Held {
                        words,
                        interrupts: true,
                    },
                );
                return;
            }
            let Some(event) = interrupter.held.pop_front() else {
                return;
            };
            self.write_event(around, index, event);
        }
    }

    fn write_event(&mut self, around: &mut Surroundings<'_>, index: usize, event: Held) {
        let interrupter = &mut self.interrupters[index];
        let place = interrupter.enqueue;
        let address = interrupter.address_of(place);
        let mut words = event.words;
        words[3] |= u32::from(!interrupter.cycle_is_zero);
        let kept = interrupter.written.insert(place, words).unwrap_or_default();
        require!(
            around.memory.visible_words(address) == kept,
            "xHCI 1.2 §4.9.4",
            "the driver wrote to the event ring at {address:#x}, which is the controller's"
        );
        interrupter.advance();
        interrupter.wants |= event.interrupts;
        around.memory.write_words(address, &words);
        *around.noticed = true;
    }

    /// §4.17.2: IP is set when an event wants it, the driver is not at work (EHB) and moderation is
    /// over.
    pub(super) fn try_interrupt(&mut self, around: &mut Surroundings<'_>, index: usize) {
        let enabled = self.operational.interrupts_enabled();
        let interrupter = &mut self.interrupters[index];
        if !interrupter.wants || interrupter.busy || around.now < interrupter.quiet_until {
            return;
        }
        interrupter.wants = false;
        interrupter.busy = true;
        if interrupter.management & PENDING != 0 {
            return;
        }
        interrupter.management |= PENDING;
        self.operational.status |= EVENT_INTERRUPT;
        interrupter.lost = self.faults.lost_interrupts != 0;
        if interrupter.lost {
            self.faults.lost_interrupts -= 1;
        }
        let signals = enabled && interrupter.management & ENABLE != 0;
        if self.traits.signal == Signal::Message && signals {
            interrupter.management &= !PENDING;
            if !interrupter.lost {
                self.interrupts += 1;
            }
            self.begin_moderation(around, index);
        }
    }

    /// The wired level: some interrupter is pending and enabled, interrupts are on, and the
    /// controller's own status says so.
    pub(super) fn update_line(&mut self) {
        let pending = |one: &Interrupter| {
            one.management & (PENDING | ENABLE) == PENDING | ENABLE && !one.lost
        };
        let line = self.traits.signal == Signal::Wired
            && self.death.is_none()
            && self.operational.interrupts_enabled()
            && self.operational.status & EVENT_INTERRUPT != 0
            && self.interrupters.iter().any(pending);
        if line && !self.line {
            self.interrupts += 1;
        }
        self.line = line;
    }
}
