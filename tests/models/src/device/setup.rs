//! The eight bytes of a SETUP packet, taken apart (USB 2.0 §9.3, table 9-2).
//!
//! Used by the base device and by control tables of scripts. Every eight bytes are a setup; whether a
//! device supports the request is decided elsewhere.

use core::fmt;

/// A control request as the device receives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Direction, type and recipient.
    #[doc(alias = "bmRequestType")]
    pub request_type: u8,
    /// The request's number within its type.
    #[doc(alias = "bRequest")]
    pub request: u8,
    /// The request's first parameter.
    #[doc(alias = "wValue")]
    pub value: u16,
    /// The request's second parameter, mostly an interface or an endpoint.
    #[doc(alias = "wIndex")]
    pub index: u16,
    /// Bytes of the data stage; for IN the most that the host takes.
    #[doc(alias = "wLength")]
    pub length: u16,
}

/// Who defined a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The USB specification.
    Standard,
    /// A device class.
    Class,
    /// The maker of the device.
    Vendor,
    /// Nobody: such a request is stalled.
    Reserved,
}

impl Setup {
    /// Takes the bytes of a SETUP packet apart.
    #[must_use]
    pub const fn parse(bytes: [u8; 8]) -> Self {
        Self {
            request_type: bytes[0],
            request: bytes[1],
            value: u16::from_le_bytes([bytes[2], bytes[3]]),
            index: u16::from_le_bytes([bytes[4], bytes[5]]),
            length: u16::from_le_bytes([bytes[6], bytes[7]]),
        }
    }

    /// The bytes as they travel.
    #[must_use]
    pub const fn bytes(self) -> [u8; 8] {
        let [value0, value1] = self.value.to_le_bytes();
        let [index0, index1] = self.index.to_le_bytes();
        let [length0, length1] = self.length.to_le_bytes();
        [
            self.request_type,
            self.request,
            value0,
            value1,
            index0,
            index1,
            length0,
            length1,
        ]
    }

    /// Whether the data stage goes to the host.
    #[must_use]
    pub const fn is_in(self) -> bool {
        self.request_type & 0x80 != 0
    }

    /// Who defined the request.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match (self.request_type >> 5) & 3 {
            0 => Kind::Standard,
            1 => Kind::Class,
            2 => Kind::Vendor,
            _ => Kind::Reserved,
        }
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.bytes().iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(formatter, "{space}{byte:02x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_packet_is_little_endian_both_ways() {
        let bytes = [0xa1, 0xfe, 0x34, 0x12, 0x02, 0x01, 0x01, 0x00];
        let setup = Setup::parse(bytes);
        assert_eq!(
            (setup.value, setup.index, setup.length),
            (0x1234, 0x0102, 1)
        );
        assert_eq!((setup.kind(), setup.is_in()), (Kind::Class, true));
        assert_eq!(setup.bytes(), bytes);
        assert_eq!(setup.to_string(), "a1 fe 34 12 02 01 01 00");
    }
}
