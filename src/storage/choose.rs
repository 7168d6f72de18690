//! Which settings of a device can be used for storage.
//!
//! UAS and Bulk-Only are known by their protocol, wherever they are among the alternate settings, and
//! whether there is one of them or both. The stack tries the better one first.

use crate::usb::descriptor::{
    BulkOnlyPipes, Configuration, MassStorageAlternate, StorageTransport, UasPipes,
};
use crate::usb::speed::Speed;

/// How commands travel, with the endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Over Bulk-Only.
    BulkOnly(BulkOnlyPipes),
    /// Over UAS.
    Uas(UasPipes),
}

/// A setting that can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// `bConfigurationValue`.
    pub configuration: u8,
    /// The interface.
    pub interface: u8,
    /// Its alternate setting.
    pub alternate: u8,
    /// How commands travel.
    pub way: Way,
}

/// What a device offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offer {
    /// The first UAS setting.
    pub uas: Option<Choice>,
    /// The first Bulk-Only setting.
    pub bulk_only: Option<Choice>,
}

impl Offer {
    /// Looks for settings in a configuration, in the bytes that came of it.
    #[must_use]
    pub fn of(configuration: &[u8], speed: Speed) -> Self {
        let mut offer = Self::default();
        let Ok(configuration) = Configuration::parse(configuration) else {
            return offer;
        };
        for setting in configuration.mass_storage(speed) {
            let MassStorageAlternate {
                interface,
                alternate,
                transport,
                ..
            } = setting;
            let (place, way) = match transport {
                StorageTransport::BulkOnly(pipes) => (&mut offer.bulk_only, Way::BulkOnly(pipes)),
                StorageTransport::Uas(pipes) => (&mut offer.uas, Way::Uas(pipes)),
                StorageTransport::Unusable(_) => continue,
            };
            place.get_or_insert(Choice {
                configuration: configuration.value(),
                interface,
                alternate,
                way,
            });
        }
        offer
    }

    /// The settings to be tried, in this order. A device that has failed over UAS has it as its last
    /// resort only.
    #[must_use]
    pub fn in_order(&self, uas_failed: bool) -> [Option<Choice>; 2] {
        if uas_failed {
            [self.bulk_only, self.uas]
        } else {
            [self.uas, self.bulk_only]
        }
    }
}
