//! A tiny raw register driver. It does everything right, in pieces that a test can leave out or do
//! wrong. It waits by virtual time and knows no error handling.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rootport_models::controller::xhci::{Faults, Traits};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Disk, Link, MILLISECOND, Nanoseconds, SECOND, Script};
use rootport_models::machine::{Machine, Options};

pub(crate) const NORMAL: u32 = 1;
pub(crate) const SETUP: u32 = 2;
pub(crate) const DATA: u32 = 3;
pub(crate) const STATUS: u32 = 4;
pub(crate) const LINK: u32 = 6;
pub(crate) const IOC: u32 = 1 << 5;
pub(crate) const ISP: u32 = 1 << 2;
pub(crate) const CHAIN: u32 = 1 << 4;
pub(crate) const IN: u32 = 1 << 16;

pub(crate) const PORT_RESET: u32 = 1 << 4;
pub(crate) const PORT_POWER: u32 = 1 << 9;
pub(crate) const PORT_CHANGES: u32 = 0x7f << 17;

/// A ring of one segment with a link at its end.
pub(crate) struct Ring {
    pub(crate) base: u64,
    pub(crate) trbs: u64,
    pub(crate) index: u64,
    pub(crate) cycle: u32,
}

impl Ring {
    pub(crate) fn new(machine: &Machine, trbs: u64) -> Self {
        Self {
            base: machine.coherent(16 * trbs as usize),
            trbs,
            index: 0,
            cycle: 1,
        }
    }

    pub(crate) fn place(&self) -> u64 {
        self.base + 16 * self.index
    }

    /// Writes a TRB, its cycle bit last, and the link where the ring ends: the TRB's address.
    pub(crate) fn push(&mut self, machine: &Machine, words: [u32; 4]) -> u64 {
        let at = self.place();
        machine.store(at, &words[..3]);
        machine.release();
        machine.store(at + 12, &[words[3] | self.cycle]);
        machine.release();
        self.index += 1;
        if self.index == self.trbs - 1 {
            self.link(machine, words[3] & CHAIN);
        }
        at
    }

    fn link(&mut self, machine: &Machine, chain: u32) {
        let at = self.place();
        machine.store(at, &[self.base as u32, (self.base >> 32) as u32, 0]);
        machine.release();
        machine.store(at + 12, &[LINK << 10 | 1 << 1 | chain | self.cycle]);
        machine.release();
        self.index = 0;
        self.cycle ^= 1;
    }
}

/// An event as it lies on the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Event(pub(crate) [u32; 4]);

impl Event {
    pub(crate) fn kind(self) -> u32 {
        self.0[3] >> 10 & 0x3f
    }
    pub(crate) fn code(self) -> u32 {
        self.0[2] >> 24
    }
    pub(crate) fn length(self) -> u32 {
        self.0[2] & 0xff_ffff
    }
    pub(crate) fn pointer(self) -> u64 {
        u64::from(self.0[1]) << 32 | u64::from(self.0[0])
    }
    pub(crate) fn slot(self) -> u32 {
        self.0[3] >> 24
    }
    pub(crate) fn endpoint(self) -> u32 {
        self.0[3] >> 16 & 0x1f
    }
}

pub(crate) struct Raw {
    pub(crate) machine: Machine,
    pub(crate) controller: usize,
    pub(crate) operational: usize,
    pub(crate) runtime: usize,
    pub(crate) doorbells: usize,
    pub(crate) context: u64,
    pub(crate) contexts: u64,
    pub(crate) commands: Ring,
    pub(crate) events: u64,
    pub(crate) event_trbs: u64,
    pub(crate) event_index: u64,
    pub(crate) event_cycle: u32,
    pub(crate) table: u64,
    pub(crate) input: u64,
    /// Rings by slot and endpoint index.
    pub(crate) rings: std::collections::BTreeMap<(u32, u32), Ring>,
}

pub(crate) fn machine() -> Machine {
    Machine::new(Options::default())
}

