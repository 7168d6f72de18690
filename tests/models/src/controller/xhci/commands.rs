//! The command ring, and who executes which command (xHCI 1.2 §4.6, §5.4.5).

use super::rings::Ring;
use super::slots::{Addressing, SlotState};
use super::trb::{RingKind, Trb, kind};
use super::{CompletionFault, Due, Xhci};
use crate::broken::{broken, require};
use crate::controller::Surroundings;
use crate::device::{MICROSECOND, Nanoseconds};

/// Completion codes (table 6-90).
pub(super) mod code {
    pub(in super::super) const SUCCESS: u8 = 1;
    pub(in super::super) const BABBLE: u8 = 3;
    pub(in super::super) const TRANSACTION: u8 = 4;
    pub(in super::super) const TRB: u8 = 5;
    pub(in super::super) const STALL: u8 = 6;
    pub(in super::super) const NO_SLOTS: u8 = 9;
    pub(in super::super) const SHORT: u8 = 13;
    pub(in super::super) const CONTEXT_STATE: u8 = 19;
    pub(in super::super) const COMMAND_RING_STOPPED: u8 = 24;
    pub(in super::super) const COMMAND_ABORTED: u8 = 25;
    pub(in super::super) const STOPPED: u8 = 26;
    pub(in super::super) const STOPPED_LENGTH_INVALID: u8 = 27;
    pub(in super::super) const INVALID_STREAM_TYPE: u8 = 33;
    pub(in super::super) const INVALID_STREAM_ID: u8 = 34;
}

const CYCLE: u64 = 1;
const STOP: u64 = 1 << 1;
const ABORT: u64 = 1 << 2;

/// What a command ends with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    code: u8,
    slot: u8,
}

impl Answer {
    pub(super) const fn of_slot(code: u8, slot: u8) -> Self {
        Self { code, slot }
    }
}

#[derive(Debug)]
struct Current {
    trb: Trb,
    /// The input context as it was when the command was taken.
    input: Option<Vec<u8>>,
    life: u64,
    fault: Option<CompletionFault>,
    /// The slot that it says it gave, without giving one.
    given: Option<u8>,
    addressing: Option<Addressing>,
}

/// The command ring's state.
#[derive(Debug, Default)]
pub(super) struct Commands {
    ring: Option<Ring>,
    /// CRR.
    running: bool,
    stopping: bool,
    current: Option<Current>,
    count: u64,
}

impl Commands {
    pub(super) fn is_running(&self) -> bool {
        self.running
    }

    pub(super) fn is_programmed(&self) -> bool {
        self.ring.is_some()
    }

    pub(super) fn reset(&mut self) {
        *self = Self {
            count: self.count,
            ..Self::default()
        };
    }

    /// The controller halts: the ring stops where it is.
    pub(super) fn stop(&mut self) {
        self.running = false;
        self.current = None;
        if let Some(ring) = &mut self.ring {
            ring.forget();
        }
    }
}

impl Xhci {
    pub(super) fn write_command_ring(&mut self, around: &mut Surroundings<'_>, value: u64) {
        require!(
            value & 0x30 == 0,
            "xHCI 1.2 §5.4.5",
            "CRCR = {value:#x}: bits 5:4 are reserved"
        );
        if self.commands.running {
            require!(
                value & (STOP | ABORT) != 0,
                "xHCI 1.2 §5.4.5",
                "CRCR was written while the command ring runs: the pointer is ignored"
            );
            if !self.faults.abort_hangs && self.death.is_none() {
                self.stop_commands(around, value & ABORT != 0);
            }
            return;
        }
        let pointer = value & !0x3f;
        if pointer == 0 && value & (STOP | ABORT) != 0 {
            // A stop that came too late: the pointer is taken, and it is null.
            self.commands.ring = None;
            return;
        }
        self.check_ring_start(pointer, 64, "the command ring");
        let ring = Ring::new(RingKind::Command, pointer, value & CYCLE != 0);
        self.commands.ring = Some(ring);
    }

