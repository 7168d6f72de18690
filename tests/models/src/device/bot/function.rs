//! The Bulk-Only device as a function of the base device: what each packet finds.

use core::ops::Range;

use super::super::Nanoseconds;
use super::super::base::{Answer, Function, Given, Reset, Taken, Wire};
use super::super::setup::Setup;
use super::busy::Phase;
use super::hook::Until;
use super::machine::{BulkOnly, State, check};
use super::plan::{Data, End};

impl Function for BulkOnly {
    fn reset(&mut self, now: Nanoseconds, reset: Reset) {
        match reset {
            Reset::PowerOn => {
                self.target.power_on(now);
                self.idle = None;
                self.writes_broken = false;
                self.absence = None;
                self.state = if self.manners.starts_halted {
                    State::Halted
                } else {
                    State::Command
                };
            }
            Reset::PowerOff => {
                self.target.power_off();
                self.state = State::Command;
            }
            Reset::Bus => {
                self.target.bus_reset();
                self.idle = self.idle.filter(|idle| idle.until > Until::BusReset);
                self.leave_command();
            }
            Reset::Configured => self.leave_command(),
        }
    }

    fn control(&mut self, wire: &mut Wire<'_>, setup: &Setup, _data: &[u8]) -> Option<Answer> {
        let interface = u16::from(self.pipes.0);
        match (setup.request_type, setup.request) {
            (0xa1, 0xfe) => {
                check(
                    wire.violations,
                    wire.now,
                    setup,
                    (interface, 1),
                    "BOT 1.0 §3.2",
                );
                let last = self.target.units.len() - 1;
                Some(Answer::Data(vec![u8::try_from(last).unwrap_or(15)]))
            }
            (0x21, 0xff) => Some(self.class_reset(wire, setup)),
            _ => None,
        }
    }

    fn advance(&mut self, wire: &mut Wire<'_>) {
        if self.idle.is_some() {
            return;
        }
        match &mut self.state {
            State::Halted => {
                self.halt(wire, End::HaltIn);
                self.halt(wire, End::HaltOut);
            }
            State::Busy(busy) if busy.phase == Phase::Waiting && wire.now >= busy.plan.ready_at => {
                match busy.plan.data {
                    Data::In(_) => busy.phase = Phase::DataIn,
                    Data::Out { .. } => busy.phase = Phase::DataOut,
                    Data::Nothing => self.end_data(wire),
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, wire: &mut Wire<'_>, endpoint: u8, _stream: u16, data: &[u8]) -> Taken {
        if self.idle.is_some() || endpoint != self.pipes.2 || self.is_rushed(wire.now) {
            return Taken::Busy;
        }
        if let State::Busy(busy) = &mut self.state
            && busy.stays_silent(false)
        {
            return Taken::Silent;
        }
        match &mut self.state {
            State::Command => {
                self.begin(wire, data);
                Taken::Yes
            }
            State::Halted => Taken::Halt,
            State::Busy(busy) => match (busy.phase, &busy.plan.data) {
                (Phase::Waiting, Data::Out { .. }) => Taken::Busy,
                (Phase::DataOut, _) => self.take_data(wire, data),
                // Before the pipe halts, data that the device will refuse are no fault.
                (Phase::Waiting, _) if busy.plan.end == End::HaltOut => Taken::Busy,
                _ => Self::take_out_of_turn(busy, wire),
            },
        }
    }

    fn give(&mut self, wire: &mut Wire<'_>, endpoint: u8, _stream: u16, maximum: usize) -> Given {
        if self.idle.is_some() || endpoint != self.pipes.1 || self.is_rushed(wire.now) {
            return Given::Busy;
        }
        let State::Busy(busy) = &mut self.state else {
            return Given::Busy;
        };
        if busy.stays_silent(true) {
            return Given::Silent;
        }
        match busy.phase {
            Phase::DataIn => self.give_data(wire, maximum),
            Phase::EmptyPacket => {
                let at = wire.now.saturating_add(busy.plan.shape.delay);
                busy.phase = Phase::Status { at };
                Given::Packet {
                    bytes: Vec::new(),
                    last: true,
                }
            }
            Phase::Status { at } if wire.now >= at => self.give_status(wire),
            Phase::Waiting | Phase::DataOut if self.manners.status_last && busy.takes_data() => {
                Given::Halt
            }
            Phase::Waiting | Phase::DataOut | Phase::Status { .. } => Given::Busy,
        }
    }

    fn has_room(&mut self, wire: &mut Wire<'_>, _endpoint: u8) -> Taken {
        match &self.state {
            _ if self.idle.is_some() => Taken::Busy,
            State::Command => Taken::Yes,
            State::Halted => Taken::Halt,
            State::Busy(busy) if busy.phase == Phase::DataOut && busy.has_room(wire.now) => {
                Taken::Yes
            }
            State::Busy(_) => Taken::Busy,
        }
    }

    fn halt_cleared(&mut self, _wire: &mut Wire<'_>, _endpoint: u8) -> bool {
        !matches!(self.state, State::Halted)
    }

    fn ready_at(&self, endpoint: u8, _stream: u16) -> Option<Nanoseconds> {
        let to_host = endpoint & 0x80 != 0;
        match &self.state {
            _ if self.idle.is_some() => None,
            State::Command => (!to_host).then_some(0),
            State::Halted => Some(0),
            State::Busy(busy) => busy.ready_at(to_host),
        }
    }

    fn absence(&self) -> Option<Range<Nanoseconds>> {
        self.absence.clone()
    }

    fn is_dead(&self) -> bool {
        self.idle.is_some_and(|idle| idle.crashed)
    }
}