impl Raw {
    /// Finds the register sets and takes memory; touches nothing yet.
    pub(crate) fn probe(machine: &Machine, controller: usize) -> Self {
        let read = |offset| machine.read(controller, offset, 4);
        let operational = machine.read(controller, 0, 1) as usize;
        let context = if read(0x10) & 4 != 0 { 64 } else { 32 };
        Self {
            operational,
            runtime: read(0x18) as usize,
            doorbells: read(0x14) as usize,
            context,
            contexts: machine.coherent(4096),
            commands: Ring::new(machine, 64),
            events: machine.coherent(16 * 64),
            event_trbs: 64,
            event_index: 0,
            event_cycle: 1,
            table: machine.coherent(64),
            input: machine.coherent(4096),
            rings: Default::default(),
            machine: machine.clone(),
            controller,
        }
    }

    /// A machine with such a controller, brought up.
    pub(crate) fn running(traits: Traits) -> Self {
        let machine = machine();
        let controller = machine.add_xhci(traits);
        let mut raw = Self::probe(&machine, controller);
        raw.bring_up();
        raw
    }

    pub(crate) fn read(&self, offset: usize) -> u32 {
        self.machine.read(self.controller, offset, 4)
    }
    pub(crate) fn write(&self, offset: usize, value: u32) {
        self.machine.write(self.controller, offset, 4, value);
    }
    pub(crate) fn write64(&self, offset: usize, value: u64) {
        self.write(offset, value as u32);
        if self.read(0x10) & 1 != 0 {
            self.write(offset + 4, (value >> 32) as u32);
        }
    }

    /// Reads a register until a condition holds.
    pub(crate) fn until(&self, offset: usize, what: impl Fn(u32) -> bool) -> u32 {
        let deadline = self.machine.now() + SECOND;
        loop {
            let value = self.read(offset);
            if what(value) {
                return value;
            }
            assert!(
                self.machine.now() < deadline,
                "register {offset:#x} stays {value:#x}"
            );
            self.machine.advance(10_000);
        }
    }

    /// Where the capabilities begin: with the legacy one, if there is firmware.
    pub(crate) fn extended(&self) -> usize {
        (self.read(0x10) >> 16) as usize * 4
    }

    /// Takes the controller from its firmware, which lets it go, and silences that.
    pub(crate) fn take_from_firmware(&self) {
        let legacy = self.extended();
        self.write(legacy, self.read(legacy) | 1 << 24);
        self.until(legacy, |owner| owner & 1 << 16 == 0);
        self.write(legacy + 4, 0xe000_0000);
    }

    pub(crate) fn bring_up(&mut self) {
        self.reset();
        self.program_slots();
        self.program_contexts();
        self.program_commands();
        self.program_events();
        self.run();
    }

    pub(crate) fn reset(&self) {
        self.until(self.operational + 4, |status| status & 1 << 11 == 0);
        let command = self.read(self.operational);
        self.write(self.operational, command & !1);
        self.until(self.operational + 4, |status| status & 1 != 0);
        let command = self.read(self.operational);
        self.write(self.operational, command | 2);
        self.until(self.operational, |command| command & 2 == 0);
        self.until(self.operational + 4, |status| status & 1 << 11 == 0);
    }

    pub(crate) fn program_slots(&self) {
        let slots = self.read(4) & 0xff;
        let config = self.read(self.operational + 0x38);
        self.write(self.operational + 0x38, config & !0xff | slots);
    }

    pub(crate) fn program_contexts(&self) {
        let parameters = self.read(8);
        let pages = u64::from((parameters >> 21 & 0x1f) << 5 | parameters >> 27);
        if pages != 0 {
            let size = (self.read(self.operational + 8) as u64) << 12;
            let array = self.machine.coherent(8 * pages as usize);
            for index in 0..pages {
                let page = self
                    .machine
                    .coherent(2 * size as usize)
                    .next_multiple_of(size);
                self.machine
                    .store(array + 8 * index, &[page as u32, (page >> 32) as u32]);
            }
            self.machine
                .store(self.contexts, &[array as u32, (array >> 32) as u32]);
            self.machine.release();
        }
        self.write64(self.operational + 0x30, self.contexts);
    }

    pub(crate) fn program_commands(&self) {
        self.write64(self.operational + 0x18, self.commands.base | 1);
    }