    fn stop_commands(&mut self, around: &mut Surroundings<'_>, abort: bool) {
        if self.commands.current.is_none() {
            self.command_ring_stops(around);
        } else if abort {
            // The next command is not begun.
            self.commands.running = false;
            self.complete_command(around, code::COMMAND_ABORTED, 0);
            self.command_ring_stops(around);
        } else {
            self.commands.stopping = true;
        }
    }

    fn command_ring_stops(&mut self, around: &mut Surroundings<'_>) {
        self.commands.running = false;
        self.commands.stopping = false;
        let Some(ring) = &mut self.commands.ring else {
            return;
        };
        ring.forget();
        let pointer = ring.position().address;
        self.post_command_event(around, pointer, code::COMMAND_RING_STOPPED, 0);
    }

    /// Doorbell 0.
    pub(super) fn ring_command_doorbell(&mut self, around: &mut Surroundings<'_>, value: u32) {
        require!(
            value == 0,
            "xHCI 1.2 §5.6",
            "doorbell 0 = {value:#x}: the command ring's target is 0"
        );
        require!(
            self.commands.ring.is_some(),
            "xHCI 1.2 §5.4.5",
            "the command doorbell was rung without a command ring (or its pointer was overwritten \
             by a stop that came after the ring had stopped)"
        );
        self.commands.running = true;
        self.watch_rings(around, None);
        self.next_command(around);
    }

    fn next_command(&mut self, around: &mut Surroundings<'_>) {
        if !self.is_running() || !self.commands.running || self.commands.current.is_some() {
            return;
        }
        let Some(trb) = self
            .commands
            .ring
            .as_ref()
            .and_then(|ring| ring.front(around.memory))
        else {
            return;
        };
        let life = self.next_life();
        let mut fault = self.faults.commands.remove(&self.commands.count);
        let given = self.faults.given_slots.remove(&self.commands.count);
        self.commands.count += 1;
        if trb.kind() == kind::STOP_ENDPOINT && self.faults.stops_hang != 0 {
            self.faults.stops_hang -= 1;
            fault = Some(CompletionFault::Never);
        }
        if fault != Some(CompletionFault::Never) {
            let delay = MICROSECOND * (2 + around.random.below(20));
            self.agenda.add(around.now + delay, Due::Command(life));
        }
        let input = self.copy_input(around, &trb);
        self.commands.current = Some(Current {
            trb,
            input,
            life,
            fault,
            given,
            addressing: None,
        });
    }

    pub(super) fn continue_command(&mut self, around: &mut Surroundings<'_>, life: u64) {
        let Some(mut current) = self.commands.current.take_if(|one| one.life == life) else {
            return;
        };
        if !self.is_running() {
            return;
        }
        let outcome = match (current.fault, current.given) {
            (Some(CompletionFault::Code(code)), _) => Ok(Answer::of_slot(code, current.trb.slot())),
            (_, Some(slot)) => Ok(Answer::of_slot(code::SUCCESS, slot)),
            _ => self.execute(around, &mut current),
        };
        self.commands.current = Some(current);
        match outcome {
            Ok(answer) => self.complete_command(around, answer.code, answer.slot),
            Err(at) => self.agenda.add(at, Due::Command(life)),
        }
    }

    fn complete_command(&mut self, around: &mut Surroundings<'_>, code: u8, slot: u8) {
        let Some(current) = self.commands.current.take() else {
            return;
        };
        if let Some(ring) = &mut self.commands.ring {
            ring.advance(1);
        }
        self.post_command_event(around, current.trb.address, code, slot);
        if self.commands.stopping {
            self.command_ring_stops(around);
        }
        self.next_command(around);
    }

