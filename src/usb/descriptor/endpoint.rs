//! One endpoint, from its descriptor, its SuperSpeed companion and its UAS pipe usage descriptor.
//!
//! [`super::Endpoints`] makes them; controllers open pipes by them. Every value is one that the
//! link's speed has: what a device claims beyond that is lowered here (USB 2.0 §9.6.6, USB 3.2
//! §9.6.6 and §9.6.7, UAS §5.2.3.5).

use super::{Descriptor, DescriptorKind, Descriptors};
use crate::bytes::{u8_at, u16_le_at};
use crate::usb::setup::Direction;
use crate::usb::speed::Speed;

/// Number and direction of an endpoint other than endpoint zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "bEndpointAddress")]
pub struct EndpointAddress(u8);

impl EndpointAddress {
    /// The endpoint `number` (1 to 15) of `direction`.
    #[must_use]
    pub const fn new(number: u8, direction: Direction) -> Option<Self> {
        if number > 0x0f {
            return None;
        }
        let direction_bit = match direction {
            Direction::In => 0x80,
            Direction::Out => 0,
        };
        Self::from_byte(number | direction_bit)
    }

    /// From `bEndpointAddress`; the reserved bits 6 to 4 are dropped. `None` for endpoint zero.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        if byte & 0x0f == 0 {
            None
        } else {
            Some(Self(byte & 0x8f))
        }
    }

    /// As in `bEndpointAddress` and in `wIndex` of a request.
    #[must_use]
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// 1 to 15.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0 & 0x0f
    }

    /// Which way data moves.
    #[must_use]
    pub const fn direction(self) -> Direction {
        Direction::from_bit_7(self.0)
    }

    /// A bit of its own for each address: number for OUT, 16 + number for IN.
    pub(super) const fn bit(self) -> u32 {
        let shift = match self.direction() {
            Direction::Out => 0,
            Direction::In => 16,
        };
        1 << (self.number() + shift)
    }
}

/// Transfer type of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "bmAttributes")]
pub enum EndpointKind {
    /// Setup packets: hardly ever other than endpoint zero.
    Control,
    /// Listed, but not driven by this library.
    Isochronous,
    /// Storage data.
    Bulk,
    /// Small, polled: hub changes.
    Interrupt,
}

impl EndpointKind {
    const fn from_attributes(attributes: u8) -> Self {
        match attributes & 0x03 {
            0 => Self::Control,
            1 => Self::Isochronous,
            2 => Self::Bulk,
            _ => Self::Interrupt,
        }
    }

    /// Largest packet that the kind may have at `speed`, in bytes (USB 2.0 §5.5.3, §5.6.3,
    /// §5.7.3, §5.8.3; USB 3.2 §9.6.6). Low speed has no bulk and no isochronous endpoints: where
    /// a device shows one, 8 is what its packets can hold.
    const fn largest_packet(self, speed: Speed) -> u16 {
        match (speed, self) {
            (Speed::Low, _) => 8,
            (Speed::Full, Self::Isochronous) => 1023,
            (Speed::Full, _) | (Speed::High, Self::Control) => 64,
            (Speed::High, Self::Bulk) | (Speed::Super | Speed::SuperPlus, Self::Control) => 512,
            _ => 1024,
        }
    }

    /// The size to use for a claim of `claimed` bytes. `None` when the endpoint is unusable.
    ///
    /// Policy: a claim above the limit becomes the limit. Bulk and control packets are powers of
    /// two from 8; a smaller one than the specification fixes is believed, because a device that
    /// says 64 at high speed sends packets of 64.
    fn packet_size(self, claimed: u16, speed: Speed) -> Option<u16> {
        let size = claimed.min(self.largest_packet(speed));
        match self {
            Self::Control | Self::Bulk => (size >= 8).then(|| 1 << size.ilog2()),
            Self::Isochronous | Self::Interrupt => (size > 0).then_some(size),
        }
    }

