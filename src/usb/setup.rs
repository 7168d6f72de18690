//! The eight bytes that open every control transfer.
//!
//! Enumeration, hubs and the storage classes build their requests here, each by a constructor
//! that has the request's name; the controllers only see [`SetupPacket`]. Nothing is sent here.
//! Read USB 2.0 §9.3 (layout) and §9.4 (standard requests), then BOT 1.0 §3.

use super::descriptor::{DescriptorKind, EndpointAddress};

/// Which way data moves, seen from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the device to the host.
    In,
    /// From the host to the device.
    Out,
}

impl Direction {
    /// The other one: the status stage of a control transfer runs against its data stage.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::In => Self::Out,
            Self::Out => Self::In,
        }
    }

    /// The direction that bit 7 of `bmRequestType` or `bEndpointAddress` names.
    #[must_use]
    pub const fn from_bit_7(byte: u8) -> Self {
        if byte & 0x80 == 0 {
            Self::Out
        } else {
            Self::In
        }
    }
}

/// A control request: the data of the setup stage (USB 2.0 §9.3, table 9-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SetupPacket {
    /// Direction, type and recipient.
    #[doc(alias = "bmRequestType")]
    pub request_type: u8,
    /// Which request.
    #[doc(alias = "bRequest")]
    pub request: u8,
    /// First argument; its meaning is the request's.
    #[doc(alias = "wValue")]
    pub value: u16,
    /// Second argument: mostly an interface, an endpoint or a language.
    #[doc(alias = "wIndex")]
    pub index: u16,
    /// Bytes of the data stage: exactly so many to the device, at most so many from it.
    #[doc(alias = "wLength")]
    pub length: u16,
}

/// `bmRequestType` of the requests that are used here (USB 2.0 §9.3.1).
mod request_type {
    pub(super) const STANDARD_DEVICE_OUT: u8 = 0x00;
    pub(super) const STANDARD_INTERFACE_OUT: u8 = 0x01;
    pub(super) const STANDARD_ENDPOINT_OUT: u8 = 0x02;
    pub(super) const STANDARD_DEVICE_IN: u8 = 0x80;
    pub(super) const STANDARD_ENDPOINT_IN: u8 = 0x82;
    pub(super) const CLASS_INTERFACE_OUT: u8 = 0x21;
    pub(super) const CLASS_INTERFACE_IN: u8 = 0xa1;
    pub(super) const CLASS_DEVICE_IN: u8 = 0xa0;
}

/// `bRequest` of the standard requests (USB 2.0 §9.4, table 9-4).
mod request {
    pub(super) const STATUS: u8 = 0;
    pub(super) const CLEAR_FEATURE: u8 = 1;
    pub(super) const SET_ADDRESS: u8 = 5;
    pub(super) const DESCRIPTOR: u8 = 6;
    pub(super) const CONFIGURATION: u8 = 8;
    pub(super) const SET_CONFIGURATION: u8 = 9;
    pub(super) const SET_INTERFACE: u8 = 11;
    /// BOT 1.0 §3.2.
    pub(super) const BULK_ONLY_MAX_LUN: u8 = 0xfe;
    /// BOT 1.0 §3.1.
    pub(super) const BULK_ONLY_RESET: u8 = 0xff;
}

/// Feature selector of an endpoint's halt (USB 2.0 §9.4, table 9-6).
const ENDPOINT_HALT: u16 = 0;

