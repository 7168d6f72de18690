//! TDs, from the first packet to the event at their end (xHCI 1.2 §4.10).

use super::commands::code;
use super::descriptors::{Td, Work};
use super::endpoints::state;
use super::packets::Went;
use super::traits::AfterShort;
use super::{CompletionFault, Xhci, timing};
use crate::controller::Surroundings;

impl Xhci {
    /// Bytes that the next packet of an endpoint may have on the bus.
    pub(super) fn next_payload(&mut self, slot: u8, index: u8) -> Option<usize> {
        let endpoint = self.endpoint(slot, index)?;
        let packet = endpoint.max_packet();
        Some(match &endpoint.td {
            Some(td) => match td.work {
                Work::Data { .. } => packet.min((td.length - td.done) as usize),
                Work::Setup(_) => 8,
                Work::Status { .. } | Work::Nothing => 0,
            },
            None => 0,
        })
    }

    /// The endpoint's next transaction is due.
    pub(super) fn next_packet(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
        life: u64,
    ) {
        let running = self.is_running();
        let Some(endpoint) = self.endpoint(slot, index) else {
            return;
        };
        if endpoint.life != life {
            return;
        }
        endpoint.scheduled = false;
        endpoint.waiting = false;
        if !running || self.endpoint_state(slot, index) != state::RUNNING {
            return;
        }
        let Some(endpoint) = self.endpoint(slot, index) else {
            return;
        };
        let Some(td) = endpoint.td.take() else {
            self.begin_td(around, slot, index);
            return;
        };
        let bytes = td.length - td.done;
        let went = self.do_transaction(around, slot, index, td);
        self.after_transaction(around, slot, index, went, bytes);
    }

    /// Takes the next TD; its first packet follows when the bus has room.
    fn begin_td(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u8) {
        let with_streams = self
            .endpoint(slot, index)
            .is_some_and(|endpoint| endpoint.streams.is_some());
        let from = match with_streams {
            false => around.now,
            true => match self.choose_stream(around, slot, index) {
                Some(delay) => around.now + delay,
                None => return,
            },
        };
        if self
            .endpoint(slot, index)
            .is_some_and(|endpoint| endpoint.td.is_some())
        {
            // A stream that was left in the middle of its TD.
            return self.schedule(slot, index, from);
        }
        let Some(td) = self.take_td(around, slot, index) else {
            return;
        };
        let address = self
            .endpoint(slot, index)
            .map_or(0, |endpoint| endpoint.address());
        let count = self.td_counts.entry(address).or_default();
        let key = (address, *count);
        *count += 1;
        let fault = self.faults.of_transfer(key);
        let nothing = td.work == Work::Nothing;
        if let Some(endpoint) = self.endpoint(slot, index) {
            endpoint.td = Some(td);
        }
        match fault {
            Some(CompletionFault::Never) if with_streams => self.lose_stream(around, slot, index),
            Some(CompletionFault::Never) => {}
            Some(CompletionFault::Code(code)) => self.end_badly(around, slot, index, code),
            None if nothing => self.end_td(around, slot, index),
            None => self.schedule(slot, index, from),
        }
    }

    fn after_transaction(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
        went: Went,
        expected: u64,
    ) {
        let owner = &self.slots[usize::from(slot)];
        let (port, link) = (owner.root_port(), owner.link());
        let Some(endpoint) = self.endpoint(slot, index) else {
            return;
        };
        let bytes = (endpoint.max_packet() as u64).min(expected) as usize;
        let has_streams = endpoint.streams.is_some();
        if !matches!(went, Went::Failed) {
            endpoint.errors = 0;
        }
        match went {
            Went::Well => self.went_well(around, slot, index, bytes),
            Went::Short => self.end_short(around, slot, index),
            Went::Halts(code) => self.end_badly(around, slot, index, code),
            Went::Failed => self.count_error(around, slot, index),
            Went::PutOff => {
                self.ports[port].give_back(around.now, link, bytes);
                if has_streams {
                    self.leave_stream(around, slot, index);
                } else {
                    self.wait_for_device(around, slot, index);
                }
            }
        }
        self.wake_waiting(around, slot, index);
    }

