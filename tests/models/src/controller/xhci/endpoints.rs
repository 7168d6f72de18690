//! Endpoints: their state, doorbells, and how a TD's end is reported (xHCI 1.2 §4.7, §4.8, §4.10).

use super::checks::check_memory_released;
use super::contexts::{EndpointContext, endpoint_type};
use super::descriptors::{ControlStage, Td};
use super::rings::Ring;
use super::slots::SlotState;
use super::streams::Streams;
use super::trb::{RingKind, Trb, kind};
use super::{Due, Xhci, timing};
use crate::broken::require;
use crate::controller::Surroundings;
use crate::device::Nanoseconds;

/// Endpoint states (table 6-8).
pub(super) mod state {
    pub(in super::super) const RUNNING: u32 = 1;
    pub(in super::super) const HALTED: u32 = 2;
    pub(in super::super) const STOPPED: u32 = 3;
    pub(in super::super) const ERROR: u32 = 4;
}

/// An endpoint that is not Disabled.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// Index in the device context.
    pub(super) index: u8,
    pub(super) context: EndpointContext,
    /// The ring, or with streams that of the selected one; as are `td` and `resumes_at`.
    pub(super) ring: Ring,
    /// Which life of the endpoint its planned packets belong to.
    pub(super) life: u64,
    /// A packet is planned.
    pub(super) scheduled: bool,
    /// The device put the last transaction off.
    pub(super) waiting: bool,
    /// Data toggle, or sequence number at SuperSpeed, of the next packet.
    pub(super) sequence: u8,
    /// Failed transactions in a row.
    pub(super) errors: u32,
    /// High speed: the device wants to be asked before the next OUT packet.
    pub(super) ping: bool,
    pub(super) td: Option<Td>,
    /// Bytes of the next TD that were moved before the endpoint was stopped.
    pub(super) resumes_at: u64,
    pub(super) stage: ControlStage,
    pub(super) streams: Option<Streams>,
}

impl Endpoint {
    pub(super) fn new(index: u8, context: EndpointContext, life: u64) -> Self {
        Self {
            index,
            context,
            ring: Ring::new(ring_kind(context), context.dequeue(), context.cycle()),
            life,
            scheduled: false,
            waiting: false,
            sequence: 0,
            errors: 0,
            ping: false,
            td: None,
            resumes_at: 0,
            stage: ControlStage::Setup,
            streams: Streams::of(context),
        }
    }

    /// The ring goes on somewhere else; what was under way is forgotten.
    pub(super) fn move_to(&mut self, address: u64, cycle: bool) {
        self.ring = Ring::new(ring_kind(self.context), address, cycle);
        self.td = None;
        self.resumes_at = 0;
        self.stage = ControlStage::Setup;
    }

    pub(super) fn is_control(&self) -> bool {
        self.context.kind() == endpoint_type::CONTROL
    }

    pub(super) fn is_in(&self) -> bool {
        self.index % 2 == 1
    }

    /// The endpoint's address on the bus; endpoint 0 without direction.
    pub(super) fn address(&self) -> u8 {
        let direction = if self.is_in() && !self.is_control() {
            0x80
        } else {
            0
        };
        (self.index / 2) | direction
    }

    /// The least time between two transactions: interrupt endpoints have one (§6.2.3.6).
    pub(super) fn period(&self) -> Nanoseconds {
        match self.context.kind() {
            endpoint_type::INTERRUPT_IN | endpoint_type::INTERRUPT_OUT => {
                timing::MICROFRAME << self.context.interval()
            }
            _ => 0,
        }
    }

    pub(super) fn max_packet(&self) -> usize {
        self.context.max_packet() as usize
    }
}

fn ring_kind(context: EndpointContext) -> RingKind {
    if context.kind() == endpoint_type::CONTROL {
        RingKind::Control
    } else {
        RingKind::Data
    }
}

impl Xhci {
    pub(super) fn endpoint(&mut self, slot: u8, index: u8) -> Option<&mut Endpoint> {
        let slot = self.slots.get_mut(usize::from(slot))?;
        slot.endpoints.get_mut(usize::from(index))?.as_deref_mut()
    }

    pub(super) fn endpoint_state(&self, slot: u8, index: u8) -> u32 {
        self.slots[usize::from(slot)].output[usize::from(index)][0] & 7
    }

    pub(super) fn set_endpoint_state(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
        state: u32,
    ) {
        let words = &mut self.slots[usize::from(slot)].output[usize::from(index)];
        words[0] = words[0] & !7 | state;
        self.write_output(around, slot, u32::from(index));
    }

    /// Puts the place where the ring goes on into the output context (§4.6.9, §4.6.10).
    pub(super) fn show_dequeue(&mut self, slot: u8, index: u8, address: u64, cycle: bool) {
        let words = &mut self.slots[usize::from(slot)].output[usize::from(index)];
        words[2] = address as u32 | u32::from(cycle);
        words[3] = (address >> 32) as u32;
    }

