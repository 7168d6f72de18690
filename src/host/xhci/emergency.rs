//! The brake: what a panic handler may do to a controller. `xHCI 1.2 §4.2, §5.4.1`.

use super::controller::{HALT_TIME, RESET_TIME};
use super::regs::{Blocks, USBCMD, USBSTS, operational};
use crate::host::emergency::wait;
use crate::mmio::Bus;
use crate::time::{Duration, Instant};

/// No register is read so soon after a reset has begun: see `quirks`.
const RESET_REST: Duration = Duration::from_millis(1);

/// See [`host::EmergencyStop`](crate::host::EmergencyStop).
#[derive(Debug)]
pub struct EmergencyStop<B> {
    blocks: Blocks<B>,
}

impl<B: Bus> EmergencyStop<B> {
    pub(super) fn new(blocks: Blocks<B>) -> Self {
        Self { blocks }
    }

    /// Halts and resets the controller. `true` if it has stopped: it reaches no memory any more.
    ///
    /// One that does not halt is not reset, as the specification has it: the platform must cut it
    /// off.
    pub fn stop(&self, now: impl Fn() -> Instant) -> bool {
        let registers = &self.blocks.operational;
        registers.modify(
            operational::USBCMD,
            USBCMD::RUN::CLEAR + USBCMD::INTE::CLEAR + USBCMD::HSEE::CLEAR,
        );
        let halted = || self.blocks.read_status().is_set(USBSTS::HALTED);
        if !wait(&now, HALT_TIME, halted) || self.is_gone() {
            return false;
        }
        registers.modify(operational::USBCMD, USBCMD::HCRST::SET);
        wait(&now, RESET_REST, || false);
        wait(&now, RESET_TIME, || {
            let command = registers.read(operational::USBCMD);
            !command.is_set(USBCMD::HCRST) && !self.blocks.read_status().is_set(USBSTS::CNR)
        })
    }

    fn is_gone(&self) -> bool {
        self.blocks.read_status().get() == u32::MAX
    }
}