    fn went_well(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u8, bytes: usize) {
        let link = self.slots[usize::from(slot)].link();
        self.report_finished_trbs(around, slot, index);
        let at_once = self.packets_at_once(slot, index);
        let Some(endpoint) = self.endpoint(slot, index) else {
            return;
        };
        let ended = endpoint.td.as_ref().is_none_or(|td| td.done == td.length);
        let most = endpoint.context.max_burst();
        let burst = at_once.map_or(most, |packets| most.min(packets.saturating_sub(1)));
        let turnaround = timing::turnaround(link, bytes, burst);
        let pause = turnaround.max(endpoint.period());
        if ended {
            self.end_td(around, slot, index);
        } else {
            self.schedule(slot, index, around.now + pause);
        }
    }

    /// TRBs inside a TD that ask for an event when they are done.
    fn report_finished_trbs(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u8) {
        let Some(td) = self
            .endpoint(slot, index)
            .and_then(|endpoint| endpoint.td.as_mut())
        else {
            return;
        };
        let (now_at, _) = td.place(td.done);
        let reached = now_at.max(td.reported);
        let finished = td.trbs[td.reported..reached].to_vec();
        td.reported = reached;
        for trb in finished.iter().filter(|trb| trb.interrupts()) {
            self.post_transfer_event(around, (slot, index), trb, (code::SUCCESS, 0));
        }
    }

    /// The TD has moved all its bytes.
    fn end_td(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u8) {
        let Some(td) = self.finish(slot, index) else {
            return;
        };
        if let Some(last) = td.trbs.last().filter(|trb| trb.interrupts()) {
            self.post_transfer_event(around, (slot, index), last, (code::SUCCESS, 0));
        }
        self.plan_next_td(around, slot, index);
    }

    /// §4.10.1.1: the device sent less than it could.
    fn end_short(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u8) {
        self.report_finished_trbs(around, slot, index);
        let Some(td) = self.finish(slot, index) else {
            return;
        };
        let (mut at, mut offset) = td.place(td.done);
        if offset == 0 && at > 0 && td.done != 0 {
            // The packet filled the TRB before to its last byte: it is the short one.
            at -= 1;
            offset = u64::from(td.length_of(&td.trbs[at]));
        }
        let trb = td.trbs[at];
        let left = td.length_of(&trb) - offset as u32;
        let reported = trb.interrupts_on_short() || trb.interrupts();
        if reported {
            self.post_transfer_event(around, (slot, index), &trb, (code::SHORT, left));
        }
        if let Some(last) = td.trbs.last().filter(|last| last.interrupts())
            && at + 1 != td.trbs.len()
        {
            let length = td.length_of(last);
            let second = match self.traits.after_short {
                AfterShort::ShortAgain => Some((code::SHORT, length)),
                AfterShort::Success => Some((code::SUCCESS, length)),
                AfterShort::Nothing if reported => None,
                AfterShort::Nothing => Some((code::SHORT, length)),
            };
            if let Some(second) = second {
                self.post_transfer_event(around, (slot, index), last, second);
            }
        }
        self.plan_next_td(around, slot, index);
    }

    /// Takes the TD off the ring.
    fn finish(&mut self, slot: u8, index: u8) -> Option<Td> {
        let endpoint = self.endpoint(slot, index)?;
        let td = endpoint.td.take()?;
        endpoint.ring.advance(td.trbs.len());
        endpoint.stage = td.next_stage;
        Some(td)
    }

    fn plan_next_td(&mut self, around: &Surroundings<'_>, slot: u8, index: u8) {
        let period = self
            .endpoint(slot, index)
            .map_or(0, |endpoint| endpoint.period());
        self.plan(slot, index, around.now + period.max(1));
    }