    pub(crate) fn program_events(&self) {
        let (low, high) = (self.events as u32, (self.events >> 32) as u32);
        self.machine
            .store(self.table, &[low, high, self.event_trbs as u32, 0]);
        self.machine.release();
        self.write(self.interrupter(8), 1);
        self.write64(self.interrupter(0x18), self.events);
        self.write64(self.interrupter(0x10), self.table);
        self.write(self.interrupter(4), 0);
        self.write(self.interrupter(0), 2);
    }

    pub(crate) fn interrupter(&self, register: usize) -> usize {
        self.runtime + 0x20 + register
    }

    pub(crate) fn run(&self) {
        let command = self.read(self.operational);
        self.write(self.operational, command | 0b101);
        self.until(self.operational + 4, |status| status & 1 == 0);
    }

    /// Takes the next event if it comes in time, and tells the controller.
    pub(crate) fn event_within(&mut self, span: Nanoseconds) -> Option<Event> {
        let deadline = self.machine.now() + span;
        loop {
            let words = self.machine.load(self.events + 16 * self.event_index);
            if words[3] & 1 == self.event_cycle {
                self.event_index += 1;
                if self.event_index == self.event_trbs {
                    self.event_index = 0;
                    self.event_cycle ^= 1;
                }
                self.acknowledge();
                return Some(Event(words));
            }
            if self.machine.now() >= deadline {
                return None;
            }
            self.machine.wait(deadline);
        }
    }

    pub(crate) fn acknowledge(&self) {
        let at = self.events + 16 * self.event_index;
        self.write64(self.interrupter(0x18), at | 1 << 3);
    }

    pub(crate) fn event(&mut self) -> Event {
        self.event_within(10 * SECOND).expect("no event came")
    }

    /// The next event of a kind; others are dropped.
    pub(crate) fn event_of(&mut self, kind: u32) -> Event {
        loop {
            let event = self.event();
            if event.kind() == kind {
                return event;
            }
        }
    }

    pub(crate) fn queue_command(&mut self, words: [u32; 4]) -> u64 {
        let machine = self.machine.clone();
        self.commands.push(&machine, words)
    }

    /// Runs a command to its end.
    pub(crate) fn command(&mut self, words: [u32; 4]) -> Event {
        let at = self.queue_command(words);
        self.write(self.doorbells, 0);
        let event = self.event_of(33);
        assert_eq!(event.pointer(), at);
        event
    }

    /// The same with a pointer to the input context.
    pub(crate) fn command_with_input(&mut self, kind: u32, slot: u32) -> Event {
        let (low, high) = (self.input as u32, (self.input >> 32) as u32);
        self.command([low, high, 0, slot << 24 | kind << 10])
    }

    pub(crate) fn port(&self, port: usize) -> usize {
        self.operational + 0x400 + 0x10 * port
    }

    /// Waits for a connection and resets the port: its speed.
    pub(crate) fn reset_port(&mut self, port: usize) -> u32 {
        self.until(self.port(port), |status| status & 1 != 0);
        let status = self.read(self.port(port));
        if status & 2 == 0 {
            self.write(self.port(port), PORT_POWER | PORT_RESET);
            self.until(self.port(port), |status| status & 1 << 21 != 0);
        }
        self.write(self.port(port), PORT_POWER | PORT_CHANGES);
        self.machine.advance(10 * MILLISECOND);
        self.read(self.port(port)) >> 10 & 0xf
    }

    pub(crate) fn enable_slot(&mut self) -> u32 {
        let event = self.command([0, 0, 0, 9 << 10]);
        assert_eq!(event.code(), 1);
        event.slot()
    }

    pub(crate) fn store_input(&self, index: u64, words: &[u32]) {
        self.machine.store(self.input + self.context * index, words);
    }

    pub(crate) fn clear_input(&self) {
        self.machine.store(self.input, &[0; 1024]);
    }

