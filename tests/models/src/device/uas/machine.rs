//! The UAS device: which commands it has, whose data phase it is, and what it has to say.

use std::collections::VecDeque;

use super::super::base::{Taken, Wire};
use super::super::scsi::{Execution, Intent, Sense, StatusLoss, Target};
use super::super::{Link, Nanoseconds, Violations};
use super::fault::{Fault, Manners, TaskManner, What};
use super::wire::{self, Unit};

/// One command as it travelled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// When it came.
    pub at: Nanoseconds,
    /// Its tag.
    pub tag: u16,
    /// For which unit.
    pub lun: u8,
    /// Its command block.
    pub cdb: Vec<u8>,
    /// How many other commands the device had then.
    pub beside: usize,
    /// When its status left, if it did.
    pub ended: Option<Nanoseconds>,
}

/// A task management function that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    /// When.
    pub at: Nanoseconds,
    /// Its own tag.
    pub tag: u16,
    /// 01: ABORT TASK, 08: LOGICAL UNIT RESET.
    pub function: u8,
    /// The command that it is about.
    pub target: u16,
    /// For which unit.
    pub lun: u8,
}

/// Where a command is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Its data phase, if it has one, is still to come.
    Waiting,
    /// Its data move.
    Data,
    /// Nothing more comes of it.
    Stuck,
}

/// A command that the device has.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) tag: u16,
    /// Where its data and its status move, if there are streams.
    pub(super) stream: u16,
    pub(super) lun: u8,
    pub(super) cdb: Vec<u8>,
    pub(super) execution: Execution,
    pub(super) phase: Phase,
    pub(super) moved: usize,
    pub(super) received: Vec<u8>,
    pub(super) what: Option<What>,
    /// Its place in the list of exchanges.
    pub(super) exchange: usize,
}

impl Running {
    /// Whether its data go to the host; `None` without any.
    pub(super) fn direction(&self) -> Option<bool> {
        match self.execution.intent {
            Intent::Nothing => None,
            Intent::In(_) => Some(true),
            Intent::Out(_) => Some(false),
        }
    }
}

/// A unit that is to be given on the status pipe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Outgoing {
    pub(super) at: Nanoseconds,
    /// The tag, which is the stream where there are streams.
    pub(super) stream: u16,
    pub(super) bytes: Vec<u8>,
    /// The data phase that it opens.
    pub(super) opens: Option<u16>,
    /// It is the status of a command that was given up: the device sends it all the same, and believes that
    /// the tag is free.
    pub(super) is_leftover: bool,
}

/// The function of a UAS disk.
#[derive(Debug)]
pub struct Uas {
    /// The SCSI side.
    pub target: Target,
    /// Faults by command.
    pub faults: Vec<Fault>,
    /// Habits.
    pub manners: Manners,
    /// All commands as they travelled, oldest first.
    pub exchanges: Vec<Exchange>,
    /// All task management functions that came, oldest first.
    pub tasks: Vec<Task>,
    /// The tags of statuses that were fetched although their commands had been given up, oldest first.
    pub leftovers: Vec<u16>,
    /// Streams at SuperSpeed.
    pub(super) streams: u16,
    pub(super) commands: Vec<Running>,
    pub(super) outgoing: VecDeque<Outgoing>,
    /// Whose data phase it is, to the host and from it; without streams only.
    pub(super) turn: [Option<u16>; 2],
    /// The firmware has started anew and no data phase was opened since: the host may still ask for
    /// one that was open before.
    pub(super) forgot_turns: bool,
    /// The pipes with streams that the host has primed.
    pub(super) primed: Vec<u8>,
    /// When the medium has done all that it was given so far.
    medium_free_at: Nanoseconds,
}

/// How long so many bytes take on the wire (USB 2.0 §5.8.4; USB 3.2 §8: 1024 in 2.16 µs).
pub(super) const fn wire_time(link: Link, bytes: usize) -> Nanoseconds {
    let (time, count) = if link.is_super() {
        (2_160, 1_024)
    } else {
        (125_000, 13 * 512)
    };
    bytes as u64 * time / count
}

/// Command OUT, status IN, data IN, data OUT.
pub(super) const PIPES: [u8; 4] = [0x01, 0x82, 0x83, 0x04];

impl Uas {
    /// A disk over `target`, with so many streams at SuperSpeed.
    #[must_use]
    pub fn new(target: Target, streams: u16) -> Self {
        Self {
            target,
            faults: Vec::new(),
            manners: Manners::default(),
            exchanges: Vec::new(),
            tasks: Vec::new(),
            leftovers: Vec::new(),
            streams,
            commands: Vec::new(),
            outgoing: VecDeque::new(),
            turn: [None; 2],
            forgot_turns: false,
            primed: Vec::new(),
            medium_free_at: 0,
        }
    }

