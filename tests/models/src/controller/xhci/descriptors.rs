//! [`Td`]: a transfer descriptor, put together from TRBs and checked as a whole (xHCI 1.2 §3.2.8,
//! §4.11).

use super::Xhci;
use super::checks::crosses;
use super::endpoints::Endpoint;
use super::trb::{Trb, kind};
use crate::broken::{broken, require};
use crate::controller::Surroundings;

/// What the next TD of a control endpoint must be (§4.11.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ControlStage {
    /// The setup stage.
    Setup,
    /// A data stage of this direction and length.
    Data { input: bool, length: u64 },
    /// The status stage, in this direction.
    Status { input: bool },
}

/// What a TD does on the bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// The eight bytes of a setup stage.
    Setup([u8; 8]),
    /// Data packets.
    Data { input: bool },
    /// The packet of a status stage.
    Status { input: bool },
    /// Nothing.
    Nothing,
}

/// A TD under way.
#[derive(Clone, Debug)]
pub(super) struct Td {
    pub(super) trbs: Vec<Trb>,
    pub(super) work: Work,
    /// Bytes in all, and how many have been moved.
    pub(super) length: u64,
    pub(super) done: u64,
    /// How many TRBs before the current one have had their events.
    pub(super) reported: usize,
    /// The stage that follows on a control endpoint.
    pub(super) next_stage: ControlStage,
}

impl Td {
    /// The TRB that the byte `at` belongs to, and the byte's offset in it. Behind the end: the last
    /// TRB and its length.
    pub(super) fn place(&self, at: u64) -> (usize, u64) {
        let mut before = 0;
        for (index, trb) in self.trbs.iter().enumerate() {
            let length = u64::from(self.length_of(trb));
            if at < before + length || index + 1 == self.trbs.len() {
                return (index, at - before);
            }
            before += length;
        }
        unreachable!("a TD has at least one TRB")
    }

    /// Data bytes of a TRB.
    pub(super) fn length_of(&self, trb: &Trb) -> u32 {
        match self.work {
            Work::Data { .. } => trb.length(),
            _ => 0,
        }
    }

    /// The pieces of memory behind `length` bytes from `at`: address and length.
    pub(super) fn pieces(&self, mut at: u64, mut length: u64) -> Vec<(u64, u64)> {
        let mut pieces = Vec::new();
        while length != 0 {
            let (index, offset) = self.place(at);
            let piece = (u64::from(self.trbs[index].length()) - offset).min(length);
            pieces.push((self.trbs[index].pointer() + offset, piece));
            at += piece;
            length -= piece;
        }
        pieces
    }
}

impl Xhci {
    /// Takes the next TD from the endpoint's ring, if there is one. The ring still points at it.
    pub(super) fn take_td(
        &mut self,
        around: &mut Surroundings<'_>,
        slot: u8,
        index: u8,
    ) -> Option<Td> {
        let counts_packets = self.traits.version >= 0x0100;
        let fetches = self.traits.fetches;
        let endpoint = self.endpoint(slot, index)?;
        let mut trbs = vec![endpoint.ring.front(around.memory)?];
        while trbs.last().is_some_and(Trb::is_chained) {
            trbs.push(endpoint.ring.nth(around.memory, trbs.len())?);
        }
        let (work, next_stage) = read_work(endpoint, &trbs);
        let mut td = Td {
            length: 0,
            done: 0,
            reported: 0,
            trbs,
            work,
            next_stage,
        };
        td.length = td.trbs.iter().map(|trb| u64::from(td.length_of(trb))).sum();
        td.done = std::mem::take(&mut endpoint.resumes_at).min(td.length);
        td.reported = td.place(td.done).0;
        if let Work::Data { .. } = td.work {
            check_fragments(endpoint, &td);
            check_td_size(endpoint.max_packet() as u64, counts_packets, &td);
            if let Some(fetches) = fetches {
                check_runs(endpoint.max_packet() as u64, fetches, &td);
            }
        }
        for trb in &td.trbs {
            self.check_data_trb(trb, &td);
        }
        Some(td)
    }

