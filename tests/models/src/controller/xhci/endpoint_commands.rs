//! Commands about endpoints: Configure Endpoint, Evaluate Context, Reset and Stop Endpoint, Set TR
//! Dequeue Pointer (xHCI 1.2 §4.6.6 to §4.6.10).

use super::Xhci;
use super::commands::{Answer, code};
use super::context_memory::Input;
use super::contexts::{EndpointContext, SlotContext};
use super::endpoints::{Endpoint, state};
use super::rings::Position;
use super::slots::SlotState;
use super::streams::Standing;
use super::traits::{IdleStop, StreamStop};
use super::trb::{Trb, kind};
use crate::broken::require;
use crate::controller::Surroundings;

impl Xhci {
    pub(super) fn configure_endpoint(
        &mut self,
        around: &mut Surroundings<'_>,
        trb: &Trb,
    ) -> Answer {
        let number = trb.slot();
        let state = self.slots[usize::from(number)].state;
        let deconfigures = trb.words[3] >> 9 & 1 != 0;
        let fits = match state {
            SlotState::Addressed => !deconfigures,
            SlotState::Configured => true,
            _ => false,
        };
        if !fits {
            return Answer::of_slot(code::CONTEXT_STATE, number);
        }
        if deconfigures {
            self.drop_endpoints(around, number, !0b11);
            self.slots[usize::from(number)].become_configured(false);
            self.write_output(around, number, 0);
            return Answer::of_slot(code::SUCCESS, number);
        }
        let input = self.load_input(around, trb.pointer());
        require!(
            input.drop & 0b11 == 0 && input.add & 0b11 == 0b01,
            "xHCI 1.2 §4.6.6",
            "Configure Endpoint wants A0 = 1 and A1 = D0 = D1 = 0, not add {:#x}, drop {:#x}",
            input.add,
            input.drop
        );
        let context = SlotContext(self.input_context(around, &input, 0));
        self.check_slot_context(number, context);
        self.drop_endpoints(around, number, input.drop);
        self.add_endpoints(around, number, &input);
        self.take_slot_context(around, number, context);
        Answer::of_slot(code::SUCCESS, number)
    }

    fn drop_endpoints(&mut self, around: &mut Surroundings<'_>, number: u8, flags: u32) {
        for index in (2..32).filter(|index| flags >> index & 1 != 0) {
            let busy = self
                .endpoint(number, index as u8)
                .is_some_and(|endpoint| endpoint.is_moving());
            require!(
                !busy || self.endpoint_state(number, index as u8) != state::RUNNING,
                "xHCI 1.2 §4.6.6",
                "endpoint {index} was dropped while a TD is under way: stop it first"
            );
            self.slots[usize::from(number)].remove_endpoint(index);
            self.write_output(around, number, index);
        }
    }

    fn add_endpoints(&mut self, around: &mut Surroundings<'_>, number: u8, input: &Input) {
        let link = self.slots[usize::from(number)].link();
        for index in (2..32).filter(|index| input.add >> index & 1 != 0) {
            let context = EndpointContext(self.input_context(around, input, index));
            context.check(index, link);
            require!(
                !self.slots[usize::from(number)].has(index),
                "xHCI 1.2 §4.6.6",
                "endpoint {index} was added while it is enabled, without being dropped"
            );
            self.check_ring_start(context.dequeue(), 16, "a transfer ring or a stream array");
            self.check_stream_array(around, index, context);
            let life = self.next_life();
            let slot = &mut self.slots[usize::from(number)];
            slot.output[index as usize] = context.0;
            slot.output[index as usize][0] |= state::RUNNING;
            slot.endpoints[index as usize] =
                Some(Box::new(Endpoint::new(index as u8, context, life)));
            self.write_output(around, number, index);
        }
    }

    /// §6.2.2.2: Configure Endpoint takes Context Entries and what concerns hubs.
    fn take_slot_context(
        &mut self,
        around: &mut Surroundings<'_>,
        number: u8,
        context: SlotContext,
    ) {
        let slot = &mut self.slots[usize::from(number)];
        let last = (1..32).rev().find(|&index| slot.has(index)).unwrap_or(1);
        require!(
            context.entries() == last,
            "xHCI 1.2 §6.2.2.2",
            "Context Entries is {}, the last valid endpoint context is {last}",
            context.entries()
        );
        let output = slot.context();
        require!(
            context.route() == output.route()
                && context.speed() == output.speed()
                && context.root_port() == output.root_port(),
            "xHCI 1.2 §6.2.2.2",
            "route, speed or root port of slot {number} changed: {:08x?}, was {:08x?}",
            context.0,
            output.0
        );
        slot.output[0][..3].copy_from_slice(&context.0[..3]);
        slot.become_configured(last > 1);
        self.write_output(around, number, 0);
    }

