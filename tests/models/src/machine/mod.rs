//! [`Machine`]: memory, time, controllers and devices put together.
//!
//! A test makes one, adds controllers, plugs devices in, and hands the driver what
//! [`adapter`](crate::adapter) makes of it. The machine advances virtual time: a little with each
//! register access and each look at the clock, and by leaps when the driver waits.
//!
//! ```
//! use rootport_models::controller::xhci::Traits;
//! use rootport_models::machine::{Machine, Options};
//!
//! let machine = Machine::new(Options { seed: 7, ..Options::default() });
//! let controller = machine.add_xhci(Traits::default());
//! // What a driver sees: CAPLENGTH in its own width.
//! assert_eq!(machine.read(controller, 0, 1), 0x40);
//! ```

mod buffer;
mod observer;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use buffer::Buffer;

use crate::controller::xhci::{Faults, Traits, Xhci};
use crate::controller::{Controller, Surroundings, Width};
use crate::device::{MICROSECOND, Nanoseconds, UsbDevice};
use crate::memory::{Layout, Memory, Moved};
use crate::random::Random;

/// What ends a wait of the driver before its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sleep {
    /// Anything that a polling driver would notice.
    UntilAnything,
    /// Only an interrupt, as a CPU in WFI. Give the driver's interrupt half a chance after each
    /// wait.
    UntilInterrupt,
}

/// What a machine is like, beyond its controllers.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// Bytes of a cache line: 16, 32, 64 or 128.
    pub cache_line: usize,
    /// Whether hardware keeps caches and DMA coherent.
    pub coherent: bool,
    /// Where bus addresses begin. A controller of 32 bits wants everything below 4 GiB.
    pub bus_base: u64,
    /// What ends a wait.
    pub sleep: Sleep,
    /// Time that a register access takes.
    pub access_time: Nanoseconds,
    /// Whether the platform can cut a controller's DMA.
    pub can_cut_dma: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            cache_line: 64,
            coherent: false,
            bus_base: 0x4800_0000,
            sleep: Sleep::UntilAnything,
            access_time: 200,
            can_cut_dma: true,
        }
    }
}

impl Options {
    /// All memory above 4 GiB, for controllers with 64-bit addresses.
    #[must_use]
    pub fn above_4_gib() -> Self {
        Self {
            bus_base: 0x3_4800_0000,
            ..Self::default()
        }
    }
}

/// What a controller's driver has cost so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Register reads.
    pub reads: u64,
    /// Register writes.
    pub writes: u64,
    /// Interrupts: rising edges of the line, or messages.
    pub interrupts: u64,
    /// Bytes moved by DMA, of all controllers together.
    pub moved: Moved,
}

struct Seat {
    controller: Box<dyn Controller>,
    statistics: Statistics,
}

pub(crate) struct World {
    options: Options,
    now: Nanoseconds,
    pub(crate) memory: Memory,
    random: Random,
    seats: Vec<Seat>,
    noticed: bool,
    interrupts_seen: u64,
    /// A rule was broken: the run has failed, and whoever unwinds meets silence.
    broken: bool,
    log: Vec<String>,
}

/// A modelled machine. Clones are the same machine.
#[derive(Clone)]
pub struct Machine {
    world: Arc<Mutex<World>>,
}