    /// The medium works on so many bytes from `from` on, one command after the other: when it is done.
    /// A medium without a pace is done at once.
    pub(super) fn occupy_medium(
        &mut self,
        from: Nanoseconds,
        bytes: usize,
        rate: Option<u64>,
    ) -> Nanoseconds {
        let Some(rate) = rate else {
            return from;
        };
        let time = bytes as u64 * 1_000_000_000 / rate.max(1);
        self.medium_free_at = self.medium_free_at.max(from) + time;
        self.medium_free_at
    }

    /// So many bytes have come for the medium, which worked on them as they came: when it is done.
    pub(super) fn medium_took(
        &mut self,
        now: Nanoseconds,
        link: Link,
        bytes: usize,
        rate: Option<u64>,
    ) -> Nanoseconds {
        let began = now.saturating_sub(wire_time(link, bytes));
        self.occupy_medium(began, bytes, rate).max(now)
    }

    /// Commands that the device has now.
    #[must_use]
    pub fn holds(&self) -> usize {
        self.commands.len()
    }

    /// All commands are lost without a word: nexus loss.
    pub(super) fn lose_all(&mut self) {
        self.commands.clear();
        self.outgoing.clear();
        self.turn = [None; 2];
    }

    /// The device's firmware starts anew, without a word and with its link up: all commands and what
    /// the caches held are gone, and the next command of each unit is told of a reset.
    fn start_anew(&mut self) {
        self.lose_all();
        self.forgot_turns = true;
        for unit in &mut self.target.units {
            unit.image.drop_cache();
            unit.raise(Sense::RESET);
        }
    }

    pub(super) fn random(&mut self, below: usize) -> usize {
        let seed = &mut self.manners.seed;
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        (*seed % below.max(1) as u64) as usize
    }

    pub(super) fn say(&mut self, at: Nanoseconds, stream: u16, bytes: Vec<u8>) {
        self.outgoing.push_back(Outgoing {
            at,
            stream,
            bytes,
            opens: None,
            is_leftover: false,
        });
    }

    /// A packet on the command pipe.
    pub(super) fn take_unit(&mut self, wire: &Wire<'_>, bytes: &[u8]) -> Taken {
        match wire::parse(bytes) {
            Err(text) => {
                wire.violations.record(wire.now, "UAS §6.2", text);
                if let [_, _, high, low, ..] = bytes {
                    let tag = u16::from_be_bytes([*high, *low]);
                    self.say(wire.now, tag, wire::response(tag, 0x02));
                }
            }
            Ok(unit) => self.take_parsed(wire, unit),
        }
        Taken::Yes
    }

    fn take_parsed(&mut self, wire: &Wire<'_>, unit: Unit) {
        let (Unit::Command { tag, .. } | Unit::Task { tag, .. }) = unit;
        let limit = if wire.link.is_super() {
            self.streams
        } else {
            u16::MAX
        };
        if tag == 0 || tag > limit {
            let text = format!("tag {tag}, where tags run from 1 to {limit}");
            wire.violations.record(wire.now, "UAS §4.2", text);
        }
        let in_use = self.commands.iter().any(|command| command.tag == tag);
        let mut outgoing = self.outgoing.iter();
        let said = outgoing.any(|unit| unit.stream == tag && !unit.is_leftover);
        if in_use || said {
            let text = format!("tag {tag} is in use");
            wire.violations.record(wire.now, "UAS §4.2", text);
            self.lose_all();
            return self.say(wire.now, tag, wire::response(tag, 0x0a));
        }
        match unit {
            Unit::Command { tag, lun, cdb } => self.begin(wire, tag, lun, cdb),
            Unit::Task {
                tag,
                function,
                target,
                lun,
            } => {
                let task = Task {
                    at: wire.now,
                    tag,
                    function,
                    target,
                    lun,
                };
                self.tasks.push(task);
                self.manage(wire.now, &task, wire.violations);
            }
        }
    }

    fn begin(&mut self, wire: &Wire<'_>, tag: u16, lun: u8, cdb: Vec<u8>) {
        let now = wire.now;
        self.exchanges.push(Exchange {
            at: now,
            tag,
            lun,
            cdb: cdb.clone(),
            beside: self.commands.len(),
            ended: None,
        });
        if self.commands.len() >= self.manners.room {
            return self.say(now, tag, wire::sense(tag, 0x28, &[]));
        }
        let what = self.faults.iter_mut().find_map(|fault| fault.act(&cdb));
        match what {
            Some(What::Response(code)) => return self.say(now, tag, wire::response(tag, code)),
            Some(What::Status(status)) => {
                return self.say(now, tag, wire::sense(tag, status, &[]));
            }
            Some(What::Fail(sense)) => {
                return self.say(now, tag, wire::sense(tag, 2, &sense.fixed()));
            }
            Some(What::SkipData) => return self.say(now, tag, wire::sense(tag, 0, &[])),
            Some(What::ResetItself) => return self.start_anew(),
            _ => {}
        }
        let mut execution = self.target.execute(now, lun, &cdb);
        if let Intent::In(bytes) = &execution.intent {
            // The data begin to move so that they need not wait for the medium any more.
            let (length, rate) = (bytes.len(), execution.bytes_per_second);
            let done = self.occupy_medium(execution.ready_at, length, rate);
            let begins = done.saturating_sub(wire_time(wire.link, length));
            execution.ready_at = execution.ready_at.max(begins);
        }
        let beyond = wire.link.is_super() && tag > self.manners.streams_served;
        let phase = match what {
            Some(What::Hang) => Phase::Stuck,
            _ if beyond => Phase::Stuck,
            _ => Phase::Waiting,
        };
        let stream = match what {
            Some(What::WrongStream(other)) if self.has_streams(wire) => other,
            _ => tag,
        };
        self.commands.push(Running {
            tag,
            stream,
            lun,
            cdb,
            execution,
            phase,
            moved: 0,
            received: Vec::new(),
            what,
            exchange: self.exchanges.len() - 1,
        });
    }

