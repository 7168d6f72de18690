//! From a row of facts to lists of steps.

use super::chip::Chip;
use super::step::{Action, Block, Step};
use crate::time::Duration;

/// PMU: a register of the unit between controllers and PHY, and its bits.
const PMU_PASSBY: u16 = 0x00;
/// AHB bursts of 8 and 4, aligned ones, and the way to the PHY that bypasses ULPI.
const PASSBY: u32 = 1 << 10 | 1 << 9 | 1 << 8 | 1 << 0;
const PMU_POWER: u16 = 0x10;
const SIDDQ: u32 = 1 << 1;
/// `OHCI 1.0a §7.1.2`: HcControl. All its bits as 0: no list is walked, and the state is UsbReset, in which the
/// controller touches no memory (`§6.2.2`, `§6.4.1`).
const OHCI_CONTROL: u16 = 0x04;
const OHCI_CONTROL_BITS: u32 = 0x7ff;
/// PHY 0: to MUSB.
const ROUTE_MUSB: u32 = 1 << 0;

/// Policy: a hub gives its ports this long after power (`USB 2.0 §11.23.2.1`, bPwrOn2PwrGood, and
/// TATTDB of `§7.1.7.3`); no board's switch is documented to be slower.
const VBUS_SETTLE: Duration = Duration::from_millis(100);

/// A bank of pins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "a letter is its name")]
pub enum Bank {
    A,
    B,
    C,
    D,
    E,
    F,
    G,
    H,
    I,
    /// The always-on domain's.
    L,
}

/// A pin, such as `PL2`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pin {
    /// Its bank.
    pub bank: Bank,
    /// Its number in the bank, 0 to 31.
    pub number: u8,
}

/// Bytes from one bank's registers to the next one's.
const BANK_STRIDE: u16 = 0x24;
/// Levels, after four registers of functions.
const DATA: u16 = 0x10;
/// Pull resistors, after two registers of drive strength.
const PULL: u16 = 0x1c;
/// Functions are four bits a pin.
const INPUT: u32 = 0;
const OUTPUT: u32 = 1;
const FUNCTION_MASK: u32 = 0xf;
/// Pulls are two bits a pin.
const PULL_UP: u32 = 1;
const PULL_MASK: u32 = 0x3;

impl Pin {
    /// The port controller that has it.
    pub(super) fn block(self) -> Block {
        match self.bank {
            Bank::L => Block::PrcmPio,
            _ => Block::Pio,
        }
    }

    fn base(self) -> u16 {
        match self.bank {
            Bank::L => 0,
            bank => bank as u16 * BANK_STRIDE,
        }
    }

    /// Its level: register and bit.
    pub(super) fn level(self) -> (u16, u32) {
        (self.base() + DATA, 1 << (self.number % 32))
    }

    /// A change of its field in registers of `bits` bits a pin that start at `first`.
    fn field(self, name: &'static str, first: u16, bits: u16, mask: u32, value: u32) -> Step {
        let position = u16::from(self.number % 32) * bits;
        let shift = position % 32;
        let action = Action::Change {
            block: self.block(),
            offset: self.base() + first + position / 32 * 4,
            clear: mask << shift,
            set: value << shift,
        };
        Step { name, action }
    }

    fn function(self, name: &'static str, function: u32) -> Step {
        self.field(name, 0, 4, FUNCTION_MASK, function)
    }
}

impl Chip {
    /// Brings the port `number` up to where its controllers can be used; nothing for a port that
    /// the chip does not have.
    pub fn port_steps(&self, number: u8) -> impl Iterator<Item = Step> + use<> {
        let steps = self.port(number).map(|port| {
            let usb = |name, bits| Some(Step::set(name, Block::Ccu, self.usb_clock, bits));
            let pmu = Block::Pmu(number);
            [
                Some(Step::set("bus gates", Block::Ccu, self.bus_gates, port.bus)),
                usb("OHCI clock", port.ohci_clock),
                self.bus_resets
                    .map(|resets| Step::set("bus resets", Block::Ccu, resets, port.bus)),
                usb("PHY clock", port.phy_clock),
                usb("PHY reset", port.phy_reset),
                self.phy_power
                    .then(|| Step::clear("PHY power", pmu, PMU_POWER, SIDDQ)),
                (number == 0).then(|| shift("PHY calibration", number, 0x0c, 1, 1)),
                Some(shift("PHY amplitude", number, 0x20, 5, 0x14)),
                Some(shift(
                    "PHY disconnect threshold",
                    number,
                    0x2a,
                    2,
                    self.disconnect_threshold,
                )),
                Some(Step::set("passby", pmu, PMU_PASSBY, PASSBY)),
                self.route
                    .filter(|_| number == 0)
                    .map(|route| Step::clear("PHY 0 route", Block::Phy, route, ROUTE_MUSB)),
                // A boot loader may have left it running: it writes to memory each millisecond then.
                Some(Step::clear(
                    "OHCI at rest",
                    Block::Ohci(number),
                    OHCI_CONTROL,
                    OHCI_CONTROL_BITS,
                )),
            ]
        });
        steps.into_iter().flatten().flatten()
    }

