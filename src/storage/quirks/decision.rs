//! What was decided for a device, and why.

use core::fmt;

use super::{EntryRef, Identity, Overrides, Quirks};

/// Vendors whose flash devices may give the number of blocks in place of the last one: Nokia, Nikon,
/// Pentax, Motorola (Linux, drivers/usb/storage/scsiglue.c).
const COUNTS_TOO_HIGH: [u16; 4] = [0x0421, 0x04b0, 0x0a17, 0x22b8];

/// A device's policies, and where they come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Decision {
    /// The policies.
    pub quirks: Quirks,
    /// Where they come from.
    pub source: Source,
}

/// Where a device's policies come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Source {
    /// The entry of the table for it.
    pub entry: Option<EntryRef>,
    /// What the table's and the vendor's rules said, where the run-time string then replaced it, with
    /// the position of the string's entry.
    pub replaced: Option<(Quirks, usize)>,
    /// What a rule of the vendor or of the chip's family added.
    pub rule: Quirks,
}

impl Decision {
    /// No policies.
    pub const NONE: Self = Self {
        quirks: Quirks::empty(),
        source: Source {
            entry: None,
            replaced: None,
            rule: Quirks::empty(),
        },
    };

    /// What an entry and a rule say, where the run-time string does not say otherwise.
    pub(super) fn new(
        entry: Option<EntryRef>,
        rule: Quirks,
        identity: &Identity<'_>,
        overrides: &Overrides<'_>,
    ) -> Self {
        let built_in = entry.map_or(Quirks::empty(), |entry| entry.quirks()) | rule;
        let found = overrides.find(identity.vendor, identity.product);
        let quirks = match found {
            Some(found) => built_in.difference(Quirks::REPLACEABLE) | found.quirks,
            None => built_in,
        };
        let source = Source {
            entry,
            replaced: found.map(|found| (built_in, found.position)),
            rule,
        };
        Self { quirks, source }
    }

    /// The rule of the vendors that count too high, which knows what the string has said.
    pub(super) fn with_vendor_rule(mut self, identity: &Identity<'_>) -> Self {
        let known = Quirks::FIX_CAPACITY | Quirks::CAPACITY_OK;
        if COUNTS_TOO_HIGH.contains(&identity.vendor) && !self.quirks.intersects(known) {
            self.quirks |= Quirks::CAPACITY_HEURISTICS;
            self.source.rule |= Quirks::CAPACITY_HEURISTICS;
        }
        self
    }
}

impl fmt::Display for Source {
    /// In a few words, for a log.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.replaced, self.entry) {
            (Some((_, position)), _) => write!(formatter, "quirk string, position {position}"),
            (None, Some(_)) => formatter.write_str("table"),
            (None, None) if self.rule.is_empty() => formatter.write_str("none"),
            (None, None) => formatter.write_str("rule of its vendor"),
        }
    }
}
