//! Hooks: what a faulty disk does differently, by command.
//!
//! A [`Hook`] is a trigger ([`When`]) and what then happens ([`Action`]). All hooks that match a
//! command act, in the order in which they were given, on the plan that a good device would carry
//! out. So several small actions make one odd answer.

use core::ops::Range;

use super::super::Nanoseconds;
use super::super::scsi::{Extent, Sense};
use super::plan::{Data, End, Plan, ShortEnd, Unwanted};
use super::wire::CommandWrapper;

/// Which commands a hook is for. Starts with all commands; every setter narrows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct When {
    opcode: Option<u8>,
    lun: Option<u8>,
    page: Option<u8>,
    lba: Option<Range<u64>>,
    more_blocks_than: u32,
    more_bytes_than: u32,
    skip: u32,
    times: u32,
}

/// Every command.
#[must_use]
pub const fn any() -> When {
    When {
        opcode: None,
        lun: None,
        page: None,
        lba: None,
        more_blocks_than: 0,
        more_bytes_than: 0,
        skip: 0,
        times: u32::MAX,
    }
}

/// Every command with this operation code.
#[must_use]
pub const fn opcode(opcode: u8) -> When {
    When {
        opcode: Some(opcode),
        ..any()
    }
}

impl When {
    /// Only for this logical unit.
    #[must_use]
    pub fn lun(self, lun: u8) -> Self {
        Self {
            lun: Some(lun),
            ..self
        }
    }

    /// Only with this byte 2: the VPD page of INQUIRY, page control and page of MODE SENSE.
    #[must_use]
    pub fn page(self, page: u8) -> Self {
        Self {
            page: Some(page),
            ..self
        }
    }

    /// Only reads, writes, verifications and flushes that touch one of these blocks.
    #[must_use]
    pub fn touching(self, blocks: Range<u64>) -> Self {
        Self {
            lba: Some(blocks),
            ..self
        }
    }

    /// Only reads, writes, verifications and flushes of more than so many blocks.
    #[must_use]
    pub fn longer_than(self, blocks: u32) -> Self {
        Self {
            more_blocks_than: blocks,
            ..self
        }
    }

    /// Only commands whose wrapper announces more than so many bytes.
    #[must_use]
    pub fn announcing_more_than(self, bytes: u32) -> Self {
        Self {
            more_bytes_than: bytes,
            ..self
        }
    }

    /// Not for the first `count` of these commands.
    #[must_use]
    pub fn after(self, count: u32) -> Self {
        Self {
            skip: count,
            ..self
        }
    }

    /// For so many of these commands and no more.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self {
            times: count,
            ..self
        }
    }

    /// For the first of these commands only.
    #[must_use]
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Whether this command triggers; counts.
    fn triggers(&mut self, wrapper: &CommandWrapper) -> bool {
        if !self.fits(wrapper) {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        let left = self.times > 0;
        self.times = self.times.saturating_sub(1);
        left
    }

    fn fits(&self, wrapper: &CommandWrapper) -> bool {
        let extent = Extent::of(&wrapper.cdb);
        let touches = self.lba.as_ref().is_none_or(|range| {
            extent.is_some_and(|extent| extent.lba < range.end && range.start < extent.end())
        });
        let longer = self.more_blocks_than == 0
            || extent.is_some_and(|extent| extent.blocks > self.more_blocks_than);
        self.opcode
            .is_none_or(|opcode| wrapper.cdb.first() == Some(&opcode))
            && self
                .page
                .is_none_or(|page| wrapper.cdb.get(2) == Some(&page))
            && self.lun.is_none_or(|lun| wrapper.lun == lun)
            && touches
            && longer
            && (self.more_bytes_than == 0 || wrapper.length > self.more_bytes_than)
    }
}

/// What ends a state of doing nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Until {
    /// Bulk-Only Mass Storage Reset, and all that is stronger.
    ClassReset,
    /// A bus reset, or loss of power.
    BusReset,
    /// Loss of power.
    PowerCycle,
}

/// What a hook does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// The command fails with this sense, without data.
    Fail(Sense),
    /// These data and good status in place of the usual (cut to the announced length).
    Data(Vec<u8>),
    /// Everything about this command comes so much later.
    Delay(Nanoseconds),
    /// NAK on both bulk pipes from this command on; endpoint 0 still answers.
    Hang(Until),
    /// No answer to anything, also on endpoint 0, from this command on.
    Crash(Until),
    /// The device shows no connection for so long and then comes back, as after a loss of power.
    Leave(Nanoseconds),
    /// No data: the pipe of the data phase halts and the command fails with 5/24/00.
    HaltData,
    /// Only so many bytes of data, ended as the device ends short data; good status, true residue.
    ShortData(usize),
    /// Only so many bytes of data, then at once the status, without any mark of an end.
    EarlyStatus(usize),
    /// So many bytes more than the command asks for (more than the host announced, too).
    LongData(usize),
    /// As many data as asked, but all bytes wrong (inverted); good status. A write stores them so.
    WrongData,
    /// So many transactions of the data phase get no answer: transaction errors. Three in a row halt
    /// an endpoint of a host that allows two.
    SilentData(u32),
    /// The status wrapper comes where the data should, and the command fails with this sense.
    StatusAsData(Sense),
    /// An empty packet before the status wrapper.
    EmptyPacketBeforeStatus,
    /// So many reads of the status find bulk IN halted.
    HaltStatus(u32),
    /// The status comes so much later than the data.
    DelayStatus(Nanoseconds),
    /// This status byte: 2 is a phase error.
    Status(u8),
    /// This tag.
    Tag(u32),
    /// This signature.
    Signature([u8; 4]),
    /// This residue.
    Residue(u32),
    /// So many bytes of status wrapper: cut, or filled up with zeros.
    StatusLength(usize),
}

