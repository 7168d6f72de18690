//! Root ports: PORTSC, and what a connection, a reset, a companion or a lost device does to it
//! (EHCI 1.0 §2.3.9, §4.2).

use super::interrupts::PORT_CHANGE;
use super::{Due, Ehci, Traits};
use crate::broken::require;
use crate::controller::Surroundings;
use crate::device::{Link, MICROSECOND, MILLISECOND, Nanoseconds, UsbDevice};

const CONNECTED: u32 = 1;
const CONNECT_CHANGE: u32 = 1 << 1;
const ENABLED: u32 = 1 << 2;
const ENABLE_CHANGE: u32 = 1 << 3;
const OVER_CURRENT: u32 = 1 << 4;
const OVER_CURRENT_CHANGE: u32 = 1 << 5;
const RESUME: u32 = 1 << 6;
const SUSPEND: u32 = 1 << 7;
const RESET: u32 = 1 << 8;
/// D+ is high: the J state of a full- or high-speed device.
const LINE_J: u32 = 1 << 11;
/// D- is high: the K state, that is, a low-speed device.
const LINE_K: u32 = 1 << 10;
const POWER: u32 = 1 << 12;
const OWNER: u32 = 1 << 13;
const INDICATORS: u32 = 3 << 14;
const TEST: u32 = 0xf << 16;
/// Wake enables, which the driver owns.
const WAKE: u32 = 7 << 20;
const CHANGES: u32 = CONNECT_CHANGE | ENABLE_CHANGE | OVER_CURRENT_CHANGE;
/// Reserved: 9, 31..23.
const RESERVED: u32 = 0xff80_0200;

/// USB 2.0 §7.1.7.5, tDRSTR: how long a root port's reset lasts.
const RESET_LENGTH: Nanoseconds = 50 * MILLISECOND;
/// The driver's clock counts whole microseconds: it may be off by one at each end.
const CLOCK_STEP: Nanoseconds = 2 * MICROSECOND;

/// Where a port is with its reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reset {
    None,
    /// Software holds PR, since then.
    Held(Nanoseconds),
    /// Software has cleared PR; the controller takes its time.
    Ending,
}

/// A root port and what is plugged into it.
pub(super) struct Port {
    pub(super) device: Option<Box<dyn UsbDevice>>,
    has_phy: bool,
    powered: bool,
    connected: bool,
    pub(super) enabled: bool,
    low_speed: bool,
    reset: Reset,
    /// A companion controller has it.
    owner: bool,
    over_current: bool,
    changes: u32,
    wake: u32,
    life: u64,
    /// Transactions that its device has answered.
    pub(super) transactions: u64,
}

impl std::fmt::Debug for Port {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PORTSC {:#010x}", self.read())
    }
}

impl Port {
    pub(super) fn new(index: usize, traits: &Traits) -> Self {
        Self {
            device: None,
            has_phy: !traits.missing_phys.contains(&index),
            powered: !traits.port_power_control,
            connected: false,
            enabled: false,
            low_speed: false,
            reset: Reset::None,
            owner: traits.companions != 0,
            over_current: false,
            changes: 0,
            wake: 0,
            life: 0,
            transactions: 0,
        }
    }

    /// PORTSC as it reads. Nearly all of it is zero without power.
    pub(super) fn read(&self) -> u32 {
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        flag(self.connected, CONNECTED)
            | flag(self.enabled, ENABLED)
            | flag(self.over_current, OVER_CURRENT)
            | flag(self.reset != Reset::None, RESET)
            | self.line_state()
            | flag(self.powered, POWER)
            | flag(self.owner, OWNER)
            | self.changes
            | self.wake
    }

    /// Valid only while the port is connected and not enabled; a reset drives SE0.
    fn line_state(&self) -> u32 {
        match (self.connected, self.enabled, self.reset) {
            (true, false, Reset::None) if self.low_speed => LINE_K,
            (true, false, Reset::None) => LINE_J,
            _ => 0,
        }
    }

    /// What the device shows to this controller.
    fn shows(&self, now: Nanoseconds) -> Option<Link> {
        let link = self.device.as_ref()?.link(now)?;
        (self.powered && self.has_phy && !self.owner).then_some(link)
    }

    fn power_device(&mut self, now: Nanoseconds, on: bool) {
        if let Some(device) = &mut self.device {
            if on {
                device.power_on(now);
            } else {
                device.power_off(now);
            }
        }
    }

    fn connection_lost(&mut self) {
        self.connected = false;
        self.enabled = false;
        self.low_speed = false;
    }
}

