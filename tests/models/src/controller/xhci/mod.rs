//! A strict model of an xHCI host controller (xHCI 1.2), written from the specification.
//!
//! The machine calls it through [`Controller`]; tests shape it by [`Traits`] and break it by
//! [`Faults`]. It executes TRBs packet by packet against [`UsbDevice`]s. Where the specification says
//! how a controller answers a driver's mistake, and a sane driver may make it (a command that a race
//! made stale), it answers so. Where no driver may do what was done, it panics with the section.
//!
//! | file | what it models | sections |
//! |---|---|---|
//! | `registers` | the register map: width, order, which bits are reserved | 5 |
//! | `operational`, `scratchpads` | USBCMD to CONFIG: run, halt, reset, not ready | 5.4, 4.2, 4.20 |
//! | `extended` | extended capabilities, the firmware's hold | 7, 4.22.1 |
//! | `ports`, `port_writes` | the state of each root port, and PORTSC | 4.19, 5.4.8 |
//! | `events`, `event_tables` | interrupters, event rings, interrupts | 4.9.4, 4.17, 5.5.2 |
//! | `trb`, `rings` | TRBs with their reserved fields; how rings are consumed | 4.9, 4.11, 6.4 |
//! | `contexts`, `context_memory` | input and output contexts, field by field | 6.2, 4.5 |
//! | `slots`, `commands`, `endpoint_commands` | the command ring and each command | 4.6 |
//! | `endpoints`, `descriptors`, `transfers`, `packets` | doorbells, TDs, packets | 4.7 to 4.11 |
//! | `streams`, `stream_contexts`, `stream_packets` | their rings, their contexts, who starts which | 4.12, 6.2.4 |
//! | `timing` | how long a packet takes on each bus | USB 2.0 §5, USB 3.2 §8 |
//! | `traits` | the shape that a test gives it | |
//! | `faults` | what goes wrong on purpose | |
//! | `checks` | what every part checks alike | |
//!
//! Not modelled: isochronous endpoints, secondary stream arrays, Event Data TRBs, suspend and resume, save and
//! restore, virtualization, debug. A driver that uses them fails the run with a message that says so.

mod checks;
mod commands;
mod context_memory;
mod contexts;
mod descriptors;
mod endpoint_commands;
mod endpoints;
mod event_tables;
mod events;
mod extended;
mod faults;
mod operational;
mod packets;
mod port_writes;
mod ports;
mod registers;
mod rings;
mod scratchpads;
mod slots;
mod stream_contexts;
mod stream_packets;
mod streams;
mod timing;
mod traits;
mod transfers;
mod trb;

pub use faults::{CompletionFault, Death, Faults};
pub use traits::{AfterShort, Firmware, IdleStop, Protocol, Signal, StreamStop, Traits};

use std::collections::BTreeMap;

use crate::clock::Agenda;
use crate::controller::{Controller, Surroundings, Width};
use crate::device::{Nanoseconds, UsbDevice};

use commands::Commands;
use events::Interrupter;
use extended::Legacy;
use operational::Operational;
use ports::Port;
use registers::PendingHalf;
use slots::Slot;

/// Something that a controller will do at a later moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    /// HCRST clears itself.
    ResetDone,
    /// CNR clears.
    Ready,
    /// HCHalted sets.
    Halted,
    /// The firmware lets go.
    FirmwareReleases,
    /// A port's reset ends; its number, and which reset it was.
    PortReset(usize, u64),
    /// A SuperSpeed link is trained; the port, and which connection it was.
    PortTrained(usize, u64),
    /// A device changes what it shows.
    LinkChanges(usize),
    /// The command under way goes on; which.
    Command(u64),
    /// An endpoint has its next packet; slot, endpoint, and which life of it.
    Packet(u8, u8, u64),
    /// The controller dies.
    Dies(Death),
    /// An event that nothing caused.
    StrayEvent([u32; 4]),
    /// A port draws too much.
    OverCurrent(usize, bool),
    /// Interrupt moderation is over for this interrupter.
    Moderated(usize),
}

