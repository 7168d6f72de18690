//! Which setting of a device is used for storage.
//!
//! Bulk-Only, wherever it is among the alternate settings. UAS is not there yet: a device that
//! offers nothing else is listed without a driver.

use super::quirks::Quirks;
use crate::usb::descriptor::{
    Alternate, BulkOnlyPipes, CommandSet, Configuration, MassStorageAlternate, Protocol,
    StorageTransport,
};
use crate::usb::quirks::BusQuirks;
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
    /// The command set that it announces.
    pub command_set: CommandSet,
    /// Its pipes.
    pub pipes: BulkOnlyPipes,
}

/// Picks the first Bulk-Only setting of a configuration, from the bytes that came of it.
#[must_use]
pub fn choose(
    configuration: &[u8],
    speed: Speed,
    quirks: Quirks,
    bus_quirks: BusQuirks,
) -> Option<Choice> {
    let configuration = Configuration::parse(configuration).ok()?;
    if quirks.contains(Quirks::IGNORE_DEVICE) {
        return None;
    }
    let announced = if bus_quirks.contains(BusQuirks::HONOR_BNUMINTERFACES) {
        usize::from(configuration.announced_interfaces())
    } else {
        usize::MAX
    };
    if quirks.contains(Quirks::BULK_ONLY) {
        return configuration
            .alternates()
            .find_map(|alternate| disguised(&configuration, &alternate, speed));
    }
    configuration
        .mass_storage(speed)
        .filter(|setting| place(&configuration, setting.interface) < announced)
        .find_map(|setting| plain(&configuration, &setting))
}

fn plain(configuration: &Configuration<'_>, setting: &MassStorageAlternate) -> Option<Choice> {
    match setting.transport {
        StorageTransport::BulkOnly(pipes) => Some(Choice {
            configuration: configuration.value(),
            interface: setting.interface,
            alternate: setting.alternate,
            command_set: setting.command_set,
            pipes,
        }),
        StorageTransport::Uas(_) | StorageTransport::Unusable(_) => None,
    }
}

/// A setting that is Bulk-Only whatever it says.
fn disguised(
    configuration: &Configuration<'_>,
    alternate: &Alternate<'_>,
    speed: Speed,
) -> Option<Choice> {
    let setting = MassStorageAlternate {
        interface: alternate.interface,
        alternate: alternate.alternate,
        command_set: CommandSet::from_subclass(alternate.subclass),
        transport: StorageTransport::find(alternate, Protocol::BulkOnly, speed),
    };
    plain(configuration, &setting)
}

/// How many interfaces are described before this one.
fn place(configuration: &Configuration<'_>, interface: u8) -> usize {
    let mut seen = [false; 256];
    let mut before = 0;
    for alternate in configuration.alternates() {
        if alternate.interface == interface {
            break;
        }
        if let Some(seen) = seen.get_mut(usize::from(alternate.interface)) {
            before += usize::from(!core::mem::replace(seen, true));
        }
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIPES: [u8; 14] = [7, 5, 0x81, 2, 0, 2, 0, 7, 5, 0x02, 2, 0, 2, 0];

    /// A configuration that announces `announced` interfaces and has these, by class and protocol.
    fn configuration(announced: u8, interfaces: &[(u8, u8)]) -> Vec<u8> {
        let total = 9 + interfaces.len() * (9 + PIPES.len());
        let mut bytes = vec![9, 2, total as u8, 0, announced, 1, 0, 0x80, 50];
        for (number, (class, protocol)) in (0..).zip(interfaces) {
            bytes.extend([9, 4, number, 0, 2, *class, 6, *protocol, 0]);
            bytes.extend(PIPES);
        }
        bytes
    }

    fn interface(bytes: &[u8], quirks: Quirks, bus_quirks: BusQuirks) -> Option<u8> {
        let choice = choose(bytes, Speed::High, quirks, bus_quirks);
        choice.map(|choice| choice.interface)
    }

    #[test]
    fn the_first_bulk_only_setting_is_chosen_wherever_it_is() {
        let bytes = configuration(2, &[(3, 1), (8, 0x50)]);
        let none = (Quirks::empty(), BusQuirks::empty());
        assert_eq!(interface(&bytes, none.0, none.1), Some(1));
        assert_eq!(interface(&bytes, Quirks::IGNORE_DEVICE, none.1), None);
    }

    #[test]
    fn interfaces_beyond_the_announced_number_are_used_unless_the_device_minds() {
        let bytes = configuration(1, &[(3, 1), (8, 0x50)]);
        let minds = BusQuirks::HONOR_BNUMINTERFACES;
        assert_eq!(
            interface(&bytes, Quirks::empty(), BusQuirks::empty()),
            Some(1)
        );
        assert_eq!(interface(&bytes, Quirks::empty(), minds), None);
        let two = configuration(2, &[(3, 1), (8, 0x50)]);
        assert_eq!(interface(&two, Quirks::empty(), minds), Some(1));
    }

    #[test]
    fn a_disguised_interface_is_used_only_where_it_is_known() {
        for disguise in [(0xff, 0xff), (8, 6), (8, 1)] {
            let bytes = configuration(1, &[disguise]);
            assert_eq!(interface(&bytes, Quirks::empty(), BusQuirks::empty()), None);
            let known = interface(&bytes, Quirks::BULK_ONLY, BusQuirks::empty());
            assert_eq!(known, Some(0));
        }
    }
}