impl Ehci {
    pub(super) fn plug_device(
        &mut self,
        around: &mut Surroundings<'_>,
        index: usize,
        device: Box<dyn UsbDevice>,
    ) {
        let port = &mut self.ports[index];
        assert!(port.has_phy, "port {index} has no PHY, and no socket");
        assert!(port.device.is_none(), "port {index} is taken");
        port.device = Some(device);
        let done = port.transactions;
        self.faults
            .unplug_at
            .entry(index)
            .and_modify(|at| *at += done);
        if port.powered {
            port.power_device(around.now, true);
        }
        self.watch_link(around, index);
    }

    pub(super) fn unplug_device(
        &mut self,
        around: &mut Surroundings<'_>,
        index: usize,
    ) -> Option<Box<dyn UsbDevice>> {
        let configured = self.operational.configured;
        let port = &mut self.ports[index];
        port.power_device(around.now, false);
        let device = port.device.take();
        if configured {
            port.owner = false;
        }
        self.watch_link(around, index);
        device
    }

    /// Compares what the device shows with what the port says.
    pub(super) fn watch_link(&mut self, around: &mut Surroundings<'_>, index: usize) {
        let configured = self.operational.configured;
        let port = &mut self.ports[index];
        let left = |device: &dyn UsbDevice| device.link(around.now).is_none();
        // §4.2.2: the companion's disconnect gives the port back.
        if configured && port.device.as_deref().is_some_and(left) {
            port.owner = false;
        }
        match (port.connected, port.shows(around.now)) {
            (false, Some(link)) => {
                port.connected = true;
                port.low_speed = link == Link::Low;
                self.new_life(index);
                self.set_change(around, index, CONNECT_CHANGE);
            }
            (true, None) => {
                port.connection_lost();
                self.new_life(index);
                self.set_change(around, index, CONNECT_CHANGE);
            }
            _ => {}
        }
        let device = self.ports[index].device.as_ref();
        if let Some(at) = device.and_then(|device| device.link_changes_at(around.now)) {
            self.agenda
                .add(at.max(around.now + 1), Due::LinkChanges(index));
        }
    }

    /// Somebody has begun a reset of a port, and does not end it.
    pub(super) fn leave_in_reset(&mut self, now: Nanoseconds, index: usize) {
        let port = &mut self.ports[index];
        port.enabled = false;
        port.reset = Reset::Held(now);
    }

    fn new_life(&mut self, index: usize) {
        let life = self.next_life();
        self.ports[index].life = life;
    }

    fn set_change(&mut self, around: &mut Surroundings<'_>, index: usize, bits: u32) {
        self.ports[index].changes |= bits;
        self.raise(around, PORT_CHANGE);
    }

    /// HCRESET: ports forget all, and find their devices again.
    pub(super) fn reset_ports(&mut self, around: &mut Surroundings<'_>) {
        for index in 0..self.ports.len() {
            self.new_life(index);
            let powered = !self.traits.port_power_control;
            let companion = self.traits.companions != 0;
            let port = &mut self.ports[index];
            if port.powered && !powered {
                port.power_device(around.now, false);
            }
            port.connection_lost();
            port.powered = powered;
            port.owner = companion;
            port.reset = Reset::None;
            port.changes = 0;
            port.wake = 0;
            self.watch_link(around, index);
        }
    }

    /// §2.3.8, §4.2.1: CONFIGFLAG routes all ports here, or all to the companions.
    pub(super) fn route_ports(&mut self, around: &mut Surroundings<'_>) {
        if self.traits.companions == 0 {
            return;
        }
        for index in 0..self.ports.len() {
            self.ports[index].owner = !self.operational.configured;
            self.watch_link(around, index);
        }
    }

    pub(super) fn write_port(&mut self, around: &mut Surroundings<'_>, index: usize, value: u32) {
        self.check_port_write(index, value);
        let port = &mut self.ports[index];
        port.changes &= !(value & CHANGES);
        port.wake = value & WAKE;
        if self.traits.port_power_control {
            self.switch_power(around, index, value & POWER != 0);
        }
        let port = &mut self.ports[index];
        if value & ENABLED == 0 {
            port.enabled = false;
        }
        match (port.reset, value & RESET != 0) {
            (Reset::None, true) => self.begin_port_reset(around, index),
            (Reset::Held(since), false) => self.release_port_reset(around, index, since),
            _ => {}
        }
        self.write_owner(around, index, value & OWNER != 0);
    }

