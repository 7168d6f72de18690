//! The device descriptor, whole or its first eight bytes (USB 2.0 §9.6.1).
//!
//! Enumeration reads [`DeviceHead`] at address zero, to learn the packet size of endpoint zero,
//! and [`Device`] when the device has its address. The quirk tables match on the latter.

use core::num::NonZeroU8;

use super::{DescriptorFault, DescriptorKind};
use crate::bytes::{u8_at, u16_le_at};
use crate::usb::speed::Speed;

/// What the first 8 bytes of a device descriptor say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceHead {
    /// Release of the USB specification, as binary-coded decimal: 0x0200, 0x0320.
    #[doc(alias = "bcdUSB")]
    pub usb_release: u16,
    /// Class of the device: 9 is a hub, 0 means "see the interfaces".
    #[doc(alias = "bDeviceClass")]
    pub class: u8,
    /// Subclass, within the class.
    #[doc(alias = "bDeviceSubClass")]
    pub subclass: u8,
    /// Protocol, within the subclass. Of a hub: 0 full speed, 1 one transaction translator, 2
    /// one for each port (USB 2.0 §11.23.1).
    #[doc(alias = "bDeviceProtocol")]
    pub protocol: u8,
    /// `bMaxPacketSize0` as the device wrote it: see [`DeviceHead::control_packet_size`].
    raw_control_packet_size: u8,
}

impl DeviceHead {
    /// Bytes that must be there.
    pub const LENGTH: usize = 8;

    /// Reads the head; what follows it may be absent.
    ///
    /// # Errors
    /// [`DescriptorFault::TooShort`] below 8 bytes, [`DescriptorFault::WrongKind`].
    pub fn parse(bytes: &[u8]) -> Result<Self, DescriptorFault> {
        DescriptorFault::checked(bytes, DescriptorKind::DEVICE, Self::LENGTH, Self::read)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            usb_release: u16_le_at(bytes, 2)?,
            class: u8_at(bytes, 4)?,
            subclass: u8_at(bytes, 5)?,
            protocol: u8_at(bytes, 6)?,
            raw_control_packet_size: u8_at(bytes, 7)?,
        })
    }

    /// Largest packet of endpoint zero, in bytes, at `speed` (USB 2.0 §5.5.3, USB 3.2 §9.6.1).
    ///
    /// Low speed has 8 and SuperSpeed 512 whatever the device says. High speed has 64 by the
    /// specification; a device that names a smaller one is believed, since it sends such packets.
    ///
    /// # Errors
    /// [`DescriptorFault::ControlPacketSize`] when full and high speed devices name no size at
    /// all: reset the port and ask again.
    #[doc(alias = "bMaxPacketSize0")]
    pub const fn control_packet_size(self, speed: Speed) -> Result<u16, DescriptorFault> {
        match (speed, self.raw_control_packet_size) {
            (Speed::Low, _) => Ok(8),
            (Speed::Super | Speed::SuperPlus, _) => Ok(512),
            (Speed::Full | Speed::High, size @ (8 | 16 | 32 | 64)) => Ok(size as u16),
            (Speed::Full | Speed::High, other) => Err(DescriptorFault::ControlPacketSize(other)),
        }
    }
}

/// Packet size of endpoint zero, in bytes, to assume until the device has said its own.
///
/// Full speed starts at 64, the largest: a device with a smaller size ends the first read after
/// one packet, which is long enough for [`DeviceHead`], while one with a larger size than
/// assumed would babble (Policy, as in the hosts that devices are tested with).
#[must_use]
pub const fn initial_control_packet_size(speed: Speed) -> u16 {
    match speed {
        Speed::Low => 8,
        Speed::Full | Speed::High => 64,
        Speed::Super | Speed::SuperPlus => 512,
    }
}

/// A whole device descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// What the first bytes say.
    pub head: DeviceHead,
    /// Who made it, by the number that the USB forum gave.
    #[doc(alias = "idVendor")]
    pub vendor: u16,
    /// Which of the vendor's products.
    #[doc(alias = "idProduct")]
    pub product: u16,
    /// Release of the device, mostly binary-coded decimal: 0x0114.
    #[doc(alias = "bcdDevice")]
    pub release: u16,
    /// Index of the string that names the maker.
    #[doc(alias = "iManufacturer")]
    pub manufacturer_string: Option<NonZeroU8>,
    /// Index of the string that names the product.
    #[doc(alias = "iProduct")]
    pub product_string: Option<NonZeroU8>,
    /// Index of the string that is the serial number.
    #[doc(alias = "iSerialNumber")]
    pub serial_string: Option<NonZeroU8>,
    /// How many configurations can be asked for, by positions from zero.
    #[doc(alias = "bNumConfigurations")]
    pub configurations: u8,
}

impl Device {
    /// Bytes of the descriptor.
    pub const LENGTH: usize = 18;

    /// Reads the descriptor.
    ///
    /// # Errors
    /// [`DescriptorFault::TooShort`] below 18 bytes, [`DescriptorFault::WrongKind`].
    pub fn parse(bytes: &[u8]) -> Result<Self, DescriptorFault> {
        DescriptorFault::checked(bytes, DescriptorKind::DEVICE, Self::LENGTH, Self::read)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            head: DeviceHead::read(bytes)?,
            vendor: u16_le_at(bytes, 8)?,
            product: u16_le_at(bytes, 10)?,
            release: u16_le_at(bytes, 12)?,
            manufacturer_string: NonZeroU8::new(u8_at(bytes, 14)?),
            product_string: NonZeroU8::new(u8_at(bytes, 15)?),
            serial_string: NonZeroU8::new(u8_at(bytes, 16)?),
            configurations: u8_at(bytes, 17)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STICK: [u8; 18] = [
        18, 1, 0x10, 0x02, 0, 0, 0, 64, 0x81, 0x07, 0x67, 0x55, 0x00, 0x01, 1, 2, 0, 1,
    ];

    #[test]
    fn a_whole_descriptor_is_read() {
        let device = Device::parse(&STICK).unwrap();
        assert_eq!(device.head.usb_release, 0x0210);
        assert_eq!((device.vendor, device.product), (0x0781, 0x5567));
        assert_eq!(device.release, 0x0100);
        assert_eq!(device.product_string, NonZeroU8::new(2));
        assert_eq!(device.serial_string, None);
        assert_eq!(device.configurations, 1);
    }

    #[test]
    fn a_descriptor_of_another_kind_is_refused() {
        assert_eq!(
            DeviceHead::parse(&[9, 2, 32, 0, 1, 1, 0, 0x80, 50]),
            Err(DescriptorFault::WrongKind {
                found: DescriptorKind::CONFIGURATION
            })
        );
    }

    #[test]
    fn seventeen_bytes_are_not_a_device_descriptor() {
        let short = STICK.get(..17).unwrap();
        assert_eq!(
            Device::parse(short),
            Err(DescriptorFault::TooShort { have: 17, need: 18 })
        );
    }
}
