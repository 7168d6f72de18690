//! Event ring segment tables, and how the driver takes events (xHCI 1.2 §4.9.4, §5.5.2, §6.5).

use super::Xhci;
use super::checks::{check_memory_released, crosses};
use super::events::{BUSY, Segment, TRB};
use crate::broken::{broken, require};
use crate::controller::Surroundings;

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
        check_memory_released(around, "ERSTBA");
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
            !crosses(base, TRB * trbs, 0x1_0000),
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
        // An empty ring does not interrupt, whatever was on it (§5.5.2.2).
        interrupter.wants &= interrupter.used() != 0;
        self.write_held(around, index);
        self.try_interrupt(around, index);
    }
}