    fn check_port_write(&self, index: usize, value: u32) {
        let port = &self.ports[index];
        require!(
            value & RESERVED == 0,
            "EHCI 1.0 §2.3.9",
            "PORTSC = {value:#x}: reserved bits are written as zero"
        );
        require!(
            value & (RESUME | SUSPEND | TEST | INDICATORS) == 0,
            "model",
            "PORTSC = {value:#x}: suspend, resume, indicators and test modes are not modelled"
        );
        // A driver that has not seen a disconnection yet may write back what it read before.
        let explained = port.changes != 0 || port.over_current;
        require!(
            value & ENABLED == 0 || port.enabled || explained,
            "EHCI 1.0 §2.3.9",
            "PORTSC = {value:#x}: software cannot enable a port"
        );
        let before = port.read();
        let acts = (before ^ value) & (RESET | OWNER) != 0;
        let clears = before & value & CHANGES != 0;
        require!(
            !(acts && clears),
            "EHCI 1.0 §2.3.9",
            "PORTSC = {value:#x} acknowledges changes by the way (they are cleared by writing ones)"
        );
        require!(
            value & POWER != 0 || !port.powered || !(acts || clears),
            "EHCI 1.0 §2.3.9",
            "PORTSC = {value:#x} does not preserve the port's power"
        );
    }

    fn switch_power(&mut self, around: &mut Surroundings<'_>, index: usize, on: bool) {
        let port = &mut self.ports[index];
        if port.powered == on {
            return;
        }
        port.powered = on;
        port.reset = Reset::None;
        port.power_device(around.now, on);
        self.watch_link(around, index);
    }

    fn begin_port_reset(&mut self, around: &mut Surroundings<'_>, index: usize) {
        self.new_life(index);
        let halted = self.operational.is_halted();
        let port = &mut self.ports[index];
        require!(
            !halted,
            "EHCI 1.0 §2.3.9",
            "reset of port {index} while HCHalted is one"
        );
        require!(
            port.powered && !port.owner,
            "EHCI 1.0 §2.3.9",
            "reset of port {index}, which has no power or is a companion's"
        );
        require!(
            !port.enabled,
            "EHCI 1.0 §2.3.9",
            "reset of port {index} without writing zero to Port Enabled with it"
        );
        port.reset = Reset::Held(around.now);
    }

    fn release_port_reset(
        &mut self,
        around: &mut Surroundings<'_>,
        index: usize,
        since: Nanoseconds,
    ) {
        let held = around.now - since;
        require!(
            held + CLOCK_STEP >= RESET_LENGTH || !self.ports[index].connected,
            "USB 2.0 §7.1.7.5",
            "port {index} was in reset for {} µs only",
            held / 1_000
        );
        let port = &mut self.ports[index];
        port.reset = Reset::Ending;
        let life = port.life;
        if !self.faults.port_reset_hangs {
            let at = around.now + self.traits.port_reset_end;
            self.agenda.add(at, Due::PortReset(index, life));
        }
    }

    /// The controller has ended the reset: only a high-speed device leaves the port enabled.
    pub(super) fn port_reset_ends(
        &mut self,
        around: &mut Surroundings<'_>,
        index: usize,
        life: u64,
    ) {
        let running = self.operational.is_running();
        let port = &mut self.ports[index];
        if port.reset != Reset::Ending {
            return;
        }
        port.reset = Reset::None;
        if let Some(link) = port.shows(around.now)
            && port.life == life
        {
            let settled = link.min(Link::High);
            port.enabled = settled == Link::High && running;
            if let Some(device) = &mut port.device {
                device.bus_reset(around.now, settled);
            }
        }
        *around.noticed = true;
    }

    /// §4.2.2: software gives a port to its companion controller, or takes it back.
    fn write_owner(&mut self, around: &mut Surroundings<'_>, index: usize, owner: bool) {
        if self.ports[index].owner == owner {
            return;
        }
        require!(
            self.traits.companions != 0,
            "EHCI 1.0 §2.2.3",
            "port {index} was given to a companion controller, and there is none"
        );
        require!(
            self.operational.configured,
            "EHCI 1.0 §2.3.9",
            "Port Owner of port {index} was cleared while CONFIGFLAG is zero"
        );
        require!(
            self.ports[index].reset == Reset::None,
            "EHCI 1.0 §4.2.2",
            "port {index} changed its owner during a reset"
        );
        if !self.faults.companion_refuses {
            self.ports[index].owner = owner;
            self.watch_link(around, index);
        }
    }

    /// §4.2.5: too much current switches the port off, where power can be switched at all.
    pub(super) fn over_current(&mut self, around: &mut Surroundings<'_>, index: usize, on: bool) {
        let port = &mut self.ports[index];
        port.over_current = on;
        let was_enabled = std::mem::take(&mut port.enabled);
        let enable_change = if was_enabled { ENABLE_CHANGE } else { 0 };
        self.set_change(around, index, OVER_CURRENT_CHANGE | enable_change);
        if on && self.traits.port_power_control {
            self.switch_power(around, index, false);
        }
    }
}
