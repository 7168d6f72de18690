//! The stages of a control transfer on endpoint 0 (USB 2.0 §8.5.3, USB 3.2 §8.12.2).
//!
//! A pure state machine: it is fed with packets and tells when a request is complete. It checks
//! toggles, lengths and directions; the meaning of requests is in `standard` and in the function.

use super::super::setup::Setup;
use super::super::{Link, Nanoseconds, Packet, Reply, Violations};
use super::endpoints::next_sequence;
use super::function::Answer;

/// Where the control transfer is.
#[derive(Clone, Debug, Default)]
pub(super) enum Stage {
    /// Nothing going on. Every token but SETUP is stalled: there is no request that it belongs to.
    #[default]
    Idle,
    /// The device sends data.
    DataIn {
        bytes: Vec<u8>,
        sent: usize,
        asked: usize,
        sequence: u8,
        ready_at: Nanoseconds,
    },
    /// The host sends data.
    DataOut {
        setup: Setup,
        received: Vec<u8>,
        sequence: u8,
    },
    /// No data, or all data taken: the device says that it is done.
    StatusIn { ready_at: Nanoseconds },
    /// STALL until the next SETUP, from `ready_at` on.
    Refused { ready_at: Nanoseconds },
    /// No handshake until the next SETUP.
    Silent,
}

/// What a packet led to.
pub(super) struct Step {
    pub(super) reply: Reply,
    pub(super) happened: Happened,
}

/// What the device must do about a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Happened {
    /// Nothing.
    Nothing,
    /// All data of an OUT request are here: answer it.
    Received(Setup, Vec<u8>),
    /// The status stage ended well: a request takes effect.
    Finished,
}

impl Step {
    const fn of(reply: Reply) -> Self {
        Self {
            reply,
            happened: Happened::Nothing,
        }
    }
}

/// The data stage's first number: DATA1, or 0 at SuperSpeed (USB 2.0 §8.5.3, USB 3.2 §8.12.2).
const fn first_sequence(link: Link) -> u8 {
    if link.is_super() { 0 } else { 1 }
}

impl Stage {
    /// The stage after the SETUP of a request that awaits data from the host.
    pub(super) fn await_data(setup: Setup, link: Link) -> Self {
        Self::DataOut {
            setup,
            received: Vec::new(),
            sequence: first_sequence(link),
        }
    }

    /// The stage in which `answer` is given.
    pub(super) fn answer(now: Nanoseconds, setup: &Setup, answer: Answer, link: Link) -> Self {
        Self::answer_at(now, setup, answer, link)
    }

    fn answer_at(ready_at: Nanoseconds, setup: &Setup, answer: Answer, link: Link) -> Self {
        let asked = usize::from(setup.length);
        let data = |bytes| Self::DataIn {
            bytes,
            sent: 0,
            asked,
            sequence: first_sequence(link),
            ready_at,
        };
        match answer {
            Answer::Data(mut bytes) if setup.is_in() && asked > 0 => {
                bytes.truncate(asked);
                data(bytes)
            }
            Answer::Overlong(bytes) if setup.is_in() && asked > 0 => data(bytes),
            Answer::Accept if setup.is_in() && asked > 0 => data(Vec::new()),
            Answer::Data(_) | Answer::Overlong(_) | Answer::Accept => Self::StatusIn { ready_at },
            Answer::Stall => Self::Refused { ready_at },
            Answer::Silent => Self::Silent,
            Answer::After(delay, then) => {
                Self::answer_at(ready_at.saturating_add(delay), setup, *then, link)
            }
        }
    }

    /// When a NAK of endpoint 0 ends.
    pub(super) fn ready_at(&self) -> Option<Nanoseconds> {
        let time = match *self {
            Self::DataIn { ready_at, .. }
            | Self::StatusIn { ready_at }
            | Self::Refused { ready_at } => ready_at,
            Self::Idle | Self::DataOut { .. } | Self::Silent => 0,
        };
        (time != Nanoseconds::MAX).then_some(time)
    }

    /// A packet other than SETUP.
    pub(super) fn packet(&mut self, wire: &ControlWire<'_>, packet: Packet<'_>) -> Step {
        let busy = self.ready_at().is_none_or(|time| wire.now < time);
        match self {
            Self::Silent => Step::of(Reply::Silent),
            Self::Idle => Step::of(Reply::Stall),
            _ if busy => Step::of(Reply::Nak),
            Self::Refused { .. } => Step::of(Reply::Stall),
            Self::DataIn { .. } => self.data_in(wire, packet),
            Self::DataOut { .. } => self.data_out(wire, packet),
            Self::StatusIn { .. } => self.status_in(wire, packet),
        }
    }

