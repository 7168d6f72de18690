//! Allwinner H3 (and H2+, H5), A64 and A20: the clock control units, the PHY control block, the PMUs, the port
//! controllers, and gates before EHCI and OHCI.
//!
//! Written from the H3 Datasheet 1.2 (§4.3 CCU, §4.22 and §4.23 port controllers) and, for the PHY,
//! from what mainline Linux and U-Boot agree on. Addresses are physical ones. It is strict: accesses
//! of 32 bits only, but for the PHYs' serial port; bits of others stay as they are; a block behind a
//! gate is not touched while the gate is closed; and what is missing when a controller is touched is
//! named by its step.
//!
//! What it does not model: the controllers themselves, PLLs, dividers, MUSB.

mod chip;
mod clocks;
mod phy;
mod pins;

use std::cell::RefCell;
use std::rc::Rc;

pub use self::chip::{A20, A64, Chip, H3};
use self::clocks::Clocks;
use self::phy::Phy;
use self::pins::Pins;
use crate::broken::{broken, require};
use crate::device::{MILLISECOND, Nanoseconds};

/// Host ports.
pub const PORTS: usize = 4;

/// Where things are (H3 Datasheet 1.2 §4.1).
const CCU: u32 = 0x01c2_0000;
const PIO: u32 = 0x01c2_0800;
const PRCM: u32 = 0x01f0_1400;
const PRCM_PIO: u32 = 0x01f0_2c00;
const BLOCK: u32 = 0x400;

/// A hub's ports have their power this long before a device on them is asked to show itself (USB 2.0
/// §7.1.7.3, §11.11).
const POWER_SETTLES: Nanoseconds = 100 * MILLISECOND;
/// EHCI's first port register, with the registers of this chip starting at 0x10.
const FIRST_PORT_REGISTER: u32 = 0x10 + 0x44;

/// What ran before the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Before {
    /// The boot ROM and a loader that did nothing for USB.
    Nothing,
    /// A U-Boot that had `usb start` on these ports, and left them running.
    UsbStart(&'static [usize]),
}

/// How the power of a port's sockets is switched on the board.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Power {
    /// Not at all.
    Wired,
    /// By PL2, active high, and the id pin is PG12.
    Switched(Plug),
}

/// What is in the OTG socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plug {
    /// Nothing, or a cable to a host: the id pin is open.
    Open,
    /// A host's plug: the id pin is on ground.
    Host,
}

#[derive(Debug)]
struct State {
    chip: Chip,
    now: Nanoseconds,
    clocks: Clocks,
    phys: [Phy; PORTS],
    /// PHY control: the serial port, and whether PHY 0 is routed to MUSB.
    serial: u32,
    to_musb: bool,
    /// The OHCIs that were told to rest. Any other may be running, whatever ran before.
    ohci_rests: [bool; PORTS],
    pins: Pins,
    power: Power,
}

/// A board. Clones are the same board.
#[derive(Clone, Debug)]
pub struct Board(Rc<RefCell<State>>);

impl Board {
    /// A board with an H3, with this before it, and this power switch for port 0.
    #[must_use]
    pub fn new(before: Before, power: Power) -> Self {
        Self::of(H3, before, power)
    }

    /// The same with any chip.
    #[must_use]
    pub fn of(chip: Chip, before: Before, power: Power) -> Self {
        let mut state = State {
            chip,
            now: 0,
            clocks: Clocks::new(chip),
            phys: [Phy::COLD; PORTS],
            serial: 0xdead_0000,
            to_musb: true,
            ohci_rests: [false; PORTS],
            pins: Pins::new(),
            power,
        };
        if let Before::UsbStart(ports) = before {
            for &port in ports {
                state.clocks.start(port);
                state.phys[port] = Phy::started(&chip, port);
            }
            state.to_musb &= !ports.contains(&0);
        }
        Self(Rc::new(RefCell::new(state)))
    }

    /// Lets time pass.
    pub fn pass(&self, time: Nanoseconds) {
        self.0.borrow_mut().now += time;
    }

    /// How much time has passed.
    #[must_use]
    pub fn now(&self) -> Nanoseconds {
        self.0.borrow().now
    }

    /// A read of `width` bytes at a physical address.
    ///
    /// # Panics
    ///
    /// When the access breaks a rule.
    #[must_use]
    pub fn read(&self, address: u32, width: usize) -> u32 {
        self.0.borrow_mut().access(address, width, None)
    }

    /// A write of `width` bytes at a physical address.
    ///
    /// # Panics
    ///
    /// When the access breaks a rule.
    pub fn write(&self, address: u32, width: usize, value: u32) {
        self.0.borrow_mut().access(address, width, Some(value));
    }

    /// Whether a controller of this port can be a master of the bus: its clock runs and it is not in
    /// reset.
    #[must_use]
    pub fn reaches_memory(&self, port: usize) -> bool {
        let state = self.0.borrow();
        state.clocks.missing_for_bus(port).is_none()
    }

    /// Whether the switch has VBUS of port 0 on.
    #[must_use]
    pub fn is_vbus_on(&self) -> bool {
        self.0.borrow().pins.vbus_since().is_some()
    }
}

