//! EHCI: the high-speed controller of USB 2.0.
//!
//! Driven by the USB core through the traits of [`host`](super). One [`Ehci`] is one controller; all
//! its state is in storage that the caller lends ([`EhciMemory`]) and in the pool.
//!
//! How it works: every endpoint has a queue head, which is linked into one of two schedules that
//! the controller walks for ever, and a circle of qTDs behind it. A transfer is appended to a running
//! queue by memory writes alone, and found done by reading its token; so in the steady state no
//! register is touched. Registers are needed for ports, for starting and stopping, and for the
//! handshake that takes a queue head back.
//!
//! | file | what |
//! |---|---|
//! | `regs`, `capability` | registers, and what the chip says about itself |
//! | `queue_head`, `transfer_descriptor`, `queue`, `encode` | the structures, one endpoint's queue of them, and how a transfer gets there |
//! | `transfer`, `endpoint` | a transfer in flight; an endpoint and its line of transfers |
//! | `schedule`, `periodic`, `unlink` | the two schedules, and how endpoints leave them |
//! | `controller`, `device`, `endpoints`, `port`, `interrupt` | the five parts, and the interrupt half |
//! | `emergency` | the brake for panic handlers |
//! | `quirks`, `storage` | odd chips; what the caller lends |
//!
//! Not here: isochronous and high-bandwidth transfers, an account of periodic bandwidth, suspend,
//! and transaction translators inside root ports (full and low speed go to the companion). Firmware
//! hand-off is the platform's. Read `EHCI 1.0 §4.8` and `§4.10` first.

mod capability;
mod controller;
mod device;
mod emergency;
mod encode;
mod endpoint;
mod endpoints;
mod interrupt;
mod periodic;
mod port;
mod queue;
mod queue_head;
pub mod quirks;
mod regs;
mod schedule;
mod storage;
mod transfer;
mod transfer_descriptor;
mod unlink;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use device::DeviceRecord;
pub use emergency::EmergencyStop;
pub use endpoint::EndpointRecord;
pub use interrupt::{InterruptHalf, Interrupts};
pub use storage::{EhciMemory, EhciStorage, Signal};
pub use transfer::TransferRecord;

use core::cell::Cell;

use self::capability::Capability;
use self::controller::Life;
use self::device::Addresses;
use self::port::Ports;
use self::quirks::Quirks;
use self::schedule::Doorbell;
use self::storage::{IndexSet, Records, Round};
use crate::dma::Allocation;
use crate::host::{ControllerFault, Slice};
use crate::mmio::{Bus, Registers};
use crate::time::Instant;

/// How a controller is to be driven.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// How completions are learnt of.
    pub interrupts: Interrupts,
    /// What this controller does differently.
    pub quirks: Quirks,
}

/// One EHCI.
#[derive(Debug)]
pub struct Ehci<'s, B> {
    /// Its place in the host, for the pool's ledger.
    index: u8,
    capability: Capability,
    /// The operational registers.
    registers: Registers<B>,
    interrupts: Interrupts,
    quirks: Quirks,
    life: Life,
    /// When `poll` must look at more than transfers.
    wake: Instant,
    /// When the status register is to be looked at next.
    next_look: Instant,
    /// The time of the last `poll`.
    now: Instant,
    /// The time of the last completion, unless one came since the last `poll`.
    last_activity: Instant,
    stirred: bool,
    /// Whose transfer has ended last.
    last_end: u8,
    /// A look at all that is in flight has just found that nothing has ended: it need not be asked for
    /// once more before the turn is over.
    just_looked: Cell<bool>,
    /// USBCMD as it should be, without the doorbell.
    command: u32,
    signal: &'s Signal,

    devices: &'s mut [DeviceRecord],
    endpoints: &'s mut [EndpointRecord],
    records: Records<'s>,
    addresses: Addresses,
    ports: Ports,

    /// The permanent head of the asynchronous list.
    head: Option<Allocation>,
    /// The frame list.
    frames: Option<Allocation>,
    /// Bits 63..32 of the address of every structure (CTRLDSSEGMENT).
    segment: u32,
    /// The endpoint behind the head.
    async_first: Option<u8>,
    doorbell: Doorbell,
    /// The status register has shown the doorbell's answer.
    answer_seen: bool,
    missed_doorbells: u16,

    /// Endpoints with transfers that may end, and whose turn it is to be looked at.
    active: Round,
    /// Endpoints on their way out of a schedule.
    moving: IndexSet,
    /// Endpoints whose restart is to be reported.
    restarted: IndexSet,
    /// Devices with an operation under way.
    operating: IndexSet,
}

impl<'s, B: Bus> Ehci<'s, B> {
    /// Probes the controller behind `bus`, number `controller` of its host. Nothing is
    /// written.
    ///
    /// # Errors
    ///
    /// [`ControllerFault::Absent`] and [`ControllerFault::Implausible`] if this is no EHCI that can
    /// be driven; [`ControllerFault::Storage`] if a slice is empty or longer than 255.
    pub fn new(
        bus: B,
        controller: u8,
        storage: EhciStorage<'s>,
        options: Options,
    ) -> Result<Self, ControllerFault> {
        let capability = Capability::read(&bus)?;
        let fits = |slice, length: usize| match length {
            1..=255 => Ok(()),
            0 => Err(ControllerFault::Storage(slice, 1)),
            _ => Err(ControllerFault::Storage(slice, 255)),
        };
        fits(Slice::Devices, storage.devices.len())?;
        fits(Slice::Endpoints, storage.endpoints.len())?;
        if storage.transfers.is_empty() {
            return Err(ControllerFault::Storage(Slice::Transfers, 1));
        }
        Ok(Self {
            index: controller,
            capability,
            registers: Registers::new(bus, capability.operational),
            interrupts: options.interrupts,
            quirks: options.quirks,
            life: Life::Off,
            wake: Instant::NEVER,
            next_look: Instant::NEVER,
            now: Instant::default(),
            last_activity: Instant::default(),
            stirred: false,
            last_end: 0,
            just_looked: Cell::new(false),
            command: 0,
            signal: storage.signal,
            devices: storage.devices,
            endpoints: storage.endpoints,
            records: Records::new(storage.transfers),
            addresses: Addresses::EMPTY,
            ports: Ports::EMPTY,
            head: None,
            frames: None,
            segment: 0,
            async_first: None,
            doorbell: Doorbell::Quiet,
            answer_seen: false,
            missed_doorbells: 0,
            active: Round::EMPTY,
            moving: IndexSet::EMPTY,
            restarted: IndexSet::EMPTY,
            operating: IndexSet::EMPTY,
        })
    }

    /// The object that an interrupt handler keeps.
    #[must_use]
    pub fn interrupt_half(&self) -> InterruptHalf<'s, B> {
        InterruptHalf {
            registers: self.registers.clone(),
            signal: self.signal,
        }
    }

    /// The part for a panic handler.
    pub fn emergency_stop(&self) -> EmergencyStop<B> {
        EmergencyStop::new(self.registers.clone())
    }

    /// How many doorbells were not answered, so that the schedule was switched off for a moment.
    #[must_use]
    pub fn missed_doorbells(&self) -> u16 {
        self.missed_doorbells
    }

    /// Forgets all work under way.
    fn reset_state(&mut self) {
        self.addresses = Addresses::EMPTY;
        self.ports = Ports::EMPTY;
        self.doorbell = Doorbell::Quiet;
        self.answer_seen = false;
        self.active = Round::EMPTY;
        for set in [&mut self.moving, &mut self.restarted, &mut self.operating] {
            *set = IndexSet::EMPTY;
        }
    }
}
