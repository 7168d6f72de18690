//! Execute Transaction: one packet of a queue head's qTD, and what its answer does to the overlay
//! (EHCI 1.0 §4.10.3, §4.11; USB 2.0 §8.5, §8.6).

use super::queue_head::QueueHead;
use super::token::{Pid, Token, status};
use super::{Ehci, List, timing};
use crate::broken::broken;
use crate::controller::Surroundings;
use crate::device::{Nanoseconds, Packet, Reply};

/// How one transaction went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Went {
    /// The device took this many bytes; whether it wants PING before the next.
    Sent(usize, bool),
    /// Data came.
    Received(Vec<u8>),
    /// A repeat of data that had come before: acknowledged and dropped (USB 2.0 §8.6.4).
    Repeated,
    /// The device has room for an OUT.
    Room,
    /// NAK.
    PutOff,
    /// No answer, or a damaged one.
    Failed,
    /// The queue halts with these status bits besides.
    Halts(u32),
}

/// What goes out with a transaction, and what is expected.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) pid: Pid,
    pub(super) data: Vec<u8>,
    pub(super) toggle: u8,
    /// Bytes that an IN may bring.
    pub(super) room: usize,
    pub(super) max_packet: usize,
    pub(super) ping: bool,
}

impl Outgoing {
    pub(super) fn packet(&self) -> Packet<'_> {
        match self.pid {
            Pid::Setup => {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&self.data);
                Packet::Setup(bytes)
            }
            Pid::Out if self.ping => Packet::Ping,
            Pid::Out => Packet::Out {
                data: &self.data,
                sequence: self.toggle,
                stream: 0,
            },
            Pid::In => Packet::In {
                sequence: self.toggle,
                maximum: self.max_packet,
                stream: 0,
            },
        }
    }

    /// What a device's answer means.
    pub(super) fn judge(&self, reply: Reply) -> Went {
        match (self.pid, reply) {
            (_, Reply::Stall) => Went::Halts(0),
            (Pid::Setup, Reply::Ack) => Went::Sent(8, false),
            (Pid::Out, Reply::Ack) if self.ping => Went::Room,
            (Pid::Out, Reply::Ack) => Went::Sent(self.data.len(), false),
            (Pid::Out, Reply::Nyet) if !self.ping => Went::Sent(self.data.len(), true),
            (Pid::In | Pid::Out, Reply::Nak) => Went::PutOff,
            // A babble is found while the data arrives, whatever its toggle.
            (Pid::In, Reply::Data { bytes, .. }) if bytes.len() > self.room => {
                Went::Halts(status::BABBLE)
            }
            (Pid::In, Reply::Data { sequence, .. }) if sequence != self.toggle => Went::Repeated,
            (Pid::In, Reply::Data { bytes, .. }) => Went::Received(bytes),
            _ => Went::Failed,
        }
    }
}

impl QueueHead {
    /// Bytes of the next packet.
    pub(super) fn next_payload(&self) -> usize {
        self.max_packet().min(self.token().bytes() as usize)
    }

    /// The longest time that the next transaction can take.
    pub(super) fn cost(&self) -> Nanoseconds {
        if self.is_high_speed() {
            timing::with_data(self.next_payload())
        } else {
            timing::split(self.next_payload())
        }
    }

    fn direction(&self) -> Pid {
        match self.token().pid() {
            Some(pid) => pid,
            None => broken!("EHCI 1.0 §3.5.3", "a reserved PID code in the overlay"),
        }
    }
}

impl Ehci {
    /// Prepares the next transaction of a queue head: reads what it sends.
    pub(super) fn outgoing(&mut self, around: &mut Surroundings<'_>, at: u64) -> Option<Outgoing> {
        let head = self.held.get(at)?.head;
        let pid = head.direction();
        let payload = head.next_payload();
        let ping = pid == Pid::Out && head.is_high_speed() && head.token().has(status::PING);
        let data = if pid == Pid::In || ping {
            Vec::new()
        } else {
            self.access(around)?;
            head.read_ahead(around.memory, payload)
        };
        Some(Outgoing {
            pid,
            data,
            toggle: head.token().toggle(),
            room: payload,
            max_packet: head.max_packet(),
            ping,
        })
    }

    /// One transaction of a queue head whose overlay is active.
    pub(super) fn execute(
        &mut self,
        around: &mut Surroundings<'_>,
        at: u64,
        list: List,
    ) -> Option<()> {
        let head = self.held.get(at)?.head;
        if !head.is_high_speed() {
            return self.execute_split(around, at, list);
        }
        let outgoing = self.outgoing(around, at)?;
        let endpoint = head.endpoint() | if outgoing.pid == Pid::In { 0x80 } else { 0 };
        let (reply, ready) = self.transact(around, head.device(), endpoint, outgoing.packet());
        let went = outgoing.judge(reply);
        let cost = match &went {
            Went::Received(bytes) => timing::with_data(bytes.len()),
            Went::Sent(..) | Went::Failed | Went::Repeated => timing::with_data(outgoing.room),
            Went::PutOff if outgoing.pid == Pid::Out && !outgoing.ping => {
                timing::with_data(outgoing.room)
            }
            _ => timing::without_data(),
        };
        self.occupy(around, cost);
        self.note_quiet(around, at, &went, ready);
        self.settle(around, at, outgoing.pid, went)
    }

