//! Which setting of a device is used for storage.
//!
//! Bulk-Only, wherever it is among the alternate settings. UAS is not there yet: a device that
//! offers nothing else is listed without a driver.

use crate::usb::descriptor::{
    BulkOnlyPipes, Configuration, MassStorageAlternate, StorageTransport,
};
use crate::usb::speed::Speed;

/// The setting that was chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// `bConfigurationValue`.
    pub configuration: u8,
    /// The interface.
    pub interface: u8,
    /// Its alternate setting.
    pub alternate: u8,
    /// Its pipes.
    pub pipes: BulkOnlyPipes,
}

/// Picks the first Bulk-Only setting of a configuration, from the bytes that came of it.
#[must_use]
pub fn choose(configuration: &[u8], speed: Speed) -> Option<Choice> {
    let configuration = Configuration::parse(configuration).ok()?;
    configuration.mass_storage(speed).find_map(|setting| {
        let MassStorageAlternate {
            interface,
            alternate,
            transport,
            ..
        } = setting;
        match transport {
            StorageTransport::BulkOnly(pipes) => Some(Choice {
                configuration: configuration.value(),
                interface,
                alternate,
                pipes,
            }),
            StorageTransport::Uas(_) | StorageTransport::Unusable(_) => None,
        }
    })
}
