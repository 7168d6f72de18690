//! Device slots: Enable Slot, Disable Slot, Address Device, Reset Device (xHCI 1.2 §4.5, §4.6.3 to
//! §4.6.5, §4.6.11).

use super::checks::crosses;
use super::commands::{Answer, code};
use super::contexts::{EndpointContext, SlotContext, Words};
use super::endpoints::{Endpoint, state};
use super::traits::Protocol;
use super::trb::Trb;
use super::{Xhci, timing};
use crate::broken::require;
use crate::controller::Surroundings;
use crate::device::{Link, MILLISECOND, Nanoseconds, Packet, Reply};

/// Slot states (§4.5.3), with the numbers of the slot context.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum SlotState {
    /// Not allocated.
    #[default]
    Disabled,
    /// Allocated, without a context yet.
    Enabled,
    /// At address 0.
    Default,
    /// Has an address.
    Addressed,
    /// Has endpoints beyond endpoint 0.
    Configured,
}

impl SlotState {
    fn number(self) -> u32 {
        match self {
            Self::Disabled | Self::Enabled => 0,
            Self::Default => 1,
            Self::Addressed => 2,
            Self::Configured => 3,
        }
    }
}

/// A device slot.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) state: SlotState,
    slot_type: u8,
    /// Bus address of the output device context.
    pub(super) contexts: u64,
    /// What the model keeps in it: the slot context, then those of endpoints 1 to 31.
    pub(super) output: [Words; 32],
    pub(super) endpoints: [Option<Box<Endpoint>>; 32],
    pub(super) address: u8,
}

impl Slot {
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(super) fn context(&self) -> SlotContext {
        SlotContext(self.output[0])
    }

    /// The root port that the slot hangs below, counted from 0.
    pub(super) fn root_port(&self) -> usize {
        self.context().root_port().saturating_sub(1)
    }

    pub(super) fn link(&self) -> Link {
        self.context().link().unwrap_or(Link::Full)
    }

    /// Sets state and address in the output slot context.
    fn set_state(&mut self, state: SlotState) {
        self.state = state;
        self.output[0][3] = state.number() << 27 | u32::from(self.address);
    }

    pub(super) fn become_configured(&mut self, any: bool) {
        self.set_state(if any {
            SlotState::Configured
        } else {
            SlotState::Addressed
        });
    }

    fn set_entries(&mut self, entries: u32) {
        self.output[0][0] = self.output[0][0] & 0x07ff_ffff | entries << 27;
    }

    /// Whether an endpoint is there (not Disabled).
    pub(super) fn has(&self, index: u32) -> bool {
        self.endpoints[index as usize].is_some()
    }

    /// Takes an endpoint away: its context says Disabled.
    pub(super) fn remove_endpoint(&mut self, index: u32) {
        self.endpoints[index as usize] = None;
        self.output[index as usize][0] &= !7;
    }
}

/// Address Device in the middle of its SET_ADDRESS.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addressing {
    address: u8,
    status_stage: bool,
    errors: u8,
    context: SlotContext,
    endpoint: EndpointContext,
    since: Nanoseconds,
}

/// How long a device may put off the status stage of SET_ADDRESS before the controller gives up.
/// Policy: far beyond the 50 ms of USB 2.0 §9.2.6.3.
const ADDRESSING_LIMIT: Nanoseconds = 5_000 * MILLISECOND;

impl Xhci {
    pub(super) fn enable_slot(&mut self, trb: &Trb) -> Answer {
        let slot_type = (trb.words[3] >> 16 & 0x1f) as u8;
        require!(
            self.traits.slot_types.contains(&slot_type),
            "xHCI 1.2 §4.6.3",
            "Enable Slot with slot type {slot_type}, which no port has"
        );
        let enabled = usize::from(self.operational.slots_enabled());
        let free = (1..=enabled).find(|&index| self.slots[index].state == SlotState::Disabled);
        match free {
            Some(index) => {
                self.slots[index].reset();
                self.slots[index].state = SlotState::Enabled;
                self.slots[index].slot_type = slot_type;
                Answer::of_slot(code::SUCCESS, index as u8)
            }
            None => Answer::of_slot(code::NO_SLOTS, 0),
        }
    }

