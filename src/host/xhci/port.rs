//! Root ports: one register each, full of bits that a careless write would trip.
//!
//! The trait's part five. PORTSC is only ever written through
//! [`ChangeBits::preserving`](crate::mmio::ChangeBits), with power, indicators and wake enables kept and
//! nothing else: its enable bit disables when written as one, and its change bits clear. Times are
//! the core's. Read `xHCI 1.2 §4.19` and `§5.4.8`.

use tock_registers::LocalRegisterCopy;
use tock_registers::fields::FieldValue;

use super::regs::{PORTSC, operational};
use super::{Xhci, context};
use crate::host::{PortProtocol, PortStatus, RootPort, RootPorts};
use crate::mmio::{Bus, ChangeBits, WriteOneToClear};
use crate::time::{Duration, Instant};

type PortRegister = LocalRegisterCopy<u32, PORTSC::Register>;
type PortField = FieldValue<u32, PORTSC::Register>;

/// How long the link of a disabled SuperSpeed port takes to settle before it can be told to look for
/// a device again. Policy: 20 ms, as iPXE waits.
const LINK_SETTLES: Duration = Duration::from_millis(20);

/// A set of root ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PortSet([u64; 4]);

impl PortSet {
    pub(super) fn insert(&mut self, port: RootPort) {
        if let Some(word) = self.0.get_mut(usize::from(port.0 >> 6)) {
            *word |= 1 << (port.0 & 63);
        }
    }

    /// Takes the lowest one out.
    pub(super) fn pop(&mut self) -> Option<RootPort> {
        for (index, word) in self.0.iter_mut().enumerate() {
            if *word != 0 {
                let bit = word.trailing_zeros();
                *word &= *word - 1;
                return Some(RootPort((index as u32 * 64 + bit) as u8));
            }
        }
        None
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }
}

/// Ports that the driver has something to do with.
#[derive(Clone, Copy, Debug)]
pub(super) struct PortWork {
    /// To be reported.
    pub(super) changed: PortSet,
    /// SuperSpeed ports that were disabled, and are to look for devices again.
    detecting: PortSet,
    /// When. `None` until the next poll tells the time.
    detect_at: Option<Instant>,
}

impl PortWork {
    pub(super) const NONE: Self = Self {
        changed: PortSet([0; 4]),
        detecting: PortSet([0; 4]),
        detect_at: None,
    };

    /// When the ports want to be looked after.
    pub(super) fn deadline(&self) -> Instant {
        match self.detect_at {
            _ if self.detecting.is_empty() => Instant::NEVER,
            Some(at) => at,
            None => Instant::default(),
        }
    }
}