    fn post_command_event(
        &mut self,
        around: &mut Surroundings<'_>,
        pointer: u64,
        code: u8,
        slot: u8,
    ) {
        let words = [
            pointer as u32,
            (pointer >> 32) as u32,
            u32::from(code) << 24,
            u32::from(slot) << 24 | kind::COMMAND_COMPLETION << 10,
        ];
        self.post_event(around, 0, words, true);
    }

    /// One step of the command. `Err` is when to go on.
    fn execute(
        &mut self,
        around: &mut Surroundings<'_>,
        current: &mut Current,
    ) -> Result<Answer, Nanoseconds> {
        let trb = current.trb;
        let slot = trb.slot();
        self.check_input(around, current);
        if !matches!(trb.kind(), kind::ENABLE_SLOT | kind::NO_OP_COMMAND) {
            self.check_command_slot(around, &trb);
        }
        Ok(match trb.kind() {
            kind::NO_OP_COMMAND => Answer::of_slot(code::SUCCESS, 0),
            kind::ENABLE_SLOT => self.enable_slot(&trb),
            kind::DISABLE_SLOT => self.disable_slot(slot),
            kind::ADDRESS_DEVICE => return self.address_device(around, current),
            kind::CONFIGURE_ENDPOINT => self.configure_endpoint(around, &trb),
            kind::EVALUATE_CONTEXT => self.evaluate_context(around, &trb),
            kind::RESET_ENDPOINT => self.reset_endpoint(around, &trb),
            kind::STOP_ENDPOINT => self.stop_endpoint(around, &trb),
            kind::SET_DEQUEUE => self.set_dequeue(around, &trb),
            kind::RESET_DEVICE => self.reset_device(around, slot),
            other => broken!("model", "command {other} is not modelled"),
        })
    }

    /// All of the input context that a command points to.
    fn copy_input(&self, around: &mut Surroundings<'_>, trb: &Trb) -> Option<Vec<u8>> {
        let takes_input = matches!(
            trb.kind(),
            kind::ADDRESS_DEVICE | kind::CONFIGURE_ENDPOINT | kind::EVALUATE_CONTEXT
        );
        let length = 33 * self.traits.context_bytes() as usize;
        if !takes_input || !around.memory.is_mapped(trb.pointer(), length) {
            return None;
        }
        let mut copy = vec![0; length];
        around.memory.read(trb.pointer(), &mut copy);
        Some(copy)
    }

    /// §4.6: an input context is the controller's until its command has ended.
    fn check_input(&self, around: &mut Surroundings<'_>, current: &Current) {
        require!(
            current.input == self.copy_input(around, &current.trb),
            "xHCI 1.2 §4.6",
            "the input context at {:#x} was changed while its command was under way",
            current.trb.pointer()
        );
    }

    /// The slot that a command names is one that the driver has enabled, and its output context is
    /// as the controller left it.
    fn check_command_slot(&self, around: &mut Surroundings<'_>, trb: &Trb) {
        let number = usize::from(trb.slot());
        let state = self
            .slots
            .get(number)
            .map_or(SlotState::Disabled, |slot| slot.state);
        require!(
            number != 0 && state != SlotState::Disabled,
            "xHCI 1.2 §4.5.3",
            "a command of type {} for slot {number}, which is not enabled",
            trb.kind()
        );
        self.check_output(around, trb.slot());
    }

    fn address_device(
        &mut self,
        around: &mut Surroundings<'_>,
        current: &mut Current,
    ) -> Result<Answer, Nanoseconds> {
        let mut addressing = match current.addressing {
            Some(addressing) => addressing,
            None => match self.begin_addressing(around, &current.trb) {
                Ok(addressing) => addressing,
                Err(answer) => return Ok(answer),
            },
        };
        let outcome = self.continue_addressing(around, current.trb.slot(), &mut addressing);
        current.addressing = Some(addressing);
        outcome
    }

    pub(super) fn command_ring(&mut self) -> Option<&mut Ring> {
        self.commands.ring.as_mut()
    }
}
