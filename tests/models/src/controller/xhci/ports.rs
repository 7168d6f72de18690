//! Root ports: what a connection, a reset or a lost device does to PORTSC (xHCI 1.2 §4.19). What a
//! driver does to it is in [`port_writes`](super::port_writes).

use super::operational::PORT_CHANGE;
use super::traits::{Protocol, Traits};
use super::trb::kind;
use super::{Due, Xhci};
use crate::controller::Surroundings;
use crate::device::{Link, MICROSECOND, Nanoseconds, Packet, Reply, UsbDevice};

const CONNECTED: u32 = 1;
pub(super) const ENABLED: u32 = 1 << 1;
const OVER_CURRENT: u32 = 1 << 3;
pub(super) const RESET: u32 = 1 << 4;
pub(super) const POWER: u32 = 1 << 9;
const CONNECT_CHANGE: u32 = 1 << 17;
const WARM_RESET_CHANGE: u32 = 1 << 19;
const OVER_CURRENT_CHANGE: u32 = 1 << 20;
const RESET_CHANGE: u32 = 1 << 21;
const LINK_CHANGE: u32 = 1 << 22;
pub(super) const CHANGES: u32 = 0x7f << 17;

/// Link states (PLS).
pub(super) mod link_state {
    pub(in super::super) const U0: u32 = 0;
    pub(in super::super) const DISABLED: u32 = 4;
    pub(in super::super) const RX_DETECT: u32 = 5;
    pub(in super::super) const INACTIVE: u32 = 6;
    pub(in super::super) const POLLING: u32 = 7;
}

/// A root port and what is plugged into it.
pub(super) struct Port {
    pub(super) protocol: Protocol,
    device: Option<Box<dyn UsbDevice>>,
    pub(super) powered: bool,
    over_current: bool,
    pub(super) connected: bool,
    pub(super) enabled: bool,
    /// A reset is under way; whether it is a warm one.
    pub(super) resetting: Option<bool>,
    pub(super) link_state: u32,
    speed: u32,
    pub(super) changes: u32,
    pub(super) sticky: u32,
    pub(super) life: u64,
    /// When the bus below is free for the next packet.
    pub(super) free_at: Nanoseconds,
    transactions: u64,
}

impl std::fmt::Debug for Port {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{:?} port, PORTSC {:#010x}",
            self.protocol,
            self.status_and_control()
        )
    }
}

impl Port {
    pub(super) fn new(protocol: Protocol, traits: &Traits) -> Self {
        Self {
            protocol,
            device: None,
            powered: !traits.port_power_control,
            over_current: false,
            connected: false,
            enabled: false,
            resetting: None,
            link_state: link_state::RX_DETECT,
            speed: 0,
            changes: 0,
            sticky: 0,
            life: 0,
            free_at: 0,
            transactions: 0,
        }
    }

    pub(super) fn status_and_control(&self) -> u32 {
        let when = |condition: bool, bit: u32| if condition { bit } else { 0 };
        when(self.connected, CONNECTED)
            | when(self.enabled, ENABLED)
            | when(self.over_current, OVER_CURRENT)
            | when(self.resetting.is_some(), RESET)
            | when(self.powered, POWER)
            | self.link_state << 5
            | self.speed << 10
            | self.sticky
            | self.changes
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.enabled
    }

    pub(super) fn speed(&self) -> u32 {
        self.speed
    }

    /// What the device shows on this kind of port.
    fn shows(&self, now: Nanoseconds) -> Option<Link> {
        let link = self.device.as_ref()?.link(now)?;
        let fits = link.is_super() == (self.protocol == Protocol::Usb3);
        (self.powered && fits).then_some(link)
    }

    /// When an endpoint of the device that is not ready will be.
    pub(super) fn ready_at(&self, endpoint: u8) -> Option<Nanoseconds> {
        self.device.as_ref()?.ready_at(endpoint, 0)
    }

    /// How many packets an endpoint of the device moves at once, if fewer than it announces.
    pub(super) fn packets_at_once(&self, endpoint: u8) -> Option<u32> {
        self.device.as_ref()?.packets_at_once(endpoint)
    }