    /// Fills the input context for Address Device, with a new ring for endpoint 0.
    pub(crate) fn prepare_address(&mut self, slot: u32, port: usize, speed: u32) {
        let contexts = self.machine.coherent(4096);
        let entry = self.contexts + 8 * u64::from(slot);
        self.machine
            .store(entry, &[contexts as u32, (contexts >> 32) as u32]);
        let ring = Ring::new(&self.machine, 16);
        let packet = match speed {
            1 | 2 => 8,
            3 => 64,
            _ => 512,
        };
        self.clear_input();
        self.store_input(0, &[0, 0b11]);
        self.store_input(1, &[1 << 27 | speed << 20, (port as u32 + 1) << 16]);
        let (low, high) = (ring.base as u32 | 1, (ring.base >> 32) as u32);
        self.store_input(2, &[0, packet << 16 | 4 << 3 | 3 << 1, low, high, 8]);
        self.machine.release();
        self.rings.insert((slot, 1), ring);
    }

    /// Reset, slot, address: the slot.
    pub(crate) fn address(&mut self, port: usize) -> u32 {
        let speed = self.reset_port(port);
        let slot = self.enable_slot();
        self.prepare_address(slot, port, speed);
        assert_eq!(self.command_with_input(11, slot).code(), 1);
        self.machine.advance(2 * MILLISECOND);
        slot
    }

    pub(crate) fn slot_context(&self, slot: u32) -> [u32; 8] {
        self.output(slot, 0)
    }

    pub(crate) fn output(&self, slot: u32, index: u64) -> [u32; 8] {
        let [low, high] = self.machine.load(self.contexts + 8 * u64::from(slot));
        let contexts = u64::from(high) << 32 | u64::from(low);
        self.machine.load(contexts + self.context * index)
    }

    /// Fills the input context with two bulk endpoints: IN 1 (index 3) and OUT 2 (index 4).
    pub(crate) fn prepare_bulk(&mut self, slot: u32, max_burst: u32) {
        let mut context = self.slot_context(slot);
        let packet = if context[0] >> 20 & 0xf >= 4 {
            1024
        } else {
            512
        };
        context[0] = context[0] & 0x07ff_ffff | 4 << 27;
        self.clear_input();
        self.store_input(0, &[0, 0b1_1001]);
        self.store_input(1, &context[..3]);
        for (index, kind) in [(3_u32, 6), (4, 2)] {
            let ring = Ring::new(&self.machine, 256);
            let (low, high) = (ring.base as u32 | 1, (ring.base >> 32) as u32);
            let shape = packet << 16 | max_burst << 8 | kind << 3 | 3 << 1;
            self.store_input(u64::from(index) + 1, &[0, shape, low, high, 3072]);
            self.rings.insert((slot, index), ring);
        }
        self.machine.release();
    }

    pub(crate) fn configure_bulk(&mut self, slot: u32, max_burst: u32) {
        self.prepare_bulk(slot, max_burst);
        assert_eq!(self.command_with_input(12, slot).code(), 1);
        self.control_out(slot, [0, 9, 1, 0, 0, 0, 0, 0]);
    }

    pub(crate) fn push(&mut self, slot: u32, index: u32, words: [u32; 4]) -> u64 {
        let machine = self.machine.clone();
        self.rings
            .get_mut(&(slot, index))
            .expect("no ring")
            .push(&machine, words)
    }

    pub(crate) fn kick(&self, slot: u32, index: u32) {
        self.write(self.doorbells + 4 * slot as usize, index);
    }

    pub(crate) fn push_setup(&mut self, slot: u32, bytes: [u8; 8], transfer_type: u32) {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        self.push(
            slot,
            1,
            [
                word(0),
                word(4),
                8,
                transfer_type << 16 | SETUP << 10 | 1 << 6,
            ],
        );
    }

    /// A control transfer without data.
    pub(crate) fn control_out(&mut self, slot: u32, bytes: [u8; 8]) {
        self.push_setup(slot, bytes, 0);
        self.push(slot, 1, [0, 0, 0, IN | STATUS << 10 | IOC]);
        self.kick(slot, 1);
        assert_eq!(self.event_of(32).code(), 1);
    }

    /// A control transfer with data from the device: the events and where the data is.
    pub(crate) fn control_in(&mut self, slot: u32, bytes: [u8; 8]) -> (Vec<Event>, u64) {
        let length = u32::from(u16::from_le_bytes([bytes[6], bytes[7]]));
        let data = self.machine.coherent(length.next_multiple_of(4) as usize);
        self.push_setup(slot, bytes, 3);
        let words = [
            data as u32,
            (data >> 32) as u32,
            length,
            IN | DATA << 10 | ISP,
        ];
        self.push(slot, 1, words);
        self.push(slot, 1, [0, 0, 0, STATUS << 10 | IOC]);
        self.kick(slot, 1);
        let mut events = vec![self.event_of(32)];
        if events[0].code() == 13 {
            events.push(self.event_of(32));
        }
        (events, data)
    }