impl fmt::Debug for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.world();
        formatter
            .debug_struct("Machine")
            .field("now", &world.now)
            .field("options", &world.options)
            .finish_non_exhaustive()
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Machine {
    /// A machine without controllers.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let mut random = Random::new(options.seed);
        let layout = Layout {
            line: options.cache_line,
            coherent: options.coherent,
            base: options.bus_base,
        };
        let memory = Memory::new(layout, Random::new(random.bits()));
        let world = Arc::new(Mutex::new(World {
            options,
            now: 0,
            memory,
            random,
            seats: Vec::new(),
            noticed: false,
            interrupts_seen: 0,
            broken: false,
            log: Vec::new(),
        }));
        observer::watch(&world);
        Self { world }
    }

    /// What it was made with.
    #[must_use]
    pub fn options(&self) -> Options {
        self.world().options
    }

    /// Adds a controller without faults: its index.
    pub fn add_xhci(&self, traits: Traits) -> usize {
        self.add_faulty_xhci(traits, Faults::none())
    }

    /// Adds a controller with a plan of what goes wrong: its index.
    pub fn add_faulty_xhci(&self, traits: Traits, faults: Faults) -> usize {
        self.add(Box::new(Xhci::new(traits, faults)))
    }

    /// Adds any controller: its index.
    pub fn add(&self, controller: Box<dyn Controller>) -> usize {
        let mut world = self.world();
        world.seats.push(Seat {
            controller,
            statistics: Statistics::default(),
        });
        world.seats.len() - 1
    }

    /// Plugs a device into a root port, counted from 0.
    pub fn plug(&self, controller: usize, port: usize, device: impl UsbDevice + 'static) {
        self.world().with(controller, |seat, around| {
            seat.controller.plug(around, port, Box::new(device));
        });
    }

    /// Pulls the device out of a root port.
    pub fn unplug(&self, controller: usize, port: usize) -> Option<Box<dyn UsbDevice>> {
        self.world().with(controller, |seat, around| {
            seat.controller.unplug(around, port)
        })
    }

    /// Virtual time since the machine was made.
    #[must_use]
    pub fn now(&self) -> Nanoseconds {
        self.world().now
    }

    /// Lets time pass.
    pub fn advance(&self, span: Nanoseconds) {
        let mut world = self.world();
        let until = world.now + span;
        world.advance(until);
    }

    /// Lets time pass until something happens that the driver may see, at the latest until `until`.
    ///
    /// # Panics
    /// If `until` is the end of time, and nothing will ever happen.
    pub fn wait(&self, until: Nanoseconds) {
        self.world().wait(until);
    }

    /// Whether a controller's wired interrupt is asserted.
    #[must_use]
    pub fn interrupt_line(&self, controller: usize) -> bool {
        self.world().seats[controller].controller.interrupt_line()
    }

    /// What a controller's driver has cost so far.
    #[must_use]
    pub fn statistics(&self, controller: usize) -> Statistics {
        let world = self.world();
        let seat = &world.seats[controller];
        Statistics {
            interrupts: seat.controller.interrupts(),
            moved: world.memory.moved(),
            ..seat.statistics
        }
    }

    /// Bytes of a controller's register window.
    #[must_use]
    pub fn window(&self, controller: usize) -> usize {
        self.world().seats[controller].controller.length()
    }

    /// The driver reads a register of 1, 2 or 4 bytes.
    pub fn read(&self, controller: usize, offset: usize, bytes: usize) -> u32 {
        let mut world = self.world();
        world.seats[controller].statistics.reads += 1;
        world.access(controller, offset, bytes, None)
    }

    /// The driver writes a register of 1, 2 or 4 bytes.
    pub fn write(&self, controller: usize, offset: usize, bytes: usize, value: u32) {
        let mut world = self.world();
        world.seats[controller].statistics.writes += 1;
        let _ = world.access(controller, offset, bytes, Some(value));
    }

    /// The driver looks at the clock, which takes a little of it.
    #[must_use]
    pub fn read_clock(&self) -> Nanoseconds {
        let mut world = self.world();
        let until = world.now + 50;
        world.advance(until);
        world.now
    }

    /// Takes all DMA away from a controller: whether the platform can.
    pub fn cut_dma(&self, controller: usize) -> bool {
        let mut world = self.world();
        let can = world.options.can_cut_dma;
        if can && let Some(seat) = world.seats.get_mut(controller) {
            seat.controller.cut_dma();
        }
        can
    }

    /// A buffer of cached memory, zeroed, whose first byte is `offset` bytes behind a page.
    #[must_use]
    pub fn buffer(&self, length: usize, offset: usize) -> Buffer {
        let start = self.world().memory.add_block(length, offset, None);
        Buffer::new(self.clone(), start, length)
    }

    /// The same at a bus address of one's choice (of its page), for a test of what a controller can
    /// reach.
    #[must_use]
    pub fn buffer_at(&self, bus: u64, length: usize, offset: usize) -> Buffer {
        let start = self.world().memory.add_block(length, offset, Some(bus));
        Buffer::new(self.clone(), start, length)
    }

    /// What the driver logged, oldest first.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.world().log.clone()
    }

    pub(crate) fn add_log(&self, line: String) {
        self.world().log.push(line);
    }

    pub(crate) fn world(&self) -> WorldGuard<'_> {
        let guard = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        WorldGuard { guard }
    }
}

/// The locked world. If a rule is broken while it is held, the machine goes silent, so that
/// whatever the driver does while it unwinds breaks nothing more.
pub(crate) struct WorldGuard<'m> {
    guard: MutexGuard<'m, World>,
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
    fn with<T>(
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

    fn access(
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

    fn advance(&mut self, until: Nanoseconds) {
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    fn wait(&mut self, until: Nanoseconds) {
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

    fn stored(&mut self, cpu: usize, length: usize) {
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

/// For drivers that are written by hand inside tests: coherent memory without the library.
impl Machine {
    /// Coherent memory of `length` bytes, zeroed: its bus address, a multiple of 4096.
    #[must_use]
    pub fn coherent(&self, length: usize) -> u64 {
        self.world().memory.add_region(length).1
    }

    /// The CPU stores words at a bus address of coherent memory, one after the other.
    pub fn store(&self, bus: u64, words: &[u32]) {
        for (index, word) in words.iter().enumerate() {
            let mut world = self.world();
            let cpu = world.memory.store(bus + 4 * index as u64, *word);
            world.stored(cpu, 4);
        }
    }

    /// The CPU loads `N` words from a bus address of coherent memory.
    #[must_use]
    pub fn load<const N: usize>(&self, bus: u64) -> [u32; N] {
        let bytes = self.load_bytes(bus, 4 * N);
        let mut words = [0; N];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        }
        words
    }

    /// The CPU loads `length` bytes from a bus address of coherent memory.
    #[must_use]
    pub fn load_bytes(&self, bus: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        assert!(
            self.world().memory.peek(bus, &mut bytes),
            "{bus:#x} is no coherent memory"
        );
        bytes
    }

    /// The CPU passes a release: what it stored becomes visible.
    pub fn release(&self) {
        self.world().memory.released();
    }
}