    /// §6.4.1, table 6-1: one TRB's buffer.
    fn check_data_trb(&self, trb: &Trb, td: &Td) {
        require!(
            trb.interrupter() < self.interrupters.len(),
            "xHCI 1.2 §6.4.1",
            "Interrupter Target {} of {} in the TRB at {:#x}",
            trb.interrupter(),
            self.interrupters.len(),
            trb.address
        );
        let Work::Data { input } = td.work else {
            return;
        };
        let (start, length) = (trb.pointer(), u64::from(trb.length()));
        if trb.is_immediate() {
            require!(
                !input && length <= 8,
                "xHCI 1.2 §4.11.7",
                "immediate data of {length} bytes in the TRB at {:#x}, input: {input}",
                trb.address
            );
            broken!(
                "model",
                "immediate data outside of a setup stage is not modelled"
            )
        }
        require!(
            length <= 0x1_0000,
            "xHCI 1.2 §6.4.1.1",
            "a TRB of {length} bytes at {:#x}",
            trb.address
        );
        require!(
            !crosses(start, length, 0x1_0000),
            "xHCI 1.2 table 6-1",
            "the buffer {start:#x} of {length} bytes crosses a multiple of 64 KiB"
        );
        self.check_reach(start, "a data buffer");
        require!(
            length != 0 || td.trbs.len() == 1,
            "Policy: empty packets alone",
            "an empty TRB is part of a longer TD at {:#x}: it makes no packet",
            trb.address
        );
    }
}

/// What a TD is, by its first TRB and the endpoint's kind.
fn read_work(endpoint: &Endpoint, trbs: &[Trb]) -> (Work, ControlStage) {
    let first = &trbs[0];
    for trb in &trbs[1..] {
        require!(
            trb.kind() == kind::NORMAL,
            "xHCI 1.2 §3.2.8",
            "a TRB of type {} is chained behind the TRB at {:#x}",
            trb.kind(),
            first.address
        );
    }
    match (first.kind(), endpoint.is_control()) {
        (kind::NO_OP, _) => (Work::Nothing, endpoint.stage),
        (kind::NORMAL, false) => {
            let input = endpoint.is_in();
            (Work::Data { input }, endpoint.stage)
        }
        (kind::SETUP, true) => read_setup(endpoint, first),
        (kind::DATA, true) => read_data_stage(endpoint, trbs),
        (kind::STATUS, true) => read_status_stage(endpoint, first),
        (other, _) => broken!(
            "xHCI 1.2 §4.11.2.2",
            "a TD begins with a TRB of type {other} at {:#x}",
            first.address
        ),
    }
}

fn read_setup(endpoint: &Endpoint, trb: &Trb) -> (Work, ControlStage) {
    require!(
        endpoint.stage == ControlStage::Setup,
        "xHCI 1.2 §4.11.2.2",
        "a setup stage where {:?} is due",
        endpoint.stage
    );
    require!(
        trb.is_immediate() && trb.length() == 8,
        "xHCI 1.2 §6.4.1.2.1",
        "a Setup Stage TRB has IDT set and length 8, not {}",
        trb.length()
    );
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&trb.words[0].to_le_bytes());
    bytes[4..].copy_from_slice(&trb.words[1].to_le_bytes());
    let length = u64::from(u16::from_le_bytes([bytes[6], bytes[7]]));
    let input = bytes[0] & 0x80 != 0;
    require!(
        bytes[..2] != [0, 5],
        "xHCI 1.2 §4.6.5",
        "SET_ADDRESS was sent on the ring: the controller gives the addresses"
    );
    let (transfer_type, next) = match (length, input) {
        (0, _) => (0, ControlStage::Status { input: true }),
        (_, false) => (2, ControlStage::Data { input, length }),
        (_, true) => (3, ControlStage::Data { input, length }),
    };
    require!(
        trb.transfer_type() == transfer_type,
        "xHCI 1.2 §6.4.1.2.1",
        "TRT is {} for the request {bytes:02x?}: it should be {transfer_type}",
        trb.transfer_type()
    );
    (Work::Setup(bytes), next)
}

