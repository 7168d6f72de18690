//! Queue heads: the fields that say which endpoint, and the overlay that says how far it is.
//!
//! Called by [`queue`](super::queue) and by the schedules. The controller keeps a copy of a queue
//! head that it works on, so a linked one is written in one place only: its horizontal pointer.
//! All else is written while it is out of its schedule and the controller has said so.
//! `EHCI 1.0 §3.6`, appendix B for the extended pointers of the overlay.

use tock_registers::fields::FieldValue;
use tock_registers::register_bitfields;

use super::transfer_descriptor::{LINK_END, PAGE_COUNT};
use crate::dma::{Allocation, BusAddress};
use crate::host::EndpointKind;
use crate::usb::speed::Speed;

register_bitfields! [u32,
    /// Endpoint characteristics (§3.6.2, table 3-19).
    pub(super) CHARACTERISTICS [
        /// USB address.
        ADDRESS OFFSET(0) NUMBITS(7) [],
        /// Endpoint number.
        ENDPOINT OFFSET(8) NUMBITS(4) [],
        /// Speed.
        EPS OFFSET(12) NUMBITS(2) [
            /// 12 Mb/s.
            Full = 0,
            /// 1.5 Mb/s.
            Low = 1,
            /// 480 Mb/s.
            High = 2,
        ],
        /// The toggle comes from each qTD rather than from the overlay.
        DTC OFFSET(14) NUMBITS(1) [],
        /// Head of the asynchronous list.
        H OFFSET(15) NUMBITS(1) [],
        /// Bytes of a full packet.
        MAX_PACKET OFFSET(16) NUMBITS(11) [],
        /// A control endpoint that is not high-speed.
        C OFFSET(27) NUMBITS(1) [],
        /// How many NAKs are taken before the queue head is passed over.
        RL OFFSET(28) NUMBITS(4) [],
    ],
    /// Endpoint capabilities (§3.6.2, table 3-20).
    pub(super) CAPABILITIES [
        /// Microframes in which an interrupt transaction starts.
        S_MASK OFFSET(0) NUMBITS(8) [],
        /// Microframes in which a split transaction is completed.
        C_MASK OFFSET(8) NUMBITS(8) [],
        /// Address of the hub that splits.
        HUB_ADDRESS OFFSET(16) NUMBITS(7) [],
        /// Its port, counted from 1.
        HUB_PORT OFFSET(23) NUMBITS(7) [],
        /// Transactions a microframe.
        MULT OFFSET(30) NUMBITS(2) [],
    ],
];

/// Bytes of a queue head: 48 on 32-bit controllers, 68 on 64-bit ones, padded to a power of two so
/// that none spans a 4 KiB page.
pub(super) const LENGTH: usize = 128;

/// Byte offset of the horizontal pointer.
pub(super) const LINK: usize = 0x00;
const WORDS: usize = 0x04;
const CURRENT: usize = 0x0c;
/// Byte offset of the overlay: next, alternate, token, pages.
const OVERLAY: usize = 0x10;
const STATUS: usize = 0x18;
const PAGES: usize = 0x1c;

/// NAKs before a high-speed queue head is passed over until the next microframe, or until the list has
/// been round once without work (`EHCI 1.0 §4.9`). Policy: one. A status read that waits for the disk
/// would take a slot in every round without it; and with Linux's four, the polls of a microframe are
/// worth one of its 13 data packets.
const NAK_RELOAD: u32 = 1;

/// The hub that serves an endpoint which is not high-speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Split {
    /// Its USB address.
    pub(super) hub: u8,
    /// Its port, counted from 1.
    pub(super) port: u8,
}

/// Microframes of an interrupt endpoint; zero for the asynchronous list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Masks {
    /// When transactions start.
    pub(super) start: u8,
    /// When splits are completed.
    pub(super) complete: u8,
}

/// All that a queue head says about its endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Identity {
    /// USB address of the device.
    pub(super) address: u8,
    /// Endpoint number.
    pub(super) number: u8,
    /// Kind.
    pub(super) kind: EndpointKind,
    /// Low, full or high.
    pub(super) speed: Speed,
    /// Bytes of a full packet.
    pub(super) max_packet: u16,
    /// For full and low speed.
    pub(super) split: Option<Split>,
    /// For interrupt endpoints.
    pub(super) masks: Masks,
}

impl Identity {
    /// The two words of static endpoint state.
    pub(super) fn words(&self) -> [u32; 2] {
        [self.characteristics().value, self.capabilities().value]
    }

