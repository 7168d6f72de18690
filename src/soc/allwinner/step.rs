//! One step of a sequence: data, so that a model can check it and a test can leave it out.

use crate::time::Duration;

/// A block of registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Block {
    /// Clock control unit.
    Ccu,
    /// Port controller: pins of the banks A to I.
    Pio,
    /// Clock unit of the always-on domain.
    Prcm,
    /// Port controller of the always-on domain: pins of bank L.
    PrcmPio,
    /// PHY control.
    Phy,
    /// The OHCI of a port.
    Ohci(u8),
    /// The unit between the controllers and the PHY of a port.
    Pmu(u8),
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Changes bits of a 32-bit register: clears some, then sets some, in one write.
    Change {
        /// The register's block.
        block: Block,
        /// Its offset in bytes.
        offset: u16,
        /// The bits that become 0, unless `set` has them too.
        clear: u32,
        /// The bits that become 1.
        set: u32,
    },
    /// Shifts a setting into a PHY, lowest bit first.
    Shift {
        /// The PHY.
        phy: u8,
        /// Where the setting starts.
        address: u8,
        /// How many bits it has.
        length: u8,
        /// The bits.
        value: u8,
    },
    /// Waits at least so long.
    Wait(Duration),
}

/// A step with the name that a model calls it by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// What it is for.
    pub name: &'static str,
    /// What it does.
    pub action: Action,
}

impl Step {
    /// A step that sets bits.
    pub(super) const fn set(name: &'static str, block: Block, offset: u16, set: u32) -> Self {
        let action = Action::Change {
            block,
            offset,
            clear: 0,
            set,
        };
        Self { name, action }
    }

    /// A step that clears bits.
    pub(super) const fn clear(name: &'static str, block: Block, offset: u16, clear: u32) -> Self {
        let action = Action::Change {
            block,
            offset,
            clear,
            set: 0,
        };
        Self { name, action }
    }
}