    pub(super) fn disable_slot(&mut self, slot: u8) -> Answer {
        self.slots[usize::from(slot)].reset();
        Answer::of_slot(code::SUCCESS, slot)
    }

    /// §4.6.11: back to the Default state, all endpoints but endpoint 0 gone.
    pub(super) fn reset_device(&mut self, around: &mut Surroundings<'_>, number: u8) -> Answer {
        let slot = &mut self.slots[usize::from(number)];
        if !matches!(slot.state, SlotState::Addressed | SlotState::Configured) {
            return Answer::of_slot(code::CONTEXT_STATE, number);
        }
        for index in 2..32 {
            slot.remove_endpoint(index);
        }
        slot.address = 0;
        slot.set_entries(1);
        slot.set_state(SlotState::Default);
        for index in 0..32 {
            self.write_output(around, number, index);
        }
        Answer::of_slot(code::SUCCESS, number)
    }

    /// Address Device up to the point where packets are sent; the answer if there are none.
    pub(super) fn begin_addressing(
        &mut self,
        around: &mut Surroundings<'_>,
        trb: &Trb,
    ) -> Result<Addressing, Answer> {
        let number = trb.slot();
        let blocks_request = trb.words[3] >> 9 & 1 != 0;
        let (context, endpoint) = self.load_addressing(around, trb);
        match (self.slots[usize::from(number)].state, blocks_request) {
            (SlotState::Enabled, _) | (SlotState::Default, false) => {}
            _ => return Err(Answer::of_slot(code::CONTEXT_STATE, number)),
        }
        if self.slots[usize::from(number)].state == SlotState::Enabled {
            self.take_output(around, number);
        }
        if blocks_request {
            self.finish_addressing(around, number, 0, context, endpoint);
            return Err(Answer::of_slot(code::SUCCESS, number));
        }
        let taken = |address: &u8| self.slots.iter().any(|slot| slot.address == *address);
        let address = (1..=127).find(|address| !taken(address)).unwrap_or(127);
        Ok(Addressing {
            address,
            status_stage: false,
            errors: 0,
            context,
            endpoint,
            since: around.now,
        })
    }

    fn load_addressing(
        &self,
        around: &mut Surroundings<'_>,
        trb: &Trb,
    ) -> (SlotContext, EndpointContext) {
        let input = self.load_input(around, trb.pointer());
        require!(
            input.drop == 0 && input.add == 0b11,
            "xHCI 1.2 §4.6.5",
            "Address Device wants A0 and A1 alone, not add {:#x}, drop {:#x}",
            input.add,
            input.drop
        );
        let context = SlotContext(self.input_context(around, &input, 0));
        self.check_slot_context(trb.slot(), context);
        require!(
            context.entries() == 1,
            "xHCI 1.2 §4.3.3",
            "Context Entries is {} in Address Device, where only endpoint 0 is valid",
            context.entries()
        );
        let slot_type = match self.ports[context.root_port() - 1].protocol() {
            Protocol::Usb2 => self.traits.slot_types[0],
            Protocol::Usb3 => self.traits.slot_types[1],
        };
        require!(
            self.slots[usize::from(trb.slot())].slot_type == slot_type,
            "xHCI 1.2 §4.6.3",
            "the slot was enabled with type {}, its port wants {slot_type}",
            self.slots[usize::from(trb.slot())].slot_type
        );
        let endpoint = EndpointContext(self.input_context(around, &input, 1));
        endpoint.check(1, context.link().unwrap_or(Link::Full));
        self.check_ring_start(endpoint.dequeue(), 16, "the ring of endpoint 0");
        (context, endpoint)
    }