    fn manage(&mut self, now: Nanoseconds, task: &Task, violations: &Violations) {
        let manner = match task.function {
            0x01 => self.manners.abort,
            0x08 => self.manners.unit_reset,
            other => {
                let text = format!("task management function {other:#04x}");
                violations.record(now, "UAS §6.2.3", text);
                TaskManner::Refuses(0x04)
            }
        };
        let code = match manner {
            TaskManner::Ignores => return,
            TaskManner::Refuses(code) => code,
            TaskManner::Works | TaskManner::LeavesStatus | TaskManner::WithoutAttention
                if task.function == 0x01 =>
            {
                self.forget(manner, |tag, lun| tag == task.target && lun == task.lun);
                0x00
            }
            TaskManner::Works | TaskManner::LeavesStatus | TaskManner::WithoutAttention => {
                self.forget(manner, |_, lun| lun == task.lun);
                if let Some(unit) = self.target.units.get_mut(usize::from(task.lun)) {
                    unit.unit_reset();
                    if manner != TaskManner::WithoutAttention {
                        unit.raise(Sense::RESET);
                    }
                }
                0x00
            }
        };
        self.say(now, task.tag, wire::response(task.tag, code));
    }

    /// Gives commands up, also those whose status was not fetched yet: nothing more is heard of them, or no
    /// more than that.
    fn forget(&mut self, manner: TaskManner, which: impl Fn(u16, u8) -> bool) {
        let running = self.commands.iter();
        let running = running.map(|command| (command.tag, command.lun));
        let ended = self.outgoing.iter().filter_map(|unit| {
            let mut exchanges = self.exchanges.iter().rev();
            let of_its_tag = exchanges.find(|exchange| exchange.tag == unit.stream)?;
            Some((unit.stream, of_its_tag.lun))
        });
        let all = running.chain(ended);
        let gone: Vec<u16> = all
            .filter(|(tag, lun)| which(*tag, *lun))
            .map(|(tag, _)| tag)
            .collect();
        self.commands.retain(|command| !gone.contains(&command.tag));
        let is_status = |unit: &Outgoing| unit.opens.is_none() && unit.bytes.first() == Some(&0x03);
        self.outgoing.retain_mut(|unit| {
            let is_gone = gone.contains(&unit.stream);
            unit.is_leftover |= is_gone && is_status(unit);
            !is_gone || unit.is_leftover && manner == TaskManner::LeavesStatus
        });
        for turn in &mut self.turn {
            if turn.is_some_and(|tag| gone.contains(&tag)) {
                *turn = None;
            }
        }
    }

    /// The command at this place is over at the device: its status goes out.
    pub(super) fn end(&mut self, now: Nanoseconds, place: usize, failure: Option<Sense>) {
        let command = &mut self.commands[place];
        match self.target.lose_status(failure) {
            Some(StatusLoss::Silent) => command.what = Some(What::LoseStatus),
            Some(StatusLoss::Damaged) => command.what = Some(What::BulkOnlyWords),
            None => {}
        }
        let tag = command.tag;
        let mut at = now;
        let mut bytes = match failure {
            None => wire::sense(tag, 0, &[]),
            Some(sense) => wire::sense(tag, 2, &sense.fixed()),
        };
        match command.what {
            Some(What::LoseStatus) => {
                command.phase = Phase::Stuck;
                return;
            }
            Some(What::DelayStatus(time)) => at = now.saturating_add(time),
            Some(What::WrongTag(other)) => bytes[2..4].copy_from_slice(&other.to_be_bytes()),
            Some(What::BulkOnlyWords) => bytes = b"USBSUSBSUSBSUSBS".to_vec(),
            _ => {}
        }
        let (exchange, stream) = (command.exchange, command.stream);
        self.commands.remove(place);
        self.exchanges[exchange].ended = Some(at);
        self.say(at, stream, bytes);
    }
}
