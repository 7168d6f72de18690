//! What a driver's write to PORTSC and its neighbours does (xHCI 1.2 §5.4.8).

use super::ports::{CHANGES, ENABLED, POWER, RESET, link_state};
use super::traits::Protocol;
use super::{Due, Xhci};
use crate::broken::require;
use crate::controller::Surroundings;
use crate::device::MILLISECOND;

const LINK_WRITE: u32 = 1 << 16;
/// Sticky bits that the driver owns: indicators 15:14, wake enables 27:25.
const STICKY: u32 = 0x0e00_c000;
const WARM_RESET: u32 = 1 << 31;
/// RsvdZ: 2, 29:28.
const RESERVED: u32 = 0x3000_0004;

impl Xhci {
    pub(super) fn write_port(&mut self, around: &mut Surroundings<'_>, index: usize, value: u32) {
        self.check_port_write(index, value);
        let port = &mut self.ports[index];
        port.changes &= !(value & CHANGES);
        port.sticky = value & STICKY;
        let on = value & POWER != 0;
        // Without a switch it brings a port back that over-current has taken down, and no more.
        if self.traits.port_power_control || on {
            self.switch_power(around, index, on);
        }
        if value & ENABLED != 0 {
            self.disable(index);
        }
        if value & LINK_WRITE != 0 {
            self.write_link_state(around, index, value >> 5 & 0xf);
        }
        if value & (RESET | WARM_RESET) != 0 {
            self.begin_port_reset(around, index, value & WARM_RESET != 0);
        }
    }

    fn check_port_write(&self, index: usize, value: u32) {
        let port = &self.ports[index];
        require!(
            value & RESERVED == 0,
            "xHCI 1.2 §5.4.8",
            "PORTSC = {value:#x}: reserved bits are written as zero"
        );
        require!(
            value & WARM_RESET == 0 || port.protocol == Protocol::Usb3,
            "xHCI 1.2 §5.4.8",
            "a warm reset of a USB 2 port"
        );
        let acts = value & (CHANGES | RESET | WARM_RESET | LINK_WRITE) != 0;
        require!(
            value & ENABLED == 0 || !acts,
            "xHCI 1.2 §5.4.8",
            "PORTSC = {value:#x} clears changes or resets, and disables the port by the way (PED is \
             cleared by writing one)"
        );
        require!(
            value & POWER != 0 || !port.powered || !(acts || value & ENABLED != 0),
            "xHCI 1.2 §5.4.8",
            "PORTSC = {value:#x} does not preserve the port's power (PP)"
        );
    }

    fn switch_power(&mut self, around: &mut Surroundings<'_>, index: usize, on: bool) {
        if self.ports[index].powered == on {
            return;
        }
        self.ports[index].powered = on;
        self.power_device(around, index, on);
        self.watch_link(around, index);
    }

    fn disable(&mut self, index: usize) {
        let port = &mut self.ports[index];
        port.enabled = false;
        port.link_state = match port.protocol {
            Protocol::Usb2 => link_state::POLLING,
            Protocol::Usb3 => link_state::DISABLED,
        };
        if port.protocol == Protocol::Usb3 {
            port.connected = false;
        }
    }

    fn write_link_state(&mut self, around: &mut Surroundings<'_>, index: usize, state: u32) {
        let port = &mut self.ports[index];
        require!(
            state == link_state::RX_DETECT && port.protocol == Protocol::Usb3,
            "model",
            "link state {state} of a {:?} port is not modelled",
            port.protocol
        );
        port.connection_lost();
        self.watch_link(around, index);
    }

    fn begin_port_reset(&mut self, around: &mut Surroundings<'_>, index: usize, warm: bool) {
        let life = self.next_life();
        let port = &mut self.ports[index];
        require!(
            port.powered,
            "xHCI 1.2 §4.19.5",
            "reset of port {} without power",
            index + 1
        );
        port.resetting = Some(warm);
        port.enabled = false;
        port.life = life;
        let time = match (port.protocol, warm) {
            (Protocol::Usb2, _) => self.traits.port_reset_time,
            (Protocol::Usb3, false) => 5 * MILLISECOND,
            (Protocol::Usb3, true) => 100 * MILLISECOND,
        };
        if !self.faults.port_reset_hangs {
            self.agenda
                .add(around.now + time, Due::PortReset(index, life));
        }
    }

    /// PORTPMSC, PORTLI, PORTHLPMC: only their defaults.
    pub(super) fn write_port_power(&mut self, port: usize, local: usize, value: u32) {
        require!(
            value == 0,
            "model",
            "link power management is not modelled (port {port}, offset {local:#x})"
        );
    }
}
