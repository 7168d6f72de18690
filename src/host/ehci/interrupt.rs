//! The interrupt half: silences the controller's line and says whether there is work.
//!
//! Called from an interrupt handler, possibly on another core than `poll`. It takes no lock: it owns
//! a handle to the registers, and shares one atomic with the driver. It clears the status bits that
//! hold the line, after it has noted those that memory does not tell of (ports, errors, doorbell).
//! One read and one write. `EHCI 1.0 §4.15`.

use super::regs::{USBSTS, USBSTS_CHANGES, USBSTS_REGISTER};
use super::storage::Signal;
use crate::mmio::{Bus, ChangeBits, Registers};

/// How the driver learns of completions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Interrupts {
    /// By polling memory; the controller raises no interrupt.
    #[default]
    Polled,
    /// By the controller's interrupt line; the platform calls [`InterruptHalf::acknowledge`].
    Wired,
}

/// Completions: found in memory by `poll`, so that only the wake-up counts.
pub(super) const COMPLETIONS: u32 = USBSTS::USBINT::SET.value | USBSTS::USBERRINT::SET.value;

/// See the module.
#[derive(Debug)]
pub struct InterruptHalf<'s, B> {
    pub(super) registers: Registers<B>,
    pub(super) signal: &'s Signal,
}

impl<B: Bus> InterruptHalf<'_, B> {
    /// Takes an interrupt. Returns whether it was this controller's, so that `poll` has work.
    pub fn acknowledge(&self) -> bool {
        let status = self.registers.read(USBSTS_REGISTER).get();
        if status == u32::MAX {
            // Gone: the driver finds out by itself and says so.
            self.signal.raise(USBSTS::HSE::SET.value);
            return true;
        }
        let changes = status & USBSTS_CHANGES;
        if changes == 0 {
            return false;
        }
        // Noted before it is cleared: the driver may look at the register in between.
        if changes & !COMPLETIONS != 0 {
            self.signal.raise(changes & !COMPLETIONS);
        }
        self.registers
            .change(USBSTS_REGISTER, ChangeBits::none().clearing(changes));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::ehci::testing::FakeBus;

    #[test]
    fn completions_wake_without_a_word_to_the_driver() {
        let signal = Signal::new();
        let bus = FakeBus::new(0x100);
        let half = InterruptHalf {
            registers: Registers::new(bus.clone(), 0),
            signal: &signal,
        };
        assert!(!half.acknowledge(), "somebody else's interrupt");
        bus.set(4, 0x1001);
        assert!(half.acknowledge());
        assert_eq!(bus.written(), [(4, 1)]);
        assert!(!signal.is_raised());
    }

    #[test]
    fn a_controller_that_has_gone_is_the_drivers_to_report() {
        let signal = Signal::new();
        let half = InterruptHalf {
            registers: Registers::new(FakeBus::new(0), 0),
            signal: &signal,
        };
        assert!(half.acknowledge());
        assert!(signal.is_raised());
    }

    #[test]
    fn a_port_change_is_noted_and_cleared() {
        let signal = Signal::new();
        let bus = FakeBus::new(0x100);
        let half = InterruptHalf {
            registers: Registers::new(bus.clone(), 0),
            signal: &signal,
        };
        bus.set(4, 0x0005);
        assert!(half.acknowledge());
        assert_eq!(bus.written(), [(4, 5)]);
        assert_eq!(signal.take(), 4);
    }
}
