//! Root ports: high speed here, everything else by way of the companion.
//!
//! Called by the core through [`RootPorts`]; it times power, debounce and reset. A port that is
//! enabled after its reset has a high-speed device. One that is not has a full-speed device, and one
//! that shows K before the reset a low-speed one: both are for the companion, if there is one
//! (`EHCI 1.0 §4.2.2`). What the chip does not tell, that a reset has ended, is told by the driver.

use super::Ehci;
use super::regs::{PORTSC, PORTSC_PRESERVE, portsc};
use crate::host::{Event, PortProtocol, PortStatus, RootPort, RootPorts};
use crate::mmio::{Bus, ChangeBits};
use crate::time::{Duration, Instant};
use crate::usb::speed::Speed;

/// How long the core holds a root port in reset: 50 ms at least (`USB 2.0 §7.1.7.5`, TDRSTR).
/// Policy: a millisecond more, because a clock that has just ticked is cut short.
pub(super) const RESET_HOLD: Duration = Duration::from_millis(51);

/// How long a controller may take to end a reset after it was told: 2 ms (`EHCI 1.0 §2.3.9`).
/// Policy: ten times that, then the port is reported as it is.
const RESET_END: Duration = Duration::from_millis(20);

/// Change bits of a port.
const CHANGES: u32 = PORTSC::CSC::SET.value | PORTSC::PEDC::SET.value | PORTSC::OCC::SET.value;

/// What the driver remembers of its ports: a bit each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    /// To be reported.
    events: u16,
    /// Told to end their reset.
    ending: u16,
    /// Reset ended, not acknowledged yet.
    ended: u16,
    /// Not enabled by their last reset although a device is there.
    full_speed: u16,
    /// Handed over to a companion.
    handed_over: u16,
    /// When a reset that does not end is reported anyway.
    ending_until: Instant,
}

impl Ports {
    /// Nothing known.
    pub(super) const EMPTY: Self = Self {
        events: 0,
        ending: 0,
        ended: 0,
        full_speed: 0,
        handed_over: 0,
        ending_until: Instant::NEVER,
    };

    /// Whether a reset is about to end.
    pub(super) fn is_ending(&self) -> bool {
        self.ending != 0
    }
}

fn bit(port: RootPort) -> u16 {
    1_u16.checked_shl(port.0.into()).unwrap_or(0)
}

impl<B: Bus> Ehci<'_, B> {
    fn all_ports(&self) -> impl Iterator<Item = RootPort> + use<B> {
        (0..self.capability.ports).map(RootPort)
    }

    fn has_port(&self, port: RootPort) -> bool {
        port.0 < self.capability.ports
    }

    fn read_portsc(
        &self,
        port: RootPort,
    ) -> tock_registers::LocalRegisterCopy<u32, PORTSC::Register> {
        let value = self.registers.read(portsc(port.0));
        if value.get() == u32::MAX {
            return tock_registers::LocalRegisterCopy::new(0);
        }
        value
    }

    /// Writes a port's register: as it is, all change bits left alone, and `change` applied.
    fn write_portsc(
        &self,
        port: RootPort,
        change: impl FnOnce(ChangeBits<PORTSC::Register>) -> ChangeBits<PORTSC::Register>,
    ) {
        if !self.has_port(port) {
            return;
        }
        let current = self.read_portsc(port);
        let kept = ChangeBits::preserving(current, PORTSC_PRESERVE);
        self.registers.change(portsc(port.0), change(kept));
    }

    /// Gives all ports power, where it can be switched: as after an xHCI's reset.
    pub(super) fn power_all_ports(&self) {
        if self.capability.power_switching {
            for port in self.all_ports() {
                self.write_portsc(port, |bits| bits.with(PORTSC::PP::SET));
            }
        }
    }

    /// Notes which ports have changed.
    pub(super) fn note_port_changes(&mut self) {
        for port in self.all_ports() {
            if self.read_portsc(port).get() & CHANGES != 0 {
                self.ports.events |= bit(port);
            }
        }
    }

    /// Notes which ports have come back from their companions: what was on them was pulled, and no
    /// bit tells of it (`EHCI 1.0 §4.2.2`).
    pub(super) fn note_returned_ports(&mut self) {
        for port in self.all_ports() {
            if self.ports.handed_over & bit(port) != 0 && !self.read_portsc(port).is_set(PORTSC::PO)
            {
                self.ports.handed_over &= !bit(port);
                self.ports.events |= bit(port);
            }
        }
    }

    /// Looks after resets that are about to end, and reports ports.
    pub(super) fn tend_ports(&mut self, now: Instant) -> Option<Event> {
        for port in self.all_ports() {
            if self.ports.ending & bit(port) == 0 {
                continue;
            }
            let status = self.read_portsc(port);
            if status.is_set(PORTSC::PR) && now < self.ports.ending_until {
                continue;
            }
            self.ports.ending &= !bit(port);
            self.ports.ended |= bit(port);
            self.ports.events |= bit(port);
            if status.is_set(PORTSC::CCS) && !status.is_set(PORTSC::PED) {
                self.ports.full_speed |= bit(port);
            }
        }
        let port = self
            .all_ports()
            .find(|port| self.ports.events & bit(*port) != 0)?;
        self.ports.events &= !bit(port);
        Some(Event::Port(port))
    }

    fn speed(
        &self,
        port: RootPort,
        status: tock_registers::LocalRegisterCopy<u32, PORTSC::Register>,
    ) -> Option<Speed> {
        if !status.is_set(PORTSC::CCS) || status.is_set(PORTSC::PR) {
            None
        } else if status.is_set(PORTSC::PED) {
            Some(Speed::High)
        } else if status.matches_all(PORTSC::LINE::K) {
            Some(Speed::Low)
        } else {
            (self.ports.full_speed & bit(port) != 0).then_some(Speed::Full)
        }
    }
}

