//! Stand-ins for unit tests: registers, and a walker of the asynchronous list.
//!
//! The walker executes queue heads and qTDs as `EHCI 1.0 §4.10` says, a qTD at a time, with answers
//! from a script. It is no model: it neither caches nor times anything, and checks little. Offsets
//! and bits are written out here rather than taken from the driver.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::dma::testing::TestMemory;
use crate::mmio::Bus;

/// How the fake controller treats its doorbell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bell {
    /// Answers at once.
    Answers,
    /// Takes it back, but shows no status bit.
    LosesStatus,
    /// Does not react.
    Deaf,
}

#[derive(Debug)]
struct State {
    words: Vec<u32>,
    written: Vec<(usize, u32)>,
    accesses: usize,
    bell: Bell,
    /// Registers react as a controller's do.
    live: bool,
    /// A reset port is enabled when its reset ends.
    high_speed: bool,
    /// The asynchronous schedule cannot be stopped.
    stuck: bool,
    /// A reset does not end.
    endless_reset: bool,
    /// Nothing answers; this is what reads give.
    silent: Option<u32>,
}

/// Registers that remember what was written.
#[derive(Clone, Debug)]
pub(super) struct FakeBus(Rc<RefCell<State>>);

const OPERATIONAL: usize = 0x20;
const USBCMD: usize = OPERATIONAL;
const USBSTS: usize = OPERATIONAL + 4;
const ASYNCLISTADDR: usize = OPERATIONAL + 0x18;
pub(super) const PORTSC: usize = OPERATIONAL + 0x44;

impl FakeBus {
    /// `length` bytes of plain zeros.
    pub(super) fn new(length: usize) -> Self {
        Self(Rc::new(RefCell::new(State {
            words: vec![0; length / 4],
            written: Vec::new(),
            accesses: 0,
            bell: Bell::Answers,
            live: false,
            high_speed: true,
            stuck: false,
            endless_reset: false,
            silent: None,
        })))
    }

    /// A halted controller with two ports and companions, 64-bit capable.
    pub(super) fn controller() -> Self {
        let bus = Self::new(0x100);
        bus.set(0, 0x0100_0020);
        bus.set(4, 0x0000_1012);
        bus.set(8, 1);
        bus.set(USBSTS, 0x1000);
        bus.0.borrow_mut().live = true;
        bus
    }

    pub(super) fn set(&self, offset: usize, value: u32) {
        self.0.borrow_mut().words[offset / 4] = value;
    }

    pub(super) fn get(&self, offset: usize) -> u32 {
        self.0.borrow().words[offset / 4]
    }

    pub(super) fn set_status(&self, bits: u32) {
        self.set(USBSTS, self.get(USBSTS) | bits);
    }

    pub(super) fn set_bell(&self, bell: Bell) {
        self.0.borrow_mut().bell = bell;
    }

    pub(super) fn set_full_speed(&self) {
        self.0.borrow_mut().high_speed = false;
    }

    pub(super) fn set_stuck(&self) {
        self.0.borrow_mut().stuck = true;
    }

    pub(super) fn set_endless_reset(&self) {
        self.0.borrow_mut().endless_reset = true;
    }

    pub(super) fn set_gone(&self) {
        self.0.borrow_mut().silent = Some(u32::MAX);
    }

    /// As a block that has lost its clock.
    pub(super) fn set_unclocked(&self) {
        self.0.borrow_mut().silent = Some(0);
    }

    /// What was written since the last call, by offset.
    pub(super) fn written(&self) -> Vec<(usize, u32)> {
        std::mem::take(&mut self.0.borrow_mut().written)
    }

    /// How many accesses were made since the last call.
    pub(super) fn accesses(&self) -> usize {
        std::mem::take(&mut self.0.borrow_mut().accesses)
    }
}

impl State {
    fn write(&mut self, offset: usize, value: u32) {
        match offset {
            USBCMD if self.live => self.command(value),
            USBSTS if self.live => self.words[USBSTS / 4] &= !(value & 0x3f),
            PORTSC.. if self.live => self.port(offset, value),
            _ => self.words[offset / 4] = value,
        }
    }

