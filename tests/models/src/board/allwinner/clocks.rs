//! Gates, resets and USB clocks (H3 Datasheet 1.2 §4.3.5), and the always-on domain's gate.

use super::PORTS;
use crate::broken::{broken, require};

/// Gates and resets share their bits: EHCI of port 0 to 3, then OHCI.
const FIRST_EHCI: u32 = 24;
const FIRST_OHCI: u32 = 28;
const BUS_BITS: u32 = 0xff00_0000;
/// USBPHY_CFG_REG: PHY resets, PHY clocks, OHCI clocks.
const FIRST_PHY_CLOCK: u32 = 8;
const FIRST_OHCI_CLOCK: u32 = 16;
const USB_BITS: u32 = 0x000f_0f0f;
const PIN_GATE: u32 = 1 << 5;
const ALWAYS_ON_PIN_GATE: u32 = 1 << 0;

#[derive(Debug)]
pub(super) struct Clocks {
    gates: u32,
    pin_gates: u32,
    usb: u32,
    resets: u32,
    always_on: u32,
}

/// The bits of a port among gates and resets.
fn bus(port: usize) -> u32 {
    1 << (FIRST_EHCI + port as u32) | 1 << (FIRST_OHCI + port as u32)
}

impl Clocks {
    /// Nothing of USB is on; what belongs to others has odd values, to be left alone.
    pub(super) fn new() -> Self {
        Self {
            gates: 0x0000_4140,
            pin_gates: 0x0000_1000,
            usb: 0,
            resets: 0x0000_4140,
            always_on: 0x0000_0012,
        }
    }

    /// As after U-Boot's bring-up of a port.
    pub(super) fn start(&mut self, port: usize) {
        self.gates |= bus(port);
        self.resets |= bus(port);
        self.usb |= 1 << port | 1 << (FIRST_PHY_CLOCK + port as u32);
        self.pin_gates |= PIN_GATE;
    }

    pub(super) fn access(&mut self, offset: u32, write: Option<u32>) -> u32 {
        let (register, own) = match offset {
            0x060 => (&mut self.gates, BUS_BITS),
            0x068 => (&mut self.pin_gates, PIN_GATE),
            0x0cc => (&mut self.usb, USB_BITS),
            0x2c0 => (&mut self.resets, BUS_BITS),
            _ => broken!("H3 §4.3.4", "the CCU's register {offset:#x} is not USB's"),
        };
        let result = change(register, own, write);
        self.check_running();
        result
    }

    pub(super) fn access_always_on(&mut self, offset: u32, write: Option<u32>) -> u32 {
        require!(offset == 0x28, "PRCM", "register {offset:#x} is not ours");
        change(&mut self.always_on, ALWAYS_ON_PIN_GATE, write)
    }

    /// A controller that is not in reset keeps its clock: without it, it hangs the bus.
    fn check_running(&self) {
        for port in 0..PORTS {
            let running = self.resets & bus(port);
            require!(
                running & !self.gates == 0,
                "bring-up",
                "port {port}: out of reset before the step \"bus gates\""
            );
        }
    }

    /// The step that is missing before anything in a port's window can be touched.
    pub(super) fn missing_for_bus(&self, port: usize) -> Option<&'static str> {
        let bits = bus(port);
        if self.gates & bits != bits {
            Some("bus gates")
        } else if self.resets & bits != bits {
            Some("bus resets")
        } else {
            None
        }
    }

    pub(super) fn missing_for_ohci(&self, port: usize) -> Option<&'static str> {
        let clock = 1 << (FIRST_OHCI_CLOCK + port as u32);
        (self.usb & clock == 0).then_some("OHCI clock")
    }

    pub(super) fn missing_for_phy(&self, port: usize) -> Option<&'static str> {
        if self.usb & 1 << (FIRST_PHY_CLOCK + port as u32) == 0 {
            Some("PHY clock")
        } else if self.usb & 1 << port == 0 {
            Some("PHY reset")
        } else {
            None
        }
    }

    pub(super) fn missing_for_pins(&self) -> Option<&'static str> {
        (self.pin_gates & PIN_GATE == 0).then_some("pin gate")
    }

    pub(super) fn missing_for_always_on_pins(&self) -> Option<&'static str> {
        (self.always_on & ALWAYS_ON_PIN_GATE == 0).then_some("pin gate")
    }
}

/// A read, or a write that may change the `own` bits only.
fn change(register: &mut u32, own: u32, write: Option<u32>) -> u32 {
    if let Some(value) = write {
        require!(
            (value ^ *register) & !own == 0,
            "H3 §4.3",
            "{value:#010x} over {register:#010x} changes what belongs to others"
        );
        *register = value;
    }
    *register
}