    fn count_error(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u8) {
        let Some(endpoint) = self.endpoint(slot, index) else {
            return;
        };
        endpoint.errors += 1;
        if endpoint.errors >= endpoint.context.errors_allowed() {
            endpoint.errors = 0;
            self.end_badly(around, slot, index, code::TRANSACTION);
        } else {
            self.schedule(slot, index, around.now + timing::RETRY);
        }
    }

    /// §4.10.2: the TD ends with an error, the endpoint halts and keeps the TD on its ring.
    pub(super) fn end_badly(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
        error: u8,
    ) {
        let Some(endpoint) = self.endpoint(slot, index) else {
            return;
        };
        let Some(td) = endpoint.td.take() else {
            return;
        };
        endpoint.ring.forget();
        let position = endpoint.ring.position();
        let endpoint_has_streams = endpoint.streams.is_some();
        let state = if error == code::TRB {
            state::ERROR
        } else {
            state::HALTED
        };
        self.unschedule(slot, index);
        if endpoint_has_streams {
            self.settle_streams(around, slot, index);
        } else {
            self.show_dequeue(slot, index, position.address, position.cycle);
        }
        self.set_endpoint_state(around, slot, index, state);
        let (at, offset) = td.place(td.done);
        let left = td.length_of(&td.trbs[at]) - offset as u32;
        self.post_transfer_event(around, (slot, index), &td.trbs[at], (error, left));
    }

    /// NAK or NRDY: the device says when to come back, or some other transaction will tell.
    fn wait_for_device(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u8) {
        let hint = self.device_ready_at(slot, index);
        let period = self
            .endpoint(slot, index)
            .map_or(0, |endpoint| endpoint.period());
        let soonest = around.now + timing::RETRY.max(period);
        if let Some(endpoint) = self.endpoint(slot, index) {
            endpoint.waiting = true;
        }
        let from = hint.unwrap_or(around.now + timing::PATIENCE).max(soonest);
        self.plan(slot, index, from);
    }

    /// When the device has something for an endpoint that waits for it.
    fn woken_at(&mut self, around: &Surroundings<'_>, slot: u8, index: u8) -> Option<u64> {
        if self.endpoint(slot, index)?.streams.is_some() {
            let ready = self.streams_ready(around, slot, index);
            let (at, _) = ready.first()?;
            return Some((*at).max(around.now + timing::ERDY));
        }
        let at = self.device_ready_at(slot, index)?;
        Some(at.max(around.now + timing::RETRY))
    }

    fn device_ready_at(&mut self, slot: u8, index: u8) -> Option<u64> {
        let address = self.address_of(slot, index)?;
        let port = self.slots[usize::from(slot)].root_port();
        self.ports[port].ready_at(address)
    }

    fn packets_at_once(&mut self, slot: u8, index: u8) -> Option<u32> {
        let address = self.address_of(slot, index)?;
        let port = self.slots[usize::from(slot)].root_port();
        self.ports[port].packets_at_once(address)
    }

    /// The address of the endpoint that the present TD is about, with the TD's direction.
    fn address_of(&mut self, slot: u8, index: u8) -> Option<u8> {
        let endpoint = self.endpoint(slot, index)?;
        let input = match endpoint.td.as_ref()?.work {
            Work::Data { input } | Work::Status { input } => input,
            Work::Setup(_) | Work::Nothing => false,
        };
        let direction = if input { 0x80 } else { 0 };
        Some((index / 2) | direction)
    }

    /// Something happened on the device: other endpoints that wait for it are asked again.
    fn wake_waiting(&mut self, around: &mut Surroundings<'_>, slot: u8, except: u8) {
        for index in (1..32).filter(|&index| index != except) {
            if !self
                .endpoint(slot, index)
                .is_some_and(|endpoint| endpoint.waiting)
            {
                continue;
            }
            let Some(at) = self.woken_at(around, slot, index) else {
                continue;
            };
            self.unschedule(slot, index);
            self.plan(slot, index, at);
            // Until then something else may happen.
            if let Some(endpoint) = self.endpoint(slot, index) {
                endpoint.waiting = true;
            }
        }
    }
}
