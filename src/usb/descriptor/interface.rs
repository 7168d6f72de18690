//! Interfaces, one record for each alternate setting, and the endpoints that follow each
//! (USB 2.0 §9.6.5, §9.6.6).
//!
//! The invariant of [`Endpoints`]: each endpoint has a number above zero and comes once, and there
//! are no more than the alternate setting announced, hence never more than 30.

use super::{Descriptor, DescriptorKind, Descriptors, Endpoint};
use crate::bytes::u8_at;
use crate::usb::speed::Speed;

/// One alternate setting of one interface.
#[derive(Clone, Debug)]
pub struct Alternate<'a> {
    /// Number of the interface, for SET_INTERFACE and class requests.
    #[doc(alias = "bInterfaceNumber")]
    pub interface: u8,
    /// Number of the alternate setting. After SET_CONFIGURATION, 0 is in use.
    #[doc(alias = "bAlternateSetting")]
    pub alternate: u8,
    /// Class: 8 is mass storage, 9 a hub.
    #[doc(alias = "bInterfaceClass")]
    pub class: u8,
    /// Subclass, within the class.
    #[doc(alias = "bInterfaceSubClass")]
    pub subclass: u8,
    /// Protocol, within the subclass.
    #[doc(alias = "bInterfaceProtocol")]
    pub protocol: u8,
    announced_endpoints: u8,
    /// From just behind the interface descriptor to the end of the configuration.
    following: Descriptors<'a>,
}

impl<'a> Alternate<'a> {
    /// Bytes of an interface descriptor.
    const LENGTH: usize = 9;

    fn parse(descriptor: Descriptor<'_>, following: Descriptors<'a>) -> Option<Self> {
        let bytes = descriptor.bytes().get(..Self::LENGTH)?;
        Some(Self {
            interface: u8_at(bytes, 2)?,
            alternate: u8_at(bytes, 3)?,
            announced_endpoints: u8_at(bytes, 4)?,
            class: u8_at(bytes, 5)?,
            subclass: u8_at(bytes, 6)?,
            protocol: u8_at(bytes, 7)?,
            following,
        })
    }

    /// The endpoints of this alternate setting, as they are at `speed`.
    #[must_use]
    pub fn endpoints(&self, speed: Speed) -> Endpoints<'a> {
        Endpoints {
            following: self.following.clone(),
            speed,
            left: self.announced_endpoints,
            seen: 0,
        }
    }
}

/// Walks the alternate settings of a configuration.
#[derive(Clone, Debug)]
pub struct Alternates<'a> {
    following: Descriptors<'a>,
}

impl<'a> Alternates<'a> {
    pub(super) const fn new(following: Descriptors<'a>) -> Self {
        Self { following }
    }
}

impl<'a> Iterator for Alternates<'a> {
    type Item = Alternate<'a>;

    fn next(&mut self) -> Option<Alternate<'a>> {
        loop {
            let descriptor = self.following.next()?;
            if descriptor.kind() != DescriptorKind::INTERFACE {
                continue;
            }
            if let Some(alternate) = Alternate::parse(descriptor, self.following.clone()) {
                return Some(alternate);
            }
        }
    }
}

/// Walks the endpoints of one alternate setting.
///
/// Endpoint zero, endpoints that were there already, and endpoints without a packet size are
/// passed over; the walk ends at the next interface, or when as many came as were announced.
#[derive(Clone, Debug)]
pub struct Endpoints<'a> {
    following: Descriptors<'a>,
    speed: Speed,
    left: u8,
    /// Bit n: OUT endpoint n was there; bit 16 + n: IN endpoint n.
    seen: u32,
}

impl Endpoints<'_> {
    fn is_new(&mut self, endpoint: &Endpoint) -> bool {
        let bit = endpoint.address().bit();
        let new = self.seen & bit == 0;
        self.seen |= bit;
        new
    }
}

impl Iterator for Endpoints<'_> {
    type Item = Endpoint;

    fn next(&mut self) -> Option<Endpoint> {
        while self.left > 0 {
            let descriptor = self.following.next()?;
            match descriptor.kind() {
                DescriptorKind::INTERFACE => self.left = 0,
                DescriptorKind::ENDPOINT => {
                    let endpoint = Endpoint::parse(descriptor, self.following.clone(), self.speed);
                    if let Some(endpoint) = endpoint.filter(|endpoint| self.is_new(endpoint)) {
                        self.left -= 1;
                        return Some(endpoint);
                    }
                }
                _ => {}
            }
        }
        None
    }
}