    /// Lets registers of a pin be reached.
    fn pin_gate(&self, pin: Pin) -> Step {
        let (block, (offset, bit)) = match (pin.block(), self.always_on) {
            (Block::PrcmPio, Some(domain)) => (Block::Prcm, domain.pin_gate),
            _ => (Block::Ccu, self.pin_gate),
        };
        Step::set("pin gate", block, offset, bit)
    }

    /// Switches VBUS on through a pin, active high, and gives it time. The level comes before the
    /// direction, so that the pin does not drive low on the way.
    #[must_use]
    pub fn vbus_steps(&self, pin: Pin) -> [Step; 4] {
        let (offset, bit) = pin.level();
        [
            self.pin_gate(pin),
            Step::set("VBUS level", pin.block(), offset, bit),
            pin.function("VBUS direction", OUTPUT),
            Step {
                name: "VBUS settling",
                action: Action::Wait(VBUS_SETTLE),
            },
        ]
    }

    /// Makes a pin an input that reads high unless something pulls it low.
    #[must_use]
    pub fn input_steps(&self, pin: Pin) -> [Step; 4] {
        [
            self.pin_gate(pin),
            pin.field("input pull", PULL, 2, PULL_MASK, PULL_UP),
            pin.function("input direction", INPUT),
            Step {
                name: "input settling",
                // Policy: a weak pull-up charges a pin in microseconds.
                action: Action::Wait(Duration::from_millis(1)),
            },
        ]
    }

    /// Takes both controllers of the port `number` off the bus, whatever they do. Where there are no
    /// resets, their bus clocks stop.
    pub fn cut_steps(&self, number: u8) -> impl Iterator<Item = Step> + use<> {
        let register = self.bus_resets.unwrap_or(self.bus_gates);
        self.port(number)
            .map(|port| Step::clear("bus resets", Block::Ccu, register, port.bus))
            .into_iter()
    }
}

fn shift(name: &'static str, phy: u8, address: u8, length: u8, value: u8) -> Step {
    let action = Action::Shift {
        phy,
        address,
        length,
        value,
    };
    Step { name, action }
}

#[cfg(test)]
mod tests {
    use super::super::H3;
    use super::*;

    #[test]
    fn pins_find_their_fields() {
        let function = |bank, number| Pin { bank, number }.function("", OUTPUT).action;
        let change = |block, offset, shift: u32| Action::Change {
            block,
            offset,
            clear: 0xf << shift,
            set: 1 << shift,
        };
        assert_eq!(function(Bank::L, 2), change(Block::PrcmPio, 0x00, 8));
        assert_eq!(function(Bank::A, 17), change(Block::Pio, 0x08, 4));
        assert_eq!(function(Bank::G, 12), change(Block::Pio, 0xdc, 16));
        let pin = Pin {
            bank: Bank::H,
            number: 3,
        };
        assert_eq!(pin.level(), (0x10c, 8));
    }

    #[test]
    fn only_phy_0_is_calibrated_and_routed() {
        let names = |port| {
            H3.port_steps(port)
                .map(|step| step.name)
                .collect::<Vec<_>>()
        };
        let of_phy_0 = ["PHY calibration", "PHY 0 route"];
        assert!(of_phy_0.iter().all(|name| names(0).contains(name)));
        assert!(!of_phy_0.iter().any(|name| names(1).contains(name)));
        assert_eq!(names(1).len() + 2, names(0).len());
        assert_eq!(H3.port_steps(4).count(), 0);
    }
}
