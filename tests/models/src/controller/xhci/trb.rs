//! [`Trb`]: one transfer request block that the driver wrote, and which of its bits are reserved
//! (xHCI 1.2 §6.4).

use crate::broken::{broken, require};

/// TRB types that a driver may write (§6.4.6, table 6-91).
pub(super) mod kind {
    pub(in super::super) const NORMAL: u32 = 1;
    pub(in super::super) const SETUP: u32 = 2;
    pub(in super::super) const DATA: u32 = 3;
    pub(in super::super) const STATUS: u32 = 4;
    pub(in super::super) const LINK: u32 = 6;
    pub(in super::super) const NO_OP: u32 = 8;
    pub(in super::super) const ENABLE_SLOT: u32 = 9;
    pub(in super::super) const DISABLE_SLOT: u32 = 10;
    pub(in super::super) const ADDRESS_DEVICE: u32 = 11;
    pub(in super::super) const CONFIGURE_ENDPOINT: u32 = 12;
    pub(in super::super) const EVALUATE_CONTEXT: u32 = 13;
    pub(in super::super) const RESET_ENDPOINT: u32 = 14;
    pub(in super::super) const STOP_ENDPOINT: u32 = 15;
    pub(in super::super) const SET_DEQUEUE: u32 = 16;
    pub(in super::super) const RESET_DEVICE: u32 = 17;
    pub(in super::super) const NO_OP_COMMAND: u32 = 23;
    pub(in super::super) const TRANSFER_EVENT: u32 = 32;
    pub(in super::super) const COMMAND_COMPLETION: u32 = 33;
    pub(in super::super) const PORT_STATUS_CHANGE: u32 = 34;
}

/// Which ring a TRB is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RingKind {
    /// The command ring.
    Command,
    /// A control endpoint's transfer ring.
    Control,
    /// The transfer ring of a bulk or interrupt endpoint.
    Data,
}

/// A TRB and where it was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Trb {
    pub(super) address: u64,
    pub(super) words: [u32; 4],
}

impl Trb {
    /// Of an event that names no TRB.
    pub(super) const NULL: Self = Self {
        address: 0,
        words: [0; 4],
    };

    pub(super) fn kind(&self) -> u32 {
        self.words[3] >> 10 & 0x3f
    }

    pub(super) fn pointer(&self) -> u64 {
        u64::from(self.words[1]) << 32 | u64::from(self.words[0])
    }

    fn control(&self, bit: u32) -> bool {
        self.words[3] >> bit & 1 != 0
    }

    pub(super) fn cycle(&self) -> bool {
        self.control(0)
    }

    /// Link: Toggle Cycle.
    pub(super) fn toggles(&self) -> bool {
        self.control(1)
    }

    pub(super) fn interrupts_on_short(&self) -> bool {
        self.control(2)
    }

    pub(super) fn is_chained(&self) -> bool {
        self.kind() != kind::SETUP && self.control(4)
    }

    pub(super) fn interrupts(&self) -> bool {
        self.control(5)
    }

    pub(super) fn is_immediate(&self) -> bool {
        self.control(6)
    }

    pub(super) fn blocks_interrupt(&self) -> bool {
        self.control(9)
    }

    /// Data and status stage: the device sends.
    pub(super) fn is_in(&self) -> bool {
        self.control(16)
    }

    /// Setup stage: TRT.
    pub(super) fn transfer_type(&self) -> u32 {
        self.words[3] >> 16 & 3
    }

    /// TRB Transfer Length in bytes, 17 bits.
    pub(super) fn length(&self) -> u32 {
        self.words[2] & 0x1_ffff
    }

    /// TD Size, in packets.
    pub(super) fn td_size(&self) -> u32 {
        self.words[2] >> 17 & 0x1f
    }

    pub(super) fn interrupter(&self) -> usize {
        (self.words[2] >> 22) as usize
    }

    /// Commands: the slot.
    pub(super) fn slot(&self) -> u8 {
        (self.words[3] >> 24) as u8
    }

