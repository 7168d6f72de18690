//! The xHCI driver.
//!
//! The core drives it through the five traits of [`host`](super); a platform makes it with
//! [`Xhci::new`] and keeps its [`InterruptHalf`]. The rules it keeps:
//!
//! - no register is read on the way of a transfer. A poll that finds nothing costs one load of
//!   uncached memory; a transfer costs its doorbell, and a batch of events one write of the
//!   dequeue pointer (two 32-bit accesses);
//! - the driver's own state lies in the caller's storage, which no device reaches; what the
//!   controller writes is checked against it;
//! - what only the controller does has a deadline here (start, stop, commands). What a device
//!   does, or does not do, has its deadline in the core.
//!
//! A dead controller writes no events. It is noticed when a command is overdue, when it reports an
//! error by an event, by a look at its status each second in which it says nothing, and when the core asks
//! [`HostController::check_alive`](crate::host::HostController::check_alive), as it should after a transfer that took too
//! long.
//!
//! | file | what it holds |
//! |---|---|
//! | `regs`, `capability`, `quirks` | registers, what the chip says, what it gets wrong |
//! | `trb`, `ring`, `event`, `command`, `context`, `base` | structures in shared memory |
//! | `records`, `storage` | structures in the caller's memory |
//! | `controller`, `poll`, `interrupt`, `port` | start and stop; events; the interrupt half; root ports |
//! | `watch` | whether a controller that says nothing lives |
//! | `emergency` | the brake for panic handlers |
//! | `device`, `slot`, `input` | devices: operations, what follows them, input contexts |
//! | `endpoint`, `reserve`, `recovery`, `streams` | endpoints, what they hold, their recovery, their streams |
//! | `no_streams` | in place of `streams` where the library is built without UAS |
//! | `transfer`, `encode` | transfers, the blocks of one |
//!
//! Not here: secondary stream arrays, isochronous endpoints, more than one interrupter. Sections are those of the
//! eXtensible Host Controller Interface for USB, revision 1.2.

mod base;
mod capability;
mod command;
mod context;
mod controller;
mod device;
mod emergency;
mod encode;
mod endpoint;
mod event;
mod input;
mod interrupt;
mod poll;
mod port;
mod quirks;
mod records;
mod recovery;
mod regs;
mod reserve;
mod ring;
mod slot;
mod storage;
#[cfg(feature = "uas")]
mod streams;
#[cfg(not(feature = "uas"))]
#[path = "no_streams.rs"]
mod streams;
mod transfer;
mod trb;
mod watch;

use base::{Base, Extent};
use capability::Parameters;
use controller::Phase;
use poll::Recent;
use port::PortWork;
use quirks::Quirks;
use records::Records;
use regs::Blocks;
use watch::Watch;

pub use device::DeviceRecord;
pub use emergency::EmergencyStop;
pub use endpoint::EndpointRecord;
pub use interrupt::{InterruptHalf, Interrupts};
pub use quirks::{Quirk, Silicon};
pub use records::TransferRecord;
pub use storage::{XhciMemory, XhciStorage};
pub use streams::StreamRecord;

use super::{ControllerFault, DeviceHandle, EndpointHandle, Event, HostError, Slice};
use crate::mmio::Bus;
use crate::time::{Duration, Instant};
use device::DeviceState;
use endpoint::EndpointState;

/// Places that a handle's index can name, less the value that stands for none.
const PLACES: usize = 255;

/// What the platform decides about a controller.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How it calls for attention.
    pub interrupts: Interrupts,
    /// Least time between two interrupts. Policy: 10 µs, below the time of a packet's worth of
    /// work, so that one request at a time is not slowed down; more where many are in flight.
    pub moderation: Duration,
    /// The chip, for its quirks.
    pub silicon: Silicon,
    /// The highest address that the chip's bus carries: `u64::MAX`, but 2^32 - 1 where a controller
    /// of 64 bits (HCCPARAMS1.AC64) is wired to a bus of 32, as in the RK3588.
    pub reach: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interrupts: Interrupts::Polled,
            moderation: Duration::from_micros(10),
            silicon: Silicon::Unknown,
            reach: u64::MAX,
        }
    }
}

/// Counters for diagnosis. They wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Events that fitted nothing in flight, and were ignored.
    pub unexpected_events: u32,
    /// Transfers whose own event never came although a later one's did.
    pub missed_events: u32,
    /// Times that the event ring was full.
    pub event_ring_full: u32,
}

/// One xHCI controller.
#[derive(Debug)]
pub struct Xhci<'s, B> {
    blocks: Blocks<B>,
    parameters: Parameters,
    options: Options,
    quirks: Quirks,
    /// The controller's number in its host, for the pool's ledger.
    controller: u8,
    phase: Phase,
    /// Its memory, while it runs.
    base: Option<Base>,
    /// When `poll` has to look beyond the event ring. Never later than it should be.
    wake: Instant,
    /// Something is to be reported that no event ring knows of.
    pending: bool,
    /// The start, the end or the death of the controller, to be reported.
    notice: Option<Event>,
    ports: PortWork,
    devices: &'s mut [DeviceRecord],
    endpoints: &'s mut [EndpointRecord],
    records: Records<'s>,
    streams: &'s mut [StreamRecord],
    statistics: Statistics,
    recent: Recent,
    watch: Watch,
}

