//! Gates, resets and USB clocks (H3 Datasheet 1.2 §4.3.5), and the always-on domain's gate.

use super::{Chip, PORTS};
use crate::broken::{broken, require};

const PIN_GATE: u32 = 1 << 5;
const ALWAYS_ON_PIN_GATE: u32 = 1 << 0;

#[derive(Debug)]
pub(super) struct Clocks {
    chip: Chip,
    gates: u32,
    pin_gates: u32,
    usb: u32,
    resets: u32,
    always_on: u32,
}

impl Clocks {
    /// Nothing of USB is on; what belongs to others has odd values, to be left alone.
    pub(super) fn new(chip: Chip) -> Self {
        Self {
            chip,
            gates: 0x0000_4140,
            pin_gates: 0x0000_1000,
            usb: 0,
            resets: 0x0000_4140,
            always_on: 0x0000_0012,
        }
    }

    /// As after U-Boot's bring-up of a port.
    pub(super) fn start(&mut self, port: usize) {
        self.gates |= self.chip.bus[port];
        self.resets |= self.chip.bus[port];
        self.usb |= 1 << port | self.chip.phy_clocks[port];
        self.pin_gates |= PIN_GATE;
    }

    pub(super) fn access(&mut self, offset: u32, write: Option<u32>) -> u32 {
        let all = |bits: &[u32; PORTS]| bits.iter().fold(0, |all, bits| all | bits);
        let bus = all(&self.chip.bus);
        let usb = all(&self.chip.phy_clocks) | all(&self.chip.ohci_clocks) | 0xf;
        let before = self.unclocked();
        let (register, own) = match offset {
            0x060 => (&mut self.gates, bus),
            0x068 => (&mut self.pin_gates, PIN_GATE),
            0x0cc => (&mut self.usb, usb),
            0x2c0 if self.chip.has_resets => (&mut self.resets, bus),
            _ => broken!("H3 §4.3.4", "the CCU's register {offset:#x} is not USB's"),
        };
        let result = change(register, own, write);
        let after = self.unclocked();
        // What somebody else has left so is not the driver's fault, and is its to mend.
        require!(
            after.is_none() || after == before,
            "bring-up",
            "port {}: out of reset before the step \"bus gates\"",
            after.unwrap_or_default()
        );
        result
    }

    pub(super) fn access_always_on(&mut self, offset: u32, write: Option<u32>) -> u32 {
        require!(offset == 0x28, "PRCM", "register {offset:#x} is not ours");
        change(&mut self.always_on, ALWAYS_ON_PIN_GATE, write)
    }

    /// A port whose controllers are not in reset and have no clock: they hang the bus.
    fn unclocked(&self) -> Option<usize> {
        let is_unclocked = |&port: &usize| self.resets & self.chip.bus[port] & !self.gates != 0;
        (0..PORTS)
            .find(is_unclocked)
            .filter(|_| self.chip.has_resets)
    }

    /// The step that is missing before anything in a port's window can be touched.
    pub(super) fn missing_for_bus(&self, port: usize) -> Option<&'static str> {
        let bits = self.chip.bus[port];
        if self.gates & bits != bits {
            Some("bus gates")
        } else if self.chip.has_resets && self.resets & bits != bits {
            Some("bus resets")
        } else {
            None
        }
    }

    pub(super) fn missing_for_ohci(&self, port: usize) -> Option<&'static str> {
        let clocks = self.chip.ohci_clocks[port];
        (self.usb & clocks != clocks).then_some("OHCI clock")
    }

    pub(super) fn missing_for_phy(&self, port: usize) -> Option<&'static str> {
        if self.usb & self.chip.phy_clocks[port] == 0 {
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
