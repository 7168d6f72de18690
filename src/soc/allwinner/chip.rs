//! Chips as rows of facts. Another chip of the family is another row.

use super::step::Block;

/// One host port: an EHCI and an OHCI behind one PHY.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortFacts {
    /// First address of the EHCI. The OHCI is 0x400 above, the PMU 0x800.
    pub ehci: u32,
    /// The EHCI's interrupt: a shared peripheral interrupt of the GIC.
    pub interrupt: u32,
    /// Bits of both controllers in the bus gates, and in the bus resets where there are some.
    pub bus: u32,
    /// Bit of the OHCI's clock in the USB clock register, with that of its parent.
    pub ohci_clock: u32,
    /// Bit of the PHY's clock in the USB clock register; some chips have one for all.
    pub phy_clock: u32,
    /// Bit of the PHY's reset in the USB clock register.
    pub phy_reset: u32,
}

/// The port through which the PHYs' settings are shifted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Serial {
    /// Its offset in the PHY control block.
    pub offset: u16,
    /// Whether it must be written 0 before each setting.
    pub cleared_first: bool,
}

/// The always-on domain, as far as pins go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AlwaysOn {
    /// First address of its clock unit (PRCM).
    pub prcm: u32,
    /// Where the gate of its port controller is: offset in the clock unit, bit.
    pub pin_gate: (u16, u32),
    /// First address of its port controller.
    pub pio: u32,
}

/// A chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chip {
    /// First address of the clock control unit.
    pub ccu: u32,
    /// Offset of the bus gates in the CCU: a bit set is a clock that runs.
    pub bus_gates: u16,
    /// Offset of the bus resets in the CCU, where there are some: a bit set is no reset.
    pub bus_resets: Option<u16>,
    /// Offset of the USB clock register in the CCU.
    pub usb_clock: u16,
    /// Where the port controller's own gate is: offset in the CCU, bit.
    pub pin_gate: (u16, u32),
    /// First address of the port controller (PIO).
    pub pio: u32,
    /// The always-on domain, where there is one: the pins of bank L.
    pub always_on: Option<AlwaysOn>,
    /// First address of the PHY control block.
    pub phy: u32,
    /// How settings get to a PHY.
    pub serial: Serial,
    /// The setting of the PHYs' disconnect threshold.
    pub disconnect_threshold: u8,
    /// Whether the PMU can hold the PHY powered down (SIDDQ).
    pub phy_power: bool,
    /// Offset in the PHY control block of the switch that gives PHY 0 to MUSB or to the host port.
    pub route: Option<u16>,
    /// The host ports; the index is the PHY's number.
    pub ports: [Option<PortFacts>; 4],
}

/// Bytes of the window that holds EHCI, OHCI and PMU of a port.
const PORT_WINDOW: usize = 0x1000;
/// Where the OHCI is in it.
const OHCI: u32 = 0x400;
/// Where the PMU is in it.
const PMU: u32 = 0x800;
/// Bytes of a window where the table of a block says no better.
const PAGE: usize = 0x400;

const fn h3_port(number: u32) -> Option<PortFacts> {
    Some(PortFacts {
        ehci: 0x01c1_a000 + number * PORT_WINDOW as u32,
        interrupt: 72 + 2 * number,
        bus: 1 << (24 + number) | 1 << (28 + number),
        ohci_clock: 1 << (16 + number),
        phy_clock: 1 << (8 + number),
        phy_reset: 1 << number,
    })
}

/// H3 and H2+.
pub const H3: Chip = Chip {
    ccu: 0x01c2_0000,
    bus_gates: 0x060,
    bus_resets: Some(0x2c0),
    usb_clock: 0x0cc,
    pin_gate: (0x068, 1 << 5),
    pio: 0x01c2_0800,
    always_on: Some(AlwaysOn {
        prcm: 0x01f0_1400,
        pin_gate: (0x028, 1 << 0),
        pio: 0x01f0_2c00,
    }),
    phy: 0x01c1_9400,
    serial: Serial {
        offset: 0x10,
        cleared_first: true,
    },
    disconnect_threshold: 3,
    phy_power: true,
    route: Some(0x20),
    ports: [h3_port(0), h3_port(1), h3_port(2), h3_port(3)],
};