    /// Remembers for how long an endpoint that answered NAK will do so.
    fn note_quiet(
        &mut self,
        around: &Surroundings<'_>,
        at: u64,
        went: &Went,
        ready: Option<Nanoseconds>,
    ) {
        let patience = around.now + timing::PATIENCE;
        let quiet = (*went == Went::PutOff).then(|| ready.map_or(patience, |at| at.min(patience)));
        if let Some(held) = self.held.get_mut(at) {
            held.quiet_until = quiet;
        }
        if quiet.is_none() {
            self.traversal.made_progress();
        }
    }

    /// What a transaction's outcome does to the queue head.
    pub(super) fn settle(
        &mut self,
        around: &mut Surroundings<'_>,
        at: u64,
        pid: Pid,
        went: Went,
    ) -> Option<()> {
        if let Went::Received(_) = went {
            self.access(around)?;
        }
        let head = &mut self.held.get_mut(at)?.head;
        let high_speed = head.is_high_speed();
        match went {
            Went::Sent(bytes, full) => {
                head.moved(bytes);
                let token = head.token();
                let mut token = succeed(token, token.bytes() == 0);
                if high_speed && pid == Pid::Out {
                    token.set(status::PING, full);
                }
                if full {
                    count_nak(head);
                }
                self.finish(around, at, token)
            }
            Went::Received(bytes) => {
                head.deliver(around.memory, &bytes);
                let short = bytes.len() < head.max_packet();
                let token = head.token();
                self.finish(around, at, succeed(token, short || token.bytes() == 0))
            }
            Went::Room => {
                let mut token = head.token();
                token.set(status::PING, false);
                self.finish(around, at, token)
            }
            Went::PutOff => {
                count_nak(head);
                let mut token = head.token();
                if high_speed && pid == Pid::Out {
                    token.set(status::PING, true);
                }
                self.finish(around, at, token)
            }
            Went::Repeated => Some(()),
            Went::Failed => {
                let token = fail(head.token(), high_speed && pid == Pid::Out);
                self.finish(around, at, token)
            }
            Went::Halts(bits) => {
                let mut token = head.token();
                token.set(bits | status::HALTED, true);
                token.set(status::ACTIVE, false);
                self.finish(around, at, token)
            }
        }
    }
}

/// §4.9: NakCnt counts NAKs and NYETs.
pub(super) fn count_nak(head: &mut QueueHead) {
    if head.nak_reload() != 0 {
        head.set_nak_count(head.nak_count().saturating_sub(1));
    }
}

/// A packet moved: the toggle flips, consecutive errors count from the start (§3.5.3).
fn succeed(mut token: Token, ends: bool) -> Token {
    token.flip_toggle();
    reload_errors(&mut token);
    if ends {
        token.set(status::ACTIVE, false);
    }
    token
}

/// CERR goes back to its maximum; it is never touched where errors are not counted.
pub(super) fn reload_errors(token: &mut Token) {
    if token.errors_left() != 0 {
        token.set_errors_left(3);
    }
}

/// A transaction error: the count that reaches zero halts the queue.
pub(super) fn fail(mut token: Token, pings: bool) -> Token {
    token.set(status::TRANSACTION, true);
    if pings {
        token.set(status::PING, true);
    }
    match token.errors_left() {
        0 => {}
        1 => {
            token.set_errors_left(0);
            token.set(status::HALTED, true);
            token.set(status::ACTIVE, false);
        }
        left => token.set_errors_left(left - 1),
    }
    token
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(ping: bool) -> Outgoing {
        Outgoing {
            pid: Pid::Out,
            data: vec![0; 512],
            toggle: 0,
            room: 512,
            max_packet: 512,
            ping,
        }
    }

    #[test]
    fn the_ping_protocol_goes_by_section_4_11() {
        assert_eq!(out(true).packet(), Packet::Ping);
        assert_eq!(out(true).judge(Reply::Ack), Went::Room);
        assert_eq!(out(true).judge(Reply::Nak), Went::PutOff);
        assert_eq!(out(false).judge(Reply::Nyet), Went::Sent(512, true));
        assert_eq!(out(false).judge(Reply::Ack), Went::Sent(512, false));
        assert_eq!(out(true).judge(Reply::Nyet), Went::Failed);
    }

    #[test]
    fn the_last_of_three_errors_in_a_row_halts() {
        let token = Token(status::ACTIVE | 3 << 10);
        let two = fail(fail(token, false), false);
        assert!(two.is_active() && two.errors_left() == 1);
        let three = fail(two, false);
        assert!(three.is_halted() && !three.is_active() && three.errors_left() == 0);
        assert_eq!(succeed(two, false).errors_left(), 3);
    }
}