    fn command(&mut self, value: u32) {
        if value & 2 != 0 {
            self.words[USBCMD / 4] = if self.endless_reset { 2 } else { 0x0008_0000 };
            self.words[USBSTS / 4] = 0x1000;
            return;
        }
        let status = &mut self.words[USBSTS / 4];
        let running = value & 1 != 0;
        let asynchronous = running && (value & 0x20 != 0 || self.stuck);
        let periodic = running && value & 0x10 != 0;
        *status &= !0xd000;
        *status |= if running { 0 } else { 0x1000 };
        *status |= if asynchronous { 0x8000 } else { 0 };
        *status |= if periodic { 0x4000 } else { 0 };
        let mut value = value;
        if value & 0x40 != 0 && self.bell != Bell::Deaf {
            value &= !0x40;
            if self.bell == Bell::Answers {
                *status |= 0x20;
            }
        }
        self.words[USBCMD / 4] = value;
    }

    fn port(&mut self, offset: usize, value: u32) {
        let old = self.words[offset / 4];
        let mut new = old & 0x0000_0c3b & !(value & 0x2a);
        new |= value & 0x0000_3180;
        new |= old & value & 0x4;
        if old & 0x100 != 0 && value & 0x100 == 0 && old & 1 != 0 && self.high_speed {
            new |= 0x4;
        }
        self.words[offset / 4] = new;
    }
}

impl Bus for FakeBus {
    fn length(&self) -> usize {
        self.0.borrow().words.len() * 4
    }

    fn read8(&self, offset: usize) -> u8 {
        (self.read32(offset & !3) >> (8 * (offset & 3))) as u8
    }

    fn read16(&self, offset: usize) -> u16 {
        (self.read32(offset & !3) >> (8 * (offset & 2))) as u16
    }

    fn read32(&self, offset: usize) -> u32 {
        let mut state = self.0.borrow_mut();
        state.accesses += 1;
        match (state.silent, state.words.get(offset / 4)) {
            (Some(value), _) => value,
            (None, Some(word)) => *word,
            (None, None) => u32::MAX,
        }
    }

    fn write8(&self, _offset: usize, _value: u8) {
        panic!("EHCI registers are written as words");
    }

    fn write16(&self, _offset: usize, _value: u16) {
        panic!("EHCI registers are written as words");
    }

    fn write32(&self, offset: usize, value: u32) {
        let mut state = self.0.borrow_mut();
        state.accesses += 1;
        state.written.push((offset, value));
        if state.silent.is_none() {
            state.write(offset, value);
        }
    }
}

/// What the device does with one qTD.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// Moves all of it.
    All,
    /// Sends so many bytes, and a short packet.
    Short(u32),
    /// Sends so many bytes, in full packets, and then nothing for now.
    Pause(u32),
    /// Is not ready.
    Nak,
    /// Refuses.
    Stall,
    /// Is not there.
    Nothing,
}

/// One executed qTD, as it went over the bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    pub(super) address: u8,
    pub(super) endpoint: u8,
    pub(super) pid: u8,
    pub(super) toggle: u32,
    pub(super) bytes: u32,
}

/// Executes queues in shared memory.
#[derive(Debug)]
pub(super) struct Walker {
    pub(super) memory: TestMemory,
    pub(super) bus: FakeBus,
    pub(super) seen: Vec<Seen>,
}

impl Walker {
    /// Goes round the asynchronous list once. Each queue head executes qTDs until it has no more, or
    /// until the script has none for it: an entry is endpoint number, PID and answer.
    pub(super) fn walk(&mut self, script: &[(u8, u8, Answer)]) {
        let mut script: VecDeque<_> = script.iter().copied().collect();
        let head = self.bus.get(ASYNCLISTADDR);
        assert_eq!(self.memory.read32(head + 4) & 0x8000, 0x8000, "H is set");
        let mut at = self.memory.read32(head);
        while at & !0x1f != head {
            assert_eq!(at & 0x7, 2, "a queue head");
            self.queue_head(at & !0x1f, &mut script);
            at = self.memory.read32(at & !0x1f);
        }
        assert!(script.is_empty(), "nobody wanted {script:?}");
    }

    /// Asserts that no queue head has anything to execute.
    pub(super) fn assert_idle(&self) {
        let head = self.bus.get(ASYNCLISTADDR);
        let mut at = self.memory.read32(head) & !0x1f;
        while at != head {
            let characteristics = self.memory.read32(at + 4);
            assert!(!self.advance(at, characteristics), "nobody asked for it");
            at = self.memory.read32(at) & !0x1f;
        }
    }

