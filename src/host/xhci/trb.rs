//! Transfer request blocks: the 16-byte words of every ring.
//!
//! Built by [`transfer`](super::transfer) and [`command`](super::command), taken apart by
//! [`event`](super::event). A [`Trb`] is a value; where it lies and when its cycle bit is written is
//! the rings' affair. Read `xHCI 1.2 §6.4`.

use crate::dma::BusAddress;
use crate::usb::setup::{Direction, SetupPacket};

bitflags::bitflags! {
    /// Bits of a TRB's last word beside its type. Bit 9 has three names (`xHCI 1.2 §6.4.1, §6.4.3`).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) struct Flags: u32 {
        /// The producer's cycle state: the block is handed over.
        const CYCLE = 1 << 0;
        /// Link: the cycle state toggles here.
        const TOGGLE = 1 << 1;
        /// Event: the pointer is data of software's, not a TRB.
        const EVENT_DATA = 1 << 2;
        /// An event on a short packet.
        const INTERRUPT_ON_SHORT = 1 << 2;
        /// More blocks of the same transfer follow.
        const CHAIN = 1 << 4;
        /// An event on completion.
        const INTERRUPT_ON_COMPLETION = 1 << 5;
        /// The parameter holds the data itself.
        const IMMEDIATE = 1 << 6;
        /// The completion event raises no interrupt.
        const BLOCK_INTERRUPT = 1 << 9;
        /// Data and status stage: from the device.
        const FROM_DEVICE = 1 << 16;
    }
}

/// Types of TRBs (`xHCI 1.2 table 6-91`).
pub(super) mod kind {
    pub(in super::super) const NORMAL: u32 = 1;
    pub(in super::super) const SETUP: u32 = 2;
    pub(in super::super) const DATA: u32 = 3;
    pub(in super::super) const STATUS: u32 = 4;
    pub(in super::super) const LINK: u32 = 6;
    pub(in super::super) const ENABLE_SLOT: u32 = 9;
    pub(in super::super) const DISABLE_SLOT: u32 = 10;
    pub(in super::super) const ADDRESS_DEVICE: u32 = 11;
    pub(in super::super) const CONFIGURE_ENDPOINT: u32 = 12;
    pub(in super::super) const EVALUATE_CONTEXT: u32 = 13;
    pub(in super::super) const RESET_ENDPOINT: u32 = 14;
    pub(in super::super) const STOP_ENDPOINT: u32 = 15;
    pub(in super::super) const SET_DEQUEUE: u32 = 16;
    pub(in super::super) const NO_OP_COMMAND: u32 = 23;
    pub(in super::super) const TRANSFER_EVENT: u32 = 32;
    pub(in super::super) const COMMAND_COMPLETION: u32 = 33;
    pub(in super::super) const PORT_CHANGE: u32 = 34;
    pub(in super::super) const HOST_CONTROLLER: u32 = 37;
}

/// Completion codes (`xHCI 1.2 table 6-90`).
pub(super) mod code {
    pub(in super::super) const INVALID: u8 = 0;
    pub(in super::super) const SUCCESS: u8 = 1;
    pub(in super::super) const DATA_BUFFER: u8 = 2;
    pub(in super::super) const BABBLE: u8 = 3;
    pub(in super::super) const TRANSACTION: u8 = 4;
    pub(in super::super) const STALL: u8 = 6;
    pub(in super::super) const RESOURCE: u8 = 7;
    pub(in super::super) const BANDWIDTH: u8 = 8;
    pub(in super::super) const NO_SLOTS: u8 = 9;
    pub(in super::super) const SLOT_NOT_ENABLED: u8 = 11;
    pub(in super::super) const SHORT_PACKET: u8 = 13;
    pub(in super::super) const CONTEXT_STATE: u8 = 19;
    pub(in super::super) const EVENT_RING_FULL: u8 = 21;
    pub(in super::super) const COMMAND_RING_STOPPED: u8 = 24;
    pub(in super::super) const COMMAND_ABORTED: u8 = 25;
    pub(in super::super) const STOPPED: u8 = 26;
    pub(in super::super) const STOPPED_LENGTH_INVALID: u8 = 27;
    pub(in super::super) const STOPPED_SHORT_PACKET: u8 = 28;
    pub(in super::super) const SECONDARY_BANDWIDTH: u8 = 35;
    pub(in super::super) const SPLIT: u8 = 36;
}

