//! The target: addressing of units, strictness, attentions, sense, and the list of commands.

use super::super::{Nanoseconds, Violations};
use super::cdb::{Extent, first_reserved, reserved_bits};
use super::sense::Sense;
use super::unit::{Attention, LogicalUnit, Scripted};
use super::{ata, cdb, discard, inquiry, medium, parameters};

/// What a command wants to transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Intent {
    /// No data.
    Nothing,
    /// These bytes to the host.
    In(Vec<u8>),
    /// So many bytes from the host, for [`Target::write`].
    Out(usize),
}

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// `None`: GOOD. Else CHECK CONDITION with this sense.
    pub failure: Option<Sense>,
    /// When the status is there.
    pub at: Nanoseconds,
}

/// What became of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Execution {
    /// The data phase that the device intends.
    pub intent: Intent,
    /// The bytes that the CDB speaks of, which a failing read does not all deliver.
    pub wanted: usize,
    /// When the first byte can move, or the status is there if there are no data.
    pub ready_at: Nanoseconds,
    /// How fast data move; `None`: as fast as the wire.
    pub bytes_per_second: Option<u64>,
    /// The failure, after the data if there are any. For [`Intent::Out`] see [`Target::write`].
    pub failure: Option<Sense>,
}

impl Execution {
    pub(super) fn fail(unit: Option<&LogicalUnit>, now: Nanoseconds, sense: Sense) -> Self {
        Self {
            failure: Some(sense),
            ..Self::nothing(unit, now)
        }
    }

    pub(super) fn nothing(unit: Option<&LogicalUnit>, now: Nanoseconds) -> Self {
        Self {
            intent: Intent::Nothing,
            wanted: 0,
            ready_at: now.saturating_add(unit.map_or(0, |unit| unit.timing.access)),
            bytes_per_second: unit.and_then(|unit| unit.timing.bytes_per_second),
            failure: None,
        }
    }

    /// Parameter data, cut to what the host has room for.
    pub(super) fn parameters(
        unit: Option<&LogicalUnit>,
        now: Nanoseconds,
        cdb: &[u8],
        mut bytes: Vec<u8>,
    ) -> Self {
        bytes.truncate(cdb::allocation(cdb));
        let wanted = bytes.len();
        Self {
            intent: Intent::In(bytes),
            wanted,
            ..Self::nothing(unit, now)
        }
    }
}

/// One command that the target saw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// When it came.
    pub at: Nanoseconds,
    /// For which unit.
    pub lun: u8,
    /// Its bytes.
    pub cdb: Vec<u8>,
    /// The sense that it failed with, if it failed.
    pub failure: Option<Sense>,
}

impl Command {
    /// The operation code.
    #[must_use]
    pub fn opcode(&self) -> u8 {
        self.cdb.first().copied().unwrap_or(0)
    }

    /// Address and length, of commands on the medium.
    #[must_use]
    pub fn extent(&self) -> Option<Extent> {
        Extent::of(&self.cdb)
    }
}

/// How a status is lost on its way to the host. The device takes it for told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatusLoss {
    /// Nothing arrives.
    Silent,
    /// What arrives is no status.
    Damaged,
}

/// Units behind one transport.
#[derive(Debug)]
pub struct Target {
    /// The units, by logical unit number from 0.
    pub units: Vec<LogicalUnit>,
    /// Every command that came, oldest first.
    pub commands: Vec<Command>,
    /// What the host did wrong.
    pub violations: Violations,
    /// The status of the next command that fails with a unit attention is lost so.
    pub attention_loss: Option<StatusLoss>,
}

impl Target {
    /// A target with these units.
    ///
    /// # Panics
    /// Unless there are 1 to 256 units.
    #[must_use]
    pub fn new(units: Vec<LogicalUnit>, violations: Violations) -> Self {
        assert!(
            (1..=256).contains(&units.len()),
            "a target has 1 to 256 units"
        );
        Self {
            units,
            commands: Vec::new(),
            violations,
            attention_loss: None,
        }
    }

