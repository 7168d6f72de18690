//! The asynchronous schedule: a circle of queue heads, and the doorbell that closes a removal.
//!
//! Called when endpoints are linked and unlinked. The circle always holds the head, so it is never
//! empty and the schedule never has to be switched off. Linking takes one write to the neighbour;
//! after unlinking, the controller may still hold a copy of the queue head, and of a neighbour that
//! points to it, until it has answered a doorbell (`EHCI 1.0 §4.8.2`). One doorbell serves all
//! that were unlinked before it was rung.
//!
//! A doorbell without an answer is known from real chips. Then the schedule is switched off for a
//! moment, after which no copy is left either (§4.8); only if that has no effect is the controller
//! given up.

use tock_registers::LocalRegisterCopy;

use super::Ehci;
use super::controller::SCHEDULES_TIMEOUT;
use super::endpoint::{Stage, Wait};
use super::queue;
use super::queue_head;
use super::regs::{USBCMD, USBCMD_REGISTER, USBSTS, USBSTS_REGISTER};
use crate::dma;
use crate::host::ControllerFault;
use crate::mmio::{Bus, ChangeBits};
use crate::time::{Duration, Instant};

/// How long a doorbell may take. It is answered within one round of the list, which at high speed
/// is far below a millisecond. Policy: 10 ms, as Linux waits.
const DOORBELL_TIMEOUT: Duration = Duration::from_millis(10);

/// How long the schedule may take to stop or to run after it was switched. No bound is given
/// (`EHCI 1.0 §4.8`). Policy: as long as at a start.
const SWITCH_TIMEOUT: Duration = SCHEDULES_TIMEOUT;

type Command = LocalRegisterCopy<u32, USBCMD::Register>;

/// Where the handshake stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doorbell {
    /// Not rung.
    Quiet,
    /// Rung; the answer is due.
    Rung(Instant),
    /// Not answered: the schedule was disabled instead.
    Disabling(Instant),
    /// The schedule was enabled again and is about to run.
    Enabling(Instant),
}

