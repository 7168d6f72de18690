//! Slot and endpoint contexts, field by field (xHCI 1.2 §6.2). How they are read from memory and
//! written back is in [`context_memory`](super::context_memory).

use crate::broken::require;
use crate::device::Link;

/// The eight words of any context; those with 64 bytes have eight more, all reserved.
pub(super) type Words = [u32; 8];

/// A slot context (§6.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SlotContext(pub(super) Words);

impl SlotContext {
    pub(super) fn route(self) -> u32 {
        self.0[0] & 0xf_ffff
    }

    pub(super) fn speed(self) -> u32 {
        self.0[0] >> 20 & 0xf
    }

    pub(super) fn is_hub(self) -> bool {
        self.0[0] >> 26 & 1 != 0
    }

    pub(super) fn entries(self) -> u32 {
        self.0[0] >> 27
    }

    pub(super) fn root_port(self) -> usize {
        (self.0[1] >> 16 & 0xff) as usize
    }

    pub(super) fn translator_slot(self) -> u32 {
        self.0[2] & 0xff
    }

    pub(super) fn translator_port(self) -> u32 {
        self.0[2] >> 8 & 0xff
    }

    pub(super) fn interrupter(self) -> u32 {
        self.0[2] >> 22
    }

    pub(super) fn link(self) -> Option<Link> {
        Some(match self.speed() {
            1 => Link::Full,
            2 => Link::Low,
            3 => Link::High,
            4 => Link::Super,
            5..=7 => Link::SuperPlus,
            _ => return None,
        })
    }
}

/// An endpoint context (§6.2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EndpointContext(pub(super) Words);

/// Endpoint types (table 6-9).
pub(super) mod endpoint_type {
    pub(in super::super) const BULK_OUT: u32 = 2;
    pub(in super::super) const INTERRUPT_OUT: u32 = 3;
    pub(in super::super) const CONTROL: u32 = 4;
    pub(in super::super) const BULK_IN: u32 = 6;
    pub(in super::super) const INTERRUPT_IN: u32 = 7;
}

impl EndpointContext {
    pub(super) fn interval(self) -> u32 {
        self.0[0] >> 16 & 0xff
    }

    /// Entries of the primary stream array; 0 without streams.
    pub(super) fn stream_entries(self) -> u32 {
        match self.0[0] >> 10 & 0x1f {
            0 => 0,
            exponent => 2 << exponent,
        }
    }

    /// LSA: the primary array has all streams.
    fn is_linear(self) -> bool {
        self.0[0] >> 15 & 1 != 0
    }

    /// HID: only the device starts streams.
    pub(super) fn host_starts_streams(self) -> bool {
        self.0[1] >> 7 & 1 == 0
    }

    pub(super) fn errors_allowed(self) -> u32 {
        self.0[1] >> 1 & 3
    }

    pub(super) fn kind(self) -> u32 {
        self.0[1] >> 3 & 7
    }

    pub(super) fn max_burst(self) -> u32 {
        self.0[1] >> 8 & 0xff
    }

    pub(super) fn max_packet(self) -> u32 {
        self.0[1] >> 16
    }

    pub(super) fn dequeue(self) -> u64 {
        u64::from(self.0[3]) << 32 | u64::from(self.0[2] & !0xf)
    }

    pub(super) fn cycle(self) -> bool {
        self.0[2] & 1 != 0
    }

    fn is_periodic(self) -> bool {
        matches!(
            self.kind(),
            endpoint_type::INTERRUPT_IN | endpoint_type::INTERRUPT_OUT
        )
    }

    fn is_control(self) -> bool {
        self.kind() == endpoint_type::CONTROL
    }

    /// §6.2.3: every field against the endpoint's place and the device's speed.
    pub(super) fn check(self, index: u32, link: Link) {
        let words = self.0;
        require!(
            words[0] & 0xff00_00f8 == 0 && words[1] & 0x41 == 0 && words[2] & 0xe == 0,
            "xHCI 1.2 §6.2.3",
            "reserved bits of the context of endpoint {index} are not zero: {words:08x?}"
        );
        require!(
            words[0] & 7 == 0,
            "xHCI 1.2 §6.2.3",
            "EP State of an input context (endpoint {index}) is not zero"
        );
        self.check_streams(index, link);
        require!(
            words[0] >> 8 & 3 == 0,
            "xHCI 1.2 §6.2.3",
            "Mult of endpoint {index}, which is not a SuperSpeed isochronous one"
        );
        self.check_type(index);
        self.check_packet(index, link);
        self.check_interval(index, link);
        require!(
            self.errors_allowed() != 0,
            "Policy: three errors",
            "CErr of endpoint {index} is 0: the controller would try for ever"
        );
        require!(
            words[4] & 0xffff != 0,
            "xHCI 1.2 §4.14.1.1",
            "Average TRB Length of endpoint {index} is 0"
        );
        self.check_payload(index);
    }