    /// How the status of a command that fails so, or ends well, is lost.
    pub fn lose_status(&mut self, failure: Option<Sense>) -> Option<StatusLoss> {
        let tells = failure.is_some_and(|sense| sense.is_attention());
        self.attention_loss.take_if(|_| tells)
    }

    /// Executes a command up to the point where it needs data from the host.
    pub fn execute(&mut self, now: Nanoseconds, lun: u8, cdb: &[u8]) -> Execution {
        let execution = self.run(now, lun, cdb);
        let failure = execution.failure;
        self.commands.push(Command {
            at: now,
            lun,
            cdb: cdb.to_vec(),
            failure,
        });
        execution
    }

    /// Takes the data of a command whose intent was [`Intent::Out`]. Fewer bytes than intended write
    /// just the whole blocks that came.
    pub fn write(&mut self, now: Nanoseconds, lun: u8, cdb: &[u8], data: &[u8]) -> Outcome {
        let Some(unit) = self.units.get_mut(usize::from(lun)) else {
            return Outcome {
                failure: Some(Sense::NO_SUCH_UNIT),
                at: now,
            };
        };
        let failure = match cdb.first() {
            Some(0x42 | 0x93) => discard::write(unit, now, cdb, data, &self.violations),
            _ => medium::write(unit, cdb, data),
        };
        let at = now.saturating_add(unit.timing.program);
        if let Some(command) = self.commands.last_mut() {
            command.failure = failure;
        }
        Outcome { failure, at }
    }

    /// Keeps `failure` for REQUEST SENSE, as a transport without autosense needs it. Each command but
    /// REQUEST SENSE ends with this, also a good one, which clears what was kept.
    pub fn keep_sense(&mut self, lun: u8, failure: Option<Sense>) {
        if let Some(unit) = self.units.get_mut(usize::from(lun)) {
            unit.state.kept = failure;
        }
    }

    /// VBUS came.
    pub fn power_on(&mut self, now: Nanoseconds) {
        self.units.iter_mut().for_each(|unit| unit.power_on(now));
    }

    /// VBUS went: volatile caches are lost.
    pub fn power_off(&mut self) {
        self.units.iter_mut().for_each(LogicalUnit::power_off);
    }

    /// A bus reset ended.
    pub fn bus_reset(&mut self) {
        self.units.iter_mut().for_each(LogicalUnit::bus_reset);
    }

    fn run(&mut self, now: Nanoseconds, lun: u8, cdb: &[u8]) -> Execution {
        let Some(&opcode) = cdb.first() else {
            self.violations
                .record(now, "SPC-4 §4.2", "a command without an operation code");
            return Execution::fail(None, now, Sense::UNKNOWN_COMMAND);
        };
        let luns = self.units.len();
        let Some(unit) = self.units.get_mut(usize::from(lun)) else {
            return without_unit(now, opcode, cdb, luns);
        };
        if opcode == 0x03 {
            return request_sense(unit, now, cdb);
        }
        if !matches!(opcode, 0x12 | 0xa0)
            && let Some(sense) = unit.take_attention()
        {
            return Execution::fail(Some(unit), now, sense);
        }
        if let Some(scripted) = unit.scripted.get(&opcode).cloned() {
            return answer_scripted(unit, now, cdb, scripted);
        }
        if let Some(failure) = refuse(unit, now, cdb, &self.violations) {
            return Execution::fail(Some(unit), now, failure);
        }
        match opcode {
            0x12 => inquiry::execute(unit, now, cdb),
            0xa0 => inquiry::report_luns(Some(unit), now, cdb, luns),
            0x1a | 0x5a => parameters::mode_sense(unit, now, cdb),
            0x25 | 0x9e => parameters::read_capacity(unit, now, cdb),
            0x42 | 0x93 => discard::execute(unit, now, cdb, &self.violations),
            0x85 | 0xa1 => ata::execute(unit, now, cdb, &self.violations),
            _ => medium::execute(unit, now, cdb, &self.violations),
        }
    }
}

