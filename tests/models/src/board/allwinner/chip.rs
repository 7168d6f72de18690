//! Chips as the model knows them: read from device trees and drivers of mainline Linux and U-Boot, apart
//! from the library's own table.

use super::PORTS;

/// A chip.
#[derive(Clone, Copy, Debug)]
pub struct Chip {
    /// First address of the PHY control block.
    pub(super) phy_control: u32,
    /// First address of each port's EHCI, OHCI and PMU.
    pub(super) hosts: [Option<u32>; PORTS],
    /// Both controllers' bits among the bus gates, for each port.
    pub(super) bus: [u32; PORTS],
    /// The same bits are in a register of resets.
    pub(super) has_resets: bool,
    /// What the OHCI of a port needs in the USB clock register.
    pub(super) ohci_clocks: [u32; PORTS],
    /// What its PHY needs there, beside its reset.
    pub(super) phy_clocks: [u32; PORTS],
    /// Offset of the PHYs' serial port in the PHY control block.
    pub(super) serial: u32,
    /// It is cleared before each setting.
    pub(super) serial_is_cleared: bool,
    /// The disconnect threshold, two bits from the lowest on.
    pub(super) threshold: &'static [bool],
    /// The PMU can power a PHY down.
    pub(super) has_phy_power: bool,
    /// PHY 0 is routed to MUSB or to the host.
    pub(super) has_route: bool,
    /// There is an always-on domain with pins.
    pub(super) has_always_on: bool,
}

/// H3 and H2+ (and H5).
pub const H3: Chip = Chip {
    phy_control: 0x01c1_9400,
    hosts: [
        Some(0x01c1_a000),
        Some(0x01c1_b000),
        Some(0x01c1_c000),
        Some(0x01c1_d000),
    ],
    bus: [0x1100_0000, 0x2200_0000, 0x4400_0000, 0x8800_0000],
    has_resets: true,
    ohci_clocks: [0x1_0000, 0x2_0000, 0x4_0000, 0x8_0000],
    phy_clocks: [0x100, 0x200, 0x400, 0x800],
    serial: 0x10,
    serial_is_cleared: true,
    threshold: &[true, true],
    has_phy_power: true,
    has_route: true,
    has_always_on: true,
};

/// A64.
pub const A64: Chip = Chip {
    hosts: [Some(0x01c1_a000), Some(0x01c1_b000), None, None],
    bus: [0x1100_0000, 0x2200_0000, 0, 0],
    ohci_clocks: [0x1_0000, 0x3_0000, 0, 0],
    phy_clocks: [0x100, 0x200, 0, 0],
    ..H3
};

/// A20.
pub const A20: Chip = Chip {
    phy_control: 0x01c1_3400,
    hosts: [None, Some(0x01c1_4000), Some(0x01c1_c000), None],
    bus: [0, 0x06, 0x18, 0],
    has_resets: false,
    ohci_clocks: [0, 0x40, 0x80, 0],
    phy_clocks: [0, 0x100, 0x100, 0],
    serial: 0x04,
    serial_is_cleared: false,
    threshold: &[false, true],
    has_phy_power: false,
    has_route: false,
    has_always_on: false,
};

impl Chip {
    /// The port whose window an address is in, and the offset there.
    pub(super) fn port_at(&self, address: u32) -> Option<(usize, u32)> {
        let window = 0x1000;
        let mut hosts = self.hosts.iter().enumerate();
        hosts.find_map(|(port, start)| {
            let offset = address.checked_sub((*start)?)?;
            (offset < window).then_some((port, offset))
        })
    }
}
