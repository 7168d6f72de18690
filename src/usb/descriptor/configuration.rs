//! A configuration and all that belongs to it (USB 2.0 §9.6.3).
//!
//! Enumeration reads the first 9 bytes, takes the announced length, reads so much, and parses what
//! came. [`Configuration`] is a view of those bytes: it borrows them and copies nothing.

use super::{Alternates, DescriptorFault, DescriptorKind, Descriptors, MassStorage};
use crate::bytes::{u8_at, u16_le_at};
use crate::usb::speed::Speed;

/// A configuration descriptor with what followed it.
#[derive(Clone, Copy, Debug)]
pub struct Configuration<'a> {
    announced_length: u16,
    interfaces: u8,
    value: u8,
    attributes: u8,
    raw_max_power: u8,
    /// Behind the fixed part, within both the announced length and what came.
    body: &'a [u8],
}

impl<'a> Configuration<'a> {
    /// Bytes of the fixed part, enough to learn [`Configuration::announced_length`].
    pub const HEAD_LENGTH: usize = 9;

    /// Reads the fixed part, and keeps as much of the rest as was announced *and* came.
    ///
    /// # Errors
    /// [`DescriptorFault::TooShort`] below 9 bytes, [`DescriptorFault::WrongKind`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DescriptorFault> {
        DescriptorFault::checked(
            bytes,
            DescriptorKind::CONFIGURATION,
            Self::HEAD_LENGTH,
            Self::read,
        )
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        let announced_length = u16_le_at(bytes, 2)?;
        let there = bytes.get(..usize::from(announced_length)).unwrap_or(bytes);
        let head_length = usize::from(u8_at(bytes, 0)?).max(Self::HEAD_LENGTH);
        Some(Self {
            announced_length,
            interfaces: u8_at(bytes, 4)?,
            value: u8_at(bytes, 5)?,
            attributes: u8_at(bytes, 7)?,
            raw_max_power: u8_at(bytes, 8)?,
            body: there.get(head_length..).unwrap_or_default(),
        })
    }

    /// Length of everything, in bytes, as the device announces it: how much to ask for. It may
    /// be more than the device then sends.
    #[doc(alias = "wTotalLength")]
    #[must_use]
    pub const fn announced_length(&self) -> u16 {
        self.announced_length
    }

    /// How many interfaces the device announces. There may be more or fewer: some devices need
    /// the surplus used, 1908:1315 needs it ignored.
    #[doc(alias = "bNumInterfaces")]
    #[must_use]
    pub const fn announced_interfaces(&self) -> u8 {
        self.interfaces
    }

    /// What SET_CONFIGURATION takes. A label that the device chose, not a position.
    #[doc(alias = "bConfigurationValue")]
    #[must_use]
    pub const fn value(&self) -> u8 {
        self.value
    }

    /// Whether the device has a supply of its own.
    #[doc(alias = "bmAttributes")]
    #[must_use]
    pub const fn is_self_powered(&self) -> bool {
        self.attributes & 0x40 != 0
    }

    /// The current that the device draws, in the device's units: 2 mA up to high speed, 8 mA
    /// above. Bridges are told apart by it.
    #[doc(alias = "bMaxPower")]
    #[must_use]
    pub const fn raw_max_power(&self) -> u8 {
        self.raw_max_power
    }

    /// The current that the device draws from the bus, in mA (USB 2.0 §9.6.3, USB 3.2 §9.6.3).
    #[must_use]
    pub const fn max_power_milliamperes(&self, speed: Speed) -> u16 {
        let unit = if speed.is_super() { 8 } else { 2 };
        self.raw_max_power as u16 * unit
    }

    /// Every descriptor behind the fixed part.
    #[must_use]
    pub const fn descriptors(&self) -> Descriptors<'a> {
        Descriptors::new(self.body)
    }

    /// Every alternate setting of every interface, in the device's order.
    #[must_use]
    pub const fn alternates(&self) -> Alternates<'a> {
        Alternates::new(self.descriptors())
    }

    /// Every alternate setting of class Mass Storage, with its pipes as they are at `speed`.
    #[must_use]
    pub const fn mass_storage(&self, speed: Speed) -> MassStorage<'a> {
        MassStorage::new(self.alternates(), speed)
    }
}