    /// Any doorbell.
    pub(super) fn ring_doorbell(&mut self, around: &mut Surroundings<'_>, slot: usize, value: u32) {
        require!(
            self.operational.is_running() || self.death.is_some(),
            "xHCI 1.2 §4.7",
            "doorbell {slot} was rung while the controller is halted"
        );
        check_memory_released(around, "a doorbell");
        if slot == 0 {
            self.ring_command_doorbell(around, value);
            return;
        }
        require!(
            value & 0xff00 == 0,
            "xHCI 1.2 §5.6",
            "doorbell {slot} = {value:#x}: bits 15:8 are reserved"
        );
        self.ring_endpoint_doorbell(around, slot as u8, value as u8, (value >> 16) as u16);
    }

    fn ring_endpoint_doorbell(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        target: u8,
        stream: u16,
    ) {
        let state = self.slots[usize::from(slot)].state;
        require!(
            !matches!(state, SlotState::Disabled | SlotState::Enabled),
            "xHCI 1.2 §4.7",
            "the doorbell of slot {slot} was rung, which is {state:?}"
        );
        require!(
            self.endpoint(slot, target).is_some(),
            "xHCI 1.2 §4.7",
            "doorbell {slot} has target {target}: no endpoint, or a disabled one"
        );
        self.check_doorbell_stream(around, slot, target, stream);
        match self.endpoint_state(slot, target) {
            state::STOPPED => self.set_endpoint_state(around, slot, target, state::RUNNING),
            state::RUNNING => {}
            // A doorbell that crosses the news of a halt is ignored (§4.8.3).
            _ => return,
        }
        self.arm_stream(around, slot, target, stream);
        self.watch_rings(around, None);
        let waits = self
            .endpoint(slot, target)
            .is_some_and(|endpoint| !endpoint.scheduled);
        if waits {
            self.schedule(slot, target, around.now + timing::DOORBELL);
        }
    }

    /// Plans the endpoint's next packet for when the bus has room for it.
    pub(super) fn schedule(&mut self, slot: u8, index: u8, from: u64) {
        let Some(bytes) = self.next_payload(slot, index) else {
            return;
        };
        let owner = &self.slots[usize::from(slot)];
        let (port, link) = (owner.root_port(), owner.link());
        let at = self.ports[port].reserve(from, link, bytes);
        self.plan(slot, index, at);
    }

    /// Plans the endpoint's next packet for exactly `at`.
    pub(super) fn plan(&mut self, slot: u8, index: u8, at: u64) {
        if let Some(endpoint) = self.endpoint(slot, index) {
            endpoint.scheduled = true;
            let life = endpoint.life;
            self.agenda.add(at, Due::Packet(slot, index, life));
        }
    }

    /// The endpoint's planned packets are void from now on.
    pub(super) fn unschedule(&mut self, slot: u8, index: u8) {
        let life = self.next_life();
        if let Some(endpoint) = self.endpoint(slot, index) {
            endpoint.life = life;
            endpoint.scheduled = false;
            endpoint.waiting = false;
        }
    }

    /// Takes copies of all TRBs that the driver has handed over, on every live ring; after a store,
    /// on those rings whose next TRB it touched.
    pub(super) fn watch_rings(
        &mut self,
        around: &mut Surroundings<'_>,
        stored: Option<(u64, u64)>,
    ) {
        let addresses_64 = self.traits.addresses_64;
        let concerns = |ring: &Ring| stored.is_none_or(|(at, length)| ring.is_next(at, length));
        // A command ring that does not run (CRR) is the driver's to change (§4.6.1.2).
        if self.commands.is_running()
            && let Some(ring) = self.command_ring().filter(|ring| concerns(ring))
        {
            ring.look(around.memory, addresses_64);
        }
        for slot in self
            .slots
            .iter_mut()
            .filter(|slot| slot.state != SlotState::Disabled)
        {
            for (endpoint, words) in slot.endpoints.iter_mut().zip(&slot.output) {
                let Some(endpoint) = endpoint.as_mut().filter(|_| words[0] & 7 == state::RUNNING)
                else {
                    continue;
                };
                for ring in endpoint.rings().filter(|ring| concerns(ring)) {
                    ring.look(around.memory, addresses_64);
                }
            }
        }
    }

    /// Writes a transfer event (§6.4.2.1). `left` is the part of the TRB that was not moved.
    pub(super) fn post_transfer_event(
        &mut self,
        around: &mut Surroundings<'_>,
        (slot, index): (u8, u8),
        trb: &Trb,
        (code, left): (u8, u32),
    ) {
        let words = [
            trb.address as u32,
            (trb.address >> 32) as u32,
            left & 0xff_ffff | u32::from(code) << 24,
            u32::from(slot) << 24 | u32::from(index) << 16 | kind::TRANSFER_EVENT << 10,
        ];
        let quiet = trb.blocks_interrupt() && code == super::commands::code::SUCCESS;
        self.post_event(around, trb.interrupter(), words, !quiet);
    }
}