    /// Commands: the endpoint's index in the device context.
    pub(super) fn endpoint(&self) -> u8 {
        (self.words[3] >> 16 & 0x1f) as u8
    }

    /// §6.4: the TRB may be on this ring, and its reserved bits are zero.
    pub(super) fn check(&self, ring: RingKind) {
        let kind = self.kind();
        let Some((section, reserved)) = reserved_bits(kind) else {
            broken!(
                "xHCI 1.2 §6.4.6",
                "type {kind} of the TRB at {:#x} is reserved, not for a driver, or not modelled",
                self.address
            )
        };
        let allowed = match ring {
            RingKind::Command => kind == kind::LINK || (9..=23).contains(&kind),
            RingKind::Control => {
                matches!(kind, kind::NORMAL..=kind::STATUS | kind::LINK | kind::NO_OP)
            }
            RingKind::Data => matches!(kind, kind::NORMAL | kind::LINK | kind::NO_OP),
        };
        require!(
            allowed,
            "xHCI 1.2 §6.4.6",
            "a TRB of type {kind} at {:#x} does not belong on a ring of kind {ring:?}",
            self.address
        );
        for (index, (word, mask)) in self.words.iter().zip(reserved).enumerate() {
            // `broken!` wants a literal section, and these come from a table.
            assert!(
                word & mask == 0,
                "xHCI 1.2 {section}: word {index} of the TRB at {:#x} is {word:#010x}: bits \
                 {:#010x} are reserved",
                self.address,
                word & mask
            );
        }
    }
}

/// The section that defines a TRB type, and the reserved bits of its four words.
fn reserved_bits(kind: u32) -> Option<(&'static str, [u32; 4])> {
    const NONE: u32 = 0;
    const ALL: u32 = u32::MAX;
    Some(match kind {
        kind::NORMAL => ("§6.4.1.1", [NONE, NONE, NONE, 0xffff_0180]),
        kind::SETUP => ("§6.4.1.2.1", [NONE, NONE, 0x003e_0000, 0xfffc_039e]),
        kind::DATA => ("§6.4.1.2.2", [NONE, NONE, NONE, 0xfffe_0380]),
        kind::STATUS => ("§6.4.1.2.3", [ALL, ALL, 0x003f_ffff, 0xfffe_03cc]),
        kind::NO_OP => ("§6.4.1.4", [ALL, ALL, 0x003f_ffff, 0xffff_03cc]),
        kind::LINK => ("§6.4.4.1", [0xf, NONE, 0x003f_ffff, 0xffff_03cc]),
        kind::NO_OP_COMMAND => ("§6.4.3.1", [ALL, ALL, ALL, 0xffff_03fe]),
        kind::ENABLE_SLOT => ("§6.4.3.2", [ALL, ALL, ALL, 0xffe0_03fe]),
        kind::DISABLE_SLOT => ("§6.4.3.3", [ALL, ALL, ALL, 0x00ff_03fe]),
        kind::ADDRESS_DEVICE => ("§6.4.3.4", [0xf, NONE, ALL, 0x00ff_01fe]),
        kind::CONFIGURE_ENDPOINT => ("§6.4.3.5", [0xf, NONE, ALL, 0x00ff_01fe]),
        kind::EVALUATE_CONTEXT => ("§6.4.3.6", [0xf, NONE, ALL, 0x00ff_03fe]),
        kind::RESET_ENDPOINT => ("§6.4.3.7", [ALL, ALL, ALL, 0x00e0_01fe]),
        kind::STOP_ENDPOINT => ("§6.4.3.8", [ALL, ALL, ALL, 0x0060_03fe]),
        kind::SET_DEQUEUE => ("§6.4.3.9", [NONE, NONE, 0x0000_ffff, 0x00e0_03fe]),
        kind::RESET_DEVICE => ("§6.4.3.10", [ALL, ALL, ALL, 0x00ff_03fe]),
        _ => return None,
    })
}
