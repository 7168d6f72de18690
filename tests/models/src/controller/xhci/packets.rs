//! One transaction of a TD, and what the device's answer means (USB 2.0 §8.5, §8.6; USB 3.2 §8.10 to
//! §8.12). [`transfers`](super::transfers) says what follows from it.

use super::Xhci;
use super::commands::code;
use super::descriptors::{Td, Work};
use crate::controller::Surroundings;
use crate::device::{Link, Packet, Reply};

/// How one transaction went.
pub(super) enum Went {
    /// The TD goes on, or has ended, as its counters say.
    Well,
    /// A packet that was shorter than it could be: the TD ends.
    Short,
    /// Again later.
    PutOff,
    /// No or a damaged answer.
    Failed,
    /// The endpoint halts with this code.
    Halts(u8),
}

impl Xhci {
    /// The next transaction of a TD, which goes back to its endpoint.
    pub(super) fn do_transaction(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
        mut td: Td,
    ) -> Went {
        let went = match td.work {
            Work::Setup(bytes) => self.send_setup(around, slot, index, bytes),
            Work::Data { input: true } => self.receive(around, slot, index, &mut td),
            Work::Data { input: false } => self.send(around, slot, index, &mut td),
            Work::Status { input } => self.send_status(around, slot, index, input),
            Work::Nothing => Went::Well,
        };
        if let Some(endpoint) = self.endpoint(slot, index) {
            endpoint.td = Some(td);
        }
        went
    }

    /// One transaction of an endpoint, to wherever its device is.
    pub(super) fn exchange(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        endpoint: u8,
        packet: Packet<'_>,
    ) -> Reply {
        let owner = &self.slots[usize::from(slot)];
        let (port, address) = (owner.root_port(), owner.address);
        self.transact(around, port, address, endpoint, packet)
    }

    fn send_setup(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
        bytes: [u8; 8],
    ) -> Went {
        match self.exchange(around, slot, index / 2, Packet::Setup(bytes)) {
            Reply::Ack | Reply::Nyet => {
                // The data stage begins with DATA1, or with sequence number 0 (USB 3.2 §8.12.2).
                let is_super = self.slots[usize::from(slot)].link().is_super();
                if let Some(endpoint) = self.endpoint(slot, index) {
                    endpoint.sequence = u8::from(!is_super);
                    endpoint.ping = false;
                }
                Went::Well
            }
            Reply::Nak => Went::PutOff,
            Reply::Stall => Went::Halts(code::STALL),
            Reply::Data { .. } | Reply::Silent | Reply::Corrupt => Went::Failed,
        }
    }

    fn send_status(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
        input: bool,
    ) -> Went {
        let is_super = self.slots[usize::from(slot)].link().is_super();
        let maximum = self
            .endpoint(slot, index)
            .map_or(0, |endpoint| endpoint.max_packet());
        let direction = if input { 0x80 } else { 0 };
        let packet = match (is_super, input) {
            (true, _) => Packet::Status,
            (false, true) => Packet::In {
                sequence: 1,
                maximum,
                stream: 0,
            },
            (false, false) => Packet::Out {
                data: &[],
                sequence: 1,
                stream: 0,
            },
        };
        match self.exchange(around, slot, (index / 2) | direction, packet) {
            Reply::Ack | Reply::Nyet => Went::Well,
            Reply::Data { bytes, .. } if input && bytes.is_empty() => Went::Well,
            Reply::Data { .. } => Went::Halts(code::BABBLE),
            Reply::Nak => Went::PutOff,
            Reply::Stall => Went::Halts(code::STALL),
            Reply::Silent | Reply::Corrupt => Went::Failed,
        }
    }

    fn receive(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u8, td: &mut Td) -> Went {
        let Some(endpoint) = self.endpoint(slot, index) else {
            return Went::Failed;
        };
        let (expected, maximum) = (endpoint.sequence, endpoint.max_packet());
        let packet = Packet::In {
            sequence: expected,
            maximum,
            stream: endpoint.stream(),
        };
        match self.exchange(around, slot, (index / 2) | 0x80, packet) {
            // A repeat of a packet that has arrived: acknowledged and dropped (USB 2.0 §8.6.3).
            Reply::Data { sequence, .. } if sequence != expected => Went::PutOff,
            Reply::Data { bytes, .. } => {
                let room = (td.length - td.done) as usize;
                if bytes.len() > maximum || bytes.len() > room {
                    return Went::Halts(code::BABBLE);
                }
                self.take_data(around, slot, index, td, &bytes);
                if bytes.len() < maximum && bytes.len() < room {
                    Went::Short
                } else {
                    Went::Well
                }
            }
            Reply::Nak => Went::PutOff,
            Reply::Stall => Went::Halts(code::STALL),
            Reply::Ack | Reply::Nyet | Reply::Silent | Reply::Corrupt => Went::Failed,
        }
    }

    fn take_data(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
        td: &mut Td,
        bytes: &[u8],
    ) {
        let mut from = 0;
        for (address, length) in td.pieces(td.done, bytes.len() as u64) {
            let end = from + length as usize;
            around.memory.write(address, &bytes[from..end]);
            from = end;
        }
        td.done += bytes.len() as u64;
        self.next_sequence(slot, index);
    }

    fn send(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u8, td: &mut Td) -> Went {
        let Some(endpoint) = self.endpoint(slot, index) else {
            return Went::Failed;
        };
        let (sequence, ping) = (endpoint.sequence, endpoint.ping);
        let stream = endpoint.stream();
        let length = (td.length - td.done).min(endpoint.max_packet() as u64);
        if ping {
            return self.ask(around, slot, index);
        }
        let mut data = vec![0; length as usize];
        let mut from = 0;
        for (address, piece) in td.pieces(td.done, length) {
            let end = from + piece as usize;
            around.memory.read(address, &mut data[from..end]);
            from = end;
        }
        let packet = Packet::Out {
            data: &data,
            sequence,
            stream,
        };
        let reply = self.exchange(around, slot, index / 2, packet);
        let is_high = self.slots[usize::from(slot)].link() == Link::High;
        if let Some(endpoint) = self.endpoint(slot, index) {
            endpoint.ping = is_high && matches!(reply, Reply::Nak | Reply::Nyet);
        }
        match reply {
            Reply::Ack | Reply::Nyet => {
                td.done += length;
                self.next_sequence(slot, index);
                Went::Well
            }
            Reply::Nak => Went::PutOff,
            Reply::Stall => Went::Halts(code::STALL),
            Reply::Data { .. } | Reply::Silent | Reply::Corrupt => Went::Failed,
        }
    }

    /// High speed: asks whether the device has room (USB 2.0 §8.5.1). Nothing is moved.
    fn ask(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u8) -> Went {
        match self.exchange(around, slot, index / 2, Packet::Ping) {
            Reply::Ack => {
                if let Some(endpoint) = self.endpoint(slot, index) {
                    endpoint.ping = false;
                }
                Went::PutOff
            }
            Reply::Nak | Reply::Nyet => Went::PutOff,
            Reply::Stall => Went::Halts(code::STALL),
            Reply::Data { .. } | Reply::Silent | Reply::Corrupt => Went::Failed,
        }
    }

    fn next_sequence(&mut self, slot: u8, index: u8) {
        let numbers = if self.slots[usize::from(slot)].link().is_super() {
            32
        } else {
            2
        };
        if let Some(endpoint) = self.endpoint(slot, index) {
            endpoint.sequence = (endpoint.sequence + 1) % numbers;
        }
    }
}