fn read_data_stage(endpoint: &Endpoint, trbs: &[Trb]) -> (Work, ControlStage) {
    let ControlStage::Data { input, length } = endpoint.stage else {
        broken!(
            "xHCI 1.2 §4.11.2.2",
            "a data stage where {:?} is due",
            endpoint.stage
        )
    };
    require!(
        trbs[0].is_in() == input,
        "xHCI 1.2 §6.4.1.2.2",
        "DIR of the data stage does not fit its request (input: {input})"
    );
    let total: u64 = trbs.iter().map(|trb| u64::from(trb.length())).sum();
    require!(
        total == length,
        "xHCI 1.2 §4.11.2.2",
        "the data stage has {total} bytes, its request announces {length}"
    );
    (Work::Data { input }, ControlStage::Status { input: !input })
}

fn read_status_stage(endpoint: &Endpoint, trb: &Trb) -> (Work, ControlStage) {
    let ControlStage::Status { input } = endpoint.stage else {
        broken!(
            "xHCI 1.2 §4.11.2.2",
            "a status stage where {:?} is due",
            endpoint.stage
        )
    };
    require!(
        trb.is_in() == input,
        "xHCI 1.2 §4.11.2.2",
        "DIR of the status stage is wrong (it should be input: {input})"
    );
    (Work::Status { input }, ControlStage::Setup)
}

/// §4.11.7.1: a link cuts a TD only where a burst ends.
fn check_fragments(endpoint: &Endpoint, td: &Td) {
    let packet = endpoint.max_packet() as u64;
    let burst = packet * (u64::from(endpoint.context.max_burst()) + 1);
    let mut before = 0;
    for (index, trb) in td.trbs.iter().enumerate() {
        require!(
            before % burst == 0 || !endpoint.ring.is_behind_link(index),
            "xHCI 1.2 §4.11.7.1",
            "a link cuts the TD at {:#x} after {before} bytes, which is no multiple of {burst}",
            td.trbs[0].address
        );
        before += u64::from(trb.length());
    }
}

/// So many TRBs in a row hold a packet, or the TD's end.
fn check_runs(packet: u64, fetches: usize, td: &Td) {
    let without_end = td.trbs.len() - 1;
    for run in td.trbs[..without_end].windows(fetches) {
        let bytes: u64 = run.iter().map(|trb| u64::from(trb.length())).sum();
        require!(
            bytes >= packet,
            "Policy: no run of small pieces (Synopsys)",
            "{fetches} TRBs from {:#x} on hold {bytes} bytes of a packet of {packet}",
            run[0].address
        );
    }
}

/// §4.11.2.4: TD Size counts the packets after its TRB, 0 in the last one; before version 1.0 it
/// counted what was left with the TRB itself, in KiB.
fn check_td_size(packet: u64, counts_packets: bool, td: &Td) {
    let packets = td.length.div_ceil(packet);
    let mut before = 0;
    for (index, trb) in td.trbs.iter().enumerate() {
        let is_last = index + 1 == td.trbs.len();
        let behind = before + u64::from(trb.length());
        let left = match (counts_packets, is_last) {
            (false, _) => (td.length - before) / 1024,
            (true, true) => 0,
            (true, false) => packets - behind / packet,
        };
        require!(
            u64::from(trb.td_size()) == left.min(31),
            "xHCI 1.2 §4.11.2.4",
            "TD Size is {} in the TRB at {:#x}, TRB {index} of its TD: {left} remain",
            trb.td_size(),
            trb.address
        );
        before = behind;
    }
}
