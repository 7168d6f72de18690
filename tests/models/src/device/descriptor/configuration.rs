//! Builders for a configuration descriptor and what follows it (USB 2.0 §9.6.3 to §9.6.6,
//! USB 3.2 §9.6.7). They count lengths, interfaces and endpoints; every count can be overridden.

use super::Link;

/// A configuration descriptor under construction.
#[derive(Clone, Debug)]
pub struct Configuration {
    header: [u8; 9],
    body: Vec<u8>,
}

impl Configuration {
    /// A bus-powered configuration of 100 mA (the field counts 2 mA below SuperSpeed) without
    /// interfaces, with the label `value`.
    #[doc(alias = "bConfigurationValue")]
    #[must_use]
    pub const fn new(value: u8) -> Self {
        Self {
            header: [9, 2, 0, 0, 0, value, 0, 0x80, 50],
            body: Vec::new(),
        }
    }

    /// The power field as it stands in the descriptor: units of 2 mA, at SuperSpeed of 8 mA.
    #[doc(alias = "bMaxPower")]
    #[must_use]
    pub const fn power(mut self, field: u8) -> Self {
        self.header[8] = field;
        self
    }

    /// Adds an interface, or one more alternate setting of one.
    #[must_use]
    pub fn interface(mut self, interface: Interface) -> Self {
        if interface.bytes[3] == 0 {
            self.header[4] += 1;
        }
        self.body.extend(interface.bytes);
        self
    }

    /// Adds any bytes.
    #[must_use]
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.body.extend(bytes);
        self
    }

    /// The descriptor with its total length filled in.
    #[must_use]
    pub fn bytes(mut self) -> Vec<u8> {
        let total = u16::try_from(self.header.len() + self.body.len()).unwrap_or(u16::MAX);
        self.header[2..4].copy_from_slice(&total.to_le_bytes());
        [self.header.as_slice(), &self.body].concat()
    }
}

/// An interface descriptor with its endpoints.
#[derive(Clone, Debug)]
pub struct Interface {
    bytes: Vec<u8>,
}

impl Interface {
    /// Interface `number`, alternate setting 0, without endpoints.
    #[must_use]
    pub fn new(number: u8) -> Self {
        Self {
            bytes: vec![9, 4, number, 0, 0, 0xff, 0, 0, 0],
        }
    }

    /// The number of the alternate setting.
    #[doc(alias = "bAlternateSetting")]
    #[must_use]
    pub fn alternate(mut self, setting: u8) -> Self {
        self.bytes[3] = setting;
        self
    }

    /// Class, subclass and protocol.
    #[must_use]
    pub fn class(mut self, class: u8, subclass: u8, protocol: u8) -> Self {
        self.bytes[5..8].copy_from_slice(&[class, subclass, protocol]);
        self
    }

    /// Adds an endpoint.
    #[must_use]
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.bytes[4] += 1;
        self.bytes.extend(endpoint.bytes);
        self
    }

    /// Adds any bytes.
    #[must_use]
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }
}

/// An endpoint descriptor, at SuperSpeed with its companion.
#[derive(Clone, Debug)]
pub struct Endpoint {
    bytes: Vec<u8>,
}

impl Endpoint {
    /// A bulk endpoint (`address` with the direction in bit 7) with the packet size of `link`: 64,
    /// 512 or 1024 bytes; at SuperSpeed bursts of 16 packets, no streams.
    #[must_use]
    pub fn bulk(address: u8, link: Link) -> Self {
        let size: u16 = match link {
            Link::Low | Link::Full => 64,
            Link::High => 512,
            Link::Super | Link::SuperPlus => 1024,
        };
        let mut bytes = vec![7, 5, address, 2, 0, 0, 0];
        bytes[4..6].copy_from_slice(&size.to_le_bytes());
        if link.is_super() {
            bytes.extend([6, 0x30, 15, 0, 0, 0]);
        }
        Self { bytes }
    }

    /// An interrupt endpoint.
    #[must_use]
    pub fn interrupt(address: u8, packet_size: u16, interval: u8) -> Self {
        let mut bytes = vec![7, 5, address, 3, 0, 0, interval];
        bytes[4..6].copy_from_slice(&packet_size.to_le_bytes());
        Self { bytes }
    }

    /// Another packet size, legal or not.
    #[doc(alias = "wMaxPacketSize")]
    #[must_use]
    pub fn packet_size(mut self, size: u16) -> Self {
        self.bytes[4..6].copy_from_slice(&size.to_le_bytes());
        self
    }

    /// SuperSpeed: packets in a burst beyond the first, and the exponent of the number of streams.
    ///
    /// # Panics
    /// Below SuperSpeed, where no companion follows.
    #[doc(alias = "bMaxBurst")]
    #[must_use]
    pub fn burst_and_streams(mut self, burst: u8, streams_exponent: u8) -> Self {
        assert!(
            self.bytes.len() >= 13,
            "only a SuperSpeed endpoint has a companion descriptor"
        );
        self.bytes[9] = burst;
        self.bytes[10] = streams_exponent;
        self
    }

    /// Adds any bytes after the endpoint, such as a pipe usage descriptor.
    #[must_use]
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }
}
