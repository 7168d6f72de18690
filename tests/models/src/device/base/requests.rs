//! How a control request finds its answer: the script's table, the standard requests, the function.

use super::super::setup::{Kind, Setup};
use super::super::{Link, Nanoseconds, Reply};
use super::control::{Happened, Stage};
use super::function::{Answer, Function};
use super::{Device, standard};

impl<F: Function> Device<F> {
    /// A SETUP packet: always taken, whatever went on before (USB 2.0 §8.5.3).
    pub(super) fn setup(&mut self, now: Nanoseconds, link: Link, setup: Setup) -> Reply {
        self.trace.requests.push((now, setup));
        self.state.new_address = None;
        if !setup.is_in() && setup.length > 0 {
            self.state.stage = Stage::await_data(setup, link);
            return Reply::Ack;
        }
        let answer = self.answer(now, &setup, &[]);
        let silent = answer == Answer::Silent;
        self.state.stage = Stage::answer(now, &setup, answer, link);
        if silent { Reply::Silent } else { Reply::Ack }
    }

    /// What a packet of endpoint 0 led to.
    pub(super) fn happened(&mut self, now: Nanoseconds, link: Link, happened: Happened) {
        match happened {
            Happened::Nothing => {}
            Happened::Received(setup, data) => {
                let answer = self.answer(now, &setup, &data);
                self.state.stage = Stage::answer(now, &setup, answer, link);
            }
            Happened::Finished => {
                if let Some(address) = self.state.new_address.take() {
                    self.state.address = address;
                    self.state.since.address = Some(now);
                }
            }
        }
    }

    fn answer(&mut self, now: Nanoseconds, setup: &Setup, data: &[u8]) -> Answer {
        if let Some(answer) = self.controls.answer(setup) {
            if !answer.refuses() && setup.kind() == Kind::Standard {
                // The answer is scripted, the effect is the usual one.
                let _usual = standard::answer(self, now, setup);
            }
            return answer;
        }
        if setup.kind() == Kind::Standard {
            return standard::answer(self, now, setup);
        }
        let answer = self.with_wire(now, |function, wire| function.control(wire, setup, data));
        answer.unwrap_or(Answer::Stall)
    }
}

impl Answer {
    /// Whether the request comes to nothing.
    fn refuses(&self) -> bool {
        match self {
            Self::Stall | Self::Silent => true,
            Self::After(delay, then) => *delay == Nanoseconds::MAX || then.refuses(),
            Self::Data(_) | Self::Overlong(_) | Self::Accept => false,
        }
    }
}