    /// The queue head behind the head.
    pub(super) fn first(&self) -> u32 {
        self.memory.read32(self.bus.get(ASYNCLISTADDR)) & !0x1f
    }

    /// The queue heads that frame `frame` of the periodic list leads to.
    pub(super) fn frame(&self, frame: u32) -> Vec<u32> {
        let base = self.bus.get(OPERATIONAL + 0x14);
        let mut met = Vec::new();
        let mut at = self.memory.read32(base + 4 * frame);
        while at & 1 == 0 {
            met.push(at & !0x1f);
            at = self.memory.read32(at & !0x1f);
        }
        met
    }

    /// Executes one queue head.
    pub(super) fn queue_head(&mut self, head: u32, script: &mut VecDeque<(u8, u8, Answer)>) {
        let characteristics = self.memory.read32(head + 4);
        let endpoint = (characteristics >> 8 & 0xf) as u8;
        while self.advance(head, characteristics) {
            let token = self.memory.read32(head + 0x18);
            let pid = (token >> 8 & 3) as u8;
            let wanted = |entry: &(u8, u8, Answer)| entry.0 == endpoint && entry.1 == pid;
            let Some(place) = script.iter().position(wanted) else {
                return;
            };
            let Some((_, _, answer)) = script.remove(place) else {
                return;
            };
            if answer == Answer::Nak {
                return;
            }
            self.execute(head, characteristics, token, answer);
            if matches!(answer, Answer::Pause(_)) {
                return;
            }
        }
    }

    /// Makes the next qTD the current one unless there is one. Returns whether there is.
    fn advance(&self, head: u32, characteristics: u32) -> bool {
        let token = self.memory.read32(head + 0x18);
        if token & 0x40 != 0 {
            return false;
        }
        if token & 0x80 != 0 {
            return true;
        }
        let alternate = self.memory.read32(head + 0x14);
        let left = token >> 16 & 0x7fff;
        let next = if left != 0 && alternate & 1 == 0 {
            alternate
        } else {
            self.memory.read32(head + 0x10)
        };
        if next & 1 != 0 {
            return false;
        }
        let next = next & !0x1f;
        let fetched = self.memory.read32(next + 8);
        if fetched & 0x80 == 0 {
            return false;
        }
        for field in 0..2 {
            let pointer = self.memory.read32(next + 4 * field);
            self.memory.write32(head + 0x10 + 4 * field, pointer);
        }
        let own_toggle = characteristics & 0x4000 != 0;
        let toggle = if own_toggle { fetched } else { token } & 1 << 31;
        self.memory
            .write32(head + 0x18, fetched & !(1 << 31) | toggle);
        self.memory.write32(head + 0x0c, next);
        true
    }

    fn execute(&mut self, head: u32, characteristics: u32, token: u32, answer: Answer) {
        let total = token >> 16 & 0x7fff;
        let max_packet = characteristics >> 16 & 0x7ff;
        let (moved, ends, status) = match answer {
            Answer::All => (total, true, 0),
            Answer::Short(bytes) => (bytes, true, 0),
            Answer::Pause(bytes) => (bytes, false, 0x80),
            Answer::Stall => (0, true, 0x40),
            Answer::Nothing | Answer::Nak => (0, true, 0x48),
        };
        assert!(moved <= total, "babble is for the strict model");
        let packets = if status & 0x40 != 0 {
            0
        } else if ends && (answer != Answer::All || total == 0) {
            moved / max_packet + 1
        } else {
            moved.div_ceil(max_packet)
        };
        self.seen.push(Seen {
            address: (characteristics & 0x7f) as u8,
            endpoint: (characteristics >> 8 & 0xf) as u8,
            pid: (token >> 8 & 3) as u8,
            toggle: token >> 31,
            bytes: moved,
        });
        let mut after = token & 0x7000_ff00 & !(0x7fff << 16);
        if answer == Answer::Nothing {
            after &= !0xc00;
        }
        after |= (total - moved) << 16 | status;
        after |= (token ^ packets << 31) & 1 << 31;
        self.memory.write32(head + 0x18, after);
        if after & 0x80 == 0 {
            let current = self.memory.read32(head + 0x0c);
            self.memory.write32(current + 8, after);
        }
    }
}
