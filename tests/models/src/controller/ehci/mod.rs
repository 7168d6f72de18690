//! A strict model of an EHCI host controller (EHCI 1.0), written from the specification.
//!
//! The machine calls it through [`Controller`]; tests shape it by [`Traits`] and break it by
//! [`Faults`]. It executes queue heads and qTDs packet by packet against [`UsbDevice`]s, in the order
//! of the lists and with the time of a high-speed bus. Where no driver may do what was done, it
//! panics with the section.
//!
//! What the controller may hold of memory is the heart of it (`ownership`): a queue head from the
//! moment when software links it until the doorbell is answered, a qTD from the moment when its
//! Active bit is set until it is retired. Nobody may change either meanwhile.
//!
//! | file | what it models | sections of EHCI 1.0 |
//! |---|---|---|
//! | `registers` | the register map: width, which bits are reserved | 2.2, 2.3 |
//! | `operational` | USBCMD to CONFIGFLAG: run, halt, reset, schedule enables | 2.3, 4.1 |
//! | `interrupts` | status bits, the threshold, the line | 2.3.2, 4.15 |
//! | `ports` | PORTSC and the state of each root port | 2.3.9, 4.2 |
//! | `bus` | one transaction on all enabled ports; which turn comes when | 4.4 |
//! | `token`, `queue_head`, `transfer_descriptor`, `buffer` | structures, field by field | 3.5, 3.6 |
//! | `ownership` | what the controller may hold of memory, and who changed it | 4.8, 4.10 |
//! | `doorbell` | Interrupt on Async Advance | 4.8.2 |
//! | `traversal` | the asynchronous schedule: order, Reclamation, NAK reload | 4.8, 4.9 |
//! | `queue` | Advance Queue, Write Back qTD | 4.10.2, 4.10.4 |
//! | `execute` | Execute Transaction, PING, errors, toggles | 4.10.3, 4.11 |
//! | `periodic` | the frame list and interrupt queue heads | 4.6, 4.10.7 |
//! | `split`, `translator` | split transactions and the hub's part in them | 4.12 |
//! | `timing` | how long a transaction takes | USB 2.0 §5, §11 |
//! | `left_running` | a controller as a boot loader leaves it | |
//! | `traits` | the shape that a test gives it | |
//! | `faults` | what goes wrong on purpose | |
//!
//! Not modelled: isochronous transfers, FSTN, suspend and resume, port test modes, the debug port,
//! the light reset, legacy support. A driver that uses them fails the run with a message that says so.
//! The transaction translator is a part of this model and not yet of a hub device: it takes any hub
//! address (see `translator`).

mod buffer;
mod bus;
mod doorbell;
mod execute;
mod faults;
mod interrupts;
mod left_running;
mod operational;
mod ownership;
mod periodic;
mod ports;
mod queue;
mod queue_head;
mod registers;
mod split;
mod timing;
mod token;
mod traits;
mod transfer_descriptor;
mod translator;
mod traversal;

use std::collections::BTreeMap;

pub use faults::{Death, Faults, TransferFault};
pub use left_running::{FOREIGN_BYTES, Left};
pub use traits::Traits;

use crate::clock::Agenda;
use crate::controller::{Controller, Surroundings, Width};
use crate::device::{Nanoseconds, UsbDevice};

use bus::Turn;
use interrupts::Interrupts;
use operational::Operational;
use ownership::Ownership;
use ports::Port;
use translator::Translators;
use traversal::Traversal;

/// One of the two schedules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum List {
    Asynchronous,
    Periodic,
}

/// Something that a controller will do at a later moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    /// HCRESET clears itself.
    ResetDone,
    /// HCHalted sets.
    Halted,
    /// A schedule's status bit follows its enable bit.
    Follow(List),
    /// A port's reset has ended; its number, and which reset it was.
    PortReset(usize, u64),
    /// A device changes what it shows.
    LinkChanges(usize),
    /// Current at a port rises above the limit, or falls below it.
    OverCurrent(usize, bool),
    /// The doorbell is answered; which.
    Advance(u64),
    /// The bus has room for the next transaction; which plan.
    Bus(u64),
    /// The interrupt threshold is reached.
    Threshold,
    /// A controller that was left running is looked at for the first time.
    Adopt(Left),
    /// The controller dies as a test has planned it.
    Die(Death),
}