impl State {
    /// One access; `write` has the value of a write.
    fn access(&mut self, address: u32, width: usize, write: Option<u32>) -> u32 {
        let chip = self.chip;
        let serial = (chip.phy_control..chip.phy_control + BLOCK).contains(&address);
        require!(
            width == 4 || serial && width == 1,
            "H3 §4.1",
            "{width} bytes at {address:#x}"
        );
        require!(
            address.is_multiple_of(width as u32),
            "H3 §4.1",
            "{width} bytes at {address:#x}"
        );
        match (address & !(BLOCK - 1), address & (BLOCK - 1)) {
            (CCU, offset) => self.clocks.access(offset, write),
            (PRCM, offset) if chip.has_always_on => self.clocks.access_always_on(offset, write),
            (block, offset) if block == chip.phy_control => self.phy_control(offset, width, write),
            (PIO, offset) => {
                self.need(self.clocks.missing_for_pins(), "a pin of PIO");
                self.pins.access(offset, write, self.power, self.now)
            }
            (PRCM_PIO, offset) if chip.has_always_on => {
                self.need(self.clocks.missing_for_always_on_pins(), "a pin of R_PIO");
                self.pins
                    .access_always_on(offset, write, self.power, self.now)
            }
            _ if chip.port_at(address).is_some() => {
                let (port, offset) = chip.port_at(address).unwrap_or_default();
                self.host(port, offset, write)
            }
            _ => broken!("H3 §4.1", "nothing of USB is at {address:#x}"),
        }
    }

    fn need(&self, missing: Option<&str>, what: &str) {
        if let Some(step) = missing {
            broken!("bring-up", "{what} was touched before the step \"{step}\"");
        }
    }

    /// The window of a port: EHCI, OHCI 0x400 above, PMU 0x800 above.
    fn host(&mut self, port: usize, offset: u32, write: Option<u32>) -> u32 {
        let missing = self.clocks.missing_for_bus(port);
        match offset {
            0x800.. => {
                self.need(missing, &format!("PMU {port}"));
                self.phys[port].access_pmu(&self.chip, offset - 0x800, write)
            }
            0x400.. => {
                self.need(
                    missing.or_else(|| self.clocks.missing_for_ohci(port)),
                    &format!("OHCI {port}"),
                );
                self.controller(port);
                self.ohci(port, offset - 0x400, write)
            }
            _ => {
                self.need(missing, &format!("EHCI {port}"));
                self.controller(port);
                let runs = (!self.ohci_rests[port]).then_some("OHCI at rest");
                self.need(runs, &format!("EHCI {port}"));
                if offset >= FIRST_PORT_REGISTER {
                    self.socket(port);
                }
                0
            }
        }
    }

    /// HcControl: lists, and the functional state, of which UsbReset is 0 (OHCI 1.0a §7.1.2).
    fn ohci(&mut self, port: usize, offset: u32, write: Option<u32>) -> u32 {
        let (resting, running) = (0, 0xbf);
        let control = if self.ohci_rests[port] {
            resting
        } else {
            running
        };
        match (offset, write) {
            (0x04, Some(value)) => self.ohci_rests[port] = value & 0xff == resting,
            (0x04, None) => return control,
            _ => {}
        }
        0
    }

    /// Whether the PHY behind a controller is ready.
    fn controller(&self, port: usize) {
        let missing = self
            .clocks
            .missing_for_phy(port)
            .or_else(|| self.phys[port].missing(&self.chip, port))
            .or((port == 0 && self.chip.has_route && self.to_musb).then_some("PHY 0 route"));
        self.need(missing, &format!("the controller of port {port}"));
    }

    /// Whether a socket has had its power for long enough.
    fn socket(&self, port: usize) {
        if port != 0 || self.power != Power::Switched(Plug::Host) {
            return;
        }
        let missing = match self.pins.vbus_since() {
            Some(since) if since + POWER_SETTLES <= self.now => None,
            Some(_) => Some("VBUS settling"),
            None => Some(self.pins.missing_for_vbus()),
        };
        self.need(missing, "the port register of port 0");
    }

    fn phy_control(&mut self, offset: u32, width: usize, write: Option<u32>) -> u32 {
        match (offset, width) {
            (offset, _) if offset == self.chip.serial => self.serial_port(width, write),
            (0x20, 4) if self.chip.has_route => {
                if let Some(value) = write {
                    require!(value & !1 == 0, "OTGCTL", "{value:#x}: only bit 0 is known");
                    self.to_musb = value == 1;
                }
                u32::from(self.to_musb)
            }
            _ => broken!("PHY control", "{width} bytes at offset {offset:#x}"),
        }
    }

    /// PHYCTL: address in bits 15 to 8, data in bit 7, a strobe per PHY below.
    fn serial_port(&mut self, width: usize, write: Option<u32>) -> u32 {
        let Some(value) = write else {
            return if width == 1 {
                self.serial & 0xff
            } else {
                self.serial
            };
        };
        let new = if width == 1 {
            self.serial & !0xff | value & 0xff
        } else {
            value
        };
        let old = std::mem::replace(&mut self.serial, new);
        for port in 0..PORTS {
            let strobe = 1 << (2 * port);
            if new & strobe == 0 {
                continue;
            }
            require!(
                new & 0xff80 == old & 0xff80,
                "PHYCTL",
                "address or data changes while the strobe of PHY {port} is high"
            );
            if old & strobe == 0 {
                self.need(
                    self.clocks.missing_for_phy(port),
                    &format!("the serial port of PHY {port}"),
                );
                let address = new >> 8 & 0xff;
                require!(
                    new & 0xffff_0000 == 0 || !self.chip.serial_is_cleared,
                    "PHYCTL",
                    "it was not cleared before a setting: {new:#010x}"
                );
                self.phys[port].set(address, new & 0x80 != 0);
            }
        }
        self.serial
    }
}
