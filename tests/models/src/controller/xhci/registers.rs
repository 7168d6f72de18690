//! The register map: which register an access reaches, and whether it may be made so.
//!
//! Widths and the order of 64-bit halves: xHCI 1.2 §5.1. What may be written while the controller
//! resets or is not ready: §5.4.1 (HCRST) and §5.4.2 (CNR).

use super::{Death, Xhci};
use crate::broken::{broken, require};
use crate::controller::{Surroundings, Width};

/// The low half of a 64-bit register was written, and waits for the high half.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingHalf {
    offset: usize,
    low: u32,
}

/// A register, and where it is in its set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Capability(usize),
    Operational(usize),
    Port(usize, usize),
    Microframe,
    Interrupter(usize, usize),
    Doorbell(usize),
    Extended(usize),
    Nothing,
}

const USBCMD: usize = 0x00;
const USBSTS: usize = 0x04;
const PAGESIZE: usize = 0x08;
const DNCTRL: usize = 0x14;
const CRCR: usize = 0x18;
const DCBAAP: usize = 0x30;
const CONFIG: usize = 0x38;
const PORTS: usize = 0x400;

const IMAN: usize = 0x00;
const IMOD: usize = 0x04;
const ERSTSZ: usize = 0x08;
const ERSTBA: usize = 0x10;
const ERDP: usize = 0x18;

impl Xhci {
    fn place(&self, offset: usize) -> Place {
        let operational = usize::from(self.traits.capability_length);
        let runtime = self.traits.runtime_offset;
        let doorbells = self.traits.doorbell_offset;
        let extended = self.traits.extended_offset;
        let ports = operational + PORTS;
        let interrupters = runtime + 0x20;
        if offset < operational {
            return Place::Capability(offset);
        }
        if (ports..ports + 0x10 * self.ports.len()).contains(&offset) {
            return Place::Port((offset - ports) / 0x10, (offset - ports) % 0x10);
        }
        if (operational..operational + 0x3c).contains(&offset) {
            return Place::Operational(offset - operational);
        }
        if offset == runtime {
            return Place::Microframe;
        }
        if (interrupters..interrupters + 0x20 * self.interrupters.len()).contains(&offset) {
            let local = offset - interrupters;
            return Place::Interrupter(local / 0x20, local % 0x20);
        }
        if (doorbells..doorbells + 4 * self.slots.len()).contains(&offset) {
            return Place::Doorbell((offset - doorbells) / 4);
        }
        if (extended..extended + self.extended_length()).contains(&offset) {
            return Place::Extended(offset - extended);
        }
        Place::Nothing
    }

    pub(super) fn read_register(
        &mut self,
        around: &mut Surroundings<'_>,
        offset: usize,
        width: Width,
    ) -> u32 {
        if self.death == Some(Death::AllOnes) {
            return u32::MAX >> (32 - 8 * width.bytes());
        }
        check_width(self.place(offset & !3), offset, width);
        let word = self.read_word(around, offset & !3);
        let shift = 8 * (offset % 4);
        (word >> shift) & (u32::MAX >> (32 - 8 * width.bytes()))
    }

    fn read_word(&mut self, around: &mut Surroundings<'_>, offset: usize) -> u32 {
        match self.place(offset) {
            Place::Capability(local) => self.read_capability(local),
            Place::Operational(USBCMD) => self.operational.command(),
            Place::Operational(USBSTS) => self.operational.status(),
            Place::Operational(PAGESIZE) => (self.traits.page_size >> 12) as u32,
            Place::Operational(DNCTRL) => self.operational.notifications,
            // All of CRCR but CRR reads as zero (§5.4.5).
            Place::Operational(CRCR) => u32::from(self.commands.is_running()) << 3,
            Place::Operational(DCBAAP) => self.operational.device_contexts as u32,
            Place::Operational(local) if local == DCBAAP + 4 => {
                (self.operational.device_contexts >> 32) as u32
            }
            Place::Operational(CONFIG) => self.operational.config,
            Place::Port(port, 0) => self.ports[port].status_and_control(),
            Place::Microframe => self.microframe(around.now),
            Place::Interrupter(index, local) => self.interrupters[index].read(local),
            Place::Extended(local) => self.read_extended(local),
            Place::Operational(_) | Place::Port(..) | Place::Doorbell(_) | Place::Nothing => 0,
        }
    }

