//! The command ring: one command a device or endpoint at a time, several from different ones.
//!
//! Called by [`device`](super::device) and [`endpoint`](super::endpoint) through `issue`, and by
//! [`poll`](super::controller) when a completion came or a deadline passed. A command's own record lies
//! with whoever issued it; a completion is matched by the address of its TRB. Read `xHCI 1.2 §4.6`.
//!
//! A command that is not done in time is aborted. The ring stops then; the other commands are
//! written again behind it, under new addresses, so that a late event is no one's.

use super::Xhci;
use super::device::DeviceRecord;
use super::endpoint::EndpointRecord;
use super::regs::{Blocks, CRCR, operational, write_address};
use super::ring::ProducerRing;
use super::trb::{Flags, Trb, code, kind};
use crate::dma::{Owner, Pool, PoolError, release};
use crate::host::{ControllerFault, HostError};
use crate::mmio::Bus;
use crate::time::{Duration, Instant};

/// How long a command may take. Policy: the time that the specification gives an abort; only
/// Address Device waits for a device at all, and that one has 50 ms to answer (`USB 2.0 §9.2.6.3`).
const COMMAND_TIME: Duration = Duration::from_secs(5);
/// How long the command ring may take to stop after an abort (`xHCI 1.2 §4.6.1.2`).
const ABORT_TIME: Duration = Duration::from_secs(5);
/// Byte offset of CRCR in the operational registers.
const CRCR_OFFSET: usize = 0x18;

/// A command in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    trb: Trb,
    /// Its block in the command ring.
    index: u32,
    /// The how manieth command it is.
    serial: u32,
    deadline: Instant,
}

/// Who issued a command, by its place in the storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Issuer {
    Device(usize),
    Endpoint(usize),
}

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Completion {
    pub(super) code: u8,
    /// For Enable Slot: the slot.
    pub(super) slot: u8,
}

impl Completion {
    /// As the result of an operation.
    pub(super) fn result(self) -> Result<(), HostError> {
        match self.code {
            code::SUCCESS => Ok(()),
            code::BABBLE | code::TRANSACTION | code::STALL | code::SPLIT => {
                Err(HostError::NoAnswer)
            }
            code::RESOURCE | code::BANDWIDTH | code::NO_SLOTS | code::SECONDARY_BANDWIDTH => {
                Err(HostError::Resources)
            }
            code::COMMAND_ABORTED => Err(HostError::Timeout),
            other => Err(HostError::Refused(other)),
        }
    }
}

/// The command ring of a running controller.
#[derive(Debug)]
pub(super) struct CommandRing {
    ring: ProducerRing,
    abort: Option<Abort>,
    /// Commands that were written so far.
    written: u32,
}

/// The ring was told to abort.
#[derive(Clone, Copy, Debug)]
struct Abort {
    /// The command at work, which is given up.
    victim: u32,
    deadline: Instant,
}

impl CommandRing {
    pub(super) fn allocate(
        pool: &mut Pool<'_>,
        owner: Owner,
        blocks: u32,
        spare: usize,
    ) -> Result<Self, PoolError> {
        Ok(Self {
            ring: ProducerRing::allocate(pool, owner, blocks, spare)?,
            abort: None,
            written: 0,
        })
    }

    /// Tells the controller where the next command will be. The ring must not be running.
    pub(super) fn install<B: Bus>(&mut self, blocks: &Blocks<B>) {
        self.ring.align(&Trb::command(kind::NO_OP_COMMAND, 0, 0));
        let pointer = self.ring.start_pointer();
        write_address(&blocks.operational, CRCR_OFFSET, pointer);
    }

    /// Writes a command, without ringing.
    fn place(&mut self, trb: Trb, now: Instant) -> Command {
        // At most one command a device and endpoint is in flight, and the ring has more blocks
        // than there are of both: the oldest is never reached.
        let index = self.ring.take(1);
        self.ring.write(index, &trb);
        release();
        self.ring.hand_over(index, trb.control);
        self.written = self.written.wrapping_add(1);
        Command {
            trb,
            index,
            serial: self.written,
            deadline: now + COMMAND_TIME,
        }
    }
}