/// A modelled EHCI controller.
pub struct Ehci {
    traits: Traits,
    faults: Faults,
    agenda: Agenda<Due>,
    operational: Operational,
    interrupts: Interrupts,
    ports: Vec<Port>,
    turn: Turn,
    held: Ownership,
    traversal: Traversal,
    translators: Translators,
    doorbell: Option<u64>,
    /// Counts everything that can become stale: resets, connections, doorbells.
    lives: u64,
    /// Accesses to memory so far.
    accesses: u64,
    /// qTDs begun so far, by endpoint address.
    begun: BTreeMap<u8, u64>,
    death: Option<Death>,
    dma_cut: bool,
}

impl std::fmt::Debug for Ehci {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Ehci")
            .field("operational", &self.operational)
            .field("ports", &self.ports)
            .finish_non_exhaustive()
    }
}

impl Ehci {
    /// A controller as it is after power-on, with no device.
    #[must_use]
    pub fn new(traits: Traits, faults: Faults) -> Self {
        let mut new = Self {
            operational: Operational::at_power_on(&traits),
            interrupts: Interrupts::default(),
            ports: (0..traits.ports)
                .map(|index| Port::new(index, &traits))
                .collect(),
            agenda: Agenda::default(),
            turn: Turn::default(),
            held: Ownership::default(),
            traversal: Traversal::default(),
            translators: Translators::default(),
            doorbell: None,
            lives: 0,
            accesses: 0,
            begun: BTreeMap::new(),
            death: None,
            dma_cut: false,
            traits,
            faults,
        };
        for (port, from, to) in new.faults.over_current.clone() {
            new.agenda.add(from, Due::OverCurrent(port, true));
            new.agenda.add(to, Due::OverCurrent(port, false));
        }
        if let Some((at, death)) = new.faults.death {
            new.agenda.add(at, Due::Die(death));
        }
        new
    }

    fn next_life(&mut self) -> u64 {
        self.lives += 1;
        self.lives
    }

    /// Whether the controller executes anything at all.
    fn is_running(&self) -> bool {
        self.operational.is_running() && self.death.is_none() && !self.dma_cut
    }

    /// The address of a structure whose lower half is `low` (EHCI 1.0 §2.3.5).
    fn structure(&self, low: u32) -> u64 {
        u64::from(self.operational.segment) << 32 | u64::from(low)
    }

    /// Counts an access to memory: `None` if the system's bus failed it, and the controller is
    /// halted now.
    fn access(&mut self, around: &mut Surroundings<'_>) -> Option<()> {
        let count = self.accesses;
        self.accesses += 1;
        if self.faults.host_system_error_at == Some(count) {
            self.host_system_error(around);
            return None;
        }
        Some(())
    }

    fn die(&mut self, around: &mut Surroundings<'_>, death: Death) {
        if death == Death::HostSystemError {
            if self.operational.is_running() {
                self.host_system_error(around);
            }
            return;
        }
        self.death = Some(death);
        *around.noticed = true;
    }

    fn do_due(&mut self, around: &mut Surroundings<'_>, due: Due) {
        match due {
            Due::ResetDone => self.reset_is_done(around),
            Due::Halted => self.halt(around),
            Due::Follow(list) => self.schedule_follows(around, list),
            Due::PortReset(port, life) => self.port_reset_ends(around, port, life),
            Due::LinkChanges(port) => self.watch_link(around, port),
            Due::OverCurrent(port, on) => self.over_current(around, port, on),
            Due::Advance(life) => self.answer_doorbell(around, life),
            Due::Bus(life) => self.take_turn(around, life),
            Due::Threshold => self.reach_threshold(around),
            Due::Adopt(left) => self.adopt(around, left),
            Due::Die(death) => self.die(around, death),
        }
    }
}

impl Controller for Ehci {
    fn length(&self) -> usize {
        0x400
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
            self.watch_store(around, bus, length);
        }
    }

    fn interrupt_line(&self) -> bool {
        self.interrupts.line()
    }

    fn interrupts(&self) -> u64 {
        self.interrupts.count()
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
