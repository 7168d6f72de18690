//! Extended capabilities: Supported Protocol, and the legacy one with the firmware's hold (xHCI 1.2
//! §7.1, §7.2, §4.22.1).

use super::traits::{Firmware, Protocol};
use super::{Due, Xhci};
use crate::broken::{broken, require};
use crate::controller::{Surroundings, Width};

const FIRMWARE_OWNS: u32 = 1 << 16;
const SYSTEM_OWNS: u32 = 1 << 24;
/// System management interrupts: on events, errors, a change of owner, PCI commands and BARs.
const FIRMWARE_INTERRUPTS: u32 = 0xe011;
/// "USB " in the order of its bytes.
const NAME: u32 = 0x2042_5355;
const PROTOCOL_WORDS: usize = 4;

/// The legacy capability.
#[derive(Debug)]
pub(super) struct Legacy {
    firmware: Firmware,
    owner: u32,
    control: u32,
}

impl Legacy {
    pub(super) fn new(firmware: Firmware) -> Self {
        let held = firmware != Firmware::Absent;
        Self {
            firmware,
            owner: u32::from(held) * FIRMWARE_OWNS,
            // Firmware that holds a controller has system management interrupts on.
            control: u32::from(held) * FIRMWARE_INTERRUPTS,
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.owner & FIRMWARE_OWNS != 0
    }

    /// Whether an event interrupts the firmware (xHCI 1.2 §7.1.2).
    pub(super) fn interrupts_firmware(&self) -> bool {
        self.control & FIRMWARE_INTERRUPTS != 0
    }

    pub(super) fn release(&mut self) {
        self.owner &= !FIRMWARE_OWNS;
    }

    fn words(&self) -> usize {
        if self.firmware == Firmware::Absent {
            0
        } else {
            2
        }
    }
}

impl Xhci {
    /// Runs of ports of one protocol: it, the first port counted from 0, how many.
    fn protocol_runs(&self) -> Vec<(Protocol, usize, usize)> {
        let mut runs: Vec<(Protocol, usize, usize)> = Vec::new();
        for (port, &protocol) in self.traits.ports.iter().enumerate() {
            match runs.last_mut() {
                Some((last, _, count)) if *last == protocol => *count += 1,
                _ => runs.push((protocol, port, 1)),
            }
        }
        runs
    }

    /// The list of capabilities as words. Each points to the next by a count of words.
    fn extended_words(&self) -> Vec<u32> {
        let runs = self.protocol_runs();
        let mut words = Vec::new();
        if self.legacy.words() != 0 {
            words.extend([1 | 2 << 8 | self.legacy.owner, self.legacy.control]);
        }
        for (index, (protocol, first, count)) in runs.iter().enumerate() {
            let next = if index + 1 == runs.len() {
                0
            } else {
                PROTOCOL_WORDS as u32
            };
            let (revision, slot_type) = match protocol {
                Protocol::Usb2 => (0x0200, self.traits.slot_types[0]),
                Protocol::Usb3 => (0x0300, self.traits.slot_types[1]),
            };
            words.extend([
                2 | next << 8 | revision << 16,
                NAME,
                (*first as u32 + 1) | (*count as u32) << 8,
                u32::from(slot_type),
            ]);
        }
        words
    }

    pub(super) fn extended_length(&self) -> usize {
        4 * (self.legacy.words() + PROTOCOL_WORDS * self.protocol_runs().len())
    }

    pub(super) fn read_extended(&self, local: usize) -> u32 {
        self.extended_words()[local / 4]
    }

    pub(super) fn write_extended(
        &mut self,
        around: &mut Surroundings<'_>,
        local: usize,
        offset: usize,
        width: Width,
        value: u32,
    ) {
        match (self.legacy.words(), local, width) {
            (2, 0, Width::Word) => self.take_ownership(around, value & SYSTEM_OWNS != 0),
            (2, 0, Width::Byte) if offset % 4 == 3 => self.take_ownership(around, value & 1 != 0),
            (2, 4, Width::Word) => self.legacy.control = value & FIRMWARE_INTERRUPTS,
            _ => broken!(
                "xHCI 1.2 §7",
                "{value:#x} was written to a read-only capability ({offset:#x})"
            ),
        }
    }

    fn take_ownership(&mut self, around: &mut Surroundings<'_>, take: bool) {
        require!(
            take || self.legacy.owner & SYSTEM_OWNS == 0 || self.operational.is_halted(),
            "xHCI 1.2 §7.1.1",
            "the controller was given back while it runs"
        );
        if !take {
            self.legacy.owner &= !SYSTEM_OWNS;
        }
        if take && self.legacy.owner & SYSTEM_OWNS == 0 {
            self.legacy.owner |= SYSTEM_OWNS;
            if let Firmware::Releases(after) = self.legacy.firmware {
                self.agenda.add(around.now + after, Due::FirmwareReleases);
            }
        }
    }
}
