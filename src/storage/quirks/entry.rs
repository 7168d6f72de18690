//! An entry of a table: which devices, and what they get. With it, apart, why.
//!
//! A table is written as rows that hold both, and is taken apart when it is compiled: entries are
//! looked up on every board, stories are for people, and an image that shows none has none.

use super::{Quirks, attached, bulk_only};
use crate::usb::speed::Speed;

/// What a device is looked up by.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// `idVendor`.
    pub vendor: u16,
    /// `idProduct`.
    pub product: u16,
    /// `bcdDevice`.
    pub release: u16,
    /// The speed of its link.
    pub speed: Speed,
    /// Its string that names the maker; empty if it has none.
    pub manufacturer: &'a [u8],
    /// Its string that names the product; empty if it has none.
    pub product_name: &'a [u8],
}

/// Devices, and their policies.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    vendor: u16,
    products: (u16, u16),
    releases: (u16, u16),
    /// At this speed only.
    speed: Option<Speed>,
    quirks: Quirks,
    /// Only with these strings: maker and product.
    strings: Option<&'static [&'static str; 2]>,
}

/// Whose entry it is, and who says so.
#[derive(Clone, Copy, Debug)]
pub struct Story {
    /// The device.
    pub product: &'static str,
    /// The public source.
    pub evidence: &'static str,
}

/// Which table: one for each transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Table {
    BulkOnly,
    Attached,
}

/// An entry that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryRef {
    table: Table,
    place: u16,
}

impl EntryRef {
    /// Its policies.
    #[must_use]
    pub fn quirks(&self) -> Quirks {
        let entry = self.table.entries().get(usize::from(self.place));
        entry.map_or(Quirks::empty(), |entry| entry.quirks)
    }

    /// Whose it is and who says so.
    #[must_use]
    pub fn story(&self) -> Option<Story> {
        self.table.stories().get(usize::from(self.place)).copied()
    }
}

impl Entry {
    fn fits(&self, identity: &Identity<'_>) -> bool {
        let within = |value, (first, last)| (first..=last).contains(&value);
        self.vendor == identity.vendor
            && within(identity.product, self.products)
            && within(identity.release, self.releases)
            && self.speed.is_none_or(|speed| speed == identity.speed)
            && self.strings.is_none_or(|[manufacturer, product]| {
                manufacturer.as_bytes() == identity.manufacturer
                    && product.as_bytes() == identity.product_name
            })
    }
}

/// Entries are in the order of their vendors. Of one vendor's, the first that fits counts.
impl Table {
    fn entries(self) -> &'static [Entry] {
        match self {
            Self::BulkOnly => &bulk_only::ENTRIES,
            Self::Attached => &attached::ENTRIES,
        }
    }

    fn stories(self) -> &'static [Story] {
        match self {
            Self::BulkOnly => &bulk_only::STORIES,
            Self::Attached => &attached::STORIES,
        }
    }

    /// The first entry that fits.
    pub(super) fn find(self, identity: &Identity<'_>) -> Option<EntryRef> {
        let entries = self.entries();
        let from = entries.partition_point(|entry| entry.vendor < identity.vendor);
        let of_vendor = entries.get(from..)?.iter();
        let place = of_vendor
            .take_while(|entry| entry.vendor == identity.vendor)
            .position(|entry| entry.fits(identity))?;
        Some(EntryRef {
            table: self,
            place: (from + place) as u16,
        })
    }
}

/// A row of a table as it is written.
#[derive(Clone, Copy)]
pub(super) struct Row {
    entry: Entry,
    story: Story,
}

impl Row {
    /// All releases of one product, at all speeds.
    pub(super) const fn new(
        vendor: u16,
        product: u16,
        quirks: Quirks,
        name: &'static str,
        evidence: &'static str,
    ) -> Self {
        Self {
            entry: Entry {
                vendor,
                products: (product, product),
                releases: (0, u16::MAX),
                speed: None,
                quirks,
                strings: None,
            },
            story: Story {
                product: name,
                evidence,
            },
        }
    }