    /// The streams of an endpoint that the device wants to start, in its order.
    pub(super) fn streams_ready(&self, now: Nanoseconds, endpoint: u8) -> Vec<(Nanoseconds, u16)> {
        let device = self.device.as_ref().filter(|_| self.enabled);
        device.map_or(Vec::new(), |device| device.streams_ready(now, endpoint))
    }

    /// Nothing is there any more.
    pub(super) fn connection_lost(&mut self) {
        self.connected = false;
        self.enabled = false;
        self.speed = 0;
        self.link_state = link_state::RX_DETECT;
    }
}

/// PORTSC's number of a link's speed, with the default speed IDs (§7.2.2.1.1).
fn speed_number(link: Link) -> u32 {
    match link {
        Link::Full => 1,
        Link::Low => 2,
        Link::High => 3,
        Link::Super => 4,
        Link::SuperPlus => 5,
    }
}

impl Xhci {
    pub(super) fn plug_device(
        &mut self,
        around: &mut Surroundings<'_>,
        index: usize,
        device: Box<dyn UsbDevice>,
    ) {
        let port = &mut self.ports[index];
        assert!(port.device.is_none(), "port {index} is taken");
        port.device = Some(device);
        self.faults
            .unplug_at
            .entry(index)
            .and_modify(|at| *at += port.transactions);
        if port.powered {
            self.power_device(around, index, true);
        }
        self.watch_link(around, index);
    }

    pub(super) fn unplug_device(
        &mut self,
        around: &mut Surroundings<'_>,
        index: usize,
    ) -> Option<Box<dyn UsbDevice>> {
        self.power_device(around, index, false);
        let device = self.ports[index].device.take();
        self.watch_link(around, index);
        device
    }

    pub(super) fn power_device(&mut self, around: &Surroundings<'_>, index: usize, on: bool) {
        if let Some(device) = &mut self.ports[index].device {
            if on {
                device.power_on(around.now);
            } else {
                device.power_off(around.now);
            }
        }
    }