    /// §4.3.3, §6.1: the output context that the base address array names.
    fn take_output(&mut self, around: &mut Surroundings<'_>, number: u8) {
        let entry = self.operational.device_contexts + 8 * u64::from(number);
        let contexts = around.memory.read64(entry);
        require!(
            contexts != 0,
            "xHCI 1.2 §4.3.3",
            "entry {number} of the device context array is null as Address Device comes"
        );
        require!(
            contexts.is_multiple_of(64),
            "xHCI 1.2 §6.1",
            "the device context of slot {number} at {contexts:#x} is not a multiple of 64"
        );
        self.check_reach(contexts, "a device context");
        let length = 32 * self.traits.context_bytes();
        require!(
            !crosses(contexts, length, self.traits.page_size as u64),
            "xHCI 1.2 table 6-1",
            "the device context of slot {number} at {contexts:#x} crosses a page"
        );
        let mut content = vec![0; length as usize];
        around.memory.read(contexts, &mut content);
        require!(
            content.iter().all(|&byte| byte == 0),
            "xHCI 1.2 §4.3.3",
            "the output device context of slot {number} was not cleared"
        );
        self.slots[usize::from(number)].contexts = contexts;
    }

    /// One transaction of SET_ADDRESS. `Err` is when to go on, `Ok` the end.
    pub(super) fn continue_addressing(
        &mut self,
        around: &mut Surroundings<'_>,
        number: u8,
        addressing: &mut Addressing,
    ) -> Result<Answer, Nanoseconds> {
        let port = addressing.context.root_port() - 1;
        let link = addressing.context.link().unwrap_or(Link::Full);
        let packet = match (addressing.status_stage, link.is_super()) {
            (false, _) => Packet::Setup([0, 5, addressing.address, 0, 0, 0, 0, 0]),
            (true, true) => Packet::Status,
            (true, false) => Packet::In {
                sequence: 1,
                maximum: addressing.endpoint.max_packet() as usize,
                stream: 0,
            },
        };
        let endpoint = if addressing.status_stage { 0x80 } else { 0 };
        let reply = self.transact(around, port, 0, endpoint, packet);
        let next = around.now + timing::RETRY;
        match reply {
            Reply::Ack | Reply::Nyet if !addressing.status_stage => {
                addressing.status_stage = true;
                Err(next)
            }
            Reply::Ack | Reply::Data { .. } => {
                let (context, endpoint) = (addressing.context, addressing.endpoint);
                self.finish_addressing(around, number, addressing.address, context, endpoint);
                Ok(Answer::of_slot(code::SUCCESS, number))
            }
            Reply::Nak | Reply::Nyet => {
                if around.now > addressing.since + ADDRESSING_LIMIT {
                    return Ok(Answer::of_slot(code::TRANSACTION, number));
                }
                let ready = self.ports[port].ready_at(endpoint);
                Err(ready.unwrap_or(next + MILLISECOND).max(next))
            }
            Reply::Stall => Ok(Answer::of_slot(code::STALL, number)),
            Reply::Silent | Reply::Corrupt => {
                addressing.errors += 1;
                if u32::from(addressing.errors) >= addressing.endpoint.errors_allowed() {
                    Ok(Answer::of_slot(code::TRANSACTION, number))
                } else {
                    Err(next)
                }
            }
        }
    }

    fn finish_addressing(
        &mut self,
        around: &mut Surroundings<'_>,
        number: u8,
        address: u8,
        context: SlotContext,
        endpoint: EndpointContext,
    ) {
        let life = self.next_life();
        let slot = &mut self.slots[usize::from(number)];
        slot.output[0] = context.0;
        slot.address = address;
        slot.set_state(if address == 0 {
            SlotState::Default
        } else {
            SlotState::Addressed
        });
        slot.output[1] = endpoint.0;
        slot.output[1][0] |= state::RUNNING;
        slot.endpoints[1] = Some(Box::new(Endpoint::new(1, endpoint, life)));
        self.write_output(around, number, 0);
        self.write_output(around, number, 1);
    }
}
