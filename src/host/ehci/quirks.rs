//! What particular controllers do differently.
//!
//! Each item says how its chip is recognized, what the driver does about it, why, and on what
//! evidence. A platform that finds its controllers on PCI asks [`Quirks::of_pci`]; one that knows them
//! by address gives the flags itself.

use bitflags::bitflags;

bitflags! {
    /// What to do differently.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Quirks: u8 {
        /// Ring the doorbell when work comes after a pause.
        const IDLE_SCHEDULE_BACKS_OFF = 1;
    }
}

/// How a controller on PCI says who made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PciSubsystem {
    /// Subsystem vendor.
    pub vendor: u16,
    /// Subsystem device.
    pub device: u16,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Quirk {
    /// What to do.
    pub effect: Quirks,
    /// Which controllers.
    pub applies_to: PciSubsystem,
    /// Why.
    pub reason: &'static str,
    /// Where it was seen.
    pub evidence: &'static str,
}

/// All known quirks.
pub const TABLE: &[Quirk] = &[Quirk {
    effect: Quirks::IDLE_SCHEDULE_BACKS_OFF,
    applies_to: PciSubsystem {
        vendor: 0x1af4,
        device: 0x1100,
    },
    reason: "an idle asynchronous schedule is looked at ever less often, down to once in 64 ms; \
             only a doorbell or a switched schedule bit makes it look at once",
    evidence: "QEMU, hw/usb/hcd-ehci.c: async_stepdown, maxframes",
}];

impl Quirks {
    /// The quirks of a controller on PCI, by its subsystem ids.
    #[must_use]
    pub fn of_pci(subsystem: PciSubsystem) -> Self {
        TABLE
            .iter()
            .filter(|quirk| quirk.applies_to == subsystem)
            .fold(Self::empty(), |all, quirk| all | quirk.effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qemu_is_rung_and_its_neighbour_is_not() {
        let qemu = PciSubsystem {
            vendor: 0x1af4,
            device: 0x1100,
        };
        assert_eq!(Quirks::of_pci(qemu), Quirks::IDLE_SCHEDULE_BACKS_OFF);
        let neighbour = PciSubsystem {
            device: 0x1101,
            ..qemu
        };
        assert_eq!(Quirks::of_pci(neighbour), Quirks::empty());
    }
}
