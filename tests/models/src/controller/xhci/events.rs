//! Interrupters and their event rings (xHCI 1.2 §4.9.4, §4.17, §5.5.2, §6.5).
//!
//! The controller produces: it writes an event TRB with its cycle bit, never more than the driver
//! has left room for. With one place left it writes Event Ring Full and holds the rest back.

use std::collections::VecDeque;

use super::operational::EVENT_INTERRUPT;
use super::traits::Signal;
use super::{Due, Xhci};
use crate::broken::{broken, require};
use crate::controller::Surroundings;
use crate::device::Nanoseconds;

const PENDING: u32 = 1;
const ENABLE: u32 = 1 << 1;
const BUSY: u64 = 1 << 3;
const TRB: u64 = 16;

const HOST_CONTROLLER_EVENT: u32 = 37;
const EVENT_RING_FULL: u32 = 21;

#[derive(Clone, Copy, Debug)]
struct Segment {
    base: u64,
    trbs: u64,
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
    table_size: u32,
    table: u64,
    dequeue: u64,
    dequeue_written: bool,
    busy: bool,
    segments: Vec<Segment>,
    /// Where the next event goes: a place counted over all segments.
    enqueue: u64,
    cycle_is_zero: bool,
    held: VecDeque<Held>,
    full: bool,
    /// An event that may interrupt was written, and none has (IPE, §4.17.2).
    wants: bool,
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

    fn places(&self) -> u64 {
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
    fn place_of(&self, address: u64) -> Option<(u64, usize)> {
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

    fn used(&self) -> u64 {
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
    /// §4.2: the primary interrupter's event ring is there before Run/Stop is set.
    pub(super) fn check_primary_interrupter(&self) {
        let primary = &self.interrupters[0];
        require!(
            !primary.segments.is_empty(),
            "xHCI 1.2 §4.2",
            "the event ring of interrupter 0 was not defined before Run/Stop was set"
        );
        require!(
            primary.dequeue_written && primary.place_of(primary.dequeue).is_some(),
            "xHCI 1.2 §4.2",
            "ERDP of interrupter 0 was not programmed before Run/Stop was set"
        );
    }

    pub(super) fn write_table_size(&mut self, index: usize, value: u32) {
        self.check_table_may_change(index);
        require!(
            value >> 16 == 0,
            "xHCI 1.2 §5.5.2.3.1",
            "ERSTSZ = {value:#x}: bits 31:16 are reserved"
        );
        require!(
            value <= 1 << self.traits.event_segments_log2 && (value != 0 || index != 0),
            "xHCI 1.2 §5.5.2.3.1",
            "ERSTSZ = {value} segments; ERST Max allows 1 to {}",
            1 << self.traits.event_segments_log2
        );
        self.interrupters[index].table_size = value;
    }

    fn check_table_may_change(&self, index: usize) {
        require!(
            index != 0 || !self.operational.is_running(),
            "xHCI 1.2 §5.5.2.3.2",
            "the primary event ring was redefined while the controller runs"
        );
    }

    pub(super) fn write_table(&mut self, around: &mut Surroundings<'_>, index: usize, value: u64) {
        self.check_table_may_change(index);
        self.check_memory_released(around, "ERSTBA");
        require!(
            value.is_multiple_of(64),
            "xHCI 1.2 §5.5.2.3.2",
            "ERSTBA = {value:#x} is not a multiple of 64"
        );
        let count = u64::from(self.interrupters[index].table_size);
        require!(
            count != 0,
            "xHCI 1.2 §4.9.4",
            "ERSTBA was written before ERSTSZ"
        );
        let segments = (0..count)
            .map(|number| self.load_segment(around, value + 16 * number))
            .collect();
        let interrupter = &mut self.interrupters[index];
        interrupter.table = value;
        interrupter.segments = segments;
        interrupter.enqueue = 0;
        interrupter.cycle_is_zero = false;
        interrupter.full = false;
    }

    /// §6.5: an entry of the segment table, and the segment that it describes.
    fn load_segment(&self, around: &mut Surroundings<'_>, entry: u64) -> Segment {
        let [low, high, size, reserved] = around.memory.read_words(entry);
        let base = u64::from(high) << 32 | u64::from(low);
        let trbs = u64::from(size);
        require!(
            reserved == 0 && size >> 16 == 0,
            "xHCI 1.2 §6.5",
            "reserved bits of the segment table entry at {entry:#x} are not zero"
        );
        require!(
            base != 0 && base.is_multiple_of(64),
            "xHCI 1.2 §6.5",
            "an event ring segment at {base:#x} is not a multiple of 64"
        );
        require!(
            (16..=4096).contains(&trbs),
            "xHCI 1.2 §6.5",
            "an event ring segment of {trbs} TRBs: 16 to 4096 are allowed"
        );
        self.check_reach(base, "an event ring segment");
        require!(
            !self.crosses(base, TRB * trbs, 0x1_0000),
            "xHCI 1.2 table 6-1",
            "the event ring segment at {base:#x} crosses a multiple of 64 KiB"
        );
        let mut content = vec![0; (TRB * trbs) as usize];
        around.memory.read(base, &mut content);
        require!(
            content.iter().all(|&byte| byte == 0),
            "xHCI 1.2 §4.9.4",
            "the event ring segment at {base:#x} was not cleared"
        );
        Segment { base, trbs }
    }

    pub(super) fn write_dequeue(
        &mut self,
        around: &mut Surroundings<'_>,
        index: usize,
        value: u64,
    ) {
        let interrupter = &mut self.interrupters[index];
        let pointer = value & !0xf;
        let clears_busy = value & BUSY != 0;
        interrupter.dequeue_written = true;
        if interrupter.segments.is_empty() {
            interrupter.dequeue = pointer;
            return;
        }
        let Some((place, segment)) = interrupter.place_of(pointer) else {
            broken!(
                "xHCI 1.2 §5.5.2.3.3",
                "ERDP = {pointer:#x} is in no segment of the event ring"
            )
        };
        require!(
            value & 7 == segment as u64 & 7,
            "xHCI 1.2 §5.5.2.3.3",
            "ERDP names segment {} but points into segment {segment}",
            value & 7
        );
        if interrupter.place_of(interrupter.dequeue).is_some() {
            let places = interrupter.places();
            let (old, _) = interrupter
                .place_of(interrupter.dequeue)
                .unwrap_or_default();
            let step = (place + places - old) % places;
            require!(
                step <= interrupter.used(),
                "xHCI 1.2 §4.9.4",
                "ERDP = {pointer:#x} goes back, or beyond the last event"
            );
        }
        interrupter.dequeue = pointer;
        require!(
            clears_busy || !interrupter.busy || interrupter.used() != 0,
            "xHCI 1.2 §4.17.2",
            "the event ring was drained without clearing Event Handler Busy: no interrupt will \
             ever come again"
        );
        if clears_busy {
            interrupter.busy = false;
        }
        self.write_held(around, index);
        self.try_interrupt(around, index);
    }

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

    fn write_held(&mut self, around: &mut Surroundings<'_>, index: usize) {
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
        let address = interrupter.address_of(interrupter.enqueue);
        let mut words = event.words;
        words[3] |= u32::from(!interrupter.cycle_is_zero);
        interrupter.advance();
        interrupter.wants |= event.interrupts;
        around.memory.write_words(address, &words);
        *around.noticed = true;
    }

    /// §4.17.2: IP is set when an event wants it, the driver is not at work (EHB) and moderation is
    /// over.
    fn try_interrupt(&mut self, around: &mut Surroundings<'_>, index: usize) {
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
