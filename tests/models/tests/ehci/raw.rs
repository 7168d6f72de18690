//! A tiny raw register driver. It does everything right, in pieces that a test can leave out or do
//! wrong. It waits by virtual time and knows no error handling.

use rootport_models::controller::ehci::{Faults, Traits};
use rootport_models::device::{MILLISECOND, Nanoseconds, SECOND, UsbDevice};
use rootport_models::machine::{Machine, Options};

pub(crate) const USBCMD: usize = 0x00;
pub(crate) const USBSTS: usize = 0x04;
pub(crate) const USBINTR: usize = 0x08;
pub(crate) const FRINDEX: usize = 0x0c;
pub(crate) const CTRLDSSEGMENT: usize = 0x10;
pub(crate) const PERIODICLISTBASE: usize = 0x14;
pub(crate) const ASYNCLISTADDR: usize = 0x18;
pub(crate) const CONFIGFLAG: usize = 0x40;

pub(crate) const RUN: u32 = 1;
pub(crate) const RESET: u32 = 2;
pub(crate) const PSE: u32 = 1 << 4;
pub(crate) const ASE: u32 = 1 << 5;
pub(crate) const IAAD: u32 = 1 << 6;
pub(crate) const HALTED: u32 = 1 << 12;
pub(crate) const PERIODIC_STATUS: u32 = 1 << 14;
pub(crate) const ASYNC_STATUS: u32 = 1 << 15;
pub(crate) const IAA: u32 = 1 << 5;

pub(crate) const CONNECTED: u32 = 1;
pub(crate) const CONNECT_CHANGE: u32 = 1 << 1;
pub(crate) const ENABLED: u32 = 1 << 2;
pub(crate) const PORT_CHANGES: u32 = 0x2a;
pub(crate) const PORT_RESET: u32 = 1 << 8;
pub(crate) const OWNER: u32 = 1 << 13;

pub(crate) const ACTIVE: u32 = 0x80;
pub(crate) const STOPPED: u32 = 0x40;
pub(crate) const OUT: u32 = 0;
pub(crate) const IN: u32 = 1 << 8;
pub(crate) const SETUP: u32 = 2 << 8;
pub(crate) const IOC: u32 = 1 << 15;
pub(crate) const DATA1: u32 = 1 << 31;
pub(crate) const END: u32 = 1;

/// The static words of a queue head.
pub(crate) fn bulk(device: u32, endpoint: u32) -> [u32; 2] {
    [
        4 << 28 | 512 << 16 | 2 << 12 | endpoint << 8 | device,
        1 << 30,
    ]
}

pub(crate) fn control(device: u32) -> [u32; 2] {
    [64 << 16 | 1 << 14 | 2 << 12 | device, 1 << 30]
}

/// A queue head with its tail qTD, which is inactive and waits for the next transfer.
#[derive(Clone, Copy)]
pub(crate) struct Queue {
    pub(crate) at: u64,
    pub(crate) tail: u64,
}

pub(crate) struct Raw {
    pub(crate) machine: Machine,
    pub(crate) controller: usize,
    pub(crate) operational: usize,
    pub(crate) wide: bool,
    pub(crate) head: u64,
    pub(crate) frames: u64,
}

impl Raw {
    /// Finds the register sets and takes memory; touches nothing yet.
    pub(crate) fn probe(machine: &Machine, controller: usize) -> Self {
        Self {
            operational: machine.read(controller, 0, 1) as usize,
            wide: machine.read(controller, 8, 4) & 1 != 0,
            head: machine.coherent(4096),
            frames: machine.coherent(4096),
            machine: machine.clone(),
            controller,
        }
    }

    /// A machine with such a controller, brought up.
    pub(crate) fn running(traits: Traits) -> Self {
        Self::running_with(traits, Faults::none())
    }

    pub(crate) fn running_with(traits: Traits, faults: Faults) -> Self {
        let machine = Machine::new(Options::default());
        let controller = machine.add_faulty_ehci(traits, faults);
        let raw = Self::probe(&machine, controller);
        raw.bring_up();
        raw
    }

    /// Brought up, with a device that is out of its reset in port 0.
    pub(crate) fn with_device(device: impl UsbDevice + 'static) -> Self {
        let raw = Self::running(Traits::default());
        raw.plug(device);
        raw
    }

    pub(crate) fn plug(&self, device: impl UsbDevice + 'static) {
        self.machine.plug(self.controller, 0, device);
        self.enable_port(0);
    }

    pub(crate) fn read(&self, register: usize) -> u32 {
        self.machine
            .read(self.controller, self.operational + register, 4)
    }

