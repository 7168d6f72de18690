//! Descriptor bytes: builders for well-formed ones, and room for any bytes at all.
//!
//! [`Descriptors`] is what a device answers to GET_DESCRIPTOR. Nothing is checked: a script may give
//! any bytes in place of any descriptor ([`Descriptors::raw_device`],
//! [`Descriptors::raw_configuration`]). USB 2.0 §9.6, USB 3.2 §9.6.

use super::Link;

mod configuration;

pub use configuration::{Configuration, Endpoint, Interface};

/// Everything that a device answers to GET_DESCRIPTOR at one speed.
#[derive(Clone, Debug, Default)]
pub struct Descriptors {
    /// The device descriptor, 18 bytes if well-formed.
    pub device: Vec<u8>,
    /// One entry per configuration: the descriptor with all that follows it.
    pub configurations: Vec<Vec<u8>>,
    /// Strings by index; entry 0 is the list of languages.
    pub strings: Vec<Vec<u8>>,
    /// The binary device object store, if the device has one (USB 3.2 §9.6.2).
    pub bos: Option<Vec<u8>>,
    /// The device qualifier of a device that knows both full and high speed (USB 2.0 §9.6.2).
    pub qualifier: Option<Vec<u8>>,
}

impl Descriptors {
    /// A well-formed device descriptor for `link`, class 0 (told by the interfaces), no
    /// configuration yet.
    #[must_use]
    pub fn new(link: Link, vendor: u16, product: u16) -> Self {
        let mut device = vec![18, 1, 0, 2, 0, 0, 0, 64, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        device[8..10].copy_from_slice(&vendor.to_le_bytes());
        device[10..12].copy_from_slice(&product.to_le_bytes());
        if link == Link::Low {
            device[7] = 8;
        }
        let mut descriptors = Self {
            device,
            ..Self::default()
        };
        if link.is_super() {
            descriptors.device[2..4].copy_from_slice(&0x0320_u16.to_le_bytes());
            descriptors.device[7] = 9; // an exponent: 512 bytes
            descriptors.bos = Some(super_speed_object_store());
        }
        descriptors
    }

    /// A Bulk-Only disk (08/06/50) with bulk IN endpoint 1 and bulk OUT endpoint 2, and bursts of 16
    /// packets at SuperSpeed.
    #[must_use]
    pub fn bulk_only_disk(link: Link, vendor: u16, product: u16) -> Self {
        Self::bulk_only_disk_at(link, (vendor, product), (0, 0x81, 0x02), 15)
    }

    /// A Bulk-Only disk with these ids, at this interface and these endpoints (bulk IN, bulk OUT),
    /// with so many packets in a burst beyond the first at SuperSpeed.
    #[must_use]
    pub fn bulk_only_disk_at(
        link: Link,
        (vendor, product): (u16, u16),
        (interface, bulk_in, bulk_out): (u8, u8, u8),
        burst: u8,
    ) -> Self {
        let endpoint = |address| {
            let endpoint = Endpoint::bulk(address, link);
            if link.is_super() {
                endpoint.burst_and_streams(burst, 0)
            } else {
                endpoint
            }
        };
        let interface = Interface::new(interface)
            .class(0x08, 0x06, 0x50)
            .endpoint(endpoint(bulk_in))
            .endpoint(endpoint(bulk_out));
        Self::new(link, vendor, product).configuration(Configuration::new(1).interface(interface))
    }

    /// What a device that knows high speed adds to its descriptors below SuperSpeed: the qualifier
    /// for the other of the two speeds (USB 2.0 §9.6.2).
    #[must_use]
    pub fn with_qualifier(mut self) -> Self {
        self.qualifier = Some(vec![10, 6, 0x00, 0x02, 0, 0, 0, 64, 1, 0]);
        self
    }

    /// What a SuperSpeed device shows at a lower speed: release 2.1 and the object store that tells
    /// of its SuperSpeed (USB 3.2 §9.2.6.6, §9.6.2).
    #[must_use]
    pub fn with_hidden_super_speed(mut self) -> Self {
        self.device[2..4].copy_from_slice(&0x0210_u16.to_le_bytes());
        self.bos = Some(super_speed_object_store());
        self
    }

    /// The release of the device.
    #[doc(alias = "bcdDevice")]
    #[must_use]
    pub fn release(mut self, release: u16) -> Self {
        self.device[12..14].copy_from_slice(&release.to_le_bytes());
        self
    }

    /// Class, subclass and protocol of the whole device.
    #[must_use]
    pub fn class(mut self, class: u8, subclass: u8, protocol: u8) -> Self {
        self.device[4..7].copy_from_slice(&[class, subclass, protocol]);
        self
    }

    /// Maximum packet size of endpoint 0 as it stands in byte 7: bytes, or at SuperSpeed the
    /// exponent 9.
    #[doc(alias = "bMaxPacketSize0")]
    #[must_use]
    pub fn control_packet_size(mut self, field: u8) -> Self {
        self.device[7] = field;
        self
    }

    /// Manufacturer, product and serial number, in English (language 0409).
    #[must_use]
    pub fn strings(mut self, manufacturer: &str, product: &str, serial: &str) -> Self {
        self.strings = vec![vec![4, 3, 0x09, 0x04]];
        for (field, text) in [(14, manufacturer), (15, product), (16, serial)] {
            self.device[field] = u8::try_from(self.strings.len()).unwrap_or(0);
            self.strings.push(string(text));
        }
        self
    }

    /// Adds a configuration.
    #[must_use]
    pub fn configuration(mut self, configuration: Configuration) -> Self {
        self.configurations.push(configuration.bytes());
        self.device[17] += 1;
        self
    }

    /// Any bytes in place of the device descriptor.
    #[must_use]
    pub fn raw_device(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.device = bytes.into();
        self
    }

    /// Any bytes in place of the first configuration.
    #[must_use]
    pub fn raw_configuration(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.configurations = vec![bytes.into()];
        self
    }

    /// What GET_DESCRIPTOR of `kind` and `index` finds, `None` if there is nothing.
    pub(super) fn find(&self, kind: u8, index: u8) -> Option<&[u8]> {
        let index = usize::from(index);
        match kind {
            1 => Some(&self.device),
            2 => self.configurations.get(index).map(Vec::as_slice),
            3 => self.strings.get(index).map(Vec::as_slice),
            6 => self.qualifier.as_deref(),
            15 => self.bos.as_deref(),
            _ => None,
        }
    }

    /// The configuration with the label `value` (bConfigurationValue).
    pub(super) fn with_value(&self, value: u8) -> Option<&[u8]> {
        self.configurations
            .iter()
            .find(|bytes| bytes.get(5) == Some(&value))
            .map(Vec::as_slice)
    }

    /// Maximum packet size of endpoint 0 in bytes, as the device really works: 512 at SuperSpeed,
    /// else what the descriptor says, or 8 where that is no legal size.
    pub(super) fn control_packet_bytes(&self, link: Link) -> usize {
        match self.device.get(7) {
            _ if link.is_super() => 512,
            Some(&size @ (8 | 16 | 32 | 64)) => usize::from(size),
            _ => 8,
        }
    }
}

/// A string descriptor of `text`.
fn string(text: &str) -> Vec<u8> {
    let mut bytes = vec![0, 3];
    bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    bytes[0] = u8::try_from(bytes.len()).expect("a string descriptor holds 126 characters at most");
    bytes
}

/// BOS with the USB 2.0 extension and the SuperSpeed capability (USB 3.2 §9.6.2.1, §9.6.2.2).
fn super_speed_object_store() -> Vec<u8> {
    let mut bytes = vec![5, 15, 22, 0, 2];
    bytes.extend([7, 16, 2, 2, 0, 0, 0]);
    bytes.extend([10, 16, 3, 0, 0x0e, 0, 1, 10, 0xff, 0x07]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bulk_only_disk_at_high_speed_has_the_bytes_of_the_specification() {
        let disk = Descriptors::bulk_only_disk(Link::High, 0x0781, 0x5567).strings("A", "Bc", "7");
        assert_eq!(
            disk.device,
            [
                18, 1, 0, 2, 0, 0, 0, 64, 0x81, 0x07, 0x67, 0x55, 0, 1, 1, 2, 3, 1
            ]
        );
        assert_eq!(
            disk.configurations[0],
            [
                9, 2, 32, 0, 1, 1, 0, 0x80, 50, // configuration
                9, 4, 0, 0, 2, 8, 6, 0x50, 0, // interface
                7, 5, 0x81, 2, 0, 2, 0, // bulk IN of 512 bytes
                7, 5, 0x02, 2, 0, 2, 0, // bulk OUT
            ]
        );
        assert_eq!(disk.find(3, 2), Some(&[6, 3, b'B', 0, b'c', 0][..]));
    }

    #[test]
    fn interface_endpoints_and_burst_can_be_chosen() {
        let disk = Descriptors::bulk_only_disk_at(Link::Super, (1, 2), (3, 0x85, 0x06), 0);
        let configuration = &disk.configurations[0];
        assert_eq!((configuration[9 + 2], configuration[18 + 2]), (3, 0x85));
        assert_eq!((configuration[18 + 9], configuration[31 + 2]), (0, 0x06));
    }

    #[test]
    fn super_speed_endpoints_are_followed_by_companions() {
        let disk = Descriptors::bulk_only_disk(Link::Super, 1, 2);
        assert_eq!(disk.device[7], 9);
        let configuration = &disk.configurations[0];
        assert_eq!(configuration.len(), 44);
        assert_eq!(
            configuration[18..31],
            [7, 5, 0x81, 2, 0, 4, 0, 6, 0x30, 15, 0, 0, 0]
        );
        assert_eq!(disk.bos.map(|bytes| bytes.len()), Some(22));
    }
}