    pub(super) fn write_register(
        &mut self,
        around: &mut Surroundings<'_>,
        offset: usize,
        width: Width,
        value: u32,
    ) {
        if self.death == Some(Death::AllOnes) {
            return;
        }
        let place = self.place(offset & !3);
        check_width(place, offset, width);
        self.check_readiness(place);
        self.check_halves(place, offset);
        match place {
            Place::Operational(USBCMD) => self.write_command(around, value),
            Place::Operational(USBSTS) => self.write_status(around, value),
            Place::Operational(DNCTRL) => {
                require!(
                    value >> 16 == 0,
                    "xHCI 1.2 §5.4.4",
                    "DNCTRL bits 31:16 are reserved"
                );
                self.operational.notifications = value;
            }
            Place::Operational(CONFIG) => self.write_config(value),
            Place::Operational(CRCR | DCBAAP) | Place::Interrupter(_, ERSTBA | ERDP) => {
                self.write_low(around, offset, value);
            }
            Place::Operational(local) if local == CRCR + 4 || local == DCBAAP + 4 => {
                self.write_high(around, offset, value);
            }
            Place::Interrupter(_, local) if local == ERSTBA + 4 || local == ERDP + 4 => {
                self.write_high(around, offset, value);
            }
            Place::Interrupter(index, IMAN) => self.write_management(around, index, value),
            Place::Interrupter(index, IMOD) => self.interrupters[index].moderation = value,
            Place::Interrupter(index, ERSTSZ) => self.write_table_size(index, value),
            Place::Port(port, 0) => self.write_port(around, port, value),
            Place::Port(port, local) => self.write_port_power(port, local, value),
            Place::Doorbell(index) => self.ring_doorbell(around, index, value),
            Place::Extended(local) => self.write_extended(around, local, offset, width, value),
            Place::Capability(_) => {
                broken!(
                    "xHCI 1.2 §5.3",
                    "capability registers are read-only ({offset:#x})"
                )
            }
            Place::Microframe => broken!("xHCI 1.2 §5.5.1", "MFINDEX is read-only"),
            Place::Operational(_) | Place::Interrupter(..) | Place::Nothing => {
                broken!(
                    "xHCI 1.2 §5",
                    "{value:#x} was written to {offset:#x}: no register"
                )
            }
        }
    }

    /// §5.4.1, §5.4.2: what may not be written during a reset.
    fn check_readiness(&self, place: Place) {
        let operational = matches!(place, Place::Operational(_) | Place::Port(..));
        let runtime = matches!(place, Place::Interrupter(..) | Place::Microframe);
        let doorbell = matches!(place, Place::Doorbell(_));
        require!(
            !(self.operational.is_resetting() && (operational || runtime || doorbell)),
            "xHCI 1.2 §5.4.1",
            "a register was written before HCRST had cleared: {place:?}"
        );
        let status = place == Place::Operational(USBSTS);
        require!(
            self.operational.is_ready() || status || !(operational || doorbell),
            "xHCI 1.2 §5.4.2",
            "a register was written while the controller is not ready (CNR): {place:?}"
        );
        require!(
            !(self.legacy.is_held() && (operational || runtime || doorbell)),
            "xHCI 1.2 §4.22.1",
            "a register was written while the firmware owns the controller: {place:?}"
        );
    }

    /// §5.1: the two halves of a 64-bit register come in order, with nothing between but what an
    /// interrupt's acknowledgement writes.
    fn check_halves(&self, place: Place, offset: usize) {
        let Some(pending) = self.pending_half else {
            return;
        };
        let acknowledgement = matches!(
            place,
            Place::Operational(USBSTS) | Place::Interrupter(_, IMAN)
        );
        require!(
            offset == pending.offset + 4 || acknowledgement,
            "xHCI 1.2 §5.1",
            "the low half of {:#x} was written, then {offset:#x} instead of its high half",
            pending.offset
        );
    }