    /// `bInterval` brought into its range (USB 2.0 §9.6.6, table 9-13): 1 to 16 where it is an
    /// exponent, else 1 to 255.
    fn interval(self, raw: u8, speed: Speed) -> u8 {
        match (self, speed) {
            (Self::Control | Self::Bulk, _) => 0,
            (Self::Interrupt, Speed::Low | Speed::Full) => raw.max(1),
            _ => raw.clamp(1, 16),
        }
    }
}

/// How many streams an endpoint has, as the exponent that the companion holds: 0 means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MaxStreams(u8);

impl MaxStreams {
    /// No streams.
    pub const NONE: Self = Self(0);

    /// From bits 4 to 0 of a bulk companion's `bmAttributes`; above 16 is lowered to 16
    /// (USB 3.2 §9.6.7, table 9-28).
    const fn from_attributes(attributes: u8) -> Self {
        let exponent = attributes & 0x1f;
        Self(if exponent > 16 { 16 } else { exponent })
    }

    /// The exponent as the device wrote it: 0 to 16.
    #[must_use]
    pub const fn exponent(self) -> u8 {
        self.0
    }

    /// Number of streams, up to 65,536; 0 when there are none. Usable identifiers start at 1,
    /// and 0xFFFE and 0xFFFF belong to the bus.
    #[must_use]
    pub const fn count(self) -> u32 {
        match self.0 {
            0 => 0,
            exponent => 1 << exponent,
        }
    }
}

/// Which of the four UAS pipes an endpoint is (UAS §5.2.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "bPipeID")]
pub enum PipeUsage {
    /// Commands and task management, to the device.
    Command,
    /// Status and readiness, from the device.
    Status,
    /// Data from the device.
    DataIn,
    /// Data to the device.
    DataOut,
}

impl PipeUsage {
    const fn from_id(id: u8) -> Option<Self> {
        match id {
            1 => Some(Self::Command),
            2 => Some(Self::Status),
            3 => Some(Self::DataIn),
            4 => Some(Self::DataOut),
            _ => None,
        }
    }

    /// The direction that the pipe's endpoint must have.
    #[must_use]
    pub const fn direction(self) -> Direction {
        match self {
            Self::Command | Self::DataOut => Direction::Out,
            Self::Status | Self::DataIn => Direction::In,
        }
    }
}

/// An endpoint, with every value within what its speed allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    address: EndpointAddress,
    kind: EndpointKind,
    max_packet_size: u16,
    additional_transactions: u8,
    interval: u8,
    max_burst: u8,
    max_streams: MaxStreams,
    bytes_per_interval: u16,
    pipe_usage: Option<PipeUsage>,
}

impl Endpoint {
    /// Bytes of an endpoint descriptor that are looked at.
    const LENGTH: usize = 7;

    /// Reads `descriptor` and, from `following`, what belongs to it: everything up to the next
    /// endpoint or interface. `None` for endpoint zero, a cut descriptor and packets of no size.
    pub(super) fn parse(
        descriptor: Descriptor<'_>,
        following: Descriptors<'_>,
        speed: Speed,
    ) -> Option<Self> {
        let bytes = descriptor.bytes().get(..Self::LENGTH)?;
        let kind = EndpointKind::from_attributes(u8_at(bytes, 3)?);
        let packet = u16_le_at(bytes, 4)?;
        let mut endpoint = Self {
            address: EndpointAddress::from_byte(u8_at(bytes, 2)?)?,
            kind,
            max_packet_size: kind.packet_size(packet & 0x07ff, speed)?,
            additional_transactions: additional_transactions(packet, kind, speed),
            interval: kind.interval(u8_at(bytes, 6)?, speed),
            max_burst: 0,
            max_streams: MaxStreams::NONE,
            bytes_per_interval: 0,
            pipe_usage: None,
        };
        endpoint.complete(following, speed);
        Some(endpoint)
    }

