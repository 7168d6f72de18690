//! Devices that are odd on the bus itself, whatever class they have.
//!
//! Enumeration asks once the device descriptor is there, since what is odd may be what comes next.
//! The words are those of Linux's USB core. Left out, because the stack does to no device what they
//! guard against: link power management, suspend, strings of configurations and interfaces. Quirks
//! of storage are in `storage::quirks`.

bitflags::bitflags! {
    /// What is done for a device.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct BusQuirks: u8 {
        /// It is not ready for its configuration to be read: a pause goes before.
        const DELAY_INIT = 1 << 0;
        /// It fails when a string is asked for with 255 bytes: its length is asked for first.
        const STRING_FETCH_255 = 1 << 1;
        /// It describes more interfaces than it announces, and cannot bear the surplus to be used.
        const HONOR_BNUMINTERFACES = 1 << 2;
    }
}

/// An entry of the table. All are from Linux, drivers/usb/core/quirks.c.
struct Entry {
    ids: (u16, u16),
    quirks: BusQuirks,
}

const fn row(vendor: u16, product: u16, quirks: BusQuirks) -> Entry {
    Entry {
        ids: (vendor, product),
        quirks,
    }
}

/// In the order of the ids.
static ENTRIES: [Entry; 7] = [
    // HP v222w stick.
    row(0x03f0, 0x3f40, BusQuirks::DELAY_INIT),
    // Prolific card reader.
    row(0x067b, 0x2731, BusQuirks::DELAY_INIT),
    // SanDisk 3.2 Gen 1 sticks.
    row(0x0781, 0x5596, BusQuirks::DELAY_INIT),
    row(0x0781, 0x55a3, BusQuirks::DELAY_INIT),
    // Silicon Motion stick.
    row(0x090c, 0x1000, BusQuirks::DELAY_INIT),
    // Actions player.
    row(0x10d6, 0x2200, BusQuirks::STRING_FETCH_255),
    // Digital photo frame.
    row(0x1908, 0x1315, BusQuirks::HONOR_BNUMINTERFACES),
];

/// What is done for the device with these ids.
#[must_use]
pub fn bus_quirks(vendor: u16, product: u16) -> BusQuirks {
    let found = ENTRIES.binary_search_by_key(&(vendor, product), |entry| entry.ids);
    let entry = found.ok().and_then(|place| ENTRIES.get(place));
    entry.map_or(BusQuirks::empty(), |entry| entry.quirks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_found_and_its_neighbour_gets_nothing() {
        assert!(ENTRIES.iter().map(|entry| entry.ids).is_sorted());
        for entry in &ENTRIES {
            let (vendor, product) = entry.ids;
            assert_eq!(bus_quirks(vendor, product), entry.quirks);
            assert_eq!(bus_quirks(vendor, product + 1), BusQuirks::empty());
        }
    }
}
