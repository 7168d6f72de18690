//! The brake: what a panic handler may do to a controller. `EHCI 1.0 §2.3.1`.

use super::controller::{HALT_TIMEOUT, RESET_TIMEOUT};
use super::regs::{USBCMD, USBCMD_REGISTER, USBSTS, USBSTS_REGISTER};
use crate::host::emergency::wait;
use crate::mmio::{Bus, Registers};
use crate::time::Instant;

/// See [`host::EmergencyStop`](crate::host::EmergencyStop).
#[derive(Debug)]
pub struct EmergencyStop<B> {
    registers: Registers<B>,
}

impl<B: Bus> EmergencyStop<B> {
    pub(super) fn new(registers: Registers<B>) -> Self {
        Self { registers }
    }

    /// Halts and resets the controller. `true` if it has stopped: it reaches no memory any more.
    ///
    /// One that does not halt is not reset, as the specification has it: the platform must cut it
    /// off.
    pub fn stop(&self, now: impl Fn() -> Instant) -> bool {
        let registers = &self.registers;
        registers.modify(USBCMD_REGISTER, USBCMD::RS::CLEAR);
        let status = || registers.read(USBSTS_REGISTER);
        if !wait(&now, HALT_TIMEOUT, || status().is_set(USBSTS::HCHALTED))
            || status().get() == u32::MAX
        {
            return false;
        }
        registers.modify(USBCMD_REGISTER, USBCMD::HCRESET::SET);
        wait(&now, RESET_TIMEOUT, || {
            !registers.read(USBCMD_REGISTER).is_set(USBCMD::HCRESET)
        })
    }
}