    /// §4.12, §6.2.3: streams are for bulk endpoints at SuperSpeed, and all their fields go together.
    fn check_streams(self, index: u32, link: Link) {
        if self.stream_entries() == 0 {
            require!(
                !self.is_linear() && self.host_starts_streams(),
                "xHCI 1.2 §6.2.3",
                "LSA or HID of endpoint {index}, which has no streams"
            );
            return;
        }
        let is_bulk = matches!(
            self.kind(),
            endpoint_type::BULK_IN | endpoint_type::BULK_OUT
        );
        require!(
            is_bulk && link.is_super(),
            "xHCI 1.2 §6.2.3",
            "MaxPStreams of endpoint {index} at {link:?} speed, of EP Type {}: only SuperSpeed bulk \
             endpoints have streams",
            self.kind()
        );
        require!(
            self.is_linear(),
            "model",
            "secondary stream arrays are not modelled (endpoint {index}: LSA is 0)"
        );
        require!(
            !self.cycle(),
            "xHCI 1.2 §6.2.3",
            "DCS of endpoint {index}, whose pointer is that of a stream array"
        );
    }

    fn check_type(self, index: u32) {
        let is_in = index % 2 == 1;
        let fits = match self.kind() {
            endpoint_type::CONTROL => is_in,
            endpoint_type::BULK_IN | endpoint_type::INTERRUPT_IN => is_in,
            endpoint_type::BULK_OUT | endpoint_type::INTERRUPT_OUT => !is_in,
            _ => false,
        };
        require!(
            fits && (index != 1 || self.is_control()),
            "xHCI 1.2 §6.2.3",
            "EP Type {} does not fit endpoint index {index} (or is isochronous, which is not \
             modelled)",
            self.kind()
        );
    }

    fn check_packet(self, index: u32, link: Link) {
        let size = self.max_packet();
        let fits = match (self.kind(), link) {
            (endpoint_type::CONTROL, Link::Low) => size == 8,
            (endpoint_type::CONTROL, Link::Full) => matches!(size, 8 | 16 | 32 | 64),
            (endpoint_type::CONTROL, Link::High) => size == 64,
            (endpoint_type::CONTROL, _) => size == 512,
            (endpoint_type::BULK_IN | endpoint_type::BULK_OUT, _) => match link {
                Link::Low => false,
                Link::Full => matches!(size, 8 | 16 | 32 | 64),
                Link::High => size == 512,
                Link::Super | Link::SuperPlus => size == 1024,
            },
            (_, Link::Low) => (1..=8).contains(&size),
            (_, Link::Full) => (1..=64).contains(&size),
            (_, _) => (1..=1024).contains(&size),
        };
        require!(
            fits,
            "xHCI 1.2 §6.2.3.1",
            "Max Packet Size {size} is not one for EP Type {} at {link:?} speed (endpoint {index})",
            self.kind()
        );
        let most = match (self.kind(), link) {
            (endpoint_type::CONTROL, _) => 0,
            (_, Link::Super | Link::SuperPlus) => 15,
            (endpoint_type::INTERRUPT_IN | endpoint_type::INTERRUPT_OUT, Link::High) => 2,
            _ => 0,
        };
        require!(
            self.max_burst() <= most,
            "xHCI 1.2 §6.2.3.4",
            "Max Burst Size {} of endpoint {index} at {link:?} speed: at most {most}",
            self.max_burst()
        );
    }

    fn check_interval(self, index: u32, link: Link) {
        let allowed = match (self.is_periodic(), link) {
            (true, Link::Low | Link::Full) => 3..=10,
            (true, _) => 0..=15,
            // Only a high-speed control or bulk OUT endpoint has a NAK rate.
            (false, Link::High) if self.kind() != endpoint_type::BULK_IN => 0..=15,
            (false, _) => 0..=0,
        };
        require!(
            allowed.contains(&self.interval()),
            "xHCI 1.2 §6.2.3.6",
            "Interval {} of endpoint {index} at {link:?} speed: {allowed:?} is allowed",
            self.interval()
        );
    }

    fn check_payload(self, index: u32) {
        let payload = self.0[4] >> 16;
        if self.is_periodic() {
            let most = self.max_packet() * (self.max_burst() + 1);
            require!(
                payload != 0 && payload <= most,
                "xHCI 1.2 §6.2.3.8",
                "Max ESIT Payload {payload} of endpoint {index}: 1 to {most} are possible"
            );
        } else {
            require!(
                payload == 0,
                "xHCI 1.2 §6.2.3",
                "Max ESIT Payload {payload} of endpoint {index}, which is not periodic"
            );
        }
    }
}
