//! The way back of an interface to its first setting.
//!
//! Called on the way out, between the last flush and the stop of the controllers.

use super::{Function, State};
use crate::time::{Duration, Instant};
use crate::usb::operation::Operation;
use crate::usb::setup::SetupPacket;
use crate::usb::{Bus, Driver};

impl Function {
    /// Begins to set its interface back to alternate setting 0, if it is in another and nothing is being done
    /// on its device. It carries no commands from then on, as if the device had gone.
    pub fn restore_setting<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        timeout: Duration,
        now: Instant,
    ) {
        let Some(device) = self.device.filter(|_| self.alternate != 0) else {
            return;
        };
        let setup = SetupPacket::set_interface(self.interface, 0);
        let request = Operation::Request(setup, timeout);
        if self.state == State::Serving && bus.operate(device, request, now).is_ok() {
            self.gone();
        }
    }
}
