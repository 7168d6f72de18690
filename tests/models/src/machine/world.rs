//! [`World`]: what a machine consists of, behind its lock; and how its time runs.

use std::collections::BTreeMap;
use std::sync::MutexGuard;

use super::{Options, Power, Sleep, Statistics};
use crate::controller::{Controller, Surroundings, Width};
use crate::device::{MICROSECOND, Nanoseconds, UsbDevice};
use crate::memory::{Layout, Memory};
use crate::random::Random;

/// A controller in its place.
pub(super) struct Seat {
    pub(super) controller: Box<dyn Controller>,
    pub(super) statistics: Statistics,
    /// When its registers are out of reach, if ever.
    pub(super) lost: Option<LostRegisters>,
}

/// The way to a controller's registers breaks.
#[derive(Clone, Copy, Debug)]
pub(super) struct LostRegisters {
    /// Behind so many reads.
    pub(super) after_reads: u64,
    /// What reads give from then on.
    pub(super) reads_as: u32,
}

impl Seat {
    /// What reads give, if the registers are out of reach.
    fn reads_as(&self) -> Option<u32> {
        let lost = self.lost?;
        (self.statistics.reads > lost.after_reads).then_some(lost.reads_as)
    }
}

/// A device in its place: controller and port.
type Placed = (usize, usize, Box<dyn UsbDevice>);

/// All of a machine.
pub(crate) struct World {
    pub(super) options: Options,
    pub(super) now: Nanoseconds,
    pub(crate) memory: Memory,
    random: Random,
    pub(super) seats: Vec<Seat>,
    noticed: bool,
    interrupts_seen: u64,
    /// A rule was broken: the run has failed, and whoever unwinds meets silence.
    pub(super) broken: bool,
    pub(super) log: Vec<String>,
    /// Rails without power, and what is on them.
    pub(super) dark: BTreeMap<u8, Vec<Placed>>,
    pub(super) clock_looks: u64,
    /// After so many looks the clock is so far ahead of the time.
    pub(super) clock_jump: Option<(u64, Nanoseconds)>,
}

/// The locked world. If a rule is broken while it is held, the machine goes silent, so that
/// whatever the driver does while it unwinds breaks nothing more.
pub(crate) struct WorldGuard<'m> {
    pub(super) guard: MutexGuard<'m, World>,
}

impl std::ops::Deref for WorldGuard<'_> {
    type Target = World;

    fn deref(&self) -> &World {
        &self.guard
    }
}

impl std::ops::DerefMut for WorldGuard<'_> {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.guard
    }
}

impl Drop for WorldGuard<'_> {
    fn drop(&mut self) {
        self.guard.broken |= std::thread::panicking();
    }
}

impl World {
    pub(super) fn new(options: Options) -> Self {
        let mut random = Random::new(options.seed);
        let layout = Layout {
            line: options.cache_line,
            coherent: options.coherent,
            base: options.bus_base,
        };
        Self {
            options,
            now: 0,
            memory: Memory::new(layout, Random::new(random.bits())),
            random,
            seats: Vec::new(),
            noticed: false,
            interrupts_seen: 0,
            broken: false,
            log: Vec::new(),
            dark: BTreeMap::new(),
            clock_looks: 0,
            clock_jump: None,
        }
    }

    /// How much more the clock shows than has passed.
    pub(super) fn clock_ahead(&self) -> Nanoseconds {
        match self.clock_jump {
            Some((after, ahead)) if self.clock_looks > after => ahead,
            _ => 0,
        }
    }

    pub(super) fn with<T>(
        &mut self,
        controller: usize,
        act: impl FnOnce(&mut Seat, &mut Surroundings<'_>) -> T,
    ) -> T {
        let mut around = Surroundings {
            now: self.now,
            memory: &mut self.memory,
            random: &mut self.random,
            noticed: &mut self.noticed,
        };
        act(&mut self.seats[controller], &mut around)
    }

    pub(super) fn access(
        &mut self,
        controller: usize,
        offset: usize,
        bytes: usize,
        value: Option<u32>,
    ) -> u32 {
        let width = match bytes {
            1 => Width::Byte,
            2 => Width::Half,
            _ => Width::Word,
        };
        let ones = u32::MAX >> (32 - 8 * width.bytes());
        let until = self.now + self.options.access_time;
        self.advance(until);
        let inside = offset + width.bytes() <= self.seats[controller].controller.length();
        if self.broken || !inside {
            return ones;
        }
        if let Some(value) = self.seats[controller].reads_as() {
            return value & ones;
        }
        self.memory.disturb();
        self.with(controller, |seat, around| match value {
            Some(value) => {
                seat.controller.write(around, offset, width, value);
                0
            }
            None => seat.controller.read(around, offset, width),
        })
    }

    /// Takes what is on a rail's ports off the bus, or puts it back.
    pub(super) fn switch_rail(&mut self, rail: u8, on: bool) {
        let Power::Rails(rails) = self.options.power else {
            return;
        };
        if on {
            for (seat, port, device) in self.dark.remove(&rail).unwrap_or_default() {
                self.with(seat, |seat, around| {
                    seat.controller.plug(around, port, device);
                });
            }
            return;
        }
        let mut taken = Vec::new();
        for index in 0..self.seats.len() {
            let ports = 0..self.seats[index].controller.ports();
            for port in ports.filter(|port| port % usize::from(rails) == usize::from(rail)) {
                let device = self.with(index, |seat, around| seat.controller.unplug(around, port));
                taken.extend(device.map(|device| (index, port, device)));
            }
        }
        self.dark.entry(rail).or_default().append(&mut taken);
    }

    fn next_event(&self) -> Option<(Nanoseconds, usize)> {
        let due = |(index, seat): (usize, &Seat)| Some((seat.controller.next_event()?, index));
        self.seats.iter().enumerate().filter_map(due).min()
    }

    /// Does the next thing that is due by `until`, if there is one.
    fn step(&mut self, until: Nanoseconds) -> bool {
        match self.next_event() {
            Some((at, controller)) if at <= until && !self.broken => {
                self.now = self.now.max(at);
                self.with(controller, |seat, around| seat.controller.run(around));
                true
            }
            _ => false,
        }
    }

    pub(super) fn advance(&mut self, until: Nanoseconds) {
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    pub(super) fn wait(&mut self, until: Nanoseconds) {
        let until = until.max(self.now + MICROSECOND);
        while !self.wakes() {
            if !self.step(until) {
                assert!(
                    until != Nanoseconds::MAX || self.broken,
                    "the driver waits for ever, and nothing will happen"
                );
                self.now = self.now.max(until);
                return;
            }
        }
        let soon = self.now + 100;
        self.advance(soon);
    }

    /// Whether something happened since the last wait that ends this one.
    fn wakes(&mut self) -> bool {
        match self.options.sleep {
            Sleep::UntilAnything => std::mem::take(&mut self.noticed) || self.broken,
            Sleep::UntilInterrupt => {
                let seats = &self.seats;
                let total = seats.iter().map(|seat| seat.controller.interrupts()).sum();
                let line = seats.iter().any(|seat| seat.controller.interrupt_line());
                let new = std::mem::replace(&mut self.interrupts_seen, total) != total;
                new || line || self.broken
            }
        }
    }

    pub(super) fn stored(&mut self, cpu: usize, length: usize) {
        if self.broken {
            return;
        }
        if let Some(bus) = self.memory.stored(cpu, length) {
            for index in 0..self.seats.len() {
                self.with(index, |seat, around| {
                    seat.controller.stored(around, bus, length as u64);
                });
            }
        }
    }
}