    pub(crate) fn write(&self, register: usize, value: u32) {
        self.machine
            .write(self.controller, self.operational + register, 4, value);
    }

    pub(crate) fn set(&self, register: usize, bits: u32) {
        self.write(register, self.read(register) | bits);
    }

    pub(crate) fn clear(&self, register: usize, bits: u32) {
        self.write(register, self.read(register) & !bits);
    }

    /// Reads a register until a condition holds.
    pub(crate) fn until(&self, register: usize, what: impl Fn(u32) -> bool) -> u32 {
        let deadline = self.machine.now() + SECOND;
        loop {
            let value = self.read(register);
            if what(value) {
                return value;
            }
            assert!(
                self.machine.now() < deadline,
                "register {register:#x} stays {value:#x}"
            );
            self.machine.advance(10_000);
        }
    }

    pub(crate) fn bring_up(&self) {
        self.stop();
        self.reset();
        self.program();
        self.run();
        self.write(CONFIGFLAG, 1);
    }

    pub(crate) fn stop(&self) {
        self.clear(USBCMD, RUN);
        self.until(USBSTS, |status| status & HALTED != 0);
    }

    pub(crate) fn reset(&self) {
        self.set(USBCMD, RESET);
        self.until(USBCMD, |command| command & RESET == 0);
    }

    /// An asynchronous list of its head alone, an empty frame list, a threshold of a microframe.
    pub(crate) fn program(&self) {
        self.machine.store(self.frames, &[END; 1024]);
        let link = self.head as u32 | 2;
        self.store_head(
            self.head,
            &[link, 1 << 15 | 2 << 12, 1 << 30, 0, END, END, STOPPED],
        );
        self.machine.release();
        if self.wide {
            self.write(CTRLDSSEGMENT, (self.head >> 32) as u32);
        }
        self.write(PERIODICLISTBASE, self.frames as u32);
        self.write(ASYNCLISTADDR, self.head as u32);
        self.write(USBINTR, 0x37);
        self.write(USBCMD, self.read(USBCMD) & !0xff_0000 | 1 << 16);
    }

    pub(crate) fn run(&self) {
        self.set(USBCMD, RUN);
        self.until(USBSTS, |status| status & HALTED == 0);
        self.set(USBCMD, ASE);
        self.until(USBSTS, |status| status & ASYNC_STATUS != 0);
    }

    pub(crate) fn start_periodic(&self) {
        self.set(USBCMD, PSE);
        self.until(USBSTS, |status| status & PERIODIC_STATUS != 0);
    }

    /// Stores a queue head, with zeros where only 64-bit controllers look.
    pub(crate) fn store_head(&self, at: u64, words: &[u32]) {
        let mut all = vec![0; if self.wide { 17 } else { 12 }];
        all[..words.len()].copy_from_slice(words);
        self.machine.store(at, &all);
    }

    pub(crate) fn port(&self, index: usize) -> usize {
        0x44 + 4 * index
    }

    /// Changes PORTSC without acknowledging anything by the way.
    pub(crate) fn change_port(&self, index: usize, clear: u32, set: u32) {
        let value = self.read(self.port(index)) & !PORT_CHANGES;
        self.write(self.port(index), value & !clear | set);
    }

    pub(crate) fn enable_port(&self, index: usize) {
        self.until(self.port(index), |port| port & CONNECTED != 0);
        self.change_port(index, 0, CONNECT_CHANGE);
        self.machine.advance(100 * MILLISECOND);
        self.change_port(index, ENABLED, PORT_RESET);
        self.machine.advance(50 * MILLISECOND);
        self.change_port(index, PORT_RESET, 0);
        self.until(self.port(index), |port| port & PORT_RESET == 0);
        self.machine.advance(12 * MILLISECOND);
    }

    pub(crate) fn descriptor(&self) -> u64 {
        self.machine.coherent(64)
    }

    /// Makes a queue head with an inactive tail, not linked yet.
    pub(crate) fn queue(&self, statics: [u32; 2]) -> Queue {
        let (at, tail) = (self.machine.coherent(128), self.descriptor());
        self.machine.store(tail, &[END, END, 0]);
        self.store_head(at, &[END, statics[0], statics[1], 0, tail as u32, END, 0]);
        self.machine.release();
        Queue { at, tail }
    }

    /// Links a queue head behind the head of the list.
    pub(crate) fn link(&self, queue: Queue) {
        let [next] = self.machine.load(self.head);
        self.machine.store(queue.at, &[next]);
        self.machine.release();
        self.machine.store(self.head, &[queue.at as u32 | 2]);
        self.machine.release();
    }

