//! Faults and habits of known controller chips, and what the driver does about each.
//!
//! Asked once, by [`Xhci::new`](super::Xhci::new). A quirk is an item with a name, the chips that have
//! it, what is done and the evidence. Faults that cost nothing to avoid are avoided on every chip and have
//! no item: no Set TR Dequeue Pointer to a link (VL805), all 64-bit registers written whole and after each
//! reset (Renesas uPD72020x keep high halves), no register access in the first millisecond of a reset
//! (Intel); and no run of small blocks: a transfer has at most two at each end, a bounced line and the rest
//! of a 64 KiB piece, which even a Synopsys core's cache of few blocks holds with a packet more. Device
//! quirks are another table, `storage::quirks`.

/// Which chip the controller is, as far as the platform knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Silicon {
    /// Nothing is known.
    #[default]
    Unknown,
    /// A PCI function.
    Pci {
        /// Vendor id.
        vendor: u16,
        /// Device id.
        device: u16,
    },
}

bitflags::bitflags! {
    /// What the driver does differently.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) struct Quirks: u32 {
        /// Leave memory behind each ring: the chip reads past the end.
        const OVERFETCH = 1 << 0;
        /// Write the low half of ERDP alone where the high half stays as it is.
        const ERDP_BY_LOW_HALF = 1 << 1;
    }
}

impl Quirks {
    /// Bytes that are left unused behind a ring.
    pub(super) fn ring_spare(self) -> usize {
        if self.contains(Self::OVERFETCH) {
            // Four blocks are fetched ahead.
            64
        } else {
            0
        }
    }
}

/// One known fault or habit.
#[derive(Debug)]
pub struct Quirk {
    /// Its name, for people.
    pub name: &'static str,
    /// Where it is reported.
    pub evidence: &'static str,
    chips: &'static [Silicon],
    action: Quirks,
}

const QUIRKS: &[Quirk] = &[
    Quirk {
        name: "via-vl805-overfetch",
        chips: &[Silicon::Pci {
            vendor: 0x1106,
            device: 0x3483,
        }],
        action: Quirks::OVERFETCH,
        evidence: "Linux 6.x XHCI_TRB_OVERFETCH: reads up to four blocks behind a segment's end, into \
                   whatever lies there",
    },
    Quirk {
        name: "qemu-erdp-by-low-half",
        chips: &[Silicon::Pci {
            vendor: 0x1b36,
            device: 0x000d,
        }],
        action: Quirks::ERDP_BY_LOW_HALF,
        evidence: "QEMU 7.2 hw/usb/hcd-xhci.c: a write of ERDP's low half moves the pointer and clears \
                   Event Handler Busy, one of its high half is only kept",
    },
];

/// The known faults and habits of a chip.
pub(super) fn known(silicon: Silicon) -> impl Iterator<Item = &'static Quirk> {
    QUIRKS
        .iter()
        .filter(move |quirk| quirk.chips.contains(&silicon))
}

/// What to do differently on a chip.
pub(super) fn quirks(silicon: Silicon) -> Quirks {
    known(silicon).fold(Quirks::empty(), |all, quirk| all | quirk.action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vl805_gets_spare_memory_and_its_neighbour_does_not() {
        let chip = |device| Silicon::Pci {
            vendor: 0x1106,
            device,
        };
        assert_eq!(quirks(chip(0x3483)).ring_spare(), 64);
        assert_eq!(quirks(chip(0x3432)).ring_spare(), 0);
        assert_eq!(quirks(Silicon::Unknown).ring_spare(), 0);
    }

    #[test]
    fn qemu_s_controller_is_told_of_events_by_one_write_and_the_chip_that_it_was_modelled_on_is_not()
     {
        let chip = |vendor, device| quirks(Silicon::Pci { vendor, device });
        assert!(chip(0x1b36, 0x000d).contains(Quirks::ERDP_BY_LOW_HALF));
        assert!(!chip(0x1033, 0x0194).contains(Quirks::ERDP_BY_LOW_HALF));
        assert!(!quirks(Silicon::Unknown).contains(Quirks::ERDP_BY_LOW_HALF));
    }

    #[test]
    fn every_quirk_has_a_name_of_its_own_and_evidence() {
        for (index, quirk) in QUIRKS.iter().enumerate() {
            assert!(!quirk.evidence.is_empty(), "{}", quirk.name);
            let later = QUIRKS.iter().skip(index + 1);
            assert_eq!(later.filter(|other| other.name == quirk.name).count(), 0);
        }
    }
}