    /// Queues a normal TRB on a bulk endpoint.
    pub(crate) fn push_normal(
        &mut self,
        slot: u32,
        index: u32,
        at: u64,
        length: u32,
        flags: u32,
    ) -> u64 {
        self.push(
            slot,
            index,
            [at as u32, (at >> 32) as u32, length, NORMAL << 10 | flags],
        )
    }

    /// A bulk transfer of one TRB to its end.
    pub(crate) fn bulk(&mut self, slot: u32, index: u32, at: u64, length: u32) -> Event {
        self.push_normal(slot, index, at, length, IOC | ISP);
        self.kick(slot, index);
        self.event_of(32)
    }

    /// A command wrapper for data from the device, in coherent memory.
    pub(crate) fn wrapper(&self, length: u32, block: &[u8]) -> u64 {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(b"USBC");
        bytes[4] = 1;
        bytes[8..12].copy_from_slice(&length.to_le_bytes());
        (bytes[12], bytes[14]) = (0x80, block.len() as u8);
        bytes[15..15 + block.len()].copy_from_slice(block);
        let words = bytes.chunks_exact(4);
        let words = words.map(|chunk| u32::from_le_bytes(chunk.try_into().expect("four")));
        let at = self.machine.coherent(32);
        self.machine.store(at, &words.collect::<Vec<u32>>());
        self.machine.release();
        at
    }

    /// A Bulk-Only command that reads up to 128 blocks, with its data in coherent memory.
    pub(crate) fn read_blocks(&mut self, slot: u32, lba: u8, blocks: u8) -> Vec<u8> {
        let length = u32::from(blocks) * 512;
        let wrapper = self.wrapper(length, &[0x28, 0, 0, 0, 0, lba, 0, 0, blocks, 0]);
        assert_eq!(self.bulk(slot, 4, wrapper, 31).code(), 1);
        let data = self.machine.coherent(0x2_0000).next_multiple_of(0x1_0000);
        assert_eq!(self.bulk(slot, 3, data, length).code(), 1);
        let status = self.machine.coherent(16);
        assert_eq!(self.bulk(slot, 3, status, 13).code(), 1);
        assert_eq!(self.bytes(status, 13)[12], 0);
        self.bytes(data, length as usize)
    }

    pub(crate) fn bytes(&self, bus: u64, length: usize) -> Vec<u8> {
        self.machine.load_bytes(bus, length)
    }
}

/// A machine with a high-speed disk in port 0 and a SuperSpeed one in port 2, the controller running.
pub(crate) fn with_disks(traits: Traits, faults: Faults) -> Raw {
    let machine = machine();
    let controller = machine.add_faulty_xhci(traits, faults);
    machine.plug(controller, 0, disk(Link::High));
    machine.plug(controller, 2, disk(Link::Super));
    let mut raw = Raw::probe(&machine, controller);
    raw.bring_up();
    raw
}

/// The same with the disk of a port addressed and configured: its slot.
pub(crate) fn configured(port: usize) -> (Raw, u32) {
    let mut raw = with_disks(Traits::default(), Faults::none());
    let slot = raw.address(port);
    raw.configure_bulk(slot, 0);
    (raw, slot)
}

/// A good disk.
pub(crate) fn disk(link: Link) -> Disk {
    Script::new()
        .speed(link)
        .unit(LogicalUnit::stick(65536).content(b"block zero"))
        .build()
}

/// Runs what breaks a rule: the model must name the section.
#[track_caller]
pub(crate) fn breaks<T>(section: &str, act: impl FnOnce() -> T) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(act)) else {
        panic!("nothing objected, {section} was expected");
    };
    let literal = panic.downcast_ref::<&str>().copied().unwrap_or_default();
    let message = panic
        .downcast_ref::<String>()
        .map_or(literal, String::as_str);
    assert!(
        message.starts_with(section),
        "expected {section}, got: {message}"
    );
}