/// Bytes of a TRB.
pub(super) const BYTES: usize = 16;

/// The transfer length field of a transfer TRB: 17 bits, up to 64 KiB.
pub(super) const LENGTH_MASK: u32 = 0x1_ffff;

/// A transfer request block, without its place in a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Trb {
    pub(super) parameter: u64,
    pub(super) status: u32,
    /// Type and flags; the cycle bit is clear until the ring sets it.
    pub(super) control: u32,
}

const fn control(kind: u32, flags: Flags) -> u32 {
    kind << 10 | flags.bits()
}

impl Trb {
    /// `length` bytes at `data`, `td_size` packets to come after them (`xHCI 1.2 §6.4.1.1`).
    #[inline]
    pub(super) const fn normal(data: BusAddress, length: u32, td_size: u32, flags: Flags) -> Self {
        Self {
            parameter: data.get(),
            status: length | td_size << 17,
            control: control(kind::NORMAL, flags),
        }
    }

    /// The setup stage (`xHCI 1.2 §6.4.1.2.1`): its transfer type is 0 without data, else 2 or 3
    /// for out and in.
    pub(super) fn setup(packet: SetupPacket) -> Self {
        let transfer_type = match (packet.length, packet.direction()) {
            (0, _) => 0,
            (_, Direction::Out) => 2,
            (_, Direction::In) => 3,
        };
        Self {
            parameter: u64::from_le_bytes(packet.to_bytes()),
            status: 8,
            control: control(kind::SETUP, Flags::IMMEDIATE) | transfer_type << 16,
        }
    }

    /// This normal TRB as the first one of a data stage (`xHCI 1.2 §6.4.1.2.2`).
    pub(super) fn into_data_stage(self, direction: Direction) -> Self {
        let flags = self.control & !(0x3f << 10);
        Self {
            control: flags | control(kind::DATA, from_device(direction)),
            ..self
        }
    }

    /// The status stage, which runs against the data, or in without data
    /// (`xHCI 1.2 §6.4.1.2.3`, `USB 2.0 §8.5.3.1`).
    pub(super) fn status(packet: SetupPacket, flags: Flags) -> Self {
        let direction = if packet.length == 0 {
            Direction::In
        } else {
            packet.direction().reversed()
        };
        Self {
            parameter: 0,
            status: 0,
            control: control(kind::STATUS, flags | from_device(direction)),
        }
    }

    /// The way back to the start of a ring (`xHCI 1.2 §6.4.4.1`).
    pub(super) const fn link(target: BusAddress) -> Self {
        Self {
            parameter: target.get(),
            status: 0,
            control: control(kind::LINK, Flags::TOGGLE),
        }
    }

    /// A command for a slot.
    pub(super) fn command(kind: u32, slot: u8, parameter: u64) -> Self {
        Self {
            parameter,
            status: 0,
            control: control(kind, Flags::empty()) | u32::from(slot) << 24,
        }
    }

    /// A command for the endpoint with the context index `dci` of a slot.
    pub(super) fn endpoint_command(kind: u32, slot: u8, dci: u8, parameter: u64) -> Self {
        let mut trb = Self::command(kind, slot, parameter);
        trb.control |= u32::from(dci) << 16;
        trb
    }

    /// The same for one stream of the endpoint, in Set TR Dequeue Pointer (`xHCI 1.2 §6.4.3.9`).
    pub(super) fn for_stream(mut self, stream: u16) -> Self {
        self.status = u32::from(stream) << 16;
        self
    }

    /// Enable Slot, which has no slot yet but a slot type (`xHCI 1.2 §6.4.3.2`).
    pub(super) fn enable_slot(slot_type: u8) -> Self {
        let mut trb = Self::command(kind::ENABLE_SLOT, 0, 0);
        trb.control |= u32::from(slot_type) << 16;
        trb
    }

    /// An Address Device that sends no SET_ADDRESS (BSR, `xHCI 1.2 §6.4.3.4`): the device stays at
    /// address 0, where endpoint 0 reaches it.
    pub(super) fn without_set_address(mut self) -> Self {
        self.control |= 1 << 9;
        self
    }