    fn complete(&mut self, following: Descriptors<'_>, speed: Speed) {
        for descriptor in following {
            match descriptor.kind() {
                DescriptorKind::ENDPOINT | DescriptorKind::INTERFACE => return,
                DescriptorKind::ENDPOINT_COMPANION if speed.is_super() => {
                    self.take_companion(descriptor.bytes());
                }
                DescriptorKind::PIPE_USAGE if self.pipe_usage.is_none() => {
                    self.pipe_usage = u8_at(descriptor.bytes(), 2).and_then(PipeUsage::from_id);
                }
                _ => {}
            }
        }
    }

    /// USB 3.2 §9.6.7. A companion that is cut off leaves burst 0 and no streams.
    fn take_companion(&mut self, bytes: &[u8]) {
        let (Some(burst), Some(attributes), Some(bytes_per_interval)) =
            (u8_at(bytes, 2), u8_at(bytes, 3), u16_le_at(bytes, 4))
        else {
            return;
        };
        self.max_burst = burst.min(15);
        match self.kind {
            EndpointKind::Bulk => self.max_streams = MaxStreams::from_attributes(attributes),
            EndpointKind::Control => self.max_burst = 0,
            EndpointKind::Interrupt | EndpointKind::Isochronous => {
                self.bytes_per_interval = bytes_per_interval;
            }
        }
    }

    /// Number and direction.
    #[must_use]
    pub const fn address(&self) -> EndpointAddress {
        self.address
    }

    /// Transfer type.
    #[must_use]
    pub const fn kind(&self) -> EndpointKind {
        self.kind
    }

    /// Which way data moves.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        self.address.direction()
    }

    /// Largest packet in bytes: 8 to 1024, a power of two for bulk and control.
    #[doc(alias = "wMaxPacketSize")]
    #[must_use]
    pub const fn max_packet_size(&self) -> u16 {
        self.max_packet_size
    }

    /// Transactions beyond the first in a microframe, 0 to 2: high-speed interrupt and
    /// isochronous endpoints only.
    #[must_use]
    pub const fn additional_transactions(&self) -> u8 {
        self.additional_transactions
    }

    /// How often the endpoint is served: n in every 2^(n-1) x 125 us for high speed and above and
    /// in every 2^(n-1) ms for full-speed isochronous endpoints (1 to 16), n in every n ms for
    /// interrupt endpoints below (1 to 255). Zero for bulk and control.
    #[doc(alias = "bInterval")]
    #[must_use]
    pub const fn interval(&self) -> u8 {
        self.interval
    }

    /// Packets beyond the first in a burst: 0 to 15, 0 below SuperSpeed.
    #[doc(alias = "bMaxBurst")]
    #[must_use]
    pub const fn max_burst(&self) -> u8 {
        self.max_burst
    }

    /// Streams of a bulk endpoint; none below SuperSpeed.
    #[must_use]
    pub const fn max_streams(&self) -> MaxStreams {
        self.max_streams
    }

    /// Bytes that a SuperSpeed interrupt endpoint moves in an interval; 0 where unsaid.
    #[doc(alias = "wBytesPerInterval")]
    #[must_use]
    pub const fn bytes_per_interval(&self) -> u16 {
        self.bytes_per_interval
    }

    /// Which UAS pipe it is, where a pipe usage descriptor with a number of 1 to 4 follows.
    #[must_use]
    pub const fn pipe_usage(&self) -> Option<PipeUsage> {
        self.pipe_usage
    }
}