    /// Compares what the device shows with what the port says.
    pub(super) fn watch_link(&mut self, around: &mut Surroundings<'_>, index: usize) {
        let port = &mut self.ports[index];
        let shows = port.shows(around.now);
        match (port.connected, shows) {
            (false, Some(link)) => self.connect(around, index, link),
            (true, None) => {
                self.ports[index].connection_lost();
                self.ports[index].life = self.lives + 1;
                self.lives += 1;
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

    fn connect(&mut self, around: &mut Surroundings<'_>, index: usize, link: Link) {
        let life = self.next_life();
        let speed_is_late = self.traits.speed_after_reset;
        let port = &mut self.ports[index];
        port.life = life;
        port.link_state = link_state::POLLING;
        if port.protocol == Protocol::Usb3 {
            let at = around.now + self.traits.training_time;
            self.agenda.add(at, Due::PortTrained(index, life));
            return;
        }
        port.connected = true;
        // Before the chirp a high-speed device looks like a full-speed one.
        let before_chirp = if link == Link::Low {
            Link::Low
        } else {
            Link::Full
        };
        port.speed = if speed_is_late {
            0
        } else {
            speed_number(before_chirp)
        };
        self.set_change(around, index, CONNECT_CHANGE);
    }

    /// §4.19.1.2: a SuperSpeed link comes up by itself.
    pub(super) fn port_is_trained(
        &mut self,
        around: &mut Surroundings<'_>,
        index: usize,
        life: u64,
    ) {
        let port = &mut self.ports[index];
        let shows = port.shows(around.now);
        let (true, Some(link)) = (port.life == life, shows) else {
            return;
        };
        port.connected = true;
        if self.faults.training_fails {
            port.link_state = link_state::INACTIVE;
            self.set_change(around, index, CONNECT_CHANGE | LINK_CHANGE);
            return;
        }
        self.enable(around, index, link);
        self.set_change(around, index, CONNECT_CHANGE);
    }

    fn enable(&mut self, around: &Surroundings<'_>, index: usize, link: Link) {
        let says_none = self.faults.no_speed.contains(&index);
        let port = &mut self.ports[index];
        port.connected = true;
        port.enabled = true;
        port.link_state = link_state::U0;
        port.speed = if says_none { 0 } else { speed_number(link) };
        if let Some(device) = &mut port.device {
            device.bus_reset(around.now, link);
        }
    }

    pub(super) fn port_reset_ends(
        &mut self,
        around: &mut Surroundings<'_>,
        index: usize,
        life: u64,
    ) {
        let port = &mut self.ports[index];
        if port.life != life {
            return;
        }
        let Some(warm) = port.resetting.take() else {
            return;
        };
        let stuck = port.link_state == link_state::INACTIVE && !warm;
        let shows = port.shows(around.now).filter(|_| !stuck);
        if warm {
            self.faults.training_fails = false;
        }
        if let Some(link) = shows {
            self.enable(around, index, link);
        }
        let warm_change = if warm { WARM_RESET_CHANGE } else { 0 };
        self.set_change(around, index, RESET_CHANGE | warm_change);
    }

    /// §4.19.2: an event only as the first change bit of a port is set.
    fn set_change(&mut self, around: &mut Surroundings<'_>, index: usize, bits: u32) {
        let first = self.ports[index].changes == 0;
        self.ports[index].changes |= bits;
        self.operational.status |= PORT_CHANGE;
        *around.noticed = true;
        if first && self.is_running() {
            self.post_port_event(around, index);
        }
    }

    fn post_port_event(&mut self, around: &mut Surroundings<'_>, index: usize) {
        let words = [
            (index as u32 + 1) << 24,
            0,
            1 << 24,
            kind::PORT_STATUS_CHANGE << 10,
        ];
        self.post_event(around, 0, words, true);
    }

    pub(super) fn report_ports_at_run(&mut self, around: &mut Surroundings<'_>) {
        if !self.traits.port_events_at_run {
            return;
        }
        for index in 0..self.ports.len() {
            if self.ports[index].changes != 0 {
                self.post_port_event(around, index);
            }
        }
    }

    /// HCRST: ports lose what they knew, and find their devices again.
    pub(super) fn reset_ports(&mut self, around: &mut Surroundings<'_>) {
        for index in 0..self.ports.len() {
            let life = self.next_life();
            let powered = !self.traits.port_power_control;
            if self.ports[index].powered && !powered {
                self.power_device(around, index, false);
            }
            let port = &mut self.ports[index];
            port.connection_lost();
            port.powered = powered;
            port.resetting = None;
            port.changes = 0;
            port.sticky = 0;
            port.life = life;
            let soon = around.now + 100 * MICROSECOND;
            self.agenda.add(soon, Due::LinkChanges(index));
        }
    }

    /// §4.19.4: the port is disabled, and its device loses power. PP goes to zero whether the power can be switched
    /// or not (§5.4.8), and stays there when the over-current is over.
    pub(super) fn over_current(&mut self, around: &mut Surroundings<'_>, index: usize, on: bool) {
        self.ports[index].over_current = on;
        if on {
            self.ports[index].powered = false;
            self.power_device(around, index, false);
            self.watch_link(around, index);
        }
        self.set_change(around, index, OVER_CURRENT_CHANGE);
    }

    /// One transaction on the bus below a port.
    pub(super) fn transact(
        &mut self,
        around: &mut Surroundings<'_>,
        index: usize,
        address: u8,
        endpoint: u8,
        packet: Packet<'_>,
    ) -> Reply {
        let port = &mut self.ports[index];
        if !port.enabled {
            return Reply::Silent;
        }
        let count = port.transactions;
        port.transactions += 1;
        if self
            .faults
            .unplug_at
            .get(&index)
            .is_some_and(|&at| count >= at)
        {
            self.faults.unplug_at.remove(&index);
            drop(self.unplug_device(around, index));
            return Reply::Silent;
        }
        if self.faults.lost_transactions.contains(&(index, count)) {
            return Reply::Silent;
        }
        let Some(device) = &mut port.device else {
            return Reply::Silent;
        };
        let reply = device.transact(around.now, address, endpoint, packet);
        // A device may let go of the bus in the middle of a transaction.
        if device.link(around.now).is_none() {
            self.watch_link(around, index);
        }
        reply
    }
}