impl<B: Bus> RootPorts for Xhci<'_, B> {
    fn port_protocol(&self, port: RootPort) -> PortProtocol {
        self.parameters.port_protocol(port)
    }

    fn read_port(&self, port: RootPort) -> PortStatus {
        let status = self.read_portsc(port);
        let is_super = self.port_protocol(port) == PortProtocol::Usb3;
        let stuck = matches!(
            status.read_as_enum(PORTSC::PLS),
            Some(PORTSC::PLS::Value::Inactive | PORTSC::PLS::Value::Compliance)
        );
        PortStatus {
            connected: status.is_set(PORTSC::CCS),
            enabled: status.is_set(PORTSC::PED),
            resetting: status.is_set(PORTSC::PR),
            powered: status.is_set(PORTSC::PP),
            over_current: status.is_set(PORTSC::OCA),
            needs_warm_reset: is_super && (stuck || status.is_set(PORTSC::CAS)),
            speed: context::speed_of(status.read(PORTSC::SPEED)),
            connect_changed: status.is_set(PORTSC::CSC),
            reset_changed: status.is_set(PORTSC::PRC) || status.is_set(PORTSC::WRC),
            handed_over: false,
        }
    }

    fn acknowledge(&mut self, port: RootPort, status: &PortStatus) {
        if port.0 >= self.parameters.ports {
            return;
        }
        let current = self.read_portsc(port);
        let keep_connect = if status.connect_changed {
            0
        } else {
            PORTSC::CSC::SET.value
        };
        let keep_reset = if status.reset_changed {
            0
        } else {
            PORTSC::PRC::SET.value | PORTSC::WRC::SET.value
        };
        // Changes that the status does not show are cleared too: the controller reports a port
        // only when its first change bit is set (`xHCI 1.2 §4.19.2`).
        let seen = current.get() & operational::PORT_CHANGES & !(keep_connect | keep_reset);
        let bits = ChangeBits::preserving(current, operational::PORT_KEEP).clearing(seen);
        self.blocks.operational.change(portsc(port), bits);
        // A change that came in between raises no event while another bit was still set.
        if self.read_portsc(port).get() & operational::PORT_CHANGES != 0 {
            self.ports.changed.insert(port);
            self.mark_pending();
        }
    }

    fn power_port(&mut self, port: RootPort, on: bool) {
        // Over-current clears PP also where no power can be switched, and only software sets it again (`xHCI 1.2
        // §5.4.8`).
        let is_down = || !self.read_portsc(port).is_set(PORTSC::PP);
        if self.parameters.power_switch || on && is_down() {
            let power = if on {
                PORTSC::PP::SET
            } else {
                PORTSC::PP::CLEAR
            };
            self.write_port(port, power);
        }
    }

    fn begin_reset(&mut self, port: RootPort) {
        self.write_port(port, PORTSC::PR::SET);
    }

    fn end_reset(&mut self, _port: RootPort) {
        // The controller times a reset and ends it by itself.
    }

    fn begin_warm_reset(&mut self, port: RootPort) {
        match self.port_protocol(port) {
            PortProtocol::Usb3 => self.write_port(port, PORTSC::WPR::SET),
            PortProtocol::Usb2 => self.begin_reset(port),
        }
    }

    fn disable_port(&mut self, port: RootPort) {
        self.write_port(port, PORTSC::PED::SET);
        if self.port_protocol(port) == PortProtocol::Usb3 {
            // A disabled SuperSpeed link sees neither removal nor arrival.
            self.ports.detecting.insert(port);
            self.ports.detect_at = None;
            self.wake = Instant::default();
        }
    }

    fn hand_over(&mut self, _port: RootPort) -> bool {
        false
    }
}

fn portsc(port: RootPort) -> WriteOneToClear<PORTSC::Register> {
    operational::PORTSC.array(usize::from(port.0), operational::PORT_STRIDE)
}

impl<B: Bus> Xhci<'_, B> {
    /// Reads the register of a port; zero, which shows an empty port, where there is none.
    fn read_portsc(&self, port: RootPort) -> PortRegister {
        if port.0 >= self.parameters.ports {
            return PortRegister::new(0);
        }
        let status = self.blocks.operational.read(portsc(port));
        if status.get() == u32::MAX {
            return PortRegister::new(0);
        }
        status
    }

    fn write_port(&mut self, port: RootPort, field: PortField) {
        if port.0 < self.parameters.ports {
            let current = self.read_portsc(port);
            let bits = ChangeBits::preserving(current, operational::PORT_KEEP).with(field);
            self.blocks.operational.change(portsc(port), bits);
        }
    }

    /// Sends disabled SuperSpeed ports back to looking for devices, when their links have settled.
    pub(super) fn detect_again(&mut self, now: Instant) {
        if self.ports.detecting.is_empty() {
            return;
        }
        let at = *self.ports.detect_at.get_or_insert(now + LINK_SETTLES);
        if now < at {
            return;
        }
        while let Some(port) = self.ports.detecting.pop() {
            self.write_port(port, PORTSC::PLS::RxDetect + PORTSC::LWS::SET);
        }
        self.ports.detect_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_set_gives_its_ports_back_in_order_once() {
        let mut set = PortSet::default();
        for port in [200, 3, 64, 3] {
            set.insert(RootPort(port));
        }
        let taken: Vec<_> = core::iter::from_fn(|| set.pop())
            .map(|port| port.0)
            .collect();
        assert_eq!(taken, [3, 64, 200]);
        assert!(set.is_empty());
    }
}