/// H5: its USB part is that of the H3.
pub const H5: Chip = H3;

const fn a64_port(number: u32, ohci_clock: u32) -> Option<PortFacts> {
    Some(PortFacts {
        ehci: 0x01c1_a000 + number * PORT_WINDOW as u32,
        interrupt: 72 + 2 * number,
        bus: 1 << (24 + number) | 1 << (28 + number),
        ohci_clock,
        phy_clock: 1 << (8 + number),
        phy_reset: 1 << number,
    })
}

/// A64: as the H3, with two ports. The second OHCI's clock comes from the first one's.
pub const A64: Chip = Chip {
    ports: [
        a64_port(0, 1 << 16),
        a64_port(1, 1 << 17 | 1 << 16),
        None,
        None,
    ],
    ..H3
};

const fn a20_port(number: u32, ehci: u32) -> Option<PortFacts> {
    Some(PortFacts {
        ehci,
        interrupt: 38 + number,
        bus: 0x3 << (2 * number - 1),
        ohci_clock: 1 << (5 + number),
        phy_clock: 1 << 8,
        phy_reset: 1 << number,
    })
}

/// A20: no bus resets, one clock for all PHYs, and PHY 0 is MUSB's for good.
pub const A20: Chip = Chip {
    bus_resets: None,
    always_on: None,
    phy: 0x01c1_3400,
    serial: Serial {
        offset: 0x04,
        cleared_first: false,
    },
    disconnect_threshold: 2,
    phy_power: false,
    route: None,
    ports: [
        None,
        a20_port(1, 0x01c1_4000),
        a20_port(2, 0x01c1_c000),
        None,
    ],
    ..H3
};

const _: () = {
    assert!(
        H3.is_sound() && A64.is_sound() && A20.is_sound(),
        "a bit has two meanings"
    );
};

impl Chip {
    /// The facts of the port `number`, if the chip has it.
    #[must_use]
    pub fn port(&self, number: u8) -> Option<&PortFacts> {
        self.ports.get(usize::from(number))?.as_ref()
    }

    /// Where a block of registers is: address, length in bytes. `None` for one that the chip does not
    /// have.
    #[must_use]
    pub fn address(&self, block: Block) -> Option<(u32, usize)> {
        Some(match block {
            Block::Ccu => (self.ccu, PAGE),
            Block::Pio => (self.pio, PAGE),
            Block::Prcm => (self.always_on?.prcm, PAGE),
            Block::PrcmPio => (self.always_on?.pio, PAGE),
            Block::Phy => (self.phy, PAGE),
            Block::Ohci(number) => (self.port(number)?.ehci + OHCI, PAGE),
            Block::Pmu(number) => (self.port(number)?.ehci + PMU, PAGE),
        })
    }

    /// Whether no bit has two meanings, and no two ports share one of their own. For rows of the table
    /// above, at compile time.
    const fn is_sound(&self) -> bool {
        let (mut bus, mut resets) = (0, 0);
        let mut rest: &[Option<PortFacts>] = &self.ports;
        while let [first, tail @ ..] = rest {
            if let Some(port) = first {
                let clocks = port.ohci_clock & port.phy_clock;
                let twice = clocks | port.phy_reset & (port.ohci_clock | port.phy_clock);
                if port.bus.count_ones() != 2
                    || port.phy_clock.count_ones() != 1
                    || port.phy_reset.count_ones() != 1
                    || twice != 0
                    || port.bus & bus != 0
                    || port.phy_reset & resets != 0
                    || !port.ehci.is_multiple_of(PORT_WINDOW as u32)
                {
                    return false;
                }
                bus |= port.bus;
                resets |= port.phy_reset;
            }
            rest = tail;
        }
        true
    }
}