impl<B: Bus> Ehci<'_, B> {
    /// Puts an endpoint's queue head into the circle, behind the head.
    pub(super) fn link_asynchronous(&mut self, index: u8) {
        let first = self.async_first;
        let Some(head) = &self.head else { return };
        let after_head = head.read32(queue_head::LINK);
        let Some(endpoint) = self.endpoints.get_mut(usize::from(index)) else {
            return;
        };
        let Some(queue) = &endpoint.queue else { return };
        endpoint.list_next = first;
        queue.memory().write32(queue_head::LINK, after_head);
        // The controller follows the pointer as soon as it is there.
        dma::release();
        head.write32(queue_head::LINK, queue::link(queue.memory()));
        dma::release();
        self.async_first = Some(index);
    }

    /// Takes an endpoint's queue head out of the circle. Its own pointer stays: the controller may
    /// be on it, and must find back.
    pub(super) fn unlink_asynchronous(&mut self, index: u8) {
        let Some(next) = self.endpoint(index).map(|endpoint| endpoint.list_next) else {
            return;
        };
        let link = self.asynchronous_link(next);
        let mut before = None;
        let mut at = self.async_first;
        while let Some(current) = at.filter(|current| *current != index) {
            before = at;
            at = self
                .endpoint(current)
                .and_then(|endpoint| endpoint.list_next);
        }
        match before.and_then(|before| self.endpoints.get_mut(usize::from(before))) {
            Some(before) => {
                before.list_next = next;
                if let Some(queue) = &before.queue {
                    queue.memory().write32(queue_head::LINK, link);
                }
            }
            None => {
                self.async_first = next;
                if let Some(head) = &self.head {
                    head.write32(queue_head::LINK, link);
                }
            }
        }
        // The schedule may be about to run again.
        dma::release();
    }

    /// The pointer to an endpoint's queue head, or to the head.
    fn asynchronous_link(&self, index: Option<u8>) -> u32 {
        let memory = match index.and_then(|index| self.endpoint(index)) {
            Some(endpoint) => endpoint.queue.as_ref().map(queue::Queue::memory),
            None => self.head.as_ref(),
        };
        memory.map_or(super::transfer_descriptor::LINK_END, queue::link)
    }

    /// Rings the doorbell if an endpoint waits for one and none is under way.
    pub(super) fn ring_if_waited_for(&mut self, now: Instant) {
        if self.doorbell != Doorbell::Quiet {
            return;
        }
        if self.replace_waits(Wait::NextDoorbell, Some(Wait::Doorbell)) {
            self.ring(now);
        }
    }

    /// Rings the doorbell. None is under way.
    pub(super) fn ring(&mut self, now: Instant) {
        // A stale answer would end the handshake before it began.
        self.answer_seen = false;
        let answer = ChangeBits::none().clearing(USBSTS::IAA::SET.value);
        self.registers.change(USBSTS_REGISTER, answer);
        self.doorbell = Doorbell::Rung(now + DOORBELL_TIMEOUT);
        self.write_command();
        self.attend_now();
    }

    /// Looks after a doorbell under way. The status register has just been looked at.
    pub(super) fn tend_doorbell(&mut self, now: Instant) -> Result<(), ControllerFault> {
        match self.doorbell {
            Doorbell::Quiet => {}
            Doorbell::Rung(until) => {
                if !self.answer_seen && now < until {
                    return Ok(());
                }
                // The controller takes the doorbell back with its answer; on some the status bit is
                // lost, on others the bit is not set before the next interrupt is due.
                let ringing = self.read_live_command()?.is_set(USBCMD::IAAD);
                if !ringing {
                    self.answered();
                    self.doorbell = Doorbell::Quiet;
                } else if now >= until {
                    self.missed_doorbells = self.missed_doorbells.saturating_add(1);
                    self.doorbell = Doorbell::Disabling(now + SWITCH_TIMEOUT);
                    self.command &= !USBCMD::ASE::SET.value;
                    self.write_command();
                }
            }
            Doorbell::Disabling(until) => {
                if !self.asynchronous_runs() {
                    self.read_live_command()?;
                    self.answered();
                    self.doorbell = Doorbell::Enabling(now + SWITCH_TIMEOUT);
                    self.command |= USBCMD::ASE::SET.value;
                    self.write_command();
                } else if now >= until {
                    return Err(ControllerFault::HaltTimeout);
                }
            }
            Doorbell::Enabling(until) => {
                if self.asynchronous_runs() {
                    self.doorbell = Doorbell::Quiet;
                } else if now >= until {
                    return Err(ControllerFault::RunTimeout);
                }
            }
        }
        Ok(())
    }

    fn answered(&mut self) {
        self.answer_seen = false;
        self.replace_waits(Wait::Doorbell, None);
    }

    /// Reads the command register of a controller that was told to run. If that is not what it says, its
    /// registers are out of reach, and zeros in them are no answer: nobody knows what it still does.
    fn read_live_command(&self) -> Result<Command, ControllerFault> {
        let command = self.registers.read(USBCMD_REGISTER);
        let is_there = command.is_set(USBCMD::RS) && command.get() != u32::MAX;
        is_there.then_some(command).ok_or(ControllerFault::Absent)
    }

    fn asynchronous_runs(&self) -> bool {
        self.registers.read(USBSTS_REGISTER).is_set(USBSTS::ASS)
    }

    /// Moves all endpoints that wait for `from` on: to another wait, or to what they wait for.
    /// Returns whether there was one.
    fn replace_waits(&mut self, from: Wait, to: Option<Wait>) -> bool {
        let mut any = false;
        let mut at = 0;
        while let Some(index) = self.moving.first_from(at) {
            at = u16::from(index) + 1;
            let Some(endpoint) = self.endpoints.get_mut(usize::from(index)) else {
                continue;
            };
            if let Stage::Leaving(reason, wait) = endpoint.stage
                && wait == from
            {
                any = true;
                endpoint.stage = match to {
                    Some(wait) => Stage::Leaving(reason, wait),
                    None => Stage::Draining(reason),
                };
            }
        }
        any
    }

    /// Writes USBCMD as it should be, after all that was written to memory. A doorbell under way
    /// stays rung.
    pub(super) fn write_command(&self) {
        dma::release();
        let ringing = match self.doorbell {
            Doorbell::Rung(_) => USBCMD::IAAD::SET.value,
            _ => 0,
        };
        self.registers
            .write_raw(USBCMD_REGISTER, self.command | ringing);
    }
}