    fn write_low(&mut self, around: &mut Surroundings<'_>, offset: usize, low: u32) {
        if let Place::Interrupter(index, ERDP) = self.place(offset)
            && self.traits.erdp_by_low_half
        {
            let high = self.interrupters[index].dequeue >> 32 << 32;
            self.write_dequeue(around, index, high | u64::from(low));
        } else if self.traits.addresses_64 && !self.is_ring_control(offset, low) {
            self.pending_half = Some(PendingHalf { offset, low });
        } else {
            self.write_whole(around, offset, u64::from(low));
        }
    }

    /// Stop and abort are bits of CRCR's low half; the pointer is ignored then (§5.4.5), so the
    /// high half need not follow.
    fn is_ring_control(&self, offset: usize, low: u32) -> bool {
        self.place(offset) == Place::Operational(CRCR) && low & 0b110 != 0
    }

    fn write_high(&mut self, around: &mut Surroundings<'_>, offset: usize, high: u32) {
        if !self.traits.addresses_64 {
            require!(
                high == 0,
                "xHCI 1.2 §5.1",
                "an address of more than 32 bits for a controller without AC64 ({offset:#x})"
            );
            return;
        }
        if self.place(offset - 4) == Place::Operational(CRCR) && self.pending_half.is_none() {
            return;
        }
        if let Place::Interrupter(index, ERDP) = self.place(offset - 4)
            && self.traits.erdp_by_low_half
        {
            let dequeue = &mut self.interrupters[index].dequeue;
            *dequeue = u64::from(high) << 32 | *dequeue & 0xffff_ffff;
            return;
        }
        let Some(pending) = self.pending_half.take() else {
            broken!(
                "xHCI 1.2 §5.1",
                "the high half of {:#x} was written before its low half",
                offset - 4
            )
        };
        let value = u64::from(high) << 32 | u64::from(pending.low);
        self.write_whole(around, pending.offset, value);
    }

    fn write_whole(&mut self, around: &mut Surroundings<'_>, offset: usize, value: u64) {
        match self.place(offset) {
            Place::Operational(CRCR) => self.write_command_ring(around, value),
            Place::Operational(_) => self.write_device_contexts(value),
            Place::Interrupter(index, ERSTBA) => self.write_table(around, index, value),
            Place::Interrupter(index, _) => self.write_dequeue(around, index, value),
            other => unreachable!("{other:?} has no halves"),
        }
    }

    fn read_capability(&self, local: usize) -> u32 {
        let traits = &self.traits;
        match local {
            0x00 => u32::from(traits.capability_length) | u32::from(traits.version) << 16,
            0x04 => {
                u32::from(traits.slots)
                    | u32::from(traits.interrupters) << 8
                    | (self.ports.len() as u32) << 24
            }
            0x08 => {
                let pages = traits.scratchpads as u32;
                // The high five bits of the count are bits 25:21, the low five bits 31:27.
                u32::from(traits.event_segments_log2) << 4
                    | (pages >> 5 & 0x1f) << 21
                    | (pages & 0x1f) << 27
            }
            0x10 => {
                u32::from(traits.addresses_64)
                    | u32::from(traits.large_contexts) << 2
                    | u32::from(traits.port_power_control) << 3
                    | u32::from(traits.stream_array_size) << 12
                    | traits.other_capabilities
                    | ((traits.extended_offset / 4) as u32) << 16
            }
            0x14 => traits.doorbell_offset as u32,
            0x18 => traits.runtime_offset as u32,
            _ => 0,
        }
    }

    /// §5.5.1: counts microframes while the controller runs.
    fn microframe(&self, now: u64) -> u32 {
        if self.operational.is_running() {
            (now / super::timing::MICROFRAME) as u32 & 0x3fff
        } else {
            0
        }
    }
}

/// §5.1: registers are accessed in their own width. CAPLENGTH and HCIVERSION are narrow ones; the
/// two semaphores of the legacy capability may be accessed as bytes (§7.1.1).
fn check_width(place: Place, offset: usize, width: Width) {
    let narrow = matches!(
        (place, offset % 4, width),
        (Place::Capability(0), 0, Width::Byte)
            | (Place::Capability(0), 2, Width::Half)
            | (Place::Extended(0), 2 | 3, Width::Byte)
    );
    require!(
        narrow || (width == Width::Word && offset.is_multiple_of(4)),
        "xHCI 1.2 §5.1",
        "an access of {} bytes at {offset:#x}",
        width.bytes()
    );
}
