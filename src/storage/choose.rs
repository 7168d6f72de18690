//! Which settings of a device can be used for storage.
//!
//! UAS and Bulk-Only are known by their protocol, wherever they are among the alternate settings, and
//! whether there is one of them or both. The stack asks once a device was described, and tries the
//! better one first.

use super::quirks::Quirks;
use crate::usb::descriptor::{
    Alternate, BulkOnlyPipes, CommandSet, Configuration, MassStorageAlternate, Protocol,
    StorageTransport, UasPipes,
};
use crate::usb::quirks::BusQuirks;
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
    /// The command set that it announces.
    pub command_set: CommandSet,
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
    /// `bMaxPower` of the configuration, in its own units.
    pub raw_max_power: u8,
}

impl Offer {
    /// Looks for settings in a configuration, in the bytes that came of it. `quirks` are those that
    /// hold over Bulk-Only.
    #[must_use]
    pub fn of(configuration: &[u8], speed: Speed, quirks: Quirks, bus_quirks: BusQuirks) -> Self {
        let mut offer = Self::default();
        let Ok(configuration) = Configuration::parse(configuration) else {
            return offer;
        };
        offer.raw_max_power = configuration.raw_max_power();
        if quirks.contains(Quirks::IGNORE_DEVICE) {
            return offer;
        }
        if quirks.contains(Quirks::BULK_ONLY) {
            offer.bulk_only = configuration
                .alternates()
                .find_map(|alternate| disguised(&configuration, &alternate, speed));
            return offer;
        }
        let announced = if bus_quirks.contains(BusQuirks::HONOR_BNUMINTERFACES) {
            usize::from(configuration.announced_interfaces())
        } else {
            usize::MAX
        };
        for setting in configuration.mass_storage(speed) {
            if place(&configuration, setting.interface) >= announced {
                continue;
            }
            let Some(choice) = plain(&configuration, &setting) else {
                continue;
            };
            match choice.way {
                Way::BulkOnly(_) => offer.bulk_only.get_or_insert(choice),
                Way::Uas(_) => offer.uas.get_or_insert(choice),
            };
        }
        offer
    }

    /// Streams that the status pipe of the UAS setting announces; 0 without.
    #[must_use]
    pub fn status_streams(&self) -> u32 {
        match self.uas.map(|choice| choice.way) {
            Some(Way::Uas(pipes)) => pipes.status.max_streams().count(),
            Some(Way::BulkOnly(_)) | None => 0,
        }
    }
}

fn plain(configuration: &Configuration<'_>, setting: &MassStorageAlternate) -> Option<Choice> {
    let way = match setting.transport {
        StorageTransport::BulkOnly(pipes) => Way::BulkOnly(pipes),
        StorageTransport::Uas(pipes) if cfg!(feature = "uas") => Way::Uas(pipes),
        StorageTransport::Uas(_) | StorageTransport::Unusable(_) => return None,
    };
    Some(Choice {
        configuration: configuration.value(),
        interface: setting.interface,
        alternate: setting.alternate,
        command_set: setting.command_set,
        way,
    })
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
        let offer = Offer::of(bytes, Speed::High, quirks, bus_quirks);
        offer.bulk_only.map(|choice| choice.interface)
    }

    #[test]
    fn the_first_bulk_only_setting_is_chosen_wherever_it_is() {
        let bytes = configuration(2, &[(3, 1), (8, 0x50)]);
        let none = (Quirks::empty(), BusQuirks::empty());
        assert_eq!(interface(&bytes, none.0, none.1), Some(1));
        assert_eq!(interface(&bytes, Quirks::IGNORE_DEVICE, none.1), None);
    }

    /// A UAS setting: endpoints of high speed with their pipe usage descriptors.
    const UAS: [u8; 44] = [
        7, 5, 0x02, 2, 0, 2, 0, 4, 0x24, 1, 0, //
        7, 5, 0x81, 2, 0, 2, 0, 4, 0x24, 2, 0, //
        7, 5, 0x83, 2, 0, 2, 0, 4, 0x24, 3, 0, //
        7, 5, 0x04, 2, 0, 2, 0, 4, 0x24, 4, 0,
    ];

    #[test]
    fn both_ways_are_found_in_either_order_and_each_alone() {
        let bulk_only = [&[9, 4, 0, 0, 2, 8, 6, 0x50, 0][..], &PIPES].concat();
        let uas = [&[9, 4, 0, 1, 4, 8, 6, 0x62, 0][..], &UAS].concat();
        for settings in [&[&bulk_only[..], &uas][..], &[&uas, &bulk_only], &[&uas]] {
            let settings = settings.concat();
            let total = 9 + settings.len() as u8;
            let bytes = [&[9, 2, total, 0, 1, 1, 0, 0x80, 36][..], &settings].concat();
            let offer = Offer::of(&bytes, Speed::High, Quirks::empty(), BusQuirks::empty());
            assert_eq!(offer.uas.unwrap().alternate, 1);
            let has_bulk_only = settings.len() > uas.len();
            assert_eq!(offer.bulk_only.is_some(), has_bulk_only);
            assert_eq!((offer.raw_max_power, offer.status_streams()), (36, 0));
        }
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