    fn characteristics(&self) -> FieldValue<u32, CHARACTERISTICS::Register> {
        use CHARACTERISTICS::{ADDRESS, C, DTC, ENDPOINT, EPS, MAX_PACKET, RL};
        let high = self.speed == Speed::High;
        let control = self.kind == EndpointKind::Control;
        let reload = if high && self.kind != EndpointKind::Interrupt {
            NAK_RELOAD
        } else {
            0
        };
        ADDRESS.val(self.address.into())
            + ENDPOINT.val(self.number.into())
            + match self.speed {
                Speed::Low => EPS::Low,
                Speed::Full => EPS::Full,
                _ => EPS::High,
            }
            + DTC.val(control.into())
            + MAX_PACKET.val(self.max_packet.into())
            + C.val((control && !high).into())
            + RL.val(reload)
    }

    fn capabilities(&self) -> FieldValue<u32, CAPABILITIES::Register> {
        use CAPABILITIES::{C_MASK, HUB_ADDRESS, HUB_PORT, MULT, S_MASK};
        let split = self.split.unwrap_or(Split { hub: 0, port: 0 });
        S_MASK.val(self.masks.start.into())
            + C_MASK.val(self.masks.complete.into())
            + HUB_ADDRESS.val(split.hub.into())
            + HUB_PORT.val(split.port.into())
            + MULT.val(1)
    }
}

/// A horizontal pointer to the queue head at `bus` (`Typ` = 01, §3.6.1).
pub(super) const fn link_to(bus: BusAddress) -> u32 {
    bus.low() | 0b01 << 1
}

/// Writes which endpoint the queue head is for. It is out of its schedule.
pub(super) fn write_identity(memory: &Allocation, words: [u32; 2]) {
    memory.write_words(WORDS, &words);
}

/// Empties the overlay: the controller goes on at the qTD `next` as soon as that is active, with the
/// toggle and ping state of `token`. The queue head is out of its schedule.
pub(super) fn write_overlay(memory: &Allocation, next: u32, token: u32) {
    memory.write32(CURRENT, 0);
    memory.write_words(OVERLAY, &[next, LINK_END, token]);
    memory.write_words(PAGES, &[0; PAGE_COUNT]);
}

/// The qTD that the overlay is a copy of.
pub(super) fn read_current(memory: &Allocation) -> u32 {
    memory.read32(CURRENT)
}

/// The token as the controller left it in the overlay.
pub(super) fn read_token(memory: &Allocation) -> u32 {
    memory.read32(STATUS)
}

/// The permanent first queue head of the asynchronous list: halted, linked to itself. It gives the
/// controller the mark by which it knows an empty list (§4.8.3), and is never unlinked.
pub(super) fn write_head(memory: &Allocation) {
    use CHARACTERISTICS::{EPS, H, MAX_PACKET};
    let characteristics = H::SET + EPS::High + MAX_PACKET.val(64);
    let halted = super::transfer_descriptor::TOKEN::HALTED::SET;
    memory.write32(LINK, link_to(memory.bus()));
    write_identity(
        memory,
        [characteristics.value, CAPABILITIES::MULT.val(1).value],
    );
    write_overlay(memory, LINK_END, halted.value);
}

#[cfg(test)]
mod tests {
    use super::*;

    const BULK: Identity = Identity {
        address: 5,
        number: 2,
        kind: EndpointKind::Bulk,
        speed: Speed::High,
        max_packet: 512,
        split: None,
        masks: Masks {
            start: 0,
            complete: 0,
        },
    };

    #[test]
    fn a_high_speed_bulk_endpoint_keeps_its_toggle_in_the_overlay() {
        assert_eq!(BULK.words(), [0x1200_2205, 0x4000_0000]);
    }

    #[test]
    fn a_high_speed_control_endpoint_takes_its_toggle_from_each_qtd() {
        let control = Identity {
            number: 0,
            kind: EndpointKind::Control,
            max_packet: 64,
            ..BULK
        };
        assert_eq!(control.words(), [0x1040_6005, 0x4000_0000]);
    }

    #[test]
    fn a_full_speed_control_endpoint_is_marked_and_names_its_hub() {
        let control = Identity {
            number: 0,
            kind: EndpointKind::Control,
            speed: Speed::Full,
            max_packet: 8,
            split: Some(Split { hub: 3, port: 4 }),
            ..BULK
        };
        assert_eq!(control.words(), [0x0808_4005, 0x4203_0000]);
    }

    #[test]
    fn a_low_speed_interrupt_endpoint_has_both_masks_and_no_nak_reload() {
        let interrupt = Identity {
            number: 1,
            kind: EndpointKind::Interrupt,
            speed: Speed::Low,
            max_packet: 8,
            split: Some(Split { hub: 1, port: 2 }),
            masks: Masks {
                start: 0x02,
                complete: 0x38,
            },
            ..BULK
        };
        assert_eq!(interrupt.words(), [0x0008_1105, 0x4101_3802]);
    }
}
