//! Descriptors: what a device says about itself.
//!
//! [`Descriptors`] walks any byte string, one `(bLength, bDescriptorType, ...)` record after the
//! other; the files beside it give the records that a host needs a typed view. Enumeration, the
//! hub driver and the storage drivers call it; nothing is read from a device here.
//!
//! Every byte is a claim by the device. The walk ends at the first record that cannot be true
//! (shorter than its own head, or beyond the string), unknown records are passed over, and each
//! value is checked or clamped once, here: an [`Endpoint`] has a packet size that its speed
//! allows, a burst of 0 to 15 and a real address, whatever the device wrote.
//!
//! Read USB 2.0 §9.5 and §9.6 first, then USB 3.2 §9.6 for what SuperSpeed adds.

mod binary_object_store;
mod configuration;
mod device;
mod endpoint;
mod hub;
mod interface;
mod mass_storage;
mod string;

pub use binary_object_store::{BinaryObjectStore, Capability, SuperSpeedCapability};
pub use configuration::Configuration;
pub use device::{Device, DeviceHead, initial_control_packet_size};
pub use endpoint::{Endpoint, EndpointAddress, EndpointKind, MaxStreams, PipeUsage};
pub use hub::{Hub, OverCurrentReporting, PowerSwitching};
pub use interface::{Alternate, Alternates, Endpoints};
pub use mass_storage::{
    BulkOnlyPipes, CommandSet, MassStorage, MassStorageAlternate, Protocol, StorageTransport,
    UasPipes, Unusable,
};
pub use string::StringDescriptor;

/// `bDescriptorType` (USB 2.0 §9.4, table 9-5; USB 3.2 §9.4, table 9-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "bDescriptorType")]
pub struct DescriptorKind(pub u8);

impl DescriptorKind {
    /// The device itself.
    pub const DEVICE: Self = Self(0x01);
    /// A configuration, followed by all that belongs to it.
    pub const CONFIGURATION: Self = Self(0x02);
    /// A string, or the list of languages.
    pub const STRING: Self = Self(0x03);
    /// One alternate setting of an interface.
    pub const INTERFACE: Self = Self(0x04);
    /// An endpoint of the interface before it.
    pub const ENDPOINT: Self = Self(0x05);
    /// The binary object store (USB 3.2 §9.6.2).
    pub const BINARY_OBJECT_STORE: Self = Self(0x0f);
    /// A capability inside the binary object store.
    pub const DEVICE_CAPABILITY: Self = Self(0x10);
    /// Which UAS pipe the endpoint before it is (UAS §5.2.3.5). The number is class-specific:
    /// other classes use it for other things.
    pub const PIPE_USAGE: Self = Self(0x24);
    /// A hub up to high speed (USB 2.0 §11.23.2.1).
    pub const HUB: Self = Self(0x29);
    /// A SuperSpeed hub (USB 3.2 §10.15.2.1).
    pub const SUPER_SPEED_HUB: Self = Self(0x2a);
    /// What SuperSpeed adds to the endpoint before it (USB 3.2 §9.6.7).
    pub const ENDPOINT_COMPANION: Self = Self(0x30);
}

/// Why a descriptor could not be used. The remedy is the same for all: ask again, at the latest
/// after a new port reset, and give the device up when the answer stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorFault {
    /// The device sent fewer bytes than the fixed part has.
    TooShort {
        /// Bytes that came.
        have: u8,
        /// Bytes of the fixed part.
        need: u8,
    },
    /// The device sent a descriptor of another kind than it was asked for.
    WrongKind {
        /// The kind that came.
        found: DescriptorKind,
    },
    /// `bMaxPacketSize0` is none of the sizes that the device's speed has.
    ControlPacketSize(
        /// The raw byte.
        u8,
    ),
    /// A hub that says that it has no ports.
    NoPorts,
}

impl DescriptorFault {
    /// Lets `read` take what it needs from `bytes`, which must be of `kind`; `None` from it means
    /// that the `need` bytes of the fixed part are not all there. `bLength` is not looked at:
    /// what came is what there is to read.
    fn checked<'a, T>(
        bytes: &'a [u8],
        kind: DescriptorKind,
        need: usize,
        read: impl FnOnce(&'a [u8]) -> Option<T>,
    ) -> Result<T, Self> {
        if bytes.get(1) == Some(&kind.0)
            && let Some(descriptor) = read(bytes)
        {
            return Ok(descriptor);
        }
        Err(Self::of(bytes, kind, need))
    }

    /// Why `bytes` are no descriptor of `kind`, with `need` bytes in its fixed part.
    #[cold]
    #[inline(never)]
    fn of(bytes: &[u8], kind: DescriptorKind, need: usize) -> Self {
        match bytes {
            [_, found, ..] if *found != kind.0 => Self::WrongKind {
                found: DescriptorKind(*found),
            },
            // Fewer than the fixed part has, which is less than a descriptor can have.
            _ => Self::TooShort {
                have: bytes.len() as u8,
                need: need as u8,
            },
        }
    }
}

/// One descriptor: its whole record, whose length is its `bLength`, at least 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor<'a> {
    kind: DescriptorKind,
    bytes: &'a [u8],
}

impl<'a> Descriptor<'a> {
    /// Its type byte.
    #[must_use]
    pub const fn kind(&self) -> DescriptorKind {
        self.kind
    }

    /// The record, length and type bytes included.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Walks the descriptors of a byte string.
///
/// Ends where the string ends, or at the first record with `bLength` below 2 or beyond the
/// string. So it yields at most half as many descriptors as there are bytes.
#[derive(Clone, Debug)]
pub struct Descriptors<'a> {
    rest: &'a [u8],
}

impl<'a> Descriptors<'a> {
    /// Starts at the first byte of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Descriptors<'a> {
    type Item = Descriptor<'a>;

    fn next(&mut self) -> Option<Descriptor<'a>> {
        let [length, kind, ..] = *self.rest else {
            return None;
        };
        if length < 2 {
            return None;
        }
        let (bytes, rest) = self.rest.split_at_checked(usize::from(length))?;
        self.rest = rest;
        Some(Descriptor {
            kind: DescriptorKind(kind),
            bytes,
        })
    }
}

impl core::iter::FusedIterator for Descriptors<'_> {}

#[cfg(test)]
mod field_cases;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_passes_over_records_by_their_length() {
        let mut walk = Descriptors::new(&[2, 0x77, 3, 5, 0xaa]);
        assert_eq!(walk.next().map(|d| d.kind()), Some(DescriptorKind(0x77)));
        assert_eq!(walk.next().map(|d| d.bytes()), Some(&[3, 5, 0xaa][..]));
        assert_eq!(walk.next(), None);
    }

    #[test]
    fn the_walk_ends_at_a_record_that_cannot_be_true_and_stays_ended() {
        for bytes in [&[0, 5, 0, 0][..], &[1, 5], &[4, 5, 0], &[2], &[]] {
            let mut walk = Descriptors::new(bytes);
            assert_eq!(walk.next(), None, "{bytes:?}");
            assert_eq!(walk.next(), None, "{bytes:?}");
        }
    }
}