impl<B: Bus> RootPorts for Ehci<'_, B> {
    fn port_protocol(&self, _port: RootPort) -> PortProtocol {
        PortProtocol::Usb2
    }

    fn read_port(&self, port: RootPort) -> PortStatus {
        let status = self.read_portsc(port);
        let ours = self.has_port(port) && !status.is_set(PORTSC::PO);
        PortStatus {
            connected: ours && status.is_set(PORTSC::CCS),
            enabled: ours && status.is_set(PORTSC::PED),
            resetting: ours && status.is_set(PORTSC::PR),
            powered: status.is_set(PORTSC::PP),
            over_current: status.is_set(PORTSC::OCA),
            needs_warm_reset: false,
            speed: self.speed(port, status).filter(|_| ours),
            connect_changed: status.is_set(PORTSC::CSC),
            reset_changed: self.ports.ended & bit(port) != 0,
            handed_over: self.has_port(port) && status.is_set(PORTSC::PO),
        }
    }

    fn acknowledge(&mut self, port: RootPort, status: &PortStatus) {
        let shown = self.read_portsc(port).get() & CHANGES;
        let connect = PORTSC::CSC::SET.value;
        let clear = if status.connect_changed {
            self.ports.full_speed &= !bit(port);
            shown
        } else {
            shown & !connect
        };
        if status.reset_changed {
            self.ports.ended &= !bit(port);
        }
        if clear != 0 {
            self.write_portsc(port, |bits| bits.clearing(clear));
        }
    }

    fn power_port(&mut self, port: RootPort, on: bool) {
        if self.capability.power_switching {
            self.write_portsc(port, |bits| bits.with(PORTSC::PP.val(on.into())));
        }
    }

    /// The port must be written disabled along with the reset, and the controller must run
    /// (`EHCI 1.0 §2.3.9`): one that has stopped on an error is reported by the next `poll`.
    fn begin_reset(&mut self, port: RootPort) {
        self.ports.full_speed &= !bit(port);
        self.ports.ended &= !bit(port);
        self.ports.ending &= !bit(port);
        if !self.read_alive() {
            return;
        }
        self.write_portsc(port, |bits| bits.with(PORTSC::PR::SET + PORTSC::PED::CLEAR));
    }

    fn end_reset(&mut self, port: RootPort) {
        if !self.has_port(port) {
            return;
        }
        self.write_portsc(port, |bits| bits.with(PORTSC::PR::CLEAR));
        self.ports.ending |= bit(port);
        self.ports.ending_until = self.now + RESET_END;
        self.attend_now();
    }

    fn begin_warm_reset(&mut self, port: RootPort) {
        self.begin_reset(port);
    }

    fn disable_port(&mut self, port: RootPort) {
        self.write_portsc(port, |bits| bits.with(PORTSC::PED::CLEAR));
    }

    fn hand_over(&mut self, port: RootPort) -> bool {
        let can_take = self.capability.companions && self.has_port(port);
        if can_take {
            self.write_portsc(port, |bits| bits.with(PORTSC::PO::SET));
            self.ports.handed_over |= bit(port);
        }
        can_take
    }
}
