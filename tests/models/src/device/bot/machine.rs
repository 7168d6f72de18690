//! The Bulk-Only device: from command wrapper over data to status wrapper (BOT 1.0 §5.3).

use core::ops::Range;

use super::super::base::{Answer, Given, Taken, Wire};
use super::super::scsi::{Sense, StatusLoss, Target};
use super::super::setup::Setup;
use super::super::{Nanoseconds, Violations};
use super::busy::{Busy, Phase};
use super::hook::{Action, Hook, Until};
use super::plan::{Data, End, Plan, ShortEnd, Unwanted, fault, plan};
use super::wire::CommandWrapper;

/// Later than any test.
const NEVER: Nanoseconds = Nanoseconds::MAX / 4;

/// What Bulk-Only Mass Storage Reset does to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClassReset {
    /// It makes the device ready for the next command (BOT 1.0 §3.1).
    Works,
    /// It is accepted and does nothing.
    Ignored,
    /// It works, but every write fails with 4/44/00 from then on until power goes.
    BreaksWrites,
}

/// How a device behaves in matters that BOT 1.0 leaves open, or that many get wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manners {
    /// The end of short data.
    pub short: ShortEnd,
    /// Data from the host that are not wanted.
    pub unwanted: Unwanted,
    /// Whether a command that was going on survives a bus reset: the device then waits on for the
    /// rest of its data, which is wrong.
    pub survives_bus_reset: bool,
    /// What Bulk-Only Mass Storage Reset does.
    pub class_reset: ClassReset,
    /// Whether the device starts as after an invalid wrapper: halted until reset recovery.
    pub starts_halted: bool,
    /// How long a command wrapper is: 31 bytes, or 32 on devices with a standard of their own.
    pub wrapper_length: usize,
    /// The device dies, until reset recovery, of data that are asked for or come so soon after the
    /// command wrapper.
    pub pause: Nanoseconds,
    /// A status that is asked for while data from the host are due halts the pipe, as on QEMU's disk.
    pub status_last: bool,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            short: ShortEnd::Packet,
            unwanted: Unwanted::Halt,
            survives_bus_reset: false,
            class_reset: ClassReset::Works,
            starts_halted: false,
            wrapper_length: 31,
            pause: 0,
            status_last: false,
        }
    }
}

/// One command as it travelled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// When the command wrapper came.
    pub at: Nanoseconds,
    /// The command wrapper.
    pub wrapper: CommandWrapper,
    /// Which of the thirteen cases it was.
    pub case: u8,
    /// When the status wrapper left, if it did.
    pub ended: Option<Nanoseconds>,
    /// The status byte that was sent.
    pub status: Option<u8>,
}

/// The function of a Bulk-Only disk.
#[derive(Debug)]
pub struct BulkOnly {
    /// The SCSI side.
    pub target: Target,
    /// Faults by command.
    pub hooks: Vec<Hook>,
    /// Habits.
    pub manners: Manners,
    /// All commands as they travelled, oldest first.
    pub exchanges: Vec<Exchange>,
    /// Interface number, bulk IN and bulk OUT address.
    pub(super) pipes: (u8, u8, u8),
    pub(super) state: State,
    pub(super) idle: Option<Idle>,
    pub(super) writes_broken: bool,
    pub(super) absence: Option<Range<Nanoseconds>>,
}

/// Why nothing moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    pub(super) until: Until,
    pub(super) crashed: bool,
}

#[derive(Debug, Default)]
pub(super) enum State {
    /// Waits for a command wrapper.
    #[default]
    Command,
    /// A command is going on.
    Busy(Box<Busy>),
    /// After an invalid wrapper: halted until reset recovery (BOT 1.0 §6.6.1).
    Halted,
}