    pub(super) fn evaluate_context(&mut self, around: &mut Surroundings<'_>, trb: &Trb) -> Answer {
        let number = trb.slot();
        let input = self.load_input(around, trb.pointer());
        require!(
            input.drop == 0 && input.add != 0 && input.add & !0b11 == 0,
            "xHCI 1.2 §4.6.7",
            "Evaluate Context wants A0 or A1 alone, not add {:#x}, drop {:#x}",
            input.add,
            input.drop
        );
        if self.slots[usize::from(number)].state == SlotState::Enabled {
            return Answer::of_slot(code::CONTEXT_STATE, number);
        }
        if input.add & 1 != 0 {
            self.evaluate_slot(around, number, &input);
        }
        if input.add & 2 != 0 {
            self.evaluate_control_endpoint(around, number, &input);
        }
        Answer::of_slot(code::SUCCESS, number)
    }

    /// §6.2.2.3: Max Exit Latency and Interrupter Target.
    fn evaluate_slot(&mut self, around: &mut Surroundings<'_>, number: u8, input: &Input) {
        let context = SlotContext(self.input_context(around, input, 0));
        self.check_slot_context(number, context);
        let output = &mut self.slots[usize::from(number)].output[0];
        output[1] = output[1] & !0xffff | context.0[1] & 0xffff;
        output[2] = output[2] & !0xffc0_0000 | context.0[2] & 0xffc0_0000;
        self.write_output(around, number, 0);
    }

    /// §6.2.3.3: Max Packet Size.
    fn evaluate_control_endpoint(
        &mut self,
        around: &mut Surroundings<'_>,
        number: u8,
        input: &Input,
    ) {
        let link = self.slots[usize::from(number)].link();
        let mut words = self.input_context(around, input, 1);
        // A driver may hand back the output context with its new size; its state is not looked at.
        if words[0] & 7 == self.endpoint_state(number, 1) {
            words[0] &= !7;
        }
        let context = EndpointContext(words);
        context.check(1, link);
        let size = context.max_packet();
        let slot = &mut self.slots[usize::from(number)];
        slot.output[1][1] = slot.output[1][1] & 0xffff | size << 16;
        if let Some(endpoint) = &mut slot.endpoints[1] {
            let mut kept = endpoint.context.0;
            kept[1] = kept[1] & 0xffff | size << 16;
            endpoint.context = EndpointContext(kept);
        }
        self.write_output(around, number, 1);
    }

    /// The endpoint that a command names exists.
    fn check_command_endpoint(&self, trb: &Trb) -> (u8, u8) {
        let (number, index) = (trb.slot(), trb.endpoint());
        require!(
            index != 0 && self.slots[usize::from(number)].has(u32::from(index)),
            "xHCI 1.2 §4.6",
            "a command of type {} for endpoint {index} of slot {number}, which is disabled",
            trb.kind()
        );
        (number, index)
    }

    pub(super) fn reset_endpoint(&mut self, around: &mut Surroundings<'_>, trb: &Trb) -> Answer {
        let (number, index) = self.check_command_endpoint(trb);
        if self.endpoint_state(number, index) != state::HALTED {
            return Answer::of_slot(code::CONTEXT_STATE, number);
        }
        let preserves = trb.words[3] >> 9 & 1 != 0;
        if let Some(endpoint) = self.endpoint(number, index) {
            endpoint.errors = 0;
            endpoint.ping = false;
            if !preserves {
                endpoint.sequence = 0;
            }
        }
        self.set_endpoint_state(around, number, index, state::STOPPED);
        Answer::of_slot(code::SUCCESS, number)
    }

