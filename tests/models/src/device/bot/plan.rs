//! What the device will do for one command: data, how they end, and the status wrapper.
//!
//! [`plan`] is the table of the thirteen cases (BOT 1.0 §6.7): it compares what the host announced
//! with what the command wants. Hooks bend the plan afterwards.

use super::super::Nanoseconds;
use super::super::scsi::{Execution, Extent, Intent, Sense};
use super::wire::{CommandWrapper, status_wrapper};

/// How a device ends data that are shorter than the host announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShortEnd {
    /// By a short packet where there is one, else by a halt. What most do.
    Packet,
    /// By a short packet where there is one, and by a halt besides (BOT 1.0 §6.7.2 to the letter).
    Halt,
    /// By a short packet, if need be an empty one; never by a halt.
    EmptyPacket,
    /// Not at all: the rest is zeros.
    Padding,
}

/// What a device does with data from the host that it does not want.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unwanted {
    /// Halts bulk OUT.
    Halt,
    /// Takes and forgets them.
    Swallow,
}

/// The data phase.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Data {
    Nothing,
    In(Vec<u8>),
    /// `take` bytes from the host, the first `keep` of them for the target.
    Out {
        take: usize,
        keep: Option<usize>,
    },
}

/// What marks the end of the data phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// Nothing but the number of bytes, or the short packet.
    Nothing,
    HaltIn,
    HaltOut,
    EmptyPacket,
}

/// How the status wrapper differs from what it should be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct StatusShape {
    pub(super) signature: Option<[u8; 4]>,
    pub(super) tag: Option<u32>,
    pub(super) residue: Option<u32>,
    pub(super) status: Option<u8>,
    pub(super) length: Option<usize>,
    /// So many reads of the status find the endpoint halted.
    pub(super) halts: u32,
    /// An empty packet comes before.
    pub(super) empty_packet_first: bool,
    pub(super) delay: Nanoseconds,
}

/// Everything that will happen for one command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    /// The number of the case, 1 to 13.
    pub(super) case: u8,
    pub(super) ready_at: Nanoseconds,
    pub(super) bytes_per_second: Option<u64>,
    pub(super) data: Data,
    pub(super) end: End,
    pub(super) residue: u32,
    /// 0 good, 1 failed, 2 phase error.
    pub(super) status: u8,
    pub(super) failure: Option<Sense>,
    pub(super) shape: StatusShape,
    /// All bytes that come from the host are inverted before they are stored.
    pub(super) inverted: bool,
    /// So many transactions of the data phase get no answer.
    pub(super) silent: u32,
}

/// The plan for a command by the thirteen cases. `packet` is the packet size of bulk IN.
pub(super) fn plan(
    wrapper: &CommandWrapper,
    execution: Execution,
    (short, unwanted): (ShortEnd, Unwanted),
    packet: usize,
) -> Plan {
    let host = wrapper.length as usize;
    let case = case(wrapper, &execution);
    let mut plan = Plan {
        case,
        ready_at: execution.ready_at,
        bytes_per_second: execution.bytes_per_second,
        data: Data::Nothing,
        end: End::Nothing,
        residue: wrapper.length,
        status: u8::from(execution.failure.is_some()),
        failure: execution.failure,
        shape: StatusShape::default(),
        inverted: false,
        silent: 0,
    };
    let mut bytes = match execution.intent {
        Intent::In(bytes) => bytes,
        Intent::Nothing | Intent::Out(_) => Vec::new(),
    };
    match case {
        1 => {}
        4..=6 => plan.give(core::mem::take(&mut bytes), host, short, packet),
        9 | 11 | 12 => plan.take(execution.wanted, host, unwanted),
        _ => {
            plan.status = 2;
            plan.failure = None;
        }
    }
    match case {
        7 => {
            bytes.truncate(host);
            plan.data = Data::In(bytes);
        }
        8 => plan.end = End::HaltIn,
        10 => plan.end = End::HaltOut,
        13 => {
            plan.data = Data::Out {
                take: host,
                keep: None,
            }
        }
        _ => {}
    }
    plan
}

