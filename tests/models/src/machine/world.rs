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
}

/// A device in its place: controller and port.
type Placed = (usize, usize, Box<dyn UsbDevice>);

/// A panic of the platform's own code that a test asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Panic {
    /// None.
    None,
    /// It comes with the next wait.
    Planned,
    /// It passes through the driver, until the next wait.
    Passing,
}

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
    /// Whether the driver's platform panics by plan.
    pub(super) panic: Panic,
    pub(super) log: Vec<String>,
    /// Rails without power, and what is on them.
    pub(super) dark: BTreeMap<u8, Vec<Placed>>,
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
        let is_planned = self.guard.panic == Panic::Passing;
        self.guard.broken |= std::thread::panicking() && !is_planned;
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
            panic: Panic::None,
            log: Vec::new(),
            dark: BTreeMap::new(),
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
        self.memory.disturb();
        self.with(controller, |seat, around| match value {
            Some(value) => {
                seat.controller.write(around, offset, width, value);
                0
            }
            None => seat.controller.read(around, offset, width),
        })
    }

    pub(super) fn plug(&mut self, controller: usize, port: usize, device: Box<dyn UsbDevice>) {
        if let Some(dark) = self.dark_at(port) {
            dark.push((controller, port, device));
            return;
        }
        self.with(controller, |seat, around| {
            seat.controller.plug(around, port, device);
        });
    }

    pub(super) fn unplug(&mut self, controller: usize, port: usize) -> Option<Box<dyn UsbDevice>> {
        if let Some(dark) = self.dark_at(port) {
            let is_it = |placed: &Placed| (placed.0, placed.1) == (controller, port);
            let index = dark.iter().position(is_it)?;
            return Some(dark.swap_remove(index).2);
        }
        self.with(controller, |seat, around| {
            seat.controller.unplug(around, port)
        })
    }

    /// What is on the rail of a port, if that has no power.
    fn dark_at(&mut self, port: usize) -> Option<&mut Vec<Placed>> {
        let Power::Rails(rails) = self.options.power else {
            return None;
        };
        self.dark.get_mut(&((port % usize::from(rails)) as u8))
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

    /// Whether a wait is to panic.
    pub(super) fn panics_now(&mut self) -> bool {
        let panics = self.panic == Panic::Planned;
        self.panic = if panics { Panic::Passing } else { Panic::None };
        panics
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
