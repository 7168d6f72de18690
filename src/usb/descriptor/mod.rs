//! What a device says about itself.

use super::setup::Direction;

/// `bDescriptorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DescriptorKind(pub u8);

impl DescriptorKind {
    /// Device.
    pub const DEVICE: Self = Self(1);
    /// Configuration.
    pub const CONFIGURATION: Self = Self(2);
    /// String.
    pub const STRING: Self = Self(3);
    /// Binary object store.
    pub const BINARY_OBJECT_STORE: Self = Self(0x0f);
    /// Hub.
    pub const HUB: Self = Self(0x29);
    /// SuperSpeed hub.
    pub const SUPER_SPEED_HUB: Self = Self(0x2a);
}

/// `bEndpointAddress`: number and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndpointAddress(u8);

impl EndpointAddress {
    /// Endpoint `number` (1 to 15) in `direction`.
    #[must_use]
    pub const fn new(number: u8, direction: Direction) -> Option<Self> {
        match (number, direction) {
            (0 | 16.., _) => None,
            (_, Direction::In) => Some(Self(number | 0x80)),
            (_, Direction::Out) => Some(Self(number)),
        }
    }

    /// The byte as it goes over the wire.
    #[must_use]
    pub const fn byte(self) -> u8 {
        self.0
    }
}