/// A trigger and what follows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hook {
    /// The trigger.
    pub when: When,
    /// What happens.
    pub action: Action,
}

impl Hook {
    /// The action, if this command triggers it.
    pub(super) fn act(&mut self, wrapper: &CommandWrapper) -> Option<Action> {
        self.when.triggers(wrapper).then(|| self.action.clone())
    }
}

impl Plan {
    /// Bends the plan. What concerns the whole device (hang, crash, leave) is not the plan's. `short`
    /// and `packet` are as in [`super::plan::plan`].
    pub(super) fn bend(
        &mut self,
        action: Action,
        wrapper: &CommandWrapper,
        short: ShortEnd,
        packet: usize,
    ) {
        let host = wrapper.length as usize;
        match action {
            Action::Fail(sense) => self.fail(sense, wrapper),
            Action::HaltData => self.fail(Sense::BAD_FIELD, wrapper),
            Action::StatusAsData(sense) => {
                self.fail(sense, wrapper);
                self.end = End::Nothing;
            }
            Action::Data(mut bytes) => {
                bytes.truncate(host);
                self.give(bytes, host, short, packet);
                (self.status, self.failure) = (0, None);
            }
            Action::Delay(time) => self.ready_at = self.ready_at.saturating_add(time),
            Action::ShortData(length) => self.shorten(length, host, short, packet),
            Action::EarlyStatus(length) => {
                self.shorten(length, host, short, packet);
                self.end = End::Nothing;
            }
            Action::LongData(surplus) => {
                if let Data::In(bytes) = &mut self.data {
                    bytes.resize(bytes.len() + surplus, 0xee);
                }
            }
            Action::WrongData => {
                self.inverted = true;
                if let Data::In(bytes) = &mut self.data {
                    bytes.iter_mut().for_each(|byte| *byte = !*byte);
                }
            }
            Action::SilentData(transactions) => self.silent = transactions,
            other => self.shape.bend(other),
        }
    }

    fn fail(&mut self, sense: Sense, wrapper: &CommandWrapper) {
        (self.status, self.failure, self.data) = (1, Some(sense), Data::Nothing);
        self.residue = wrapper.length;
        self.end = match (wrapper.length, wrapper.to_host) {
            (0, _) => End::Nothing,
            (_, true) => End::HaltIn,
            (_, false) => End::HaltOut,
        };
    }

    fn shorten(&mut self, length: usize, host: usize, short: ShortEnd, packet: usize) {
        match &mut self.data {
            Data::In(bytes) => {
                let mut bytes = core::mem::take(bytes);
                bytes.truncate(length);
                self.give(bytes, host, short, packet);
            }
            Data::Out { .. } => self.take(length, host, Unwanted::Halt),
            Data::Nothing => {}
        }
    }
}

impl super::plan::StatusShape {
    fn bend(&mut self, action: Action) {
        match action {
            Action::EmptyPacketBeforeStatus => self.empty_packet_first = true,
            Action::HaltStatus(times) => self.halts = times,
            Action::DelayStatus(time) => self.delay = time,
            Action::Status(status) => self.status = Some(status),
            Action::Tag(tag) => self.tag = Some(tag),
            Action::Signature(signature) => self.signature = Some(signature),
            Action::Residue(residue) => self.residue = Some(residue),
            Action::StatusLength(length) => self.length = Some(length),
            _ => unreachable!("an action on data or on the whole device"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(cdb: &[u8]) -> CommandWrapper {
        let cdb = cdb.to_vec();
        CommandWrapper {
            tag: 1,
            length: 512,
            to_host: true,
            lun: 0,
            cdb,
            flaw: None,
        }
    }

    #[test]
    fn a_trigger_counts_only_the_commands_that_fit() {
        let mut when = opcode(0x00).after(1).times(2);
        let (test, inquiry) = (command(&[0; 6]), command(&[0x12, 0, 0, 0, 36, 0]));
        let triggered: Vec<bool> = [&test, &inquiry, &test, &inquiry, &test, &test]
            .map(|c| when.triggers(c))
            .to_vec();
        assert_eq!(triggered, [false, false, true, false, true, false]);
    }

    #[test]
    fn a_trigger_on_blocks_needs_a_command_with_blocks() {
        let read = command(&[0x28, 0, 0, 0, 0, 100, 0, 0, 8, 0]);
        assert!(any().touching(107..200).triggers(&read));
        assert!(!any().touching(108..200).triggers(&read));
        assert!(any().longer_than(7).triggers(&read));
        assert!(!any().longer_than(8).triggers(&read));
        assert!(!any().longer_than(7).triggers(&command(&[0; 6])));
        assert!(any().announcing_more_than(511).triggers(&read));
        assert!(!any().announcing_more_than(512).triggers(&read));
    }

    #[test]
    fn a_trigger_on_a_page_looks_at_byte_two() {
        let page = command(&[0x12, 1, 0xb0, 0, 64, 0]);
        assert!(opcode(0x12).page(0xb0).triggers(&page));
        assert!(!opcode(0x12).page(0x80).triggers(&page));
        assert!(!opcode(0x12).lun(1).triggers(&page));
    }
}