    /// All products from the row's own to `last`.
    pub(super) const fn to(mut self, last: u16) -> Self {
        self.entry.products.1 = last;
        self
    }

    /// Only these releases.
    pub(super) const fn releases(mut self, first: u16, last: u16) -> Self {
        self.entry.releases = (first, last);
        self
    }

    /// Only this release.
    pub(super) const fn release(self, release: u16) -> Self {
        self.releases(release, release)
    }

    /// Only at this speed.
    pub(super) const fn at(mut self, speed: Speed) -> Self {
        self.entry.speed = Some(speed);
        self
    }

    /// Only with these strings.
    pub(super) const fn named(mut self, strings: &'static [&'static str; 2]) -> Self {
        self.entry.strings = Some(strings);
        self
    }

    /// Another source than the table's.
    pub(super) const fn says(mut self, evidence: &'static str) -> Self {
        self.story.evidence = evidence;
        self
    }
}

/// The entries of rows.
#[allow(clippy::indexing_slicing)] // Evaluated by the compiler.
pub(super) const fn entries<const N: usize>(rows: &[Row; N]) -> [Entry; N] {
    let mut all = [rows[0].entry; N];
    let mut place = 0;
    while place < N {
        all[place] = rows[place].entry;
        place += 1;
    }
    all
}

/// The stories of rows.
#[allow(clippy::indexing_slicing)] // Evaluated by the compiler.
pub(super) const fn stories<const N: usize>(rows: &[Row; N]) -> [Story; N] {
    let mut all = [rows[0].story; N];
    let mut place = 0;
    while place < N {
        all[place] = rows[place].story;
        place += 1;
    }
    all
}

#[cfg(test)]
pub(super) mod checks {
    use super::*;

    /// What every table keeps: order of vendors, a first entry that can be found, an effect, and
    /// evidence.
    pub(in super::super) fn a_table_is_in_order(table: Table) {
        let vendors = table.entries().iter().map(|entry| entry.vendor);
        assert!(vendors.is_sorted(), "sort the table by vendor");
        for (place, entry) in table.entries().iter().enumerate() {
            let (first, last) = (entry.products.0, entry.products.1);
            assert!(first <= last && entry.releases.0 <= entry.releases.1);
            assert!(!entry.quirks.is_empty(), "{entry:04x?} does nothing");
            let story = table.stories()[place];
            assert!(!story.product.is_empty() && !story.evidence.is_empty());
            let identity = of(entry);
            let found = table.find(&identity).unwrap();
            assert_eq!(
                usize::from(found.place),
                place,
                "{entry:04x?} is never reached"
            );
        }
    }

    /// A device that an entry is for.
    pub(in super::super) fn of(entry: &Entry) -> Identity<'static> {
        let [manufacturer, product_name] = *entry.strings.unwrap_or(&["", ""]);
        Identity {
            vendor: entry.vendor,
            product: entry.products.0,
            release: entry.releases.0,
            speed: entry.speed.unwrap_or(Speed::High),
            manufacturer: manufacturer.as_bytes(),
            product_name: product_name.as_bytes(),
        }
    }

    /// Each entry's neighbours get nothing from it: the next release, the next product.
    pub(in super::super) fn neighbours_are_spared(table: Table) {
        for (place, entry) in table.entries().iter().enumerate() {
            let identity = of(entry);
            let mut neighbours = Vec::new();
            if let Some(product) = entry.products.1.checked_add(1) {
                neighbours.push(Identity {
                    product,
                    ..identity
                });
            }
            if let Some(release) = entry.releases.1.checked_add(1) {
                neighbours.push(Identity {
                    release,
                    ..identity
                });
            }
            if entry.strings.is_some() {
                neighbours.push(Identity {
                    product_name: b"Other",
                    ..identity
                });
            }
            if entry.speed.is_some() {
                neighbours.push(Identity {
                    speed: Speed::Full,
                    ..identity
                });
            }
            for neighbour in neighbours {
                let found = table.find(&neighbour);
                let own = found.is_some_and(|found| usize::from(found.place) == place);
                assert!(!own, "{neighbour:04x?} gets what {entry:04x?} is for");
            }
        }
    }
}