/// The number of the case (BOT 1.0 §6.7, figure 3).
fn case(wrapper: &CommandWrapper, execution: &Execution) -> u8 {
    use core::cmp::Ordering::{Equal, Greater, Less};
    let host = wrapper.length as usize;
    let order = host.cmp(&execution.wanted);
    match (host, wrapper.to_host, &execution.intent) {
        (0, _, Intent::Nothing) => 1,
        (0, _, Intent::In(_)) => 2,
        (0, _, Intent::Out(_)) => 3,
        (_, true, Intent::Nothing) => 4,
        (_, true, Intent::In(_)) => match order {
            Greater => 5,
            Equal => 6,
            Less => 7,
        },
        (_, true, Intent::Out(_)) => 8,
        (_, false, Intent::Nothing) => 9,
        (_, false, Intent::In(_)) => 10,
        (_, false, Intent::Out(_)) => match order {
            Greater => 11,
            Equal => 12,
            Less => 13,
        },
    }
}

/// What the host did wrong in announcing the length, if anything: a case that ends in a phase error,
/// or a command on the medium whose blocks are not what was announced.
pub(super) fn fault(wrapper: &CommandWrapper, plan: &Plan) -> Option<String> {
    let opcode = wrapper.cdb.first().copied().unwrap_or(0);
    let on_medium = matches!(opcode, 0x28 | 0x2a | 0x88 | 0x8a) && plan.failure.is_none();
    let counts = Extent::of(&wrapper.cdb).is_some() && on_medium;
    match plan.case {
        2 | 3 | 7 | 8 | 10 | 13 => {}
        4 | 5 | 9 | 11 if counts => {}
        _ => return None,
    }
    let (length, case) = (wrapper.length, plan.case);
    Some(format!(
        "{length} bytes announced for command {opcode:#04x}: case {case}"
    ))
}

impl Plan {
    /// Data to a host that awaits `host` bytes (cases 4, 5 and 6).
    pub(super) fn give(&mut self, mut bytes: Vec<u8>, host: usize, short: ShortEnd, packet: usize) {
        self.residue = u32::try_from(host - bytes.len()).unwrap_or(0);
        let ends_in_short_packet = !bytes.len().is_multiple_of(packet);
        self.end = match short {
            _ if bytes.len() == host => End::Nothing,
            ShortEnd::Padding => {
                bytes.resize(host, 0);
                End::Nothing
            }
            ShortEnd::Halt => End::HaltIn,
            ShortEnd::Packet | ShortEnd::EmptyPacket if ends_in_short_packet => End::Nothing,
            ShortEnd::Packet => End::HaltIn,
            ShortEnd::EmptyPacket => End::EmptyPacket,
        };
        self.data = if bytes.is_empty() {
            Data::Nothing
        } else {
            Data::In(bytes)
        };
    }

    /// Data from a host that has `host` bytes (cases 9, 11 and 12).
    pub(super) fn take(&mut self, wanted: usize, host: usize, unwanted: Unwanted) {
        self.residue = u32::try_from(host.saturating_sub(wanted)).unwrap_or(0);
        let surplus = wanted < host;
        let (take, end) = match unwanted {
            Unwanted::Halt if surplus => (wanted, End::HaltOut),
            Unwanted::Halt | Unwanted::Swallow => (host, End::Nothing),
        };
        self.end = end;
        self.data = if take == 0 {
            Data::Nothing
        } else {
            Data::Out {
                take,
                keep: Some(wanted),
            }
        };
    }