/// Bits 12 and 11 of `wMaxPacketSize`; 3 is reserved and lowered to 2 (USB 2.0 §9.6.6).
const fn additional_transactions(packet: u16, kind: EndpointKind, speed: Speed) -> u8 {
    match (speed, kind, packet & 0x1800) {
        (Speed::High, EndpointKind::Interrupt | EndpointKind::Isochronous, 0x0800) => 1,
        (Speed::High, EndpointKind::Interrupt | EndpointKind::Isochronous, 0x1000 | 0x1800) => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(bytes: &[u8], speed: Speed) -> Option<Endpoint> {
        let mut descriptors = Descriptors::new(bytes);
        let descriptor = descriptors.next()?;
        Endpoint::parse(descriptor, descriptors, speed)
    }

    #[test]
    fn packet_sizes_are_those_of_the_speed() {
        use EndpointKind::{Bulk, Interrupt};
        let table = [
            (Bulk, 1024, Speed::High, Some(512)),
            (Bulk, 512, Speed::High, Some(512)),
            (Bulk, 64, Speed::High, Some(64)),
            (Bulk, 512, Speed::Full, Some(64)),
            (Bulk, 48, Speed::Full, Some(32)),
            (Bulk, 4, Speed::Full, None),
            (Bulk, 64, Speed::Low, Some(8)),
            (Bulk, 1024, Speed::Super, Some(1024)),
            (Bulk, 2047, Speed::SuperPlus, Some(1024)),
            (Bulk, 0, Speed::High, None),
            (Interrupt, 1, Speed::High, Some(1)),
            (Interrupt, 0, Speed::High, None),
            (Interrupt, 1024, Speed::Full, Some(64)),
        ];
        for (kind, claimed, speed, size) in table {
            assert_eq!(
                kind.packet_size(claimed, speed),
                size,
                "{kind:?} {claimed} {speed:?}"
            );
        }
    }

    #[test]
    fn intervals_out_of_range_are_brought_into_it() {
        use EndpointKind::Interrupt;
        let table = [
            (0, Speed::High, 1),
            (12, Speed::High, 12),
            (255, Speed::Super, 16),
            (0, Speed::Full, 1),
            (255, Speed::Low, 255),
        ];
        for (raw, speed, interval) in table {
            assert_eq!(Interrupt.interval(raw, speed), interval, "{raw} {speed:?}");
        }
        assert_eq!(EndpointKind::Bulk.interval(255, Speed::High), 0);
    }

    #[test]
    fn a_companion_says_burst_and_streams_at_super_speed_only() {
        let bytes = [7, 5, 0x81, 2, 0, 4, 0, 6, 0x30, 15, 5, 0, 0];
        let at_super = endpoint(&bytes, Speed::Super).unwrap();
        assert_eq!(at_super.max_burst(), 15);
        assert_eq!(at_super.max_streams().count(), 32);
        let at_high = endpoint(&bytes, Speed::High).unwrap();
        assert_eq!(at_high.max_burst(), 0);
        assert_eq!(at_high.max_streams(), MaxStreams::NONE);
    }

    #[test]
    fn burst_and_streams_beyond_the_specification_are_lowered() {
        let bytes = [7, 5, 0x81, 2, 0, 4, 0, 6, 0x30, 200, 0x1f, 0, 0];
        let endpoint = endpoint(&bytes, Speed::Super).unwrap();
        assert_eq!(endpoint.max_burst(), 15);
        assert_eq!(endpoint.max_streams().count(), 65_536);
    }

    #[test]
    fn the_pipe_usage_behind_the_companion_is_found() {
        let bytes = [
            7, 5, 0x02, 2, 0, 4, 0, 6, 0x30, 0, 0, 0, 0, 4, 0x24, 4, 0, 7, 5, 0x83, 2, 0, 4, 0, 4,
            0x24, 3, 0,
        ];
        let endpoint = endpoint(&bytes, Speed::Super).unwrap();
        assert_eq!(endpoint.pipe_usage(), Some(PipeUsage::DataOut));
    }

    #[test]
    fn reserved_address_bits_are_dropped_and_endpoint_zero_is_none() {
        assert_eq!(
            EndpointAddress::from_byte(0xf1),
            EndpointAddress::new(1, Direction::In)
        );
        assert_eq!(EndpointAddress::from_byte(0x80), None);
        assert_eq!(EndpointAddress::new(16, Direction::Out), None);
    }
}