/// A modelled xHCI controller.
pub struct Xhci {
    traits: Traits,
    faults: Faults,
    agenda: Agenda<Due>,
    operational: Operational,
    legacy: Legacy,
    pending_half: Option<PendingHalf>,
    ports: Vec<Port>,
    interrupters: Vec<Interrupter>,
    commands: Commands,
    slots: Vec<Slot>,
    scratchpads: Vec<u64>,
    /// How many TDs each endpoint address has begun, over all devices.
    td_counts: BTreeMap<u8, u64>,
    /// Counts everything that can become stale: resets, connections, commands, endpoints.
    lives: u64,
    line: bool,
    interrupts: u64,
    death: Option<Death>,
    dma_cut: bool,
}

impl std::fmt::Debug for Xhci {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Xhci")
            .field("operational", &self.operational)
            .field("ports", &self.ports)
            .finish_non_exhaustive()
    }
}

impl Xhci {
    /// A controller as it is after power-on, with no device.
    #[must_use]
    pub fn new(traits: Traits, faults: Faults) -> Self {
        let mut agenda = Agenda::default();
        faults.plan(&mut agenda);
        if traits.not_ready_at_start != 0 {
            agenda.add(traits.not_ready_at_start, Due::Ready);
        }
        Self {
            operational: Operational::at_power_on(&traits),
            legacy: Legacy::new(traits.firmware),
            ports: traits
                .ports
                .iter()
                .map(|&kind| Port::new(kind, &traits))
                .collect(),
            interrupters: (0..traits.interrupters)
                .map(|_| Interrupter::default())
                .collect(),
            commands: Commands::default(),
            slots: (0..=traits.slots).map(|_| Slot::default()).collect(),
            agenda,
            pending_half: None,
            scratchpads: Vec::new(),
            td_counts: BTreeMap::new(),
            lives: 0,
            line: false,
            interrupts: 0,
            death: None,
            dma_cut: false,
            traits,
            faults,
        }
    }

    fn next_life(&mut self) -> u64 {
        self.lives += 1;
        self.lives
    }

    /// Whether the controller executes anything at all.
    fn is_running(&self) -> bool {
        self.operational.is_running() && self.death.is_none() && !self.dma_cut
    }

    fn do_due(&mut self, around: &mut Surroundings<'_>, due: Due) {
        match due {
            Due::ResetDone => self.reset_is_done(around),
            Due::Ready => self.becomes_ready(around),
            Due::Halted => self.halt(around),
            Due::FirmwareReleases => self.legacy.release(),
            Due::PortReset(port, life) => self.port_reset_ends(around, port, life),
            Due::PortTrained(port, life) => self.port_is_trained(around, port, life),
            Due::LinkChanges(port) => self.watch_link(around, port),
            Due::Command(life) => self.continue_command(around, life),
            Due::Packet(slot, endpoint, life) => self.next_packet(around, slot, endpoint, life),
            Due::Dies(death) => self.die(around, death),
            Due::StrayEvent(words) => self.post_event(around, 0, words, true),
            Due::OverCurrent(port, on) => self.over_current(around, port, on),
            Due::Moderated(index) => self.moderation_ends(around, index),
        }
    }
}

impl Controller for Xhci {
    fn length(&self) -> usize {
        0x4000
    }

    fn read(&mut self, around: &mut Surroundings<'_>, offset: usize, width: Width) -> u32 {
        self.read_register(around, offset, width)
    }

    fn write(&mut self, around: &mut Surroundings<'_>, offset: usize, width: Width, value: u32) {
        self.write_register(around, offset, width, value);
        self.update_line();
    }

    fn next_event(&self) -> Option<Nanoseconds> {
        self.agenda.next()
    }

    fn run(&mut self, around: &mut Surroundings<'_>) {
        while let Some(due) = self.agenda.take_due(around.now) {
            self.do_due(around, due);
        }
        self.update_line();
    }

    fn stored(&mut self, around: &mut Surroundings<'_>, bus: u64, length: u64) {
        if self.is_running() {
            self.watch_rings(around, Some((bus, length)));
        }
    }

    fn interrupt_line(&self) -> bool {
        self.line
    }

    fn interrupts(&self) -> u64 {
        self.interrupts
    }

    fn ports(&self) -> usize {
        self.ports.len()
    }

    fn plug(&mut self, around: &mut Surroundings<'_>, port: usize, device: Box<dyn UsbDevice>) {
        self.plug_device(around, port, device);
    }

    fn unplug(&mut self, around: &mut Surroundings<'_>, port: usize) -> Option<Box<dyn UsbDevice>> {
        self.unplug_device(around, port)
    }

    fn cut_dma(&mut self) {
        self.dma_cut = true;
    }
}