    /// The status wrapper as it travels.
    pub(super) fn status_bytes(&self, tag: u32) -> Vec<u8> {
        let shape = &self.shape;
        let residue = shape.residue.unwrap_or(self.residue);
        let status = shape.status.unwrap_or(self.status);
        let mut bytes = status_wrapper(shape.tag.unwrap_or(tag), residue, status);
        if let Some(signature) = shape.signature {
            bytes[..4].copy_from_slice(&signature);
        }
        if let Some(length) = shape.length {
            bytes.resize(length, 0);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (host length, to host, intent, wanted) for each case.
    fn example(case: u8) -> (u32, bool, Intent, usize) {
        let some = |length| Intent::In(vec![1; length]);
        match case {
            1 => (0, false, Intent::Nothing, 0),
            2 => (0, false, some(512), 512),
            3 => (0, false, Intent::Out(512), 512),
            4 => (512, true, Intent::Nothing, 0),
            5 => (1024, true, some(512), 512),
            6 => (512, true, some(512), 512),
            7 => (512, true, some(1024), 1024),
            8 => (512, true, Intent::Out(512), 512),
            9 => (512, false, Intent::Nothing, 0),
            10 => (512, false, some(512), 512),
            11 => (1024, false, Intent::Out(512), 512),
            12 => (512, false, Intent::Out(512), 512),
            13 => (512, false, Intent::Out(1024), 1024),
            _ => panic!("there are thirteen cases"),
        }
    }

    fn planned(case: u8, short: ShortEnd, unwanted: Unwanted) -> Plan {
        let (length, to_host, intent, wanted) = example(case);
        let cdb = vec![0x28];
        let wrapper = CommandWrapper {
            tag: 7,
            length,
            to_host,
            lun: 0,
            cdb,
            flaw: None,
        };
        let (ready_at, bytes_per_second, failure) = (5, None, None);
        let execution = Execution {
            intent,
            wanted,
            ready_at,
            bytes_per_second,
            failure,
        };
        plan(&wrapper, execution, (short, unwanted), 512)
    }

    #[test]
    fn each_of_the_thirteen_cases_is_told_from_the_others() {
        for number in 1..=13 {
            assert_eq!(
                planned(number, ShortEnd::Packet, Unwanted::Halt).case,
                number
            );
        }
    }

    #[test]
    fn six_cases_are_phase_errors_and_seven_are_not() {
        let phase_errors: Vec<u8> = (1..=13)
            .filter(|case| planned(*case, ShortEnd::Packet, Unwanted::Halt).status == 2)
            .collect();
        assert_eq!(phase_errors, [2, 3, 7, 8, 10, 13]);
    }

    #[test]
    fn the_residue_is_what_did_not_move() {
        let residues: Vec<u32> = [1, 4, 5, 6, 9, 11, 12]
            .map(|case| planned(case, ShortEnd::Packet, Unwanted::Halt).residue)
            .to_vec();
        assert_eq!(residues, [0, 512, 512, 0, 512, 512, 0]);
    }

    #[test]
    fn short_data_end_as_the_device_is_built() {
        let end = |short| {
            let plan = planned(5, short, Unwanted::Halt);
            let length = if let Data::In(bytes) = &plan.data {
                bytes.len()
            } else {
                0
            };
            (plan.end, length)
        };
        assert_eq!(end(ShortEnd::Packet), (End::HaltIn, 512));
        assert_eq!(end(ShortEnd::Halt), (End::HaltIn, 512));
        assert_eq!(end(ShortEnd::EmptyPacket), (End::EmptyPacket, 512));
        assert_eq!(end(ShortEnd::Padding), (End::Nothing, 1024));
    }

    #[test]
    fn unwanted_data_halt_the_pipe_or_are_swallowed() {
        let halted = planned(11, ShortEnd::Packet, Unwanted::Halt);
        assert_eq!(
            halted.data,
            Data::Out {
                take: 512,
                keep: Some(512)
            }
        );
        assert_eq!(halted.end, End::HaltOut);
        let swallowed = planned(9, ShortEnd::Packet, Unwanted::Swallow);
        assert_eq!(
            swallowed.data,
            Data::Out {
                take: 512,
                keep: Some(0)
            }
        );
        assert_eq!(swallowed.end, End::Nothing);
    }

    #[test]
    fn a_bent_status_wrapper_keeps_what_is_not_bent() {
        let mut plan = planned(6, ShortEnd::Packet, Unwanted::Halt);
        assert_eq!(
            plan.status_bytes(0x0403_0201),
            *b"USBS\x01\x02\x03\x04\0\0\0\0\0"
        );
        plan.shape = StatusShape {
            signature: Some(*b"SBSU"),
            residue: Some(9),
            length: Some(12),
            ..StatusShape::default()
        };
        assert_eq!(
            plan.status_bytes(0x0403_0201),
            *b"SBSU\x01\x02\x03\x04\x09\0\0\0"
        );
    }
}
