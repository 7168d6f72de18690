//! The UAS device as a function of the base device: what each packet finds.

use super::super::base::{Answer, Function, Given, Reset, Taken, Wire};
use super::super::scsi::{Intent, Sense};
use super::super::setup::Setup;
use super::super::{Link, Nanoseconds};
use super::fault::{Fault, What};
use super::machine::{Outgoing, PIPES, Phase, Uas};
use super::wire;

pub(super) const COMMAND: u8 = PIPES[0];
pub(super) const STATUS: u8 = PIPES[1];
pub(super) const DATA_IN: u8 = PIPES[2];
pub(super) const DATA_OUT: u8 = PIPES[3];

/// Places of [`Uas::turn`].
const fn turn_of(to_host: bool) -> usize {
    if to_host { 0 } else { 1 }
}

impl Uas {
    /// Begins what can begin now.
    fn serve(&mut self, wire: &mut Wire<'_>) {
        let now = wire.now;
        // Commands without data end when their time has come.
        while let Some(place) = self.commands.iter().position(|command| {
            command.phase == Phase::Waiting
                && command.direction().is_none()
                && now >= command.execution.ready_at
        }) {
            let failure = self.commands[place].execution.failure;
            self.end(now, place, failure);
        }
        if self.has_streams(wire) {
            let ready = |command: &&mut super::machine::Running| {
                command.phase == Phase::Waiting && now >= command.execution.ready_at
            };
            for command in self.commands.iter_mut().filter(ready) {
                command.phase = Phase::Data;
            }
            return;
        }
        for to_host in [true, false] {
            self.take_turn(now, to_host);
        }
    }

    /// Without streams: says whose data phase comes next, if none is going on.
    fn take_turn(&mut self, now: Nanoseconds, to_host: bool) {
        if self.turn[turn_of(to_host)].is_some() {
            return;
        }
        let ready: Vec<usize> = (0..self.commands.len())
            .filter(|place| {
                let command = &self.commands[*place];
                command.phase == Phase::Waiting
                    && command.direction() == Some(to_host)
                    && now >= command.execution.ready_at
            })
            .collect();
        if ready.is_empty() {
            return;
        }
        let place = ready[self.random(ready.len())];
        let tag = self.commands[place].tag;
        self.turn[turn_of(to_host)] = Some(tag);
        self.forgot_turns = false;
        if let Some(What::ReadyForTag(other)) = self.commands[place].what {
            self.say(now, other, wire::ready(other, to_host));
        }
        self.outgoing.push_back(Outgoing {
            at: now,
            stream: tag,
            bytes: wire::ready(tag, to_host),
            opens: Some(tag),
            is_leftover: false,
        });
    }

    /// The command whose data move on this pipe and stream.
    fn moving(&self, wire: &Wire<'_>, to_host: bool, stream: u16) -> Option<usize> {
        let tag = if self.has_streams(wire) {
            stream
        } else {
            self.turn[turn_of(to_host)]?
        };
        self.commands.iter().position(|command| {
            command.stream == tag
                && command.phase == Phase::Data
                && command.direction() == Some(to_host)
        })
    }

    /// The data of the command at this place have moved.
    fn data_done(&mut self, now: Nanoseconds, link: Link, place: usize) {
        let command = &self.commands[place];
        let (lun, cdb) = (command.lun, command.cdb.clone());
        if let Some(to_host) = command.direction() {
            self.turn[turn_of(to_host)] = None;
        }
        let (mut at, mut failure) = (now, command.execution.failure);
        if let Intent::Out(_) = command.execution.intent {
            let received = command.received.clone();
            let rate = command.execution.bytes_per_second;
            let outcome = self.target.write(now, lun, &cdb, &received);
            at = self
                .medium_took(now, link, received.len(), rate)
                .max(outcome.at);
            failure = failure.or(outcome.failure);
        }
        self.end(at, place, failure);
    }

    /// Data on a pipe while it is nobody's turn.
    fn out_of_turn(&self, wire: &Wire<'_>, endpoint: u8) {
        if !self.has_streams(wire) && !self.forgot_turns {
            let text = format!("data on endpoint {endpoint:#04x} before the device was ready");
            wire.violations.record(wire.now, "UAS §4.3", text);
        }
    }

    fn halts(&mut self, now: Nanoseconds, place: usize) -> bool {
        let command = &mut self.commands[place];
        if command.what != Some(What::HaltData) {
            return false;
        }
        command.what = None;
        if let Some(to_host) = command.direction() {
            self.turn[turn_of(to_host)] = None;
        }
        self.end(now, place, Some(Sense::BAD_FIELD));
        true
    }
}

impl Function for Uas {
    fn reset(&mut self, now: Nanoseconds, reset: Reset) {
        match reset {
            Reset::PowerOn => {
                self.faults.retain(Fault::outlives_power);
                self.target.power_on(now);
            }
            Reset::PowerOff => self.target.power_off(),
            Reset::Bus => self.target.bus_reset(),
            Reset::Configured => {}
        }
        self.primed.clear();
        self.lose_all();
    }

    fn control(&mut self, _wire: &mut Wire<'_>, _setup: &Setup, _data: &[u8]) -> Option<Answer> {
        None
    }