impl BulkOnly {
    /// A disk over `target`, at interface 0 with bulk IN 1 and bulk OUT 2.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            hooks: Vec::new(),
            manners: Manners::default(),
            exchanges: Vec::new(),
            pipes: (0, 0x81, 0x02),
            state: State::Command,
            idle: None,
            writes_broken: false,
            absence: None,
        }
    }

    /// The same at other endpoints.
    #[must_use]
    pub fn at(mut self, interface: u8, bulk_in: u8, bulk_out: u8) -> Self {
        self.pipes = (interface, bulk_in, bulk_out);
        self
    }

    pub(super) fn begin(&mut self, wire: &mut Wire<'_>, bytes: &[u8]) {
        let right_length = bytes.len() == self.manners.wrapper_length;
        let plain = bytes.get(..31).filter(|_| right_length);
        let Some(wrapper) = plain.and_then(CommandWrapper::parse) else {
            let text = format!("an invalid command wrapper of {} bytes", bytes.len());
            wire.violations.record(wire.now, "BOT 1.0 §6.2.1", text);
            self.state = State::Halted;
            self.halt(wire, End::HaltIn);
            self.halt(wire, End::HaltOut);
            return;
        };
        if let Some(flaw) = wrapper.flaw {
            wire.violations.record(wire.now, "BOT 1.0 §6.2.2", flaw);
        }
        let execution = self.target.execute(wire.now, wrapper.lun, &wrapper.cdb);
        let packet = wire
            .endpoints
            .find(self.pipes.1)
            .map_or(512, |endpoint| endpoint.maximum);
        let habits = (self.manners.short, self.manners.unwanted);
        let mut plan = plan(&wrapper, execution, habits, packet);
        if let Some(text) = fault(&wrapper, &plan) {
            wire.violations.record(wire.now, "BOT 1.0 §6.7", text);
        }
        let case = plan.case;
        self.bend(wire.now, &wrapper, &mut plan, packet);
        match self.target.lose_status(plan.failure) {
            Some(StatusLoss::Silent) => plan.shape.delay = NEVER,
            Some(StatusLoss::Damaged) => plan.shape.signature = Some(*b"USBX"),
            None => {}
        }
        if wrapper.cdb.first() != Some(&0x03) {
            self.target.keep_sense(wrapper.lun, plan.failure);
        }
        let exchange = Exchange {
            at: wire.now,
            wrapper: wrapper.clone(),
            case,
            ended: None,
            status: None,
        };
        self.exchanges.push(exchange);
        self.state = State::Busy(Box::new(Busy {
            wrapper,
            plan,
            ripe_at: wire.now.saturating_add(self.manners.pause),
            phase: Phase::Waiting,
            moved: 0,
            received: Vec::new(),
            stale: false,
        }));
    }

    /// Lets the hooks act.
    fn bend(&mut self, now: Nanoseconds, wrapper: &CommandWrapper, plan: &mut Plan, packet: usize) {
        let hooks = self.hooks.iter_mut();
        let mut actions: Vec<Action> = hooks.filter_map(|hook| hook.act(wrapper)).collect();
        if self.writes_broken && matches!(wrapper.cdb.first(), Some(0x2a | 0x8a)) {
            actions.push(Action::Fail(Sense::new(4, 0x44, 0x00)));
        }
        // What a unit says once is not lost in its own device.
        let tells = plan.failure.is_some_and(|sense| sense.is_attention());
        for action in actions {
            match action {
                Action::Fail(_) | Action::HaltData | Action::StatusAsData(_) if tells => {}
                Action::Hang(until) => {
                    self.idle = Some(Idle {
                        until,
                        crashed: false,
                    })
                }
                Action::Crash(until) => {
                    self.idle = Some(Idle {
                        until,
                        crashed: true,
                    })
                }
                Action::Leave(time) => {
                    self.absence = Some(now..now.saturating_add(time));
                    self.target.power_off();
                    self.target.power_on(now.saturating_add(time));
                }
                other => plan.bend(other, wrapper, self.manners.short, packet),
            }
        }
    }

    /// Whether data move too soon for the device, which then dies.
    pub(super) fn is_rushed(&mut self, now: Nanoseconds) -> bool {
        let rushed = match &self.state {
            State::Busy(busy) => now < busy.ripe_at && busy.plan.data != Data::Nothing,
            State::Command | State::Halted => false,
        };
        if rushed {
            self.idle = Some(Idle {
                until: Until::ClassReset,
                crashed: false,
            });
        }
        rushed
    }

    pub(super) fn halt(&self, wire: &mut Wire<'_>, end: End) {
        match end {
            End::HaltIn => wire.endpoints.halt(self.pipes.1),
            End::HaltOut => wire.endpoints.halt(self.pipes.2),
            End::Nothing | End::EmptyPacket => {}
        }
    }

    /// The data phase is over: marks its end, and hands what was received to the target.
    pub(super) fn end_data(&mut self, wire: &mut Wire<'_>) {
        let State::Busy(busy) = &mut self.state else {
            return;
        };
        let mut at = wire.now;
        if let Data::Out {
            keep: Some(keep), ..
        } = busy.plan.data
            && keep > 0
        {
            busy.received.truncate(keep);
            if busy.plan.inverted {
                busy.received.iter_mut().for_each(|byte| *byte = !*byte);
            }
            let (lun, cdb) = (busy.wrapper.lun, &busy.wrapper.cdb);
            let outcome = self.target.write(wire.now, lun, cdb, &busy.received);
            at = outcome.at.max(busy.due(busy.moved as u64));
            if busy.plan.failure.is_none() && outcome.failure.is_some() {
                busy.plan.failure = outcome.failure;
                busy.plan.status = 1;
            }
            self.target.keep_sense(lun, busy.plan.failure);
        }
        let end = busy.plan.end;
        at = at.saturating_add(busy.plan.shape.delay);
        busy.phase = if end == End::EmptyPacket {
            Phase::EmptyPacket
        } else {
            Phase::Status { at }
        };
        self.halt(wire, end);
    }

    pub(super) fn give_data(&mut self, wire: &mut Wire<'_>, maximum: usize) -> Given {
        let State::Busy(busy) = &mut self.state else {
            return Given::Busy;
        };
        let Data::In(bytes) = &busy.plan.data else {
            return Given::Busy;
        };
        let end = (busy.moved + maximum).min(bytes.len());
        if wire.now < busy.due(end as u64) {
            return Given::Busy;
        }
        let packet = bytes[busy.moved..end].to_vec();
        let last = end == bytes.len();
        busy.moved = end;
        if last {
            self.end_data(wire);
        }
        Given::Packet {
            bytes: packet,
            last,
        }
    }

    pub(super) fn give_status(&mut self, wire: &mut Wire<'_>) -> Given {
        let State::Busy(busy) = &mut self.state else {
            return Given::Busy;
        };
        let shape = &mut busy.plan.shape;
        if shape.halts > 0 {
            shape.halts -= 1;
            return Given::Halt;
        }
        if shape.empty_packet_first {
            shape.empty_packet_first = false;
            return Given::Packet {
                bytes: Vec::new(),
                last: true,
            };
        }
        let bytes = busy.plan.status_bytes(busy.wrapper.tag);
        if let Some(exchange) = self.exchanges.last_mut() {
            exchange.ended = Some(wire.now);
            exchange.status = bytes.get(12).copied();
        }
        self.state = State::Command;
        Given::Packet { bytes, last: true }
    }

    pub(super) fn take_data(&mut self, wire: &mut Wire<'_>, data: &[u8]) -> Taken {
        let State::Busy(busy) = &mut self.state else {
            return Taken::Busy;
        };
        let Data::Out { take, .. } = busy.plan.data else {
            return Taken::Busy;
        };
        if !busy.has_room(wire.now) {
            return Taken::Busy;
        }
        busy.moved += data.len();
        busy.received.extend(data);
        busy.received.truncate(take);
        let full = wire
            .endpoints
            .find(self.pipes.2)
            .is_some_and(|end| data.len() == end.maximum);
        if busy.moved < take && !full && !busy.stale {
            let text = format!("{} bytes came of the {take} announced", busy.moved);
            wire.violations.record(wire.now, "BOT 1.0 §6.7", text);
            let missing = u32::try_from(take - busy.moved).unwrap_or(0);
            busy.plan.residue = busy.plan.residue.saturating_add(missing);
            busy.moved = take;
        }
        if busy.moved >= take {
            self.end_data(wire);
            return Taken::Yes;
        }
        if busy.has_room(wire.now) {
            Taken::Yes
        } else {
            Taken::Last
        }
    }

    /// A packet from the host that is no data of the running command: the next wrapper came too
    /// early, or more data than announced.
    pub(super) fn take_out_of_turn(busy: &Busy, wire: &Wire<'_>) -> Taken {
        if !busy.stale {
            let tag = busy.wrapper.tag;
            let text = format!("an OUT packet before the status of command {tag:#x} was read");
            wire.violations.record(wire.now, "BOT 1.0 §5.3", text);
        }
        Taken::Busy
    }

    /// A bus reset or a new configuration ends the command, unless the device has the fault of going
    /// on.
    pub(super) fn leave_command(&mut self) {
        match &mut self.state {
            State::Busy(busy) if self.manners.survives_bus_reset => busy.stale = true,
            State::Halted if self.manners.survives_bus_reset || self.manners.starts_halted => {}
            state => *state = State::Command,
        }
    }

    pub(super) fn class_reset(&mut self, wire: &Wire<'_>, setup: &Setup) -> Answer {
        check(
            wire.violations,
            wire.now,
            setup,
            (u16::from(self.pipes.0), 0),
            "BOT 1.0 §3.1",
        );
        match self.manners.class_reset {
            ClassReset::Works => {}
            ClassReset::Ignored => return Answer::Accept,
            ClassReset::BreaksWrites => self.writes_broken = true,
        }
        self.idle = self.idle.filter(|idle| idle.until > Until::ClassReset);
        self.state = State::Command;
        Answer::Accept
    }
}

/// Records a class request whose fields are not what BOT 1.0 §3 says.
pub(super) fn check(
    violations: &Violations,
    now: Nanoseconds,
    setup: &Setup,
    (index, length): (u16, u16),
    section: &'static str,
) {
    if (setup.value, setup.index, setup.length) != (0, index, length) {
        violations.record(now, section, format!("the fields of {setup}"));
    }
}