impl LogicalUnit {
    /// The attention to report, which goes away by being reported unless it waits for REQUEST SENSE.
    fn take_attention(&mut self) -> Option<Sense> {
        match self.attention {
            Attention::OnceReported => self.state.attentions.pop_front(),
            Attention::UntilSense => self.state.attentions.front().copied(),
        }
    }
}

/// Unknown commands and commands with wrong bits.
fn refuse(
    unit: &LogicalUnit,
    now: Nanoseconds,
    cdb: &[u8],
    violations: &Violations,
) -> Option<Sense> {
    let opcode = cdb[0];
    let known = match opcode {
        0x88 | 0x8a | 0x8f | 0x9e => unit.knows_16,
        0x35 => unit.knows_flush,
        0x91 => unit.knows_flush && unit.knows_16,
        0x42 => unit.provisioning.is_some_and(|it| it.knows_unmap),
        0x93 => unit.maximum_write_same.is_some(),
        0x85 | 0xa1 => unit.ata.as_ref().is_some_and(|ata| ata.knows(opcode)),
        _ => true,
    };
    let Some(mask) = reserved_bits(opcode).filter(|_| known) else {
        return Some(Sense::UNKNOWN_COMMAND);
    };
    if cdb.len() != mask.len() {
        let text = format!(
            "command {opcode:#04x} has {} bytes, not {}",
            cdb.len(),
            mask.len()
        );
        violations.record(now, "SPC-4 §4.2", text);
        return Some(Sense::BAD_FIELD);
    }
    if let Some(byte) = first_reserved(cdb, mask) {
        let text = format!("byte {byte} of command {opcode:#04x} is {:#04x}", cdb[byte]);
        violations.record(now, "SPC-4 §4.2", text);
        return Some(Sense::BAD_FIELD);
    }
    None
}

/// REQUEST SENSE: what a failed command left, else a pending attention, else whether the unit is
/// ready (SPC-4 §6.39).
fn request_sense(unit: &mut LogicalUnit, now: Nanoseconds, cdb: &[u8]) -> Execution {
    let kept = unit.state.kept.take();
    let pending = match unit.attention {
        Attention::UntilSense => unit.state.attentions.pop_front(),
        Attention::OnceReported if kept.is_none() => unit.state.attentions.pop_front(),
        Attention::OnceReported => None,
    };
    let sense = kept
        .or(pending)
        .or_else(|| unit.not_ready(now))
        .unwrap_or(Sense::NONE);
    let descriptors = cdb.get(1).is_some_and(|byte| byte & 1 != 0);
    let bytes = if descriptors {
        sense.descriptors()
    } else {
        sense.fixed()
    };
    Execution::parameters(Some(unit), now, cdb, bytes)
}

/// Commands to a unit that does not exist (SPC-4 §6.6, §6.33, §6.39).
fn without_unit(now: Nanoseconds, opcode: u8, cdb: &[u8], luns: usize) -> Execution {
    match opcode {
        0x12 => Execution::parameters(None, now, cdb, inquiry::nobody()),
        0x03 => Execution::parameters(None, now, cdb, Sense::NO_SUCH_UNIT.fixed()),
        0xa0 => inquiry::report_luns(None, now, cdb, luns),
        _ => Execution::fail(None, now, Sense::NO_SUCH_UNIT),
    }
}

fn answer_scripted(
    unit: &mut LogicalUnit,
    now: Nanoseconds,
    cdb: &[u8],
    scripted: Scripted,
) -> Execution {
    match scripted {
        Scripted::Fail(sense) => Execution::fail(Some(unit), now, sense),
        Scripted::Data(bytes) => {
            parameters::remember_capacity(unit, cdb, &bytes);
            Execution::parameters(Some(unit), now, cdb, bytes)
        }
    }
}