impl<'s, B: Bus> Xhci<'s, B> {
    /// Reads what the chip says about itself and checks it. Writes nothing: whatever runs on the
    /// controller goes on until [`HostController::start`](super::HostController::start).
    ///
    /// `controller` is its number in the host, for the pool's ledger.
    ///
    /// # Errors
    ///
    /// [`ControllerFault::Absent`], [`ControllerFault::Implausible`] with what is wrong,
    /// [`ControllerFault::Storage`] where a slice holds nothing.
    pub fn new(
        bus: B,
        controller: u8,
        storage: XhciStorage<'s>,
        options: Options,
    ) -> Result<Self, ControllerFault> {
        let (blocks, mut parameters) = capability::probe(&bus)?;
        parameters.address_mask = parameters.address_mask.min(options.reach);
        let XhciStorage {
            devices,
            endpoints,
            transfers,
            streams,
        } = storage;
        check_storage(Slice::Devices, devices.len(), 1)?;
        check_storage(Slice::Endpoints, endpoints.len(), 3)?;
        check_storage(Slice::Transfers, transfers.len(), 4)?;
        let places = devices.len().min(PLACES);
        let devices = devices.get_mut(..places).unwrap_or_default();
        let places = endpoints.len().min(PLACES);
        let endpoints = endpoints.get_mut(..places).unwrap_or_default();
        Ok(Self {
            blocks,
            parameters,
            options,
            quirks: quirks::quirks(options.silicon),
            controller,
            phase: Phase::Idle,
            base: None,
            wake: Instant::NEVER,
            pending: false,
            notice: None,
            ports: PortWork::NONE,
            devices,
            endpoints,
            records: Records::new(transfers),
            streams,
            statistics: Statistics::default(),
            recent: Recent::NONE,
            watch: Watch::NONE,
        })
    }

    /// The part for the interrupt handler. Ask for it once: each has its own memory of what is
    /// pending.
    pub fn interrupt_half(&self) -> InterruptHalf<B> {
        InterruptHalf::new(self.blocks.clone(), self.options.interrupts)
    }

    /// The part for a panic handler.
    pub fn emergency_stop(&self) -> EmergencyStop<B> {
        EmergencyStop::new(self.blocks.clone())
    }

    /// The known faults of this chip, for a person.
    pub fn quirks(&self) -> impl Iterator<Item = &'static Quirk> {
        quirks::known(self.options.silicon)
    }

    /// Counters for diagnosis.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// How much of everything, with this storage.
    fn extent(&self) -> Extent {
        let commands = self.devices.len() + self.endpoints.len();
        Extent {
            slots: self.parameters.slots.min(self.devices.len() as u8),
            commands,
            // Two events for each transfer at most (a short data stage and the status stage), one
            // for each command, one for each port and one for each stop.
            events: event::room(
                2 * self.records.capacity()
                    + commands
                    + self.endpoints.len()
                    + usize::from(self.parameters.ports),
            ),
        }
    }

    fn check_running(&self) -> Result<(), HostError> {
        match self.phase {
            Phase::Running => Ok(()),
            _ => Err(HostError::Dead),
        }
    }

    /// Something is to be reported: the next poll must look for it.
    fn mark_pending(&mut self) {
        self.pending = true;
        self.wake = Instant::default();
    }

    fn count_unexpected(&mut self) {
        let count = &mut self.statistics.unexpected_events;
        *count = count.wrapping_add(1);
    }

    /// Forgets all devices, endpoints and transfers: their handles are stale.
    fn forget_all(&mut self) {
        for endpoint in self.endpoints.iter_mut() {
            endpoint.vacate(self.streams, &mut self.records);
        }
        for device in self.devices.iter_mut() {
            device.vacate();
            device.tenant = device::NO_ENDPOINT;
        }
        self.records.reset();
        self.ports = PortWork::NONE;
        self.pending = false;
        self.notice = None;
    }
}

fn check_storage(slice: Slice, given: usize, least: u8) -> Result<(), ControllerFault> {
    if given < usize::from(least) {
        return Err(ControllerFault::Storage(slice, least));
    }
    Ok(())
}

/// The place of an open device.
fn device_at(devices: &[DeviceRecord], handle: DeviceHandle) -> Result<usize, HostError> {
    let index = usize::from(handle.index);
    match devices.get(index) {
        Some(device)
            if device.state == DeviceState::Open && device.generation == handle.generation =>
        {
            Ok(index)
        }
        _ => Err(HostError::Stale),
    }
}

/// An open endpoint.
#[inline]
fn endpoint_at(
    endpoints: &mut [EndpointRecord],
    handle: EndpointHandle,
) -> Result<&mut EndpointRecord, HostError> {
    match endpoints.get_mut(usize::from(handle.index)) {
        Some(endpoint)
            if endpoint.state != EndpointState::Free
                && endpoint.generation == handle.generation =>
        {
            Ok(endpoint)
        }
        _ => Err(HostError::Stale),
    }
}