    pub(super) fn stop_endpoint(&mut self, around: &mut Surroundings<'_>, trb: &Trb) -> Answer {
        let (number, index) = self.check_command_endpoint(trb);
        if self.endpoint_state(number, index) != state::RUNNING {
            return Answer::of_slot(code::CONTEXT_STATE, number);
        }
        self.unschedule(number, index);
        self.check_stream_contexts(around, number, index);
        self.report_stop(around, number, index);
        self.set_endpoint_state(around, number, index, state::STOPPED);
        Answer::of_slot(code::SUCCESS, number)
    }

    /// §4.6.9: where the ring stands, as an event and in the context.
    fn report_stop(&mut self, around: &mut Surroundings<'_>, number: u8, index: u8) {
        let idle_event = match self.traits.idle_stop {
            IdleStop::Silent => false,
            IdleStop::Event => true,
            IdleStop::Either => around.random.once_in(2),
        };
        let Some(endpoint) = self.endpoint(number, index) else {
            return;
        };
        if endpoint.streams.is_some() {
            return self.report_streams_stop(around, (number, index), idle_event);
        }
        let standing = endpoint.settle(around);
        self.show_dequeue(number, index, standing.at.address, standing.at.cycle);
        if standing.trb.is_some() || idle_event {
            self.report_standing(around, (number, index), &standing);
        }
    }

    fn report_standing(
        &mut self,
        around: &mut Surroundings<'_>,
        endpoint: (u8, u8),
        standing: &Standing,
    ) {
        let nothing = Trb {
            address: standing.at.address,
            ..Trb::NULL
        };
        let trb = standing.trb.unwrap_or(nothing);
        let code = match standing.left {
            Some(left) => (code::STOPPED, left),
            None => (code::STOPPED_LENGTH_INVALID, 0),
        };
        self.post_transfer_event(around, endpoint, &trb, code);
    }

    /// The same for an endpoint with streams: which of them are reported is the controller's habit.
    fn report_streams_stop(
        &mut self,
        around: &mut Surroundings<'_>,
        (number, index): (u8, u8),
        idle_event: bool,
    ) {
        let habit = self.traits.stream_stop;
        let moving = self
            .endpoint(number, index)
            .map_or(0, |endpoint| endpoint.stream());
        let standings = self.settle_streams(around, number, index);
        let mut reported = false;
        for (stream, standing) in &standings {
            let shown = match habit {
                StreamStop::Moving => *stream == moving && standing.left.is_some(),
                StreamStop::EachWithWork | StreamStop::NullPointers => standing.trb.is_some(),
            };
            if habit == StreamStop::NullPointers {
                let code = (code::STOPPED_LENGTH_INVALID, 0);
                self.post_transfer_event(around, (number, index), &Trb::NULL, code);
            } else if shown {
                self.report_standing(around, (number, index), standing);
            }
            reported |= shown;
        }
        if !reported && idle_event && habit == StreamStop::Moving {
            let code = (code::STOPPED_LENGTH_INVALID, 0);
            self.post_transfer_event(around, (number, index), &Trb::NULL, code);
        }
    }

    pub(super) fn set_dequeue(&mut self, around: &mut Surroundings<'_>, trb: &Trb) -> Answer {
        let (number, index) = self.check_command_endpoint(trb);
        let stream = self.check_dequeue_stream(number, index, trb);
        self.check_stream_contexts(around, number, index);
        let state = self.endpoint_state(number, index);
        if !matches!(state, state::STOPPED | state::ERROR) {
            return Answer::of_slot(code::CONTEXT_STATE, number);
        }
        let (address, cycle) = (trb.pointer() & !0xf, trb.words[0] & 1 != 0);
        self.check_ring_start(address, 16, "the dequeue pointer");
        let words = around.memory.visible_words(address);
        require!(
            !self.traits.no_dequeue_at_link || words[3] >> 10 & 0x3f != kind::LINK,
            "Policy: no dequeue pointer at a link (VL805)",
            "Set TR Dequeue Pointer leads to the Link TRB at {address:#x}"
        );
        if let Some(stream) = stream {
            let to = Position { address, cycle };
            self.set_stream_dequeue(around, (number, index), stream, to);
        } else if let Some(endpoint) = self.endpoint(number, index) {
            endpoint.move_to(address, cycle);
            self.show_dequeue(number, index, address, cycle);
        }
        self.set_endpoint_state(around, number, index, state::STOPPED);
        Answer::of_slot(code::SUCCESS, number)
    }
}