impl<B: Bus> Xhci<'_, B> {
    /// Issues a command. `None` if the controller is not running.
    pub(super) fn issue(&mut self, trb: Trb, now: Instant) -> Option<Command> {
        let commands = &mut self.base.as_mut()?.commands;
        let command = commands.place(trb, now);
        if commands.abort.is_none() {
            release();
            self.blocks.ring(0, 0, 0);
        }
        self.wake = self.wake.min(command.deadline);
        Some(command)
    }

    /// Takes a command completion event.
    pub(super) fn on_command(&mut self, event: &Trb, pool: &mut Pool<'_>, now: Instant) {
        let completion = Completion {
            code: event.completion_code(),
            slot: event.slot(),
        };
        if completion.code == code::COMMAND_RING_STOPPED {
            return self.on_ring_stopped(pool, now);
        }
        let index = self
            .base
            .as_ref()
            .and_then(|base| base.commands.ring.index_of(event.parameter));
        match index.and_then(|index| self.issuer(&|command| command.index == index)) {
            Some(issuer) => self.command_done(issuer, completion, pool, now),
            None => self.count_unexpected(),
        }
    }

    fn command_done(
        &mut self,
        issuer: Issuer,
        completion: Completion,
        pool: &mut Pool<'_>,
        now: Instant,
    ) {
        match issuer {
            Issuer::Device(index) => self.device_command_done(index, completion, pool, now),
            Issuer::Endpoint(index) => self.endpoint_command_done(index, completion, now),
        }
    }

    /// Whose command it is that `wanted` is true of.
    fn issuer(&self, wanted: &dyn Fn(&Command) -> bool) -> Option<Issuer> {
        let is_wanted = |command: &Option<Command>| command.as_ref().is_some_and(wanted);
        let device = self
            .devices
            .iter()
            .position(|device| is_wanted(&device.command));
        let endpoint = || {
            self.endpoints
                .iter()
                .position(|endpoint| is_wanted(&endpoint.command))
        };
        device
            .map(Issuer::Device)
            .or_else(|| endpoint().map(Issuer::Endpoint))
    }

    /// When the next command, or the abort, is due.
    pub(super) fn command_deadline(&self) -> Instant {
        let Some(base) = &self.base else {
            return Instant::NEVER;
        };
        if let Some(abort) = &base.commands.abort {
            return abort.deadline;
        }
        let devices = self.devices.iter().map(|device| &device.command);
        let endpoints = self.endpoints.iter().map(|endpoint| &endpoint.command);
        let mut earliest = Instant::NEVER;
        for command in devices.chain(endpoints) {
            let deadline = command.as_ref().map(|command| command.deadline);
            earliest = earliest.min(deadline.unwrap_or(Instant::NEVER));
        }
        earliest
    }

    /// Acts on a deadline that has passed. Reads a register or two.
    pub(super) fn expire_commands(&mut self, pool: &mut Pool<'_>, now: Instant) {
        if self.command_deadline() > now || !self.read_alive() {
            return;
        }
        // Commands are executed in order: the oldest is the one at work.
        let Some(base) = self.base.as_mut() else {
            return;
        };
        let written = base.commands.written;
        let oldest = oldest(self.devices, self.endpoints, written, None);
        if let (None, Some(oldest)) = (&base.commands.abort, oldest) {
            let victim = oldest.serial;
            return base.commands.begin_abort(&self.blocks, victim, now);
        }
        // The event that tells of the stop has not come; the register may know.
        let control = self.blocks.operational.read(operational::CRCR);
        if control.is_set(CRCR::CRR) {
            self.die(ControllerFault::CommandRingStuck);
        } else {
            self.on_ring_stopped(pool, now);
        }
    }

    /// The command ring has stopped after an abort: gives the victim up, and goes on with the
    /// rest.
    fn on_ring_stopped(&mut self, pool: &mut Pool<'_>, now: Instant) {
        let Some(base) = self.base.as_mut() else {
            return;
        };
        let Some(abort) = base.commands.abort.take() else {
            return self.count_unexpected();
        };
        base.commands.install(&self.blocks);
        self.replace_commands(abort.victim, now);
        let given_up = Completion {
            code: code::COMMAND_ABORTED,
            slot: 0,
        };
        // Most controllers have said so themselves by now.
        if let Some(issuer) = self.issuer(&|command| command.serial == abort.victim) {
            self.command_done(issuer, given_up, pool, now);
        }
    }

    /// Writes all commands but the victim again, the oldest first, and rings once.
    fn replace_commands(&mut self, victim: u32, now: Instant) {
        let Some(base) = self.base.as_mut() else {
            return;
        };
        let written = base.commands.written;
        while let Some(command) = oldest(self.devices, self.endpoints, written, Some(victim)) {
            *command = base.commands.place(command.trb, now);
        }
        release();
        self.blocks.ring(0, 0, 0);
    }
}

impl CommandRing {
    /// Tells the controller to give up the command at work (`xHCI 1.2 §4.6.1.2`).
    ///
    /// The address is ignored while the ring runs. It is written whole and right nevertheless: some
    /// controllers act on the high half only, when the ring may have stopped.
    fn begin_abort<B: Bus>(&mut self, blocks: &Blocks<B>, victim: u32, now: Instant) {
        let pointer = self.ring.bus().get();
        let bits = CRCR::CA::SET + CRCR::RCS::SET;
        let value = pointer | u64::from(bits.value);
        write_address(&blocks.operational, CRCR_OFFSET, value);
        self.abort = Some(Abort {
            victim,
            deadline: now + ABORT_TIME,
        });
    }
}

/// The oldest command in flight of those that were written up to the `last`, but for the `victim`.
#[inline(never)]
fn oldest<'a>(
    devices: &'a mut [DeviceRecord],
    endpoints: &'a mut [EndpointRecord],
    last: u32,
    victim: Option<u32>,
) -> Option<&'a mut Command> {
    // Serials wrap; those of commands that are written again lie behind the last.
    let age = |command: &Command| last.wrapping_sub(command.serial) as i32;
    let mut oldest: Option<&mut Command> = None;
    let devices = devices.iter_mut().map(|device| &mut device.command);
    let endpoints = endpoints.iter_mut().map(|endpoint| &mut endpoint.command);
    for command in devices.chain(endpoints) {
        if let Some(command) = command
            && Some(command.serial) != victim
            && age(command) >= 0
            && oldest
                .as_ref()
                .is_none_or(|oldest| age(command) > age(oldest))
        {
            oldest = Some(command);
        }
    }
    oldest
}

/// The blocks of a command ring for so many commands at a time, with the link, the free one and
/// those that an abort skips.
pub(super) fn ring_blocks(commands: usize) -> u32 {
    (commands + 8).next_multiple_of(16) as u32
}

const _: () = assert!(
    Flags::CYCLE.bits() == 1,
    "the cycle state is bit 0 of a start pointer"
);
