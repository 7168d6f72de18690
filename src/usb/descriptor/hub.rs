//! The hub descriptor, of both kinds: up to high speed (USB 2.0 §11.23.2.1) and SuperSpeed
//! (USB 3.2 §10.15.2.1).
//!
//! The hub driver reads it once, before it powers ports.

use super::{DescriptorFault, DescriptorKind};
use crate::bytes::{u8_at, u16_le_at};

/// How a hub switches the power of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerSwitching {
    /// All ports at once.
    Ganged,
    /// Each port by itself.
    Individual,
    /// Not at all: ports are powered when the hub is.
    None,
}

/// How a hub reports over-current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverCurrentReporting {
    /// For the sum of all ports.
    Global,
    /// For each port.
    Individual,
    /// Not at all.
    None,
}

/// What a hub says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hub {
    ports: u8,
    characteristics: u16,
    power_on_to_good: u8,
    /// Raw `wHubDelay`, 0 up to high speed.
    delay_nanoseconds: u16,
}

impl Hub {
    /// Most ports that are used. Policy: hubs with more do not exist, and a lying byte must not
    /// cost a request for each of 255 ports.
    pub const MAX_PORTS: u8 = 31;

    /// Bytes that must be there, for both kinds.
    pub const LENGTH: usize = 7;

    /// Reads either kind.
    ///
    /// # Errors
    /// [`DescriptorFault::TooShort`] below 7 bytes, [`DescriptorFault::WrongKind`], and
    /// [`DescriptorFault::NoPorts`].
    pub fn parse(bytes: &[u8]) -> Result<Self, DescriptorFault> {
        let kind = match u8_at(bytes, 1) {
            Some(0x2a) => DescriptorKind::SUPER_SPEED_HUB,
            _ => DescriptorKind::HUB,
        };
        let hub = DescriptorFault::checked(bytes, kind, Self::LENGTH, |bytes| {
            Self::read(bytes.get(..Self::LENGTH)?, bytes, kind)
        })?;
        if hub.ports == 0 {
            return Err(DescriptorFault::NoPorts);
        }
        Ok(hub)
    }

    fn read(fixed: &[u8], all: &[u8], kind: DescriptorKind) -> Option<Self> {
        let delay_nanoseconds = match kind {
            DescriptorKind::SUPER_SPEED_HUB => u16_le_at(all, 8).unwrap_or_default(),
            _ => 0,
        };
        Some(Self {
            ports: u8_at(fixed, 2)?.min(Self::MAX_PORTS),
            characteristics: u16_le_at(fixed, 3)?,
            power_on_to_good: u8_at(fixed, 5)?,
            delay_nanoseconds,
        })
    }

    /// Number of downstream ports, 1 to 31; they count from 1.
    #[doc(alias = "bNbrPorts")]
    #[must_use]
    pub const fn ports(&self) -> u8 {
        self.ports
    }

    /// Time from switching a port's power on until it is good, in milliseconds: 0 to 510.
    #[doc(alias = "bPwrOn2PwrGood")]
    #[must_use]
    pub const fn power_on_to_good_milliseconds(&self) -> u16 {
        self.power_on_to_good as u16 * 2
    }

    /// How the hub switches power.
    #[doc(alias = "wHubCharacteristics")]
    #[must_use]
    pub const fn power_switching(&self) -> PowerSwitching {
        match self.characteristics & 0x03 {
            0 => PowerSwitching::Ganged,
            1 => PowerSwitching::Individual,
            _ => PowerSwitching::None,
        }
    }

    /// How the hub reports over-current.
    #[must_use]
    pub const fn over_current_reporting(&self) -> OverCurrentReporting {
        match self.characteristics & 0x18 {
            0x00 => OverCurrentReporting::Global,
            0x08 => OverCurrentReporting::Individual,
            _ => OverCurrentReporting::None,
        }
    }

    /// Whether the hub is part of a compound device.
    #[must_use]
    pub const fn is_compound(&self) -> bool {
        self.characteristics & 0x04 != 0
    }

    /// Time that the transaction translator needs between transactions, as the two bits that
    /// controllers take: 0 to 3 for 8, 16, 24 and 32 full-speed bit times.
    #[doc(alias = "TTT")]
    #[must_use]
    pub const fn think_time(&self) -> u8 {
        match self.characteristics & 0x60 {
            0x00 => 0,
            0x20 => 1,
            0x40 => 2,
            _ => 3,
        }
    }

    /// Delay that a SuperSpeed hub adds to a packet, in nanoseconds; 0 for other hubs.
    #[doc(alias = "wHubDelay")]
    #[must_use]
    pub const fn delay_nanoseconds(&self) -> u16 {
        self.delay_nanoseconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_high_speed_hub_is_read() {
        let hub = Hub::parse(&[9, 0x29, 4, 0x29, 0x00, 50, 100, 0, 0xff]).unwrap();
        assert_eq!(hub.ports(), 4);
        assert_eq!(hub.power_switching(), PowerSwitching::Individual);
        assert_eq!(
            hub.over_current_reporting(),
            OverCurrentReporting::Individual
        );
        assert_eq!(hub.think_time(), 1);
        assert_eq!(hub.power_on_to_good_milliseconds(), 100);
        assert!(!hub.is_compound());
    }

    #[test]
    fn a_super_speed_hub_has_a_delay() {
        let hub = Hub::parse(&[12, 0x2a, 2, 0x00, 0x00, 10, 0, 4, 0x2c, 0x01, 0, 0]).unwrap();
        assert_eq!(hub.ports(), 2);
        assert_eq!(hub.delay_nanoseconds(), 300);
    }

    #[test]
    fn port_counts_are_bounded_and_no_ports_is_a_fault() {
        assert_eq!(
            Hub::parse(&[9, 0x29, 255, 0, 0, 0, 0]).map(|hub| hub.ports()),
            Ok(31)
        );
        assert_eq!(
            Hub::parse(&[9, 0x29, 0, 0, 0, 0, 0]),
            Err(DescriptorFault::NoPorts)
        );
    }

    #[test]
    fn a_hub_descriptor_of_another_kind_or_cut_short_is_refused() {
        assert_eq!(
            Hub::parse(&[9, 0x01, 4, 0, 0, 0, 0]),
            Err(DescriptorFault::WrongKind {
                found: DescriptorKind::DEVICE
            })
        );
        assert_eq!(
            Hub::parse(&[9, 0x29, 4]),
            Err(DescriptorFault::TooShort { have: 3, need: 7 })
        );
    }
}