    fn data_in(&mut self, wire: &ControlWire<'_>, packet: Packet<'_>) -> Step {
        let Self::DataIn {
            bytes,
            sent,
            asked,
            sequence,
            ..
        } = self
        else {
            unreachable!("called in the data stage only");
        };
        match packet {
            Packet::In {
                sequence: expected, ..
            } => {
                let over = *sent > 0 && (*sent % wire.maximum != 0 || *sent >= *asked);
                if over || *sent > bytes.len() {
                    wire.broke("USB 2.0 §8.5.3", "an IN token after the data stage ended");
                    return Step::of(Reply::Stall);
                }
                wire.check_sequence(expected, *sequence);
                let end = (*sent + wire.maximum).min(bytes.len());
                let payload = bytes[*sent..end].to_vec();
                // A packet that is not full, even an empty one, ends the data stage.
                let short = payload.len() < wire.maximum;
                *sent = if short { bytes.len() + 1 } else { end };
                let reply = Reply::Data {
                    bytes: payload,
                    sequence: *sequence,
                    end_of_burst: short,
                };
                *sequence = next_sequence(*sequence, wire.link);
                Step::of(reply)
            }
            Packet::Ping => Step::of(Reply::Ack),
            Packet::Status => self.finish(),
            Packet::Out { data, sequence, .. } => {
                wire.check_status(data, sequence);
                self.finish()
            }
            Packet::Setup(_) | Packet::Prime => unreachable!("handled by the device"),
        }
    }

    fn data_out(&mut self, wire: &ControlWire<'_>, packet: Packet<'_>) -> Step {
        let Self::DataOut {
            setup,
            received,
            sequence,
        } = self
        else {
            unreachable!("called in the data stage only");
        };
        match packet {
            Packet::Out {
                data,
                sequence: came,
                ..
            } => {
                if came != *sequence {
                    wire.check_sequence(came, *sequence);
                    return Step::of(Reply::Ack); // taken for a repeat, USB 2.0 §8.6.3
                }
                *sequence = next_sequence(*sequence, wire.link);
                received.extend(data);
                let asked = usize::from(setup.length);
                if received.len() > asked || (received.len() < asked && data.len() < wire.maximum) {
                    let text =
                        format!("{} bytes came in the data stage of {setup}", received.len());
                    wire.broke("USB 2.0 §8.5.3", text);
                    *self = Self::Refused { ready_at: 0 };
                    return Step::of(Reply::Stall);
                }
                if received.len() < asked {
                    return Step::of(Reply::Ack);
                }
                let happened = Happened::Received(*setup, core::mem::take(received));
                Step {
                    reply: Reply::Ack,
                    happened,
                }
            }
            Packet::Ping => Step::of(Reply::Ack),
            Packet::In { .. } | Packet::Status => {
                wire.broke(
                    "USB 2.0 §8.5.3",
                    "the status stage came before all data were sent",
                );
                *self = Self::Refused { ready_at: 0 };
                Step::of(Reply::Stall)
            }
            Packet::Setup(_) | Packet::Prime => unreachable!("handled by the device"),
        }
    }

    fn status_in(&mut self, wire: &ControlWire<'_>, packet: Packet<'_>) -> Step {
        match packet {
            Packet::Status => self.finish(),
            Packet::In { sequence, .. } => {
                wire.check_sequence(sequence, 1);
                let step = self.finish();
                Step {
                    reply: Reply::data(Vec::new(), 1),
                    ..step
                }
            }
            Packet::Out { .. } | Packet::Ping => {
                wire.broke(
                    "USB 2.0 §8.5.3",
                    "an OUT token where the status stage is IN",
                );
                Step::of(Reply::Stall)
            }
            Packet::Setup(_) | Packet::Prime => unreachable!("handled by the device"),
        }
    }

    fn finish(&mut self) -> Step {
        *self = Self::Idle;
        Step {
            reply: Reply::Ack,
            happened: Happened::Finished,
        }
    }
}

/// What the machine must know of the device around it.
pub(super) struct ControlWire<'a> {
    pub(super) now: Nanoseconds,
    pub(super) link: Link,
    /// Maximum packet size of endpoint 0 in bytes.
    pub(super) maximum: usize,
    pub(super) violations: &'a Violations,
}

impl ControlWire<'_> {
    fn broke(&self, section: &'static str, text: impl Into<String>) {
        self.violations.record(self.now, section, text);
    }

    fn check_sequence(&self, host: u8, device: u8) {
        if host != device {
            let text = format!("sequence {host} on endpoint 0 where the device is at {device}");
            self.broke(sequence_section(self.link), text);
        }
    }

    fn check_status(&self, data: &[u8], sequence: u8) {
        if !data.is_empty() || sequence != 1 {
            self.broke(
                "USB 2.0 §8.5.3",
                "a status stage that is not an empty DATA1 packet",
            );
        }
    }
}

/// The section that tells how packets are numbered.
pub(super) const fn sequence_section(link: Link) -> &'static str {
    if link.is_super() {
        "USB 3.2 §8.11.1"
    } else {
        "USB 2.0 §8.6"
    }
}