    /// The TRB's type.
    #[inline]
    pub(super) const fn kind(&self) -> u32 {
        Self::kind_of(self.control)
    }

    /// The type of a TRB with this last word.
    #[inline]
    pub(super) const fn kind_of(control: u32) -> u32 {
        control >> 10 & 0x3f
    }

    /// Whether any of `flags` is set.
    #[inline]
    pub(super) const fn has(&self, flags: Flags) -> bool {
        self.control & flags.bits() != 0
    }

    /// Of an event: how it ended (`xHCI 1.2 §6.4.2`).
    #[inline]
    pub(super) const fn completion_code(&self) -> u8 {
        (self.status >> 24) as u8
    }

    /// Of a transfer event: bytes that its TRB did not move.
    #[inline]
    pub(super) const fn residue(&self) -> u32 {
        self.status & 0xff_ffff
    }

    /// Of a transfer or command completion event: the slot.
    #[inline]
    pub(super) const fn slot(&self) -> u8 {
        (self.control >> 24) as u8
    }

    /// Of a transfer event: the endpoint's context index.
    #[inline]
    pub(super) const fn dci(&self) -> u8 {
        (self.control >> 16) as u8 & 0x1f
    }

    /// Of a port status change event: the port, counted from 1.
    pub(super) const fn port(&self) -> u8 {
        (self.parameter >> 24) as u8
    }
}

fn from_device(direction: Direction) -> Flags {
    match direction {
        Direction::In => Flags::FROM_DEVICE,
        Direction::Out => Flags::empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normal_trb_has_the_layout_of_figure_6_8() {
        let flags = Flags::CHAIN | Flags::INTERRUPT_ON_SHORT;
        let trb = Trb::normal(BusAddress::new(0x1_2345_6789), 0x1_0000, 31, flags);
        assert_eq!(trb.parameter, 0x1_2345_6789);
        assert_eq!(trb.status, 31 << 17 | 0x1_0000);
        assert_eq!(trb.control, 0x0000_0414);
    }

    #[test]
    fn stages_of_a_read_run_setup_in_out() {
        let packet = SetupPacket::device_descriptor(18);
        let setup = Trb::setup(packet);
        assert_eq!(setup.parameter, 0x0012_0000_0100_0680);
        assert_eq!(setup.status, 8);
        assert_eq!(setup.control, 3 << 16 | 2 << 10 | 0x40);
        let data = Trb::normal(BusAddress::new(0), 18, 0, Flags::INTERRUPT_ON_SHORT);
        assert_eq!(
            data.into_data_stage(Direction::In).control,
            1 << 16 | 3 << 10 | 4
        );
        let status = Trb::status(packet, Flags::INTERRUPT_ON_COMPLETION);
        assert_eq!(status.control, 4 << 10 | 0x20, "out, against the data");
    }

    #[test]
    fn a_request_without_data_has_transfer_type_0_and_status_in() {
        let packet = SetupPacket::set_configuration(1);
        assert_eq!(Trb::setup(packet).control >> 16, 0);
        assert_eq!(Trb::status(packet, Flags::empty()).control >> 16, 1);
        let read_of_nothing = SetupPacket::device_descriptor(0);
        assert_eq!(Trb::setup(read_of_nothing).control >> 16, 0);
        assert_eq!(
            Trb::status(read_of_nothing, Flags::empty()).control >> 16,
            1
        );
    }

    #[test]
    fn commands_name_slot_endpoint_and_slot_type() {
        let stop = Trb::endpoint_command(kind::STOP_ENDPOINT, 5, 3, 0);
        assert_eq!(stop.control, 0x0503_3c00);
        assert_eq!(Trb::enable_slot(0x1f).control, 0x001f_2400);
        let link = Trb::link(BusAddress::new(0x40));
        assert_eq!(link.control, 6 << 10 | 2);
    }

    #[test]
    fn an_event_is_taken_apart() {
        let event = Trb {
            parameter: 0x0700_0000,
            status: 0x0d00_0100,
            control: 0x0203_8001,
        };
        assert_eq!(event.kind(), kind::TRANSFER_EVENT);
        assert_eq!(event.completion_code(), code::SHORT_PACKET);
        assert_eq!(event.residue(), 0x100);
        assert_eq!((event.slot(), event.dci(), event.port()), (2, 3, 7));
    }
}
