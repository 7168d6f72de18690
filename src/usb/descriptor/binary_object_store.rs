//! The binary object store: capabilities of the device as a whole (USB 3.2 §9.6.2).
//!
//! Enumeration reads it from devices of USB 2.1 and above, to see whether one that runs at high
//! speed could run at SuperSpeed.

use super::{Descriptor, DescriptorFault, DescriptorKind, Descriptors};
use crate::bytes::{u8_at, u16_le_at};

/// A view of the store's bytes.
#[derive(Clone, Copy, Debug)]
#[doc(alias = "BOS")]
pub struct BinaryObjectStore<'a> {
    announced_length: u16,
    body: &'a [u8],
}

/// What a SuperSpeed device says about its links (USB 3.2 §9.6.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperSpeedCapability {
    speeds: u16,
    /// Longest exit from the link state U1, in microseconds.
    #[doc(alias = "bU1DevExitLat")]
    pub u1_exit_microseconds: u8,
    /// Longest exit from the link state U2, in microseconds.
    #[doc(alias = "wU2DevExitLat")]
    pub u2_exit_microseconds: u16,
}

impl SuperSpeedCapability {
    /// Whether the device can run at 5 Gb/s.
    #[must_use]
    pub const fn runs_at_super_speed(&self) -> bool {
        self.speeds & 0x0008 != 0
    }
}

/// A capability of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Runs at SuperSpeed.
    SuperSpeed(SuperSpeedCapability),
    /// Runs above 5 Gb/s (USB 3.2 §9.6.2.5).
    SuperSpeedPlus,
    /// Any other, by its type.
    Other(u8),
}

impl Capability {
    fn parse(descriptor: Descriptor<'_>) -> Option<Self> {
        let bytes = descriptor.bytes();
        match u8_at(bytes, 2)? {
            0x03 => Some(Self::SuperSpeed(SuperSpeedCapability {
                speeds: u16_le_at(bytes, 4)?,
                u1_exit_microseconds: u8_at(bytes, 7)?,
                u2_exit_microseconds: u16_le_at(bytes, 8)?,
            })),
            0x0a => Some(Self::SuperSpeedPlus),
            other => Some(Self::Other(other)),
        }
    }
}

impl<'a> BinaryObjectStore<'a> {
    /// Bytes of the fixed part, enough to learn how much there is.
    pub const HEAD_LENGTH: usize = 5;

    /// Reads the fixed part, and keeps as much of the rest as was announced *and* came.
    ///
    /// # Errors
    /// [`DescriptorFault::TooShort`] below 5 bytes, [`DescriptorFault::WrongKind`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DescriptorFault> {
        let kind = DescriptorKind::BINARY_OBJECT_STORE;
        DescriptorFault::checked(bytes, kind, Self::HEAD_LENGTH, Self::read)
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        let announced_length = u16_le_at(bytes, 2)?;
        let body = bytes.get(Self::HEAD_LENGTH..)?;
        let announced_body = usize::from(announced_length).saturating_sub(Self::HEAD_LENGTH);
        Some(Self {
            announced_length,
            body: body.get(..announced_body).unwrap_or(body),
        })
    }

    /// Length of everything, in bytes, as the device announces it: how much to ask for.
    #[doc(alias = "wTotalLength")]
    #[must_use]
    pub const fn announced_length(&self) -> u16 {
        self.announced_length
    }

    /// The capabilities; cut ones are passed over.
    pub fn capabilities(&self) -> impl Iterator<Item = Capability> + use<'a> {
        Descriptors::new(self.body)
            .filter(|descriptor| descriptor.kind() == DescriptorKind::DEVICE_CAPABILITY)
            .filter_map(Capability::parse)
    }

    /// The SuperSpeed capability, where the device has one.
    #[must_use]
    pub fn super_speed(&self) -> Option<SuperSpeedCapability> {
        self.capabilities().find_map(|capability| match capability {
            Capability::SuperSpeed(super_speed) => Some(super_speed),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: [u8; 22] = [
        5, 0x0f, 22, 0, 2, 7, 0x10, 0x02, 2, 0, 0, 0, 10, 0x10, 0x03, 0, 0x0e, 0, 1, 10, 0xff, 7,
    ];

    #[test]
    fn the_super_speed_capability_is_found_behind_others() {
        let store = BinaryObjectStore::parse(&STORE).unwrap();
        assert_eq!(store.capabilities().next(), Some(Capability::Other(2)));
        let super_speed = store.super_speed().unwrap();
        assert!(super_speed.runs_at_super_speed());
        assert_eq!(super_speed.u1_exit_microseconds, 10);
        assert_eq!(super_speed.u2_exit_microseconds, 0x07ff);
    }

    #[test]
    fn a_store_that_is_cut_off_shows_what_came_whole() {
        let store = BinaryObjectStore::parse(STORE.get(..20).unwrap()).unwrap();
        assert_eq!(store.announced_length(), 22);
        assert_eq!(store.capabilities().count(), 1);
        assert_eq!(store.super_speed(), None);
    }
}
