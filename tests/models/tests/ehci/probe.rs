//! A device that answers as a test says and remembers each transaction.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use rootport_models::device::{Link, Nanoseconds, Packet, Reply, UsbDevice};

/// What came from the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    Setup([u8; 8]),
    Out(Vec<u8>, u8),
    In(u8),
    Ping,
}

/// What an endpoint does when its list of answers is empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Habit {
    /// Takes everything, gives full packets with the toggle that the host expects.
    Stream,
    /// NAK, with a hint or without.
    Nak(Option<Nanoseconds>),
    /// No answer.
    Silent,
}

pub(crate) struct State {
    pub(crate) link: Option<Link>,
    pub(crate) address: u8,
    pub(crate) packet: usize,
    pub(crate) answers: BTreeMap<u8, VecDeque<Reply>>,
    pub(crate) habits: BTreeMap<u8, Habit>,
    pub(crate) seen: Vec<(Nanoseconds, u8, Seen)>,
    pub(crate) resets: Vec<(Nanoseconds, Link)>,
    pub(crate) powered: bool,
}

/// Clones are the same device.
#[derive(Clone)]
pub(crate) struct Probe(Arc<Mutex<State>>);

impl Probe {
    pub(crate) fn new(link: Link) -> Self {
        Self(Arc::new(Mutex::new(State {
            link: Some(link),
            address: 0,
            packet: 512,
            answers: BTreeMap::new(),
            habits: BTreeMap::new(),
            seen: Vec::new(),
            resets: Vec::new(),
            powered: false,
        })))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(crate) fn answer(&self, endpoint: u8, replies: impl IntoIterator<Item = Reply>) {
        let mut state = self.state();
        state.answers.entry(endpoint).or_default().extend(replies);
    }

    pub(crate) fn habit(&self, endpoint: u8, habit: Habit) {
        self.state().habits.insert(endpoint, habit);
    }

    /// What came to an endpoint, oldest first.
    pub(crate) fn seen(&self, endpoint: u8) -> Vec<Seen> {
        let state = self.state();
        let mine = state.seen.iter().filter(|(_, to, _)| *to == endpoint);
        mine.map(|(_, _, seen)| seen.clone()).collect()
    }

    pub(crate) fn times(&self, endpoint: u8) -> Vec<Nanoseconds> {
        let state = self.state();
        let mine = state.seen.iter().filter(|(_, to, _)| *to == endpoint);
        mine.map(|(at, ..)| *at).collect()
    }
}

impl UsbDevice for Probe {
    fn link(&self, _now: Nanoseconds) -> Option<Link> {
        self.state().link
    }

    fn power_on(&mut self, _now: Nanoseconds) {
        self.state().powered = true;
    }

    fn power_off(&mut self, _now: Nanoseconds) {
        self.state().powered = false;
    }

    fn bus_reset(&mut self, now: Nanoseconds, link: Link) {
        self.state().resets.push((now, link));
    }

    fn transact(
        &mut self,
        now: Nanoseconds,
        address: u8,
        endpoint: u8,
        packet: Packet<'_>,
    ) -> Reply {
        let mut state = self.state();
        if address != state.address {
            return Reply::Silent;
        }
        let (seen, toggle) = match packet {
            Packet::Setup(bytes) => (Seen::Setup(bytes), 0),
            Packet::Out { data, sequence, .. } => (Seen::Out(data.to_vec(), sequence), 0),
            Packet::In { sequence, .. } => (Seen::In(sequence), sequence),
            Packet::Ping => (Seen::Ping, 0),
            Packet::Status | Packet::Prime => panic!("no SuperSpeed here"),
        };
        let is_in = matches!(seen, Seen::In(_));
        state.seen.push((now, endpoint, seen));
        if let Some(reply) = state
            .answers
            .get_mut(&endpoint)
            .and_then(|list| list.pop_front())
        {
            return reply;
        }
        match state.habits.get(&endpoint).unwrap_or(&Habit::Stream) {
            Habit::Stream if is_in => Reply::data(vec![0x5a; state.packet], toggle),
            Habit::Stream => Reply::Ack,
            Habit::Nak(_) => Reply::Nak,
            Habit::Silent => Reply::Silent,
        }
    }

    fn ready_at(&self, endpoint: u8, _stream: u16) -> Option<Nanoseconds> {
        match self.state().habits.get(&endpoint) {
            Some(Habit::Nak(hint)) => *hint,
            _ => Some(0),
        }
    }
}