impl SetupPacket {
    /// The packet as it goes over the wire: 8 bytes, little-endian.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 8] {
        let [value_low, value_high] = self.value.to_le_bytes();
        let [index_low, index_high] = self.index.to_le_bytes();
        let [length_low, length_high] = self.length.to_le_bytes();
        [
            self.request_type,
            self.request,
            value_low,
            value_high,
            index_low,
            index_high,
            length_low,
            length_high,
        ]
    }

    /// Direction of the data stage. It has no meaning when `length` is zero: such a request has
    /// no data stage, and its status stage is [`Direction::In`] (USB 2.0 §8.5.3.1).
    #[must_use]
    pub const fn direction(self) -> Direction {
        Direction::from_bit_7(self.request_type)
    }

    /// Asks for the device descriptor: up to `length` bytes of its 18.
    #[must_use]
    pub const fn device_descriptor(length: u16) -> Self {
        Self::descriptor(DescriptorKind::DEVICE, 0, 0, length)
    }

    /// Asks for the configuration at position `index` (counted from zero: *not* its
    /// `bConfigurationValue`), with everything that belongs to it: up to `length` bytes.
    #[must_use]
    pub const fn configuration_descriptor(index: u8, length: u16) -> Self {
        Self::descriptor(DescriptorKind::CONFIGURATION, index, 0, length)
    }

    /// Asks for string `index` in `language`. Index 0 (language 0) is the list of languages. Some
    /// devices answer only when `length` is 255.
    #[must_use]
    pub const fn string_descriptor(index: u8, language: u16, length: u16) -> Self {
        Self::descriptor(DescriptorKind::STRING, index, language, length)
    }

    /// Asks for the binary object store: 5 bytes first, then its total length (USB 3.2 §9.6.2).
    #[must_use]
    pub const fn binary_object_store(length: u16) -> Self {
        Self::descriptor(DescriptorKind::BINARY_OBJECT_STORE, 0, 0, length)
    }

    /// Asks for a hub's own descriptor, a class request: `kind` is [`DescriptorKind::HUB`] or
    /// [`DescriptorKind::SUPER_SPEED_HUB`] (USB 2.0 §11.24.2.5).
    #[must_use]
    pub const fn hub_descriptor(kind: DescriptorKind, length: u16) -> Self {
        Self {
            request_type: request_type::CLASS_DEVICE_IN,
            ..Self::descriptor(kind, 0, 0, length)
        }
    }

    /// GET_DESCRIPTOR of any kind (USB 2.0 §9.4.3).
    #[must_use]
    pub const fn descriptor(kind: DescriptorKind, index: u8, language: u16, length: u16) -> Self {
        Self {
            request_type: request_type::STANDARD_DEVICE_IN,
            request: request::DESCRIPTOR,
            value: u16::from_be_bytes([kind.0, index]),
            index: language,
            length,
        }
    }

    /// Gives the device, which listens at address zero, its `address` (1 to 127). It may ignore
    /// the new one for 2 ms after the status stage (USB 2.0 §9.4.6, §9.2.6.3).
    #[must_use]
    pub const fn set_address(address: u8) -> Self {
        Self {
            request_type: request_type::STANDARD_DEVICE_OUT,
            request: request::SET_ADDRESS,
            value: address as u16,
            index: 0,
            length: 0,
        }
    }

    /// Selects the configuration whose `bConfigurationValue` is `value`; 0 deconfigures. Every
    /// data toggle starts again at DATA0 (USB 2.0 §9.4.7, §9.1.1.5).
    #[must_use]
    pub const fn set_configuration(value: u8) -> Self {
        Self {
            request_type: request_type::STANDARD_DEVICE_OUT,
            request: request::SET_CONFIGURATION,
            value: value as u16,
            index: 0,
            length: 0,
        }
    }

    /// Asks for the `bConfigurationValue` in use: one byte, 0 when not configured
    /// (USB 2.0 §9.4.2).
    #[must_use]
    pub const fn configuration() -> Self {
        Self {
            request_type: request_type::STANDARD_DEVICE_IN,
            request: request::CONFIGURATION,
            value: 0,
            index: 0,
            length: 1,
        }
    }

    /// Selects `alternate` of `interface`. The toggles of its endpoints start again at DATA0
    /// (USB 2.0 §9.4.10).
    #[must_use]
    pub const fn set_interface(interface: u8, alternate: u8) -> Self {
        Self {
            request_type: request_type::STANDARD_INTERFACE_OUT,
            request: request::SET_INTERFACE,
            value: alternate as u16,
            index: interface as u16,
            length: 0,
        }
    }

    /// CLEAR_FEATURE(ENDPOINT_HALT). The endpoint's toggle starts again at DATA0 even if it was
    /// not halted (USB 2.0 §9.4.5).
    #[must_use]
    pub const fn clear_endpoint_halt(endpoint: EndpointAddress) -> Self {
        Self {
            request_type: request_type::STANDARD_ENDPOINT_OUT,
            request: request::CLEAR_FEATURE,
            value: ENDPOINT_HALT,
            index: endpoint.byte() as u16,
            length: 0,
        }
    }

    /// Asks for the device's status: two bytes, bit 0 self-powered, bit 1 remote wake-up
    /// (USB 2.0 §9.4.5).
    #[must_use]
    pub const fn device_status() -> Self {
        Self {
            request_type: request_type::STANDARD_DEVICE_IN,
            request: request::STATUS,
            value: 0,
            index: 0,
            length: 2,
        }
    }

    /// Asks for an endpoint's status: two bytes, bit 0 halted (USB 2.0 §9.4.5).
    #[must_use]
    pub const fn endpoint_status(endpoint: EndpointAddress) -> Self {
        Self {
            request_type: request_type::STANDARD_ENDPOINT_IN,
            request: request::STATUS,
            value: 0,
            index: endpoint.byte() as u16,
            length: 2,
        }
    }

    /// Bulk-Only Mass Storage Reset (BOT 1.0 §3.1). It touches neither halts nor toggles, and is
    /// never sent unasked: it spoils some sticks.
    #[must_use]
    pub const fn bulk_only_reset(interface: u8) -> Self {
        Self {
            request_type: request_type::CLASS_INTERFACE_OUT,
            request: request::BULK_ONLY_RESET,
            value: 0,
            index: interface as u16,
            length: 0,
        }
    }

    /// Asks a Bulk-Only interface for its highest logical unit: one byte, or a stall, which means
    /// zero (BOT 1.0 §3.2).
    #[must_use]
    pub const fn bulk_only_max_lun(interface: u8) -> Self {
        Self {
            request_type: request_type::CLASS_INTERFACE_IN,
            request: request::BULK_ONLY_MAX_LUN,
            value: 0,
            index: interface as u16,
            length: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_bytes_of_the_specifications() {
        let bulk_in = EndpointAddress::new(1, Direction::In).unwrap();
        let table: [(SetupPacket, [u8; 8]); 15] = [
            (
                SetupPacket::device_descriptor(8),
                [0x80, 6, 0, 1, 0, 0, 8, 0],
            ),
            (
                SetupPacket::configuration_descriptor(2, 0x0102),
                [0x80, 6, 2, 2, 0, 0, 2, 1],
            ),
            (
                SetupPacket::string_descriptor(3, 0x0409, 255),
                [0x80, 6, 3, 3, 9, 4, 255, 0],
            ),
            (
                SetupPacket::binary_object_store(5),
                [0x80, 6, 0, 0x0f, 0, 0, 5, 0],
            ),
            (
                SetupPacket::hub_descriptor(DescriptorKind::HUB, 9),
                [0xa0, 6, 0, 0x29, 0, 0, 9, 0],
            ),
            (SetupPacket::set_address(127), [0, 5, 127, 0, 0, 0, 0, 0]),
            (SetupPacket::set_configuration(1), [0, 9, 1, 0, 0, 0, 0, 0]),
            (SetupPacket::configuration(), [0x80, 8, 0, 0, 0, 0, 1, 0]),
            (SetupPacket::set_interface(2, 1), [1, 11, 1, 0, 2, 0, 0, 0]),
            (
                SetupPacket::clear_endpoint_halt(bulk_in),
                [2, 1, 0, 0, 0x81, 0, 0, 0],
            ),
            (SetupPacket::device_status(), [0x80, 0, 0, 0, 0, 0, 2, 0]),
            (
                SetupPacket::endpoint_status(bulk_in),
                [0x82, 0, 0, 0, 0x81, 0, 2, 0],
            ),
            (
                SetupPacket::bulk_only_reset(3),
                [0x21, 0xff, 0, 0, 3, 0, 0, 0],
            ),
            (
                SetupPacket::bulk_only_max_lun(3),
                [0xa1, 0xfe, 0, 0, 3, 0, 1, 0],
            ),
            (
                SetupPacket::hub_descriptor(DescriptorKind::SUPER_SPEED_HUB, 12),
                [0xa0, 6, 0, 0x2a, 0, 0, 12, 0],
            ),
        ];
        for (packet, bytes) in table {
            assert_eq!(packet.to_bytes(), bytes, "{packet:?}");
        }
    }

    #[test]
    fn direction_follows_bit_7_of_the_request_type() {
        assert_eq!(SetupPacket::bulk_only_max_lun(0).direction(), Direction::In);
        assert_eq!(SetupPacket::bulk_only_reset(0).direction(), Direction::Out);
        assert_eq!(Direction::In.reversed(), Direction::Out);
    }
}