    fn advance(&mut self, wire: &mut Wire<'_>) {
        self.serve(wire);
    }

    fn take(&mut self, wire: &mut Wire<'_>, endpoint: u8, stream: u16, data: &[u8]) -> Taken {
        self.check_stream(wire, endpoint, stream);
        if endpoint == COMMAND {
            let taken = self.take_unit(wire, data);
            self.serve(wire);
            return taken;
        }
        if endpoint != DATA_OUT {
            return Taken::Halt;
        }
        let Some(place) = self.moving(wire, false, stream) else {
            self.out_of_turn(wire, endpoint);
            return Taken::Busy;
        };
        if self.halts(wire.now, place) {
            return Taken::Halt;
        }
        let command = &mut self.commands[place];
        let Intent::Out(wanted) = command.execution.intent else {
            return Taken::Halt;
        };
        command.received.extend(data);
        command.moved += data.len();
        if command.moved > wanted {
            let text = format!("{} bytes for a command of {wanted}", command.moved);
            wire.violations.record(wire.now, "UAS §4.3", text);
        }
        if command.moved >= wanted {
            self.data_done(wire.now, wire.link, place);
            self.serve(wire);
        }
        Taken::Yes
    }

    fn give(&mut self, wire: &mut Wire<'_>, endpoint: u8, stream: u16, maximum: usize) -> Given {
        self.check_stream(wire, endpoint, stream);
        if endpoint == STATUS {
            return self.give_status(wire, stream);
        }
        if endpoint != DATA_IN {
            return Given::Halt;
        }
        let Some(place) = self.moving(wire, true, stream) else {
            self.out_of_turn(wire, endpoint);
            return Given::Busy;
        };
        if self.halts(wire.now, place) {
            return Given::Halt;
        }
        let command = &mut self.commands[place];
        let Intent::In(bytes) = &command.execution.intent else {
            return Given::Halt;
        };
        if command.what == Some(What::Babble) {
            command.what = None;
            return Given::Packet {
                bytes: vec![0xbb; maximum + 1],
                last: true,
            };
        }
        let end = (command.moved + maximum).min(bytes.len());
        let packet = bytes[command.moved..end].to_vec();
        let last =
            end == bytes.len() && (packet.len() < maximum || end >= command.execution.wanted);
        command.moved = end;
        if last {
            self.data_done(wire.now, wire.link, place);
            self.serve(wire);
        }
        Given::Packet {
            bytes: packet,
            last,
        }
    }

    fn has_room(&mut self, wire: &mut Wire<'_>, endpoint: u8) -> Taken {
        match endpoint {
            COMMAND => Taken::Yes,
            _ if self.moving(wire, false, 0).is_some() => Taken::Yes,
            _ => Taken::Busy,
        }
    }

    fn halt_cleared(&mut self, _wire: &mut Wire<'_>, endpoint: u8) -> bool {
        self.primed.retain(|&known| known != endpoint);
        true
    }

    fn prime(&mut self, wire: &mut Wire<'_>, endpoint: u8) -> Taken {
        self.take_prime(wire, endpoint)
    }

    fn streams_ready(&self, now: Nanoseconds, endpoint: u8) -> Vec<(Nanoseconds, u16)> {
        self.wants_to_start(now, endpoint)
    }

    fn ready_at(&self, endpoint: u8, stream: u16) -> Option<Nanoseconds> {
        let mine = |other: u16| stream == 0 || stream == other;
        let commands = || self.commands.iter().filter(|command| mine(command.tag));
        let moving = |to_host| {
            let moving = commands().filter(move |command| {
                let begun =
                    command.phase == Phase::Data || stream != 0 && command.phase == Phase::Waiting;
                begun && command.direction() == Some(to_host)
            });
            moving.map(|command| command.execution.ready_at).min()
        };
        match endpoint {
            COMMAND => Some(0),
            DATA_IN => moving(true),
            DATA_OUT => moving(false),
            // What was said, and what will be said when its time and its turn have come.
            _ => {
                let said = self.outgoing.iter().filter(|unit| mine(unit.stream));
                let waiting = commands().filter(|command| {
                    let turn = command
                        .direction()
                        .map(|to_host| self.turn[turn_of(to_host)]);
                    command.phase == Phase::Waiting && !matches!(turn, Some(Some(_)))
                });
                let due = waiting.map(|command| command.execution.ready_at);
                said.map(|unit| unit.at).chain(due).min()
            }
        }
    }
}

impl Uas {
    fn give_status(&mut self, wire: &mut Wire<'_>, stream: u16) -> Given {
        let streams = self.has_streams(wire);
        let now = wire.now;
        let place = self
            .outgoing
            .iter()
            .position(|unit| unit.at <= now && (!streams || unit.stream == stream));
        let Some(unit) = place.and_then(|place| self.outgoing.remove(place)) else {
            return Given::Busy;
        };
        if unit.is_leftover {
            self.leftovers.push(unit.stream);
        }
        if let Some(tag) = unit.opens
            && let Some(command) = self.commands.iter_mut().find(|command| command.tag == tag)
        {
            command.phase = Phase::Data;
        }
        Given::Packet {
            bytes: unit.bytes,
            last: true,
        }
    }
}