    pub(crate) fn linked(&self, statics: [u32; 2]) -> Queue {
        let queue = self.queue(statics);
        self.link(queue);
        queue
    }

    /// Takes a queue head out of the list; the controller may still hold it.
    pub(crate) fn unlink(&self, queue: Queue) {
        let [next] = self.machine.load(queue.at);
        let mut at = self.head;
        loop {
            let [link] = self.machine.load(at);
            let behind = at & !0xffff_ffff | u64::from(link & !0x1f);
            if behind == queue.at {
                break;
            }
            at = behind;
        }
        self.machine.store(at, &[next]);
        self.machine.release();
    }

    /// Rings the doorbell and waits for the answer.
    pub(crate) fn handshake(&self) {
        self.write(USBSTS, IAA);
        self.set(USBCMD, IAAD);
        self.until(USBSTS, |status| status & IAA != 0);
        self.write(USBSTS, IAA);
    }

    /// The words of a qTD on `length` bytes at `data`.
    pub(crate) fn words(&self, token: u32, data: u64, length: u32, next: u32) -> Vec<u32> {
        let mut words = vec![next, END, token | length << 16 | 3 << 10];
        let first = data & !0xfff;
        words.push(data as u32);
        words.extend((1..5).map(|page| (first + 4096 * page) as u32));
        if self.wide {
            words.extend((0..5).map(|page| ((first + 4096 * page) >> 32) as u32));
        }
        words
    }

    /// Appends a transfer to a queue that may be live: a new tail is made, the old one is filled and
    /// its Active bit comes last. The address of its qTD.
    pub(crate) fn submit(&self, queue: &mut Queue, token: u32, data: u64, length: u32) -> u64 {
        let new = self.descriptor();
        self.machine.store(new, &[END, END, 0]);
        let words = self.words(token, data, length, new as u32);
        self.machine.store(queue.tail, &words[..2]);
        self.machine.store(queue.tail + 12, &words[3..]);
        self.machine.release();
        self.machine.store(queue.tail + 8, &[words[2] | ACTIVE]);
        self.machine.release();
        std::mem::replace(&mut queue.tail, new)
    }

    /// Waits until a qTD is retired: its token.
    pub(crate) fn wait(&self, descriptor: u64) -> u32 {
        self.wait_within(descriptor, SECOND)
            .expect("the qTD is retired")
    }

    pub(crate) fn wait_within(&self, descriptor: u64, span: Nanoseconds) -> Option<u32> {
        let deadline = self.machine.now() + span;
        loop {
            let [token] = self.machine.load(descriptor + 8);
            if token & ACTIVE == 0 {
                return Some(token);
            }
            if self.machine.now() >= deadline {
                return None;
            }
            self.machine.advance(5_000);
        }
    }

    pub(crate) fn bytes(&self, bus: u64, length: usize) -> Vec<u8> {
        let words = (0..length.div_ceil(4)).map(|index| {
            let [word] = self.machine.load(bus + 4 * index as u64);
            word
        });
        let mut bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        bytes.truncate(length);
        bytes
    }

    pub(crate) fn fill(&self, bus: u64, bytes: &[u8]) {
        for (index, chunk) in bytes.chunks(4).enumerate() {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            self.machine
                .store(bus + 4 * index as u64, &[u32::from_le_bytes(word)]);
        }
        self.machine.release();
    }

    /// A control transfer with data from the device, or without data: what came.
    pub(crate) fn control(&self, queue: &mut Queue, setup: [u8; 8]) -> Vec<u8> {
        let data = self.machine.coherent(4096);
        let length = u32::from(u16::from_le_bytes([setup[6], setup[7]]));
        self.fill(data, &setup);
        let first = self.submit(queue, SETUP, data, 8);
        assert_eq!(self.wait(first) & STOPPED, 0, "SETUP was refused");
        let buffer = self.machine.coherent(4096);
        let mut came = 0;
        if length != 0 {
            let stage = self.submit(queue, IN | DATA1, buffer, length);
            let token = self.wait(stage);
            assert_eq!(token & STOPPED, 0, "the data stage was refused");
            came = length - (token >> 16 & 0x7fff);
        }
        let direction = if length == 0 { IN } else { OUT };
        let status = self.submit(queue, direction | DATA1, 0, 0);
        assert_eq!(self.wait(status) & STOPPED, 0, "the status was refused");
        self.bytes(buffer, came as usize)
    }
}
